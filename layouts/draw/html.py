"""The writer for pages and notebooks, in two forms that look the same.

A notebook gets inline styles, since its sanitiser drops style sheets.  A page gets classes, the
`style_sheet` that goes with them, and data for the script ``docs/_static/layouts.js``: the cells
that share an element light up together.  Every cell holds its number, so nothing is lost without
colours.
"""

from __future__ import annotations

from functools import lru_cache
from html import escape
from json import dumps

from .cells import COLOURS, Panel, Table, hex_colour

__all__ = ["render", "style_sheet"]

FONT = "font:12px/1.3 ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace"

#: Part of a picture → its style.
STYLES = {
    "layouts": f"{FONT};max-width:100%",
    "legend": "margin:0 0 6px",
    "panels": "display:flex;flex-wrap:wrap;gap:12px 28px",
    "panel": "max-width:100%",
    "scroll": "overflow-x:auto",
    "title": "font-weight:bold",
    "note": "",
    "cells": f"border-collapse:collapse;border-spacing:0;margin:4px 0;white-space:nowrap;{FONT}",
    "row": "background:none",
    "head": "padding:1px 4px;text-align:right;border:none;font-weight:normal;opacity:.6",
    "swatch": "padding:0 .5em",
    "cell": "padding:1px 4px;text-align:right",
}

#: Number of nested modes that end at a line → the line.  That of a notebook is in the colours of
#: cells, which are those of white paper; on a page it has the colour of the text.
THIN, THICK = "1px solid #9994", ("", "2px solid #444", "3px solid #000")
PAGE_THICK = ("", "2px solid color-mix(in srgb,currentColor 75%,transparent)", "3px solid")

#: What only a page has: scrolling within a panel, and the cells that are pointed at.  The line that
#: reads them out has its place from the beginning, so that no cell moves.
PAGE_RULES = """\
.layouts .scroll{overflow:auto;max-height:min(80vh,48rem)}
.layouts .cells{display:table;cursor:default}
.layouts .cells:focus-visible{outline:2px solid currentColor;outline-offset:2px}
.layouts .cell{min-width:2ch;white-space:nowrap}
.layouts .on{outline:2px solid #d0006f;outline-offset:-2px;font-weight:bold}
.layouts .at{outline-width:3px;outline-offset:-3px}
.layouts .panel{min-width:min(38ch,100%)}
.layouts .read{min-height:1.3em;width:0;min-width:100%;overflow-wrap:anywhere}
"""


def render(table: Table, page: bool = False) -> str:
    """`table` as one ``div``, with inline styles, or for a `page` with classes."""
    return _Page(table).render() if page else _Inline(table).render()


def style_sheet() -> str:
    """The rules for the classes of a page, each of which begins with ``.layouts``."""
    rules = [(f".{name}", style) for name, style in STYLES.items() if style]
    rules += [(f".c{c}", f"background:{hex_colour(c)};color:#000") for c in range(len(COLOURS))]
    rules += [(".cell", f"border:{THIN}")]
    for end in (1, 2):
        rules += [(f".r{end}", f"border-right:{PAGE_THICK[end]}")]
        rules += [(f".b{end}", f"border-bottom:{PAGE_THICK[end]}")]
    lines = (
        f"{'' if name == '.layouts' else '.layouts '}{name}{{{style}}}\n" for name, style in rules
    )
    return "".join(lines) + PAGE_RULES


