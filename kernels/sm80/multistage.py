"""sm80 GEMM with several stages: serves `multistage`, and `raster`, which walks tiles in groups.

    cp.async   │ k-tile 0 │ k-tile 1 │ k-tile 2 │ k-tile 3 │ …    stages - 1 k-tiles ahead
    warps                            │ multiply 0 │ multiply 1 │ …

One barrier a k-tile. After it, the bytes of this k-tile are visible to all threads, and all of them
have read the stage of the k-tile before, which can be loaded again. k-tiles that no edge cuts are
loaded without predicates. With the swizzle applied once, too, a k-tile of 128×256 takes 238
instructions, not 490 (docs/performance/notebook.md, "From sm80_ahead to sm80_wide").
"""

from typing import Any

import cutlass
import cutlass.cute as cute

from cutedsl_gemm.kernels.device.epilogue import like_c
from cutedsl_gemm.kernels.device.launch import OneTilePerBlock
from cutedsl_gemm.kernels.device.tile import issue_cp_async, tile_counts
from cutedsl_gemm.kernels.sm80.warp_mma import allocate_smem, store_accumulator, warp_mma


class Multistage(OneTilePerBlock):
    """One kernel for every M, N, K of a plan with several stages."""

    @cute.kernel
    def kernel(self, a: cute.Tensor, b: cute.Tensor, operands: Any, results: Any):
        plan, (bm, bn, bk) = self.plan, self.plan.tile
        thread = cute.arch.thread_idx()[0]
        c = like_c(plan.epilogue, results, (a.shape[0], b.shape[0]))
        tiles = tile_counts(c.shape, (bm, bn))
        m, n = plan.tile_coord(cute.arch.block_idx()[0], *tiles, cutlass.min)
        smem = allocate_smem(plan)  # (lines, BK, stages) of A, of B
        acc, load_fragments, multiply = warp_mma(plan, *smem, thread)

        def load(k_tile, whole):
            self.load((a, b), smem, (m, n, k_tile), thread, whole)

        for k_tile in cutlass.range_constexpr(plan.stages - 1):
            load(k_tile, False)
        self.prologue(load_fragments)
        whole = self.whole_rounds(a, b, (m, n))
        for k_tile in cutlass.range(whole, unroll=1):
            self.round(k_tile, load_fragments, multiply, load, True)
        for k_tile in cutlass.range(whole, cute.ceil_div(a.shape[1], bk), unroll=1):
            self.round(k_tile, load_fragments, multiply, load, False)
        store_accumulator(acc, (operands, results, c), plan, (m, n), thread)

    def prologue(self, load_fragments):
        """What comes before the first round: nothing, since each step loads its own fragments."""

    def round(self, k_tile, load_fragments, multiply, load, whole):
        """Multiply one k-tile; load the one `stages - 1` after it."""
        self.wait()
        load(k_tile + self.plan.stages - 1, whole)
        for step in range(self.plan.steps):
            load_fragments(step, k_tile % self.plan.stages)
            multiply(step)

    def wait(self):
        """Wait until the oldest k-tile in flight is in shared memory, for all threads."""
        cute.arch.cp_async_wait_group(self.plan.stages - 2)
        cute.arch.sync_threads()

    @cute.jit
    def load(self, operands, smem, coord, thread, whole: cutlass.Constexpr):
        """Issue the copies of a k-tile, if there is one; commit a group of them either way."""
        plan, (bm, bn, bk), (m, n, k_tile) = self.plan, self.plan.tile, coord
        (a, b), (sA, sB), stage = operands, smem, k_tile % plan.stages
        if cutlass.const_expr(whole):
            issue_cp_async(a, sA, plan.a, (bm, bk), (m, k_tile), stage, thread, True)
            issue_cp_async(b, sB, plan.b, (bn, bk), (n, k_tile), stage, thread, True)
        elif k_tile * bk < a.shape[1]:
            issue_cp_async(a, sA, plan.a, (bm, bk), (m, k_tile), stage, thread, False)
            issue_cp_async(b, sB, plan.b, (bn, bk), (n, k_tile), stage, thread, False)
        cute.arch.cp_async_commit_group()

    @cute.jit
    def whole_rounds(self, a, b, coord):
        """The number of rounds whose load no edge cuts; 0 for a tile at an edge of C."""
        (bm, bn, bk), (m, n) = self.plan.tile, coord
        count = cutlass.max(a.shape[1] // bk - (self.plan.stages - 1), 0)
        return count if ((m + 1) * bm <= a.shape[0]) & ((n + 1) * bn <= b.shape[0]) else 0
