"""Layouts to bit matrices and back.

A matrix over GF(2) is kept as its columns, each an int: column j is the value at index ``2**j``,
and every other value is the XOR of the columns of its index's set bits.

>>> from layouts import Layout, Swizzle, composition
>>> tile = composition(Swizzle(2, 0, 3), Layout((4, 8), (8, 1)))
>>> to_bits(tile)
(9, 18, 1, 2, 4)
>>> print(from_bits(to_bits(tile), (4, 8)))
S<2,0,3> o 0 o (4,8):(8,1)

A row of the matrix is one bit of the value.  Integer strides that do not carry set each bit by at
most one bit of the index, so no row has two ones.  A swizzle adds row ``t + shift`` to row t, for a
run of rows t; so it is found by undoing that addition where rows have several ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from ..errors import LayoutError
from ..values.elimination import image
from ..values.layout import Layout
from ..values.modes import Mode, assembled, merged, refined
from ..values.stride import F2
from ..values.swizzle import HIGHEST, ComposedLayout, Swizzle, layout_for
from ..values.tuples import IntTuple, as_int, checked, leaves, product, size, text
from .gf2 import matrix

__all__ = ["from_bits", "to_bits"]

#: Indices that are tried if no rule decides whether a composed layout is a bit matrix.
TRIED = 1 << 16


def to_bits(layout: Layout | ComposedLayout) -> tuple[int, ...]:
    """The columns of `layout` as a bit matrix (the bases of a linear layout).

    ``L(i) == XOR of column j for the set bits j of i``, for every index i below ``size(L)``.

    Raises `LayoutError` if L is not such a map: an extent is not a power of two, a value is not an
    integer known now, L(0) is not 0, or two strides carry into one another.

    >>> to_bits(Layout((4, (2, 2)), (1, (16, 8)))), to_bits(Layout((2, 4), (0, 5)))
    ((1, 2, 16, 8), (0, 5, 10))
    >>> to_bits(Layout((4, 4), (1, 3)))
    Traceback (most recent call last):
    layouts.errors.LayoutError: to_bits of (4,4):(1,3): it is not linear over XOR: its value at \
