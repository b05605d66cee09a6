"""The executor of the sm80 plans: data goes where the plan's layouts send it, on the CPU.

    global ─ shares of the threads ▶ swizzled shared memory ─ ldmatrix rows ▶ tensor core
           ─ mma's fragments ▶ registers ─ fragment, shares of C ▶ global

What the instructions do is taken from them, not from the plan, so that a plan that believes
otherwise gives a wrong answer here too: ldmatrix takes rows of 16 contiguous bytes along the
operand's major, whatever the layout says of what lies inside one, and mma leaves its accumulator
where the PTX ISA says. All blocks move together.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from cutedsl_gemm.kernels.executor import executor, thread_values, tiles
from cutedsl_gemm.kernels.plan.checks import UNIT
from cutedsl_gemm.kernels.plan.partition import TVLayout
from cutedsl_gemm.kernels.sm80.plan import Sm80Plan
from cutedsl_gemm.kernels.sm80.stage import Stage
from layouts import Layout, composition, cosize, make_layout, mma, size
from layouts.hardware.descriptor import Major


@executor
def gemm(plan: Sm80Plan, a: Tensor, b: Tensor, out: Tensor) -> Iterator[float]:
    """out (M, N) = a (M, K) · b (K, N) on CPU tensors; K > 0. A step is a k-block."""
    yield from steps(plan, a, b, out, held(plan))


def held(plan: Sm80Plan) -> Layout:
    """(thread, register) → m + BM * line of B: mma's accumulators, as the warps step over the tile.

    >>> from cutedsl_gemm.kernels.sm80.plan import swizzled
    >>> print(held(swizzled()))
    (((4,8),(2,2)),((2,2),(4,8))):(((256,1),(16,1024)),((128,8),(32,2048)))
    """
    (bm, bn, _), (down, along) = plan.tile, plan.warps
    atom = mma(f"m16n8k{plan.step[2]}", "f16")  # of bf16 it is the same
    m, n, _ = atom.shape
    lanes, values = composition(Layout((m, n), (1, bm)), atom.c)
    warps = Layout(plan.warps, (m, n * bm))
    again = Layout((bm // (m * down), bn // (n * along)), (m * down, n * along * bm))
    return make_layout(make_layout(lanes, warps), make_layout(values, again))


def steps(plan: Sm80Plan, a: Tensor, b: Tensor, out: Tensor, held: Layout) -> Iterator[float]:
    """The steps of `gemm` on a tensor core that leaves its sums where `held` says."""
    (bm, bn, bk), (m, n) = plan.tile, out.shape
    gA, gB = tiles(a, bm, bk), tiles(b.mT, bn, bk)  # (tiles, k_blocks, rows, BK)
    load_a, load_b = map(Load, (plan.a, plan.b), plan.smem_majors)
    acc = torch.zeros(len(gA) * bm, len(gB) * bn, dtype=torch.float32)
    for block in range(gA.shape[1]):
        rA, rB = load_a(gA[:, block]), load_b(gB[:, block])  # (tiles, rows, BK)
        acc.addmm_(rA.flatten(0, 1).float(), rB.flatten(0, 1).float().mT)
        yield (block + 1) / gA.shape[1]
    registers = tiles(acc, bm, bn).mT.flatten(2)[
        :, :, held(*thread_values(held))
    ]  # (…, thread, register)
    _, value = thread_values(plan.c.rows)
    gC = out.new_full((len(gA), len(gB), bm * bn), torch.nan)
    gC[:, :, at(plan.c, bn)] = registers[..., plan.fragment(value)].to(out.dtype)
    whole = gC.view(len(gA), len(gB), bm, bn).transpose(1, 2).reshape(acc.shape)
    out.copy_(whole[:m, :n])


class Load:
    """An operand's way to the tensor core: brought by the threads, read by ldmatrix."""

    def __init__(self, stage: Stage, major: Major) -> None:
        self.elements = cosize(stage.smem)
        share, (rows, columns) = stage.share, map(size, stage.smem)
        row, k = share.rows(*thread_values(share.rows)), share.columns(*thread_values(share.rows))
        self.brought, self.written = at(share, columns), stage.smem(row, k)
        row, k = torch.arange(rows)[:, None], torch.arange(columns)
        if major == "K":
            self.read = stage.lines(row, k // UNIT * UNIT) + k % UNIT
        else:
            self.read = stage.lines(row // UNIT * UNIT, k) + row % UNIT

    def __call__(self, held: Tensor) -> Tensor:
        """Tiles (tiles, rows, BK) through one stage."""
        shared = held.new_full((len(held), self.elements), torch.nan)
        shared[:, self.written] = held.flatten(1)[:, self.brought]
        return shared[:, self.read]


def at(share: TVLayout, columns: int) -> Tensor:
    """(thread, value) → place in a row-major tile of so many columns."""
    return share.offsets(columns, 1)(*thread_values(share.rows))
