"""Hopper (sm90) pingpong GEMM: two warpgroups in turn on the tensor core.

When   producer    │ load t0 │ load t1 │ load t2 │ load t3 │ …   always `stages` k-blocks ahead
       consumer 1  │ multiply t0 │ store t0  … │ multiply t2 │ store t2 …
       consumer 2  │    (waits)  │ multiply t1 │ store t1  … │ multiply t3 …
       The tensor core never waits for an epilogue: while one consumer stores, the other multiplies.

What it costs: each consumer holds a whole tile in its registers, at most 128×192.
"""

import cutlass
import cutlass.cute as cute
from cutlass.cute.nvgpu import warpgroup

from cutedsl_gemm.kernels.sm90.mainloop import CONSUMERS, WARPGROUP
from cutedsl_gemm.kernels.sm90.staged import PANEL, Staged

# Named barriers: the tensor core is consumer 0's, consumer 1's.
TURN = PANEL + CONSUMERS


class Pingpong(Staged):
    """Each consumer multiplies every second tile of its block."""

    @cute.jit
    def consume(self, me, loads, way_out, full, empty, extent):
        """Multiply in turn; store while the other multiplies."""
        tiles_m, tiles_n, k_blocks = extent
        tiles = tiles_m * tiles_n
        first, step, _ = self.work(k_blocks)
        mma = self.mma()
        rA, rB, acc = self.operands(mma, me, loads)
        block = me * k_blocks
        for tile in cutlass.range(first + me * step, tiles, CONSUMERS * step, unroll=1):
            m, n = self.place(tile, tiles_m, tiles_n)
            if tile >= step:  # all but the block's first tile come after one of the other consumer
                cute.arch.barrier(barrier_id=TURN + me, number_of_threads=CONSUMERS * WARPGROUP)
            self.multiply(mma, rA, rB, acc, full, empty, block, k_blocks)
            if tile + step < tiles:
                cute.arch.barrier_arrive(
                    barrier_id=TURN + 1 - me, number_of_threads=CONSUMERS * WARPGROUP
                )
            warpgroup.wait_group(0)
            self.release(empty, block + k_blocks - 1)
            self.store(me, acc, way_out, m, n)
            block += CONSUMERS * k_blocks
        self.drain()
