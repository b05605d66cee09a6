"""The panel epilogue: registers → stmatrix → a panel in shared memory → C.

When   a panel of P columns    wait until its buffer has been read │ stmatrix │ store to C
       Consecutive panels use `c_stages` buffers in turn.

Who    TMA stores the panel, behind the next one (`TmaPanels`). It stores whole multiples of 16
       bytes, at multiples of 16 bytes. The rows of any other C are stored by the threads of the
       consumer, element by element (`ThreadPanels`).

Where  each consumer has its own panels: no consumer waits for the other's stores.
       `PanelPlan.stmatrix_rows` is the row that each lane addresses, and `panel_store` proves
       that the stores are free of bank conflicts (ConflictFree, layouts/hardware/conflict_free.py).
       `panel_copy` says which elements of a panel a thread stores to C, and `panel_load` proves
       that its loads are free of bank conflicts.
"""

from itertools import product
from math import gcd
from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Int64
from cutlass.cute.nvgpu import cpasync, warp

from cutedsl_gemm.kernels.device import lower
from cutedsl_gemm.kernels.device.epilogue import evaluate_all, load_values, over_c, split_arguments
from cutedsl_gemm.kernels.device.tile import (
    in_bounds,
    remaining_extent,
    thread_coordinates,
    thread_partition,
    tile_count,
)
from cutedsl_gemm.kernels.plan.smem import staged_layout
from cutedsl_gemm.kernels.sm90.mainloop import Sm90Gemm
from cutedsl_gemm.kernels.sm90.panel_loads import PanelLoads
from cutedsl_gemm.kernels.sm90.pipeline import panel_barrier
from cutedsl_gemm.kernels.sm90.thread_results import ThreadResults
from layouts import cosize, size, slice_and_offset
from layouts.hardware.atoms import WGMMA_M
from layouts.hardware.facts import WARPGROUP

# L2 evicts C first, and A and B stay: up to 1.3 times as fast at K <= 256
# (docs/performance). The encoding is that of CUTLASS's TMA::CacheHintSm90::EVICT_FIRST.
EVICT_FIRST = 0x12F0000000000000
AT_ONCE = 8  # elements that a thread loads from a panel before it stores them


class TmaPanels:
    """One warp of a consumer issues TMA stores of its panels."""

    def __init__(self, plan):
        self.plan = plan

    def output(self, c):
        """The TMA store atom, and C (M, N) as TMA sees it."""
        panel = (self.plan.panel_rows, self.plan.panel_columns)
        store = cpasync.CopyBulkTensorTileS2GOp()
        return cpasync.make_tiled_tma_atom(store, c, lower.smem_layout(self.plan.staging), panel)

    def tiles(self, output):
        """The atom, and C in panels (R, P, tiles_m * consumers_per_tile, tiles_n * panels)."""
        plan, (tma_c, gC) = self.plan, output
        return tma_c, cute.local_tile(gC, (plan.panel_rows, plan.panel_columns), (None, None))

    def begin(self, sC, tiles):
        """Whether this warp issues, the atom, and both tensors as TMA copies them."""
        issues = cute.arch.make_warp_uniform(cute.arch.warp_idx()) % 4 == 0
        tma_c, gC = tiles
        # (box, staged_panels), (box, row of panels, panel)
        return issues, tma_c, *lower.tma_partition(tma_c, sC, gC)

    @cute.jit
    def wait_for_buffer(self, begun, store: cutlass.Constexpr):
        """Wait until TMA has read what the buffer of a tile's store held before."""
        issues, _, _, _ = begun
        if issues:
            cute.arch.cp_async_bulk_wait_group(self.plan.pending_stores(store), read=True)

    def fence(self):
        """What stmatrix wrote, TMA reads."""
        cute.arch.fence_proxy("async.shared", space="cta")

    @cute.jit
    def store(self, begun, buffer, m, n, panel: cutlass.Constexpr):
        """Store a buffer to a panel of tile column n of C, in row m of panels."""
        issues, tma_c, sC, gC = begun
        if issues:
            gPanel = gC[None, m, n * self.plan.panels + panel]  # (box)
            cute.copy(tma_c, sC[None, buffer], gPanel, cache_policy=Int64(EVICT_FIRST))
            cute.arch.cp_async_bulk_commit_group()

    @cute.jit
    def wait_for_stores(self):
        """Keep shared memory alive until the last store has read it."""
        if cute.arch.make_warp_uniform(cute.arch.warp_idx()) % 4 == 0:
            cute.arch.cp_async_bulk_wait_group(0, read=True)


