"""Panels go to a C whose lines start anywhere in memory: in aligned words, by threads.

    panel in shared memory ─ two words ▶ funnel shift ─ one word ▶ C
                           ─ elements beside the words ──────────▶ C

`PanelLines` says which words and elements a thread stores.
"""

from typing import Any, NamedTuple

import cutlass
import cutlass.cute as cute
from cutlass import Int32, Int64

from cutedsl_gemm.kernels.device import lower
from cutedsl_gemm.kernels.device.tile import remaining_extent, thread_coordinates
from cutedsl_gemm.kernels.device.words import funnel_shift, gmem_word, word
from cutedsl_gemm.kernels.plan.checks import BITS
from cutedsl_gemm.kernels.sm90.panel_stores import ElementPanels
from layouts.hardware.facts import WARPGROUP

ELEMENT = BITS // 8  # bytes


class LinePartition(NamedTuple):
    """What a thread knows of a tile before its first panel."""

    sC: cute.Tensor  # (R, P, staged_panels)
    gC: cute.Tensor  # (M, N)
    line: Any  # the thread's first line of a panel
    positions: list[Any]  # of its words in a line
    words: list[list[Any]]  # of the first panel: where a word begins, and the next
    start: Any  # the address of the line in the first panel of the tile in C
    strides: list[Any]  # of C, in bytes
    shift: Any  # elements of the line before its first word in C


class Rest(NamedTuple):
    """An element beside the words of a line."""

    stored: Any  # whether it is in C
    position: Any  # in the line
    source: Any  # its address in the first panel


class WordPanels(ElementPanels):
    """The threads store aligned words of C, and the elements of a line beside them one by one.

    A word of C lies in two words of the panel. A thread loads both, and shifts them.
    """

    def __init__(self, plan):
        super().__init__(plan)
        self.lines, self.along = plan.lines, plan.contiguous
        self.elements = (plan.panel_rows, plan.panel_columns)[self.along]  # of a line
        line = (plan.lines.step, 0) if plan.contiguous else (0, plan.lines.step)
        # From a thread's line to its next. It is a multiple of what the swizzle permutes.
        self.line_offset = plan.staging.outer(*line)

    def partition(self, sC, tiles, m, n, target=None):
        """Where this thread reads panels, and where it stores those of tile column n."""
        (gC,), plan, words = tiles, self.plan, self.lines.words
        word_bytes = self.lines.width * ELEMENT
        coord_in_panel = thread_coordinates(words, cute.arch.thread_idx()[0] % WARPGROUP)
        places = [coord_in_panel((0, (0, vector))) for vector in range(words.vectors)]
        line, positions = places[0][1 - self.along], [place[self.along] for place in places]
        found = [
            [self.address(sC, line, each, word_bytes) for each in (at, self.next_word(at))]
            for at in positions
        ]
        strides = [Int64(stride) * ELEMENT for stride in gC.stride]
        first_row, first_column = m * plan.panel_rows, n * plan.panels * plan.panel_columns
        start = gC.iterator.toint() + first_row * strides[0] + first_column * strides[1]
        start += line * strides[1 - self.along]
        shift = (0 - Int32(start & (word_bytes - 1)) // ELEMENT) & (self.lines.width - 1)
        return LinePartition(sC, gC, line, positions, found, start, strides, shift)

    def next_word(self, position):
        """Where the word after the one at a position begins, or the last one of the line."""
        return cutlass.min(position + self.lines.width, self.elements - self.lines.width)

    def address(self, sC, line, position, alignment=ELEMENT):
        """The address of an element of the first panel; offsets of lines may be added to it."""
        at = (line, position) if self.along == 1 else (position, line)
        staging = self.plan.staging
        return lower.swizzled_pointer(sC.iterator + staging.outer(*at), staging, alignment)

    @cute.jit
    def store(self, partitioned, buffer, m, n, panel: cutlass.Constexpr):
        """Store a buffer to a panel of tile column n of C, in row m of panels."""
        plan, lines, every = self.plan, self.lines, self.lines.words.lines
        extent = remaining_extent(
            partitioned.gC, (plan.panel_rows, plan.panel_columns), (m, n * plan.panels + panel)
        )
        elements = cutlass.max(cutlass.min(extent[self.along], self.elements), Int32(0))
        before = cutlass.min(partitioned.shift, elements)
        in_words = (elements - before) & -lines.width
        rests = self.rests(partitioned, before, in_words, elements)
        offset = buffer * (plan.panel_rows * plan.panel_columns)
        start = partitioned.start + panel * plan.panel_columns * partitioned.strides[1]
        step = lines.step * partitioned.strides[1 - self.along]
        for first in cutlass.range_constexpr(0, every, lines.at_once):
            numbers = range(first, min(first + lines.at_once, every))
            loaded = [self.load(partitioned, rests, offset + i * self.line_offset) for i in numbers]
            for i, found in zip(numbers, loaded, strict=True):
                inside = partitioned.line + i * lines.step < extent[1 - self.along]
                self.store_line(partitioned, *found, rests, inside, in_words, start + i * step)

    def rests(self, partitioned, before, in_words, elements):
        """What the thread stores beside the words of each line, with `before` elements in front."""
        first, found = partitioned.positions[0] // self.lines.width, []
        for number in [first + i * self.lines.threads for i in range(self.lines.rest_per_thread)]:
            position = cutlass.select_(number < before, number, number + in_words)
            source = self.address(
                partitioned.sC, partitioned.line, cutlass.min(position, self.elements - 1)
            )
            found.append(Rest(number < elements - in_words, position, source))
        return found

    def load(self, partitioned, rests, offset):
        """The words of the thread in a line, with those after them, and its other elements."""
        width, dtype = self.lines.width, partitioned.sC.element_type
        words = cute.make_rmem_tensor((width, 2, len(partitioned.words)), dtype)
        for vector, pair in enumerate(partitioned.words):
            for i, source in enumerate(pair):
                cute.autovec_copy(word(source + offset, width), words[None, i, vector])
        return words, [word(rest.source + offset, 1)[0] for rest in rests]

    @cute.jit
    def store_line(self, partitioned, words, elements, rests, inside, in_words, start):
        """Store what `load` found to the line that starts at an address, if it is `inside` of C."""
        width, dtype = self.lines.width, partitioned.sC.element_type
        shifted = cute.make_rmem_tensor((width,), dtype)
        for vector in cutlass.range_constexpr(len(partitioned.positions)):
            position = partitioned.positions[vector]
            funnel_shift(words[None, None, vector], partitioned.shift * ELEMENT, shifted)
            if inside & (position < in_words):
                address = start + (position + partitioned.shift) * ELEMENT
                cute.autovec_copy(shifted, gmem_word(address, dtype, width))
        for i in cutlass.range_constexpr(len(rests)):
            if inside & rests[i].stored:
                target = gmem_word(start + rests[i].position * ELEMENT, dtype, 1)
                target[0] = elements[i]
