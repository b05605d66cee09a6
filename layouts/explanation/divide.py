"""What `explain` writes of the divides.

>>> from layouts import explain, zipped_divide
>>> str(explain(zipped_divide, Layout(8), 2)).splitlines()[-1]
'  in (2,4):(1,2) the tiles go to mode 0, the rests to mode 1: (2,4):(1,2)'
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import algebra
from ..algebra.divide import extent_of
from ..proof.laws import DivideLaw
from ..values.layout import Layout, make_identity_layout, make_layout
from ..values.symbols import plain_if_symbolic
from ..values.tuples import size, text
from .by_mode import each_mode, gathered, in_outer
from .checks import check
from .steps import Lines, explains, substep
from .views import View, Views, by_element, drawable, shows


@explains(algebra.logical_divide)
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


explains(algebra.zipped_divide)(
    gathered(algebra.logical_divide, "the tiles go to mode 0, the rests to mode 1")
)
explains(algebra.tiled_divide)(
    gathered(algebra.logical_divide, "the tiles go to mode 0, the rests follow as modes")
)
explains(algebra.flat_divide)(
    gathered(algebra.logical_divide, "all modes of tiles come first, then all modes of rests")
)


def _shown(op: Callable[..., Any]) -> None:
    """Register the views of a divide: A with its tiles in colours, and R."""

    @shows(op)
    def views(result: Any, layout: Any, tiler: Any) -> Views | None:
        return tiles(op, result, layout, tiler)


for _op in (
    algebra.logical_divide,
    algebra.zipped_divide,
    algebra.tiled_divide,
    algebra.flat_divide,
):
    _shown(_op)


def tiles(op: Callable[..., Any], result: Any, layout: Any, tiler: Any) -> Views | None:
    """A and R, which both have the colours of the tiles of A."""
    if not drawable(layout, result) or tiler is None:
        return None
    cells = cells_of(layout, tiler, is_exact=size(result) == size(layout))
    tile_of = numbered_tiles(cells, tiler, layout.shape)
    of_result = by_element(op(cells, tiler), layout.shape)
    views = [
        View("A", layout, lambda i: (i,) if i in tile_of else ()),  # a tiler may leave some out
        View("R", result, of_result),
    ]
    return Views(views, tile_of.__getitem__, "tile")


def cells_of(layout: Any, tiler: Any, is_exact: bool) -> Layout:
    """What stands for the cells of `layout`: indices, or if tiles go beyond a mode, coordinates.

    >>> print(cells_of(Layout((4, 8)), (2, 2), True), cells_of(Layout((3, 8)), (2, 2), False))
    (4,8):(1,4) (3,8):(1@0,1@1)
    """
    if is_exact:
        return Layout(layout.shape)
    return make_identity_layout(layout.shape if isinstance(tiler, tuple) else size(layout))


def numbered_tiles(cells: Layout, tiler: Any, shape: Any) -> dict[int, int]:
    """index of a layout of `shape` → the number of its tile.

    >>> numbered_tiles(Layout((2, 3)), (2, 1), (2, 3))
    {0: 0, 1: 0, 2: 1, 3: 1, 4: 2, 5: 2}
    """
    zipped = algebra.zipped_divide(cells, tiler)
    elements, each = by_element(zipped, shape), size(zipped, 0)
    return {element: i // each for i in range(size(zipped)) for element in elements(i)}
