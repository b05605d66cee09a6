"""A panel in shared memory goes to C: by TMA, or by the threads of the consumer.

TMA stores a panel while the consumer fills the next one. It stores whole multiples of 16 bytes, at
multiples of 16 bytes. The lines of any other C are stored by threads, in words (`word_panels`) or
element by element. `PanelPlan.lines` says who stores what, and `panel_load` proves that the loads
of whole panels are free of bank conflicts.
"""

from math import gcd

import cutlass
import cutlass.cute as cute
from cutlass import Int32, Int64
from cutlass.cute.nvgpu import cpasync

from cutedsl_gemm.kernels.device import lower
from cutedsl_gemm.kernels.device.tile import (
    in_bounds,
    remaining_extent,
    thread_coordinates,
    thread_partition,
)
from cutedsl_gemm.kernels.plan.tma import EVICT_FIRST
from cutedsl_gemm.kernels.sm90.panel_fragments import issues_tma
from layouts.hardware.facts import WARPGROUP

AT_ONCE = 8  # elements that a thread loads from a panel before it stores them


class TmaPanels:
    """One warp of a consumer issues TMA stores of its panels."""

    def __init__(self, plan):
        self.plan = plan

    def output(self, c):
        """The TMA store atom, and C (M, N), or ((M, L), N), as TMA sees it."""
        panel = self.plan.gmem_tiler((self.plan.panel_rows, self.plan.panel_columns))
        store = cpasync.CopyBulkTensorTileS2GOp()
        return cpasync.make_tiled_tma_atom(store, c, lower.smem_layout(self.plan.staging), panel)

    def tiles(self, output):
        """The atom, and C in panels (R, P, tiles_m * consumers down, tiles_n * across * panels)."""
        plan, (tma_c, gC) = self.plan, output
        panel = plan.gmem_tiler((plan.panel_rows, plan.panel_columns))
        return tma_c, cute.local_tile(gC, panel, (None, None))

    def partition(self, sC, tiles, m, n, target=None):
        """Whether this warp issues, the atom, and both tensors as TMA copies them."""
        tma_c, gC = tiles
        # (box, staged_panels), (box, row of panels, panel)
        return issues_tma(), tma_c, *lower.tma_partition(tma_c, sC, gC)

    @cute.jit
    def wait_for_buffer(self, partitioned, store: cutlass.Constexpr):
        """Wait until TMA has read what the buffer of a tile's store held before."""
        issues, _, _, _ = partitioned
        if issues:
            cute.arch.cp_async_bulk_wait_group(self.plan.pending_stores(store), read=True)

    def fence(self):
        """Make what stmatrix wrote visible to TMA."""
        cute.arch.fence_proxy("async.shared", space="cta")

    @cute.jit
    def store(self, partitioned, buffer, m, n, panel: cutlass.Constexpr):
        """Store a buffer to a panel of tile column n of C, in row m of panels."""
        issues, tma_c, sC, gC = partitioned
        if issues:
            gPanel = gC[None, m, n * self.plan.panels + panel]  # (box)
            # A and B stay in L2: up to 1.3 times as fast at K <= 256 (docs/performance).
            cute.copy(tma_c, sC[None, buffer], gPanel, cache_policy=Int64(EVICT_FIRST))
            cute.arch.cp_async_bulk_commit_group()

    @cute.jit
    def wait_for_stores(self):
        """Keep shared memory alive until the last store has read it."""
        if issues_tma():
            cute.arch.cp_async_bulk_wait_group(0, read=True)


class ElementPanels:
    """The threads of a consumer store its panels, neighbours in memory by neighbouring threads."""

    def __init__(self, plan):
        self.plan = plan

    def output(self, c):
        """C (M, N)."""
        return (c,)

    def tiles(self, output):
        """C."""
        return output

    def partition(self, sC, tiles, m, n, target=None):
        """The panels in shared memory, and C."""
        return sC, *tiles

    def wait_for_buffer(self, partitioned, store):
        """Nothing: a thread has read its part of a buffer before it comes to the next panel."""

    def fence(self):
        """Nothing: the barrier that follows makes what stmatrix wrote visible to the threads."""

    @cute.jit
    def store(self, partitioned, buffer, m, n, panel: cutlass.Constexpr):
        """Store a buffer to a panel of tile column n of C, in row m of panels."""
        (sC, gC), plan, copy = partitioned, self.plan, self.plan.lines.words
        tiler, coord = (plan.panel_rows, plan.panel_columns), (m, n * plan.panels + panel)
        thread = cute.arch.thread_idx()[0] % WARPGROUP
        source = thread_partition(sC[None, None, buffer], copy, thread)  # (lines, (1, vectors))
        target = thread_partition(cute.local_tile(gC, tiler, coord), copy, thread)
        extent = remaining_extent(gC, tiler, coord)
        coord_in_panel = thread_coordinates(copy, thread)
        for vector in cutlass.range_constexpr(copy.vectors):
            lines = self.lines_in_bounds(coord_in_panel((0, (0, vector))), extent)
            self.store_lines(source[None, (0, vector)], target[None, (0, vector)], lines)

    @cute.jit
    def store_lines(self, source, target, lines):
        """Store the first `lines` elements of a thread: it loads a few, then stores them."""
        every = self.plan.lines.words.lines
        at_once = gcd(every, AT_ONCE)
        values = cute.make_rmem_tensor((at_once,), source.element_type)
        for part in cutlass.range(every // at_once, unroll=1):
            sPart, gPart = (cute.local_tile(each, (at_once,), (part,)) for each in (source, target))
            cute.autovec_copy(sPart, values)
            for line in cutlass.range_constexpr(at_once):
                if part * at_once + line < lines:
                    gPart[line] = values[line]

    def lines_in_bounds(self, first, extent):
        """How many of a thread's lines C has; `first` is the coordinate in the first of them."""
        across, copy = 1 - self.plan.contiguous, self.plan.lines.words
        step = (copy.rows, copy.columns)[across](0, (1, (0, 0)))  # from line to line
        lines = cute.ceil_div(extent[across] - first[across], step)
        return cutlass.select_(in_bounds(first, extent), lines, Int32(0))

    def wait_for_stores(self):
        """Nothing: shared memory has been read."""
