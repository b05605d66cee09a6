"""The executor of kernels whose blocks compute one tile of C each: simt, sm70 and sm80.

    k-tile ─ copies ▶ a stage of shared memory ─ loads ▶ registers ─ products ▶ accumulators ▶ C

The units of a block are its threads, quad pairs or warps: whatever multiplies on its own. A unit
holds some rows of A and some rows of B, and accumulates the products of each row with each other.
All blocks move together. The blocks of a row of tiles load the same A, and do so once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import torch
from torch import Tensor

from cutedsl_gemm.kernels.executor.epilogue import row_major, store_tiles
from cutedsl_gemm.kernels.executor.tiles import check_visits, thread_values, tiles
from cutedsl_gemm.kernels.plan.block_plan import BlockPlan
from cutedsl_gemm.kernels.plan.checks import PlanError
from cutedsl_gemm.kernels.plan.tv_layout import TVLayout
from layouts import ComposedLayout, Layout, cosize, size

ONE_STAGE = Layout(1, 0)  # stage → its first element
Registers: TypeAlias = tuple[Tensor, Tensor, Tensor]  # (thread, value) → unit, its row, its column


class Fragments(Protocol):
    """How an operand gets into registers."""

    @property
    def shape(self) -> tuple[int, int]:
        """(units of a block, rows of a unit)."""

    def __call__(self, matrix: Tensor) -> Iterator[Tensor]:
        """Of each k-tile of (tiles, k_tiles, rows, BK): (units, tiles, rows of a unit, K)."""


def multiply(
    plan: BlockPlan,
    a: Tensor,
    b: Tensor,
    out: Tensor | tuple[Tensor, ...],
    operands: Sequence[Tensor | float],
    loads: Sequence[Fragments],
    held: Registers,
) -> Iterator[float]:
    """out (M, N) = the epilogue of a (M, K) · b (K, N). Yields once per k-tile.

    `loads` are those of A and of B; `held` says which accumulator each value of C is.
    """
    (bm, bn, bk), (load_a, load_b) = plan.tile, loads
    gA, gB = tiles(a, bm, bk), tiles(b.mT, bn, bk)  # (tiles, k_tiles, rows, BK)
    counts, k_tiles = (len(gA), len(gB)), gA.shape[1]
    # A block reads and writes by one coordinate: the order changes nothing but who computes what.
    coords = (plan.tile_coord(block, *counts) for block in range(len(gA) * len(gB)))
    check_visits(f"{plan.name}: its order", coords, *counts)
    (units, rows), (_, columns) = load_a.shape, load_b.shape
    acc = torch.zeros(units, len(gA) * rows, len(gB) * columns, dtype=torch.float32)
    for k_tile, (rA, rB) in enumerate(zip(load_a(gA), load_b(gB), strict=True)):
        # (units, tiles, rows, K), (units, tiles, columns, K)
        acc.baddbmm_(rA.flatten(1, 2).float(), rB.flatten(1, 2).float().mT)
        yield (k_tile + 1) / k_tiles
    unit, row, column = held
    values = acc.view(units, len(gA), rows, len(gB), columns)[unit, :, row, :, column]
    # (thread, value, tiles_m, tiles_n)
    results = out if isinstance(out, tuple) else (out,)
    shape = a.shape[0], b.shape[1]
    store_tiles([values], operands, results, plan.epilogue, plan.c, (bm, bn), shape)


@dataclass(frozen=True)
class Direct:
    """An operand that the units read in global memory."""

    read: Tensor  # (units, rows of a unit, BK) → element of a row-major tile

    @property
    def shape(self) -> tuple[int, int]:
        """(units of a block, rows of a unit)."""
        return self.read.shape[0], self.read.shape[1]

    def __call__(self, matrix: Tensor) -> Iterator[Tensor]:
        """Each k-tile in the registers of the units."""
        for k_tile in matrix.flatten(2).unbind(1):  # (tiles, rows * BK)
            yield k_tile[:, self.read].transpose(0, 1)


@dataclass(frozen=True)
class Staged:
    """An operand that threads copy into stages of shared memory, out of which the units read it.

    A stage keeps what it held, at first NaN, until it is written again. With n stages, n - 1
    k-tiles are loaded ahead. With `prefetch`, the first step of a k-tile is read before the next
    load.
    """

    copy: TVLayout
    smem: Layout | ComposedLayout  # (rows, BK) → element of a stage
    reads: Sequence[Tensor]  # of each step: (units, rows of a unit, k) → element of a stage
    stages: Layout = ONE_STAGE
    prefetch: bool = False

    def __post_init__(self) -> None:
        if not self.reads:
            raise PlanError("a k-tile has no step: BK must be a multiple of what a step multiplies")

    @property
    def shape(self) -> tuple[int, int]:
        """(units of a block, rows of a unit)."""
        return self.reads[0].shape[0], self.reads[0].shape[1]

    def __call__(self, matrix: Tensor) -> Iterator[Tensor]:
        """Each k-tile in the registers of the units."""
        count, ahead, steps = matrix.shape[1], size(self.stages) - 1, range(len(self.reads))
        load, read = self._through_memory(matrix)
        for k_tile in range(ahead):
            load(k_tile)
        first = [read(0, 0)] if self.prefetch else []
        for k_tile in range(count):
            load(k_tile + ahead)
            fragments = [*first, *(read(step, k_tile) for step in steps[len(first) :])]
            first = [read(0, k_tile + 1)] if self.prefetch else []
            yield torch.cat(fragments, dim=3).transpose(0, 1)

    def _through_memory(
        self, matrix: Tensor
    ) -> tuple[Callable[[int], None], Callable[[int, int], Tensor]]:
        """`load(k_tile)`, and `read(step, k_tile)` → (tiles, units, rows of a unit, k)."""
        k_tiles, elements = matrix.flatten(2), cosize(self.smem)  # (tiles, k_tiles, rows * BK)
        every, columns = thread_values(self.copy.rows), matrix.shape[3]
        written = self.smem(self.copy.rows(*every), self.copy.columns(*every))
        copied = row_major(self.copy, columns)
        last = self.stages(size(self.stages) - 1)
        shared = matrix.new_full((len(matrix), last + elements), torch.nan)

        def stage(k_tile: int) -> Tensor:
            start = self.stages(k_tile % size(self.stages))
            return shared[:, start : start + elements]

        def load(k_tile: int) -> None:
            if k_tile < k_tiles.shape[1]:
                stage(k_tile)[:, written] = k_tiles[:, k_tile, copied]

        def read(step: int, k_tile: int) -> Tensor:
            return stage(k_tile)[:, self.reads[step]]

        return load, read
