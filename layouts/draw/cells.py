"""The model of a picture: panels of cells, each cell with its text and its colour.

A writer turns a `Table` into text, HTML, SVG or LaTeX and decides nothing more.  Lines are drawn
where a nested mode ends, thicker the further out the mode is.  The writers need the standard
library alone.
"""

from __future__ import annotations

from typing import TypeAlias

from ..values.layout import Layout
from ..values.swizzle import ComposedLayout
from ..values.unit import DEFAULT_UNIT
from ..values.value import Value

__all__ = ["COLOURS", "Cell", "Panel", "Table", "hex_colour"]

#: The eight colours of cells, as RGB: Okabe and Ito's palette, which colour-blind readers can tell
#: apart, mixed half and half with white, so black text is readable on it.
COLOURS = (
    (242, 207, 128),  # orange
    (170, 217, 244),  # sky blue
    (128, 206, 185),  # bluish green
    (247, 241, 160),  # yellow
    (128, 184, 216),  # blue
    (234, 174, 128),  # vermillion
    (229, 188, 211),  # reddish purple
    (204, 204, 204),  # grey
)

#: The text of a cell, and the index of its colour; None leaves it white.
Cell: TypeAlias = "tuple[str, int | None]"


def hex_colour(colour: int | None) -> str:
    """The colour of a cell for HTML and SVG.

    >>> hex_colour(0), hex_colour(None)
    ('#f2cf80', '#fff')
    """
    return "#fff" if colour is None else "#{:02x}{:02x}{:02x}".format(*COLOURS[colour])


class Panel(Value):
    """A rectangle of cells: `cells[row][column]`.

    `row_ends[r]` nested modes end below row r, and `column_ends[c]` right of column c.
    """

    __slots__ = __match_args__ = ("title", "notes", "cells", "row_ends", "column_ends")
    title: str
    notes: tuple[str, ...]
    cells: tuple[tuple[Cell, ...], ...]
    row_ends: tuple[int, ...]
    column_ends: tuple[int, ...]

    def __init__(
        self,
        title: str,
        notes: tuple[str, ...],
        cells: tuple[tuple[Cell, ...], ...],
        row_ends: tuple[int, ...],
        column_ends: tuple[int, ...],
    ) -> None:
        self._set(title, notes, cells, row_ends, column_ends)


class Table(Value):
    """A picture: panels side by side, under a legend.

    `legend`   what the numbers count
    `colours`  what the eight colours stand for; empty if there are none
    `layouts`  (name, layout) of each layout whose offsets are drawn
    `unit`     bits of one of these offsets

    A table prints as text, coloured in a terminal, and draws itself in a notebook.
    """

    __slots__ = __match_args__ = ("panels", "legend", "colours", "layouts", "unit")
    panels: tuple[Panel, ...]
    legend: str
    colours: str
    layouts: tuple[tuple[str, Layout | ComposedLayout], ...]
    unit: int

    def __init__(
        self,
        panels: tuple[Panel, ...],
        legend: str,
        colours: str,
        layouts: tuple[tuple[str, Layout | ComposedLayout], ...] = (),
        unit: int = DEFAULT_UNIT,
    ) -> None:
        self._set(panels, legend, colours, layouts, unit)

    def text(self, colour: bool | None = None, width: int | None = None) -> str:
        """The picture as text, split into blocks of columns that fit `width` characters.

        `colour` says whether to colour the cells; by default only if standard output is a terminal
        and NO_COLOR is unset.  The default `width` is that of the terminal; elsewhere columns are
        not split.
        """
        from .text import render

        return render(self, colour, width)

    def html(self) -> str:
        """The picture as an HTML fragment that needs no style sheet."""
        from .html import render

        return render(self)

    def svg(self) -> str:
        """The picture as an SVG document; ``data-o`` of a number is the offset that it shows."""
        from .svg import render

        return render(self)

    def latex(self) -> str:
        """The picture as a LaTeX document that needs TikZ alone."""
        from .latex import render

        return render(self)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return self.html()
