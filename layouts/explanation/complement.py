"""What `explain` writes of complement.

>>> from layouts import complement, explain
>>> print(explain(complement, Layout(4, 2), 24))
complement(4:2, 24) = (2,3):(1,8)
  the modes whose stride is not 0, by rising stride: 4:2
    4:2 steps by 2 over the 1 offset so far: 2 copies fit, 2:1; it ends at 8
    3 copies of these 8 offsets reach 24: 3:8
  R = 2:1 3:8, coalesced (2,3):(1,8)
  check L and R together take each offset once: proved
"""

from __future__ import annotations

from itertools import product
from typing import Any

from .. import algebra
from ..algebra.complement import by_coordinate, covers, period
from ..proof.laws import ComplementLaws
from ..values.arith import ascending, ceil_div, divided, equal
from ..values.layout import Layout, cosize
from ..values.modes import Mode
from ..values.stride import ArithTuple, E, kind_of
from ..values.symbols import plain
from ..values.tuples import size, text
from .by_mode import coalesced, listed
from .checks import check
from .steps import Lines, by_other_means, explains
from .views import MOST, View, Views, drawable, has_integer_offsets, shows, tied


@explains(algebra.complement)
def _complement(lines: Lines, result: Any, layout: Layout, cotarget: Any = None) -> None:
    if isinstance(layout, Layout) and kind_of(layout.modes) is ArithTuple:
        _each_coordinate(lines, layout, cotarget)
        return
    if by_other_means(lines, layout, "by elimination: the bits that lead none of its offsets"):
        return
    target = plain(cosize(layout) if cotarget is None else size(cotarget))
    moving = [(s, d) for s, d in layout.modes if not (equal(s, 1) or equal(d, 0))]
    by_stride = ascending(moving, lambda mode: mode[1])
    lines.append(f"the modes whose stride is not 0, by rising stride: {listed(by_stride)}")
    reach: Any = 1
    free: list[Mode] = []
    for extent, stride in by_stride:
        if type(stride) is type(reach) is int and stride < reach:
            lines.append(
                f"  {extent}:{stride} begins before {reach}, where the modes before it end: copies "
                f"fit only beyond all of them"
            )
            free, reach = [], period(layout) if result is not None else None
            break
        reach = _between(lines, extent, stride, reach, free)
    if reach is not None:
        _beyond(lines, target, reach, free)
        coalesced(lines, free, result)
    if result is not None:
        law = ComplementLaws(layout, target, result)
        every = "L and R together take each offset once"
        check(lines, law, every if covers(layout) else "no offset is a sum in two ways")


def _each_coordinate(lines: Lines, layout: Layout, cotarget: Any) -> None:
    """The steps of each coordinate have a complement of their own."""
    lines.append(f"R is the complement of each coordinate's steps, below {text(cotarget)}:")
    for path, steps in sorted(by_coordinate(layout).items()):
        lines.append(f"  the steps of {text(E(*path))} are {steps}")


def _between(lines: Lines, extent: Any, stride: Any, reach: Any, free: list[Mode]) -> Any:
    """One mode of L, and the mode of R that fills the gap before its second entry."""
    ends = plain(extent * stride)
    copies, rest = divided(stride, reach)
    filled = equal(rest, 0)
    if not equal(copies, 1):
        free.append((copies, reach))
        how = (
            f"steps by {stride} over the {_offsets(reach)} so far: {copies} copies fit, "
            f"{copies}:{reach}"
        )
    elif filled:
        how = f"starts right after the {_offsets(reach)} so far: no gap"
    else:
        how = f"steps by {stride} over the {_offsets(reach)} so far: no copy fits between"
    left = "" if filled else f", and {rest} of every {stride} offsets stay free"
    lines.append(f"  {extent}:{stride} {how}; it ends at {ends}{left}")
    return ends


def _beyond(lines: Lines, target: Any, reach: Any, free: list[Mode]) -> None:
    """The copies beyond all modes of L."""
    copies = ceil_div(target, reach)
    if equal(copies, 1):
        lines.append(f"  the next copy would start at {reach}, not below {target}: no more")
    else:
        lines.append(
            f"  {copies} copies of these {_offsets(reach)} reach {target}: {copies}:{reach}"
        )
        free.append((copies, reach))


def _offsets(reach: Any) -> str:
    return "1 offset" if equal(reach, 1) else f"{reach} offsets"


#: Offsets that are drawn in one row.
MEMORY_ROW = 32


@shows(algebra.complement)
def _copies(result: Any, layout: Any, cotarget: Any = None) -> Views | None:
    """L, R, and the offsets below the target: each in the colour of the copy of L that takes it."""
    if not drawable(layout, result) or not has_integer_offsets(layout, result):
        return None
    target = cosize(layout) if cotarget is None else size(cotarget)
    pairs = list(product(range(size(layout)), range(size(result))))
    if target > MOST or len(pairs) > MOST:
        return None
    copy_of = {layout(a) + result(b): b for a, b in pairs}
    rows = ceil_div(target, MEMORY_ROW)
    memory = Layout((rows, MEMORY_ROW), (MEMORY_ROW, 1)) if rows > 1 else Layout(target)
    views = (
        View("L", layout, tied((a, layout(a) + result(b)) for a, b in pairs)),
        View("R", result, tied((b, layout(a) + result(b)) for a, b in pairs)),
        View(
            f"offsets below {target}",
            memory,
            lambda i: (memory(i),) if memory(i) in copy_of and memory(i) < target else (),
        ),
    )
    return Views(views, copy_of.__getitem__, "copy of L")
