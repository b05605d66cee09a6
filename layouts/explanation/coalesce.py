"""What `explain` writes of coalesce and filter.

>>> from layouts import coalesce, explain
>>> print(explain(coalesce, Layout((2, 1, 6), (1, 7, 2))))
coalesce((2,1,6):(1,7,2)) = 12:1
  the modes from left to right: 2:1 1:7 6:2
    2:1  is the first mode
    1:7  has one entry, so its stride is never used: dropped
    6:2  continues where 2:1 ends, 2 = 2*1: merged into 12:1
  what remains: 12:1
  check R(i) == L(i) with R = 12:1: proved
"""

from __future__ import annotations

from typing import Any

from .. import algebra
from ..proof.equivalence import Equivalent
from ..values.layout import Layout
from .by_mode import each_mode, in_outer, listed, merged
from .checks import check
from .steps import Lines, explains, substep
from .views import View, Views, drawable, has_integer_offsets, same_index, shows


@explains(algebra.coalesce)
def _coalesce(lines: Lines, result: Any, layout: Any, profile: Any = None) -> None:
    if in_outer(lines, algebra.coalesce, layout, profile):
        return
    if isinstance(profile, tuple):
        lines.append("each mode of the profile is coalesced by itself")
        each_mode(lines, algebra.coalesce, list(layout), [p if p is None else 1 for p in profile])
        return
    if profile is not None:
        lines.append("the profile is one leaf, so the whole layout is one mode")
    lines.append(f"what remains: {listed(merged(lines, layout.modes))}")
    if result is not None:
        check(lines, Equivalent(layout, result), f"R(i) == L(i) with R = {result}")


@explains(algebra.filter)
def _filter(lines: Lines, result: Any, layout: Any, profile: Any = None) -> None:
    if in_outer(lines, algebra.filter, layout, profile):
        return
    if isinstance(profile, tuple):
        lines.append("each mode of the profile is filtered by itself")
        each_mode(lines, algebra.filter, list(layout), [p if p is None else 1 for p in profile])
        return
    moving = [(s, d) for s, d in layout.modes if not (type(d) is int and d == 0)]
    lines.append(f"the modes whose stride is not 0: {listed(moving)}")
    if moving:
        extents, strides = zip(*moving, strict=True)
        substep(lines, algebra.coalesce, Layout(extents, strides))


shows(algebra.coalesce)(same_index)


@shows(algebra.filter)
def _filtered(result: Any, layout: Any, profile: Any = None) -> Views | None:
    """The indices of L with the offset of an index of R."""
    if not drawable(layout, result) or not has_integer_offsets(layout):
        return None
    views = (
        View("L", layout, lambda i: (layout(i),)),
        View("R", result, lambda i: (result(i),)),
    )
    return Views(views, lambda offset: offset, "offset")
