"""Hopper (sm90) GEMM of one warpgroup: TMA and wgmma, a tile a block, no roles.

When   all four warps  │ ask for the first `stages` k-blocks │ wait for one, multiply, ask for
                       │ the one that goes into its place │ … │ store
       The tensor core waits at each k-block for its own last wgmma, and at the end for the store.

What is new against the sm80 rungs: TMA brings whole tiles, swizzled, without a register or an
address computed; wgmma reads them from shared memory.
"""

import cutlass
import cutlass.cute as cute
from cutlass.cute.nvgpu import warpgroup

from cutedsl_gemm.kernels.sm90.staged import Staged


class Single(Staged):
    """One warpgroup, one tile."""

    def grid(self, tiles, sms):
        """A block a tile."""
        return tiles

    @cute.jit
    def work_together(self, warp_idx, loads, way_out, full, empty, extent):
        """Load, multiply and store one tile."""
        tiles_m, tiles_n, k_blocks = extent
        m, n = self.place(cute.arch.block_idx()[0], tiles_m, tiles_n)
        mma = self.mma()
        rA, rB, acc = self.operands(mma, 0, loads)
        if warp_idx == 0:
            for k in cutlass.range(cutlass.min(self.plan.stages, k_blocks), unroll=1):
                self.ask(loads, m, n, k, k, full)
        acc.fill(0)
        mma.set(warpgroup.Field.ACCUMULATE, True)
        for k in cutlass.range(k_blocks, unroll=1):
            self.multiply_block(mma, rA, rB, acc, full, k)
            warpgroup.wait_group(0)
            cute.arch.sync_threads()  # all warps have read the stage
            if warp_idx == 0 and k + self.plan.stages < k_blocks:
                self.ask(loads, m, n, k + self.plan.stages, self.slot(k)[0], full)
        self.store(0, acc, way_out, m, n)
        self.drain()
