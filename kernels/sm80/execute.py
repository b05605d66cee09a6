"""The executor of the sm80 plans: data goes where the plan's layouts send it, on the CPU.

    global ─ shares of the threads ▶ swizzled shared memory ─ ldmatrix rows ▶ tensor core
           ─ shares of C ▶ registers ─ fragment, shares of C ▶ global

ldmatrix takes rows of 16 contiguous bytes, whatever the layout says of what lies inside one: a
swizzle that breaks them gives a wrong answer here too. All blocks move together.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from cutedsl_gemm.kernels.on_cpu import every, on_cpu, tiles
from cutedsl_gemm.kernels.plan import UNIT
from cutedsl_gemm.kernels.share import Share
from cutedsl_gemm.kernels.sm80.plan import Sm80Plan, Stage
from layouts import cosize, size


def steps(plan: Sm80Plan, a: Tensor, b: Tensor, out: Tensor) -> Iterator[float]:
    """out (M, N) = a (M, K) · b (K, N) on CPU tensors; K > 0. A step is a k-block."""
    (bm, bn, bk), (m, n) = plan.tile, out.shape
    gA, gB = tiles(a, bm, bk), tiles(b.mT, bn, bk)  # (tiles, k_blocks, rows, BK)
    load_a, load_b = Load(plan.a), Load(plan.b)
    acc = torch.zeros(len(gA) * bm, len(gB) * bn, dtype=torch.float32)
    for block in range(gA.shape[1]):
        rA, rB = load_a(gA[:, block]), load_b(gB[:, block])  # (tiles, rows, BK)
        acc.addmm_(rA.flatten(0, 1).float(), rB.flatten(0, 1).float().mT)
        yield (block + 1) / gA.shape[1]
    _, value = every(plan.c.rows)
    held = tiles(acc, bm, bn).flatten(2)[:, :, at(plan.accumulator, bn)]  # (…, thread, value)
    registers = torch.full_like(held, torch.nan)
    registers[..., plan.fragment(value)] = held
    gC = out.new_full((len(gA), len(gB), bm * bn), torch.nan)
    gC[:, :, at(plan.c, bn)] = registers[..., plan.fragment(value)].to(out.dtype)
    whole = gC.view(len(gA), len(gB), bm, bn).transpose(1, 2).reshape(acc.shape)
    out.copy_(whole[:m, :n])


gemm = on_cpu(steps)


class Load:
    """An operand's way to the tensor core: brought by the threads, read by ldmatrix."""

    def __init__(self, stage: Stage) -> None:
        self.elements = cosize(stage.smem)
        share, (rows, columns) = stage.share, map(size, stage.smem)
        row, k = share.rows(*every(share.rows)), share.columns(*every(share.rows))
        self.brought, self.written = at(share, columns), stage.smem(row, k)
        row, k = torch.arange(rows)[:, None], torch.arange(columns)
        if stage.lines(0, 1) == 1:
            self.read = stage.lines(row, k // UNIT * UNIT) + k % UNIT
        else:
            self.read = stage.lines(row // UNIT * UNIT, k) + row % UNIT

    def __call__(self, held: Tensor) -> Tensor:
        """Tiles (tiles, rows, BK) through one stage."""
        shared = held.new_full((len(held), self.elements), torch.nan)
        shared[:, self.written] = held.flatten(1)[:, self.brought]
        return shared[:, self.read]


def at(share: Share, columns: int) -> Tensor:
    """(thread, value) → place in a row-major tile of so many columns."""
    return share.at(columns, 1)(*every(share.rows))
