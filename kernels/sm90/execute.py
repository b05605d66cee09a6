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

The steps are those of the plan's pipeline, in one of the orders that it allows: warps advance in
random order, and asynchronous steps end at random times. Each block computes several tiles, so that
stages and panels are reused. A load fills its stage with NaN when it is issued and with data when
it ends, and asynchronous steps read when they end: a missing wait gives a wrong result. The
clusters of a grid run in lockstep.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from random import Random
from typing import ClassVar

import torch
from torch import Tensor

from cutedsl_gemm.kernels.executor import (
    check_visits,
    executor,
    multiply_one_by_one,
    tiles,
)
from cutedsl_gemm.kernels.pipeline import steps
from cutedsl_gemm.kernels.pipeline.actions import Action, Counts, Warps
from cutedsl_gemm.kernels.pipeline.order import Order
from cutedsl_gemm.kernels.plan.arguments import Exchange, GatheredRows
from cutedsl_gemm.kernels.plan.checks import PlanError
from cutedsl_gemm.kernels.plan.raster import ChunkOrder
from cutedsl_gemm.kernels.plan.tile_scheduler import TileExtents, WorkTile
from cutedsl_gemm.kernels.sm90.execute_addresses import (
    check_written_once,
    descriptor_addresses,
    tma_addresses,
)
from cutedsl_gemm.kernels.sm90.execute_epilogue import (
    PanelStore,
    Reduction,
    Results,
    consumer_of,
)
from cutedsl_gemm.kernels.sm90.operand import Operand
from cutedsl_gemm.kernels.sm90.panel_plan import PanelPlan
from cutedsl_gemm.kernels.sm90.pipeline import WARPS
from cutedsl_gemm.kernels.sm90.split_k_plan import SplitKPlan
from layouts.hardware.atoms import WGMMA_M

TILES = 4  # of a block, about
AT_ONCE = 132  # tiles that move together at most: the blocks of an H100
Product = Callable[[Tensor, Tensor, Tensor], None]  # (acc, rA, rB): acc += rA · rBᵀ


