"""What the Hopper (sm90) GEMMs share: TMA loads into a ring, wgmma out of it.

Who    warpgroup 0: producer. One warp asks TMA for the k-blocks of A and B; its registers go to the
       others (40 / 232). In a cluster of two blocks each brings half of what both read, A or B,
       to both (multicast), and waits until the consumers of both have read a stage.
       warpgroups 1, 2: consumers. They hold C in registers and multiply. How they divide the tiles
       among them, and how the product leaves, is for the kernels that are made of this one.

Where  every layout below is the plan's, lowered: `plan.explain()` prints them. R is the rows of a
       tile that one consumer multiplies.
"""

from typing import Any

import cutlass
import cutlass.cute as cute
from cuda.bindings.driver import CUstream
from cutlass import Float32, Int32, Int64
from cutlass.cute.nvgpu import OperandMajorMode, cpasync, warpgroup
from cutlass.memory import SmemAllocator

from cutedsl_gemm.kernels.device import lower
from cutedsl_gemm.kernels.device.tile import tile_count
from cutedsl_gemm.kernels.plan.checks import staged_layout
from cutedsl_gemm.kernels.plan.tma import ATOM_BYTES
from cutedsl_gemm.kernels.sm90.mainloop import (
    CONSUMER_REGISTERS,
    PRODUCER_REGISTERS,
    Mainloop,
)


