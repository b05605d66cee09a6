"""The writer for terminals: tables of text, tinted where the terminal can."""

from __future__ import annotations

import os
import shutil
import sys

from .cells import TINTS, Cell, Panel, Table

__all__ = ["written"]

#: Between two panels that stand side by side, and how far they go where no width is known.
GAP, USUAL_WIDTH = 4, 120

#: By how many nested modes end there: a line between columns, between rows, and their crossings.
#: The first of a crossing is where the line between rows meets the margin.
BETWEEN_COLUMNS = ("", "│", "┃")
BETWEEN_ROWS = ("", "─", "━")
TOP = ("┌", "┬", "┰")
CROSSINGS = ((), ("├", "┼", "╂"), ("┝", "┿", "╋"))


def written(table: Table, colour: bool | None, width: int | None) -> str:
    """`table` as lines of text, coloured or not, no wider than `width` where columns allow it."""
    if colour is None:
        colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    if width is None and sys.stdout.isatty():
        width = shutil.get_terminal_size().columns
    blocks = [_Block(panel, width, colour) for panel in table.panels]
    shown, line = [], blocks[:1]
    for block in blocks[1:]:
        if sum(b.width + GAP for b in line) + block.width > (width or USUAL_WIDTH):
            shown.append(_side_by_side(line))
            line = []
        line.append(block)
    shown.append(_side_by_side(line))
    legend = _legend(table, colour)
    if len(blocks) == 1:  # the title first, and what is counted under it
        head, body = blocks[0].head, blocks[0].body
        return "\n".join([*head[:1], legend, *head[1:], "", *body])
    return "\n".join([legend, "", "\n\n".join(shown)])


def _legend(table: Table, colour: bool) -> str:
    if not colour or not table.hues:
        return table.legend
    tints = " ".join(_tinted(f" {hue} ", hue) for hue in range(len(TINTS)))
    return f"{table.legend}; {table.hues} {tints}"


def _tinted(words: str, hue: int | None) -> str:
    if hue is None:
        return words
    red, green, blue = TINTS[hue]
    return f"\x1b[48;2;{red};{green};{blue}m\x1b[38;2;0;0;0m{words}\x1b[0m"


class _Block:
    """The lines of a panel: `head` above, `body` below; `width` is the widest of them as seen."""

    def __init__(self, panel: Panel, width: int | None, colour: bool) -> None:
        self.panel, self.colour = panel, colour
        columns = range(len(panel.column_ends))
        self.digits = max(
            [len(words) for row in panel.cells for words, _ in row] + [len(str(len(columns) - 1))]
        )
        self.margin = len(str(len(panel.cells) - 1)) + 1
        pieces = list(_pieces(panel, self._fitting(width)))
        self.head = [panel.title, *panel.notes]
        self.body: list[str] = []
        for piece in pieces:
            if len(pieces) > 1:
                gap = [""] if self.body else []
                self.body += [*gap, f"columns {piece[0]} to {piece[-1]} of {len(columns)}"]
            self.body += self._lines(piece)
        widest = max(self._width(piece) for piece in pieces)
        self.width = max([widest, *map(len, self.head)])

    def _width(self, piece: range) -> int:
        lines = sum(1 for column in piece if self.panel.column_ends[column])
        return self.margin + 2 + len(piece) * (self.digits + 2) + lines

    def _fitting(self, width: int | None) -> int:
        """The most columns that stand in `width`, at least one."""
        count = len(self.panel.column_ends)
        if width is None:
            return count
        fits = [n for n in range(1, count + 1) if self._width(range(n)) <= width]
        return max(fits, default=1)

    def _lines(self, piece: range) -> list[str]:
        """The header, a rule, and one line a row, with rules where nested modes end."""
        panel, digits = self.panel, self.digits
        ends = [min(panel.column_ends[column], 2) for column in piece]
        indent = " " * (self.margin + 1)
        header = "".join(
            f" {column:{digits}} " + " " * (end > 0)
            for column, end in zip(piece, ends, strict=True)
        )
        lines = [f"{indent} {header}".rstrip(), indent + self._rule(TOP, "─", ends)]
        last = len(panel.cells) - 1
        for row, cells in enumerate(panel.cells):
            shown = "".join(
                self._cell(cells[column]) + BETWEEN_COLUMNS[end]
                for column, end in zip(piece, ends, strict=True)
            )
            lines.append(f"{row:{self.margin}} │{shown}".rstrip())
            end = min(panel.row_ends[row], 2)
            if end and row != last:
                lines.append(indent + self._rule(CROSSINGS[end], BETWEEN_ROWS[end], ends))
        return lines

    def _rule(self, crossings: tuple[str, ...], line: str, ends: list[int]) -> str:
        cell = line * (self.digits + 2)
        return crossings[0] + "".join(cell + (crossings[end] if end else "") for end in ends)

    def _cell(self, cell: Cell) -> str:
        words, hue = cell
        padded = f" {words:>{self.digits}} "
        return _tinted(padded, hue) if self.colour else padded

    def lines(self) -> list[str]:
        """Head and body, under one another."""
        return [*self.head, "", *self.body]


def _pieces(panel: Panel, most: int) -> list[range]:
    """The columns in runs of at most `most`, of equal length if a divisor is not much shorter."""
    count = len(panel.column_ends)
    even = [n for n in range(1, most + 1) if count % n == 0]
    step = max(even) if 2 * max(even) >= most else most
    return [range(first, min(first + step, count)) for first in range(0, count, step)]


def _side_by_side(blocks: list[_Block]) -> str:
    if len(blocks) == 1:
        return "\n".join(blocks[0].lines())
    height = max(len(block.head) for block in blocks)
    columns = [
        block.head + [""] * (height - len(block.head)) + ["", *block.body] for block in blocks
    ]
    tallest = max(map(len, columns))
    lines = []
    for row in range(tallest):
        line = ""
        for block, column in zip(blocks, columns, strict=True):
            words = column[row] if row < len(column) else ""
            line += words + " " * (block.width + GAP - _seen(words))
        lines.append(line.rstrip())
    return "\n".join(lines)


def _seen(words: str) -> int:
    """The width of `words` on a terminal: what is left without colours."""
    if "\x1b" not in words:
        return len(words)
    return sum(len(part.partition("m")[2]) for part in f"m{words}".split("\x1b"))
