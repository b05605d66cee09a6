"""How the persistent sm90 GEMMs store: panels of 64 columns, registers → stmatrix → TMA.

Each consumer owns panels of shared memory, so no consumer waits for the other's store; a panel is
written again only after TMA has read it.
"""

import cutlass
import cutlass.cute as cute
from cuda.bindings.driver import CUstream
from cutlass import Int32, Int64
from cutlass.cute.nvgpu import cpasync, warp

from cutedsl_gemm.kernels.device import lower
from cutedsl_gemm.kernels.plan.checks import staged_layout
from cutedsl_gemm.kernels.sm90.gemm import Gemm
from cutedsl_gemm.kernels.sm90.mainloop import ROW, WARPGROUP
from cutedsl_gemm.kernels.sm90.plan import Plan
from layouts import cosize

# C leaves L2 first, so that the panels of A and B stay: up to 1.3 times as fast at K <= 256
# (docs/performance). The policy's encoding is CUTLASS's TMA::CacheHintSm90::EVICT_FIRST.
EVICT_FIRST = 0x12F0000000000000
# Named barriers, one a consumer; number 0 is __syncthreads.
PANEL = 1


class Staged(Gemm):
    """A persistent grid, whose blocks visit tile after tile; `consume` is left to the schedule."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        if plan.blocks > 1:
            self.cluster = (plan.blocks, 1, 1)

    @cute.jit
    def __call__(
        self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, sms: Int32, stream: CUstream
    ):
        """C (M, N) = A (M, K) · B (K, N) on at most `sms` multiprocessors."""
        panel = (self.plan.rows, ROW)
        store = cpasync.CopyBulkTensorTileS2GOp()
        outlet = cpasync.make_tiled_tma_atom(store, c, lower.smem(self.plan.staging), panel)
        self.launch(a, b, c, outlet, sms, stream)

    def grid(self, tiles, sms):
        """As few blocks as take the same number of waves.

        Those that would idle in the last wave only take power and L2 from the others: 1.01 to 1.05
        times as fast (docs/performance). No cluster argument: blocks then come sixteen in a row to
        the SMs of a GPC, and neighbours ask L2 for the same tile at the same time; an explicit
        1×1×1 scatters them over the GPCs and costs 20 to 30 % at 128×128 (docs/performance).
        """
        blocks = self.plan.blocks
        return cute.ceil_div(tiles, cute.ceil_div(tiles, sms // blocks)) * blocks

    def work(self, k_blocks):
        """First tile, tiles from one to the next, and k-blocks of this block."""
        blocks = self.plan.blocks
        return cute.arch.block_idx()[0] // blocks, cute.arch.grid_dim()[0] // blocks, (0, k_blocks)

    def storage(self):
        """The panels of C."""
        return cute.struct.MemRange[self.dtype, self.plan.staged * cosize(self.plan.staging)]

    def way_out(self, storage, outlet):
        """TMA's atom, the panels, and C (R, 64, tiles_m * sharing, tiles_n * panels)."""
        tma_c, gC = outlet
        sC = lower.tensor(
            storage, staged_layout(self.plan.staging, self.plan.staged)
        )  # (R, 64, staged)
        return tma_c, sC, cute.local_tile(gC, (self.plan.rows, ROW), (None, None))

    def stmatrix(self):
        """stmatrix.x4 by four warps: 64 × 16 elements at a time."""
        atom = cute.make_copy_atom(warp.StMatrix8x8x16bOp(False, 4), self.dtype)
        return cute.make_tiled_copy(atom, lower.layout(self.plan.store), (64, 16))

    @cute.jit
    def store(self, me, acc, way_out, m, n):
        """The accumulator to C, a panel of 64 columns at a time: registers → stmatrix → TMA."""
        plan, (tma_c, sC, gC) = self.plan, way_out
        elected = cute.arch.make_warp_uniform(cute.arch.warp_idx()) % 4 == 0
        stmatrix = self.stmatrix()
        # tC (8, R/64, 4, staged), values (8, R/64, 4, panels)
        tC = stmatrix.get_slice(cute.arch.thread_idx()[0] % WARPGROUP).partition_D(sC)
        values = cute.make_tensor(acc.iterator, lower.layout(plan.fragment))
        sC, gC = lower.tma_partition(tma_c, sC, gC)  # (box, staged), (box, tiles…, panels…)
        for panel in cutlass.range_constexpr(plan.panels):
            mine = me * plan.c_stages + panel % plan.c_stages
            rC = cute.make_rmem_tensor(values.shape[:3], self.dtype)
            rC.store(values[None, None, None, panel].load().to(self.dtype))
            if elected:
                # TMA has read this panel's last contents
                cute.arch.cp_async_bulk_wait_group(plan.c_stages - 1, read=True)
            cute.arch.barrier(barrier_id=PANEL + me, number_of_threads=WARPGROUP)
            cute.copy(stmatrix, rC, tC[None, None, None, mine])
            cute.arch.fence_proxy("async.shared", space="cta")  # what stmatrix wrote, TMA reads
            cute.arch.barrier(barrier_id=PANEL + me, number_of_threads=WARPGROUP)
            if elected:
                tile = gC[None, m, n * plan.panels + panel]
                cute.copy(tma_c, sC[None, mine], tile, cache_policy=Int64(EVICT_FIRST))
                cute.arch.cp_async_bulk_commit_group()

    @cute.jit
    def drain(self):
        """Shared memory must outlive the last store, and what the other blocks do to it."""
        if cute.arch.make_warp_uniform(cute.arch.warp_idx()) % 4 == 0:
            cute.arch.cp_async_bulk_wait_group(0, read=True)
        if cutlass.const_expr(self.plan.blocks > 1):
            self.meet()
