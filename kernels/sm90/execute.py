"""The executor: a plan carried out on the CPU, moving real data through its addresses at each step.

    global ─ TMA boxes ▶ swizzled shared memory ─ wgmma descriptor ▶ tensor core
           ─ (thread, value) ▶ registers ─ stmatrix lane addresses ▶ swizzled panel
           ─ TMA boxes ▶ global

or, where blocks divide K, from the registers

           ─ (thread, value) ▶ sums in a workspace ─ (thread, value) of those who add ▶ global

Each arrow finds its addresses by the rule of its instruction, not by the layout that wrote what it
reads: TMA fills boxes, wgmma reads by descriptor, stmatrix writes rows at lane addresses. So a
wrong layout gives a wrong answer here too, and an address used twice or never written is refused.
The tiles of a wave move together: 1024³ takes about a second.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import torch
from torch import Tensor

from cutedsl_gemm.kernels.executor import executor, tiles
from cutedsl_gemm.kernels.plan import tma
from cutedsl_gemm.kernels.plan.checks import BITS, PlanError
from cutedsl_gemm.kernels.sm90.mainloop import CONSUMERS, ROW, Operand
from cutedsl_gemm.kernels.sm90.plan import Plan
from cutedsl_gemm.kernels.sm90.split_plan import ADDERS, SplitPlan
from layouts import ComposedLayout, cosize, size, stmatrix, wgmma_descriptor

AnyPlan: TypeAlias = Plan | SplitPlan

WAVE = 132  # tiles that move together: as many as an H100 has multiprocessors


@executor
def gemm(plan: AnyPlan, a: Tensor, b: Tensor, out: Tensor) -> Iterator[float]:
    """out (M, N) = a (M, K) · b (K, N) on CPU tensors; K > 0. A step is a wave of tiles."""
    (bm, bn, bk), (m, n), (down, across) = plan.tile, out.shape, plan.cluster
    gA = tiles(a, bm, bk, down)  # (tiles_m, k_blocks, BM, BK)
    gB = tiles(b.mT, bn, bk, across)  # (tiles_n, k_blocks, BN, BK)
    tiles_m, tiles_n, k_blocks = len(gA), len(gB), gA.shape[1]
    gC = out.new_empty(tiles_m, tiles_n, bm, bn)
    load_a, load_b = Load(plan.a, plan.stages), Load(plan.b, plan.stages)
    store = Add(plan) if isinstance(plan, SplitPlan) else Store(plan)
    visits = torch.zeros(tiles_m, tiles_n, dtype=torch.int64)
    for first in range(0, tiles_m * tiles_n, WAVE):
        wave = range(first, min(first + WAVE, tiles_m * tiles_n))
        places = (divmod(block, plan.blocks) for block in wave)  # cluster, rank
        ms, ns = torch.tensor(
            [plan.place(*place, tiles_m // down, tiles_n // across) for place in places]
        ).mT
        acc = torch.zeros(plan.splits, len(wave), bm, bn, dtype=torch.float32)
        for rank in range(plan.splits):
            shared_a, shared_b = load_a.buffer(wave, a.dtype), load_b.buffer(wave, b.dtype)
            first_k, last_k = plan.span(rank, k_blocks)
            count = last_k - first_k
            begin = torch.tensor(_starts(plan, ns.tolist(), tiles_m // down, count))
            for block in range(count):
                ks, stage = first_k + (begin + block) % count, block % plan.stages
                rA = load_a(shared_a, gA[ms, ks], stage)
                rB = load_b(shared_b, gB[ns, ks], stage)
                acc[rank].baddbmm_(rA.float(), rB.float().mT)
        gC[ms, ns] = store(acc, out.dtype)
        visits.index_put_((ms, ns), torch.ones_like(ms), accumulate=True)
        yield (first + len(wave)) / (tiles_m * tiles_n)
    if wrong := int((visits != 1).sum()):
        raise PlanError(f"{plan.raster} visits {wrong} of {visits.numel()} tiles never or twice")
    padded = gC.transpose(1, 2).reshape(tiles_m * bm, tiles_n * bn)
    out.copy_(padded[:m, :n])  # what TMA clips


def _starts(plan: AnyPlan, ns: list[int], tiles_m: int, k_blocks: int) -> list[int]:
    """The first k-block of each tile of a wave; PlanError where a cluster's are not the same."""
    starts = [plan.start(n, tiles_m, k_blocks) for n in ns]
    for first in range(0, len(ns), plan.blocks):
        if len(together := {*starts[first : first + plan.blocks]}) > 1:
            raise PlanError(
                f"the blocks of a cluster begin with k-blocks {sorted(together)}; each brings half "
                "of an operand to both, so that they must begin with the same"
            )
    return starts


