"""The writer for pages and notebooks: HTML with inline styles alone, since sanitisers drop others.

Every cell holds its number, so that nothing is lost where colours are.
"""

from __future__ import annotations

from functools import lru_cache
from html import escape

from .cells import TINTS, Panel, Table

__all__ = ["written"]

THIN, THICK = "1px solid #9994", ("", "2px solid #444", "3px solid #000")
HEADER = "padding:1px 4px;text-align:right;border:none;font-weight:normal;opacity:.6"
FONT = "font:12px/1.3 ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace"


def written(table: Table) -> str:
    """`table` as one ``div``."""
    panels = "".join(map(_panel, table.panels))
    return (
        f'<div style="{FONT};max-width:100%;overflow-x:auto">'
        f'<div style="margin:0 0 6px">{escape(table.legend)}{_hues(table)}</div>'
        f'<div style="display:flex;flex-wrap:wrap;gap:12px 28px">{panels}</div></div>'
    )


def _hues(table: Table) -> str:
    if not table.hues:
        return ""
    tints = "".join(
        f'<span style="background:{_hex(hue)};color:#000;padding:0 .5em">{hue}</span>'
        for hue in range(len(TINTS))
    )
    return f"; {escape(table.hues)} {tints}"


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
        f'<td style="{_style(hue, min(end, 2), below)}">{escape(words)}</td>'
        for (words, hue), end in zip(panel.cells[row], panel.column_ends, strict=True)
    )
    return f'<tr style="background:none"><th style="{HEADER}">{row}</th>{cells}</tr>'


@lru_cache(maxsize=256)
def _style(hue: int | None, right: int, below: int) -> str:
    """The style of a cell, with thick lines where nested modes end."""
    thick = f";border-right:{THICK[right]}" if right else ""
    thick += f";border-bottom:{THICK[below]}" if below else ""
    return (
        f"background:{_hex(hue)};color:#000;padding:1px 4px;text-align:right;border:{THIN}{thick}"
    )


def _hex(hue: int | None) -> str:
    return "#fff" if hue is None else "#{:02x}{:02x}{:02x}".format(*TINTS[hue])
