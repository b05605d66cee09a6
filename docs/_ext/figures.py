"""Figures: a value that can draw itself, in a frame that scrolls."""

from __future__ import annotations

from typing import Any

from docutils import nodes

from layouts.draw import Table


def can_draw(value: Any) -> bool:
    """Whether a value draws itself: a table, a timeline."""
    return hasattr(value, "svg")


def drawing(value: Any) -> str:
    """The HTML of a value that draws itself; in a table, cells that belong together light up."""
    return value.html(page=True) if isinstance(value, Table) else value.svg()


def figure(drawn: str, below: str = "") -> nodes.raw:
    """A figure, and the HTML below it."""
    frame = f'<figure class="layout"><div class="drawn">{drawn}</div>{below}</figure>'
    return nodes.raw("", frame, format="html")
