"""The executor's epilogues: from accumulators to what the plan stores of them.

`PanelStore` carries the results through panels in shared memory; `Reduction` adds the partial sums
of blocks that split K. Both give `Results` their values, at coordinates of the plan's C.
"""

from __future__ import annotations

from math import prod
from typing import Any

import torch
from torch import Tensor

from cutedsl_gemm.kernels.epilogue.evaluate import evaluate
from cutedsl_gemm.kernels.epilogue.operations import IDENTITIES
from cutedsl_gemm.kernels.executor import thread_values
from cutedsl_gemm.kernels.executor.epilogue import over_c
from cutedsl_gemm.kernels.pipeline.actions import Warps
from cutedsl_gemm.kernels.plan.epilogue import stored_as
from cutedsl_gemm.kernels.plan.tile_scheduler import WorkTile
from cutedsl_gemm.kernels.sm90.execute_addresses import (
    box_addresses,
    check_written_once,
    matrix_addresses,
    storing_threads,
)
from cutedsl_gemm.kernels.sm90.panel_plan import PanelPlan
from cutedsl_gemm.kernels.sm90.pipeline import WARPS
from cutedsl_gemm.kernels.sm90.split_k_plan import SplitKPlan
from layouts import cosize, size
from layouts.hardware.atoms import WGMMA_M
from layouts.hardware.facts import WARP


def consumer_of(warps: Warps) -> int:
    """The number of the consumer to which warps belong."""
    _, _, number = warps.agent.partition(" ")
    return int(number or 0)


def threads_of(warps: Warps) -> slice:
    """The threads of a warpgroup that are those of its first warp, or of the others."""
    return slice(0, WARP) if warps.leader else slice(WARP, WARPS * WARP)


