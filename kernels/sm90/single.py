"""Hopper (sm90) GEMM of one warpgroup: TMA and wgmma, one tile a block, no roles.

When   all four warps  │ load the first `stages` k-tiles │ wait for one, multiply it, load the one
                       │ that takes its stage │ … │ store
       The tensor core waits at each k-tile for its own last wgmma, and at the end for the store.

New    against the sm80 rungs: TMA loads whole tiles, swizzled, with no registers and no address
       arithmetic; wgmma reads them from shared memory.
"""

import cutlass
import cutlass.cute as cute
from cutlass.cute.nvgpu import warpgroup

from cutedsl_gemm.kernels.sm90.epilogue import PanelGemm
from cutedsl_gemm.kernels.sm90.pipeline import WAIT_FULL


class Single(PanelGemm):
    """One warpgroup computes one tile."""

    @cute.jit
    def run_roles(self, warp_idx, operands, epilogue, full, empty, extents, first_tile):
        """The only role: load, multiply and store one tile."""
        k_tiles = extents.k_tiles
        m, n, _, _ = first_tile
        mma = self.make_mma()
        rA, rB, acc = self.make_fragments(mma, 0, operands)
        if warp_idx == 0:
            for k in cutlass.range(cutlass.min(self.plan.stages, k_tiles), unroll=1):
                self.load_k_tile(operands, m, n, k, k, full)
        self.load(0, epilogue, m, n)
        read = self.read(epilogue, m, n)
        acc.fill(0)
        mma.set(warpgroup.Field.ACCUMULATE, True)
        for k in cutlass.range(k_tiles, unroll=1):
            stage, parity = self.pipeline.stage_and_parity(k, WAIT_FULL.flipped)
            cute.arch.mbarrier_wait(full + stage, parity)
            self.multiply_k_tile(mma, rA, rB, acc, stage)
            warpgroup.wait_group(0)
            cute.arch.sync_threads()  # all warps have read the stage
            if warp_idx == 0 and k + self.plan.stages < k_tiles:
                self.load_k_tile(operands, m, n, k + self.plan.stages, stage, full)
        self.store(0, acc, epilogue, read, m, n, 0)
        self.wait_for_stores()
