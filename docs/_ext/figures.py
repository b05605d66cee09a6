"""Figures: a value that can draw itself, in a frame that scrolls."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from matplotlib.figure import Figure

from plots import embedded

from layouts.draw import Table
from layouts.draw.fragments import fragments
from layouts.hardware.fragment import Drawn


def can_draw(value: Any) -> bool:
    """Whether a value draws itself: a table, an instruction or its tiling, a timeline, a plot."""
    return isinstance(value, (Drawn, Figure)) or hasattr(value, "svg")


def drawing(value: Any) -> str:
    """The HTML of a value that draws itself; in a table, cells that belong together light up."""
    if isinstance(value, Figure):
        return embedded(value)
    table = fragments(value) if isinstance(value, Drawn) else value
    return table.html(page=True) if isinstance(table, Table) else table.svg()


def figure(drawn: str, below: str = "") -> nodes.raw:
    """A figure, and the HTML below it."""
    frame = f'<figure class="layout"><div class="drawn">{drawn}</div>{below}</figure>'
    return nodes.raw("", frame, format="html")
