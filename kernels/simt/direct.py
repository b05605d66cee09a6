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
from cutedsl_gemm.kernels.device.epilogue import like_c
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
        c = like_c(plan.epilogue, results, (a.shape[0], b.shape[0]))
        m, n = plan.tile_coord(cute.arch.block_idx()[0], *tile_counts(c.shape, tiler))
        extent = remaining_extent(c, tiler, (m, n))
        at = plan.c.rows(thread, 0), plan.c.columns(thread, 0)  # in the tile
        row, column = m * tiler[0] + at[0], n * tiler[1] + at[1]
        if cutlass.const_expr(plan.epilogue == PLAIN):
            if in_bounds(at, extent):
                c[row, column] = self.inner_product(a, b, row, column)
        else:
            row, column = cutlass.min(row, c.shape[0] - 1), cutlass.min(column, c.shape[1] - 1)
            acc = cute.make_rmem_tensor(lower.layout(plan.c.registers), Float32)
            acc.fill(self.inner_product(a, b, row, column))
            outputs = operands, results, c
            store_tile([acc], outputs, plan.epilogue, plan.c, tiler, (m, n), thread)

    @cute.jit
    def inner_product(self, a, b, row, column):
        """The sum of a row of A (M, K) times a row of B (N, K)."""
        total = Float32(0)
        for k in cutlass.range(a.shape[1], unroll=4):
            total += a[row, k] * b[column, k]
        return total
