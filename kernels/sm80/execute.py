"""The executor of the sm80 plans: data goes where the plan's layouts send it, on the CPU.

    global ─ copies of A, B ▶ swizzled shared memory ─ ldmatrix rows ▶ tensor core
           ─ mma's accumulator ▶ registers ─ fragment, copy of C ▶ global

What an instruction does comes from the instruction, not from the plan, so that a wrong plan gives a
wrong answer here too: ldmatrix reads 16 contiguous bytes along the operand's major, whatever the
layout says of the elements inside them, and mma leaves its accumulator where the PTX ISA says. All
blocks move together.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from cutedsl_gemm.kernels.executor import executor, thread_values, tiles, write_tiles
from cutedsl_gemm.kernels.plan.checks import UNIT
from cutedsl_gemm.kernels.plan.tv_layout import TVLayout
from cutedsl_gemm.kernels.sm80.operand import Operand
from cutedsl_gemm.kernels.sm80.plan import Sm80Plan
from layouts import Layout, composition, cosize, make_layout, mma, size
from layouts.hardware.descriptor import Major


@executor
def gemm(plan: Sm80Plan, a: Tensor, b: Tensor, out: Tensor) -> Iterator[float]:
    """out (M, N) = a (M, K) · b (K, N) on CPU tensors; K > 0. Yields once per k-tile."""
    yield from steps(plan, a, b, out, mma_registers(plan))


def mma_registers(plan: Sm80Plan) -> Layout:
    """(thread, register) → m + BM * line of B: mma's accumulators, as the warps step over the tile.

    >>> from cutedsl_gemm.kernels.sm80.rungs import swizzled
    >>> print(mma_registers(swizzled()))
    (((4,8),(2,2)),((2,2),(4,8))):(((256,1),(16,1024)),((128,8),(32,2048)))
    """
    (bm, bn, _), (down, along) = plan.tile, plan.warps
    atom = mma(f"m16n8k{plan.step[2]}", "f16")  # the same for bf16
    m, n, _ = atom.shape
    lanes, values = composition(Layout((m, n), (1, bm)), atom.c)
    warps = Layout(plan.warps, (m, n * bm))
    repeats = Layout((bm // (m * down), bn // (n * along)), (m * down, n * along * bm))
    return make_layout(make_layout(lanes, warps), make_layout(values, repeats))


def steps(plan: Sm80Plan, a: Tensor, b: Tensor, out: Tensor, registers: Layout) -> Iterator[float]:
    """The steps of `gemm` on a tensor core whose accumulator has the layout `registers`."""
    bm, bn, bk = plan.tile
    gA, gB = tiles(a, bm, bk), tiles(b.mT, bn, bk)  # (tiles, k_tiles, rows, BK)
    load_a, load_b = map(Load, (plan.a, plan.b), plan.smem_majors)
    acc = torch.zeros(len(gA) * bm, len(gB) * bn, dtype=torch.float32)
    for k_tile in range(gA.shape[1]):
        rA, rB = load_a(gA[:, k_tile]), load_b(gB[:, k_tile])  # (tiles, rows, BK)
        acc.addmm_(rA.flatten(0, 1).float(), rB.flatten(0, 1).float().mT)
        yield (k_tile + 1) / gA.shape[1]
    held = tiles(acc, bm, bn).mT.flatten(2)  # (tiles_m, tiles_n, m + BM * n)
    held = held[:, :, registers(*thread_values(registers))]  # (tiles_m, tiles_n, thread, register)
    _, value = thread_values(plan.c.rows)
    gC = out.new_full((len(gA), len(gB), bm * bn), torch.nan)
    gC[:, :, row_major(plan.c, bn)] = held[..., plan.fragment(value)].to(out.dtype)
    write_tiles(gC.view(len(gA), len(gB), bm, bn), out)


class Load:
    """An operand from global memory to the tensor core: copied by the threads, read by ldmatrix."""

    def __init__(self, operand: Operand, major: Major) -> None:
        self.elements = cosize(operand.smem)
        copy, (rows, columns) = operand.copy, map(size, operand.smem)
        every = thread_values(copy.rows)
        self.copied = row_major(copy, columns)
        self.written = operand.smem(copy.rows(*every), copy.columns(*every))
        row, k = torch.arange(rows)[:, None], torch.arange(columns)
        if major == "K":
            self.read = operand.mma_smem(row, k // UNIT * UNIT) + k % UNIT
        else:
            self.read = operand.mma_smem(row // UNIT * UNIT, k) + row % UNIT

    def __call__(self, held: Tensor) -> Tensor:
        """Tiles (tiles, rows, BK) through one stage of shared memory, which begins as NaN."""
        shared = held.new_full((len(held), self.elements), torch.nan)
        shared[:, self.written] = held.flatten(1)[:, self.copied]
        return shared[:, self.read]


def row_major(copy: TVLayout, columns: int) -> Tensor:
    """(thread, value) → offset in a row-major tile of so many columns."""
    return copy.offsets(columns, 1)(*thread_values(copy.rows))
