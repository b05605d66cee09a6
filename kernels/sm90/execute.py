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
PlanError.

The steps are those of the plan's pipeline, in one of the orders that it allows: the warps go on at
random, and what is asynchronous ends at random. Each block computes several tiles, so that stages
and panels are used again. A load spoils its stage when it is issued and fills it when it ends, and
what is read is read as late as it may be: a missing wait gives a wrong result. The clusters of a
grid move together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from random import Random
from typing import Any

import torch
from torch import Tensor

from cutedsl_gemm.kernels.executor import (
    check_visits,
    executor,
    multiply_one_by_one,
    thread_values,
    tiles,
    write_tiles,
)
from cutedsl_gemm.kernels.pipeline import steps
from cutedsl_gemm.kernels.pipeline.actions import Action, Counts, Warps
from cutedsl_gemm.kernels.pipeline.order import Order
from cutedsl_gemm.kernels.plan import tma
from cutedsl_gemm.kernels.plan.checks import BITS, PlanError
from cutedsl_gemm.kernels.plan.work import Segment
from cutedsl_gemm.kernels.sm90.epilogue_plan import PanelPlan
from cutedsl_gemm.kernels.sm90.operand import Operand
from cutedsl_gemm.kernels.sm90.pipeline import WARPS
from cutedsl_gemm.kernels.sm90.split_k_plan import SplitKPlan
from layouts import ComposedLayout, cosize, size, wgmma_descriptor
from layouts.hardware.atoms import WGMMA_M
from layouts.hardware.facts import WARP

TILES = 4  # of a block, about
AT_ONCE = 132  # tiles that move together at most: the blocks of an H100
Product = Callable[[Tensor, Tensor, Tensor], None]  # (acc, rA, rB): acc += rA · rBᵀ


@executor
def gemm(
    plan: PanelPlan | SplitKPlan,
    a: Tensor,
    b: Tensor,
    out: Tensor,
    one_by_one: bool = False,
    seed: int = 0,
) -> Iterator[float]:
    """out (M, N) = a (M, K) · b (K, N) on CPU tensors, K > 0. A step is a moment of the pipeline.

    If `one_by_one`, the products are added one after the other: at 1024³ this takes 3.5 times as
    long. `seed` gives the order in which warps take turns.
    """
    if plan.swapped:  # Cᵀ = Bᵀ · Aᵀ
        a, b, out = b.mT, a.mT, out.mT
    down, across = plan.cluster
    gA = operand_tiles(plan.a, a, down)  # (tiles_m, k_tiles, BM, BK)
    gB = operand_tiles(plan.b, b.mT, across)  # (tiles_n, k_tiles, BN, BK)
    gC = torch.full((len(gA), len(gB), *plan.output_tile), torch.nan, dtype=out.dtype)
    work = [*_work(plan, len(gA), len(gB), gA.shape[1])]
    visited = (segment.tile for block in work for segment in block if segment.split == 0)
    check_visits(f"{plan.raster}", visited, len(gA), len(gB))
    epilogue = Reduction(plan, gC) if isinstance(plan, SplitKPlan) else PanelStore(plan, gC)
    random, done = Random(seed), 0
    for counts, blocks in _moving_together(plan, work):
        grid = Grid(plan, blocks, (gA, gB), epilogue, multiply_one_by_one if one_by_one else _add)
        order = Order(plan.pipeline, counts)
        turns = Turns(order, random)
        for number, moment in enumerate(order.interleaving(turns)):
            if isinstance(action := order.labels[moment], Action):
                grid.take(action, order.ends.get(moment))
                yield (done + number / len(order.labels) * len(blocks)) / len(work)
        if order.stuck:
            raise PlanError(f"the pipeline does not go on: {order.labels[order.stuck[0]]}")
        done += len(blocks)
    epilogue.finish()
    write_tiles(gC, out)  # TMA clips what is out of bounds, and threads do not store it
    yield 1.0


