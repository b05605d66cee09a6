"""The writer for pages and notebooks: HTML with inline styles, since sanitisers drop style sheets.

Every cell holds its number, so nothing is lost without colours.
"""

from __future__ import annotations

from functools import lru_cache
from html import escape

from .cells import COLOURS, Panel, Table, hex_colour

__all__ = ["render"]

THIN, THICK = "1px solid #9994", ("", "2px solid #444", "3px solid #000")
HEADER = "padding:1px 4px;text-align:right;border:none;font-weight:normal;opacity:.6"
FONT = "font:12px/1.3 ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace"


def render(table: Table) -> str:
    """`table` as one ``div``."""
    panels = "".join(map(_panel, table.panels))
    return (
        f'<div style="{FONT};max-width:100%;overflow-x:auto">'
        f'<div style="margin:0 0 6px">{escape(table.legend)}{_colours(table)}</div>'
        f'<div style="display:flex;flex-wrap:wrap;gap:12px 28px">{panels}</div></div>'
    )


def _colours(table: Table) -> str:
    if not table.colours:
        return ""
    swatches = "".join(
        f'<span style="background:{hex_colour(colour)};color:#000;padding:0 .5em">{colour}</span>'
        for colour in range(len(COLOURS))
    )
    return f"; {escape(table.colours)} {swatches}"


def _panel(panel: Panel) -> str:
    notes = "".join(f"<div>{escape(note)}</div>" for note in panel.notes)
    columns = range(len(panel.column_ends))
    digits = max(len(words) for row in panel.cells for words, _ in row)
    head = f"{HEADER};min-width:{digits}ch"
    header = "".join(f'<th style="{head}">{column}</th>' for column in columns)
    rows = "".join(_row(panel, row) for row in range(len(panel.cells)))
    return (
        f'<div><div style="font-weight:bold">{escape(panel.title)}</div>{notes}'
        f'<table style="border-collapse:collapse;border-spacing:0;margin:4px 0;{FONT}">'
        f'<tr style="background:none"><th style="{HEADER}"></th>{header}</tr>{rows}</table></div>'
    )


def _row(panel: Panel, row: int) -> str:
    below = min(panel.row_ends[row], 2)
    cells = "".join(
        f'<td style="{_style(colour, min(end, 2), below)}">{escape(words)}</td>'
        for (words, colour), end in zip(panel.cells[row], panel.column_ends, strict=True)
    )
    return f'<tr style="background:none"><th style="{HEADER}">{row}</th>{cells}</tr>'


@lru_cache(maxsize=256)
def _style(colour: int | None, right: int, below: int) -> str:
    """The style of a cell, with thick lines where nested modes end."""
    thick = f";border-right:{THICK[right]}" if right else ""
    thick += f";border-bottom:{THICK[below]}" if below else ""
    background = f"background:{hex_colour(colour)};color:#000"
    return f"{background};padding:1px 4px;text-align:right;border:{THIN}{thick}"
