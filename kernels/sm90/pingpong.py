"""Hopper (sm90) pingpong GEMM: consumer warpgroups take turns on the tensor core.

When   producer    │ load t0 │ load t1 │ load t2 │ load t3 │ …   always `stages` k-tiles ahead
       consumer 0  │ multiply t0 │ store t0  … │ multiply t2 │ store t2 …
       consumer 1  │    (waits)  │ multiply t1 │ store t1  … │ multiply t3 …
       The tensor core never waits for an epilogue: while one consumer stores, another multiplies.

Costs  each consumer holds a whole tile in registers: at most 128×192, or 128×128 with three.
"""

import cutlass
import cutlass.cute as cute
from cutlass.cute.nvgpu import warpgroup

from cutedsl_gemm.kernels.device.opaque import opaque_true
from cutedsl_gemm.kernels.sm90.epilogue import PanelGemm
from cutedsl_gemm.kernels.sm90.pipeline import turn_barrier
from cutedsl_gemm.kernels.sm90.scattered_rows import target


class Pingpong(PanelGemm):
    """The consumers, two or three, take turns with the tiles of their block."""

    @cute.jit
    def consume(self, consumer, operands, epilogue, full, empty, extents):
        """Multiply in turn; store while another consumer multiplies."""
        plan, consumers = self.plan, self.plan.consumers
        k_tiles, tiles = extents.k_tiles, extents.cluster_tiles
        first, step, _ = self.tile_walk(k_tiles)
        reloaded = self.reloaded_k_tiles(extents)
        mma = self.make_mma()
        rA, rB, acc = self.make_fragments(mma, consumer, operands)
        k_tile = consumer * k_tiles  # of the block's; those between are the other consumers'
        tiles_done = cutlass.Int32(0)  # by this consumer
        for tile in cutlass.range(first + consumer * step, tiles, consumers * step, unroll=1):
            m, n = self.tile_coord(tile, extents)
            of_tile, m = self.epilogue_of(epilogue, m, extents)
            m, to = target(plan, tile, m, extents)
            self.load(consumer, of_tile, m, n)
            read = self.read(of_tile, m, n)
            if tile >= step:  # the block's first tile waits for no turn
                number, threads = turn_barrier(plan, consumer)
                cute.arch.barrier(barrier_id=number, number_of_threads=threads)
            last = self.mainloop(mma, rA, rB, acc, full, empty, k_tile, k_tiles, reloaded, (m, n))
            if tile + step < tiles:
                number, threads = turn_barrier(plan, (consumer + 1) % consumers)
                cute.arch.barrier_arrive(barrier_id=number, number_of_threads=threads)
            warpgroup.wait_group(0)
            self.release_stage(empty, *last)
            if opaque_true(tiles):  # ptxas keeps the epilogue behind the release
                self.store(consumer, acc, of_tile, read, m, n, tiles_done, to)
            k_tile += consumers * k_tiles
            tiles_done += 1
        self.wait_for_stores()
