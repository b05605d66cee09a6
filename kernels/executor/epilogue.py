"""The epilogue of a tile on the CPU: as kernels/device/tile_epilogue.py, through the same layouts.

operands (M, N) ─ C's thread-value layout, projected ▶ registers ┐
accumulators ────────────────────────────────────────────────────┴ program ▶ results (M, N)
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from cutedsl_gemm.kernels.epilogue.evaluate import evaluate
from cutedsl_gemm.kernels.epilogue.expression import Epilogue, Operand
from cutedsl_gemm.kernels.executor.tiles import thread_values, tiles, write_tiles
from cutedsl_gemm.kernels.plan.tv_layout import TVLayout

Tiler = tuple[int, int]


def store_tiles(
    accumulators: Sequence[Tensor],
    operands: Sequence[Tensor | float],
    results: Sequence[Tensor],
    epilogue: Epilogue,
    copy: TVLayout,
    tiler: Tiler,
) -> None:
    """Compute all tiles of each result (M, N), and store them.

    `accumulators` are (thread, value, tiles_m, tiles_n); `copy` is the thread-value layout of a
    tile. An element of a tile that no thread stores is NaN.
    """
    bm, bn = tiler
    loaded = [
        _load(operand, given, copy, results[0].shape, tiler)
        for operand, given in zip(epilogue.operands, operands, strict=True)
    ]
    values = evaluate(epilogue, accumulators, loaded)
    for value, result in zip(values, results, strict=True):
        stored = result.new_full((bm * bn, *value.shape[2:]), torch.nan)
        stored[row_major(copy, bn)] = value.to(result.dtype)
        write_tiles(stored.permute(1, 2, 0).unflatten(2, tiler), result)


def over_c(operand: Operand, tensor: Tensor, shape: Sequence[int]) -> Tensor:
    """An operand as a tensor over C (M, N): its stride is 0 along a mode that it lacks.

    >>> over_c(Operand("bias", ("N",)), torch.ones(3), (2, 3)).stride()
    (0, 1)
    """
    shaped = tensor[:, None] if operand.modes == ("M",) else tensor
    return shaped.expand(*shape)


def row_major(copy: TVLayout, columns: int) -> Tensor:
    """(thread, value) → offset in a row-major tile of so many columns."""
    return copy.offsets(columns, 1)(*thread_values(copy.rows))


def _load(
    operand: Operand, given: Tensor | float, copy: TVLayout, shape: Sequence[int], tiler: Tiler
) -> Tensor | float:
    """An operand's values (thread, value, tiles_m, tiles_n); a number as it is."""
    if not isinstance(given, Tensor):
        return given
    projection = copy.projection(operand.modes)
    elements = tiles(over_c(operand, given, shape), *tiler).flatten(2).permute(2, 0, 1)
    threads, values = thread_values(projection.rows)
    registers = elements.new_full((len(threads), len(values), *elements.shape[1:]), torch.nan)
    registers[:, projection.registers(values)] = elements[row_major(projection, tiler[1])]
    _, every = thread_values(copy.rows)
    return registers[:, copy.projected_registers(operand.modes)(every)]
