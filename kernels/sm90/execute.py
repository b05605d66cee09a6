"""The executor: a plan carried out on the CPU, with real data at each address that the kernel uses.

    global ─ TMA boxes ▶ swizzled shared memory ─ wgmma descriptor ▶ tensor core
           ─ (thread, value) ▶ registers ─ stmatrix lane addresses ▶ swizzled panel
           ─ TMA boxes, or (thread, value) of the panel's copy ▶ global

or, if blocks split K, from the registers

           ─ (thread, value) ▶ partial sums in a workspace
           ─ (thread, value) of the reduction ▶ global

Each arrow computes its addresses by the rule of its instruction, not from the layout that wrote the
data: TMA fills boxes, wgmma reads by descriptor, stmatrix writes rows at lane addresses. A wrong
layout therefore gives a wrong result here too, and an address that is written twice or never raises
PlanError. The tiles of a wave move together: 1024³ takes about a second.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from cutedsl_gemm.kernels.executor import (
    executor,
    multiply_one_by_one,
    thread_values,
    tiles,
    write_tiles,
)
from cutedsl_gemm.kernels.plan import tma
from cutedsl_gemm.kernels.plan.checks import BITS, PlanError
from cutedsl_gemm.kernels.sm90.epilogue_plan import PanelPlan
from cutedsl_gemm.kernels.sm90.operand import Operand
from cutedsl_gemm.kernels.sm90.split_k_plan import SplitKPlan
from layouts import ComposedLayout, cosize, size, wgmma_descriptor

WAVE = 132  # tiles that move together: as many as an H100 has multiprocessors


@executor
def gemm(
    plan: PanelPlan | SplitKPlan, a: Tensor, b: Tensor, out: Tensor, one_by_one: bool = False
) -> Iterator[float]:
    """out (M, N) = a (M, K) · b (K, N) on CPU tensors, K > 0. A step is a wave of tiles.

    If `one_by_one`, the products are added one after the other: at 1024³ this takes 3.5 times as
    long.
    """
    if plan.swapped:  # Cᵀ = Bᵀ · Aᵀ
        a, b, out = b.mT, a.mT, out.mT
    (bm, bn, bk), (down, across) = plan.tile, plan.cluster
    gA = tiles(a, bm, bk, down)  # (tiles_m, k_tiles, BM, BK)
    gB = tiles(b.mT, bn, bk, across)  # (tiles_n, k_tiles, BN, BK)
    tiles_m, tiles_n, k_tiles = len(gA), len(gB), gA.shape[1]
    clusters_m, clusters_n = tiles_m // down, tiles_n // across
    gC = out.new_empty(tiles_m, tiles_n, bm, bn)
    load_a, load_b = TmaLoad(plan.a, plan.stages), TmaLoad(plan.b, plan.stages)
    epilogue = Reduction(plan) if isinstance(plan, SplitKPlan) else PanelStore(plan)
    visits = torch.zeros(tiles_m, tiles_n, dtype=torch.int64)
    for first in range(0, tiles_m * tiles_n, WAVE):
        wave = range(first, min(first + WAVE, tiles_m * tiles_n))
        blocks = (divmod(block, plan.cluster_size) for block in wave)  # (cluster, rank)
        ms, ns = torch.tensor(
            [plan.work.tile_coord(*block, clusters_m, clusters_n) for block in blocks]
        ).mT
        acc = torch.zeros(plan.splits, len(wave), bm, bn, dtype=torch.float32)
        for split in range(plan.splits):
            sA, sB = load_a.buffer(wave, a.dtype), load_b.buffer(wave, b.dtype)
            for loaded, k_tile in enumerate(range(*plan.work.k_tile_range(split, k_tiles))):
                stage = loaded % plan.stages
                rA = load_a(sA, gA[ms, k_tile], stage)
                rB = load_b(sB, gB[ns, k_tile], stage)
                if one_by_one:
                    multiply_one_by_one(acc[split], rA, rB)
                else:
                    acc[split].baddbmm_(rA.float(), rB.float().mT)
        gC[ms, ns] = epilogue(acc, out.dtype)
        visits.index_put_((ms, ns), torch.ones_like(ms), accumulate=True)
        yield (first + len(wave)) / (tiles_m * tiles_n)
    if wrong := int((visits != 1).sum()):
        raise PlanError(
            f"{plan.raster} visits {wrong} of {visits.numel()} tiles never, or more than once"
        )
    write_tiles(gC, out)  # TMA clips what is out of bounds, and threads do not store it


class TmaLoad:
    """An operand's path: TMA into a pipeline of stages, wgmma out of it."""

    def __init__(self, operand: Operand, stages: int) -> None:
        self.operand, self.stages = operand, stages
        self.rows, self.columns = operand.shape
        # Both (rows, columns) → element of one stage.
        self.written = self._tma_addresses()
        self.read = self._descriptor_addresses()
        _check_written_once(self.written, operand.elements, f"TMA, {operand.name}")

    def buffer(self, wave: range, dtype: torch.dtype) -> Tensor:
        """The stages of each tile of the wave, filled with NaN: (wave, stages, elements)."""
        return torch.full((len(wave), self.stages, self.operand.elements), torch.nan, dtype=dtype)

    def __call__(self, shared: Tensor, tiles: Tensor, stage: int) -> Tensor:
        """Tiles (wave, rows, columns) through one stage, as the tensor core reads them."""
        shared[:, stage, self.written.flatten()] = tiles.flatten(1)
        return shared[:, stage, self.read.flatten()].view_as(tiles)

    def _tma_addresses(self) -> Tensor:
        """Where TMA writes element (row, column): each block of a cluster loads its slice."""
        operand, (rows, columns) = self.operand, self.operand.slice_shape
        coords = [operand.slice_coord(part) for part in range(operand.slices)]
        starts = (operand.smem.outer(i * rows, j * columns) for i, j in coords)
        tile, contiguous = operand.slice_smem, operand.contiguous
        parts = [_box_addresses(tile, contiguous, start) for start in starts]
        return torch.cat(parts, dim=1 - contiguous)

    def _descriptor_addresses(self) -> Tensor:
        """Where wgmma reads element (row, column).

        A descriptor serves 64 rows of A, or BN of B, and 16 columns.
        """
        smem, name = self.operand.smem, self.operand.name
        descriptor = wgmma_descriptor(smem, self.operand.major)
        rows = 64 if name == "A" else self.rows
        row, column = torch.meshgrid(
            torch.arange(self.rows), torch.arange(self.columns), indexing="ij"
        )
        # in bytes, before the swizzle
        start = smem.outer(row // rows * rows, column // 16 * 16) * BITS // 8
        return descriptor.address(start, row % rows, column % 16) * 8 // BITS


class PanelStore:
    """The epilogue of a PanelPlan: registers, stmatrix into a panel, TMA or threads out."""

    def __init__(self, plan: PanelPlan) -> None:
        self.rows, self.bn = plan.rows, plan.tile[1]
        self.panels, self.columns = plan.panels, plan.panel_columns  # columns: P
        self.elements = cosize(plan.staging)
        threads, values = thread_values(plan.accumulator)
        self.accumulator = plan.accumulator(threads, values)  # (thread, value) → m + R * n
        _check_written_once(self.accumulator, self.rows * self.bn, "wgmma, accumulator")
        held = size(plan.fragment[0])  # S/2, values of a thread's stmatrix
        self.fragment = plan.fragment(values).view(self.panels, -1, self.rows // 64, held)
        # (P/S, R/64, S/2, thread), elements of a panel
        self.written = self._stmatrix_addresses(plan)
        if plan.stored_by_tma:
            self.read = _box_addresses(plan.staging, plan.contiguous)  # (R, P)
        else:
            self.read = self._thread_addresses(plan)
        _check_written_once(self.written, self.elements, "stmatrix, C panel")

    def __call__(self, acc: Tensor, dtype: torch.dtype) -> Tensor:
        """(1, wave, BM, BN) in fp32 → (wave, BM, BN) in the output's type, R rows a consumer."""
        shape, acc = acc.shape[1:], acc.view(-1, self.rows, self.bn)
        registers = acc.mT.flatten(1)[:, self.accumulator]  # (wave, thread, value)
        out = acc.new_empty(acc.shape, dtype=dtype)
        for panel in range(self.panels):
            shared = torch.full((len(acc), self.elements), torch.nan, dtype=dtype)
            # (wave, P/S, R/64, S/2, thread)
            values = registers[:, :, self.fragment[panel]].to(dtype).movedim(1, -1)
            shared[:, self.written.flatten()] = values.flatten(1)
            columns = slice(panel * self.columns, (panel + 1) * self.columns)
            out[:, :, columns] = shared[:, self.read.flatten()].view(-1, *self.read.shape)
        return out.view(shape)

    def _thread_addresses(self, plan: PanelPlan) -> Tensor:
        """(row, column) → element of the panel that a thread reads, to store it there in C."""
        every, copy = thread_values(plan.panel_copy.rows), plan.panel_copy
        row, column = copy.rows(*every), copy.columns(*every)
        _check_written_once(row * self.columns + column, self.elements, "threads, C panel")
        read = torch.empty(self.rows, self.columns, dtype=torch.int64)
        read[row, column] = plan.staging(row + self.rows * column)
        return read

    def _stmatrix_addresses(self, plan: PanelPlan) -> Tensor:
        """Where value v of a thread is written: lanes address the rows of eight elements."""
        atom, index = plan.stmatrix, torch.arange(size(plan.stmatrix_rows))
        lanes, held = 8 * atom.matrices, 2 * atom.matrices  # that supply an address; of a lane
        # (S columns, m64, warp, lane)
        address = plan.staging(plan.stmatrix_rows(index)).view(-1, plan.rows // 64, 4, lanes)
        # (lane, value) → column + 8 * supplying lane
        element = atom.fragment(torch.arange(32)[:, None], torch.arange(held))
        written = address[..., element // 8] + element % 8  # (S columns, m64, warp, lane, value)
        return written.movedim(-1, 2).flatten(-2)


class Reduction:
    """The epilogue of a SplitKPlan: registers, workspace, the reduction's threads, global."""

    def __init__(self, plan: SplitKPlan) -> None:
        bm, bn, _ = plan.tile
        accumulator = plan.accumulator(
            *thread_values(plan.accumulator)
        )  # (thread, value) → m + R * n
        _check_written_once(accumulator, plan.rows * bn, "wgmma, accumulator")
        first_rows = torch.arange(plan.consumers)[:, None, None] * plan.rows  # of each consumer
        self.n = (accumulator // plan.rows).expand(plan.consumers, -1, -1)
        self.m = accumulator % plan.rows + first_rows
        self.written = plan.partial_sums(self.m + bm * self.n)  # (consumer, thread, value)
        _check_written_once(self.written, bm * bn, "workspace, partial sums")
        layout, rows, c_tile = plan.reduction, plan.reduction_rows, plan.c_tile
        threads, values = thread_values(layout.rows)
        row, column = layout.rows(threads, values), layout.columns(threads, values)
        _check_written_once(row * c_tile[1] + column, rows * c_tile[1], "reduction, its rows")
        first_rows = torch.arange(0, c_tile[0], rows)[:, None, None]  # of each part of the tile
        row, column = row + first_rows, column.expand(len(first_rows), -1, -1)
        self.read = plan.c_partial_sums(row + c_tile[0] * column)  # (part, thread, value)
        self.added_m, self.added_n = plan.exchanged((row, column))

    def __call__(self, acc: Tensor, dtype: torch.dtype) -> Tensor:
        """(splits, wave, BM, BN) in fp32 → (wave, BM, BN) in the output's type."""
        workspace = acc.new_full((*acc.shape[:2], self.written.numel()), torch.nan)
        workspace[..., self.written] = acc[..., self.m, self.n]
        total = acc.new_zeros(acc.shape[1], *self.read.shape)
        for partial_sums in workspace:  # (wave, BM * BN) of one split
            total += partial_sums[:, self.read]
        out = acc.new_empty(acc.shape[1:], dtype=dtype)
        out[:, self.added_m, self.added_n] = total.to(dtype)
        return out


def _box_addresses(tile: ComposedLayout, contiguous: int, start: int = 0) -> Tensor:
    """(row, column) → element where TMA keeps it, of a tile that begins at element `start`.

    Box after box, with the swizzle applied to byte addresses.
    """
    boxes, element = tma.boxes(tile, contiguous), BITS // 8
    swizzle = tma.SWIZZLES[boxes.columns * element]
    box = torch.arange(boxes.rows)[:, None] * boxes.columns + torch.arange(boxes.columns)
    extents = size(tile.outer[1 - contiguous]), size(tile.outer[contiguous])
    addresses = torch.empty(extents, dtype=torch.int64)
    for row, column, offset in boxes.origins:
        swizzled = swizzle((start + offset + box) * element) // element
        addresses[row : row + boxes.rows, column : column + boxes.columns] = swizzled
    return addresses if contiguous == 1 else addresses.mT


def _check_written_once(addresses: Tensor, extent: int, who: str) -> None:
    """PlanError unless every offset below `extent` is written exactly once."""
    times = torch.bincount(addresses.flatten(), minlength=extent)
    if len(times) > extent:
        raise PlanError(
            f"{who}: offset {len(times) - 1} is written, and the buffer ends at {extent}"
        )
    for count, words in ((times > 1, "written twice"), (times == 0, "never written")):
        if bool(count.any()):
            raise PlanError(f"{who}: offset {int(count.nonzero()[0])} is {words}")