class _Inline:
    """The form of notebooks; the methods after `row` are what pages have otherwise."""

    def __init__(self, table: Table) -> None:
        self.table = table

    def render(self) -> str:
        legend = f"<div{self.look('legend')}>{escape(self.table.legend)}{self.colours()}</div>"
        panels = "".join(map(self.panel, self.table.panels))
        return f"<div{self.look('layouts')}>{legend}<div{self.look('panels')}>{panels}</div></div>"

    def colours(self) -> str:
        swatches = "".join(
            f"<span{self.swatch(colour)}>{colour}</span>" for colour in self.table.swatches
        )
        return f"; {escape(self.table.colours)} {swatches}" if self.table.colours else ""

    def panel(self, panel: Panel) -> str:
        title = f"<div{self.look('title')}>{escape(panel.title)}</div>"
        notes = "".join(f"<div{self.look('note')}>{escape(note)}</div>" for note in panel.notes)
        cells = f"<div{self.look('scroll')}>{self.cells(panel)}</div>"
        return f"<div{self.of_panel(panel)}>{title}{notes}{cells}{self.reading}</div>"

    def cells(self, panel: Panel) -> str:
        digits = max(len(words) for row in panel.cells for words, _ in row)
        columns = "".join(
            f"<th{self.head(digits)}>{column}</th>" for column in range(len(panel.column_ends))
        )
        header = f"<tr{self.look('row')}><th{self.look('head')}></th>{columns}</tr>"
        rows = "".join(self.row(panel, row) for row in range(len(panel.cells)))
        return f"<table{self.of_cells(panel)}>{header}{rows}</table>"

    def row(self, panel: Panel, row: int) -> str:
        below = min(panel.row_ends[row], 2)
        cells = "".join(
            f"<td{self.cell(panel, row, column, min(end, 2), below)}>"
            f"{escape(panel.cells[row][column][0])}</td>"
            for column, end in enumerate(panel.column_ends)
        )
        return f"<tr{self.look('row')}><th{self.look('head')}>{row}</th>{cells}</tr>"

    reading = ""  # where a page writes what is pointed at

    def look(self, name: str) -> str:
        """The attribute that gives a part its style."""
        return f' style="{STYLES[name]}"' if STYLES[name] else ""

    def swatch(self, colour: int) -> str:
        return f' style="background:{hex_colour(colour)};color:#000;{STYLES["swatch"]}"'

    def head(self, digits: int) -> str:
        return f' style="{STYLES["head"]};min-width:{digits}ch"'

    def of_panel(self, panel: Panel) -> str:
        return self.look("panel")

    def of_cells(self, panel: Panel) -> str:
        return self.look("cells")

    def cell(self, panel: Panel, row: int, column: int, right: int, below: int) -> str:
        return _inline_cell(panel.cells[row][column][1], right, below)


@lru_cache(maxsize=256)
def _inline_cell(colour: int | None, right: int, below: int) -> str:
    """The style of a cell, with thick lines where nested modes end."""
    thick = f";border-right:{THICK[right]}" if right else ""
    thick += f";border-bottom:{THICK[below]}" if below else ""
    background = f"background:{hex_colour(colour)};color:#000"
    return f' style="{background};{STYLES["cell"]};border:{THIN}{thick}"'


class _Page(_Inline):
    """The form of pages."""

    reading = '<div class="read" aria-live="polite"></div>'

    def look(self, name: str) -> str:
        return f' class="{name}"'

    def swatch(self, colour: int) -> str:
        return f' class="swatch c{colour}"'

    def head(self, digits: int) -> str:
        return f' class="head" style="min-width:{digits}ch"'

    def of_panel(self, panel: Panel) -> str:
        shape, at = (escape(dumps(x, separators=(",", ":"))) for x in (panel.shape, panel.at))
        counts = escape(panel.counts)
        return f' class="panel" data-shape="{shape}" data-at="{at}" data-counts="{counts}"'

    def of_cells(self, panel: Panel) -> str:
        return f' class="cells" tabindex="0" aria-label="{escape(panel.title)}"'

    def cell(self, panel: Panel, row: int, column: int, right: int, below: int) -> str:
        colour = panel.cells[row][column][1]
        classes = f"{'cell' if colour is None else f'cell c{colour}'}{_ends(right, below)}"
        if not panel.elements:
            return f' class="{classes}"'
        elements = " ".join(map(str, panel.elements[row][column]))
        return f' class="{classes}" data-e="{elements}"'


def _ends(right: int, below: int) -> str:
    return f" r{right}" * (right > 0) + f" b{below}" * (below > 0)
