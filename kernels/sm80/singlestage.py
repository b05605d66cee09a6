"""sm80 GEMM with one stage: serves `mma_k8` and the rungs up to `ldmatrix_x4`.

    block   load k-tile 0 │ barrier │ multiply │ barrier │ load k-tile 1 │ barrier │ …
    warp    shared memory ─ ldmatrix ▶ rA, rB ─ mma.m16n8 ▶ acc, for each step of the k-tile

The five rungs differ only in their plans: how much a step multiplies, and where the elements are in
shared memory.
"""

from typing import Any

import cutlass
import cutlass.cute as cute

from cutedsl_gemm.kernels.device.epilogue import like_c
from cutedsl_gemm.kernels.device.launch import OneTilePerBlock
from cutedsl_gemm.kernels.device.tile import load_to_smem, tile_counts
from cutedsl_gemm.kernels.plan.raster import row_by_row
from cutedsl_gemm.kernels.sm80.warp_mma import allocate_smem, store_accumulator, warp_mma


class Singlestage(OneTilePerBlock):
    """One kernel for every M, N, K of a plan with one stage."""

    @cute.kernel
    def kernel(self, a: cute.Tensor, b: cute.Tensor, operands: Any, results: Any):
        plan, (bm, bn, bk) = self.plan, self.plan.tile
        thread = cute.arch.thread_idx()[0]
        c = like_c(plan.epilogue, results, (a.shape[0], b.shape[0]))
        m, n = row_by_row(cute.arch.block_idx()[0], *tile_counts(c.shape, (bm, bn)))
        sA, sB = allocate_smem(plan)  # (BM, BK, 1), (BN, BK, 1)
        acc, load_fragments, multiply = warp_mma(plan, sA, sB, thread)
        for k_tile in cutlass.range(cute.ceil_div(a.shape[1], bk), unroll=1):
            load_to_smem(a, sA[None, None, 0], plan.a.copy, (bm, bk), (m, k_tile), thread)
            load_to_smem(b, sB[None, None, 0], plan.b.copy, (bn, bk), (n, k_tile), thread)
            cute.arch.sync_threads()
            for step in cutlass.range_constexpr(plan.steps):
                load_fragments(step, 0)
                multiply(step)
            cute.arch.sync_threads()
        store_accumulator(acc, (operands, results, c), plan, (m, n), thread)
