"""The executor of the copy plan: elements go where the plan's layouts send them, on the CPU.

    memory of the source ─ two words ▶ window (element, shift) ─ predicate ▶ memory of the target

All blocks of a row of tiles move together. Memory is counted in elements, from the first element
of a matrix; what precedes it in its aligned word has negative offsets.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from cutedsl_gemm.kernels.copies.plan import CopyPlan
from cutedsl_gemm.kernels.executor import on_cpu, thread_values


def copy(plan: CopyPlan, pairs: tuple[tuple[Tensor, Tensor], ...]) -> None:
    """Copy each source to its target: matrices (rows, columns) with contiguous rows."""
    with on_cpu():
        for source, target in pairs:
            memory = _memory(target)
            for offsets, elements in stores(plan, source, target):
                memory[offsets] = elements


def stores(plan: CopyPlan, source: Tensor, target: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """(offsets in the target's memory, the elements stored there), a row of tiles at a time."""
    (rows, columns), (bm, bn), width = source.shape, plan.tile, plan.width
    memory, every = _memory(source), thread_values(plan.copy.rows)
    tile_columns = bn * torch.arange(-(-(columns + width - 1) // bn))[:, None, None]
    for tile_row in range(-(-rows // bm)):
        # (threads, values), or (tiles, threads, values)
        row, at = bm * tile_row + plan.copy.rows(*every), tile_columns + plan.copy.columns(*every)
        start = row * target.stride(0)
        column = at - _residue(target, start, width)  # at: from the row's first aligned word on
        present = (row < rows) & (column >= 0) & (column < columns)
        element = at % width
        wanted = row * source.stride(0) + column - element  # for the first element of the word
        shift = _residue(source, wanted, width)
        place = wanted - shift + plan.window(element, shift)
        yield (start + column)[present], memory[place[present]]


def _memory(matrix: Tensor) -> Tensor:
    """The memory of a matrix, from its first element to its last, as integers of 16 bits."""
    (rows, columns), (stride, _) = matrix.shape, matrix.stride()
    flat = matrix.as_strided(((rows - 1) * stride + columns,), (1,))
    return flat.view(torch.int16)


def _residue(matrix: Tensor, offset: Tensor, width: int) -> Tensor:
    """Elements between an offset in a matrix's memory and the aligned word that contains it."""
    return (matrix.data_ptr() // matrix.element_size() + offset) % width
