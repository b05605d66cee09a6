"""SIMT GEMM from global memory: each thread walks its row of A and its column of B.

Serves `naive` and `coalesced`: they differ only in the layouts of C in their plans.

    A  row m ────────▶ k          Who    a block of 32×32 threads a tile of C, a thread an output
    B  column n ─────▶ k          When   load, load, multiply, K times: only warps overlap
    C  (m, n)  += A(m, k) B(k, n) Where  `plan.explain()` prints which thread has which (m, n)
"""

from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Float32

from cutedsl_gemm.kernels.device import lower
from cutedsl_gemm.kernels.device.launch import OneTilePerBlock
from cutedsl_gemm.kernels.device.tile import in_bounds, remaining_extent, tile_counts
from cutedsl_gemm.kernels.device.tile_epilogue import store_tile
from cutedsl_gemm.kernels.epilogue.expression import PLAIN


class Direct(OneTilePerBlock):
    """One kernel for every M, N, K of a plan without shared memory."""

    @cute.kernel
    def kernel(self, a: cute.Tensor, b: cute.Tensor, operands: Any, results: Any):
        plan, tiler = self.plan, self.plan.tile[:2]
        thread = cute.arch.thread_idx()[0]
        m, n = plan.tile_coord(cute.arch.block_idx()[0], *tile_counts(results[0], tiler))
        extent = remaining_extent(results[0], tiler, (m, n))
        at = plan.c.rows(thread, 0), plan.c.columns(thread, 0)  # in the tile
        row, column = m * tiler[0] + at[0], n * tiler[1] + at[1]
        if in_bounds(at, extent):
            total = Float32(0)
            for k in cutlass.range(a.shape[1], unroll=4):
                total += a[row, k] * b[column, k]
            if cutlass.const_expr(plan.epilogue == PLAIN):
                results[0][row, column] = total
            else:
                acc = cute.make_rmem_tensor(lower.layout(plan.c.registers), Float32)
                acc.fill(total)
                outputs = operands, results
                store_tile([acc], outputs, plan.epilogue, plan.c, tiler, (m, n), thread)
