"""sm70 GEMM on mma.m8n8k4: two buffers in shared memory, two in registers.

    step       0                      1 … 5       6                               7
    global     load k-tile t + 1                  store to the other buffer ┃ barrier
    shared     fragments of step 1    2 … 6       7                         ┃     0 of t + 1
    mma        step 0                 1 … 5       6                               7

The residue of K comes first, so that every k-tile after it is whole. From sm_75 on mma.m8n8k4 is
emulated: correct, and slow. A test reads the machine code that ptxas makes for sm_70.
"""

from collections.abc import Callable
from itertools import product
from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Float16, Float32, Int32, Uint32

from cutedsl_gemm.kernels.device.epilogue import like_c
from cutedsl_gemm.kernels.device.launch import OneTilePerBlock
from cutedsl_gemm.kernels.device.tile import (
    load_to_registers,
    split_columns,
    store_to_smem,
    thread_partition,
    tile_counts,
)
from cutedsl_gemm.kernels.plan.raster import row_by_row
from cutedsl_gemm.kernels.sm70.plan import Sm70Plan
from cutedsl_gemm.kernels.sm80.warp_mma import allocate_smem, store_accumulator

# The operands of a mma: D of eight registers, A and B of two each, C of eight.
MMA = "mma.sync.aligned.m8n8k4.col.row.f32.f16.f16.f32 {}, {}, {}, {};".format(
    *(
        "{" + ", ".join(f"{{${kind}{i}}}" for i in range(*span)) + "}"
        for kind, span in (("w", (8,)), ("r", (2,)), ("r", (2, 4)), ("r", (4, 12)))
    )
)


class Volta(OneTilePerBlock):
    """One kernel for every M, N, K of an sm70 plan."""

    @cute.kernel
    def kernel(self, a: cute.Tensor, b: cute.Tensor, operands: Any, results: Any):
        plan, (bm, bn, bk) = self.plan, self.plan.tile
        thread = cute.arch.thread_idx()[0]
        c = like_c(plan.epilogue, results, (a.shape[0], b.shape[0]))
        m, n = row_by_row(cute.arch.block_idx()[0], *tile_counts(c.shape, (bm, bn)))
        smem = allocate_smem(plan)  # (BM, BK, 2), (BN, BK, 2)
        acc, load_fragments, multiply = warp_mma(plan, smem, thread)
        a_head, a_rest = residue_first(a, plan, plan.a_major)
        b_head, b_rest = residue_first(b, plan, plan.b_major)
        self.store(self.load(a_head, b_head, (m, n, 0), thread), smem, 0, thread)
        cute.arch.sync_threads()
        load_fragments(0, 0)
        last = cute.ceil_div(a.shape[1], bk) - 1
        for k_tile in cutlass.range(last, unroll=1):
            values = self.load(a_rest, b_rest, (m, n, k_tile), thread)
            for step in cutlass.range_constexpr(plan.steps - 1):
                load_fragments(step + 1, k_tile % plan.stages)
                if cutlass.const_expr(step == plan.steps - 2):
                    self.store(values, smem, (k_tile + 1) % plan.stages, thread)
                    cute.arch.sync_threads()
                multiply(step)
            load_fragments(0, (k_tile + 1) % plan.stages)
            multiply(plan.steps - 1)
        for step in cutlass.range_constexpr(plan.steps):
            if cutlass.const_expr(step < plan.steps - 1):
                load_fragments(step + 1, last % plan.stages)
            multiply(step)
        store_accumulator(acc, (operands, results, c), plan, (m, n), thread)

    def load(self, a, b, coord, thread):
        """This thread's part of a k-tile of A and of B, in registers."""
        plan, (bm, bn, bk), (m, n, k_tile) = self.plan, self.plan.tile, coord
        values_a = load_to_registers(a, plan.a.copy, (bm, bk), (m, k_tile), thread)
        return values_a, load_to_registers(b, plan.b.copy, (bn, bk), (n, k_tile), thread)

    def store(self, values, smem, stage, thread):
        """What `load` returned, into one stage of shared memory."""
        for part, buffer, operand in zip(values, smem, (self.plan.a, self.plan.b), strict=True):
            store_to_smem(part, buffer[None, None, stage], operand.copy, thread)


def residue_first(
    matrix: cute.Tensor, plan: Sm70Plan, major: str
) -> tuple[cute.Tensor, cute.Tensor]:
    """A matrix (rows, K) as its first (K - 1) % BK + 1 columns, and the rest: whole k-tiles."""
    residue = (matrix.shape[1] - 1) % plan.tile[2] + 1
    if major == "K":
        residue = cute.assume(residue, divby=plan.alignment)
    return split_columns(matrix, residue)


def warp_mma(
    plan: Sm70Plan, smem: tuple[cute.Tensor, cute.Tensor], thread: Int32
) -> tuple[cute.Tensor, Callable[[int, Any], None], Callable[[int], None]]:
    """The accumulator, filled with zero; `load_fragments(step, stage)`; `multiply(step)`.

    Fragments have two buffers. Of the eight rows that a lane reads at once, four belong to one mma
    and four to the next.
    """
    acc = cute.make_rmem_tensor((8 * 16,), Float32)
    acc.fill(0)
    copies, buffers = tuple(plan.fragment_copies.values()), 2
    fragments = [  # (8, load, buffer)
        cute.make_rmem_tensor((copy.width, copy.vectors, buffers), Float16) for copy in copies
    ]
    pairs = [cute.recast_tensor(fragment, Uint32) for fragment in fragments]  # (4, load, buffer)

    def load_fragments(step: int, stage: Any) -> None:
        for buffer, copy, target in zip(smem, copies, fragments, strict=True):
            tiler = cute.size(buffer, mode=[0]), plan.step[2]
            k_step = cute.local_tile(buffer[None, None, stage], tiler, (0, step))  # (rows, 4)
            source = thread_partition(k_step, copy, thread)  # (1, (8, load))
            for load in range(copy.vectors):
                cute.autovec_copy(source[0, (None, load)], target[None, load, step % buffers])

    def multiply(step: int) -> None:
        (rA, rB), buffer = pairs, step % buffers
        halves = product(range(2), repeat=4)  # load of B, half of it; load of A, half of it
        for mma, (n_load, n_half, m_load, m_half) in enumerate(halves):
            operands = [rA[2 * m_half + i, m_load, buffer] for i in range(2)]
            operands += [rB[2 * n_half + i, n_load, buffer] for i in range(2)]
            operands += [acc[8 * mma + i] for i in range(8)]
            sums = cute.arch.inline_ptx(
                MMA, write_only_types=[Float32] * 8, read_only_args=operands
            )
            for i in range(8):
                acc[8 * mma + i] = sums[i]

    return acc, load_fragments, multiply