def operand_tiles(operand: Operand, matrix: Tensor, at_once: int) -> Tensor:
    """The tiles of a matrix (rows, K), or of matrices (matrices, rows, K): those of all in one."""
    rows, columns = operand.shape
    stack = matrix.expand(operand.matrices, -1, -1)
    return torch.cat(
        [tiles(each, rows // operand.matrices, columns, at_once) for each in stack], dim=2
    )


def _work(
    plan: PanelPlan | SplitKPlan, tiles_m: int, tiles_n: int, k_tiles: int
) -> Iterator[list[Segment]]:
    """The segments of each block of the grid."""
    (down, across), ranks = plan.cluster, plan.cluster_size
    clusters_m, clusters_n = tiles_m // down, tiles_n // across
    multiprocessors = ranks * max(1, clusters_m * clusters_n // TILES)
    blocks = plan.work.blocks(clusters_m * clusters_n, multiprocessors)
    for block in range(blocks):
        yield [*plan.work.segments(block, blocks, clusters_m, clusters_n, k_tiles)]


def _moving_together(
    plan: PanelPlan | SplitKPlan, work: list[list[Segment]]
) -> Iterator[tuple[Counts, list[list[Segment]]]]:
    """Whole clusters that compute as many tiles and k-tiles, not too many at a time."""
    alike: dict[tuple[Counts, int], list[list[Segment]]] = defaultdict(list)
    for block in work:
        alike[Counts(len(block), len(block[0].k_tiles)), block[0].split].append(block)
    at_once = max(AT_ONCE // plan.cluster_size, 1) * plan.cluster_size
    for (counts, _), blocks in alike.items():
        for first in range(0, len(blocks), at_once):
            yield counts, blocks[first : first + at_once]


def _add(acc: Tensor, rA: Tensor, rB: Tensor) -> None:
    """acc (tiles, rows, BN) += rA (tiles, rows, BK) · rBᵀ (tiles, BK, BN)."""
    acc.baddbmm_(rA, rB.mT)


class Turns:
    """Which moment is next: warps, loads, products and stores overtake each other at random.

    Each has a priority, drawn again now and then, and the highest is next: this finds what is rare
    if each moment is as likely as the others, such as a product that ends very late (probabilistic
    concurrency testing, Burckhardt et al. 2010).
    """

    RARELY = 300  # moments between two draws, on average

    def __init__(self, order: Order, random: Random) -> None:
        self.order, self.random = order, random
        self.priorities: dict[object, float] = {}

    def __call__(self, ready: list[int]) -> int:
        """The place of the next moment in the list of those that can be next."""
        if self.random.random() < 1 / self.RARELY:
            self.priorities.clear()
        return max(range(len(ready)), key=lambda place: self.priority(ready[place]))

    def priority(self, moment: int) -> float:
        """That of the warps, or of the kind of asynchronous step that ends."""
        label = self.order.labels[moment]
        if not isinstance(label, Action):
            return 1.0  # nobody takes a step
        ends = type(label.step) if moment in self.order.ends else None
        return self.priorities.setdefault((label.warps, ends), self.random.random())


class Grid:
    """Blocks that move together: their shared memory, and the accumulators of their consumers."""

    def __init__(
        self,
        plan: PanelPlan | SplitKPlan,
        blocks: list[list[Segment]],
        sources: tuple[Tensor, Tensor],
        epilogue: PanelStore | Reduction,
        product: Product,
    ) -> None:
        self.plan, self.epilogue, self.product = plan, epilogue, product
        ranks, (_, bn, _) = plan.cluster_size, plan.tile
        self.segments = [blocks[rank::ranks] for rank in range(ranks)]  # [rank][cluster][tile]
        clusters = len(self.segments[0])
        self.smem = {
            operand.name: [Smem(operand, plan.stages, clusters, source) for _ in range(ranks)]
            for operand, source in zip((plan.a, plan.b), sources, strict=True)
        }
        consumers = range(plan.consumers)
        extents = ranks, len(consumers), clusters, plan.rows, bn
        self.acc = torch.zeros(extents, dtype=torch.float32)
        self.panels = epilogue.panels((ranks, len(consumers), clusters))

    def take(self, action: Action, ends_in: int | None) -> None:
        """A step is taken; or, if it is asynchronous, it ends with data in block `ends_in`."""
        step, rank = action.step, action.warps.block
        match step:
            case steps.Load():
                blocks = step.blocks[rank] if ends_in is None else (ends_in,)
                for block in blocks:
                    self.load(action, step, block, whole=ends_in is not None)
            case steps.Multiply() if ends_in is not None:
                self.multiply(action)
            case steps.WritePanel() | steps.StoreAccumulator():
                self.epilogue.write(step, action.warps, *self.consumer(action))
            case steps.StorePanel() if ends_in is not None or not step.asynchronous:
                self.epilogue.store(step, action.warps, *self.consumer(action))

    def load(self, action: Action, step: steps.Load, block: int, whole: bool) -> None:
        """A slice of a k-tile arrives in a block; until it is `whole`, its place holds NaN."""
        rank, mode = action.warps.block, 0 if step.operand == "A" else 1
        segments = [each[action.tile] for each in self.segments[rank]]
        k = action.k_tile - action.tile * len(segments[0].k_tiles)
        tile = torch.tensor([segment.tile[mode] for segment in segments])
        smem = self.smem[step.operand][block]
        smem.load(tile, segments[0].k_tiles[k], action.k_tile, step.parts[rank], whole)

    def multiply(self, action: Action) -> None:
        """The warps multiply their rows of a k-tile."""
        plan, rows = self.plan, warp_rows(action.warps, self.plan.rows)
        sA, sB = (self.smem[name][action.warps.block] for name in "AB")
        acc, _, tiles = self.consumer(action)
        first = consumer_of(action.warps) % plan.consumers_per_tile * plan.rows
        part = acc[:, rows]
        if action.k_tile == action.tile * len(tiles[0].k_tiles):
            part.zero_()
        self.product(part, sA.read(action.k_tile)[:, first + rows], sB.read(action.k_tile))
        acc[:, rows] = part

    def consumer(self, action: Action) -> tuple[Tensor, Tensor, list[Segment]]:
        """A consumer's accumulators, its panels, and the segments that the clusters are at."""
        rank, consumer = action.warps.block, consumer_of(action.warps)
        tiles = [each[action.tile] for each in self.segments[rank]]
        return self.acc[rank, consumer], self.panels[rank, consumer], tiles


def consumer_of(warps: Warps) -> int:
    """The number of the consumer to which warps belong."""
    _, _, number = warps.agent.partition(" ")
    return int(number or 0)


def warp_rows(warps: Warps, rows: int) -> Tensor:
    """The rows of an accumulator that warps hold: 16 of every 64 a warp."""
    row = torch.arange(rows)
    return row[(row % WGMMA_M < WGMMA_M // WARPS) == warps.leader]


def threads_of(warps: Warps) -> slice:
    """The threads of a warpgroup that are those of its first warp, or of the others."""
    return slice(0, WARP) if warps.leader else slice(WARP, WARPS * WARP)


class Smem:
    """An operand's stages in the blocks of one rank: TMA fills them, and wgmma reads them."""

    def __init__(self, operand: Operand, stages: int, clusters: int, source: Tensor) -> None:
        self.operand, self.stages, self.source = operand, stages, source
        self.slices = _tma_addresses(operand)  # of each slice, (rows, columns) → element
        self.addresses = _descriptor_addresses(operand)  # (rows, columns) → element
        written = torch.cat([each.flatten() for each in self.slices])
        _check_written_once(written, operand.elements, f"TMA, {operand.name}")
        self.data = source.new_full((clusters, stages, operand.elements), torch.nan)
        self.seen: dict[int, Tensor] = {}  # what stages hold, as the tensor core reads it

    def load(self, tile: Tensor, k: int, k_tile: int, part: int, whole: bool) -> None:
        """Slice `part` of k-tile k of a tile in each cluster; NaN unless it is whole."""
        stage = self.data[:, k_tile % self.stages]
        self.seen.pop(k_tile % self.stages, None)
        if whole:
            (i, j), (rows, columns) = self.operand.slice_coord(part), self.operand.slice_shape
            data = self.source[tile, k, i * rows : (i + 1) * rows, j * columns : (j + 1) * columns]
            stage[:, self.slices[part].flatten()] = data.flatten(1)
        elif self.operand.slices > 1:
            stage[:, self.slices[part].flatten()] = torch.nan
        else:
            stage.fill_(torch.nan)

    def read(self, k_tile: int) -> Tensor:
        """A k-tile as the tensor core reads it: (cluster, rows, BK) in fp32."""
        stage = k_tile % self.stages
        if stage not in self.seen:
            held = self.data[:, stage, self.addresses.flatten()]
            self.seen[stage] = held.unflatten(1, self.addresses.shape).float()
        return self.seen[stage]


@cache
def _tma_addresses(operand: Operand) -> list[Tensor]:
    """Where TMA writes element (row, column) of each slice."""
    rows, columns = operand.slice_shape
    coords = [operand.slice_coord(part) for part in range(operand.slices)]
    starts = (operand.smem.outer(i * rows, j * columns) for i, j in coords)
    tile = operand.slice_smem, operand.contiguous, operand.slice_matrices
    return [_box_addresses(*tile, start) for start in starts]


@cache
def _descriptor_addresses(operand: Operand) -> Tensor:
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


class PanelStore:
    """The epilogue of a PanelPlan: registers, stmatrix into a panel, TMA or threads out to gC."""

    def __init__(self, plan: PanelPlan, gC: Tensor) -> None:
        self.plan, self.gC = plan, gC
        self.elements = cosize(plan.staging)
        threads, values = thread_values(plan.accumulator)
        self.accumulator = plan.accumulator(threads, values)  # (thread, value) → m + R * n
        _check_written_once(self.accumulator, plan.rows * plan.tile[1], "wgmma, accumulator")
        held = size(plan.fragment[0])  # S/2, values of a thread's stmatrix
        self.fragment = plan.fragment(values).view(plan.panels, -1, plan.rows // WGMMA_M, held)
        # (P/S, R/64, S/2, thread), elements of a panel
        self.written = self._stmatrix_addresses()
        _check_written_once(self.written, self.elements, "stmatrix, C panel")
        if plan.stored_by_tma:
            self.read = _box_addresses(plan.staging, plan.contiguous)  # (R, P)
        else:
            self.read = self._thread_addresses()

    def panels(self, blocks: tuple[int, ...]) -> Tensor:
        """The panels in shared memory: (*blocks, c_stages, elements)."""
        return self.gC.new_full((*blocks, self.plan.c_stages, self.elements), torch.nan)

    def write(
        self, step: Any, warps: Warps, acc: Tensor, panels: Tensor, tiles: list[Segment]
    ) -> None:
        """The warps write a panel: acc (cluster, R, BN) in fp32 → a buffer."""
        threads = threads_of(warps)
        registers = acc.mT.flatten(1)[:, self.accumulator[threads]]  # (cluster, thread, value)
        # (cluster, P/S, R/64, S/2, thread)
        values = registers[:, :, self.fragment[step.panel]].to(panels.dtype).movedim(1, -1)
        panels[:, step.buffer, self.written[..., threads].flatten()] = values.flatten(1)

    def store(
        self, step: Any, warps: Warps, acc: Tensor, panels: Tensor, tiles: list[Segment]
    ) -> None:
        """A buffer goes to its panel of gC: all of it, or what the threads of the warps store."""
        plan = self.plan
        panel = panels[:, step.buffer, self.read.flatten()].unflatten(1, self.read.shape)
        m, n = torch.tensor([segment.tile for segment in tiles]).mT
        row = consumer_of(warps) % plan.consumers_per_tile * plan.rows + torch.arange(plan.rows)
        column = step.panel * plan.panel_columns + torch.arange(plan.panel_columns)
        place = m[:, None, None], n[:, None, None], row[:, None], column
        if step.asynchronous:
            self.gC[place] = panel
        else:
            stored = self.threads[threads_of(warps)].flatten()
            mine = torch.zeros(plan.rows * plan.panel_columns, dtype=torch.bool)
            mine[stored] = True
            mine = mine.view(plan.rows, plan.panel_columns)
            self.gC[place] = torch.where(mine, panel, self.gC[place])

    def finish(self) -> None:
        """Nothing is left to do."""

    def _thread_addresses(self) -> Tensor:
        """(row, column) → element of the panel that a thread reads, to store it there in C."""
        plan, copy = self.plan, self.plan.panel_copy
        every = thread_values(copy.rows)
        row, column = copy.rows(*every), copy.columns(*every)
        self.threads = row * plan.panel_columns + column  # (thread, value)
        _check_written_once(self.threads, self.elements, "threads, C panel")
        read = torch.empty(plan.rows, plan.panel_columns, dtype=torch.int64)
        read[row, column] = plan.staging(row + plan.rows * column)
        return read

    def _stmatrix_addresses(self) -> Tensor:
        """Where value v of a thread is written: lanes address the rows of eight elements."""
        plan, atom = self.plan, self.plan.stmatrix
        index = torch.arange(size(plan.stmatrix_rows))
        lanes, held = 8 * atom.matrices, 2 * atom.matrices  # that supply an address; of a lane
        # (S columns, m64, warp, lane)
        address = plan.staging(plan.stmatrix_rows(index)).view(-1, plan.rows // WGMMA_M, 4, lanes)
        # (lane, value) → column + 8 * supplying lane
        element = atom.fragment(torch.arange(32)[:, None], torch.arange(held))
        written = address[..., element // 8] + element % 8  # (S columns, m64, warp, lane, value)
        return written.movedim(-1, 2).flatten(-2)


class Reduction:
    """The epilogue of a SplitKPlan: registers, workspace, the reduction's threads, gC."""

    def __init__(self, plan: SplitKPlan, gC: Tensor) -> None:
        self.plan, self.gC = plan, gC
        bm, bn, _ = plan.tile
        # (thread, value) → m + R * n
        accumulator = plan.accumulator(*thread_values(plan.accumulator))
        _check_written_once(accumulator, plan.rows * bn, "wgmma, accumulator")
        self.n, self.m = accumulator // plan.rows, accumulator % plan.rows
        every_row = self.m + torch.arange(plan.consumers)[:, None, None] * plan.rows
        written = plan.partial_sums(every_row + bm * self.n)  # (consumer, thread, value)
        _check_written_once(written, bm * bn, "workspace, partial sums")
        self.written = written
        extents = plan.splits, len(gC), len(gC[0]), bm * bn
        self.workspace = torch.full(extents, torch.nan, dtype=torch.float32)

    def panels(self, blocks: tuple[int, ...]) -> Tensor:
        """None: partial sums go from registers to global memory."""
        return torch.empty(*blocks, 0)

    def write(
        self, step: Any, warps: Warps, acc: Tensor, panels: Tensor, tiles: list[Segment]
    ) -> None:
        """The warps store their partial sums (cluster, R, BN)."""
        threads, consumer = threads_of(warps), consumer_of(warps)
        m, n = torch.tensor([segment.tile for segment in tiles]).mT
        place = tiles[0].split, m[:, None], n[:, None], self.written[consumer, threads].flatten()
        self.workspace[place] = acc[:, self.m[threads], self.n[threads]].flatten(1)

    def store(
        self, step: Any, warps: Warps, acc: Tensor, panels: Tensor, tiles: list[Segment]
    ) -> None:
        """Nothing: there are no panels."""

    def finish(self) -> None:
        """The second kernel adds the splits in their order."""
        plan, c_tile = self.plan, self.plan.c_tile
        layout, rows = plan.reduction, plan.reduction_rows
        threads, values = thread_values(layout.rows)
        row, column = layout.rows(threads, values), layout.columns(threads, values)
        _check_written_once(row * c_tile[1] + column, rows * c_tile[1], "reduction, its rows")
        first_rows = torch.arange(0, c_tile[0], rows)[:, None, None]  # of each part of the tile
        row, column = row + first_rows, column.expand(len(first_rows), -1, -1)
        read = plan.c_partial_sums(row + c_tile[0] * column)  # (part, thread, value)
        m, n = plan.exchanged((row, column))
        total = torch.zeros(*self.gC.shape[:2], *read.shape, dtype=torch.float32)
        for partial_sums in self.workspace:  # (tiles_m, tiles_n, BM * BN) of one split
            total += partial_sums[:, :, read]
        self.gC[:, :, m, n] = total.to(self.gC.dtype)


@cache
def _box_addresses(
    tile: ComposedLayout, contiguous: int, matrices: int = 1, start: int = 0
) -> Tensor:
    """(row, column) → element where TMA keeps it, of a tile that begins at element `start`.

    Box after box, with the swizzle applied to byte addresses.
    """
    boxes, element = tma.boxes(tile, contiguous, matrices), BITS // 8
    swizzle = tma.SWIZZLES[boxes.columns * element]
    box = torch.arange(boxes.rows)[:, None] * boxes.columns + torch.arange(boxes.columns)
    extents = size(tile.outer[1 - contiguous]), size(tile.outer[contiguous])
    addresses = torch.empty(extents, dtype=torch.int64)
    for row, column, offset in boxes.of_each:
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
