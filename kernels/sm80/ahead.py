"""sm80 GEMM that loads ahead twice: serves `ahead` and the rungs above it.

    cp.async   │ k-block b + stages - 1 asked for │ …                    global ▶ shared memory
    ldmatrix   │ step 1 │ step 2 │ step 3 ┃ step 0 of b + 1 │ …          shared memory ▶ registers
    mma        │ step 0 │ step 1 │ step 2 ┃ step 3          │ …

The barrier ┃ of a k-block stands before its last step: behind it the next block's bytes are there
for all, this block's have been read by all, and the warps still have a step to multiply.
"""

import cutlass
import cutlass.cute as cute

from cutedsl_gemm.kernels.sm80.multistage import Multistage
from cutedsl_gemm.kernels.sm80.parts import shared, store, warps


class Ahead(Multistage):
    """One kernel for every M, N, K of a plan whose fragments are loaded a step ahead."""

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
        cute.arch.cp_async_wait_group(plan.stages - 2)
        cute.arch.sync_threads()
        fetch(0, 0)
        blocks = cute.ceil_div(a.shape[1], bk)
        whole = self.whole(a, b, (m, n))
        for block in cutlass.range(whole, unroll=1):
            for k in cutlass.range_constexpr(plan.steps):
                self.load(fetch, block, k)
                if cutlass.const_expr(k < plan.steps - 1):
                    asked, turn = (m, n, block + plan.stages - 1), (k, plan.steps - 1)
                    self.copies(a, b, sA, sB, asked, thread, True, turn)
                if cutlass.const_expr(k == plan.steps - 2):
                    cute.arch.cp_async_commit_group()
                multiply(k)
        for block in cutlass.range(whole, blocks, unroll=1):
            for k in cutlass.range_constexpr(plan.steps):
                self.load(fetch, block, k)
                if cutlass.const_expr(k == 0):
                    self.ask(a, b, sA, sB, (m, n, block + plan.stages - 1), thread)
                multiply(k)
        store(acc, c, plan, (m, n), thread)

    def load(self, fetch, block, k):
        """The fragments of the step behind `k`; before those of the next k-block, the barrier."""
        if k < self.plan.steps - 1:
            return fetch(k + 1, block % self.plan.stages)
        cute.arch.cp_async_wait_group(self.plan.stages - 2)
        cute.arch.sync_threads()
        fetch(0, (block + 1) % self.plan.stages)

    @cute.jit
    def whole(self, a, b, tile):
        """k-blocks that ask for one that no edge cuts: all but the last few, in inner tiles."""
        (bm, bn, bk), (m, n) = self.plan.tile, tile
        count = cutlass.max(a.shape[1] // bk - (self.plan.stages - 1), 0)
        return count if ((m + 1) * bm <= a.shape[0]) & ((n + 1) * bn <= b.shape[0]) else 0
