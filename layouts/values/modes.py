"""Layouts as flat lists of modes (extent, stride), the form in which the algebra computes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from ..errors import LayoutError
from .arith import ceil_div, equal, less
from .layout import Layout, trusted
from .stride import F2, StepStride, kind_of
from .symbols import GIVE_VALUES
from .tuples import IntTuple, leaves, product, size, text, unflatten

__all__ = [
    "Mode",
    "as_xor_strides",
    "assembled",
    "bit_modes",
    "column_strides",
    "extended",
    "extended_shape",
    "flat_modes",
    "from_columns",
    "has_xor_strides",
    "merged",
    "placed",
    "refined",
    "without_ones",
]

#: A leaf of a layout: extent and stride.
Mode: TypeAlias = "tuple[Any, Any]"


def flat_modes(layout: Layout) -> list[tuple[int, int]]:
    """The pairs (extent, stride) of the leaves, all ints.

    Raises `LayoutError` if one of them is a symbol, a coordinate or an XOR stride.

    >>> flat_modes(Layout(((2, 4), 8)))
    [(2, 1), (4, 2), (8, 8)]
    """
    for extent, stride in layout.modes:
        if type(extent) is not int or type(stride) is not int:
            hint = GIVE_VALUES
            if isinstance(stride, StepStride):
                hint = f"{stride} is not an integer stride"
            raise LayoutError(
                f"{layout}: the mode {extent}:{stride} must have integers known now; {hint}"
            )
    return list(layout.modes)


def without_ones(layout: Layout) -> list[Mode]:
    """The modes of `layout` except those of extent 1.

    >>> without_ones(Layout((4, 1, 2)))
    [(4, 1), (2, 4)]
    """
    return [mode for mode in layout.modes if type(mode[0]) is not int or mode[0] != 1]


def merged(modes: Iterable[Mode]) -> list[Mode]:
    """`modes`, with each mode that continues the one before it merged into that one.

    Remove modes of extent 1 first (`without_ones`): one between two others keeps them apart.

    >>> merged([(2, 1), (4, 2), (8, 16)])
    [(8, 1), (8, 16)]
    """
    result: list[Mode] = []
    for extent, stride in modes:
        if result:
            before, step = result[-1]
            following = before * step
            if stride == following or (type(stride) is not int and equal(stride, following)):
                result[-1] = (before * extent, step)
                continue
        result.append((extent, stride))
    return result


def placed(modes: Iterable[Mode]) -> Iterator[tuple[Any, Any, Any]]:
    """(extent, stride, place value) of each mode: a step of it adds the place value to the index.

    >>> [*placed([(4, 8), (2, 1), (3, 0)])]
    [(4, 8, 1), (2, 1, 4), (3, 0, 8)]
    """
    place: Any = 1
    for extent, stride in modes:
        yield extent, stride, place
        place = place * extent


def assembled(modes: Sequence[Mode]) -> Layout:
    """The flat layout of `modes`: of one mode its shape is an integer, of none it is 1:0.

    >>> print(assembled([(8, 1), (8, 16)]), assembled([(8, 1)]), assembled([]))
    (8,8):(1,16) 8:1 1:0
    """
    if len(modes) <= 1:
        mode = modes[0] if modes else (1, 0)
        return trusted(mode[0], mode[1], (mode,))
    return trusted(tuple([s for s, _ in modes]), tuple([d for _, d in modes]), tuple(modes))


def refined(profile: IntTuple, modes_of_leaves: Iterable[Sequence[Mode]]) -> Layout:
    """The layout nested as `profile` is, with the given modes in place of each leaf.

    A single mode has no parentheses of its own, and a leaf without modes becomes 1:0.

    >>> print(refined((4, (3, 1)), [[(2, 8), (2, 1)], [(3, 2)], []]))
    ((2,2),(3,1)):((8,1),(2,0))
    """
    filled = [modes or [(1, 0)] for modes in modes_of_leaves]
    shape, stride = _shape_and_stride(iter(filled), profile)
    return trusted(shape, stride, tuple([mode for modes in filled for mode in modes]))


def _shape_and_stride(
    modes_of_leaves: Iterator[Sequence[Mode]], profile: IntTuple
) -> tuple[IntTuple, IntTuple]:
    if isinstance(profile, tuple):
        pairs = [_shape_and_stride(modes_of_leaves, branch) for branch in profile]
    else:
        pairs = list(next(modes_of_leaves))
        if len(pairs) == 1:
            return pairs[0]
    return tuple([shape for shape, _ in pairs]), tuple([stride for _, stride in pairs])


# ---------------------------------------------------------------------- beyond the last extent


def extended(layout: Layout, count: Any) -> Layout:
    """The same function with at least `count` indices: the last extent grows if it has to.

    Raises `LayoutError` if no single extent is long enough for all values of the symbols.

    >>> print(extended(Layout((4, 2), (2, 1)), 18), extended(Layout((4, 2), (2, 1)), 8))
    (4,5):(2,1) (4,2):(2,1)
    """
    if not layout.modes or less(count, size(layout) + 1):
        return layout
    shape = extended_shape(layout.shape, count, power_of_two=has_xor_strides(layout))
    return Layout(shape, layout.stride)


def extended_shape(shape: IntTuple, count: Any, power_of_two: bool) -> IntTuple:
    """`shape` with its last extent such that its size is at least `count`.

    >>> extended_shape((4, (3, 1)), 30, power_of_two=False)
    (4, (3, 3))
    """
    extents = leaves(shape)
    if not extents:
        return shape
    last = ceil_div(count, product(extents[:-1]))
    if power_of_two:
        if type(last) is not int:
            raise LayoutError(
                f"{text(shape)} with XOR strides: its last extent would have to be {last}, and "
                f"must be a power of two known now"
            )
        last = 1 << (last - 1).bit_length()
    return unflatten((*extents[:-1], last), shape)


# -------------------------------------------------------------------------------- XOR strides


def has_xor_strides(layout: Layout) -> bool:
    """Whether `layout` has XOR strides.

    >>> has_xor_strides(Layout((4, 2), (F2(1), F2(5)))), has_xor_strides(Layout(8))
    (True, False)
    """
    return kind_of(layout.modes) is F2


def as_xor_strides(layout: Layout) -> Layout:
    """`layout`, whose strides are integers that never carry, with XOR strides instead.

    >>> print(as_xor_strides(Layout((2, 1, 4), (8, 0, 1))))
    (2,1,4):(F8,0,F1)
    """
    xor = [F2(d) if type(d) is int and d else d for _, d in layout.modes]
    return Layout(layout.shape, unflatten(xor, layout.stride))


def bit_modes(modes: Iterable[Mode]) -> list[Mode]:
    """Modes of a layout with XOR strides, each XOR stride in modes of extent 2, one for each bit.

    A mode of stride 0 stays whole: its extent may be any integer, so it need not have bits.

    >>> print(*(f"{s}:{d}" for s, d in bit_modes([(4, F2(3)), (3, 0)])))
    2:F3 2:F6 3:0
    """
    parts: list[Mode] = []
    for extent, stride in modes:
        if stride:
            parts += [(2, stride * (1 << k)) for k in range(extent.bit_length() - 1)]
        elif extent != 1:
            parts.append((extent, 0))
    return parts


def from_columns(columns: Iterable[int]) -> Layout:
    """The layout whose value at an index is the XOR of column j for each set bit j of the index.

    If no two columns share a bit, the strides are integers.

    >>> print(from_columns([1, 2, 5, 8]), from_columns([8, 1, 2]))
    (4,2,2):(F1,F5,F8) (2,4):(8,1)
    """
    return assembled(merged([(2, stride) for stride in column_strides(columns)]))


def column_strides(columns: Iterable[int]) -> list[Any]:
    """The strides of bits with these columns: integers if no two share a bit, else XOR strides.

    >>> print(*column_strides([1, 2, 5, 0]), *column_strides([8, 1, 0]))
    F1 F2 F5 0 8 1 0
    """
    strides = list(columns)
    union = 0
    for column in strides:
        if column & union:
            return [F2(column) if column else 0 for column in strides]
        union |= column
    return strides
