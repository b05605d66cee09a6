"""The model of a picture: panels of cells, each cell with its text and its colour.

A writer turns a `Table` into text, HTML, SVG or LaTeX and decides nothing more.  Lines are drawn
where a nested mode ends, thicker the further out the mode is.  The writers need the standard
library alone.
"""

from __future__ import annotations

from typing import TypeAlias

from ..values.layout import Layout
from ..values.swizzle import ComposedLayout
from ..values.tuples import IntTuple, crd2idx, size
from ..values.unit import DEFAULT_UNIT
from ..values.value import Report, Value

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

#: For each cell of a panel, row by row, the elements that it stands for.
CellElements: TypeAlias = "tuple[tuple[tuple[int, ...], ...], ...]"


def hex_colour(colour: int | None) -> str:
    """The colour of a cell for HTML and SVG.

    >>> hex_colour(0), hex_colour(None)
    ('#f2cf80', '#fff')
    """
    return "#fff" if colour is None else "#{:02x}{:02x}{:02x}".format(*COLOURS[colour])


class Panel(Value):
    """A rectangle of cells: `cells[row][column]`.

    `row_ends[r]` nested modes end below row r, and `column_ends[c]` right of column c.

    `shape`     of what is drawn: the modes of the rows, of the columns, and those that `at` fixes;
                () if a cell has no coordinate
    `at`        the coordinate in the modes beyond the second
    `elements`  what each cell stands for: cells of all panels that share an element light up
                together.  By default it is the index of the cell.
    `counts`    what the number of a cell is, with {} for the number
    """

    __slots__ = __match_args__ = (
        "title",
        "notes",
        "cells",
        "row_ends",
        "column_ends",
        "shape",
        "at",
        "elements",
        "counts",
    )
    title: str
    notes: tuple[str, ...]
    cells: tuple[tuple[Cell, ...], ...]
    row_ends: tuple[int, ...]
    column_ends: tuple[int, ...]
    shape: IntTuple
    at: tuple[int, ...]
    elements: CellElements
    counts: str

    def __init__(
        self,
        title: str,
        notes: tuple[str, ...],
        cells: tuple[tuple[Cell, ...], ...],
        row_ends: tuple[int, ...],
        column_ends: tuple[int, ...],
        shape: IntTuple = (),
        at: tuple[int, ...] = (),
        elements: CellElements = (),
        counts: str = "offset {}",
    ) -> None:
        self._set(title, notes, cells, row_ends, column_ends, shape, at, elements, counts)

    def index(self, row: int, column: int) -> int:
        """The index of a cell in `shape`.

        >>> Panel("", (), (), (), (), (2, 4, 3), at=(2,)).index(1, 3)
        23
        """
        if not isinstance(self.shape, tuple) or len(self.shape) < 2:
            return column
        rows, columns, *_ = map(size, self.shape)
        beyond = crd2idx(self.at, self.shape[2:]) if self.at else 0
        return int(row + rows * (column + columns * beyond))

    def with_elements(
        self, cells: tuple[tuple[Cell, ...], ...], elements: CellElements, counts: str
    ) -> Panel:
        """The panel with other cells, that stand for `elements`."""
        ends = self.row_ends, self.column_ends
        return Panel(self.title, self.notes, cells, *ends, self.shape, self.at, elements, counts)


class Table(Report):
    """A picture: panels side by side, under a legend.

    `legend`   what the numbers count
    `colours`  what the colours stand for, with a swatch of each if it ends with a colon; empty if
               there are none
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

    @property
    def swatches(self) -> range:
        """The colours that the legend shows, up to the last one in use."""
        if not self.colours.endswith(":"):
            return range(0)
        used = (c for panel in self.panels for row in panel.cells for _, c in row if c is not None)
        return range(1 + max(used, default=-1))

    def text(self, colour: bool | None = None, width: int | None = None) -> str:
        """The picture as text, split into blocks of columns that fit `width` characters.

        `colour` says whether to colour the cells; by default only if standard output is a terminal
        and NO_COLOR is unset.  The default `width` is that of the terminal; elsewhere columns are
        not split.
        """
        from .text import render

        return render(self, colour, width)

    def html(self, page: bool = False) -> str:
        """The picture as an HTML fragment that needs no style sheet.

        With `page` it has classes in place of styles, for a page that has the `style_sheet` of
        `layouts.draw.html`, and tells a script which cells belong together.
        """
        from .html import render

        return render(self, page)

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

    def _repr_html_(self) -> str:
        return self.html()
