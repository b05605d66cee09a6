"""Hopper (sm90) split GEMM: blocks divide the K of a tile, and a second kernel adds their sums.

When   block 0   │ multiply k-blocks 0 … │ sums to the workspace ┃ add F rows of all, store │
       block 1   │ multiply the next …   │ sums to the workspace ┃ add the next, store      │
       …         ┃ the second kernel, launched while the first ends, waits for its memory

Where  the blocks of one part of K are neighbours: sixteen tiles of one GPC then ask L2 for the same
       panels at the same time. A cluster that divides K and adds through distributed shared memory
       shares nothing there: 24.6 µs at 512×512×16384, and this 18.2 (docs/performance).

What it gains: with few tiles and much K, all multiprocessors work. What it costs: a workspace, and
a second launch. The order of the sum is fixed, so that the result is the same to the bit from run
to run.
"""

import cutlass
import cutlass.cute as cute
from cuda.bindings.driver import CUstream
from cutlass import Float32, Int32
from cutlass.cute.nvgpu import warpgroup

from cutedsl_gemm.kernels.device import lower
from cutedsl_gemm.kernels.device.tile import (
    guarded_copy,
    remaining_extent,
    thread_partition,
    tile_count,
)
from cutedsl_gemm.kernels.sm90.gemm import Gemm
from cutedsl_gemm.kernels.sm90.mainloop import WARPGROUP
from cutedsl_gemm.kernels.sm90.split_plan import ADDERS


class Split(Gemm):
    """Two kernels: one multiplies part by part, one adds."""

    @cute.jit
    def __call__(
        self,
        a: cute.Tensor,
        b: cute.Tensor,
        c: cute.Tensor,
        workspace: cute.Tensor,
        sms: Int32,
        stream: CUstream,
    ):
        """C (M, N) = A (M, K) · B (K, N), by way of `plan.workspace(M, N)` elements of fp32."""
        plan, bm = self.plan, self.plan.tile[0]
        tiles = tile_count(c, plan.tile[:2])
        sums = lower.tile_array(workspace.iterator, plan.sums, tiles, plan.splits)  # (BM, BN, …)
        self.launch(a, b, c, (sums, c), sms, stream)
        self.add(sums, c).launch(
            grid=(tiles * (bm // plan.added), 1, 1),
            block=(ADDERS, 1, 1),
            stream=stream,
            use_pdl=True,
        )

    def grid(self, tiles, sms):
        """A block a tile and part of K, however many multiprocessors there are."""
        return tiles * self.plan.splits

    def work(self, k_blocks):
        """First tile, tiles from one to the next (there is none), and k-blocks of this block."""
        tile, tiles, rank = self.mine()
        return tile, tiles, self.plan.span(rank, k_blocks)

    def mine(self):
        """This block's tile, the number of tiles, and its part of K."""
        block, tiles = cute.arch.block_idx()[0], cute.arch.grid_dim()[0] // self.plan.splits
        return block % tiles, tiles, block // tiles

    def storage(self):
        """Nothing: sums leave from registers."""
        return cute.struct.MemRange[Float32, 0]

    def way_out(self, storage, outlet):
        """The sums of this block (BM, BN), and rows of C from its tile on."""
        (sums, c), (tile, _, rank) = outlet, self.mine()
        at = self.place(tile, *(cute.ceil_div(c.shape[i], self.plan.tile[i]) for i in range(2)))
        return sums[None, None, tile, rank], remaining_extent(c, self.plan.tile[:2], at)[0]

    @cute.jit
    def consume(self, me, loads, way_out, full, empty, extent):
        """Multiply this block's k-blocks, and leave the sums of what are rows of C."""
        _, _, k_blocks = extent
        sums, rows = way_out
        _, _, (k_first, k_last) = self.work(k_blocks)
        mma = self.mma()
        rA, rB, acc = self.operands(mma, me, loads)
        mine = cute.local_tile(sums, (self.plan.rows, self.plan.tile[1]), (me, 0))  # (R, BN)
        leaving = mma.get_slice(cute.arch.thread_idx()[0] % WARPGROUP).partition_C(mine)
        acc.fill(0)  # for a block without k-blocks
        if k_first < k_last:
            self.multiply(mma, rA, rB, acc, full, empty, Int32(0), k_last - k_first)
            warpgroup.wait_group(0)
        warp = cute.arch.warp_idx() % 4
        if me * self.plan.rows + 16 * warp < rows:  # the first row of each 64 that a warp has
            cute.autovec_copy(acc, leaving)
        cute.arch.griddepcontrol_launch_dependents()

    @cute.kernel
    def add(self, sums: cute.Tensor, c: cute.Tensor):
        """F rows of a tile: what all parts have for them, in their order."""
        plan, share, (bm, bn, _), rows = self.plan, self.plan.share, self.plan.tile, self.plan.added
        thread, block = cute.arch.thread_idx()[0], cute.arch.block_idx()[0]
        tile, piece = block // (bm // rows), block % (bm // rows)
        m, n = self.place(tile, cute.ceil_div(c.shape[0], bm), cute.ceil_div(c.shape[1], bn))
        rows_left, columns_left = remaining_extent(c, (bm, bn), (m, n))
        cute.arch.griddepcontrol_wait()
        if piece * rows < rows_left:  # a tile may end above
            total = cute.make_rmem_tensor(lower.layout(share.registers), Float32)
            coming = cute.make_rmem_tensor(lower.layout(share.registers), Float32)
            total.fill(0)
            for rank in cutlass.range_constexpr(plan.splits):
                theirs = cute.local_tile(sums[None, None, tile, rank], (rows, bn), (piece, 0))
                cute.autovec_copy(thread_partition(theirs, share, thread), coming)
                total.store(total.load() + coming.load())
            result = cute.make_rmem_tensor(total.layout, self.dtype)
            result.store(total.load().to(self.dtype))
            target = cute.local_tile(cute.local_tile(c, (bm, bn), (m, n)), (rows, bn), (piece, 0))
            extent = (rows_left - piece * rows, columns_left)
            guarded_copy(result, thread_partition(target, share, thread), share, thread, extent)
