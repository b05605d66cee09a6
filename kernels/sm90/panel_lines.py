"""PanelLines: what each thread stores of a panel, if the lines of C start anywhere in memory.

A line of a panel is contiguous in C: a row, or a column if operands are swapped. Threads store the
aligned words of C that lie in it. The elements before the first word and after the last are the
rest: threads store them one by one.

    0 1 2 │ 3 4 5 6 7 8 9 10 │ … │ 51 52 … 58 │ 59 60 61 62 63
     rest │       word       │ … │    word    │      rest        64 elements, shift 3
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import gcd

from cutedsl_gemm.kernels.plan.tv_layout import TVLayout, load_layout
from layouts import size
from layouts.hardware.facts import WARPGROUP

WIDTHS = 8, 4  # elements that a word may have
# A panel is stored in words if it has at least LINES lines of at least LONG elements: 1.00 to 1.14
# times as fast. With shorter lines, words take up to 1.2 times as long as elements, and with 8
# lines up to 1.07 times (docs/performance/notebook.md).
LONG, LINES = 128, 16
AT_ONCE = 32  # elements of C that a thread loads before it stores them
SWIZZLED_LINES = 8  # of a panel, after which a swizzle repeats; a word has no more elements


@dataclass(frozen=True)
class PanelLines:
    """Who stores which words and which elements of the lines of a panel.

    A line starts `shift` elements before a word. The lines of a thread all have the same shift,
    whatever the leading stride of C. Where words do not pay, all elements are stored one by one: as
    words of one element.

    >>> lines = panel_lines(128, 64, contiguous=0)  # 64 columns of 128 elements
    >>> lines.width, lines.threads, lines.step
    (8, 16, 8)
    >>> next(lines.stored_by(0, extents=(128, 64), start=5, stride=2047))  # line, first, elements
    (0, 3, 8)
    """

    # (thread, (lines, (width, vectors))) → row, column: the words of lines that start with one
    words: TVLayout
    contiguous: int  # the mode along which C is contiguous

    @property
    def width(self) -> int:
        """Elements of a word."""
        return self.words.width

    @property
    def threads(self) -> int:
        """Threads that share a line."""
        return size(self.words.rows.shape[0][0])

    @property
    def step(self) -> int:
        """Lines from one of a thread's lines to the next."""
        return WARPGROUP // self.threads

    @property
    def at_once(self) -> int:
        """Lines of which a thread loads all words before it stores them."""
        return min(AT_ONCE // (self.width * self.words.vectors), self.words.lines)

    @property
    def rest_per_thread(self) -> int:
        """Elements of the rest of a line that a thread stores, at most."""
        return -(-2 * (self.width - 1) // self.threads)

    def stored_by(
        self, thread: int, extents: tuple[int, int], start: int, stride: int
    ) -> Iterator[tuple[int, int, int]]:
        """(line, first element in the line, elements) of each store of a thread.

        C has `extents` (rows, columns) of the panel. Line i starts at element start + i * stride of
        memory, and words at multiples of the width.
        """
        lines, elements = extents[1 - self.contiguous], extents[self.contiguous]
        modes = self.words.rows, self.words.columns
        lines_of, positions = modes[1 - self.contiguous], modes[self.contiguous]
        for number in range(self.words.lines):
            if (line := lines_of(thread, (number, (0, 0)))) >= lines:
                return
            shift = -(start + line * stride) % self.width
            before = min(shift, elements)
            in_words = (elements - before) // self.width * self.width
            for vector in range(self.words.vectors):
                if (position := positions(thread, (number, (0, vector)))) < in_words:
                    yield line, position + shift, self.width
            for each in range(thread % self.threads, elements - in_words, self.threads):
                yield line, each if each < before else each + in_words, 1


@cache
def panel_lines(rows: int, columns: int, contiguous: int) -> PanelLines:
    """The lines of a panel (rows, columns): the widest words that divide evenly among the threads.

    A thread's lines are a multiple of eight apart: they have one shift, and one swizzle.

    >>> print(panel_lines(192, 24, contiguous=0).words.columns, panel_lines(64, 64, 1).width)
    ((16,8),(3,(4,3))):((0,1),(8,(0,0))) 1
    """
    lines, elements = (rows, columns) if contiguous else (columns, rows)

    def fits(width: int) -> bool:
        threads = gcd(elements // width, WARPGROUP)
        step = WARPGROUP // threads
        return lines % step == 0 and step % SWIZZLED_LINES == 0 and elements // threads <= AT_ONCE

    in_words = elements >= LONG and lines >= LINES
    width = next(filter(fits, WIDTHS), 1) if in_words else 1
    words = load_layout(rows, columns, "K" if contiguous else "MN", WARPGROUP, width)
    return PanelLines(words, contiguous)