class Load:
    """An operand's way in: TMA into a ring of stages, wgmma out of it."""

    def __init__(self, operand: Operand, stages: int) -> None:
        self.operand, self.stages = operand, stages
        self.rows, self.columns = operand.shape
        # Both (rows, columns), in elements of one stage.
        self.written = self._tma_addresses()
        self.read = self._descriptor_addresses()
        _once(self.written, operand.elements, f"TMA, {operand.name}")

    def buffer(self, wave: range, dtype: torch.dtype) -> Tensor:
        """The ring of each tile of the wave, poisoned: (wave, stages, elements)."""
        return torch.full((len(wave), self.stages, self.operand.elements), torch.nan, dtype=dtype)

    def __call__(self, shared: Tensor, tiles: Tensor, stage: int) -> Tensor:
        """Tiles (wave, rows, columns) through one stage, as the tensor core reads them."""
        shared[:, stage, self.written.flatten()] = tiles.flatten(1)
        return shared[:, stage, self.read.flatten()].view_as(tiles)

    def _tma_addresses(self) -> Tensor:
        """Where TMA writes element (row, column): each block of a cluster brings its part."""
        smem, rows = self.operand.smem, self.operand.box[0]
        starts = (smem.outer(part * rows, 0) for part in range(self.operand.parts))
        part, along = self.operand.part, self.operand.contiguous
        return torch.cat([_box_addresses(part, along, start) for start in starts])

    def _descriptor_addresses(self) -> Tensor:
        """Where wgmma looks for element (row, column).

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


class Store:
    """The accumulator's way out: registers, stmatrix into a panel, TMA out of it."""

    def __init__(self, plan: Plan) -> None:
        self.rows, self.bn = plan.rows, plan.tile[1]
        self.panels, self.elements = plan.panels, cosize(plan.staging)
        threads, values = torch.arange(128)[:, None], torch.arange(plan.registers)
        self.place = plan.accumulator(threads, values)  # (thread, value) → m + R * n
        _once(self.place, self.rows * self.bn, "wgmma, accumulator")
        self.fragment = plan.fragment(values).view(self.panels, 4, self.rows // 64, 8)
        self.written = self._stmatrix_addresses(plan)  # (4, R/64, 8, thread), elements of a panel
        self.read = _box_addresses(plan.staging, contiguous=1)  # (R, 64)
        _once(self.written, self.elements, "stmatrix, C panel")

    def __call__(self, acc: Tensor, dtype: torch.dtype) -> Tensor:
        """(1, wave, BM, BN) in fp32 → (wave, BM, BN) in the output's type, R rows a consumer."""
        shape, acc = acc.shape[1:], acc.view(-1, self.rows, self.bn)
        registers = acc.mT.flatten(1)[:, self.place]  # (wave, thread, value)
        out = acc.new_empty(acc.shape, dtype=dtype)
        for panel in range(self.panels):
            shared = torch.full((len(acc), self.elements), torch.nan, dtype=dtype)
            # (wave, 4, R/64, 8, thread)
            values = registers[:, :, self.fragment[panel]].to(dtype).movedim(1, -1)
            shared[:, self.written.flatten()] = values.flatten(1)
            columns = slice(panel * ROW, (panel + 1) * ROW)
            out[:, :, columns] = shared[:, self.read.flatten()].view(-1, self.rows, ROW)
        return out.view(shape)

    def _stmatrix_addresses(self, plan: Plan) -> Tensor:
        """Where value v of a thread lands.

        The lanes' addresses give the row, the instruction the column.
        """
        atom, index = stmatrix(4), torch.arange(size(plan.lanes))
        address = plan.staging(plan.lanes(index)).view(
            4, -1, 4, 32
        )  # (16 columns, m64, warp, lane)
        # (lane, value) → column + 8 * supplying lane
        element = atom.fragment(torch.arange(32)[:, None], torch.arange(8))
        written = address[..., element // 8] + element % 8  # (16 columns, m64, warp, lane, value)
        return written.movedim(-1, 2).flatten(-2)


class Add:
    """The sums' way out of blocks that divide K: registers, workspace, those who add, global."""

    def __init__(self, plan: SplitPlan) -> None:
        self.plan = plan
        bm, bn, _ = plan.tile
        threads, values = torch.arange(128)[:, None], torch.arange(plan.registers)
        place = plan.accumulator(threads, values)  # (thread, value) → m + R * n
        _once(place, plan.rows * bn, "wgmma, accumulator")
        first = torch.arange(CONSUMERS)[:, None, None] * plan.rows  # row of each consumer
        self.n = (place // plan.rows).expand(CONSUMERS, -1, -1)
        self.m = place % plan.rows + first
        self.written = plan.sums(self.m + bm * self.n)  # (consumer, thread, value)
        _once(self.written, bm * bn, "the workspace, sums")
        threads, values = torch.arange(ADDERS)[:, None], torch.arange(size(plan.share.rows[1]))
        row, column = plan.share.rows(threads, values), plan.share.columns(threads, values)
        _once(row * bn + column, plan.added * bn, "those who add, share of the rows")
        pieces = torch.arange(0, bm, plan.added)[:, None, None]  # first row of each
        self.row, self.column = row + pieces, column.expand(len(pieces), -1, -1)
        self.read = plan.sums(self.row + bm * self.column)  # (piece, thread, value)

    def __call__(self, acc: Tensor, dtype: torch.dtype) -> Tensor:
        """(splits, wave, BM, BN) in fp32 → (wave, BM, BN) in the output's type."""
        workspace = acc.new_full((*acc.shape[:2], self.written.numel()), torch.nan)
        workspace[..., self.written] = acc[..., self.m, self.n]
        total = acc.new_zeros(acc.shape[1], *self.read.shape)
        for part in workspace:
            total += part[:, self.read]
        out = acc.new_empty(acc.shape[1:], dtype=dtype)
        out[:, self.row, self.column] = total.to(dtype)
        return out


def _box_addresses(tile: ComposedLayout, contiguous: int, start: int = 0) -> Tensor:
    """Where TMA keeps element (row, column) of a tile that starts at an element of the buffer.

    Box after box, byte addresses swizzled.
    """
    boxes, element = tma.boxes(tile, contiguous), BITS // 8
    box = torch.arange(boxes.rows)[:, None] * boxes.columns + torch.arange(boxes.columns)
    extents = size(tile.outer[1 - contiguous]), size(tile.outer[contiguous])
    addresses = torch.empty(extents, dtype=torch.int64)
    for row, column, offset in boxes.origins:
        place = tma.SWIZZLE_128B((start + offset + box) * element) // element
        addresses[row : row + boxes.rows, column : column + boxes.columns] = place
    return addresses if contiguous == 1 else addresses.mT


def _once(addresses: Tensor, extent: int, who: str) -> None:
    """PlanError unless every offset below `extent` is written exactly once."""
    times = torch.bincount(addresses.flatten(), minlength=extent)
    if len(times) > extent:
        raise PlanError(
            f"{who}: offset {len(times) - 1} is written, and the buffer ends at {extent}"
        )
    for count, words in ((times > 1, "written twice"), (times == 0, "never written")):
        if bool(count.any()):
            raise PlanError(f"{who}: offset {int(count.nonzero()[0])} is {words}")
