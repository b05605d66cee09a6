"""Hopper (sm90) split GEMM: a cluster of blocks divides the K of one tile.

When   block 0   │ multiply k-blocks 0 … │ sums to shared memory ┃ add rows 0 … of all, store │
       block 1   │ multiply the next …   │ sums to shared memory ┃ add the next rows, store   │
       …         ┃ cluster barrier: from here on each block reads the shared memory of the others

What it gains: with few tiles and much K, all multiprocessors work. What it costs: a cluster, two
barriers, and the sums' way through distributed shared memory; no workspace and no second kernel.
The order of the sum is fixed, so that the result is the same to the bit from run to run.
"""

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32
from cutlass.cute.nvgpu import warpgroup

from cutedsl_gemm.kernels import lower
from cutedsl_gemm.kernels.parts import inside, left, move, part
from cutedsl_gemm.kernels.sm90.gemm import Gemm
from cutedsl_gemm.kernels.sm90.mainloop import WARPGROUP
from cutedsl_gemm.kernels.sm90.split_plan import SplitPlan
from layouts import cosize


class Split(Gemm):
    """A cluster a tile: each block multiplies its k-blocks, and finishes its rows."""

    def __init__(self, plan: SplitPlan) -> None:
        super().__init__(plan)
        self.cluster = (plan.splits, 1, 1)

    def grid(self, tiles, sms):
        """A cluster a tile, however many multiprocessors there are."""
        return tiles * self.plan.splits

    def work(self, k_blocks):
        """First tile, tiles from one to the next (there is none), and k-blocks of this block."""
        splits, block = self.plan.splits, cute.arch.block_idx()[0]
        clusters = cute.arch.grid_dim()[0] // splits
        return block // splits, clusters, self.plan.span(block % splits, k_blocks)

    def outlet(self, c):
        """C itself."""
        return (c,)

    def storage(self):
        """The sums of this block."""
        return cute.struct.MemRange[Float32, cosize(self.plan.exchange)]

    def way_out(self, storage, outlet):
        """The sums (BM, BN), and C (M, N)."""
        return lower.tensor(storage, self.plan.exchange), *outlet

    @cute.jit
    def consume(self, me, loads, way_out, full, empty, extent):
        """Multiply this block's k-blocks, exchange the sums, finish this block's rows."""
        tiles_m, tiles_n, k_blocks = extent
        sums, gC = way_out
        tile, _, (k_first, k_last) = self.work(k_blocks)
        mma = self.mma()
        rA, rB, acc = self.operands(mma, me, loads)
        mine = cute.local_tile(sums, (self.plan.rows, self.plan.tile[1]), (me, 0))  # (R, BN)
        leaving = mma.get_slice(cute.arch.thread_idx()[0] % WARPGROUP).partition_C(mine)
        acc.fill(0)  # for a block without k-blocks
        if k_first < k_last:
            self.multiply(mma, rA, rB, acc, full, empty, Int32(0), k_last - k_first)
            warpgroup.wait_group(0)
        cute.autovec_copy(acc, leaving)
        self.meet()
        m, n = self.place(tile, tiles_m, tiles_n)
        self.finish(sums, gC, m, n)
        self.meet()  # no block may end while another reads its shared memory

    @cute.jit
    def finish(self, sums, gC, m, n):
        """This block's rows of the tile: what all blocks have for them, in the order of ranks."""
        plan, share = self.plan, self.plan.share
        rank = self.rank()
        thread = cute.arch.thread_idx()[0] - WARPGROUP
        (bm, bn, _), rows = plan.tile, plan.finished
        first = rank * rows
        total = cute.make_rmem_tensor(lower.layout(share.registers), Float32)  # (lines, (4, …))
        coming = cute.make_rmem_tensor(lower.layout(share.registers), Float32)
        total.fill(0)
        coming.fill(0)
        for peer in cutlass.range_constexpr(plan.splits):
            theirs = cute.make_tensor(cute.arch.map_dsmem_ptr(sums.iterator, peer), sums.layout)
            theirs = part(cute.local_tile(theirs, (rows, bn), (rank, 0)), share, thread)
            for line in cutlass.range_constexpr(share.lines):
                if inside(share, thread, (line, 0), (bm - first, bn)):
                    cute.autovec_copy(theirs[line, None], coming[line, None])
            total.store(total.load() + coming.load())
        result = cute.make_rmem_tensor(total.layout, self.dtype)
        result.store(total.load().to(self.dtype))
        tile = cute.local_tile(cute.local_tile(gC, (bm, bn), (m, n)), (rows, bn), (rank, 0))
        rows_left, columns_left = left(gC, (bm, bn), (m, n))
        extent = (cutlass.min(rows_left, bm) - first, columns_left)
        move(result, part(tile, share, thread), share, thread, extent)