class Gemm:
    """One kernel for every M, N, K of a plan; what raises NotImplementedError is to be made."""

    plan: Any
    cluster: tuple[int, int, int] | None = None  # blocks of a cluster

    def __init__(self, plan: Mainloop) -> None:
        self.plan = plan
        self.dtype = lower.DTYPES[plan.dtype]

    def grid(self, tiles, sms):
        """Blocks to launch."""
        raise NotImplementedError

    def work(self, k_blocks):
        """First tile of this block, tiles from one to the next, and (first, last + 1) k-block."""
        raise NotImplementedError

    def storage(self):
        """Shared memory of the way out."""
        raise NotImplementedError

    def way_out(self, storage, outlet):
        """Both as the device sees them."""
        raise NotImplementedError

    def consume(self, me, loads, way_out, full, empty, extent):
        """What consumer `me` does."""
        raise NotImplementedError

    @cute.jit
    def launch(
        self,
        a: cute.Tensor,
        b: cute.Tensor,
        c: cute.Tensor,
        outlet: tuple[Any, ...],
        sms: Int32,
        stream: CUstream,
    ):
        """A (M, K) · B (K, N) of a device with `sms` multiprocessors, into what was made of C.

        A launch that needs at most half of them may come before the one in front of it has ended
        (programmatic dependent launch): its blocks make their barriers meanwhile, and wait. 512³
        takes 2.9 µs so, not 3.4. The blocks of a larger one would come wherever a multiprocessor
        falls free, and the neighbours of a GPC no longer ask L2 for the same tile at the same time:
        595 TFLOP/s, not 776, at 8448×9216×1024 (docs/performance).
        """
        plan, (bm, bn, _) = self.plan, self.plan.tile
        down, across = plan.cluster
        b = cute.make_tensor(b.iterator, cute.select(b.layout, mode=[1, 0]))  # (N, K)
        tma_a, gA = self.way_in(a, plan.a)
        tma_b, gB = self.way_in(b, plan.b)
        tiles = tile_count(c, (bm * down, bn * across))
        blocks = self.grid(tiles, sms)
        self.kernel(tma_a, gA, tma_b, gB, outlet).launch(
            grid=(blocks, 1, 1),
            block=(plan.threads, 1, 1),
            cluster=self.cluster,
            smem=self.shared().size_in_bytes(),
            min_blocks_per_mp=1,  # without it ptxas drops setmaxnreg (C7508)
            stream=stream,
            use_pdl=blocks * 2 <= sms,
        )

    def way_in(self, matrix, operand):
        """TMA's way to what one block brings of an operand."""
        if operand.parts > 1:
            load = cpasync.CopyBulkTensorTileG2SMulticastOp()
        else:
            load = cpasync.CopyBulkTensorTileG2SOp()
        return cpasync.make_tiled_tma_atom(load, matrix, lower.smem(operand.part), operand.box)

    def shared(self):
        """Shared memory: the rings of A and B, the way out, two mbarriers a stage."""
        plan, dtype = self.plan, self.dtype

        @cute.struct
        class Shared:
            a: cute.struct.Align[
                cute.struct.MemRange[dtype, plan.stages * plan.a.elements], ATOM_BYTES
            ]
            b: cute.struct.Align[
                cute.struct.MemRange[dtype, plan.stages * plan.b.elements], ATOM_BYTES
            ]
            out: cute.struct.Align[self.storage(), ATOM_BYTES]
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
        outlet: tuple[Any, ...],
    ):
        plan, (down, across) = self.plan, self.plan.cluster
        warp_idx = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        shared = SmemAllocator().allocate(self.shared())
        full, empty = shared.full.data_ptr(), shared.empty.data_ptr()
        sA = lower.tensor(shared.a, staged_layout(plan.a.smem, plan.stages))  # (BM, BK, stages)
        sB = lower.tensor(shared.b, staged_layout(plan.b.smem, plan.stages))  # (BN, BK, stages)
        gA = cute.local_tile(gA, plan.a.box, (None, None))  # (BM/parts, BK, parts_m, k_blocks)
        gB = cute.local_tile(gB, plan.b.box, (None, None))  # (BN/parts, BK, parts_n, k_blocks)
        extent = (
            cute.ceil_div(cute.size(gA, mode=[2]), plan.a.parts * down),  # in tiles of a cluster
            cute.ceil_div(cute.size(gB, mode=[2]), plan.b.parts * across),
            cute.size(gA, mode=[3]),
        )
        way_out = self.way_out(shared.out, outlet)

        if warp_idx == 0:
            cpasync.prefetch_descriptor(tma_a)
            cpasync.prefetch_descriptor(tma_b)
            with cute.arch.elect_one():
                for stage in cutlass.range_constexpr(plan.stages):
                    cute.arch.mbarrier_init(full + stage, 1)
                    readers = 4 * plan.sharing * plan.blocks  # warps
                    cute.arch.mbarrier_init(empty + stage, readers)
            cute.arch.mbarrier_init_fence()
        if cutlass.const_expr(plan.blocks > 1):
            self.meet()  # the other block's barriers are made, too
        else:
            cute.arch.sync_threads()
        cute.arch.griddepcontrol_wait()  # before it, no byte of global memory is touched
        if cutlass.const_expr(plan.splits == 1):
            # Behind the wait: one launch waits, and no chain of them.
            cute.arch.griddepcontrol_launch_dependents()
        loads = (tma_a, gA, sA, tma_b, gB, sB)
        self.work_together(warp_idx, loads, way_out, full, empty, extent)

    @cute.jit
    def work_together(self, warp_idx, loads, way_out, full, empty, extent):
        """The producer and the consumers."""
        if warp_idx < 4:
            cute.arch.setmaxregister_decrease(PRODUCER_REGISTERS)
            if warp_idx == 0:
                self.load(loads, full, empty, extent)
        else:
            cute.arch.setmaxregister_increase(CONSUMER_REGISTERS)
            self.consume(warp_idx // 4 - 1, loads, way_out, full, empty, extent)

    def rank(self):
        """The number of this block in its cluster."""
        return cute.arch.block_idx_in_cluster() if self.cluster else 0

    def place(self, tile, tiles_m, tiles_n):
        """The tile (m, n) of C that is this block's of a cluster's."""
        rank = self.rank() if self.plan.blocks > 1 else 0
        return self.plan.place(tile, rank, tiles_m, tiles_n, cutlass.min)

    def meet(self):
        """All blocks of the cluster have come here, and see what the others wrote."""
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()

    def slot(self, block):
        """Stage and phase parity of the k-block number `block` in the ring."""
        return block % self.plan.stages, (block // self.plan.stages) % 2

    @cute.jit
    def load(self, loads, full, empty, extent):
        """The producer warp: k-blocks into the ring, as fast as consumers free its stages."""
        tiles_m, tiles_n, k_blocks = extent
        first, step, (k_first, k_last) = self.work(k_blocks)
        block = Int32(0)
        for tile in cutlass.range(first, tiles_m * tiles_n, step, unroll=1):
            m, n = self.place(tile, tiles_m, tiles_n)
            count = k_last - k_first
            k = k_first + self.plan.start(n, tiles_m, count, cutlass.min)
            for _ in cutlass.range(count, unroll=1):
                stage, parity = self.slot(block)
                cute.arch.mbarrier_wait(empty + stage, parity ^ 1)
                self.ask(loads, m, n, k, stage, full)
                block += 1
                k += 1
                if k == k_last:
                    k = k_first

    def ask(self, loads, m, n, k, stage, full):
        """Have TMA bring a k-block of a tile into a stage; its full barrier counts the bytes."""
        tma_a, gA, sA, tma_b, gB, sB = loads
        with cute.arch.elect_one():
            cute.arch.mbarrier_arrive_and_expect_tx(full + stage, self.plan.stage_bytes)
        self.bring(self.plan.a, tma_a, gA, sA, m, k, stage, full)
        self.bring(self.plan.b, tma_b, gB, sB, n, k, stage, full)

    def bring(self, operand, tma, matrix, ring, tile, k, stage, full):
        """This block's part of a k-block, into its own shared memory or that of all who share."""
        parts, part, how = operand.parts, 0, {}
        if parts > 1:
            part, how = self.rank(), {"mcast_mask": cutlass.Int16((1 << parts) - 1)}
        mine = cute.local_tile(ring, (*operand.box, self.plan.stages), (part, 0, 0))
        mine, matrix = lower.tma_partition(tma, mine, matrix)  # (box, stages), (box, parts…, k…)
        source = matrix[None, tile * parts + part, k]
        cute.copy(tma, source, mine[None, stage], tma_bar_ptr=full + stage, **how)

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

    def operands(self, mma, me, loads):
        """The accumulator, and not registers but descriptors of shared memory."""
        plan, thread = self.plan, mma.get_slice(0)
        _, _, sA, _, _, sB = loads
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
        """This warp has read the k-block: its stage may be loaded again, by all who load it."""
        stage, _ = self.slot(block)
        with cute.arch.elect_one():
            if cutlass.const_expr(self.plan.blocks > 1):
                for peer in cutlass.range_constexpr(self.plan.blocks):
                    cute.arch.mbarrier_arrive(empty + stage, peer)
            else:
                cute.arch.mbarrier_arrive(empty + stage)
