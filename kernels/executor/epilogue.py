"""The epilogue of a tile on the CPU: as kernels/device/tile_epilogue.py, through the same layouts.

operands over C (M, N) ─ C's thread-value layout ▶ registers ┐
accumulators ────────────────────────────────────────────────┴ program ▶ results
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import torch
from torch import Tensor

from cutedsl_gemm.kernels.epilogue.evaluate import evaluate
from cutedsl_gemm.kernels.epilogue.expression import Epilogue, EpilogueOperand, Result
from cutedsl_gemm.kernels.epilogue.operations import IDENTITIES
from cutedsl_gemm.kernels.executor.tiles import thread_values, write_tiles
from cutedsl_gemm.kernels.plan.epilogue import stored_as
from cutedsl_gemm.kernels.plan.tv_layout import TVLayout
from layouts import size

Tiler = tuple[int, int]
COMBINE: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "sum": torch.add,
    "amax": torch.maximum,
    "amin": torch.minimum,
}


def store_tiles(
    accumulators: Sequence[Tensor],
    operands: Sequence[Tensor | float],
    results: Sequence[Tensor],
    epilogue: Epilogue,
    copy: TVLayout,
    tiler: Tiler,
    shape: Sequence[int],
) -> None:
    """Compute all tiles of each result of C (M, N), and store them.

    `accumulators` are (thread, value, tiles_m, tiles_n); `copy` is the thread-value layout of a
    tile. An element of a tile that no thread stores is NaN.
    """
    (m, n), (bm, bn) = shape, tiler
    row, column = (
        each(*thread_values(each))[..., None, None] for each in (copy.rows, copy.columns)
    )
    row = row + bm * torch.arange(-(-m // bm))[:, None]  # (thread, value, tiles_m, 1)
    column = column + bn * torch.arange(-(-n // bn))  # (thread, value, 1, tiles_n)
    place = row.clamp(max=m - 1), column.clamp(max=n - 1)
    loaded = [
        over_c(operand, given, shape)[place] if isinstance(given, Tensor) else given
        for operand, given in zip(epilogue.operands, operands, strict=True)
    ]
    values = evaluate(epilogue, accumulators, loaded)
    for each, value, out in zip(epilogue.results, values, results, strict=True):
        stored, extents = stored_as(each, copy, tiler)
        if each.over is not None:
            value = _reduce(each, value, copy, (row < m) & (column < n))
        tile = out.new_full((prod(extents), *value.shape[2:]), torch.nan)
        tile[row_major(stored, extents[1])] = value.to(out.dtype)
        matrix = out.mT if each.over == "N" else out
        write_tiles(tile.permute(1, 2, 0).unflatten(2, extents), matrix)


def _reduce(result: Result, values: Tensor, copy: TVLayout, inside: Tensor) -> Tensor:
    """The parts (thread, element, tiles_m, tiles_n) of a reduction of values of that form.

    A thread reduces its values in the order in which it has them, line by line. One that is not
    `inside` C changes nothing.
    """
    identity, combine = IDENTITIES[str(result.reduction)], COMBINE[str(result.reduction)]
    values = torch.where(inside, values, identity)
    _, every = thread_values(copy.rows)
    register = copy.projected_registers(result.modes)(every)
    registers = copy.projection(result.modes).registers
    parts = values.new_full((copy.threads, size(registers), *values.shape[2:]), identity)
    for value in every.view(-1, copy.lines).mT.flatten():
        parts[:, register[value]] = combine(parts[:, register[value]], values[:, value])
    return parts[:, registers(torch.arange(size(registers)))]


def over_c(operand: EpilogueOperand, tensor: Tensor, shape: Sequence[int]) -> Tensor:
    """An operand as a tensor over C, (M, N) or (L, M, N): its stride is 0 along a mode it lacks.

    >>> over_c(EpilogueOperand("bias", ("N",)), torch.ones(3), (2, 3)).stride()
    (0, 1)
    >>> over_c(EpilogueOperand("scale", ("M",), batched=True), torch.ones(5, 2), (5, 2, 3)).stride()
    (2, 1, 0)
    """
    modes = operand.tensor_modes
    placed = [slice(None) if mode in modes else None for mode in "LMN"[-len(shape) :]]
    return (tensor if modes else tensor[0])[tuple(placed)].expand(*shape)


def row_major(copy: TVLayout, columns: int) -> Tensor:
    """(thread, value) → offset in a row-major tile of `columns` columns."""
    return copy.offsets(columns, 1)(*thread_values(copy.rows))
