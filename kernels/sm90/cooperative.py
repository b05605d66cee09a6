"""Hopper (sm90) cooperative GEMM: the consumer warpgroups share each tile.

When   producer    │ load t0 │ load t1 │ load t2 …   always `stages` k-tiles ahead
       consumer 0  │ multiply t0, upper half │ store │ multiply t1, upper half │ store …
       consumer 1  │ multiply t0, lower half │ store │ multiply t1, lower half │ store …

       If BM is 192, there are three consumers, with 64 rows each; or two, with half of the columns
       each, if BN is more than 200. If BM is 64, there is one.

Gains  tiles of 128×256, 192×208 and 256×128, which move fewer bytes a flop through shared memory
       and L2.
Costs  the tensor core waits for the epilogue.
Use    for large K, and for shapes whose waves such a tile fills better.
"""

import cutlass
import cutlass.cute as cute
from cutlass.cute.nvgpu import warpgroup

from cutedsl_gemm.kernels.device.opaque import opaque_true
from cutedsl_gemm.kernels.sm90.epilogue import PanelGemm
from cutedsl_gemm.kernels.sm90.scattered_rows import target


class Cooperative(PanelGemm):
    """Each consumer multiplies its part of every tile of its block."""

    @cute.jit
    def consume(self, consumer, operands, epilogue, full, empty, extents):
        """Multiply this consumer's part of a tile, then store it."""
        k_tiles, tiles = extents.k_tiles, extents.cluster_tiles
        first, step, _ = self.tile_walk(k_tiles)
        reloaded = self.reloaded_k_tiles(extents)
        mma = self.make_mma()
        rA, rB, acc = self.make_fragments(mma, consumer, operands)
        k_tile = cutlass.Int32(0)  # k-tiles of the block so far
        tiles_done = cutlass.Int32(0)  # by this block
        for tile in cutlass.range(first, tiles, step, unroll=1):
            m, n = self.tile_coord(tile, extents)
            of_tile, m = self.epilogue_of(epilogue, m, extents)
            m, to = target(self.plan, tile, m, extents)
            row, column = self.plan.consumer_coord((m, n), consumer)
            self.load(consumer, of_tile, row, column)
            read = self.read(of_tile, row, column)
            last = self.mainloop(mma, rA, rB, acc, full, empty, k_tile, k_tiles, reloaded, (m, n))
            warpgroup.wait_group(0)
            self.release_stage(empty, *last)
            if opaque_true(tiles):  # ptxas keeps the epilogue behind the release
                self.store(consumer, acc, of_tile, read, row, column, tiles_done, to)
            k_tile += k_tiles
            tiles_done += 1
        self.wait_for_stores()
