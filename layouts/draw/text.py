"""The writer for terminals: tables of text, coloured if the terminal can."""

from __future__ import annotations

import os
import shutil
import sys

from .cells import COLOURS, Cell, Panel, Table

__all__ = ["render"]

#: Characters between two panels side by side, and the width that panels share if none is known.
GAP, USUAL_WIDTH = 4, 120

#: Number of nested modes that end at a line → the line between columns, between rows, and their
#: crossings.  The first of the crossings is where a line between rows meets the margin.
BETWEEN_COLUMNS = ("", "│", "┃")
BETWEEN_ROWS = ("", "─", "━")
TOP = ("┌", "┬", "┰")
CROSSINGS = ((), ("├", "┼", "╂"), ("┝", "┿", "╋"))


def render(table: Table, colour: bool | None, width: int | None) -> str:
    """`table` as text, coloured or not, and no wider than `width` if a column fits."""
    on_terminal = sys.stdout is not None and sys.stdout.isatty()  # None, if it was closed
    if colour is None:
        colour = on_terminal and "NO_COLOR" not in os.environ
    if width is None and on_terminal:
        width = shutil.get_terminal_size().columns
    blocks = [_Block(panel, width, colour) for panel in table.panels]
    rows, row = [], blocks[:1]
    for block in blocks[1:]:
        if sum(b.width + GAP for b in row) + block.width > (width or USUAL_WIDTH):
            rows.append(_side_by_side(row))
            row = []
        row.append(block)
    rows.append(_side_by_side(row))
    legend = _legend(table, colour)
    if len(blocks) == 1:  # the title first, then the legend
        head, body = blocks[0].head, blocks[0].body
        return "\n".join([*head[:1], legend, *head[1:], "", *body])
    return "\n".join([legend, "", "\n\n".join(rows)])


def _legend(table: Table, colour: bool) -> str:
    if not colour or not table.colours:
        return table.legend
    swatches = " ".join(_coloured(f" {index} ", index) for index in table.swatches)
    return f"{table.legend}; {table.colours} {swatches}"


def _coloured(words: str, colour: int | None) -> str:
    """`words` on a background, as ANSI escape codes."""
    if colour is None:
        return words
    red, green, blue = COLOURS[colour]
    return f"\x1b[48;2;{red};{green};{blue}m\x1b[38;2;0;0;0m{words}\x1b[0m"


class _Block:
    """The lines of a panel, `head` above `body`; `width` is their width as printed."""

    def __init__(self, panel: Panel, width: int | None, colour: bool) -> None:
        self.panel, self.colour = panel, colour
        columns = range(len(panel.column_ends))
        self.digits = max(
            [len(words) for row in panel.cells for words, _ in row] + [len(str(len(columns) - 1))]
        )
        self.margin = len(str(len(panel.cells) - 1)) + 1
        runs = _column_runs(panel, self._fitting(width))
        self.head = [panel.title, *panel.notes]
        self.body: list[str] = []
        for run in runs:
            if len(runs) > 1:
                gap = [""] if self.body else []
                self.body += [*gap, f"columns {run[0]} to {run[-1]} of {len(columns)}"]
            self.body += self._lines(run)
        widest = max(self._width(run) for run in runs)
        self.width = max([widest, *map(len, self.head)])

    def _width(self, run: range) -> int:
        lines = sum(1 for column in run if self.panel.column_ends[column])
        return self.margin + 2 + len(run) * (self.digits + 2) + lines

    def _fitting(self, width: int | None) -> int:
        """The most columns that fit in `width`, at least one."""
        count = len(self.panel.column_ends)
        if width is None:
            return count
        fits = [n for n in range(1, count + 1) if self._width(range(n)) <= width]
        return max(fits, default=1)

    def _lines(self, run: range) -> list[str]:
        """The header, a rule, and one line for each row, with rules where nested modes end."""
        panel, digits = self.panel, self.digits
        ends = [min(panel.column_ends[column], 2) for column in run]
        indent = " " * (self.margin + 1)
        header = "".join(
            f" {column:{digits}} " + " " * (end > 0) for column, end in zip(run, ends, strict=True)
        )
        lines = [f"{indent} {header}".rstrip(), indent + self._rule(TOP, "─", ends)]
        last = len(panel.cells) - 1
        for row, cells in enumerate(panel.cells):
            printed = "".join(
                self._cell(cells[column]) + BETWEEN_COLUMNS[end]
                for column, end in zip(run, ends, strict=True)
            )
            lines.append(f"{row:{self.margin}} │{printed}".rstrip())
            end = min(panel.row_ends[row], 2)
            if end and row != last:
                lines.append(indent + self._rule(CROSSINGS[end], BETWEEN_ROWS[end], ends))
        return lines

    def _rule(self, crossings: tuple[str, ...], line: str, ends: list[int]) -> str:
        cell = line * (self.digits + 2)
        return crossings[0] + "".join(cell + (crossings[end] if end else "") for end in ends)

    def _cell(self, cell: Cell) -> str:
        words, colour = cell
        padded = f" {words:>{self.digits}} "
        return _coloured(padded, colour) if self.colour else padded

    def lines(self) -> list[str]:
        """Head and body, with an empty line between them."""
        return [*self.head, "", *self.body]


def _column_runs(panel: Panel, most: int) -> list[range]:
    """The columns in runs of at most `most`; equal runs if they are at least half as long."""
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
            line += words + " " * (block.width + GAP - _printed_width(words))
        lines.append(line.rstrip())
    return "\n".join(lines)


def _printed_width(words: str) -> int:
    """The width of `words` as printed, without escape codes."""
    if "\x1b" not in words:
        return len(words)
    return sum(len(part.partition("m")[2]) for part in f"m{words}".split("\x1b"))
