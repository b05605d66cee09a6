"""The picture of an operation: the layouts of its explanation side by side, their cells tied."""

from __future__ import annotations

from html import escape
from typing import Any

from ..explanation.steps import Explanation
from ..explanation.views import View, Views
from ..values.tuples import text
from ..values.unit import unit_of
from .cells import COLOURS, Panel, Table
from .panels import LIMIT, Limits, Scale, panels_of
from .tables import NOTEBOOK_LIMIT, scale_of

__all__ = ["notebook", "operation"]


def operation(
    views: Views | None,
    unit: int | None = None,
    show: str = "offset",
    banks: int | None = None,
    limit: int | None = LIMIT,
) -> Table | None:
    """The layouts of an operation as one table; None if it has no views.

    Cells of all panels that belong together have the same elements.  Colours are those of the
    operation, such as one for each tile, unless `show` or `banks` asks for banks.  The arguments
    are those of `table`.

    >>> from layouts import Layout, explain, logical_divide
    >>> print(operation(explain(logical_divide, Layout(6), 2).views()))
    offsets
    <BLANKLINE>
    A = 6:1                   R = (2,3):(1,2)
    <BLANKLINE>
         0  1  2  3  4  5          0  1  2
       ┌──────────────────       ┌─────────
     0 │ 0  1  2  3  4  5      0 │ 0  2  4
                               1 │ 1  3  5
    """
    if views is None:
        return None
    banked = show != "offset" or banks is not None or views.group is None
    group = None if banked else views.group
    limits = Limits(limit, len(views.views))
    panels: list[Panel] = []
    for view in views.views:
        if banked:
            scale = scale_of(view.layout, unit, show, banks, view.offset)
        else:
            scale = Scale(unit_of(view.layout, unit), show, banks, False, view.offset)
        panels += [_tied(panel, view, group) for panel in _panels(view, scale, limits)]
    colours = scale.colours() if banked else _colours(views, group, panels)
    layouts = tuple((view.name, view.layout) for view in views.views)
    return Table(tuple(panels), scale.legend(), colours, layouts, scale.unit)


def _panels(view: View, scale: Scale, limits: Limits) -> tuple[Panel, ...]:
    start = f"{text(view.offset)} + " if view.offset else ""
    return panels_of(view.layout, f"{view.name} = {start}{view.layout}", (), scale, limits)


def _tied(panel: Panel, view: View, group: Any) -> Panel:
    """`panel` with the elements of its cells; each cell has the colour of its first element."""
    first = panel.index(0, 0)
    step = panel.index(0, 1) - first  # from column to column; from row to row it is 1
    elements = tuple(
        tuple(view.elements(first + row + step * column) for column in range(len(cells)))
        for row, cells in enumerate(panel.cells)
    )
    cells = panel.cells
    if group is not None:
        cells = tuple(
            tuple(
                (words, group(own[0]) % len(COLOURS) if own else None)
                for (words, _), own in zip(*rows, strict=True)
            )
            for rows in zip(cells, elements, strict=True)
        )
    return panel.with_elements(cells, elements, view.counts)


def _colours(views: Views, group: Any, panels: list[Panel]) -> str:
    """What the colours stand for; more than eight groups share them."""
    if views.coloured:
        return f"coloured: {views.coloured}"
    firsts = {own[0] for panel in panels for row in panel.elements for own in row if own}
    more = any(group(element) >= len(COLOURS) for element in firsts)
    return f"colour = {views.colours}{f' mod {len(COLOURS)}' * more}:"


def notebook(explanation: Explanation) -> str:
    """The HTML that a notebook shows for an explanation: its picture above its steps."""
    picture = operation(explanation.views(), limit=NOTEBOOK_LIMIT)
    drawn = "" if picture is None else picture.html()
    return f'{drawn}<pre style="margin:6px 0">{escape(str(explanation))}</pre>'
