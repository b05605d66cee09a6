"""Layouts and swizzles as bit matrices: linear algebra over GF(2), on Python ints.

A layout whose extents are powers of two, and whose strides never carry when they add, sends each
bit of its index to fixed bits of the offset; so does a swizzle after it.  Such a map is a matrix,
kept as its columns: column j is the offset of index ``2**j``, and an offset is the XOR of the
columns of the set bits.  A rank then counts values, for every base at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import or_

from .errors import LayoutError
from .layout import Layout
from .modes import flat_modes
from .swizzle import ComposedLayout, Swizzle

__all__ = ["image", "kernel", "matrix", "rank"]


def matrix(layout: Layout | ComposedLayout) -> tuple[int, ...]:
    """The columns of `layout`: ``L(i) == L(0) ^ (XOR of column j for the set bits j of i)``.

    Raises `LayoutError` if `layout` is not so: an extent that is no power of two, two strides that
    share a bit, or an offset that shares one with them.

    >>> matrix(Layout((4, 8), (8, 1)))
    (8, 16, 1, 2, 4)
    >>> matrix(ComposedLayout(Swizzle(1, 0, 2), 0, Layout(8)))
    (1, 2, 5)
    """
    if isinstance(layout, ComposedLayout):
        if not isinstance(layout.inner, Swizzle):
            raise LayoutError(f"{layout} is no bit matrix: its inner part is no swizzle")
        return tuple(map(layout.inner, _columns(layout.outer, layout.offset)))
    return _columns(layout, 0)


def _columns(layout: Layout, offset: int) -> tuple[int, ...]:
    columns: list[int] = []
    for extent, stride in flat_modes(layout):
        if extent & (extent - 1):
            raise LayoutError(f"{layout} is no bit matrix: {extent} is no power of two")
        columns += [stride << bit for bit in range(extent.bit_length() - 1)]
    if offset + sum(columns) != reduce(or_, columns, offset):
        raise LayoutError(f"{layout} at offset {offset} is no bit matrix: its strides carry")
    return tuple(columns)


def image(index: int, columns: Iterable[int]) -> int:
    """The XOR of column j for the set bits j of `index`.

    >>> image(0b101, [0b011, 0b101, 0b110])
    5
    """
    value = 0
    for bit, column in enumerate(columns):
        if index >> bit & 1:
            value ^= column
    return value


def rank(columns: Iterable[int]) -> int:
    """The dimension of the span of `columns`: XORs of them take ``2**rank`` values.

    >>> rank([0b011, 0b101, 0b110])
    2
    """
    return sum(1 for _, pivot in _eliminated(columns) if pivot)


def kernel(columns: Iterable[int]) -> tuple[int, ...]:
    """A basis of the indices that go to 0, each as the set bits of an int.

    >>> kernel([0b011, 0b101, 0b110])
    (7,)
    """
    return tuple(index for index, value in _eliminated(columns) if not value)


def _eliminated(columns: Iterable[int]) -> list[tuple[int, int]]:
    """Pairs (index, image of index), one a column; images other than 0 differ in their top bit."""
    pairs: list[tuple[int, int]] = []
    for j, column in enumerate(columns):
        index, value = 1 << j, column
        for other, pivot in pairs:
            if value ^ pivot < value:  # the top bit of pivot is set in value
                index, value = index ^ other, value ^ pivot
        pairs.append((index, value))
        pairs.sort(key=lambda pair: pair[1], reverse=True)
    return pairs
