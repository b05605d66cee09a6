"""The Hopper (sm90) GEMM kernel: TMA loads into a pipeline of stages, wgmma out of it.

Who    warpgroup 0 is the producer. One of its warps issues the TMA loads of A and B; its registers
       go to the consumers. In a cluster, the blocks of a row share A and those of a column share B:
       each loads slices, multicasts them to all, and waits until all of them have read a stage.
       The other warpgroups, one to three, are consumers. They multiply and hold C in registers.
       The subclasses say how they divide the tiles, and how the epilogue stores C.

When   producer    waits until a stage is empty │ loads a k-tile into it │ …
       consumer    waits until a stage is full │ issues its wgmmas │ tests whether the next one is
                   full │ releases the stage before │ …
       A full mbarrier counts the bytes of a stage; an empty one counts the warps that have read it.
       The blocks of a cluster start together, and each ends when its own work is done: another
       block arrives on its mbarriers only where a load of its own still waits (`release_stage`).

Where  all layouts are the plan's, lowered: `plan.explain()` prints them. R is the number of tile
       rows that one consumer multiplies.
"""

from typing import Any, NamedTuple

import cutlass
import cutlass.cute as cute
from cuda.bindings.driver import CUstream
from cutlass import Float32, Int32, Int64
from cutlass.cute.nvgpu import OperandMajorMode, cpasync, warpgroup

from cutedsl_gemm.kernels.device import lower
from cutedsl_gemm.kernels.device.flags import wait_for_flag
from cutedsl_gemm.kernels.device.launch import Gemm
from cutedsl_gemm.kernels.device.opaque import opaque_true, wait_for_previous_launch
from cutedsl_gemm.kernels.device.smem import SmemAllocator
from cutedsl_gemm.kernels.device.tile import as_matrix, matrix_of, transposed
from cutedsl_gemm.kernels.plan.raster import ChunkOrder
from cutedsl_gemm.kernels.plan.smem import staged_layout
from cutedsl_gemm.kernels.plan.tile_scheduler import TileExtents
from cutedsl_gemm.kernels.plan.tma import ATOM_BYTES, EVICT_FIRST, EVICT_NORMAL
from cutedsl_gemm.kernels.sm90.launch_policy import pass_through_l2, uses_pdl
from cutedsl_gemm.kernels.sm90.pipeline import IN_FLIGHT, WAIT_EMPTY, WAIT_FULL
from cutedsl_gemm.kernels.sm90.plan import Sm90Plan


class TmaOperand(NamedTuple):
    """A or B: what the producer loads, and where the consumers read it."""

    tma: cute.CopyAtom
    gX: cute.Tensor  # (rows, columns, slices along M or N, slices along K), of a slice
    sX: cute.Tensor  # (BM or BN, BK, stages)
    policy: Int64  # the cache policy of the loads


class Operands(NamedTuple):
    """A and B; if A is gathered, also this GPU's rows of it, and the flags of all GPUs' rows."""

    a: TmaOperand
    b: TmaOperand
    own: Any = None  # a TmaOperand
    arrived: Any = None
    epoch: Any = None


