"""What `explain` writes of the divides.

>>> from layouts import explain, zipped_divide
>>> str(explain(zipped_divide, Layout(8), 2)).splitlines()[-1]
'  in (2,4):(1,2) the tiles go to mode 0, the rests to mode 1: (2,4):(1,2)'
"""

from __future__ import annotations

from typing import Any

from .. import algebra
from ..algebra.divide import extent_of
from ..proof.laws import DivideLaw
from ..values.layout import Layout, make_layout
from ..values.symbols import plain_if_symbolic
from ..values.tuples import text
from .by_mode import each_mode, gathered, in_outer
from .checks import check
from .steps import Lines, explains, substep


@explains("logical_divide")
def _logical_divide(lines: Lines, result: Any, layout: Any, tiler: Any) -> None:
    if tiler is None:
        lines.append(f"no tiler: {layout} stays as it is")
        return
    if in_outer(lines, algebra.logical_divide, layout, tiler):
        return
    if isinstance(tiler, tuple):
        lines.append("a tuple of tilers divides mode by mode")
        each_mode(lines, algebra.logical_divide, list(layout), tiler)
        lines.append(f"side by side: {text(result)}")
        return
    tile = tiler if isinstance(tiler, Layout) else Layout(tiler)
    lines.append(f"the tile is T = {tile}; T* is its complement up to the size of A = {layout}:")
    extent = plain_if_symbolic(extent_of(layout, tile))
    rest = substep(lines, algebra.complement, tile, extent)
    if rest is None:
        return
    both = make_layout(tile, rest)
    lines.append(f"within a tile, and from tile to tile: (T, T*) = {both}")
    substep(lines, algebra.composition, layout, both)
    if result is not None:
        law = DivideLaw(layout, tiler, result)
        check(lines, law, f"R((t,r)) == A(T(t) + T*(r)), R = {result}")


explains("zipped_divide")(
    gathered(algebra.logical_divide, "the tiles go to mode 0, the rests to mode 1")
)
explains("tiled_divide")(
    gathered(algebra.logical_divide, "the tiles go to mode 0, the rests follow as modes")
)
explains("flat_divide")(
    gathered(algebra.logical_divide, "all modes of tiles come first, then all modes of rests")
)
