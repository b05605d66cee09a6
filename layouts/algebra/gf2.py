"""Layouts and swizzles as bit matrices: linear algebra over GF(2), on Python ints.

A layout whose extents are powers of two, and whose strides never carry when they add, maps each bit
of its index to fixed bits of the offset; so does a swizzle after it.  Such a map is a matrix, kept
as its columns: column j is the offset of index ``2**j``, and an offset is the XOR of the columns of
the set bits.  A matrix of rank r takes ``2**r`` values, whatever the base offset is.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any

from ..errors import LayoutError
from ..values.elimination import image, kernel, rank
from ..values.layout import Layout
from ..values.modes import flat_modes, has_xor_strides, placed
from ..values.swizzle import ComposedLayout, Swizzle
from ..values.tuples import size

__all__ = ["image", "kernel", "matrix", "placed_columns", "rank", "span"]


def matrix(layout: Layout | ComposedLayout) -> tuple[int, ...]:
    """The columns of `layout`: ``L(i) == L(0) ^ (XOR of column j for the set bits j of i)``.

    XOR strides are columns as they are.  Raises `LayoutError` if `layout` is not of this form: an
    extent is not a power of two, two strides share a bit, or the offset shares one with them.

    >>> matrix(Layout((4, 8), (8, 1)))
    (8, 16, 1, 2, 4)
    >>> matrix(ComposedLayout(Swizzle(1, 0, 2), 0, Layout(8)))
    (1, 2, 5)
    """
    column_of = dict(placed_columns(layout))
    count = size(layout)
    if type(count) is not int or count & (count - 1):
        raise LayoutError(f"{layout} is not a bit matrix: its size {count} is not a power of two")
    return tuple(column_of.get(1 << bit, 0) for bit in range(count.bit_length() - 1))


def placed_columns(layout: Layout | ComposedLayout) -> list[tuple[int, int]]:
    """A pair (place, column) for each bit of the coordinate: it adds its place to the index, and
    XORs its column into the offset.

    Modes of stride 0 have no bits here, so their extents may be any integers.  `matrix` is for
    layouts where every place is a power of two.  Raises `LayoutError` as `matrix` does.

    >>> placed_columns(Layout((3, 4), (0, 2)))
    [(3, 2), (6, 4)]
    """
    if not isinstance(layout, ComposedLayout):
        return _placed_columns(layout, 0)
    if not _is_linear(layout.inner):
        raise LayoutError(f"{layout} is not a bit matrix: its inner function is not a swizzle")
    bits = _placed_columns(layout.outer, layout.offset)
    return [(place, layout.inner(column)) for place, column in bits]


def _is_linear(inner: Any) -> bool:
    """Whether `inner` is linear in the bits of its index: a swizzle, or XOR strides."""
    if not isinstance(inner, Layout):
        return isinstance(inner, Swizzle)
    extents = [extent for extent, _ in inner.modes[:-1]]
    ragged = any(type(extent) is not int or extent & (extent - 1) for extent in extents)
    return has_xor_strides(inner) and not ragged


def span(extent: int, stride: int) -> int:
    """A mask of the bits that the mode ``extent:stride`` may set.

    Modes with disjoint spans never carry into one another: their sum is an XOR.

    >>> bin(span(3, 4)), bin(span(4, 6)), span(8, 0)
    ('0b1100', '0b11110', 0)
    """
    top = ((extent - 1) * stride).bit_length()
    return (1 << top) - (stride & -stride) if top else 0


def _placed_columns(layout: Layout, offset: int) -> list[tuple[int, int]]:
    """The bits of ``offset + layout(i)``, if they do not carry."""
    linear = has_xor_strides(layout)
    bits: list[tuple[int, int]] = []
    for extent, stride, place in placed(layout.modes if linear else flat_modes(layout)):
        if not stride:
            continue
        if extent & (extent - 1):
            raise LayoutError(f"{layout} is not a bit matrix: {extent} is not a power of two")
        bits += [(place * (1 << k), int(stride) << k) for k in range(extent.bit_length() - 1)]
    columns = [column for _, column in bits]
    if linear and offset == 0:
        return bits
    if type(offset) is not int:
        raise LayoutError(f"{layout} at offset {offset} is not a bit matrix: it has no known bits")
    if offset & reduce(or_, columns, 0) or not (linear or sum(columns) == reduce(or_, columns, 0)):
        raise LayoutError(f"{layout} at offset {offset} is not a bit matrix: its strides carry")
    return bits
