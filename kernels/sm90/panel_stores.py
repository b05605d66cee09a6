"""A panel in shared memory goes to C: by TMA, or by the threads of the consumer.

TMA stores the panel, behind the next one. It stores whole multiples of 16 bytes, at multiples of 16
bytes. The lines of any other C are stored by threads. `PanelPlan.lines` says who stores which words
and elements, and `panel_load` proves that the loads of words are free of bank conflicts.
"""

from typing import Any, NamedTuple

import cutlass
import cutlass.cute as cute
from cutlass import Int32, Int64
from cutlass.cute.nvgpu import cpasync

from cutedsl_gemm.kernels.device import lower
from cutedsl_gemm.kernels.device.tile import remaining_extent, thread_coordinates
from cutedsl_gemm.kernels.device.words import funnel_shift, gmem_word, word
from cutedsl_gemm.kernels.plan.checks import BITS
from layouts.hardware.facts import WARPGROUP

# L2 evicts C first, and A and B stay: up to 1.3 times as fast at K <= 256
# (docs/performance). The encoding is that of CUTLASS's TMA::CacheHintSm90::EVICT_FIRST.
EVICT_FIRST = 0x12F0000000000000
ELEMENT = BITS // 8  # bytes


class TmaPanels:
    """One warp of a consumer issues TMA stores of its panels."""

    def __init__(self, plan):
        self.plan = plan

    def output(self, c):
        """The TMA store atom, and C (M, N) as TMA sees it."""
        panel = (self.plan.panel_rows, self.plan.panel_columns)
        store = cpasync.CopyBulkTensorTileS2GOp()
        return cpasync.make_tiled_tma_atom(store, c, lower.smem_layout(self.plan.staging), panel)

    def tiles(self, output):
        """The atom, and C in panels (R, P, tiles_m * consumers_per_tile, tiles_n * panels)."""
        plan, (tma_c, gC) = self.plan, output
        return tma_c, cute.local_tile(gC, (plan.panel_rows, plan.panel_columns), (None, None))

    def begin(self, sC, tiles, m, n, target=None):
        """Whether this warp issues, the atom, and both tensors as TMA copies them."""
        issues = cute.arch.make_warp_uniform(cute.arch.warp_idx()) % 4 == 0
        tma_c, gC = tiles
        # (box, staged_panels), (box, row of panels, panel)
        return issues, tma_c, *lower.tma_partition(tma_c, sC, gC)

    @cute.jit
    def wait_for_buffer(self, begun, store: cutlass.Constexpr):
        """Wait until TMA has read what the buffer of a tile's store held before."""
        issues, _, _, _ = begun
        if issues:
            cute.arch.cp_async_bulk_wait_group(self.plan.pending_stores(store), read=True)

    def fence(self):
        """What stmatrix wrote, TMA reads."""
        cute.arch.fence_proxy("async.shared", space="cta")

    @cute.jit
    def store(self, begun, buffer, m, n, panel: cutlass.Constexpr):
        """Store a buffer to a panel of tile column n of C, in row m of panels."""
        issues, tma_c, sC, gC = begun
        if issues:
            gPanel = gC[None, m, n * self.plan.panels + panel]  # (box)
            cute.copy(tma_c, sC[None, buffer], gPanel, cache_policy=Int64(EVICT_FIRST))
            cute.arch.cp_async_bulk_commit_group()

    @cute.jit
    def wait_for_stores(self):
        """Keep shared memory alive until the last store has read it."""
        if cute.arch.make_warp_uniform(cute.arch.warp_idx()) % 4 == 0:
            cute.arch.cp_async_bulk_wait_group(0, read=True)


class Begun(NamedTuple):
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


