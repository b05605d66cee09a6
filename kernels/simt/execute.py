"""The executor of the SIMT plans: data goes where the plan's layouts send it, on the CPU.

    global ─ copies of A, B ▶ shared memory ─ rows that a thread multiplies by ▶ registers
           ─ copy of C ▶ global

All blocks and threads move together, one k-tile at a time.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from cutedsl_gemm.kernels.executor import executor, thread_values, tiles, write_tiles
from cutedsl_gemm.kernels.simt.plan import SimtPlan
from layouts import cosize


@executor
def gemm(plan: SimtPlan, a: Tensor, b: Tensor, out: Tensor) -> Iterator[float]:
    """out (M, N) = a (M, K) · b (K, N) on CPU tensors; K > 0. Yields once per k-tile."""
    (bm, bn, bk), (rows, columns) = plan.tile, plan.thread_tile
    gA, gB = tiles(a, bm, bk), tiles(b.mT, bn, bk)  # (tiles, k_tiles, rows, BK)
    load_a, load_b = Load(plan, "A"), Load(plan, "B")
    k_tiles, threads = gA.shape[1], plan.threads
    # (thread, tiles_m, rows of a thread, columns of a thread, tiles_n)
    acc = torch.zeros(threads, len(gA), rows, columns, len(gB), dtype=torch.float32)
    for k_tile in range(k_tiles):
        rA, rB = load_a(gA[:, k_tile]), load_b(gB[:, k_tile])  # (thread, tiles, values, BK)
        rB = rB.transpose(1, 2)  # (thread, values, tiles, BK)
        outer = acc.view(threads, len(gA) * rows, columns * len(gB))
        outer.baddbmm_(rA.flatten(1, 2), rB.flatten(1, 2).mT)
        yield (k_tile + 1) / k_tiles
    gC = out.new_full((len(gA), len(gB), bm * bn), torch.nan)
    place = plan.c.offsets(bn, 1)(*thread_values(plan.c.rows))  # in a row-major tile
    gC[:, :, place] = acc.permute(1, 4, 0, 3, 2).flatten(3)  # the values: rows fastest
    write_tiles(gC.view(len(gA), len(gB), bm, bn), out)


class Load:
    """An operand from global memory to the threads' registers, through shared memory if staged."""

    def __init__(self, plan: SimtPlan, name: str) -> None:
        self.operand, bk = plan.operands.get(name), plan.tile[2]
        rows, k = plan.fragment(name), torch.arange(bk)
        row = rows(*thread_values(rows))[..., None]  # (thread, value, 1)
        if self.operand is None:
            self.read = row * bk + k
            return
        copy, smem = self.operand.copy, self.operand.smem
        self.read, every = smem(row, k), thread_values(copy.rows)
        self.copied = copy.offsets(bk, 1)(*every)
        self.written = smem(copy.rows(*every), copy.columns(*every))

    def __call__(self, tiles: Tensor) -> Tensor:
        """Tiles (tiles, rows, BK) as the threads hold them, (thread, tiles, values, BK)."""
        held = tiles.flatten(1)
        if self.operand is not None:
            shared = held.new_full((len(held), cosize(self.operand.smem)), torch.nan)
            shared[:, self.written] = held[:, self.copied]
            held = shared
        return held[:, self.read].transpose(0, 1)
