"""The writer for SVG: one path for each colour of cells and each thickness of lines."""

from __future__ import annotations

from html import escape

from .cells import Panel, Table, hex_colour

__all__ = ["render"]

#: In pixels: the height of a row, the width of a letter in a cell and in a title, the margin, the
#: gap between panels, the width of a swatch of the legend.
ROW, LETTER, TITLE_LETTER, MARGIN, GAP, SWATCH = 18, 6.7, 7.3, 12, 24, 20

FONT = "ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace"

#: Number of nested modes that end at a line → its colour and width.
LINES = (("#0003", 1), ("#333", 2), ("#000", 3))


def render(table: Table) -> str:
    """`table` as an SVG document, its panels side by side."""
    placed, x = [], MARGIN
    top = MARGIN + 30
    notes = max(len(panel.notes) for panel in table.panels)
    for panel in table.panels:
        drawn = _Panel(panel, x, top, notes)
        placed.append(drawn)
        x += drawn.width + GAP
    legend, legend_right = _legend(table)
    width = max([x - GAP + MARGIN, legend_right + MARGIN])
    height = top + max(panel.height for panel in placed) + MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="{FONT}" font-size="12" role="img">'
        f"<title>{escape(table.panels[0].title)}</title>"
        f'<rect width="100%" height="100%" fill="#fff"/>'
        f"{legend}{''.join(panel.render() for panel in placed)}</svg>\n"
    )


def _legend(table: Table) -> tuple[str, int]:
    """The legend with a swatch for each colour, and its right edge."""
    words = f"{table.legend}; {table.colours}" if table.colours else table.legend
    drawn = f'<text x="{MARGIN}" y="{MARGIN + 12}">{escape(words)}</text>'
    x = MARGIN + round(len(words) * TITLE_LETTER) + 8
    for colour in table.swatches:
        drawn += (
            f'<rect x="{x}" y="{MARGIN}" width="{SWATCH}" height="16" fill="{hex_colour(colour)}"/>'
            f'<text x="{x + SWATCH // 2}" y="{MARGIN + 12}" text-anchor="middle">{colour}</text>'
        )
        x += SWATCH
    return drawn, x


class _Panel:
    """A panel at (x, y), whose cells begin at (left, top)."""

    def __init__(self, panel: Panel, x: int, y: int, notes: int) -> None:
        self.panel, self.x, self.y = panel, x, y
        rows, columns = len(panel.cells), len(panel.column_ends)
        digits = max([len(words) for row in panel.cells for words, _ in row] + [2])
        self.cell = round(digits * LETTER) + 8
        self.left = x + round(len(str(rows - 1)) * LETTER) + 8
        self.top = y + 16 * (1 + notes) + 20
        self.right, self.bottom = self.left + columns * self.cell, self.top + rows * ROW
        heads = [round(len(head) * TITLE_LETTER) for head in (panel.title, *panel.notes)]
        self.width = max([self.right - x, *heads])
        self.height = self.bottom - y

    def render(self) -> str:
        return "".join([self._heads(), self._fills(), self._lines(), self._words()])

    def _heads(self) -> str:
        panel = self.panel
        heads = [
            f'<text x="{self.x}" y="{self.y + 12 + 16 * line}" '
            f'font-weight="{"normal" if line else "bold"}">{escape(head)}</text>'
            for line, head in enumerate((panel.title, *panel.notes))
        ]
        columns = [
            f'<text x="{self._center(column)}" y="{self.top - 5}">{column}</text>'
            for column in range(len(panel.column_ends))
        ]
        rows = [
            f'<text x="{self.left - 5}" y="{self._base(row)}">{row}</text>'
            for row in range(len(panel.cells))
        ]
        return (
            f'{"".join(heads)}<g fill="#777" font-size="10" text-anchor="middle">'
            f'{"".join(columns)}</g><g fill="#777" font-size="10" text-anchor="end">'
            f"{''.join(rows)}</g>"
        )

    def _center(self, column: int) -> int:
        return self.left + column * self.cell + self.cell // 2

    def _base(self, row: int) -> int:
        return self.top + row * ROW + 13

    def _fills(self) -> str:
        boxes: dict[int, list[str]] = {}
        for row, cells in enumerate(self.panel.cells):
            y = self.top + row * ROW
            for column, (_, colour) in enumerate(cells):
                if colour is not None:
                    x = self.left + column * self.cell
                    box = f"M{x} {y}h{self.cell}v{ROW}h-{self.cell}z"
                    boxes.setdefault(colour, []).append(box)
        return "".join(
            f'<path fill="{hex_colour(colour)}" d="{"".join(boxes[colour])}"/>'
            for colour in sorted(boxes)
        )

    def _lines(self) -> str:
        """Thin lines between all cells, thick ones where nested modes end, and a border."""
        columns, rows = self.panel.column_ends, self.panel.row_ends
        across, down = f"h{self.right - self.left}", f"v{self.bottom - self.top}"
        paths: list[list[str]] = [[], [], []]
        for column, end in enumerate((*columns[:-1], 0)):
            at = self.left + (column + 1) * self.cell
            paths[min(end, 2)].append(f"M{at} {self.top}{down}")
        for row, end in enumerate((*rows[:-1], 0)):
            at = self.top + (row + 1) * ROW
            paths[min(end, 2)].append(f"M{self.left} {at}{across}")
        paths[0].append(f"M{self.left} {self.top}{across}M{self.left} {self.top}{down}")
        return "".join(
            f'<path fill="none" stroke="{colour}" stroke-width="{width}" d="{"".join(path)}"/>'
            for path, (colour, width) in zip(paths, LINES, strict=True)
            if path
        )

    def _words(self) -> str:
        words = [
            f'<text x="{self._center(column)}" y="{self._base(row)}" data-o="{escape(text)}">'
            f"{escape(text)}</text>"
            for row, cells in enumerate(self.panel.cells)
            for column, (text, _) in enumerate(cells)
        ]
        return f'<g font-size="11" text-anchor="middle">{"".join(words)}</g>'
