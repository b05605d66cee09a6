"""What `explain` writes of complement.

>>> from layouts import complement, explain
>>> print(explain(complement, Layout(4, 2), 24))
complement(4:2, 24) = (2,3):(1,8)
  the modes whose stride is not 0, by rising stride: 4:2
    4:2 steps by 2 over the 1 offset filled so far: 2 copies fit, 2:1; with it 0 to 7 are filled
    3 copies of these 8 offsets reach 24: 3:8
  R = 2:1 3:8, coalesced (2,3):(1,8)
  check L and R together take each offset once: proved
"""

from __future__ import annotations

from typing import Any

from ..proof.laws import ComplementLaws
from ..values.arith import ascending, ceil_div, divided, divides, equal
from ..values.layout import Layout, cosize
from ..values.modes import Mode
from ..values.symbols import plain
from ..values.tuples import size
from .by_mode import coalesced, listed
from .checks import check
from .steps import Lines, by_other_means, explains


@explains("complement")
def _complement(lines: Lines, result: Any, layout: Layout, cotarget: Any = None) -> None:
    if by_other_means(lines, layout, "by elimination: the bits that lead none of its offsets"):
        return
    target = plain(cosize(layout) if cotarget is None else size(cotarget))
    moving = [(s, d) for s, d in layout.modes if not (equal(s, 1) or equal(d, 0))]
    by_stride = ascending(moving, lambda mode: mode[1])
    lines.append(f"the modes whose stride is not 0, by rising stride: {listed(by_stride)}")
    reach: Any = 1
    free: list[Mode] = []
    for extent, stride in by_stride:
        if not divides(reach, stride):
            lines.append(
                f"  {extent}:{stride} steps by {stride}, which is not a multiple of the {reach} "
                f"offsets filled so far: copies overlap or leave a hole"
            )
            return
        reach = _gap(lines, extent, stride, reach, free)
    copies = ceil_div(target, reach)
    if equal(copies, 1):
        lines.append(f"  the {_offsets(reach)} filled reach {target}: nothing to add")
    else:
        lines.append(
            f"  {copies} copies of these {_offsets(reach)} reach {target}: {copies}:{reach}"
        )
        free.append((copies, reach))
    coalesced(lines, free, result)
    if result is not None:
        law = ComplementLaws(layout, target, result)
        check(lines, law, "L and R together take each offset once")


def _gap(lines: Lines, extent: Any, stride: Any, reach: Any, free: list[Mode]) -> Any:
    """One mode of L, and the mode of R that fills the gap before its second entry."""
    filled = plain(extent * stride)
    copies = divided(stride, reach)[0]
    if equal(copies, 1):
        how = f"starts right after the {_offsets(reach)} filled so far: no gap"
    else:
        free.append((copies, reach))
        how = (
            f"steps by {stride} over the {_offsets(reach)} filled so far: {copies} copies fit, "
            f"{copies}:{reach}"
        )
    lines.append(f"  {extent}:{stride} {how}; with it 0 to {plain(filled - 1)} are filled")
    return filled


def _offsets(reach: Any) -> str:
    return "1 offset" if equal(reach, 1) else f"{reach} offsets"