index 5 is 4, and the XOR of its values at 1 and 4 is 2
    """
    shape, start = layout_for("to_bits", layout).shape, layout(0)
    _check_extents("to_bits", layout, shape)
    if start != 0:
        why = "a coordinate" if isinstance(start, tuple) else "not 0"
        raise LayoutError(
            f"to_bits of {layout}: its value at index 0 is {start}, {why}; a bit matrix maps 0 to 0"
        )
    try:
        return matrix(layout)
    except LayoutError:
        columns = tuple(layout(1 << bit) for bit in range(size(shape).bit_length() - 1))
    _check_linear(layout, columns)
    return columns


def _check_extents(name: str, what: Any, shape: IntTuple) -> None:
    for extent in leaves(shape):
        if type(extent) is not int or extent & (extent - 1):
            known = "" if type(extent) is int else ", not a symbol"
            raise LayoutError(
                f"{name} of {what}: the extent {extent} must be a power of two{known}, so that the "
                f"bits of an index are coordinates"
            )


def _check_linear(layout: Layout | ComposedLayout, columns: Sequence[Any]) -> None:
    """Raises `LayoutError` unless every value of `layout` is the XOR of `columns`."""
    for column in columns:
        if type(column) is not int:
            raise LayoutError(f"to_bits of {layout}: its value {column} must be an integer")
    count = size(layout.shape)
    tried: Iterable[int] = range(0 if isinstance(layout, Layout) else min(count, TRIED))
    for index in chain(tried, _pairs(len(columns))):
        if layout(index) != image(index, columns):
            top = 1 << index.bit_length() - 1
            raise LayoutError(
                f"to_bits of {layout}: it is not linear over XOR: its value at index {index} is "
                f"{layout(index)}, and the XOR of its values at {index - top} and {top} is "
                f"{image(index, columns)}"
            )
    if count > TRIED:
        raise LayoutError(
            f"to_bits of {layout}: not decided; it is linear at the first {TRIED} indices"
        )


def _pairs(bits: int) -> Iterator[int]:
    """The indices with two bits set, in rising order: a layout that carries does so at one first.

    >>> [*_pairs(3)]
    [3, 5, 6]
    """
    return ((1 << high) + (1 << low) for high in range(bits) for low in range(high))


def from_bits(columns: Iterable[int], shape: IntTuple = None) -> Layout | ComposedLayout:
    """The layout whose value at an index is the XOR of `columns` of the index's set bits.

    ``to_bits(from_bits(columns, shape)) == columns``.  The shape of the result refines `shape`, by
    default the number of indices, ``2**len(columns)``.  The strides are integers if no two columns
    share a bit.  Otherwise the result is a swizzle after such a layout, the one with the smallest
    shift if there are several; and if there is none, a layout with XOR strides.

    Raises `LayoutError` unless the columns are ints from 0 up, and the extents of `shape` powers of
    two with that many indices.

    >>> print(from_bits([8, 1, 2, 4]), from_bits([8, 1, 2, 4], (4, 4)))
    (2,8):(8,1) ((2,2),4):((8,1),2)
    >>> print(from_bits([1, 2, 4, 9, 18, 36]), from_bits([1, 3, 2]))
    S<3,0,3> o 0 o 64:1 (2,2,2):(F1,F3,F2)
    """
    columns = _listed(columns)
    for column in columns:
        if type(column) is not int or column < 0:
            raise LayoutError(f"from_bits: the column {column!r} must be an int of at least 0")
    if shape is not None:
        shape = checked(shape, "shape", 1)
        _check_extents("from_bits", f"the shape {text(shape)}", shape)
        if product(shape) != 1 << len(columns):
            raise LayoutError(
                f"from_bits: the shape {text(shape)} has {product(shape)} indices; "
                f"{len(columns)} columns need {1 << len(columns)}"
            )
    rows = _transposed(columns)
    if not _shared(rows):
        return _of_columns(columns, shape)
    swizzle = _swizzle_of(rows)
    if swizzle is None:
        return _of_columns([F2(column) if column else 0 for column in columns], shape)
    return ComposedLayout(swizzle, 0, _of_columns([swizzle(c) for c in columns], shape))


def _listed(columns: Any) -> list[Any]:
    try:
        return [*map(as_int, columns)]
    except TypeError:
        raise LayoutError(f"from_bits: the columns {columns!r} must be a list of ints") from None


def _of_columns(strides: Sequence[Any], shape: IntTuple) -> Layout:
    """The layout whose bit j of the index has stride j, over `shape`."""
    modes: list[Mode] = [(2, stride) for stride in strides]
    if shape is None:
        return assembled(merged(modes))
    counts = [extent.bit_length() - 1 for extent in leaves(shape)]
    bits = iter(modes)
    return refined(shape, [merged([next(bits) for _ in range(count)]) for count in counts])


def _transposed(columns: Sequence[int]) -> list[int]:
    """Row t of the matrix: bit j is bit t of column j.

    >>> _transposed([0b01, 0b11])
    [3, 2]
    """
    top = max((column.bit_length() for column in columns), default=0)
    return [sum((c >> t & 1) << j for j, c in enumerate(columns)) for t in range(top)]


def _shared(rows: Sequence[int]) -> list[int]:
    """The bits of the value that several bits of the index set: the rows with several ones."""
    return [t for t, row in enumerate(rows) if row & (row - 1)]


def _swizzle_of(rows: Sequence[int]) -> Swizzle | None:
    """The swizzle of the smallest shift after which no row has several ones, or None.

    It changes the rows from the first to the last that has several ones, and reads none of these.
    If a swizzle of more rows does, so does this one.
    """
    shared = _shared(rows)
    low, high = shared[0], shared[-1]
    for distance in range(high + 1 - low, len(rows)):
        for shift in (distance, -distance):
            if low + shift < 0 or max(high, high + shift) >= HIGHEST:
                continue
            added = [rows[t] ^ _row(rows, t + shift) for t in range(low, high + 1)]
            if not _shared(added):
                return Swizzle(high + 1 - low, low + min(shift, 0), shift)
    return None


def _row(rows: Sequence[int], t: int) -> int:
    """Row t of the matrix; 0 beyond its last one."""
    return rows[t] if t < len(rows) else 0