class Sm90Gemm(Gemm):
    """One kernel for every M, N, K of a plan; a subclass gives what raises NotImplementedError."""

    def __init__(self, plan: Sm90Plan) -> None:
        self.plan, self.pipeline = plan, plan.pipeline
        self.dtype = lower.DTYPES[plan.dtype]
        # No cluster argument if a block is alone. Such blocks go sixteen in a row to the SMs of a
        # GPC, and neighbours ask L2 for the same tile at the same time. An explicit 1×1×1 scatters
        # them over the GPCs and costs 20 to 30 % at 128×128 (docs/performance).
        self.cluster = (plan.cluster_size, 1, 1) if plan.cluster_size > 1 else None

    def epilogue_storage(self):
        """The type of the epilogue's shared memory."""
        raise NotImplementedError

    def epilogue_tensors(self, storage, loaded, output):
        """What `consume` needs to store C; `loaded` are the mbarriers of what it loads."""
        raise NotImplementedError

    def consume(self, consumer, operands, epilogue, full, empty, extents):
        """The work of one consumer warpgroup."""
        raise NotImplementedError

    # The host

    def as_planned(self, a, b):
        """The plan's A (M, K) and B (N, K): of Cᵀ = Bᵀ · Aᵀ if operands are swapped.

        Of two matrices B, (2, K, N), the rows of both are one mode: ((N, 2), K). So are those of
        all matrices of a batch: A is ((M, L), K), and B ((N, L), K), or ((N, 2, L), K).
        """
        return self.plan.exchanged((as_matrix(a), transposed(b)))

    def c_as_planned(self, c):
        """The plan's C (M, N), or what has its extents: of Cᵀ if operands are swapped.

        Of a batch, it is ((M, L), N).
        """
        return transposed(c) if self.plan.swapped else as_matrix(c)

    @cute.jit
    def launch(
        self,
        a: cute.Tensor,  # (M, K); of a batch ((M, L), K)
        b: cute.Tensor,  # (N, K), or ((N, 2), K); of a batch ((N, L), K), or ((N, 2, L), K)
        tiles: Int32,  # of C; a cluster counts as one
        output: tuple[Any, ...],
        sms: Int32,
        stream: CUstream,
        gathered: tuple[Any, ...] = (),
        scattered: tuple[Any, ...] = (),
    ):
        """Launch A · B on `sms` multiprocessors; `output` is what the epilogue needs.

        If A is gathered, `gathered` is this GPU's rows of A, the flags of all GPUs' rows, this
        GPU's number, and the epoch. If C is scattered, `scattered` is this GPU's number, and how
        many rows each GPU has.

        If the launch overlaps the previous one (programmatic dependent launch), its blocks
        initialise their mbarriers, then wait.
        """
        plan = self.plan
        tma_a, gA = self.make_tma_load(a, plan.a)
        tma_b, gB = self.make_tma_load(b, plan.b)
        blocks = plan.tile_scheduler.blocks(tiles, sms, cute.ceil_div)
        m, n, k = (
            Int64(cute.size(matrix, mode=mode)) for matrix, mode in ((a, [0]), (b, [0]), (a, [1]))
        )
        if cutlass.const_expr(plan.batched):
            n = n // b.shape[0][-1]
        if cutlass.const_expr(plan.gathered):
            own, *rest = gathered
            gathered = (*self.make_tma_load(own, plan.a), *rest)
        policies = tuple(
            cutlass.select_(first, Int64(EVICT_FIRST), Int64(EVICT_NORMAL))
            for first in pass_through_l2(plan, m, n, k)
        )
        self.kernel(tma_a, gA, tma_b, gB, output, gathered, scattered, policies).launch(
            grid=(blocks, 1, 1),
            block=(plan.threads, 1, 1),
            cluster=self.cluster,
            smem=self.shared_storage().size_in_bytes(),
            # As CUTLASS's __launch_bounds__(threads, 1). Without it, eight plans take as long.
            min_blocks_per_mp=1,
            stream=stream,
            use_pdl=uses_pdl(plan, m, n, k, sms),
        )

    def make_tma_load(self, matrix, operand):
        """The TMA atom that loads one slice of an operand's tile, and the matrix as TMA sees it."""
        if operand.sharers > 1:
            load = cpasync.CopyBulkTensorTileG2SMulticastOp()
        else:
            load = cpasync.CopyBulkTensorTileG2SOp()
        return cpasync.make_tiled_tma_atom(
            load,
            matrix,
            lower.smem_layout(operand.slice_smem),
            self.plan.gmem_tiler(operand.slice_tiler),
        )

    def shared_storage(self):
        """Shared memory: the stages of A and B, the epilogue's, and their mbarriers."""
        plan, dtype = self.plan, self.dtype
        elements_a, elements_b = plan.stages * plan.a.elements, plan.stages * plan.b.elements

        @cute.struct
        class SharedStorage:
            a: cute.struct.Align[cute.struct.MemRange[dtype, elements_a], ATOM_BYTES]
            b: cute.struct.Align[cute.struct.MemRange[dtype, elements_b], ATOM_BYTES]
            epilogue: cute.struct.Align[self.epilogue_storage(), ATOM_BYTES]
            full: cute.struct.MemRange[Int64, plan.stages]
            empty: cute.struct.MemRange[Int64, plan.stages]
            loaded: cute.struct.MemRange[Int64, plan.loaded_panels]

        return SharedStorage

    # The kernel

    @cute.kernel
    def kernel(
        self,
        tma_a: cute.CopyAtom,
        gA: cute.Tensor,
        tma_b: cute.CopyAtom,
        gB: cute.Tensor,
        output: tuple[Any, ...],
        gathered: tuple[Any, ...],
        scattered: tuple[Any, ...],
        policies: tuple[Int64, Int64],  # the cache policies of the loads of A and B
    ):
        plan = self.plan
        warp_idx = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        shared = SmemAllocator().allocate(self.shared_storage())
        full, empty = shared.full.data_ptr(), shared.empty.data_ptr()  # (stages) each
        operands = Operands(
            self.tma_operand(plan.a, tma_a, gA, shared.a, policies[0]),
            self.tma_operand(plan.b, tma_b, gB, shared.b, policies[1]),
        )
        chunk_order = None
        if cutlass.const_expr(plan.gathered):
            tma_own, own, arrived, number, epoch = gathered
            own = self.tma_operand(plan.a, tma_own, own, shared.a, policies[0])
            chunk_order = ChunkOrder(number, self.cluster_rows(own.gX))
            operands = Operands(operands.a, operands.b, own, arrived, epoch)
        if cutlass.const_expr(plan.scattered):
            number, rows = scattered
            height = cute.ceil_div(rows, plan.cluster_tile[0])
            chunk_order = ChunkOrder(number + 1, height)  # own last
        extents = self.tile_extents(operands, chunk_order)
        loaded = shared.loaded.data_ptr()  # (loaded_panels)
        epilogue = self.epilogue_tensors(shared.epilogue, loaded, output)

        if warp_idx == 0:
            cpasync.prefetch_descriptor(tma_a)
            cpasync.prefetch_descriptor(tma_b)
            if cutlass.const_expr(plan.gathered):
                cpasync.prefetch_descriptor(operands.own.tma)
            self.init_mbarriers(full, empty, loaded)
        if cutlass.const_expr(plan.cluster_size > 1):
            self.cluster_sync()  # the other blocks' mbarriers are initialised, too
        else:
            cute.arch.sync_threads()
        first_tile = self.first_tile(extents)
        wait_for_previous_launch(*first_tile)
        if cutlass.const_expr(plan.splits == 1):
            # After the wait: then one launch waits at a time, not a chain of them.
            cute.arch.griddepcontrol_launch_dependents()
        self.run_roles(warp_idx, operands, epilogue, full, empty, extents, first_tile)

    def tma_operand(self, operand, tma, gX, storage, policy):
        """An operand in global memory, cut into slices, and its stages in shared memory."""
        gX = cute.local_tile(gX, self.plan.gmem_tiler(operand.slice_tiler), (None, None))
        sX = lower.smem_tensor(storage, staged_layout(operand.smem, self.plan.stages))
        return TmaOperand(tma, gX, sX, policy)

    @cute.jit
    def init_mbarriers(self, full, empty, loaded):
        """Full: one arrival and the bytes of a stage. Empty: one arrival of each reading warp.

        Loaded: one arrival and the bytes of a panel of C.
        """
        pipeline = self.pipeline
        with cute.arch.elect_one():
            for stage in cutlass.range_constexpr(pipeline.stages):
                cute.arch.mbarrier_init(full + stage, pipeline.mbarrier("full").arrivals)
                cute.arch.mbarrier_init(empty + stage, pipeline.mbarrier("empty").arrivals)
            for panel in cutlass.range_constexpr(self.plan.loaded_panels):
                cute.arch.mbarrier_init(loaded + panel, pipeline.mbarrier("loaded 0").arrivals)
        # Makes the mbarriers visible to the other blocks of a cluster, which arrive on them and
        # whose loads complete on them. It compiles to no instruction (DSL 4.8.1).
        cute.arch.mbarrier_init_fence()

    @cute.jit
    def run_roles(self, warp_idx, operands, epilogue, full, empty, extents, first_tile):
        """Each warpgroup takes its registers and its role."""
        if warp_idx < 4:
            cute.arch.setmaxregister_decrease(self.plan.producer_registers)
            if warp_idx == 0:
                self.produce(operands, full, empty, extents, first_tile)
        else:
            cute.arch.setmaxregister_increase(self.plan.consumer_registers)
            self.consume(warp_idx // 4 - 1, operands, epilogue, full, empty, extents)

    def tile_extents(self, operands, chunk_order):
        """C in cluster tiles, and K in k-tiles."""
        gA, gB = operands.a.gX, operands.b.gX
        across = self.plan.b.slices_of_each * self.plan.cluster[1]
        clusters_m, of_each = self.cluster_rows(gA), None
        if cutlass.const_expr(self.plan.batched):
            of_each = clusters_m
            clusters_m = of_each * gA.shape[2][-1]
        return TileExtents(
            clusters_m,
            cute.ceil_div(cute.size(gB, mode=[2, 0]), across),
            cute.ceil_div(cute.size(gA, mode=[3]), self.plan.a.slice_counts[1]),
            chunk_order,
            of_each,
        )

    def cluster_rows(self, gA):
        """How many rows of cluster tiles gA, or each matrix of it, has; gA is in slices."""
        return cute.ceil_div(
            cute.size(gA, mode=[2, 0]), self.plan.a.slices_of_each * self.plan.cluster[0]
        )

    def block_rank(self):
        """The rank of this block in its cluster."""
        return cute.arch.block_idx_in_cluster() if self.cluster else 0

    def cluster_and_count(self):
        """The number of this block's cluster, and the number of clusters in the grid."""
        size = self.plan.cluster_size
        return cute.arch.block_idx()[0] // size, cute.arch.grid_dim()[0] // size

    def tile_walk(self, k_tiles):
        """This block's first tile, the step to its next, and its k-tiles (begin, end)."""
        return self.plan.tile_scheduler.walk(*self.cluster_and_count(), k_tiles)

    def tile_coord(self, index, extents):
        """This block's tile (m, n) of the cluster's tile `index`."""
        scheduler = self.plan.tile_scheduler
        return scheduler.tile_coord(index, self.block_rank(), extents, cutlass.min)

    def first_tile(self, extents):
        """The first tile (m, n) of this block, and its k-tiles (begin, end)."""
        first, _, k_range = self.tile_walk(extents.k_tiles)
        return *self.tile_coord(first, extents), *k_range

    def operands_of(self, operands, m, extents):
        """The operands of the tiles in row m, and the row: of a batch, in its matrix."""
        if not self.plan.batched:
            return operands, m
        matrix, m = self.plan.tile_scheduler.matrix_of(m, extents)
        a, b = (each._replace(gX=matrix_of(each.gX, matrix)) for each in (operands.a, operands.b))
        return operands._replace(a=a, b=b), m

    def cluster_sync(self):
        """Wait until all blocks of the cluster are here, with their mbarriers initialised.

        The fence that follows their initialisation releases them, so the arrival is relaxed. A
        release would be a fence of all memory, which takes 0.2 µs.
        """
        cute.arch.cluster_arrive_relaxed()
        cute.arch.cluster_wait()

    @cute.jit
    def next_stage(self, stage, parity):
        """The stage of the next k-tile, and the parity of its phase, by counting up.

        `stage_and_parity` divides, which would stand between the wgmmas of two k-tiles.
        """
        stage += 1
        if stage == self.pipeline.stages:
            stage, parity = Int32(0), parity ^ 1
        return stage, parity

    # The producer

    @cute.jit
    def produce(self, operands, full, empty, extents, first_tile):
        """Load k-tile after k-tile, as fast as the consumers release stages."""
        clusters_m, clusters_n, k_tiles, chunk_order, _ = extents
        first, step, _ = self.tile_walk(k_tiles)
        m, n, k_begin, k_end = first_tile
        stage, parity = self.pipeline.stage_and_parity(Int32(0), WAIT_EMPTY.flipped)
        before = Int32(0)  # chunks of A before the last that has come; this GPU's own is here
        for tile in cutlass.range(first, extents.cluster_tiles, step, unroll=1):
            if cutlass.const_expr(self.plan.tile_scheduler.persistent):  # else it has one tile
                if tile > first:
                    m, n = self.tile_coord(tile, extents)
            if cutlass.const_expr(self.plan.gathered):
                if chunk_order.chunks_before(tile, clusters_n) > before:
                    before = chunk_order.chunks_before(tile, clusters_n)
                    self.wait_for_rows(operands, chunk_order.chunk(tile, clusters_m, clusters_n))
            of_tile, row = self.operands_of(operands, m, extents)
            for k in cutlass.range(k_begin, k_end, unroll=1):
                cute.arch.mbarrier_wait(empty + stage, parity)
                self.load_k_tile(of_tile, row, n, k, stage, full, chunk_order)
                stage, parity = self.next_stage(stage, parity)

    def load_k_tile(self, operands, m, n, k, stage, full, chunk_order=None):
        """Load A and B of k-tile k of tile (m, n) into a stage; its full mbarrier counts bytes."""
        with cute.arch.elect_one():
            cute.arch.mbarrier_arrive_and_expect_tx(full + stage, self.plan.stage_bytes)
        if self.plan.gathered:
            self.load_rows(operands, m, k, stage, full, chunk_order)
        else:
            self.issue_tma_load(self.plan.a, operands.a, m, k, stage, full)
        self.issue_tma_load(self.plan.b, operands.b, n, k, stage, full)

    @cute.jit
    def load_rows(self, operands, m, k, stage, full, chunk_order):
        """Load A of a k-tile of the tiles in row m from this GPU's own rows, or from those sent."""
        rows = chunk_order.height * self.plan.cluster[0]
        before = m - chunk_order.first * rows  # tile rows of this GPU before row m
        if before >= 0 and before < rows:
            self.issue_tma_load(self.plan.a, operands.own, before, k, stage, full)
        else:
            self.issue_tma_load(self.plan.a, operands.a, m, k, stage, full)

    @cute.jit
    def wait_for_rows(self, operands, chunk):
        """Wait until a chunk of A has come from another GPU.

        The copy of its rows is before that of the flag in the sender's stream, so that a load that
        acquires the flag has them. TMA reads them by another proxy, hence the fence.
        """
        wait_for_flag(operands.arrived.iterator + chunk, operands.epoch)
        cute.arch.fence_proxy("async")

    def issue_tma_load(self, operand, source, tile, k, stage, full):
        """Load this block's slices of an operand's k-tile into every block that shares it."""
        slices, options = [0], {"cache_policy": source.policy}
        if operand.sharers > 1:
            slices, mask = self.plan.multicast(operand, self.block_rank())
            options["mcast_mask"] = cutlass.Int16(mask)
        for count, index in enumerate(slices, 1):
            load = operand, source, tile, k, stage, full, index, options
            if count * operand.sharers <= operand.slices:
                self.load_slice(*load)
            else:
                self.load_slice_if(index < operand.slices, load)

    @cute.jit
    def load_slice_if(self, exists, load):
        """`load_slice`, if there is such a slice."""
        if exists:
            self.load_slice(*load)

    def load_slice(self, operand, source, tile, k, stage, full, index, options):
        """Load a slice of an operand's k-tile into its stage, in every block that shares it."""
        coord = *operand.slice_coord(index), 0
        sX = cute.local_tile(source.sX, (*operand.slice_shape, self.plan.stages), coord)
        # (box, stages), (box, slices along M or N, slices along K)
        sX, gX = lower.tma_partition(source.tma, sX, source.gX)
        gX = gX[(None, *operand.gmem_coord(tile, k, index))]
        cute.copy(source.tma, gX, sX[None, stage], tma_bar_ptr=full + stage, **options)

    # A consumer

    def make_mma(self):
        """wgmma m64nNk16 from shared memory, for one warpgroup: N are the consumer's columns."""
        major = {"K": OperandMajorMode.K, "MN": OperandMajorMode.MN}
        plan = self.plan
        op = warpgroup.MmaF16BF16Op(
            self.dtype,
            Float32,
            (64, plan.columns, 16),
            warpgroup.OperandSource.SMEM,
            major[plan.a.major],
            major[plan.b.major],
        )
        return cute.make_tiled_mma(op)

    def make_fragments(self, mma, consumer, operands):
        """A and B as shared-memory descriptors, and the accumulator in registers."""
        plan, thread = self.plan, mma.get_slice(0)
        m, n = plan.consumer_coord((0, 0), consumer % plan.consumers_per_tile)
        sA = cute.local_tile(operands.a.sX, (plan.rows, plan.tile[2], plan.stages), (m, 0, 0))
        sB = cute.local_tile(operands.b.sX, (plan.columns, plan.tile[2], plan.stages), (n, 0, 0))
        # sA (R, BK, stages), sB (columns of the consumer, BK, stages)
        rA = mma.make_fragment_A(thread.partition_A(sA))  # (wgmma, R/64, BK/16, stages)
        rB = mma.make_fragment_B(thread.partition_B(sB))  # (wgmma, 1, BK/16, stages)
        shape = mma.partition_shape_C((plan.rows, plan.columns))
        return rA, rB, cute.make_rmem_tensor(shape, Float32)  # (wgmma, R/64, 1)

    @cute.jit
    def mainloop(self, mma, rA, rB, acc, full, empty, first, k_tiles, reloaded, coord=()):
        """acc = the product of a tile, whose k-tiles are the block's `first` and following.

        `coord` is where it will be stored, to be computed before the first wait.

        One k-tile is always in flight. On return it is the last one: the caller waits for it, and
        releases its stage. The result is that stage, and whether a load awaits it.
        """
        end = first + k_tiles
        mma.set(warpgroup.Field.ACCUMULATE, False)
        last, parity = self.pipeline.stage_and_parity(first, WAIT_FULL.flipped)
        if opaque_true(*coord):
            cute.arch.mbarrier_wait(full + last, parity)
        self.multiply_k_tile(mma, rA, rB, acc, last)
        stage, parity = self.next_stage(last, parity)
        ready = self.peek(full, stage, parity, first + 1 < end)
        for k_tile in cutlass.range(first + 1, end, unroll=1):
            if not ready:
                cute.arch.mbarrier_wait(full + stage, parity)
            self.multiply_k_tile(mma, rA, rB, acc, stage)
            before, last = last, stage
            stage, parity = self.next_stage(stage, parity)
            ready = self.peek(full, stage, parity, k_tile + 1 < end)
            warpgroup.wait_group(IN_FLIGHT)
            self.release_stage(empty, before, k_tile - IN_FLIGHT < reloaded)
        return last, end - 1 < reloaded

    @cute.jit
    def peek(self, full, stage, parity, in_tile):
        """Whether the stage of the next k-tile is full already, if the tile has such a k-tile.

        The test is before `wait_group`, while the tensor core multiplies: if the stage is full, no
        wait stands between the wgmmas of two k-tiles.
        """
        ready = cutlass.Boolean(False)
        if in_tile:
            ready = cute.arch.mbarrier_test_wait(full + stage, parity)
        return ready

    @cute.jit
    def multiply_k_tile(self, mma, rA, rB, acc, stage):
        """Issue the wgmmas of the k-tile in a stage, BK/16 for each 64 rows."""
        warpgroup.fence()
        for k in cutlass.range_constexpr(self.plan.tile[2] // 16):
            cute.gemm(mma, acc, rA[None, None, k, stage], rB[None, None, k, stage], acc)
            mma.set(warpgroup.Field.ACCUMULATE, True)
        warpgroup.commit_group()

    def reloaded_k_tiles(self, extents):
        """How many of the block's k-tiles, from the first on, leave their stage to a later one."""
        first, step, (k_begin, k_end) = self.tile_walk(extents.k_tiles)
        tiles = cute.ceil_div(extents.cluster_tiles - first, step)
        return self.plan.reloaded_k_tiles(tiles * (k_end - k_begin))

    @cute.jit
    def release_stage(self, empty, stage, awaited):
        """This warp has read the stage: tell every block that loads into it, a lane each.

        In a cluster, only if a load awaits it: a block whose last load is issued may end, and its
        mbarriers with it. If the blocks waited for each other at the end instead, the kernel would
        take 0.45 µs more (docs/performance).
        """
        if cutlass.const_expr(self.plan.cluster_size == 1):
            with cute.arch.elect_one():
                cute.arch.mbarrier_arrive(empty + stage)
        elif awaited:
            lane = cute.arch.lane_idx()
            if self.plan.loader_mask(self.block_rank()) >> lane & 1 != 0:
                cute.arch.mbarrier_arrive(empty + stage, lane)
