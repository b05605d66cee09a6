"""The executor of the SIMT plans: data goes where the plan's layouts send it, on the CPU.

    global ─ shares of the threads ▶ shared memory ─ rows that a thread multiplies by ▶ registers
           ─ shares of C ▶ global

All blocks and threads move together, one k-block at a time.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from cutedsl_gemm.kernels.executor import executor, thread_values, tiles
from cutedsl_gemm.kernels.simt.plan import SimtPlan, Stage
from layouts import cosize


@executor
def gemm(plan: SimtPlan, a: Tensor, b: Tensor, out: Tensor) -> Iterator[float]:
    """out (M, N) = a (M, K) · b (K, N) on CPU tensors; K > 0. A step is a k-block."""
    (bm, bn, bk), (m, n) = plan.tile, out.shape
    gA, gB = tiles(a, bm, bk), tiles(b.mT, bn, bk)  # (tiles, k_blocks, rows, BK)
    read_a, read_b = Read(plan, "A", plan.a), Read(plan, "B", plan.b)
    k_blocks = gA.shape[1]
    acc = torch.zeros(plan.threads, len(gA), *plan.values, len(gB), dtype=torch.float32)
    shape = (plan.threads, len(gA) * plan.values[0], plan.values[1] * len(gB))
    for block in range(k_blocks):
        rA, rB = read_a(gA[:, block]), read_b(gB[:, block])  # (thread, tiles, values, BK)
        rB = rB.transpose(1, 2)  # (thread, values, tiles, BK)
        acc.view(shape).baddbmm_(rA.flatten(1, 2), rB.flatten(1, 2).mT)
        yield (block + 1) / k_blocks
    gC = out.new_full((len(gA), len(gB), bm * bn), torch.nan)
    thread, value = thread_values(plan.c.rows)
    place = bn * plan.c.rows(thread, value) + plan.c.columns(thread, value)
    gC[:, :, place] = acc.permute(1, 4, 0, 3, 2).flatten(3)  # values with the rows fastest
    padded = gC.view(len(gA), len(gB), bm, bn).transpose(1, 2).reshape(len(gA) * bm, -1)
    out.copy_(padded[:m, :n])


class Read:
    """An operand's way to the threads: by the shared memory of a stage, or as it lies."""

    def __init__(self, plan: SimtPlan, name: str, stage: Stage | None) -> None:
        self.stage, self.columns = stage, plan.tile[2]
        rows, k = plan.operand(name), torch.arange(self.columns)
        row = rows(*thread_values(rows))[..., None]  # (thread, value, 1)
        self.read = row * self.columns + k if stage is None else stage.smem(row, k)
        if stage is not None:
            share = stage.share
            row, k = (
                share.rows(*thread_values(share.rows)),
                share.columns(*thread_values(share.rows)),
            )
            self.brought, self.written = row * self.columns + k, stage.smem(row, k)

    def __call__(self, tiles: Tensor) -> Tensor:
        """Tiles (tiles, rows, BK) as threads hold them, (thread, tiles, values, BK)."""
        held = tiles.flatten(1)
        if self.stage is not None:
            shared = held.new_full((len(held), cosize(self.stage.smem)), torch.nan)
            shared[:, self.written] = held[:, self.brought]
            held = shared
        return held[:, self.read].transpose(0, 1)
