"""The panel epilogue: registers → stmatrix → a panel in shared memory → C.

When   a panel of P columns    evaluate │ wait until its buffer has been read │ stmatrix │ store
       Consecutive panels use `c_stages` buffers in turn.

What   a thread evaluates the plan's epilogue for its own outputs, in fp32. Operands come to it
       from global memory (`thread_reads`), or by TMA into the panels (`panel_loads`). Results of 16
       bits leave through panels (`panel_stores`); those in fp32, and reductions, straight from
       registers (`thread_results`). Without an epilogue, the result is the accumulator.

Where  each consumer has its own panels: no consumer waits for the other's stores.
       `PanelPlan.stmatrix_rows` is the row that each lane addresses, and `panel_store` proves
       that the stores are free of bank conflicts (ConflictFree, layouts/hardware/conflict_free.py).
"""

from typing import Any, NamedTuple

import cutlass
import cutlass.cute as cute
from cutlass import Float32
from cutlass.cute.nvgpu import warp

from cutedsl_gemm.kernels.device import lower
from cutedsl_gemm.kernels.device.epilogue import evaluate_all, over_c, split_arguments
from cutedsl_gemm.kernels.device.tile import matrix_of, tile_count
from cutedsl_gemm.kernels.plan.arguments import other_gpus
from cutedsl_gemm.kernels.plan.smem import staged_layout
from cutedsl_gemm.kernels.sm90.mainloop import Sm90Gemm
from cutedsl_gemm.kernels.sm90.panel_fragments import lane_rows, tiled_copy
from cutedsl_gemm.kernels.sm90.panel_loads import PanelLoads
from cutedsl_gemm.kernels.sm90.panel_stores import ElementPanels, TmaPanels
from cutedsl_gemm.kernels.sm90.pipeline import panel_barrier
from cutedsl_gemm.kernels.sm90.scattered_rows import PartialSums, Received, ScatteredPanels
from cutedsl_gemm.kernels.sm90.thread_reads import Matrices, ThreadReads
from cutedsl_gemm.kernels.sm90.thread_results import ThreadResults
from cutedsl_gemm.kernels.sm90.word_panels import WordPanels
from layouts import cosize
from layouts.hardware.facts import WARPGROUP


class EpilogueTensors(NamedTuple):
    """What a consumer needs to store C. Of each staged result there are panels, and C in tiles."""

    operands: Any  # over C
    by_threads: Any  # what threads store
    panels: Any  # (R, P, staged_panels) each
    tiles: Any
    loads: Any  # of the operands that come through panels; else None
    received: Any  # if C is scattered, what comes from other GPUs; else None


