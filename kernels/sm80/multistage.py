"""sm80 GEMM that loads ahead: serves `multistage`, and `raster`, which walks the tiles in groups.

    cp.async   │ k-block 0 │ k-block 1 │ k-block 2 │ k-block 3 │ …    stages - 1 k-blocks ahead
    warps                              │ multiply 0 │ multiply 1 │ …

One barrier a k-block: behind it, this block's bytes are there for all, and the stage that all have
read in the last round may be asked for again.
"""

import cutlass
import cutlass.cute as cute

from cutedsl_gemm.kernels import parts
from cutedsl_gemm.kernels.host import BlockATile
from cutedsl_gemm.kernels.sm80.parts import shared, store, warps


class Multistage(BlockATile):
    """One kernel for every M, N, K of a plan with several stages."""

    @cute.kernel
    def kernel(self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
        plan, (bm, bn, bk) = self.plan, self.plan.tile
        thread = cute.arch.thread_idx()[0]
        tiles = cute.ceil_div(c.shape[0], bm), cute.ceil_div(c.shape[1], bn)
        m, n = plan.raster(cute.arch.block_idx()[0], *tiles, cutlass.min)
        sA, sB = shared(plan)  # (lines, BK, stages) of A, of B
        acc, fetch, multiply = warps(plan, sA, sB, thread)
        for block in cutlass.range_constexpr(plan.stages - 1):
            self.ask(a, b, sA, sB, (m, n, block), thread)
        for block in cutlass.range(cute.ceil_div(a.shape[1], bk), unroll=1):
            cute.arch.cp_async_wait_group(plan.stages - 2)
            cute.arch.sync_threads()
            self.ask(a, b, sA, sB, (m, n, block + plan.stages - 1), thread)
            for k in cutlass.range_constexpr(plan.steps):
                fetch(k, block % plan.stages)
                multiply(k)
        store(acc, c, plan, (m, n), thread)

    @cute.jit
    def ask(self, a, b, sA, sB, coordinate, thread):
        """Ask for a k-block of A and of B, if there is one; a group of copies either way."""
        (_, _, bk), (_, _, block) = self.plan.tile, coordinate
        if block * bk < a.shape[1]:
            self.copies(a, b, sA, sB, coordinate, thread)
        cute.arch.cp_async_commit_group()

    def copies(self, a, b, sA, sB, coordinate, thread, *how):
        """The copies themselves."""
        plan, (bm, bn, bk), (m, n, block) = self.plan, self.plan.tile, coordinate
        stage = block % plan.stages
        parts.ask(a, sA[None, None, stage], plan.a, (bm, bk), (m, block), thread, *how)
        parts.ask(b, sB[None, None, stage], plan.b, (bn, bk), (n, block), thread, *how)
