"""Layouts as flat lists of modes (extent, stride): the form in which the algebra computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from .errors import LayoutError
from .layout import Layout
from .tuples import leaves

__all__ = ["Mode", "assembled", "flat_modes", "merged"]

#: A leaf of a layout: extent and stride, both known now.
Mode: TypeAlias = "tuple[int, int]"


def flat_modes(layout: Layout) -> list[Mode]:
    """The pairs (extent, stride) of the leaves, which must be ints.

    Raises `LayoutError` if one is a symbol.

    >>> flat_modes(Layout(((2, 4), 8)))
    [(2, 1), (4, 2), (8, 8)]
    """
    modes = list(zip(leaves(layout.shape), leaves(layout.stride), strict=True))
    for extent, stride in modes:
        if type(extent) is not int or type(stride) is not int:
            raise LayoutError(
                f"{layout}: the mode {extent}:{stride} must be of integers known now; give the "
                f"symbols values first"
            )
    return modes


def merged(modes: Sequence[Mode]) -> list[Mode]:
    """`modes`, with each one that only continues the mode before it merged into that.

    Modes of extent 1 are not looked for: leave them out before.

    >>> merged([(2, 1), (4, 2), (8, 16)])
    [(8, 1), (8, 16)]
    """
    result: list[Mode] = []
    for extent, stride in modes:
        if result and stride == result[-1][0] * result[-1][1]:
            result[-1] = (result[-1][0] * extent, result[-1][1])
        else:
            result.append((extent, stride))
    return result


def assembled(modes: Sequence[Mode]) -> Layout:
    """The flat layout of `modes`; a single one has an integer shape, and none is 1:0.

    >>> print(assembled([(8, 1), (8, 16)]), assembled([(8, 1)]), assembled([]))
    (8,8):(1,16) 8:1 1:0
    """
    if len(modes) <= 1:
        return Layout(*(modes[0] if modes else (1, 0)))
    return Layout(tuple(extent for extent, _ in modes), tuple(stride for _, stride in modes))
