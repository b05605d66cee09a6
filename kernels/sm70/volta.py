"""sm70 GEMM on mma.m8n8k4: two buffers in shared memory, two in registers.

    step       0                      1 … 5       6                               7
    global     k-block b + 1 asked for            in the other buffer ┃ barrier
    shared     fragments of step 1    2 … 6       7                   ┃           0 of b + 1
    mma        step 0                 1 … 5       6                               7

The residue of K comes first, so that every k-block behind it is whole. From sm_75 on mma.m8n8k4 is
emulated: right, and slow. What ptxas makes of it for sm_70, the tests see.
"""

from collections.abc import Callable
from itertools import product
from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Float16, Float32, Int32, Uint32

from cutedsl_gemm.kernels.device.launch import OneTilePerBlock
from cutedsl_gemm.kernels.device.tile import (
    load_to_registers,
    split_columns,
    store_to_smem,
    thread_partition,
    tile_coord,
)
from cutedsl_gemm.kernels.plan.checks import UNIT
from cutedsl_gemm.kernels.sm70.plan import Sm70Plan
from cutedsl_gemm.kernels.sm80.parts import shared, store

MMA = "mma.sync.aligned.m8n8k4.col.row.f32.f16.f16.f32 {}, {}, {}, {};".format(
    *(
        "{" + ", ".join(f"{{${kind}{i}}}" for i in range(*span)) + "}"
        for kind, span in (("w", (8,)), ("r", (2,)), ("r", (2, 4)), ("r", (4, 12)))
    )
)


class Volta(OneTilePerBlock):
    """One kernel for every M, N, K of an sm70 plan."""

    @cute.kernel
    def kernel(self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
        plan, (bm, bn, bk) = self.plan, self.plan.tile
        thread = cute.arch.thread_idx()[0]
        m, n = tile_coord(cute.arch.block_idx()[0], c, (bm, bn))
        rings = shared(plan)  # (BM, BK, 2), (BN, BK, 2)
        acc, fetch, multiply = warps(plan, rings, thread)
        a_head, a_rest = residue_first(a, plan.a_major, bk)
        b_head, b_rest = residue_first(b, plan.b_major, bk)
        self.put(self.take(a_head, b_head, (m, n, 0), thread), rings, 0, thread)
        cute.arch.sync_threads()
        fetch(0, 0)
        last = cute.ceil_div(a.shape[1], bk) - 1
        for block in cutlass.range(last, unroll=1):
            held = self.take(a_rest, b_rest, (m, n, block), thread)
            for step in cutlass.range_constexpr(plan.steps - 1):
                fetch(step + 1, block % 2)
                if cutlass.const_expr(step == plan.steps - 2):
                    self.put(held, rings, (block + 1) % 2, thread)
                    cute.arch.sync_threads()
                multiply(step)
            fetch(0, (block + 1) % 2)
            multiply(plan.steps - 1)
        for step in cutlass.range_constexpr(plan.steps):
            if cutlass.const_expr(step < plan.steps - 1):
                fetch(step + 1, last % 2)
            multiply(step)
        store(acc, c, plan, (m, n), thread)

    def take(self, a, b, coordinate, thread):
        """A k-block of A and of B, this thread's shares, in registers."""
        plan, (bm, bn, bk), (m, n, block) = self.plan, self.plan.tile, coordinate
        held_a = load_to_registers(a, plan.a.share, (bm, bk), (m, block), thread)
        return held_a, load_to_registers(b, plan.b.share, (bn, bk), (n, block), thread)

    def put(self, held, rings, stage, thread):
        """What was taken, into a buffer."""
        for values, ring, operand in zip(held, rings, (self.plan.a, self.plan.b), strict=True):
            store_to_smem(values, ring[None, None, stage], operand.share, thread)


def residue_first(matrix: cute.Tensor, major: str, depth: int) -> tuple[cute.Tensor, cute.Tensor]:
    """The residue of K, and the rest: two matrices (rows, K)."""
    residue = (matrix.shape[1] - 1) % depth + 1
    if major == "K":
        residue = cute.assume(residue, divby=UNIT)
    return split_columns(matrix, residue)


def warps(
    plan: Sm70Plan, rings: tuple[cute.Tensor, cute.Tensor], thread: Int32
) -> tuple[cute.Tensor, Callable[[int, Any], None], Callable[[int], None]]:
    """The accumulator, zero, `fetch(step, stage)` and `multiply(step)`; fragments have two buffers.

    Of what a lane reads at once, four rows are one mma's and four the next one's.
    """
    acc = cute.make_rmem_tensor((8 * 16,), Float32)
    acc.fill(0)
    fragments = [cute.make_rmem_tensor((UNIT, 2, 2), Float16) for _ in rings]
    pairs = [cute.recast_tensor(fragment, Uint32) for fragment in fragments]  # (4, 2, 2)

    def fetch(step: int, stage: Any) -> None:
        for ring, share, to in zip(rings, plan.reads.values(), fragments, strict=True):
            tiler = cute.size(ring, mode=[0]), plan.step[2]
            lines = cute.local_tile(ring[None, None, stage], tiler, (0, step))
            piece = thread_partition(lines, share, thread)  # (1, (8, loads))
            for load in range(2):
                cute.autovec_copy(piece[0, (None, load)], to[None, load, step % 2])

    def multiply(step: int) -> None:
        (rA, rB), buffer = pairs, step % 2
        halves = product(range(2), repeat=4)  # B's load, its half, A's load, its half
        for mma, (n_load, n_half, m_load, m_half) in enumerate(halves):
            operands = [rA[2 * m_half + i, m_load, buffer] for i in range(2)]
            operands += [rB[2 * n_half + i, n_load, buffer] for i in range(2)]
            operands += [acc[8 * mma + i] for i in range(8)]
            sums = cute.arch.inline_ptx(
                MMA, write_only_types=[Float32] * 8, read_only_args=operands
            )
            for i in range(8):
                acc[8 * mma + i] = sums[i]

    return acc, fetch, multiply
