"""Hopper (sm90) cooperative GEMM: two warpgroups share each tile.

When   producer    │ load t0 │ load t1 │ load t2 …   always `stages` k-blocks ahead
       consumer 1  │ multiply t0, upper half │ store │ multiply t1, upper half │ store …
       consumer 2  │ multiply t0, lower half │ store │ multiply t1, lower half │ store …

What it gains: tiles of 128×256 and 256×128, for which shared memory and L2 move fewer bytes a flop.
What it costs: the tensor core waits for the epilogue. It is for large K, and for shapes whose waves
such a tile fills better.
"""

import cutlass
import cutlass.cute as cute
from cutlass.cute.nvgpu import warpgroup

from cutedsl_gemm.kernels.sm90.staged import Staged


class Cooperative(Staged):
    """Each consumer multiplies its rows of every tile of its block."""

    @cute.jit
    def consume(self, me, loads, way_out, full, empty, extent):
        """Multiply this consumer's rows, then store them."""
        tiles_m, tiles_n, k_blocks = extent
        first, step, _ = self.work(k_blocks)
        mma = self.mma()
        rA, rB, acc = self.operands(mma, me, loads)
        block = cutlass.Int32(0)
        for tile in cutlass.range(first, tiles_m * tiles_n, step, unroll=1):
            m, n = self.place(tile, tiles_m, tiles_n)
            self.multiply(mma, rA, rB, acc, full, empty, block, k_blocks)
            warpgroup.wait_group(0)
            self.release(empty, block + k_blocks - 1)
            self.store(me, acc, way_out, m * self.plan.sharing + me, n)
            block += k_blocks
        self.drain()
