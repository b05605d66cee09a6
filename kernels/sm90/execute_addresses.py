"""Where instructions put data, and where they find it: the addresses of the executor.

Each is computed by the rule of its instruction, not from the layout that wrote the data.
"""

from __future__ import annotations

from functools import cache, lru_cache

import torch
from torch import Tensor

from cutedsl_gemm.kernels.plan import tma
from cutedsl_gemm.kernels.plan.checks import BITS, PlanError
from cutedsl_gemm.kernels.sm90.operand import Operand
from cutedsl_gemm.kernels.sm90.panel_lines import PanelLines
from cutedsl_gemm.kernels.sm90.panel_plan import PanelPlan
from layouts import ComposedLayout, size, wgmma_descriptor
from layouts.hardware.atoms import WGMMA_M, MatrixAtom


@cache
def tma_addresses(operand: Operand) -> list[Tensor]:
    """Where TMA writes element (row, column) of each slice."""
    rows, columns = operand.slice_shape
    coords = [operand.slice_coord(part) for part in range(operand.slices)]
    starts = (operand.smem.outer(i * rows, j * columns) for i, j in coords)
    tile = operand.slice_smem, operand.contiguous, operand.slice_matrices
    return [box_addresses(*tile, start) for start in starts]


@cache
def descriptor_addresses(operand: Operand) -> Tensor:
    """Where wgmma reads element (row, column).

    A descriptor serves 64 rows of A, or BN of B, and 16 columns.
    """
    smem, (rows, columns) = operand.smem, operand.shape
    descriptor = wgmma_descriptor(smem, operand.major)
    at_once = WGMMA_M if operand.name == "A" else rows
    row, column = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
    # in bytes, before the swizzle
    start = smem.outer(row // at_once * at_once, column // 16 * 16) * BITS // 8
    return descriptor.address(start, row % at_once, column % 16) * 8 // BITS


@cache
def matrix_addresses(plan: PanelPlan, atom: MatrixAtom) -> Tensor:
    """Where stmatrix or ldmatrix has value v of a thread: lanes address rows of eight elements.

    (P/S, R/64, S/2, thread) → element of a panel.
    """
    index = torch.arange(size(plan.stmatrix_rows))
    lanes, held = 8 * atom.matrices, 2 * atom.matrices  # that supply an address; of a lane
    # (S columns, m64, warp, lane)
    address = plan.staging(plan.stmatrix_rows(index)).view(-1, plan.panel_rows // WGMMA_M, 4, lanes)
    # (lane, value) → column + 8 * supplying lane
    element = atom.fragment(torch.arange(32)[:, None], torch.arange(held))
    written = address[..., element // 8] + element % 8  # (S columns, m64, warp, lane, value)
    return written.movedim(-1, 2).flatten(-2)


@cache
def box_addresses(
    tile: ComposedLayout, contiguous: int, matrices: int = 1, start: int = 0
) -> Tensor:
    """(row, column) → element where TMA keeps it, of a tile that begins at element `start`.

    Box after box, with the swizzle applied to byte addresses.
    """
    boxes, element = tma.boxes(tile, contiguous, matrices), BITS // 8
    box = torch.arange(boxes.rows)[:, None] * boxes.columns + torch.arange(boxes.columns)
    extents = size(tile.outer[1 - contiguous]), size(tile.outer[contiguous])
    addresses = torch.empty(extents, dtype=torch.int64)
    for row, column, offset in boxes.of_each:
        swizzled = boxes.swizzle((start + offset + box) * element) // element
        addresses[row : row + boxes.rows, column : column + boxes.columns] = swizzled
    return addresses if contiguous == 1 else addresses.mT


@lru_cache(maxsize=64)
def storing_threads(
    lines: PanelLines, extents: tuple[int, int], start: int, stride: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Which thread stores each element of a panel that C has: its row, its column, the thread.

    C has `extents` (rows, columns) of the panel. Line i starts at element start + i * stride of
    memory.
    """
    found = [
        (line, first + i, thread)
        for thread in range(lines.words.threads)
        for line, first, count in lines.stored_by(thread, extents, start, stride)
        for i in range(count)
    ]
    line, position, threads = torch.tensor(found, dtype=torch.int64).view(-1, 3).mT
    row, column = (line, position) if lines.contiguous else (position, line)
    rows, columns = extents
    check_written_once(row * columns + column, rows * columns, "threads, C panel")
    return row, column, threads


def check_written_once(addresses: Tensor, extent: int, who: str) -> None:
    """PlanError unless every offset below `extent` is written exactly once."""
    times = torch.bincount(addresses.flatten(), minlength=extent)
    if len(times) > extent:
        raise PlanError(
            f"{who}: offset {len(times) - 1} is written, and the buffer ends at {extent}"
        )
    for count, words in ((times > 1, "written twice"), (times == 0, "never written")):
        if bool(count.any()):
            raise PlanError(f"{who}: offset {int(count.nonzero()[0])} is {words}")
