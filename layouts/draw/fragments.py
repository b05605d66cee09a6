"""Pictures of thread-value layouts: the thread and the value that hold each element of a tile."""

from __future__ import annotations

from typing import Any

from ..errors import LayoutError, Undecided
from ..hardware.fragment import Drawn
from ..values.layout import Layout
from ..values.steps import too_many
from ..values.swizzle import ComposedLayout
from ..values.tuples import rank, size
from ..values.tuples import text as written
from .cells import COLOURS, Cell, Panel, Table
from .panels import LIMIT, Limits, check_drawable, check_integer_extents, panel_of
from .tables import NOTEBOOK_LIMIT

__all__ = ["fragments", "notebook", "table_tv", "text"]

#: Rows, and columns, of a matrix that an instruction prints.
PRINTED_LIMIT = 32

#: What the numbers and the colours of these pictures are.
LEGEND, COLOUR = "T thread, V value", f"colour = thread mod {len(COLOURS)}:"

#: element → the pairs (thread, value) that hold it.
Holders = dict[int, list[tuple[int, int]]]


def table_tv(layout: Layout | ComposedLayout, shape: Any, limit: int | None = LIMIT) -> Table:
    """The thread and value that hold each element of an M x N tile: ``T5 V2``.

    `layout` is a thread-value layout: it takes (thread, value) to an element.  `shape` is (M, N),
    whose modes may be nested, and the elements are ``m + M * n``; or it is a Layout, (m, n) →
    element.  The colour of a cell is its thread, mod 8.

    Raises `LayoutError` unless `layout` and `shape` have two modes and `layout` stays in the tile.

    >>> print(table_tv(Layout(((2, 2), 2), ((1, 4), 2)), (4, 2)))
    ((2,2),2):((1,4),2) over (4,2)
    T thread, V value
    <BLANKLINE>
             0      1
       ┌──────────────
     0 │ T0 V0  T2 V0
     1 │ T1 V0  T3 V0
     2 │ T0 V1  T2 V1
     3 │ T1 V1  T3 V1
    >>> print(table_tv(Layout((2, 2), (2, 1)), Layout((2, 2), (2, 1))).panels[0].cells[0])
    (('T0 V0', 0), ('T0 V1', 0))
    """
    check_drawable(layout)
    if rank(layout) != 2:
        raise LayoutError(
            f"table_tv of {layout}: it must have two modes, (threads, values), and has "
            f"{rank(layout)}"
        )
    tile = Layout(shape) if not isinstance(shape, Layout) else shape
    if rank(tile) != 2:
        raise LayoutError(f"table_tv: the tile {written(tile.shape)} must have two modes, (M, N)")
    title = f"{layout} over {written(tile.shape)}"
    return Table((_panel((title,), layout, tile, Limits(limit)),), LEGEND, COLOUR)


def fragments(drawn: Drawn, limit: int | None = LIMIT) -> Table:
    """The fragments of an instruction side by side.  `limit` is that of `table`, for each.

    >>> from layouts import volta_mma
    >>> print(fragments(volta_mma("row", "col", "f16")).panels[0].title)
    A, M x K: (8,4):(1,8)
    """
    names = [f"{own.name}: {own.layout}" for own in drawn.fragments]
    if len(names) == 1:
        heads, legend = [(drawn.heading, *names)], LEGEND
    else:
        heads, legend = [(name,) for name in names], f"{drawn.heading}; {LEGEND}"
    panels = (
        _panel(head, own.layout, own.tile, Limits(limit))
        for head, own in zip(heads, drawn.fragments, strict=True)
    )
    return Table(tuple(panels), legend, COLOUR)


def _panel(
    head: tuple[str, ...], layout: Layout | ComposedLayout, tile: Layout, limits: Limits
) -> Panel:
    """The panel of a tile; cells belong together if one thread holds them."""
    check_integer_extents(tile)
    holders = _holders(layout, tile)

    def held(row: int, column: int) -> list[tuple[int, int]]:
        return holders[tile(row, column)]

    def cell(row: int, column: int) -> Cell:
        holding = held(row, column)
        words = " ".join(f"T{thread} V{value}" for thread, value in holding[:1])
        more = f" +{len(holding) - 1}" if len(holding) > 1 else ""
        return words + more, holding[0][0] % len(COLOURS) if holding else None

    panel = panel_of(head[0], head[1:], tile, cell, limits, tile.shape)
    threads = tuple(
        tuple(tuple(thread for thread, _ in held(row, column)) for column in range(len(cells)))
        for row, cells in enumerate(panel.cells)
    )
    return panel.with_elements(panel.cells, threads, "{}")


#: The steps, in the sense of `budget`, that it takes to make a cell.
STEPS_OF_A_CELL = 4


def _holders(layout: Layout | ComposedLayout, tile: Layout) -> Holders:
    """The pairs (thread, value) that hold each element of a tile."""
    check_integer_extents(layout)
    if too_many(STEPS_OF_A_CELL * (size(tile) + size(layout))):
        raise Undecided(
            f"table_tv of {layout} over {size(tile)} elements: they are too many to place one by "
            f"one; layouts.budget(steps) sets how many may be"
        )
    holders: Holders = {tile(i): [] for i in range(size(tile))}
    for thread in range(size(layout, 0)):
        for value in range(size(layout, 1)):
            element = layout(thread, value)
            if element not in holders:
                raise LayoutError(
                    f"table_tv of {layout}: thread {thread}, value {value} holds element "
                    f"{element}, and the tile has {size(tile)}; give the shape of the whole tile"
                )
            holders[element].append((thread, value))
    return holders


def text(drawn: Drawn) -> str:
    """What an instruction prints: its heading and its fragments, without their colours if standard
    output is no terminal."""
    return str(fragments(drawn, PRINTED_LIMIT))


def notebook(drawn: Drawn) -> str:
    """The HTML that a notebook shows for an instruction."""
    return fragments(drawn, NOTEBOOK_LIMIT).html()