class ThreadPanels:
    """The threads of a consumer store its panels, neighbours in memory by neighbouring threads."""

    def __init__(self, plan):
        self.plan = plan

    def output(self, c):
        """C (M, N)."""
        return (c,)

    def tiles(self, output):
        """C."""
        return output

    def begin(self, sC, tiles):
        """The panels in shared memory, and C."""
        return sC, *tiles

    def wait_for_buffer(self, begun, store):
        """Nothing: a thread has read its part of a buffer before it comes to the next panel."""

    def fence(self):
        """Nothing: the barrier behind it shows the threads what stmatrix wrote."""

    @cute.jit
    def store(self, begun, buffer, m, n, panel: cutlass.Constexpr):
        """Store a buffer to a panel of tile column n of C, in row m of panels."""
        (sC, gC), plan, copy = begun, self.plan, self.plan.panel_copy
        tiler, coord = (plan.panel_rows, plan.panel_columns), (m, n * plan.panels + panel)
        thread = cute.arch.thread_idx()[0] % WARPGROUP
        source = thread_partition(sC[None, None, buffer], copy, thread)  # (lines, (1, vectors))
        target = thread_partition(cute.local_tile(gC, tiler, coord), copy, thread)
        extent = remaining_extent(gC, tiler, coord)
        coord_in_panel = thread_coordinates(copy, thread)
        for vector in cutlass.range_constexpr(copy.vectors):
            lines = self.lines_in_bounds(coord_in_panel((0, (0, vector))), extent)
            self.store_lines(source[None, (0, vector)], target[None, (0, vector)], lines)

    @cute.jit
    def store_lines(self, source, target, lines):
        """Store the first `lines` elements of a thread: it loads a few, then stores them."""
        every = self.plan.panel_copy.lines
        at_once = gcd(every, AT_ONCE)
        values = cute.make_rmem_tensor((at_once,), source.element_type)
        for part in cutlass.range(every // at_once, unroll=1):
            sPart, gPart = (cute.local_tile(each, (at_once,), (part,)) for each in (source, target))
            cute.autovec_copy(sPart, values)
            for line in cutlass.range_constexpr(at_once):
                if part * at_once + line < lines:
                    gPart[line] = values[line]

    def lines_in_bounds(self, first, extent):
        """How many of a thread's lines C has; `first` is the coordinate in the first of them."""
        across, copy = 1 - self.plan.contiguous, self.plan.panel_copy
        step = (copy.rows, copy.columns)[across](0, (1, (0, 0)))  # from line to line
        lines = cute.ceil_div(extent[across] - first[across], step)
        return cutlass.select_(in_bounds(first, extent), lines, Int32(0))

    def wait_for_stores(self):
        """Nothing: shared memory has been read."""


class PanelGemm(Sm90Gemm):
    """A GEMM that stores C panel by panel; the schedule is the subclasses'."""

    def __init__(self, plan):
        super().__init__(plan)
        self.epilogue = plan.planned_epilogue
        self.threads = ThreadResults(plan)
        self.panels = TmaPanels(plan) if plan.stored_by_tma else ThreadPanels(plan)
        self.loads: Any = None if plan.staged_operand is None else PanelLoads(plan)

    @cute.jit
    def __call__(
        self,
        a: cute.Tensor,  # (M, K)
        b: cute.Tensor,  # (K, N)
        *arguments,  # operands and results of the epilogue, such as C (M, N); then sms, stream
    ):
        """What the epilogue makes of C = A · B, on at most `sms` multiprocessors."""
        plan = self.plan
        operands, results, (sms, stream) = split_arguments(plan.epilogue, arguments)
        shape = a.shape[0], b.shape[-1]
        views = [
            self.c_as_planned(each) if isinstance(each, cute.Tensor) else each
            for each in over_c(plan.epilogue, operands, shape)
        ]
        if cutlass.const_expr(self.loads is not None):
            views[plan.staged_operand] = self.loads.source(views[plan.staged_operand])
        output = (
            tuple(self.panels.output(self.c_as_planned(results[i])) for i in plan.staged),
            tuple(views),
            self.threads.output(results, shape, self.c_as_planned),
        )
        tiles = tile_count(shape, plan.exchanged(plan.cluster_tile))
        self.launch(*self.as_planned(a, b), tiles, output, sms, stream)

    def epilogue_storage(self):
        """The panels of C, of all consumers."""
        return cute.struct.MemRange[self.dtype, self.plan.staged_panels * cosize(self.plan.staging)]

    def epilogue_tensors(self, storage, loaded, output):
        """What `store` needs: the operands over C, the results that threads store from registers,

        of each staged result its panels (R, P, staged_panels) and tiles, and what the loads of the
        operand need that is loaded into panels.
        """
        staged, operands, by_threads = output
        layout = staged_layout(self.plan.staging, self.plan.staged_panels)
        panels = tuple(lower.smem_tensor(storage, layout, dtype) for dtype in self.staged_dtypes)
        tiles = tuple(self.panels.tiles(each) for each in staged)
        loads = None
        if self.loads is not None:
            loads = self.loads.tensors(storage, loaded, operands[self.plan.staged_operand])
        return operands, by_threads, panels, tiles, loads

    @property
    def staged_dtypes(self):
        """The types of the staged results."""
        results = (self.epilogue.results[i] for i in self.plan.staged)
        return [lower.DTYPES[result.dtype or self.plan.dtype] for result in results]

    def make_stmatrix(self):
        """stmatrix by four warps: 64 × S elements at a time."""
        atom = self.plan.stmatrix
        op = warp.StMatrix8x8x16bOp(atom.transposed, atom.matrices)
        tiler = WGMMA_M, self.plan.stmatrix_columns
        copy = cute.make_copy_atom(op, self.dtype)
        return cute.make_tiled_copy(copy, lower.layout(self.plan.stmatrix_tv), tiler)

    def load(self, consumer, epilogue, m, n):
        """Begin to load the operand that comes through panels, for what `store` stores."""
        *_, loads = epilogue
        if self.loads is not None:
            self.loads.issue(consumer, loads, m, n)

    @cute.jit
    def store(self, consumer, acc, epilogue, m, n, turn):
        """Store what the epilogue makes of a consumer's accumulator.

        It belongs to row m of the (R, P) panels of C, in tile column n. The tile is number `turn`
        of the consumer's.
        """
        plan, (operands, by_threads, panels, tiles, loads) = self.plan, epilogue
        begun = [self.panels.begin(*each) for each in zip(panels, tiles)]
        stmatrix = self.make_stmatrix()
        thread = cute.arch.thread_idx()[0] % WARPGROUP
        tC = [self.lanes_rows(stmatrix, thread, sC) for sC in panels]
        # (S/2, R/64, P/S, panels, accumulators)
        values = cute.make_tensor(acc.iterator, lower.layout(plan.fragment))
        first = self.first_coordinate(thread, m, n)
        columns = self.read_columns(operands, first)
        ahead = self.read_panel(operands, columns, first, 0)
        totals = self.threads.begin()
        for panel in cutlass.range_constexpr(plan.panels):
            if cutlass.const_expr(loads is not None):
                self.loads.wait(consumer, loads, turn, panel)
            results = self.evaluate(values, ahead, panel, consumer, loads)
            if cutlass.const_expr(panel + 1 < plan.panels):  # while this panel is stored
                ahead = self.read_panel(operands, columns, first, panel + 1)
            self.threads.take(by_threads, results, totals, first, (m, n), panel)
            for staged in cutlass.range_constexpr(len(plan.staged)):
                store = panel * len(plan.staged) + staged
                buffer = consumer * plan.c_stages + store % plan.c_stages
                rC = cute.make_rmem_tensor(values.shape[:3], panels[staged].element_type)
                rC.store(results[plan.staged[staged]].load().to(rC.element_type))
                if cutlass.const_expr(loads is None):  # else the loads have waited
                    self.panels.wait_for_buffer(begun[staged], store)
                    self.panel_sync(consumer)
                cute.copy(stmatrix, rC, tC[staged][None, None, None, buffer])
                self.panels.fence()
                self.panel_sync(consumer)
                self.panels.store(begun[staged], buffer, m, n, panel)

    def lanes_rows(self, stmatrix, thread, sC):
        """What a thread addresses by stmatrix: (S/2, R/64, P/S, staged_panels)."""
        tC = stmatrix.get_slice(thread).partition_D(sC)
        # A lane addresses eight elements. Of x2 it holds four, and cute.copy takes as many of both.
        return cute.logical_divide(tC, (size(self.plan.fragment[0]),))[(None, 0), None, None, None]

    def first_coordinate(self, thread, m, n):
        """The coordinate in C of a thread's first value: of row m of panels, in tile column n."""
        plan = self.plan
        (_, row), (_, column) = (
            slice_and_offset((thread, None), layout) for layout in plan.coordinates
        )
        return plan.panel_rows * m + row, plan.output_tile[1] * n + column

    def read_columns(self, operands, first):
        """What a thread reads once a tile: numbers, scalars and columns; None for any other."""
        return [
            view
            if operand.by_value
            else self.read(operand, view, first)
            if "N" not in operand.modes
            else None
            for operand, view in zip(self.epilogue.operands, operands, strict=True)
        ]

    def read_panel(self, operands, columns, first, panel):
        """The operands' values for a panel: numbers, or registers (S/2, R/64, P/S).

        None for the operand that comes through panels.
        """
        return [
            column
            if column is not None or i == self.plan.staged_operand
            else self.read(self.epilogue.operands[i], operands[i], first, panel)
            for i, column in enumerate(columns)
        ]

    def read(self, operand, view, first, panel=0):
        """The values of an operand for a panel, in registers (S/2, R/64, P/S)."""
        shape = self.plan.fragment.shape[:3]
        rows, columns = (layout[1] for layout in self.plan.coordinates)
        begin, count = panel * size(shape), size(shape)
        offsets = [(rows(value), columns(value)) for value in range(begin, begin + count)]
        return load_values(view, first, offsets, shape, self.plan.read_width(operand))

    def evaluate(self, values, operands, panel, consumer, loads):
        """The results of the epilogue for a panel, in fp32: (S/2, R/64, P/S) each."""
        if self.epilogue.accumulators == 1:
            accumulators = [values[None, None, None, panel]]
        else:
            accumulators = [values[None, None, None, panel, i] for i in (0, 1)]
        if self.loads is None:
            return evaluate_all(self.epilogue, accumulators, operands)
        return self.evaluate_by_parts(accumulators, operands, panel, consumer, loads)

    def evaluate_by_parts(self, accumulators, operands, panel, consumer, loads):
        """The same results, computed of what one ldmatrix after the other reads of an operand.

        Else all that a thread needs of the operand's panel would be in registers at once, and
        128×192 would spill.
        """
        shape = self.plan.fragment.shape[:3]
        results = [cute.make_rmem_tensor(shape, Float32) for _ in self.epilogue.results]
        for part in product((None,), range(shape[1]), range(shape[2])):
            read = [each[part] if isinstance(each, cute.Tensor) else each for each in operands]
            read[self.plan.staged_operand] = self.loads.read(consumer, loads, panel, part)
            found = evaluate_all(self.epilogue, [each[part] for each in accumulators], read)
            for result, each in zip(results, found, strict=True):
                result[part].store(each.load())
        return results

    def panel_sync(self, consumer):
        """Wait until all four warps of the consumer are here."""
        number, threads = panel_barrier(consumer)
        cute.arch.barrier(barrier_id=number, number_of_threads=threads)

    def wait_for_stores(self):
        """Keep shared memory alive until the last store has read it."""
        self.panels.wait_for_stores()
