"""SIMT GEMM through shared memory: the block copies a tile of A and of B, then every thread reads.

Serves `shared`, `block1d` and `block2d`: the plan says which thread copies what, where it goes, and
how many outputs a thread computes.

    block    load k-tile 0 │ barrier │ multiply │ barrier │ load k-tile 1 │ barrier │ …
    thread   rA (rows) ┐
             rB (columns) ┴▶ acc (rows, columns) += rA · rBᵀ, for each k of the k-tile
"""

from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Float32

from cutedsl_gemm.kernels.device import lower
from cutedsl_gemm.kernels.device.epilogue import like_c
from cutedsl_gemm.kernels.device.launch import OneTilePerBlock
from cutedsl_gemm.kernels.device.smem import SmemAllocator
from cutedsl_gemm.kernels.device.tile import load_to_smem, tile_counts
from cutedsl_gemm.kernels.device.tile_epilogue import store_tile
from cutedsl_gemm.kernels.plan.checks import PlanError
from cutedsl_gemm.kernels.simt.plan import ALIGNMENT, SimtPlan
from layouts import Layout


class Staged(OneTilePerBlock):
    """One kernel for every M, N, K of a plan with operands in shared memory."""

    def __init__(self, plan: SimtPlan) -> None:
        if plan.a is None or plan.b is None:
            raise PlanError(f"{plan.name} uses no shared memory: its device code is `direct`")
        super().__init__(plan)
        self.a, self.b = plan.a, plan.b

    @cute.kernel
    def kernel(self, a: cute.Tensor, b: cute.Tensor, operands: Any, results: Any):
        plan, (bm, bn, bk) = self.plan, self.plan.tile
        thread = cute.arch.thread_idx()[0]
        c = like_c(plan.epilogue, results, (a.shape[0], b.shape[0]))
        m, n = plan.tile_coord(cute.arch.block_idx()[0], *tile_counts(c.shape, (bm, bn)))
        smem = SmemAllocator()
        sA = smem.allocate_tensor(Float32, lower.layout(self.a.smem), ALIGNMENT)  # (BM, BK)
        sB = smem.allocate_tensor(Float32, lower.layout(self.b.smem), ALIGNMENT)  # (BN, BK)
        rows, columns = plan.fragment("A"), plan.fragment("B")  # (thread, value) → row of a tile
        rA = cute.make_rmem_tensor((rows.shape[1],), Float32)  # (rows of a thread)
        rB = cute.make_rmem_tensor((columns.shape[1],), Float32)  # (columns of a thread)
        acc = cute.make_rmem_tensor(lower.layout(plan.c.registers), Float32)  # (rows, columns)
        acc.fill(0)
        for k_tile in cutlass.range(cute.ceil_div(a.shape[1], bk), unroll=1):
            load_to_smem(a, sA, self.a.copy, (bm, bk), (m, k_tile), thread)
            load_to_smem(b, sB, self.b.copy, (bn, bk), (n, k_tile), thread)
            cute.arch.sync_threads()
            for k in cutlass.range_constexpr(bk):
                cute.autovec_copy(fragment_source(sA[None, k], rows, thread), rA)
                cute.autovec_copy(fragment_source(sB[None, k], columns, thread), rB)
                for i in cutlass.range_constexpr(plan.thread_tile[0]):
                    for j in cutlass.range_constexpr(plan.thread_tile[1]):
                        acc[i, j] += rA[i] * rB[j]
            cute.arch.sync_threads()
        store_tile([acc], (operands, results, c), plan.epilogue, plan.c, (bm, bn), (m, n), thread)


def fragment_source(column: cute.Tensor, rows: Layout, thread: cutlass.Int32) -> cute.Tensor:
    """(values): what `thread` multiplies by, of one k (rows) of an operand in shared memory."""
    return cute.composition(column, lower.layout(rows))[thread, None]