class Results:
    """The operands of an epilogue, and its results, over whole tiles of the plan's C.

    The tile rows of a batch are those of its matrices, one after the other. What a kernel never
    writes is NaN. `finish` copies what is in bounds.
    """

    def __init__(
        self,
        plan: PanelPlan | SplitKPlan,
        shape: tuple[int, ...],  # (M, N) or (L, M, N) of the caller's C
        tile_counts: tuple[int, int],  # of the plan's C, down and across
        operands: tuple[Tensor | float, ...] = (),
    ) -> None:
        self.plan, self.epilogue = plan, plan.planned_epilogue
        *batch, m, n = shape
        self.extents, self.matrices = plan.exchanged((m, n)), prod(batch)
        self.operands = [
            self._over_c(each, operand, shape)
            for each, operand in zip(plan.epilogue.operands, operands, strict=True)
        ]
        down, across = tile_counts
        padded = down * plan.output_tile[0], across * plan.output_tile[1]
        self.rows_of_each = padded[0] // self.matrices
        self.whole = {
            i: torch.full(padded, torch.nan, dtype=getattr(torch, each.dtype or plan.dtype))
            for i, each in enumerate(self.epilogue.results)
            if each.reduction is None
        }
        self.reduced: dict[int, Tensor] = {}  # of each reduction, the parts (L, parts, extent)

    def _over_c(self, operand: Any, given: Tensor | float, shape: tuple[int, ...]) -> Any:
        """An operand as matrices (L, rows, columns) of the plan's C; a number as it is."""
        if not isinstance(given, Tensor):
            return given
        matrix = over_c(operand, given, shape if operand.batched else shape[-2:])
        matrix = matrix.mT if self.plan.swapped else matrix
        return matrix.expand(self.matrices, *matrix.shape[-2:])

    def in_matrix(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """The matrices of a batch to which rows belong, and the rows within them."""
        return rows // self.rows_of_each, rows % self.rows_of_each

    def inside(self, rows: Tensor, columns: Tensor) -> Tensor:
        """Whether C has elements in these rows and columns."""
        _, rows = self.in_matrix(rows)
        return (rows < self.extents[0]) & (columns < self.extents[1])

    def clamped(self, rows: Tensor, columns: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The matrices, and the nearest rows and columns that C has."""
        matrix, rows = self.in_matrix(rows)
        return matrix, rows.clamp(max=self.extents[0] - 1), columns.clamp(max=self.extents[1] - 1)

    def reduce(self, i: int, values: Tensor, rows: Tensor, columns: Tensor, part: Tensor) -> None:
        """Join values of result i with those that their parts hold; all tensors broadcast.

        A part is counted within its matrix.
        """
        result = self.epilogue.results[i]
        reduction = str(result.reduction)  # torch's scatter_reduce has the same names
        matrix, row = self.in_matrix(rows)
        kept, extent = (row, self.extents[0]) if result.over == "N" else (columns, self.extents[1])
        count = self.plan.reduction_parts(
            self.plan.epilogue.results[i], *self.plan.exchanged(self.extents)
        )
        size = self.matrices * count * extent
        empty = torch.full((size,), IDENTITIES[reduction], dtype=torch.float32)
        self.reduced.setdefault(i, empty)
        place = (matrix * count + part) * extent + kept
        place, inside, values = torch.broadcast_tensors(place, self.inside(rows, columns), values)
        self.reduced[i].scatter_reduce_(0, place[inside], values[inside], reduction)

    def values(
        self,
        accumulators: list[Tensor],
        rows: Tensor,
        columns: Tensor,
        loaded: dict[int, Tensor] | None = None,
    ) -> tuple[Tensor, ...]:
        """The results at coordinates of C. What is out of bounds is never stored.

        `loaded` are the values of operands that are read elsewhere, by their numbers.
        """
        place = self.clamped(rows, columns)
        read = loaded or {}
        operands = [
            read[i] if i in read else each[place] if isinstance(each, Tensor) else each
            for i, each in enumerate(self.operands)
        ]
        return evaluate(self.epilogue, accumulators, operands)

    def finish(self, out: tuple[Tensor, ...]) -> None:
        """Copy the results to the caller's tensors."""
        rows, columns = self.extents
        for i, reduced in self.reduced.items():
            out[i].copy_(reduced.view(out[i].shape))
        for i, whole in self.whole.items():
            of_each = whole.unflatten(0, (len(out[i]), -1)) if self.plan.batched else whole
            found = of_each[..., :rows, :columns]
            out[i].copy_(found.mT if self.plan.swapped else found)


class PanelStore:
    """The epilogue of a PanelPlan: registers, stmatrix into a panel, TMA or threads out to C."""

    def __init__(self, plan: PanelPlan, results: Results) -> None:
        self.plan, self.results = plan, results
        self.elements = cosize(plan.staging)
        threads, values = thread_values(plan.accumulator)
        self.accumulator = plan.accumulator(threads, values)  # (thread, value) → m + R * n
        check_written_once(self.accumulator, plan.rows * plan.columns, "wgmma, accumulator")
        held = size(plan.fragment[0])  # S/2, values of a thread's stmatrix
        extents = plan.epilogue.accumulators, plan.panels, -1, plan.panel_rows // WGMMA_M, held
        # (accumulator, panel, P/S, R/64, S/2)
        self.fragment = plan.fragment(values).view(extents)
        self.rows, self.columns = (
            layout(threads, torch.arange(size(layout[1]))).movedim(0, 1).unflatten(0, extents[1:])
            for layout in plan.coordinates
        )  # (panel, P/S, R/64, S/2, thread)
        # (P/S, R/64, S/2, thread), elements of a panel
        self.written = matrix_addresses(plan, plan.stmatrix)
        self.loaded = matrix_addresses(plan, plan.ldmatrix)
        # What threads hold of a panel of each operand that TMA loads.
        self.held: dict[Warps, dict[int, Tensor]] = {}
        check_written_once(self.written, self.elements, "stmatrix, C panel")
        if plan.stored_by_tma:
            self.read = box_addresses(plan.staging, plan.contiguous)  # (R, P)
        else:
            rows = torch.arange(plan.panel_rows)[:, None]
            self.read = plan.staging(rows + plan.panel_rows * torch.arange(plan.panel_columns))

    def panels(self, blocks: tuple[int, ...]) -> Tensor:
        """The panels in shared memory: (*blocks, c_stages, elements), in fp32."""
        extents = *blocks, self.plan.c_stages, self.elements
        return torch.full(extents, torch.nan, dtype=torch.float32)

    def load(
        self, step: Any, warps: Warps, panels: Tensor, tiles: list[WorkTile], whole: bool
    ) -> None:
        """A panel of an operand arrives in a buffer; until it is `whole`, its place holds NaN.

        TMA reads zeros where C has no element.
        """
        if not whole:
            panels[:, step.buffer] = torch.nan
            return
        operand = self.results.operands[self.plan.staged_operands[step.slot]]
        place = self.place_of_panel(step.panel, warps, tiles)
        found = operand[self.results.clamped(*place)].float()
        values = torch.where(self.results.inside(*place), found, 0)
        panels[:, step.buffer, self.read.flatten()] = values.flatten(1)

    def hold(self, step: Any, warps: Warps, panels: Tensor) -> None:
        """The warps read a panel of an operand: (cluster, P/S, R/64, S/2, thread)."""
        values = panels[:, step.buffer, self.loaded[..., threads_of(warps)]]
        self.held.setdefault(warps, {})[self.plan.staged_operands[step.slot]] = values

    def write(
        self, step: Any, warps: Warps, acc: Tensor, panels: Tensor, tiles: list[WorkTile]
    ) -> None:
        """The warps write a panel of a result: acc (cluster, R, BN) in fp32 → a buffer."""
        values, _ = self.values(step.panel, warps, acc, tiles)
        result = self.plan.staged[step.slot]
        value = values[result].to(self.results.whole[result].dtype)
        written = self.written[..., threads_of(warps)]
        panels[:, step.buffer, written.flatten()] = value.flatten(1).float()

    def store_results(
        self, step: Any, warps: Warps, acc: Tensor, panels: Tensor, tiles: list[WorkTile]
    ) -> None:
        """The threads store what is in fp32, and what is reduced, from their registers."""
        plan = self.plan
        values, (row, column) = self.values(step.panel, warps, acc, tiles)
        for i in plan.direct:
            self.results.whole[i][row, column] = values[i]
        warp = torch.arange(WARPS * WARP)[threads_of(warps)] // WARP
        m, n = self.coord(warps, tiles)
        m = m % (self.results.rows_of_each // plan.consumer_tile[0])  # within its matrix
        for i in plan.reduced:
            over = plan.planned_epilogue.results[i].over
            part = n if over == "N" else m * WARPS + warp
            self.results.reduce(i, values[i], row, column, part)

    def values(
        self, panel: int, warps: Warps, acc: Tensor, tiles: list[WorkTile]
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, Tensor]]:
        """The results of a panel in the warps' registers, and their coordinates in C.

        Each is (cluster, P/S, R/64, S/2, thread).
        """
        threads = threads_of(warps)
        registers = acc.mT.flatten(1)[:, self.accumulator[threads]]  # (cluster, thread, value)
        # (cluster, P/S, R/64, S/2, thread) of each accumulator
        accumulators = [registers[:, :, each[panel]].movedim(1, -1) for each in self.fragment]
        row, column = self.origin(warps, tiles)
        place = row + self.rows[panel, ..., threads], column + self.columns[panel, ..., threads]
        return self.results.values(accumulators, *place, self.held.get(warps, {})), place

    def origin(self, warps: Warps, tiles: list[WorkTile]) -> tuple[Tensor, Tensor]:
        """The first row and column of a consumer's part of each tile: (cluster, 1, 1, 1, 1)."""
        (m, n), (rows, columns) = self.coord(warps, tiles), self.plan.consumer_tile
        return m * rows, n * columns

    def coord(self, warps: Warps, tiles: list[WorkTile]) -> tuple[Tensor, Tensor]:
        """The coordinate of a consumer's part of each tile, in parts: (cluster, 1, 1, 1, 1)."""
        m, n = torch.tensor([tile.coord for tile in tiles]).mT[..., None, None, None, None]
        return self.plan.consumer_coord((m, n), consumer_of(warps) % self.plan.consumers_per_tile)

    def place_of_panel(
        self, panel: int, warps: Warps, tiles: list[WorkTile]
    ) -> tuple[Tensor, Tensor]:
        """The rows (cluster, R, 1) and columns (cluster, 1, P) of a panel of a consumer's part."""
        plan = self.plan
        row, column = (each[:, 0, 0] for each in self.origin(warps, tiles))  # (cluster, 1, 1)
        row = row + torch.arange(plan.panel_rows)[:, None]
        return row, column + panel * plan.panel_columns + torch.arange(plan.panel_columns)

    def store(
        self, step: Any, warps: Warps, acc: Tensor, panels: Tensor, tiles: list[WorkTile]
    ) -> None:
        """A buffer goes to its panel of a result: all of it, or what the warps' threads store."""
        whole = self.results.whole[self.plan.staged[step.slot]]
        row, column = self.place_of_panel(step.panel, warps, tiles)
        held = panels[:, step.buffer, self.read.flatten()].unflatten(1, self.read.shape)
        held = held.to(whole.dtype)
        if step.asynchronous:
            whole[row, column] = held
        else:
            for first_row, first_column, values in zip(row, column, held, strict=True):
                place, m, n = self._stored(int(first_row[0]), int(first_column[0, 0]), warps)
                whole[m, n] = values[place]

    def _stored(
        self, first_row: int, first_column: int, warps: Warps
    ) -> tuple[tuple[Tensor, Tensor], Tensor, Tensor]:
        """What the warps' threads store of the panel that begins at an element of C.

        (row, column) of each element in the panel, and its row and column in C. The caller's C is
        taken to be contiguous.
        """
        plan, extents = self.plan, self.results.extents
        matrix, row = divmod(first_row, self.results.rows_of_each)
        panel, first = (plan.panel_rows, plan.panel_columns), (row, first_column)
        rows, columns = (
            max(0, min(of, end - at)) for of, end, at in zip(panel, extents, first, strict=True)
        )
        stride, width = extents[plan.contiguous], plan.lines.width
        start = matrix * prod(extents) + first[1 - plan.contiguous] * stride
        start += first[plan.contiguous]
        stored = storing_threads(plan.lines, (rows, columns), start % width, stride % width)
        row, column, thread = stored
        threads = threads_of(warps)
        mine = (thread >= threads.start) & (thread < threads.stop)
        row, column = row[mine], column[mine]
        return (row, column), row + first_row, column + first_column


class Reduction:
    """The epilogue of a SplitKPlan: registers, workspace, the reduction's threads, gC."""

    def __init__(self, plan: SplitKPlan, results: Results, tile_counts: tuple[int, int]) -> None:
        self.plan, self.results = plan, results
        bm, bn, _ = plan.tile
        # (thread, value) → m + R * n
        accumulator = plan.accumulator(*thread_values(plan.accumulator))
        check_written_once(accumulator, plan.rows * plan.columns, "wgmma, accumulator")
        self.n, self.m = accumulator // plan.rows, accumulator % plan.rows
        consumers = torch.arange(plan.consumers)[:, None, None]
        m, n = plan.consumer_coord((0, 0), consumers)
        m, n = m * plan.rows + self.m, n * plan.columns + self.n
        written = plan.partial_sums(m + bm * n)  # (consumer, thread, value)
        check_written_once(written, bm * bn, "workspace, partial sums")
        self.written = written
        extents = plan.splits, *tile_counts, bm * bn
        self.workspace = torch.full(extents, torch.nan, dtype=torch.float32)

    def panels(self, blocks: tuple[int, ...]) -> Tensor:
        """None: partial sums go from registers to global memory."""
        return torch.empty(*blocks, 0)

    def write(
        self, step: Any, warps: Warps, acc: Tensor, panels: Tensor, tiles: list[WorkTile]
    ) -> None:
        """The warps store their partial sums (cluster, R, BN)."""
        threads, consumer = threads_of(warps), consumer_of(warps)
        m, n = torch.tensor([tile.coord for tile in tiles]).mT
        place = tiles[0].split, m[:, None], n[:, None], self.written[consumer, threads].flatten()
        self.workspace[place] = acc[:, self.m[threads], self.n[threads]].flatten(1)

    def reduce(self) -> None:
        """The second kernel adds the splits in their order."""
        plan, c_tile = self.plan, self.plan.c_tile
        layout, rows = plan.reduction, plan.reduction_rows
        threads, values = thread_values(layout.rows)
        row, column = layout.rows(threads, values), layout.columns(threads, values)
        check_written_once(row * c_tile[1] + column, rows * c_tile[1], "reduction, its rows")
        first_rows = torch.arange(0, c_tile[0], rows)[:, None, None]  # of each part of the tile
        row, column = row + first_rows, column.expand(len(first_rows), -1, -1)
        matrix = torch.arange(plan.matrices).view(-1, 1, 1, 1)
        # (matrix, part, thread, value)
        read = plan.c_partial_sums(row + c_tile[0] * (column + c_tile[1] * matrix))
        m, n = plan.exchanged((row, column))
        tiles_m, tiles_n = self.workspace.shape[1:3]
        rows, columns = plan.output_tile
        m = m + rows * torch.arange(tiles_m).view(-1, 1, 1, 1, 1)
        n = n + columns * torch.arange(tiles_n).view(1, -1, 1, 1, 1)
        total = torch.zeros(tiles_m, tiles_n, *read.shape, dtype=torch.float32)
        for partial_sums in self.workspace:  # (tiles_m, tiles_n, BM * BN) of one split
            total += partial_sums[:, :, read]
        for i, values in enumerate(self.results.values([*total.unbind(2)], m, n)):
            if plan.epilogue.results[i].over is None:
                whole = self.results.whole[i]
                whole[m, n] = values.to(whole.dtype)
            else:
                self.results.reduce(i, values, m, n, self._parts(i, threads))

    def _parts(self, i: int, threads: Tensor) -> Tensor:
        """The parts of reduction i: (tiles_m, tiles_n, blocks of a tile, thread, 1)."""
        plan, result = self.plan, self.plan.epilogue.results[i]
        stored, extents = stored_as(result, plan.reduction_store, plan.reduction_tile)
        tiles_m, tiles_n = self.workspace.shape[1:3]
        down, across = plan.exchanged(
            (torch.arange(tiles_m).view(-1, 1, 1, 1, 1), torch.arange(tiles_n).view(-1, 1, 1, 1))
        )  # the tile of the caller's C
        blocks = plan.c_tile[0] // plan.reduction_rows
        down = down * blocks + torch.arange(blocks).view(-1, 1, 1)
        if result.over == "N":
            return across * extents[1] + stored.columns(threads, 0)
        return down * extents[0] + stored.rows(threads, 0)
