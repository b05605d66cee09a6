"""sm80 GEMM on the tensor core, one k-block at a time: serves `mma_k8` and all up to `ldmatrix_x4`.

    block   bring k-block 0 │ barrier │ multiply │ barrier │ bring k-block 1 │ barrier │ …
    warp    shared memory ─ ldmatrix ▶ rA, rB ─ mma.m16n8 ▶ acc, for each step of the k-block

How much a step multiplies and where elements lie in shared memory is the plan's affair: only that
differs between the five.
"""

import cutlass
import cutlass.cute as cute

from cutedsl_gemm.kernels.device.launch import OneTilePerBlock
from cutedsl_gemm.kernels.device.tile import load_to_smem, tile_coord
from cutedsl_gemm.kernels.sm80.parts import shared, store, warps


class Mma(OneTilePerBlock):
    """One kernel for every M, N, K of a plan with one stage."""

    @cute.kernel
    def kernel(self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
        plan, (bm, bn, bk) = self.plan, self.plan.tile
        thread = cute.arch.thread_idx()[0]
        m, n = tile_coord(cute.arch.block_idx()[0], c, (bm, bn))
        sA, sB = shared(plan)  # (BM, BK, 1), (BN, BK, 1)
        acc, fetch, multiply = warps(plan, sA, sB, thread)
        for block in cutlass.range(cute.ceil_div(a.shape[1], bk), unroll=1):
            load_to_smem(a, sA[None, None, 0], plan.a.share, (bm, bk), (m, block), thread)
            load_to_smem(b, sB[None, None, 0], plan.b.share, (bn, bk), (n, block), thread)
            cute.arch.sync_threads()
            for k in cutlass.range_constexpr(plan.steps):
                fetch(k, 0)
                multiply(k)
            cute.arch.sync_threads()
        store(acc, c, plan, (m, n), thread)