class PanelGemm(Sm90Gemm):
    """A GEMM that stores C panel by panel; the schedule is the subclasses'."""

    def __init__(self, plan):
        super().__init__(plan)
        self.epilogue = plan.planned_epilogue
        self.reads, self.results = ThreadReads(plan), ThreadResults(plan)
        by_threads = WordPanels if plan.lines.width > 1 else ElementPanels
        self.panels: Any = TmaPanels(plan) if plan.stored_by_tma else by_threads(plan)
        self.partial_sums: Any = None
        if plan.scattered:
            self.panels, self.partial_sums = ScatteredPanels(plan), PartialSums(plan, self.reads)
        self.loads: Any = PanelLoads(plan) if plan.staged_operands else None

    @cute.jit
    def __call__(
        self,
        a: cute.Tensor,  # (M, K), or (L, M, K)
        b: cute.Tensor,  # (K, N), (2, K, N), (L, K, N) or (2, L, K, N)
        *arguments,  # operands and results of the epilogue, such as C (M, N); then sms, stream
    ):
        """C = A · B with the plan's epilogue, on at most `sms` multiprocessors.

        If A is gathered or C scattered, `arguments` begins with `other_gpus(plan)`, and this GPU's
        number and the epoch precede `sms`.
        """
        plan = self.plan
        sent = len(other_gpus(plan))
        operands, results, rest = split_arguments(plan.epilogue, arguments[sent:])
        *number_and_epoch, sms, stream = rest
        shape, gathered, scattered = (*a.shape[:-1], b.shape[-1]), (), ()
        if cutlass.const_expr(plan.scattered):
            output = self.scattered_output(results[0], *arguments[:sent], *number_and_epoch)
            scattered = *number_and_epoch[:1], results[0].shape[0]
        else:
            output = self.output(operands, results, shape)
            gathered = (*arguments[:sent], *number_and_epoch)
        tiles = tile_count(shape[-2:], plan.exchanged(plan.cluster_tile))
        if cutlass.const_expr(plan.batched):
            tiles *= a.shape[0]
        self.launch(*self.as_planned(a, b), tiles, output, sms, stream, gathered, scattered)

    def output(self, operands, results, shape):
        """What `epilogue_tensors` needs: results that are staged, operands over C, and others."""
        plan = self.plan
        views = [
            self.c_as_planned(each) if isinstance(each, cute.Tensor) else each
            for each in over_c(plan.epilogue, operands, shape)
        ]
        for i in plan.staged_operands:
            views[i] = self.loads.source(i, views[i])
        return (
            tuple(self.panels.output(self.c_as_planned(results[i])) for i in plan.staged),
            tuple(views),
            self.results.output(results, shape[-2:], self.c_as_planned),
            None,
        )

    def scattered_output(self, mine, parts, arrived, partial, *others):
        """The same, if several GPUs have rows of C."""
        targets = self.panels.output((partial, mine))
        return (targets,), (), (), Received(parts, arrived, *others)

    def epilogue_storage(self):
        """The panels of C, of all consumers."""
        return cute.struct.MemRange[self.dtype, self.plan.staged_panels * cosize(self.plan.staging)]

    def epilogue_tensors(self, storage, loaded, output):
        """What `store` needs."""
        staged, operands, by_threads, received = output
        layout = staged_layout(self.plan.staging, self.plan.staged_panels)
        panels = tuple(lower.smem_tensor(storage, layout, dtype) for dtype in self.staged_dtypes)
        tiles = tuple(self.panels.tiles(each) for each in staged)
        loads = None
        if self.loads is not None:
            loads = self.loads.tensors(storage, loaded, operands)
        return EpilogueTensors(operands, by_threads, panels, tiles, loads, received)

    @property
    def staged_dtypes(self):
        """The types of the staged results."""
        results = (self.epilogue.results[i] for i in self.plan.staged)
        return [lower.DTYPES[result.dtype or self.plan.dtype] for result in results]

    def make_stmatrix(self):
        """stmatrix by four warps: 64 × S elements at a time."""
        atom = self.plan.stmatrix
        op = warp.StMatrix8x8x16bOp(atom.transposed, atom.matrices)
        return tiled_copy(self.plan, op, self.dtype)

    def epilogue_of(self, epilogue, m, extents):
        """The epilogue's tensors for tiles in row m, and the row: of a batch, in its matrix."""
        if not self.plan.batched:
            return epilogue, m
        matrix, m = self.plan.tile_scheduler.matrix_of(m, extents)
        of_matrix = epilogue._replace(
            operands=self.reads.of_matrix(epilogue.operands, matrix),
            by_threads=self.results.of_matrix(epilogue.by_threads, matrix),
            tiles=tuple((*atom, matrix_of(gC, matrix)) for *atom, gC in epilogue.tiles),
            loads=epilogue.loads and self.loads.of_matrix(epilogue.loads, matrix),
        )
        return of_matrix, m

    def load(self, consumer, epilogue, m, n):
        """Begin to load the operands that come through panels, for what `store` stores."""
        if self.loads is not None:
            self.loads.first(consumer, epilogue.loads, m, n)

    def read(self, epilogue, m, n):
        """Begin to read what `store` needs of operands, for row m of panels in tile column n."""
        return self.reads.ahead(epilogue.operands, cute.arch.thread_idx()[0] % WARPGROUP, m, n)

    @cute.jit
    def store(self, consumer, acc, epilogue, read, m, n, tiles_done, target=None):
        """Store what the epilogue makes of a consumer's accumulator, and of what was `read`.

        It belongs to row m of the (R, P) panels of C, in tile column n, and follows
        `tiles_done` tiles of the consumer's.
        """
        plan, (operands, by_threads, panels, tiles, loads, received) = self.plan, epilogue
        partitioned = [self.panels.partition(*each, m, n, target) for each in zip(panels, tiles)]
        stmatrix = self.make_stmatrix()
        thread = cute.arch.thread_idx()[0] % WARPGROUP
        lanes = stmatrix.get_slice(thread)
        tC = [lane_rows(plan, lanes.partition_D(sC)) for sC in panels]
        # (S/2, R/64, P/S, panels, accumulators)
        values = cute.make_tensor(acc.iterator, lower.layout(plan.fragment))
        ahead = self.reads.of_panel(read, 0)
        matrices = Matrices(self.reads, operands, read)
        totals = self.results.begin()
        if cutlass.const_expr(plan.scattered):
            count = self.partial_sums.wait(received, target)
        for panel in cutlass.range_constexpr(plan.panels):
            if cutlass.const_expr(loads is not None):
                self.loads.wait(consumer, loads, tiles_done, panel)
            if cutlass.const_expr(plan.scattered and len(plan.added_panels(panel)) > 0):
                added = plan.added_panels(panel)
                self.partial_sums.add(values, received, count, read.first, added)
            results = self.evaluate(values, ahead, matrices, panel, consumer, loads)
            if cutlass.const_expr(panel + 1 < plan.panels):  # while this panel is stored
                ahead = self.reads.of_panel(read, panel + 1)
            self.results.take(by_threads, results, totals, read.first, (m, n), panel)
            for staged in cutlass.range_constexpr(len(plan.staged)):
                buffer = plan.staged_panel(consumer, panel, staged)
                rC = cute.make_rmem_tensor(values.shape[:3], panels[staged].element_type)
                rC.store(results[plan.staged[staged]].load().to(rC.element_type))
                if cutlass.const_expr(loads is None):  # else the loads have waited
                    store = plan.store_index(panel, staged)
                    self.panels.wait_for_buffer(partitioned[staged], store)
                    self.panel_sync(consumer)
                cute.copy(stmatrix, rC, tC[staged][None, None, None, buffer])
                self.panels.fence()
                self.panel_sync(consumer)
                self.panels.store(partitioned[staged], buffer, m, n, panel)
            if cutlass.const_expr(loads is not None):
                self.loads.after(consumer, loads, m, n, panel)
        if cutlass.const_expr(plan.scattered):
            self.partial_sums.count(self.panels.sent(partitioned[0]), received, target, n)

    def evaluate(self, values, operands, matrices, panel, consumer, loads):
        """The results of the epilogue for a panel: (S/2, R/64, P/S) each, in fp32 or as staged."""
        if self.epilogue.accumulators == 1:
            accumulators = [values[None, None, None, panel]]
        else:
            accumulators = [values[None, None, None, panel, i] for i in (0, 1)]
        if not self.plan.matrix_operands:
            return evaluate_all(self.epilogue, accumulators, operands)
        return self.evaluate_by_tiles(accumulators, operands, matrices, panel, consumer, loads)

    def evaluate_by_tiles(self, accumulators, operands, matrices, panel, consumer, loads):
        """The same results, part by part: a part is what one ldmatrix or stmatrix takes.

        With whole panels of the matrices in registers, 128×192 would spill. It also spills with
        results in fp32 if threads read the matrices or if there are several (two of two matrices:
        82 registers, not 40); else with results of 16 bits (bias, gelu and a matrix: 20).
        """
        shape = self.plan.fragment.shape[:3]
        dtypes = [Float32] * len(self.epilogue.results)
        if self.plan.read_by_threads or len(self.plan.staged) > 1:
            for i, dtype in zip(self.plan.staged, self.staged_dtypes, strict=True):
                dtypes[i] = dtype
        results = [cute.make_rmem_tensor(shape, dtype) for dtype in dtypes]
        for part in [(None, *place) for *place, of in self.plan.stmatrix_tiles if of == panel]:
            read = [each[part] if isinstance(each, cute.Tensor) else each for each in operands]
            of_part = matrices.next()
            if loads is not None:
                of_part |= self.loads.read(consumer, loads, panel, part)
            for i, found in of_part.items():
                read[i] = found
            found = evaluate_all(self.epilogue, [each[part] for each in accumulators], read)
            for result, each in zip(results, found, strict=True):
                result[part].store(each.load().to(result.element_type))
        return results

    def panel_sync(self, consumer):
        """Wait until all four warps of the consumer are here."""
        number, threads = panel_barrier(consumer)
        cute.arch.barrier(barrier_id=number, number_of_threads=threads)

    def wait_for_stores(self):
        """Keep shared memory alive until the last store has read it."""
        self.panels.wait_for_stores()