@executor
def gemm(
    plan: PanelPlan | SplitKPlan,
    a: Tensor,
    b: Tensor,
    out: Tensor | tuple[Tensor, ...],
    operands: tuple[Tensor | float, ...] = (),
    one_by_one: bool = False,
    seed: int = 0,
    exchange: Exchange | None = None,
) -> Iterator[float]:
    """out (M, N) = a (M, K) · b (K, N) on CPU tensors, K > 0, or what the epilogue makes of it.

    Yields the fraction done at each step. `one_by_one` adds the products one after the other: nine
    times as long at 1024³. `seed` seeds the random order of the warps.

    Rows that come by `exchange` are NaN until they arrive.
    """
    shape = *a.shape[:-1], b.shape[-1]
    matrices = len(a) if plan.batched else 1
    a, chunk_order, partial_sums = _received(plan, a, exchange)
    if plan.swapped:  # Cᵀ = Bᵀ · Aᵀ
        a, b = b.mT, a.mT
    down, across = plan.cluster
    gA = operand_tiles(plan.a, a, down)  # (tiles_m of all matrices, k_tiles, BM, BK)
    gB = operand_tiles(plan.b, b.mT, across)  # (tiles_n of all matrices, k_tiles, BN, BK)
    tile_counts = tiles_m, tiles_n = len(gA), len(gB) // matrices
    of_each = tiles_m // down // matrices
    extents = TileExtents(tiles_m // down, tiles_n // across, gA.shape[1], chunk_order, of_each)
    work = [*_work_tiles(plan, extents)]
    visited = (tile.coord for block in work for tile in block if tile.split == 0)
    check_visits(f"{plan.raster}", visited, *tile_counts)
    results = Results(plan, shape, tile_counts, operands)
    epilogue: PanelStore | Reduction = (
        Reduction(plan, results, tile_counts)
        if isinstance(plan, SplitKPlan)
        else PanelStore(plan, results)
    )
    random, done = Random(seed), 0
    for counts, blocks in _moving_together(plan, work):
        multiply = multiply_one_by_one if one_by_one else _add
        grid = Grid(plan, blocks, (gA, gB), epilogue, multiply, extents, partial_sums)
        order = Order(plan.pipeline, counts)
        priorities = RandomPriorities(order, random)
        for number, moment in enumerate(order.interleaving(priorities)):
            if isinstance(action := order.labels[moment], Action):
                grid.take(action, order.ends.get(moment))
                yield (done + number / len(order.labels) * len(blocks)) / len(work)
        if order.stuck:
            raise PlanError(f"the pipeline does not go on: {order.labels[order.stuck[0]]}")
        done += len(blocks)
    if isinstance(epilogue, Reduction):
        epilogue.reduce()
    # TMA clips what is out of bounds, and threads do not store it.
    if partial_sums is None:
        results.finish(out if isinstance(out, tuple) else (out,))
    else:
        whole = torch.empty_like(partial_sums.partial)
        results.finish((whole,))
        scatter(whole, partial_sums.number, out, partial_sums.partial)
    yield 1.0


def _received(
    plan: PanelPlan | SplitKPlan, a: Tensor, exchange: Exchange | None
) -> tuple[Tensor, ChunkOrder | None, PartialSums | None]:
    """A with this GPU's rows, if it is gathered; the order of tile rows; and C's partial sums."""
    if exchange is None:
        return a, None, None
    if isinstance(exchange, GatheredRows):
        own, number = exchange
        a = a.clone()
        a.unflatten(0, (-1, len(own)))[number] = own
        return a, ChunkOrder(number, len(own) // plan.cluster_tile[0]), None
    partial_sums = PartialSums(*exchange)
    height = partial_sums.rows // plan.cluster_tile[0]
    return a, ChunkOrder(partial_sums.number + 1, height), partial_sums


def scatter(whole: Tensor, number: int, mine: Tensor, partial: Tensor) -> None:
    """Copy C (M, N) to where several GPUs have its rows: this GPU's to `mine`."""
    gpus, rows = len(whole) // len(mine), len(mine)
    for gpu in range(gpus):
        at = slice(gpu * rows, (gpu + 1) * rows)
        (mine if gpu == number else partial[at]).copy_(whole[at])


def operand_tiles(operand: Operand, matrix: Tensor, at_once: int) -> Tensor:
    """The tiles of a matrix (rows, K), or of matrices (2, rows, K): those of all in one.

    Those of a batch, (L, rows, K) or (2, L, rows, K), follow each other.
    """
    if matrix.ndim > (2 if operand.matrices == 1 else 3):
        return torch.cat([operand_tiles(operand, each, at_once) for each in matrix.unbind(-3)])
    rows, columns = operand.shape
    stack = matrix.expand(operand.matrices, -1, -1)
    return torch.cat(
        [tiles(each, rows // operand.matrices, columns, at_once) for each in stack], dim=2
    )


def _work_tiles(plan: PanelPlan | SplitKPlan, extents: TileExtents) -> Iterator[list[WorkTile]]:
    """The work tiles of each block of the grid."""
    multiprocessors = plan.cluster_size * max(1, extents.cluster_tiles // TILES)
    blocks = plan.tile_scheduler.blocks(extents.cluster_tiles, multiprocessors)
    for block in range(blocks):
        yield [*plan.tile_scheduler.work_tiles(block, blocks, extents)]


def _moving_together(
    plan: PanelPlan | SplitKPlan, work: list[list[WorkTile]]
) -> Iterator[tuple[Counts, list[list[WorkTile]]]]:
    """Groups of whole clusters with equal counts of tiles and k-tiles, at most AT_ONCE blocks."""
    alike: dict[tuple[Counts, int], list[list[WorkTile]]] = defaultdict(list)
    for block in work:
        alike[Counts(len(block), len(block[0].k_tiles)), block[0].split].append(block)
    at_once = max(AT_ONCE // plan.cluster_size, 1) * plan.cluster_size
    for (counts, _), blocks in alike.items():
        for first in range(0, len(blocks), at_once):
            yield counts, blocks[first : first + at_once]


def _add(acc: Tensor, rA: Tensor, rB: Tensor) -> None:
    """acc (tiles, rows, BN) += rA (tiles, rows, BK) · rBᵀ (tiles, BK, BN)."""
    acc.baddbmm_(rA, rB.mT)


class RandomPriorities:
    """Which moment is next: warps, loads, products and stores overtake each other at random.

    Each has a priority, redrawn now and then, and the highest goes next. This finds orders that
    uniform draws rarely give, such as a product that ends very late (probabilistic concurrency
    testing, Burckhardt et al. 2010).
    """

    RARELY = 300  # moments between two draws, on average
    # Moments without an actor come first, and rows of other GPUs as late as possible.
    FIXED: ClassVar[dict[object, float]] = {None: 1.0, steps.SendRows: -1.0}

    def __init__(self, order: Order, random: Random) -> None:
        self.random = random
        self.actors = [_actor(order, moment) for moment in range(len(order.labels))]
        self.priorities = dict(self.FIXED)

    def __call__(self, ready: list[int]) -> int:
        """The index in `ready` of the moment that comes next."""
        if self.random.random() < 1 / self.RARELY:
            self.priorities = dict(self.FIXED)
        priorities = [self.priority(self.actors[moment]) for moment in ready]
        return priorities.index(max(priorities))

    def priority(self, actor: object) -> float:
        if actor not in self.priorities:
            self.priorities[actor] = self.random.random()
        return self.priorities[actor]


def _actor(order: Order, moment: int) -> object:
    """The warps that take a step at a moment, or the kind of their asynchronous step that ends.

    None where nobody takes a step; SendRows where another GPU's rows come.
    """
    action = order.labels[moment]
    if not isinstance(action, Action):
        return None
    if isinstance(action.step, steps.SendRows):
        return steps.SendRows
    return action.warps, type(action.step) if moment in order.ends else None


class Grid:
    """Blocks that move together: their shared memory, and the accumulators of their consumers."""

    def __init__(
        self,
        plan: PanelPlan | SplitKPlan,
        blocks: list[list[WorkTile]],
        sources: tuple[Tensor, Tensor],
        epilogue: PanelStore | Reduction,
        product: Product,
        extents: TileExtents,
        partial_sums: PartialSums | None = None,
    ) -> None:
        self.plan, self.epilogue, self.product = plan, epilogue, product
        self.extents, self.partial_sums = extents, partial_sums
        self.sent: set[tuple[int, int]] = set()  # (rank, tile) whose rows have come
        ranks = plan.cluster_size
        self.work_tiles = [blocks[rank::ranks] for rank in range(ranks)]  # [rank][cluster][tile]
        clusters = len(self.work_tiles[0])
        self.smem = {
            operand.name: [Smem(operand, plan.stages, clusters, source) for _ in range(ranks)]
            for operand, source in zip((plan.a, plan.b), sources, strict=True)
        }
        consumers = range(plan.consumers)
        held = ranks, len(consumers), clusters, plan.rows, plan.columns
        self.acc = torch.zeros(held, dtype=torch.float32)
        self.panels = epilogue.panels((ranks, len(consumers), clusters))

    def take(self, action: Action, ends_in: int | None) -> None:
        """Carry out a step; or its end in block `ends_in`, if it is asynchronous."""
        step, rank = action.step, action.warps.block
        match step:
            case steps.SendRows():
                self.sent.add((rank, action.tile))
            case steps.Load():
                blocks = step.blocks[rank] if ends_in is None else (ends_in,)
                for block in blocks:
                    self.load(action, step, block, whole=ends_in is not None)
            case steps.Multiply() if ends_in is not None:
                self.multiply(action)
            case steps.WritePanel() | steps.StoreAccumulator():
                self.epilogue.write(step, action.warps, *self.consumer(action))
            case _ if isinstance(self.epilogue, PanelStore):
                self.take_panel(self.epilogue, action, ends_in)

    def take_panel(self, epilogue: PanelStore, action: Action, ends_in: int | None) -> None:
        """`take`, of a step that loads, reads or stores a panel of C."""
        step, warps = action.step, action.warps
        match step:
            case steps.LoadPanel():
                _, panels, tiles = self.consumer(action)
                epilogue.load(step, warps, panels, tiles, whole=ends_in is not None)
            case steps.ReadPanel():
                epilogue.hold(step, warps, self.consumer(action)[1])
            case steps.AddRows() if self.partial_sums is not None:
                self.add_rows(epilogue, self.partial_sums, action, step)
            case steps.StoreResults():
                epilogue.store_results(step, warps, *self.consumer(action))
            case steps.StorePanel() if ends_in is not None or not step.asynchronous:
                epilogue.store(step, warps, *self.consumer(action))

    def add_rows(
        self, epilogue: PanelStore, sums: PartialSums, action: Action, step: steps.AddRows
    ) -> None:
        """The warps add what other GPUs have sent of their rows to some panels; NaN if nothing."""
        acc, _, tiles = self.consumer(action)
        missing = (action.warps.block, action.tile) not in self.sent
        columns = epilogue.plan.panel_columns
        rows = warp_rows(action.warps, self.plan.rows)
        for number in range(step.panel, step.panel + step.panels):
            places = epilogue.place_of_panel(number, action.warps, tiles)
            added = sums.of_rows(*places, torch.nan if missing else 0.0)
            panel = acc[:, :, number * columns : (number + 1) * columns]
            panel[:, rows] += added[:, rows]

    def load(self, action: Action, step: steps.Load, block: int, whole: bool) -> None:
        """A slice of a k-tile arrives in a block; until it is `whole`, its place holds NaN."""
        rank, mode = action.warps.block, 0 if step.operand == "A" else 1
        tiles = [each[action.tile] for each in self.work_tiles[rank]]
        k = action.k_tile - action.tile * len(tiles[0].k_tiles)
        tile = torch.tensor([self.operand_tile(each.coord, mode) for each in tiles])
        smem = self.smem[step.operand][block]
        sent = not self.plan.gathered or (rank, action.tile) in self.sent
        missing = self.missing(tile) if mode == 0 and not sent else None
        smem.load(tile, tiles[0].k_tiles[k], action.k_tile, step.slices[rank], whole, missing)

    def operand_tile(self, coord: tuple[int, int], mode: int) -> int:
        """The number of the tile of A (mode 0) or B that a tile of C needs."""
        m, n = coord
        if mode == 0 or not self.plan.batched:
            return coord[mode]
        matrix, _ = self.plan.tile_scheduler.matrix_of(m, self.extents)
        return n + int(matrix * self.extents.clusters_n * self.plan.cluster[1])

    def missing(self, tile: Tensor) -> Tensor | None:
        """Which of these tile rows are other GPUs' and need to be sent."""
        chunk_order = self.extents.chunk_order
        if chunk_order is None:
            return None
        return tile // (chunk_order.height * self.plan.cluster[0]) != chunk_order.first

    def multiply(self, action: Action) -> None:
        """The warps multiply their rows of a k-tile by the columns of their consumer."""
        plan, rows = self.plan, warp_rows(action.warps, self.plan.rows)
        sA, sB = (self.smem[name][action.warps.block] for name in "AB")
        acc, _, tiles = self.consumer(action)
        part = consumer_of(action.warps) % plan.consumers_per_tile
        m, n = plan.consumer_coord((0, 0), part)
        first, columns = m * plan.rows, range(n * plan.columns, (n + 1) * plan.columns)
        held = acc[:, rows]
        if action.k_tile == action.tile * len(tiles[0].k_tiles):
            held.zero_()
        a, b = sA.read(action.k_tile)[:, first + rows], sB.read(action.k_tile)[:, columns]
        self.product(held, a, b)
        acc[:, rows] = held

    def consumer(self, action: Action) -> tuple[Tensor, Tensor, list[WorkTile]]:
        """A consumer's accumulators, its panels, and the tiles that the clusters are at."""
        rank, consumer = action.warps.block, consumer_of(action.warps)
        tiles = [each[action.tile] for each in self.work_tiles[rank]]
        return self.acc[rank, consumer], self.panels[rank, consumer], tiles


class PartialSums:
    """What all GPUs send of this GPU's rows of C (GPUs, rows, N), over the whole of C.

    `partial` receives what this GPU sends.
    """

    def __init__(self, every: Tensor, number: int, partial: Tensor) -> None:
        gpus, self.rows, self.columns = every.shape
        self.number, self.partial = number, partial
        behind = [(number + step) % gpus for step in range(1, gpus)]
        self.every, self.first = every[behind].float(), number * self.rows

    def of_rows(self, row: Tensor, column: Tensor, more: float) -> Tensor:
        """The sum of what comes in its order, and `more`; 0 in rows of other GPUs."""
        own = (row >= self.first) & (row < self.first + self.rows)
        place = (row - self.first).clamp(0, self.rows - 1), column.clamp(max=self.columns - 1)
        total = sum((part[place] for part in self.every), torch.tensor(more))
        return torch.where(own, total, 0.0)


def warp_rows(warps: Warps, rows: int) -> Tensor:
    """The rows of an accumulator that warps hold: 16 of every 64 a warp."""
    row = torch.arange(rows)
    return row[(row % WGMMA_M < WGMMA_M // WARPS) == warps.leader]


class Smem:
    """An operand's stages in the blocks of one rank: TMA fills them, and wgmma reads them."""

    def __init__(self, operand: Operand, stages: int, clusters: int, source: Tensor) -> None:
        self.operand, self.stages, self.source = operand, stages, source
        self.slices = tma_addresses(operand)  # of each slice, (rows, columns) → element
        self.addresses = descriptor_addresses(operand)  # (rows, columns) → element
        written = torch.cat([each.flatten() for each in self.slices])
        check_written_once(written, operand.elements, f"TMA, {operand.name}")
        self.data = source.new_full((clusters, stages, operand.elements), torch.nan)
        self.seen: dict[int, Tensor] = {}  # what stages hold, as the tensor core reads it

    def load(
        self,
        tile: Tensor,
        k: int,
        k_tile: int,
        part: int,
        whole: bool,
        missing: Tensor | None = None,
    ) -> None:
        """Slice `part` of k-tile k of a tile in each cluster; NaN unless it is whole.

        And NaN in a cluster whose rows are `missing` in global memory.
        """
        stage = self.data[:, k_tile % self.stages]
        self.seen.pop(k_tile % self.stages, None)
        if whole:
            (i, j), (rows, columns) = self.operand.slice_coord(part), self.operand.slice_shape
            data = self.source[tile, k, i * rows : (i + 1) * rows, j * columns : (j + 1) * columns]
            if missing is not None:
                data = data.masked_fill(missing[:, None, None], torch.nan)
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
