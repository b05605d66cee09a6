"""What the Hopper (sm90) GEMMs share: TMA loads, wgmma out of shared memory, TMA stores.

Who    warpgroup 0: producer. One warp asks TMA for the k-blocks of A and B; its registers go to the
       others (40 / 232).
       warpgroups 1, 2: consumers. They hold C in registers and multiply; how they divide the tiles
       among them is the schedule, `consume`: sm90/pingpong.py and sm90/cooperative.py.

Where  every layout below is the plan's, lowered: `plan.explain()` prints them. R is the rows of a
       tile that one consumer multiplies.

C leaves in panels of 64 columns. Each consumer owns panels of shared memory, so no consumer waits
for the other's store; a panel is written again only after TMA has read it.
"""

import cutlass
import cutlass.cute as cute
from cuda.bindings.driver import CUstream
from cutlass import Float32, Int32, Int64
from cutlass.cute.nvgpu import OperandMajorMode, cpasync, warp, warpgroup
from cutlass.memory import SmemAllocator

from cutedsl_gemm.kernels import lower
from cutedsl_gemm.kernels.plan import ring
from cutedsl_gemm.kernels.sm90.mainloop import (
    CONSUMER_REGISTERS,
    CONSUMERS,
    PRODUCER_REGISTERS,
    ROW,
    WARPGROUP,
)
from cutedsl_gemm.kernels.sm90.plan import Plan
from cutedsl_gemm.kernels.tma import ATOM
from layouts import cosize

THREADS = (1 + CONSUMERS) * WARPGROUP
# C leaves L2 first, so that the panels of A and B stay: 1.1 to 1.2 times as fast at K <= 256
# (docs/performance). The policy's encoding is CUTLASS's TMA::CacheHintSm90::EVICT_FIRST.
EVICT_FIRST = 0x12F0000000000000
# Named barriers; number 0 is __syncthreads.
PANEL = 1  # 1 and 2: the panels of consumer 0, of consumer 1
TURN = 3  # 3 and 4: the tensor core is consumer 0's, consumer 1's


