"""Hopper (sm90) split-K GEMM: blocks split the K of a tile, a second kernel adds their sums.

When   block 0   │ multiply k-tiles 0 … │ store partial sums ┃ add F rows of all splits, store C
       block 1   │ multiply the next …  │ store partial sums ┃ add the next F rows, store C
       …                                                     ┃
       F is `reduction_rows`. The second kernel is launched as the first ends, and waits for its
       memory.

Where  the blocks of one split are neighbours: sixteen tiles of one GPC then ask L2 for the same
       panels of A and B at the same time. A cluster, too, has tiles of one split, which share A or
       B by multicast. If the blocks of a cluster split K instead, and add their sums through
       distributed shared memory, they share nothing: 25.5 µs at 512×512×16384, not 18.2
       (docs/performance/notebook.md, "Split-K through a cluster").

Gains  few tiles of large K keep all multiprocessors busy.
Costs  a workspace, and a second launch. The order of summation is fixed by the plan and K: results
       are bitwise the same from run to run.
"""

from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32
from cutlass.cute.nvgpu import warpgroup

from cutedsl_gemm.kernels.device import lower
from cutedsl_gemm.kernels.device.epilogue import like_c, over_c, split_arguments
from cutedsl_gemm.kernels.device.opaque import wait_for_previous_launch
from cutedsl_gemm.kernels.device.tile import (
    remaining_extent,
    thread_partition,
    tile_count,
    tile_counts,
)
from cutedsl_gemm.kernels.device.tile_epilogue import store_tile
from cutedsl_gemm.kernels.plan.tile_scheduler import TileExtents
from cutedsl_gemm.kernels.sm90.mainloop import Sm90Gemm
from layouts.hardware.facts import WARPGROUP


class SplitK(Sm90Gemm):
    """Two kernels: one multiplies split by split, one reduces."""

    @cute.jit
    def __call__(
        self,
        a: cute.Tensor,  # (M, K)
        b: cute.Tensor,  # (K, N)
        *arguments,  # operands and results of the epilogue, such as C (M, N); then a workspace of
        # plan.workspace(M, N) elements of fp32, sms, stream
    ):
        """What the epilogue makes of C = A · B, with a block for each tile and split."""
        plan = self.plan
        operands, results, rest = split_arguments(plan.epilogue, arguments)
        workspace, sms, stream = rest
        c = like_c(plan.epilogue, results)
        clusters = tile_count(c.shape, plan.exchanged(plan.cluster_tile))
        tiles = clusters * plan.cluster_size
        # (BM, BN, tiles, splits), and by row and column of the caller's C
        sums = lower.tile_array(workspace.iterator, plan.partial_sums, tiles, plan.splits)
        c_sums = lower.tile_array(workspace.iterator, plan.c_partial_sums, tiles, plan.splits)
        a, b = self.as_planned(a, b)
        self.launch(a, b, clusters, (sums, self.c_as_planned(c)), sms, stream)
        views = over_c(plan.epilogue, operands, c.shape)
        self.reduce(c_sums, views, tuple(results)).launch(
            grid=(tiles * (plan.c_tile[0] // plan.reduction_rows), 1, 1),
            block=(plan.reduction.threads, 1, 1),
            stream=stream,
            use_pdl=True,
        )

    def epilogue_storage(self):
        """Nothing: partial sums go from registers to global memory."""
        return cute.struct.MemRange[Float32, 0]

    def epilogue_tensors(self, storage, loaded, output):
        """The partial sums (BM, BN, tiles, splits), and the plan's C."""
        return output

    @cute.jit
    def consume(self, consumer, operands, epilogue, full, empty, extents):
        """Multiply this block's k-tiles, and store the partial sums of rows that C has."""
        sums, c = epilogue
        *at, k_begin, k_end = self.first_tile(extents)
        rows, _ = remaining_extent(c, self.plan.output_tile, at)
        tile, _, split = self.plan.tile_scheduler.tile_and_split(*self.cluster_and_count())
        tile = tile * self.plan.cluster_size + self.block_rank()  # of all, block by block
        mma = self.make_mma()
        rA, rB, acc = self.make_fragments(mma, consumer, operands)
        m, n = self.plan.consumer_coord((0, 0), consumer)
        # (R, columns of the consumer), then (wgmma, R/64, 1) like acc
        part = self.plan.rows, self.plan.columns
        sums = cute.local_tile(sums[None, None, tile, split], part, (m, n))
        sums = mma.get_slice(cute.arch.thread_idx()[0] % WARPGROUP).partition_C(sums)
        acc.fill(0)  # for a block without k-tiles
        if k_begin < k_end:
            reloaded = self.reloaded_k_tiles(extents)
            self.mainloop(mma, rA, rB, acc, full, empty, Int32(0), k_end - k_begin, reloaded)
            warpgroup.wait_group(0)
        warp = cute.arch.warp_idx() % 4
        first_row = self.plan.a.row_of_each(m * self.plan.rows + 16 * warp)
        if first_row < rows:  # C has the warp's first row
            cute.autovec_copy(acc, sums)
        cute.arch.griddepcontrol_launch_dependents()

    @cute.kernel
    def reduce(self, sums: cute.Tensor, operands: tuple[Any, ...], results: tuple[Any, ...]):
        """F rows of a tile of C: partial sums (*c_tile, tiles, splits), added in split order.

        `operands` are those of the epilogue over C, and numbers.
        """
        plan, layout = self.plan, self.plan.reduction
        rows, _ = tiler = plan.reduction_tile  # F, and the columns of a tile
        c = like_c(plan.epilogue, results)
        parts = plan.c_tile[0] // rows
        thread, block = cute.arch.thread_idx()[0], cute.arch.block_idx()[0]
        tile, part = block // parts, block % parts
        cluster, rank = tile // plan.cluster_size, tile % plan.cluster_size
        clusters = tile_counts(self.c_as_planned(c).shape, plan.cluster_tile)
        extents = TileExtents(*clusters, None)
        at = plan.exchanged(plan.tile_scheduler.tile_coord(cluster, rank, extents, cutlass.min))
        rows_left, columns_left = remaining_extent(c, plan.c_tile, at)
        wait_for_previous_launch(*at)
        if part * rows < rows_left:  # at the edge of C, not every part has rows
            loaded = cute.make_rmem_tensor(lower.layout(layout.registers), Float32)
            totals = []
            for matrix in cutlass.range_constexpr(plan.matrices):
                which = (matrix,) if plan.matrices > 1 else ()
                total = cute.make_rmem_tensor(lower.layout(layout.registers), Float32)
                total.fill(0)
                for split in cutlass.range_constexpr(plan.splits):
                    # (F, columns)
                    gS = cute.local_tile(sums[(None, None, *which, tile, split)], tiler, (part, 0))
                    cute.autovec_copy(thread_partition(gS, layout, thread), loaded)
                    total.store(total.load() + loaded.load())
                store = plan.reduction_store
                totals.append(cute.make_tensor(total.iterator, lower.layout(store.registers)))

            def part_of(matrix):
                """The matrix from the first of these F rows of the tile on."""
                gX = cute.local_tile(cute.local_tile(matrix, plan.c_tile, at), tiler, (part, 0))
                extent = rows_left - part * rows, columns_left
                return lower.strided(gX.iterator, extent, matrix.stride)

            outputs, of_c = (operands, results, c), (at[0] * parts + part, at[1])
            store_tile(totals, outputs, plan.epilogue, store, tiler, (0, 0), thread, part_of, of_c)
