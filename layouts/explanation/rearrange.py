"""What `explain` writes of modes selected, grouped, added and replaced.

>>> from layouts import Layout, explain, group_modes
>>> print(explain(group_modes, Layout((2, 3, 4)), 0, 2))
group_modes((2,3,4):(1,2,6), 0, 2) = ((2,3),4):((1,2),6)
  the modes are 2:1, 3:2, 4:6
  of the result they are (2,3):(1,2), 4:6
"""

from __future__ import annotations

from typing import Any

from .. import algebra
from ..values.layout import Layout
from ..values.swizzle import ComposedLayout
from ..values.tuples import text
from .steps import Lines, explains
from .views import Views, drawable, in_place, same_index, shows


@explains(algebra.append, algebra.group_modes, algebra.prepend, algebra.replace, algebra.select)
def _rearranged(lines: Lines, result: Any, x: Any, *arguments: Any) -> None:
    if isinstance(x, ComposedLayout):
        lines.append(f"the outer layout of {x} changes; the rest stays")
        x, result = x.outer, None if result is None else result.outer
    lines.append(f"the modes are {_listed(x)}")
    if result is not None:
        lines.append(f"of the result they are {_listed(result)}")


def _listed(x: Any) -> str:
    modes = list(x) if isinstance(x, (Layout, tuple)) else [x]
    return ", ".join(map(text, modes)) or "none"


shows(algebra.group_modes)(same_index)


@shows(algebra.select)
def _selected(result: Any, x: Any, mode: Any) -> Views | None:
    """The cells of L whose coordinate is 0 in the other modes."""
    if not drawable(x):
        return None
    indices = algebra.select(Layout(x.shape), mode)
    return in_place(x, (result, 0), lambda cell: (indices(cell),))