class ThreadPanels:
    """The threads of a consumer store its panels: aligned words of C, and the elements beside them.

    A word of C lies in two words of the panel. A thread loads both, and shifts them.
    """

    def __init__(self, plan):
        self.plan, self.lines, self.along = plan, plan.lines, plan.contiguous
        self.elements = (plan.panel_rows, plan.panel_columns)[self.along]  # of a line
        line = (plan.lines.step, 0) if plan.contiguous else (0, plan.lines.step)
        # From a thread's line to its next. It is a multiple of what the swizzle permutes.
        self.line_offset = plan.staging.outer(*line)

    def output(self, c):
        """C (M, N)."""
        return (c,)

    def tiles(self, output):
        """C."""
        return output

    def begin(self, sC, tiles, m, n, target=None):
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
        return Begun(sC, gC, line, positions, found, start, strides, shift)

    def next_word(self, position):
        """Where the word behind that at a position begins, or the last one of the line."""
        return cutlass.min(position + self.lines.width, self.elements - self.lines.width)

    def address(self, sC, line, position, alignment=ELEMENT):
        """The address of an element of the first panel; offsets of lines may be added to it."""
        at = (line, position) if self.along == 1 else (position, line)
        staging = self.plan.staging
        return lower.swizzled_pointer(sC.iterator + staging.outer(*at), staging, alignment)

    def wait_for_buffer(self, begun, store):
        """Nothing: a thread has read its part of a buffer before it comes to the next panel."""

    def fence(self):
        """Nothing: the barrier behind it shows the threads what stmatrix wrote."""

    @cute.jit
    def store(self, begun, buffer, m, n, panel: cutlass.Constexpr):
        """Store a buffer to a panel of tile column n of C, in row m of panels."""
        plan, lines, every = self.plan, self.lines, self.lines.words.lines
        extent = remaining_extent(
            begun.gC, (plan.panel_rows, plan.panel_columns), (m, n * plan.panels + panel)
        )
        elements = cutlass.max(cutlass.min(extent[self.along], self.elements), Int32(0))
        before = cutlass.min(begun.shift, elements)
        in_words = (elements - before) & -lines.width
        rests = self.rests(begun, before, in_words, elements)
        offset = buffer * (plan.panel_rows * plan.panel_columns)
        start = begun.start + panel * plan.panel_columns * begun.strides[1]
        step = lines.step * begun.strides[1 - self.along]
        for first in cutlass.range_constexpr(0, every, lines.at_once):
            numbers = range(first, min(first + lines.at_once, every))
            loaded = [self.load(begun, rests, offset + i * self.line_offset) for i in numbers]
            for i, found in zip(numbers, loaded, strict=True):
                inside = begun.line + i * lines.step < extent[1 - self.along]
                self.store_line(begun, *found, rests, inside, in_words, start + i * step)

    def rests(self, begun, before, in_words, elements):
        """What the thread stores beside the words of each line, with `before` elements in front."""
        first, found = begun.positions[0] // self.lines.width, []
        for number in [first + i * self.lines.threads for i in range(self.lines.rests)]:
            position = cutlass.select_(number < before, number, number + in_words)
            source = self.address(begun.sC, begun.line, cutlass.min(position, self.elements - 1))
            found.append(Rest(number < elements - in_words, position, source))
        return found

    def load(self, begun, rests, offset):
        """The words of the thread in a line, with those behind them, and its other elements."""
        width, dtype = self.lines.width, begun.sC.element_type
        words = cute.make_rmem_tensor((width, 2, len(begun.words)), dtype)
        for vector, pair in enumerate(begun.words):
            for i, source in enumerate(pair):
                cute.autovec_copy(word(source + offset, width), words[None, i, vector])
        return words, [word(rest.source + offset, 1)[0] for rest in rests]

    @cute.jit
    def store_line(self, begun, words, elements, rests, inside, in_words, start):
        """Store what `load` found to the line that starts at an address, if it is `inside` of C."""
        width, dtype = self.lines.width, begun.sC.element_type
        shifted = cute.make_rmem_tensor((width,), dtype)
        for vector in cutlass.range_constexpr(len(begun.positions)):
            position = begun.positions[vector]
            funnel_shift(words[None, None, vector], begun.shift * ELEMENT, shifted)
            if inside & (position < in_words):
                address = start + (position + begun.shift) * ELEMENT
                cute.autovec_copy(shifted, gmem_word(address, dtype, width))
        for i in cutlass.range_constexpr(len(rests)):
            if inside & rests[i].stored:
                target = gmem_word(start + rests[i].position * ELEMENT, dtype, 1)
                target[0] = elements[i]

    def wait_for_stores(self):
        """Nothing: shared memory has been read."""
