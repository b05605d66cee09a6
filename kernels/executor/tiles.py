"""Matrices as tiles, thread-value layouts as indices, and the tiles that the blocks visit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import torch
from torch import Tensor

from cutedsl_gemm.kernels.plan.checks import PlanError
from layouts import Layout, size


def thread_values(layout: Layout) -> tuple[Tensor, Tensor]:
    """The threads (threads, 1) and the values (values,) of a layout, to be broadcast."""
    return torch.arange(size(layout[0]))[:, None], torch.arange(size(layout[1]))


def multiply_one_by_one(acc: Tensor, rA: Tensor, rB: Tensor) -> None:
    """acc (tiles, BM, BN) += rA (tiles, BM, BK) · rBᵀ (tiles, BK, BN) in fp32, k after k.

    Each step is one IEEE operation on each element, so that a bit depends on the element's row and
    column only. A matrix product of torch may sum in another order at another place or extent.

    >>> acc, ones = torch.zeros(1, 2, 3), torch.ones(1, 3, 4)
    >>> multiply_one_by_one(acc, ones[:, :2], ones)
    >>> acc.unique()
    tensor([4.])
    """
    product = torch.empty(acc.shape[1:], dtype=acc.dtype)  # of one tile: it stays in the cache
    for total, a, b in zip(acc, rA.float().mT, rB.float().mT, strict=True):
        for row_elements, column_elements in zip(a.contiguous(), b.contiguous(), strict=True):
            torch.mul(row_elements[:, None], column_elements, out=product)
            total += product


def tiles(matrix: Tensor, rows: int, columns: int, at_once: int = 1) -> Tensor:
    """The matrix as (row tiles, column tiles, rows, columns); zero out of bounds.

    The number of row tiles is rounded up to a multiple of `at_once`.
    """
    m, n = matrix.shape
    down, across = -(-m // (rows * at_once)) * at_once, -(-n // columns)
    padded = matrix.new_zeros(down * rows, across * columns)
    padded[:m, :n] = matrix
    return padded.view(down, rows, across, columns).transpose(1, 2)


def write_tiles(source: Tensor, out: Tensor) -> None:
    """Write tiles (row tiles, column tiles, rows, columns) to a matrix: the inverse of `tiles`.

    What is out of bounds is dropped.
    """
    down, across, rows, columns = source.shape
    padded = source.transpose(1, 2).reshape(down * rows, across * columns)
    out.copy_(padded[: out.shape[0], : out.shape[1]])


def check_visits(order: str, coords: Iterable[tuple[int, int]], tiles_m: int, tiles_n: int) -> None:
    """PlanError unless the coordinates are those of C's tiles_m × tiles_n tiles, each once.

    `order` names what orders the tiles; `coords` has the tile (m, n) of each block.

    >>> from cutedsl_gemm.kernels.plan.checks import PlanError
    >>> try:
    ...     check_visits("the raster", [(0, 0), (0, 0), (0, 1)], 1, 3)
    ... except PlanError as error:
    ...     print(error)
    the raster visits tile (0, 0) 2 times; it must visit each of the 1×3 tiles of C once
    """
    inside = {(m, n) for m in range(tiles_m) for n in range(tiles_n)}
    visits = Counter(coords)
    for coord in sorted(inside | set(visits)):
        if visits[coord] != (coord in inside):
            raise PlanError(
                f"{order} visits tile {coord} {visits[coord]} times; it must visit each of the "
                f"{tiles_m}×{tiles_n} tiles of C once"
            )
