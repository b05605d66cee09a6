"""The TMA-store epilogue: registers → stmatrix → a panel in shared memory → TMA store.

When   a panel of P columns    wait until TMA has read its last contents │ stmatrix │ fence │ store
       Consecutive panels use `c_stages` buffers in turn; the stores run behind the next panel.

Where  each consumer has its own panels: no consumer waits for the other's stores.
       `TmaStorePlan.stmatrix_rows` is the row that each lane addresses, and `panel_store` proves
       that the stores are free of bank conflicts (ConflictFree, layouts/hardware/conflict_free.py).
"""

import cutlass
import cutlass.cute as cute
from cuda.bindings.driver import CUstream
from cutlass import Int32, Int64
from cutlass.cute.nvgpu import cpasync, warp

from cutedsl_gemm.kernels.device import lower
from cutedsl_gemm.kernels.plan.smem import staged_layout
from cutedsl_gemm.kernels.sm90.mainloop import Sm90Gemm
from layouts import cosize
from layouts.hardware.atoms import WGMMA_M
from layouts.hardware.facts import WARPGROUP

# L2 evicts C first, and A and B stay: up to 1.3 times as fast at K <= 256
# (docs/performance). The encoding is that of CUTLASS's TMA::CacheHintSm90::EVICT_FIRST.
EVICT_FIRST = 0x12F0000000000000
# Named barriers, one a consumer, around its panels; number 0 is __syncthreads.
PANEL_BARRIER = 1


class TmaStoreGemm(Sm90Gemm):
    """A GEMM that stores C by TMA; the schedule is the subclasses'."""

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
        panel = (self.plan.rows, self.plan.panel_columns)
        store = cpasync.CopyBulkTensorTileS2GOp()
        output = cpasync.make_tiled_tma_atom(store, c, lower.smem_layout(self.plan.staging), panel)
        self.launch(a, b, c, output, sms, stream)

    def epilogue_storage(self):
        """The panels of C, of all consumers."""
        return cute.struct.MemRange[self.dtype, self.plan.staged_panels * cosize(self.plan.staging)]

    def epilogue_tensors(self, storage, output):
        """The TMA store atom, the panels in shared memory, and C in panels."""
        plan, (tma_c, gC) = self.plan, output
        # (R, P, staged_panels) and (R, P, tiles_m * consumers_per_tile, tiles_n * panels)
        sC = lower.smem_tensor(storage, staged_layout(plan.staging, plan.staged_panels))
        return tma_c, sC, cute.local_tile(gC, (plan.rows, plan.panel_columns), (None, None))

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
        plan, (tma_c, sC, gC) = self.plan, epilogue
        issues_tma = cute.arch.make_warp_uniform(cute.arch.warp_idx()) % 4 == 0
        stmatrix = self.make_stmatrix()
        tC = stmatrix.get_slice(cute.arch.thread_idx()[0] % WARPGROUP).partition_D(sC)
        # tC (S/2, R/64, P/S, staged_panels), values (S/2, R/64, P/S, panels)
        values = cute.make_tensor(acc.iterator, lower.layout(plan.fragment))
        # A lane addresses eight elements. Of x2 it holds four, and cute.copy takes as many of both.
        tC = cute.logical_divide(tC, (values.shape[0],))[(None, 0), None, None, None]
        # (box, staged_panels), (box, row of panels, panel)
        sC, gC = lower.tma_partition(tma_c, sC, gC)
        for panel in cutlass.range_constexpr(plan.panels):
            buffer = consumer * plan.c_stages + panel % plan.c_stages
            rC = cute.make_rmem_tensor(values.shape[:3], self.dtype)
            rC.store(values[None, None, None, panel].load().to(self.dtype))
            if issues_tma:
                # TMA has read what the buffer held before
                cute.arch.cp_async_bulk_wait_group(plan.pending_stores(panel), read=True)
            self.panel_sync(consumer)
            cute.copy(stmatrix, rC, tC[None, None, None, buffer])
            cute.arch.fence_proxy("async.shared", space="cta")  # what stmatrix wrote, TMA reads
            self.panel_sync(consumer)
            if issues_tma:
                gPanel = gC[None, m, n * plan.panels + panel]  # (box)
                cute.copy(tma_c, sC[None, buffer], gPanel, cache_policy=Int64(EVICT_FIRST))
                cute.arch.cp_async_bulk_commit_group()

    def panel_sync(self, consumer):
        """Wait until all four warps of the consumer are here."""
        cute.arch.barrier(barrier_id=PANEL_BARRIER + consumer, number_of_threads=WARPGROUP)

    @cute.jit
    def wait_for_stores(self):
        """Keep shared memory alive until the last store has read it."""
        if cute.arch.make_warp_uniform(cute.arch.warp_idx()) % 4 == 0:
            cute.arch.cp_async_bulk_wait_group(0, read=True)
