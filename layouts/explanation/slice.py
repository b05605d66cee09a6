"""What `explain` writes of slices.

>>> from layouts import explain, slice_
>>> print(explain(slice_, (2, None), Layout((4, 8), (8, 1))))
slice_(<2,_>, (4,8):(8,1)) = (8):(1)
  mode 0, 4:8: fixed at 2, where its offset is 16
  mode 1, 8:1: kept by _
  kept: (8):(1); fixed: (4):(8)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..algebra.slice import dice, shown, slice_, slice_and_offset
from ..values.layout import Layout
from ..values.swizzle import ComposedLayout
from ..values.tuples import shallow, text
from .steps import Lines, explains, substep
from .views import Views, drawable, in_place, shows


@explains(slice_)
def _slice(lines: Lines, result: Any, coord: Any, x: Any) -> None:
    _at(slice_, lines, coord, x)


@explains(dice)
def _dice(lines: Lines, result: Any, coord: Any, x: Any) -> None:
    _at(dice, lines, coord, x)


@explains(slice_and_offset)
def _slice_and_offset(lines: Lines, result: Any, coord: Any, x: Any) -> None:
    _at(slice_and_offset, lines, coord, x)


def _at(op: Callable[..., Any], lines: Lines, coord: Any, x: Any) -> None:
    """Which modes the coordinate keeps, and which it fixes."""
    if isinstance(x, ComposedLayout):
        lines.append(f"{x.inner} stays; the fixed modes add to the offset; the outer layout:")
        substep(lines, op, coord, x.outer)
        return
    if not isinstance(coord, tuple):
        lines.append(f"{shown(coord)} applies to the whole of {text(x)}")
        return
    for k, (entry, mode) in enumerate(zip(coord, shallow(x), strict=True)):
        name = f"mode {k}, {text(mode)}"
        if entry is None:
            lines.append(f"{name}: kept by _")
        elif isinstance(entry, tuple):
            lines.append(f"{name}: {shown(entry)} keeps what _ stands for")
        else:
            at = f", where its offset is {text(mode(entry))}" if isinstance(mode, Layout) else ""
            lines.append(f"{name}: fixed at {text(entry)}{at}")
    lines.append(f"kept: {text(slice_(coord, x))}; fixed: {text(dice(coord, x))}")


@shows(slice_)
def _slice_in_place(result: Any, coord: Any, x: Any) -> Views | None:
    return _part_in_place(slice_and_offset(coord, x), coord, x) if drawable(x) else None


@shows(dice)
def _first_at_rest(result: Any, coord: Any, x: Any) -> Views | None:
    """The cells of L whose coordinate is 0 in the modes that are left out."""
    if not drawable(x, result):
        return None
    indices = dice(coord, Layout(x.shape))
    return in_place(x, (result, 0), lambda cell: (indices(cell),))


@shows(slice_and_offset)
def _part_in_place(result: Any, coord: Any, x: Any) -> Views | None:
    """L, with the cells of the slice in colour, and the slice with its offset."""
    if not drawable(x):
        return None
    indices, first = slice_and_offset(coord, Layout(x.shape))
    return in_place(x, result, lambda cell: (first + indices(cell),))
