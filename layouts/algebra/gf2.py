"""Layouts and swizzles as bit matrices: linear algebra over GF(2), on Python ints.

A layout whose extents are powers of two, and whose strides never carry when they add, maps each bit
of its index to fixed bits of the offset; so does a swizzle after it.  Such a map is a matrix, kept
as its columns: column j is the offset of index ``2**j``, and an offset is the XOR of the columns of
the set bits.  A matrix of rank r takes ``2**r`` values, whatever the base offset is.
"""

from __future__ import annotations

from functools import reduce
from operator import or_

from ..errors import LayoutError
from ..values.elimination import image, kernel, rank
from ..values.layout import Layout
from ..values.modes import flat_modes, has_xor_strides
from ..values.swizzle import ComposedLayout, Swizzle

__all__ = ["image", "kernel", "matrix", "rank", "span"]


def matrix(layout: Layout | ComposedLayout) -> tuple[int, ...]:
    """The columns of `layout`: ``L(i) == L(0) ^ (XOR of column j for the set bits j of i)``.

    XOR strides are columns as they are.  Raises `LayoutError` if `layout` is not of this form: an
    extent is not a power of two, two strides share a bit, or the offset shares one with them.

    >>> matrix(Layout((4, 8), (8, 1)))
    (8, 16, 1, 2, 4)
    >>> matrix(ComposedLayout(Swizzle(1, 0, 2), 0, Layout(8)))
    (1, 2, 5)
    """
    if isinstance(layout, ComposedLayout):
        linear = isinstance(layout.inner, Layout) and has_xor_strides(layout.inner)
        if not linear and not isinstance(layout.inner, Swizzle):
            raise LayoutError(f"{layout} is not a bit matrix: its inner function is not a swizzle")
        return tuple(map(layout.inner, _columns(layout.outer, layout.offset)))
    return _columns(layout, 0)


def span(extent: int, stride: int) -> int:
    """A mask of the bits that the mode ``extent:stride`` may set.

    Modes with disjoint spans never carry into one another: their sum is an XOR.

    >>> bin(span(3, 4)), bin(span(4, 6)), span(8, 0)
    ('0b1100', '0b11110', 0)
    """
    top = ((extent - 1) * stride).bit_length()
    return (1 << top) - (stride & -stride) if top else 0


def _columns(layout: Layout, offset: int) -> tuple[int, ...]:
    """The columns of ``offset + layout(i)``, if its bits do not carry."""
    columns: list[int] = []
    linear = has_xor_strides(layout)
    for extent, stride in layout.modes if linear else flat_modes(layout):
        if extent & (extent - 1):
            raise LayoutError(f"{layout} is not a bit matrix: {extent} is not a power of two")
        columns += [int(stride) << bit for bit in range(extent.bit_length() - 1)]
    if linear and offset == 0:
        return tuple(columns)
    if offset + sum(columns) != reduce(or_, columns, offset):
        raise LayoutError(f"{layout} at offset {offset} is not a bit matrix: its strides carry")
    return tuple(columns)
