"""The panel epilogue: registers → stmatrix → a panel in shared memory → C.

When   a panel of P columns    wait until its buffer has been read │ stmatrix │ store to C
       Consecutive panels use `c_stages` buffers in turn.

Who    TMA stores the panel, behind the next one (`TmaPanels`). It stores whole multiples of 16
       bytes, at multiples of 16 bytes. The rows of any other C are stored by the threads of the
       consumer, element by element (`ThreadPanels`).

Where  each consumer has its own panels: no consumer waits for the other's stores.
       `PanelPlan.stmatrix_rows` is the row that each lane addresses, and `panel_store` proves
       that the stores are free of bank conflicts (ConflictFree, layouts/hardware/conflict_free.py).
       `panel_copy` says which elements of a panel a thread stores to C, and `panel_load` proves
       that its loads are free of bank conflicts.
"""

from math import gcd

import cutlass
import cutlass.cute as cute
from cuda.bindings.driver import CUstream
from cutlass import Int32, Int64
from cutlass.cute.nvgpu import cpasync, warp

from cutedsl_gemm.kernels.device import lower
from cutedsl_gemm.kernels.device.tile import (
    in_bounds,
    remaining_extent,
    thread_coordinates,
    thread_partition,
)
from cutedsl_gemm.kernels.plan.smem import staged_layout
from cutedsl_gemm.kernels.sm90.mainloop import Sm90Gemm
from cutedsl_gemm.kernels.sm90.pipeline import panel_barrier
from layouts import cosize
from layouts.hardware.atoms import WGMMA_M
from layouts.hardware.facts import WARPGROUP

# L2 evicts C first, and A and B stay: up to 1.3 times as fast at K <= 256
# (docs/performance). The encoding is that of CUTLASS's TMA::CacheHintSm90::EVICT_FIRST.
EVICT_FIRST = 0x12F0000000000000
AT_ONCE = 8  # elements that a thread loads from a panel before it stores them


class TmaPanels:
    """One warp of a consumer issues TMA stores of its panels."""

    def __init__(self, plan):
        self.plan = plan

    def output(self, c):
        """The TMA store atom, and C (M, N) as TMA sees it."""
        panel = (self.plan.rows, self.plan.panel_columns)
        store = cpasync.CopyBulkTensorTileS2GOp()
        return cpasync.make_tiled_tma_atom(store, c, lower.smem_layout(self.plan.staging), panel)

    def tiles(self, output):
        """The atom, and C in panels (R, P, tiles_m * consumers_per_tile, tiles_n * panels)."""
        plan, (tma_c, gC) = self.plan, output
        return tma_c, cute.local_tile(gC, (plan.rows, plan.panel_columns), (None, None))

    def begin(self, sC, tiles):
        """Whether this warp issues, the atom, and both tensors as TMA copies them."""
        issues = cute.arch.make_warp_uniform(cute.arch.warp_idx()) % 4 == 0
        tma_c, gC = tiles
        # (box, staged_panels), (box, row of panels, panel)
        return issues, tma_c, *lower.tma_partition(tma_c, sC, gC)

    @cute.jit
    def wait_for_buffer(self, begun, panel: cutlass.Constexpr):
        """Wait until TMA has read what the panel's buffer held before."""
        issues, _, _, _ = begun
        if issues:
            cute.arch.cp_async_bulk_wait_group(self.plan.pending_stores(panel), read=True)

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