class Gemm:
    """One kernel for every M, N, K of a plan; `consume` is left to the schedule."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.dtype = lower.DTYPES[plan.dtype]

    @cute.jit
    def __call__(
        self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, sms: Int32, stream: CUstream
    ):
        """C (M, N) = A (M, K) · B (K, N) on at most `sms` multiprocessors."""
        plan, (bm, bn, bk) = self.plan, self.plan.tile
        b = cute.make_tensor(b.iterator, cute.select(b.layout, mode=[1, 0]))  # (N, K)
        load, store = cpasync.CopyBulkTensorTileG2SOp(), cpasync.CopyBulkTensorTileS2GOp()
        tma_a, gA = cpasync.make_tiled_tma_atom(load, a, lower.smem(plan.a.smem), (bm, bk))
        tma_b, gB = cpasync.make_tiled_tma_atom(load, b, lower.smem(plan.b.smem), (bn, bk))
        tma_c, gC = cpasync.make_tiled_tma_atom(
            store, c, lower.smem(plan.staging), (plan.rows, ROW)
        )
        tiles = cute.ceil_div(c.shape[0], bm) * cute.ceil_div(c.shape[1], bn)
        # As few blocks as take the same number of waves: those that would idle in the last one only
        # take power and L2 from the others (1.01 to 1.05 times as fast, docs/performance).
        blocks = cute.ceil_div(tiles, cute.ceil_div(tiles, sms))
        # No cluster argument: blocks then come sixteen in a row to the SMs of a GPC, and neighbours
        # ask L2 for the same tile at the same time; an explicit 1×1×1 scatters them over the GPCs
        # and costs 20 to 30 % at 128×128 (docs/performance).
        self.kernel(tma_a, gA, tma_b, gB, tma_c, gC).launch(
            grid=(blocks, 1, 1),
            block=(THREADS, 1, 1),
            smem=self.shared().size_in_bytes(),
            min_blocks_per_mp=1,  # without it ptxas drops setmaxnreg (C7508)
            stream=stream,
        )

    def shared(self):
        """Shared memory: the rings of A and B, the panels of C, two mbarriers a stage."""
        plan, dtype = self.plan, self.dtype

        @cute.struct
        class Shared:
            a: cute.struct.Align[cute.struct.MemRange[dtype, plan.stages * plan.a.elements], ATOM]
            b: cute.struct.Align[cute.struct.MemRange[dtype, plan.stages * plan.b.elements], ATOM]
            c: cute.struct.Align[
                cute.struct.MemRange[dtype, plan.staged * cosize(plan.staging)], ATOM
            ]
            full: cute.struct.MemRange[Int64, plan.stages]
            empty: cute.struct.MemRange[Int64, plan.stages]

        return Shared

    @cute.kernel
    def kernel(
        self,
        tma_a: cute.CopyAtom,
        gA: cute.Tensor,
        tma_b: cute.CopyAtom,
        gB: cute.Tensor,
        tma_c: cute.CopyAtom,
        gC: cute.Tensor,
    ):
        plan, (bm, bn, bk) = self.plan, self.plan.tile
        warp_idx = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        shared = SmemAllocator().allocate(self.shared())
        full, empty = shared.full.data_ptr(), shared.empty.data_ptr()
        sA = lower.tensor(shared.a, ring(plan.a.smem, plan.stages))  # (BM, BK, stages)
        sB = lower.tensor(shared.b, ring(plan.b.smem, plan.stages))  # (BN, BK, stages)
        sC = lower.tensor(shared.c, ring(plan.staging, plan.staged))  # (R, 64, staged)
        gA = cute.local_tile(gA, (bm, bk), (None, None))  # (BM, BK, tiles_m, k_blocks)
        gB = cute.local_tile(gB, (bn, bk), (None, None))  # (BN, BK, tiles_n, k_blocks)
        # (R, 64, tiles_m * sharing, tiles_n * panels)
        gC = cute.local_tile(gC, (plan.rows, ROW), (None, None))
        extent = (cute.size(gA, mode=[2]), cute.size(gB, mode=[2]), cute.size(gA, mode=[3]))

        if warp_idx == 0:
            for atom in (tma_a, tma_b, tma_c):
                cpasync.prefetch_descriptor(atom)
            with cute.arch.elect_one():
                for stage in cutlass.range_constexpr(plan.stages):
                    cute.arch.mbarrier_init(full + stage, 1)
                    cute.arch.mbarrier_init(empty + stage, 4 * plan.sharing)  # warps that read
            cute.arch.mbarrier_init_fence()
        cute.arch.sync_threads()

        if warp_idx < 4:
            cute.arch.setmaxregister_decrease(PRODUCER_REGISTERS)
            if warp_idx == 0:
                self.load(tma_a, gA, sA, tma_b, gB, sB, full, empty, extent)
        else:
            cute.arch.setmaxregister_increase(CONSUMER_REGISTERS)
            me = warp_idx // 4 - 1
            self.consume(me, sA, sB, tma_c, sC, gC, full, empty, extent)
            if warp_idx % 4 == 0:
                # shared memory must outlive the last store
                cute.arch.cp_async_bulk_wait_group(0, read=True)

    def slot(self, block):
        """Stage and phase parity of the k-block number `block` in the ring."""
        return block % self.plan.stages, (block // self.plan.stages) % 2

    @cute.jit
    def load(self, tma_a, gA, sA, tma_b, gB, sB, full, empty, extent):
        """The producer warp: k-blocks into the ring, as fast as consumers free its stages."""
        tiles_m, tiles_n, k_blocks = extent
        sA, gA = lower.tma_partition(tma_a, sA, gA)  # (box, stages), (box, tiles_m, k_blocks)
        sB, gB = lower.tma_partition(tma_b, sB, gB)
        first, step = cute.arch.block_idx()[0], cute.arch.grid_dim()[0]
        block = Int32(0)
        for tile in cutlass.range(first, tiles_m * tiles_n, step, unroll=1):
            m, n = self.plan.raster(tile, tiles_m, tiles_n, cutlass.min)
            for k in cutlass.range(k_blocks, unroll=1):
                stage, parity = self.slot(block)
                cute.arch.mbarrier_wait(empty + stage, parity ^ 1)
                with cute.arch.elect_one():
                    cute.arch.mbarrier_arrive_and_expect_tx(full + stage, self.plan.stage_bytes)
                cute.copy(tma_a, gA[None, m, k], sA[None, stage], tma_bar_ptr=full + stage)
                cute.copy(tma_b, gB[None, n, k], sB[None, stage], tma_bar_ptr=full + stage)
                block += 1

    def mma(self):
        """wgmma m64nBNk16 from shared memory, for one warpgroup."""
        major = {"K": OperandMajorMode.K, "MN": OperandMajorMode.MN}
        plan = self.plan
        op = warpgroup.MmaF16BF16Op(
            self.dtype,
            Float32,
            (64, plan.tile[1], 16),
            warpgroup.OperandSource.SMEM,
            major[plan.a.major],
            major[plan.b.major],
        )
        return cute.make_tiled_mma(op)

    def operands(self, mma, me, sA, sB):
        """The accumulator, and not registers but descriptors of shared memory."""
        plan, thread = self.plan, mma.get_slice(0)
        mine = (plan.rows, plan.tile[2], plan.stages)
        sA = cute.local_tile(sA, mine, (me % plan.sharing, 0, 0))  # (R, BK, stages)
        rA = mma.make_fragment_A(thread.partition_A(sA))  # (wgmma, R/64, BK/16, stages)
        rB = mma.make_fragment_B(thread.partition_B(sB))  # (wgmma, 1, BK/16, stages)
        shape = mma.partition_shape_C((plan.rows, plan.tile[1]))
        return rA, rB, cute.make_rmem_tensor(shape, Float32)

    @cute.jit
    def multiply(self, mma, rA, rB, acc, full, empty, block, k_blocks):
        """acc = the tile's product, all but the last k-block complete and released.

        One k-block is always in flight.
        """
        mma.set(warpgroup.Field.ACCUMULATE, False)
        self.multiply_block(mma, rA, rB, acc, full, block)
        for later in cutlass.range(block + 1, block + k_blocks, unroll=1):
            self.multiply_block(mma, rA, rB, acc, full, later)
            warpgroup.wait_group(1)
            self.release(empty, later - 1)

    @cute.jit
    def multiply_block(self, mma, rA, rB, acc, full, block):
        """Issue the wgmmas of one k-block, BK/16 for each 64 rows."""
        stage, parity = self.slot(block)
        cute.arch.mbarrier_wait(full + stage, parity)
        warpgroup.fence()
        for k in cutlass.range_constexpr(self.plan.tile[2] // 16):
            cute.gemm(mma, acc, rA[None, None, k, stage], rB[None, None, k, stage], acc)
            mma.set(warpgroup.Field.ACCUMULATE, True)
        warpgroup.commit_group()

    @cute.jit
    def release(self, empty, block):
        """This warp has read the k-block: its stage may be loaded again."""
        stage, _ = self.slot(block)
        with cute.arch.elect_one():
            cute.arch.mbarrier_arrive(empty + stage)

    def stmatrix(self):
        """stmatrix.x4 by four warps: 64 × 16 elements at a time."""
        atom = cute.make_copy_atom(warp.StMatrix8x8x16bOp(False, 4), self.dtype)
        return cute.make_tiled_copy(atom, lower.layout(self.plan.store), (64, 16))

    @cute.jit
    def store(self, me, acc, tma_c, sC, gC, m, n):
        """The accumulator to C, a panel of 64 columns at a time: registers → stmatrix → TMA."""
        plan = self.plan
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
