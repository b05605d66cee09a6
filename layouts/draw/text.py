"""Layouts as tables of text, coloured by shared-memory bank if the terminal can."""

from __future__ import annotations

import os
import sys

from .errors import LayoutError
from .layout import Layout
from .modes import flat_modes
from .swizzle import ComposedLayout
from .tuples import rank, size

__all__ = ["table"]

#: One tint for each group of four banks, 16 bytes: Okabe and Ito's palette, which colour-blind
#: readers can tell apart, mixed half and half with white so that black text is read on it.
TINTS = (
    (242, 207, 128),  # orange
    (170, 217, 244),  # sky blue
    (128, 206, 185),  # bluish green
    (247, 241, 160),  # yellow
    (128, 184, 216),  # blue
    (234, 174, 128),  # vermillion
    (229, 188, 211),  # reddish purple
    (204, 204, 204),  # grey
)

#: Bytes of one group of banks.
GROUP_BYTES = 16


def table(
    layout: Layout | ComposedLayout, colour: bool | None = None, unit: int | None = None
) -> str:
    """`layout` as a table of its offsets: mode 0 down, mode 1 across; a single mode goes across.

    With `colour`, each cell is tinted by its group of banks, ``offset * unit / 8 / 16 % 8``; None
    asks whether standard output is a terminal and NO_COLOR is unset.  `unit` is the bits of one
    offset: that of a composed layout, or 16, unless given; the table says which.

    Raises `LayoutError` if `layout` has more than two modes.

    >>> print(table(Layout((2, 4), (4, 1)), colour=False))
    (2,4):(4,1)
    offsets in elements of 16 bits
    <BLANKLINE>
         0  1  2  3
       ┌────────────
     0 │ 0  1  2  3
     1 │ 4  5  6  7
    """
    if rank(layout) > 2:
        raise LayoutError(
            f"table of {layout}: it has {rank(layout)} modes; draw one or two of them"
        )
    if colour is None:
        colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    unit = unit or getattr(layout, "unit", None) or 16
    cells = _cells(layout)
    return "\n".join([str(layout), _legend(unit, colour), "", *_lines(cells, unit, colour)])


def _cells(layout: Layout | ComposedLayout) -> list[list[int]]:
    flat_modes(layout.outer if isinstance(layout, ComposedLayout) else layout)  # no symbols
    if rank(layout) == 1:
        return [[layout(column) for column in range(size(layout))]]
    columns = range(size(layout, 1))
    return [[layout(row, column) for column in columns] for row in range(size(layout, 0))]


def _legend(unit: int, colour: bool) -> str:
    counted = "bytes" if unit == 8 else f"elements of {unit} bits"
    if not colour:
        return f"offsets in {counted}"
    groups = " ".join(_tinted(f" {group} ", group) for group in range(len(TINTS)))
    return f"offsets in {counted}; 16-byte groups of banks: {groups}"


def _lines(cells: list[list[int]], unit: int, colour: bool) -> list[str]:
    """The header, a rule, and one line a row."""
    largest = max(max(map(max, cells)), len(cells[0]) - 1)
    width, margin = len(str(largest)), len(str(len(cells) - 1)) + 1
    header = " " * (margin + 2) + "".join(f" {column:{width}} " for column in range(len(cells[0])))
    rule = " " * (margin + 1) + "┌" + "─" * (len(cells[0]) * (width + 2))
    lines = [header.rstrip(), rule]
    for row, offsets in enumerate(cells):
        shown = "".join(_cell(offset, width, unit, colour) for offset in offsets)
        lines.append(f"{row:{margin}} │{shown}".rstrip())
    return lines


def _cell(offset: int, width: int, unit: int, colour: bool) -> str:
    plain = f" {offset:{width}} "
    return _tinted(plain, offset * unit // 8 // GROUP_BYTES % len(TINTS)) if colour else plain


def _tinted(words: str, group: int) -> str:
    red, green, blue = TINTS[group]
    return f"\x1b[48;2;{red};{green};{blue}m\x1b[38;2;0;0;0m{words}\x1b[0m"
