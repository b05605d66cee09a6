"""sm80 GEMM that loads ahead: serves `multistage`, and `raster`, which walks the tiles in groups.

    cp.async   │ k-block 0 │ k-block 1 │ k-block 2 │ k-block 3 │ …    stages - 1 k-blocks ahead
    warps                              │ multiply 0 │ multiply 1 │ …

One barrier a k-block: behind it, this block's bytes are there for all, and the stage that all have
read in the last round may be asked for again. What no edge cuts is asked for without looking for
one, which takes a fifth of the instructions (docs/performance).
"""

import cutlass
import cutlass.cute as cute

from cutedsl_gemm.kernels.device.launch import OneTilePerBlock
from cutedsl_gemm.kernels.device.tile import issue_cp_async
from cutedsl_gemm.kernels.sm80.parts import shared, store, warps


class Multistage(OneTilePerBlock):
    """One kernel for every M, N, K of a plan with several stages."""

    @cute.kernel
    def kernel(self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
        plan, (bm, bn, bk) = self.plan, self.plan.tile
        thread = cute.arch.thread_idx()[0]
        tiles = cute.ceil_div(c.shape[0], bm), cute.ceil_div(c.shape[1], bn)
        m, n = plan.raster(cute.arch.block_idx()[0], *tiles, cutlass.min)
        rings = shared(plan)  # (lines, BK, stages) of A, of B
        acc, fetch, multiply = warps(plan, *rings, thread)

        def ask(block, whole):
            self.ask((a, b), rings, (m, n, block), thread, whole)

        for block in cutlass.range_constexpr(plan.stages - 1):
            ask(block, False)
        self.start(fetch)
        whole = self.whole(a, b, (m, n))
        for block in cutlass.range(whole, unroll=1):
            self.round(block, fetch, multiply, ask, True)
        for block in cutlass.range(whole, cute.ceil_div(a.shape[1], bk), unroll=1):
            self.round(block, fetch, multiply, ask, False)
        store(acc, c, plan, (m, n), thread)

    def start(self, fetch):
        """What is done once before the first round: nothing."""

    def round(self, block, fetch, multiply, ask, whole):
        """One k-block, and the request for the one `stages - 1` behind it."""
        self.wait()
        ask(block + self.plan.stages - 1, whole)
        for step in range(self.plan.steps):
            fetch(step, block % self.plan.stages)
            multiply(step)

    def wait(self):
        """Behind it, the oldest k-block asked for has come, whoever brought it."""
        cute.arch.cp_async_wait_group(self.plan.stages - 2)
        cute.arch.sync_threads()

    @cute.jit
    def ask(self, operands, rings, coordinate, thread, whole: cutlass.Constexpr):
        """Ask for a k-block of A and of B, if there is one; a group of copies either way."""
        plan, (bm, bn, bk), (m, n, block) = self.plan, self.plan.tile, coordinate
        (a, b), (sA, sB), stage = operands, rings, block % plan.stages
        if cutlass.const_expr(whole):
            issue_cp_async(a, sA, plan.a, (bm, bk), (m, block), stage, thread, True)
            issue_cp_async(b, sB, plan.b, (bn, bk), (n, block), stage, thread, True)
        elif block * bk < a.shape[1]:
            issue_cp_async(a, sA, plan.a, (bm, bk), (m, block), stage, thread, False)
            issue_cp_async(b, sB, plan.b, (bn, bk), (n, block), stage, thread, False)
        cute.arch.cp_async_commit_group()

    @cute.jit
    def whole(self, a, b, tile):
        """Rounds that ask for a k-block which no edge cuts: in inner tiles, all but the last."""
        (bm, bn, bk), (m, n) = self.plan.tile, tile
        count = cutlass.max(a.shape[1] // bk - (self.plan.stages - 1), 0)
        return count if ((m + 1) * bm <= a.shape[0]) & ((n + 1) * bn <= b.shape[0]) else 0