class ThreadPanels:
    """The threads of a consumer store its panels, neighbours in memory by neighbouring threads."""

    def __init__(self, plan):
        self.plan = plan

    def output(self, c):
        """C (M, N)."""
        return (c,)

    def tiles(self, output):
        """C."""
        return output

    def begin(self, sC, tiles):
        """The panels in shared memory, and C."""
        return sC, *tiles

    def wait_for_buffer(self, begun, panel):
        """Nothing: a thread has read its part of a buffer before it comes to the next panel."""

    def fence(self):
        """Nothing: the barrier behind it shows the threads what stmatrix wrote."""

    @cute.jit
    def store(self, begun, buffer, m, n, panel: cutlass.Constexpr):
        """Store a buffer to a panel of tile column n of C, in row m of panels."""
        (sC, gC), plan, copy = begun, self.plan, self.plan.panel_copy
        tiler, coord = (plan.rows, plan.panel_columns), (m, n * plan.panels + panel)
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
        every = self.plan.panel_copy.lines
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
        across, copy = 1 - self.plan.contiguous, self.plan.panel_copy
        step = (copy.rows, copy.columns)[across](0, (1, (0, 0)))  # from line to line
        lines = cute.ceil_div(extent[across] - first[across], step)
        return cutlass.select_(in_bounds(first, extent), lines, Int32(0))

    def wait_for_stores(self):
        """Nothing: shared memory has been read."""


class PanelGemm(Sm90Gemm):
    """A GEMM that stores C panel by panel; the schedule is the subclasses'."""

    def __init__(self, plan):
        super().__init__(plan)
        self.panels = TmaPanels(plan) if plan.stored_by_tma else ThreadPanels(plan)

    @cute.jit
    def __call__(
        self,
        a: cute.Tensor,  # (M, K)
        b: cute.Tensor,  # (K, N)
        c: cute.Tensor,  # (M, N)
        sms: Int32,
        stream: CUstream,
    ):
        """C = A · B on at most `sms` multiprocessors."""
        a, b, c = self.as_planned(a, b, c)
        self.launch(a, b, c, self.panels.output(c), sms, stream)

    def epilogue_storage(self):
        """The panels of C, of all consumers."""
        return cute.struct.MemRange[self.dtype, self.plan.staged_panels * cosize(self.plan.staging)]

    def epilogue_tensors(self, storage, output):
        """The panels in shared memory (R, P, staged_panels), and what moves them to C."""
        plan = self.plan
        sC = lower.smem_tensor(storage, staged_layout(plan.staging, plan.staged_panels))
        return sC, *self.panels.tiles(output)

    def make_stmatrix(self):
        """stmatrix by four warps: 64 × S elements at a time."""
        atom = self.plan.stmatrix
        op = warp.StMatrix8x8x16bOp(atom.transposed, atom.matrices)
        tiler = WGMMA_M, self.plan.stmatrix_columns
        copy = cute.make_copy_atom(op, self.dtype)
        return cute.make_tiled_copy(copy, lower.layout(self.plan.stmatrix_tv), tiler)

    @cute.jit
    def store(self, consumer, acc, epilogue, m, n):
        """Store a consumer's accumulator to row m of the (R, P) panels of C, in tile column n."""
        plan, (sC, *tiles) = self.plan, epilogue
        begun = self.panels.begin(sC, tiles)
        stmatrix = self.make_stmatrix()
        tC = stmatrix.get_slice(cute.arch.thread_idx()[0] % WARPGROUP).partition_D(sC)
        # tC (S/2, R/64, P/S, staged_panels), values (S/2, R/64, P/S, panels)
        values = cute.make_tensor(acc.iterator, lower.layout(plan.fragment))
        # A lane addresses eight elements. Of x2 it holds four, and cute.copy takes as many of both.
        tC = cute.logical_divide(tC, (values.shape[0],))[(None, 0), None, None, None]
        for panel in cutlass.range_constexpr(plan.panels):
            buffer = consumer * plan.c_stages + panel % plan.c_stages
            rC = cute.make_rmem_tensor(values.shape[:3], self.dtype)
            rC.store(values[None, None, None, panel].load().to(self.dtype))
            self.panels.wait_for_buffer(begun, panel)
            self.panel_sync(consumer)
            cute.copy(stmatrix, rC, tC[None, None, None, buffer])
            self.panels.fence()
            self.panel_sync(consumer)
            self.panels.store(begun, buffer, m, n, panel)

    def panel_sync(self, consumer):
        """Wait until all four warps of the consumer are here."""
        number, threads = panel_barrier(consumer)
        cute.arch.barrier(barrier_id=number, number_of_threads=threads)

    def wait_for_stores(self):
        """Keep shared memory alive until the last store has read it."""
        self.panels.wait_for_stores()
