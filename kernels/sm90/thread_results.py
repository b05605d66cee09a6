"""Results that threads store from registers: whole ones in fp32, and reductions.

Whole     a thread stores two neighbours at a time: the lanes of a quad fill sectors of C.
Reduction over the columns of a tile, or over its rows:
          values of a thread ─▶ lanes of a warp, by butterflies ─▶ one part in global memory
          The columns of a tile are all in one quad of lanes, its rows in four warps. A part is of
          one tile, or of one warp's rows of it. Each is stored once, and the parts are added in
          their order after the kernel: the bits are the same in each run.

Which lanes, which warps and which values share an output follows from `plan.coordinates`.
"""

from collections import defaultdict

import cutlass
import cutlass.cute as cute
from cutlass import Float32, select_

from cutedsl_gemm.kernels.device import lower
from cutedsl_gemm.kernels.device.tile import in_bounds, matrix_of
from cutedsl_gemm.kernels.epilogue.operations import IDENTITIES
from cutedsl_gemm.kernels.epilogue.registers import combine
from layouts import size
from layouts.hardware.facts import WARP, WARPGROUP


class ThreadResults:
    """What the threads of a consumer store of a panel, straight from their registers."""

    def __init__(self, plan):
        self.plan, self.epilogue = plan, plan.planned_epilogue
        rows, columns = plan.coordinates
        self.values = [(rows[1](v), columns[1](v)) for v in range(size(rows[1]))]
        self.threads = rows[0], columns[0]

    def output(self, results, shape, as_planned):
        """The tensors, whole and reduced, and C's extents; nothing if there are none."""
        if not self.plan.stores_from_registers:
            return ()
        whole = tuple(as_planned(results[i]) for i in self.plan.direct)
        reduced = tuple(results[i] for i in self.plan.reduced)
        return whole, reduced, self.plan.exchanged(shape)

    def of_matrix(self, output, matrix):
        """The tensors of one of the matrices of a batch."""
        if not self.plan.stores_from_registers:
            return ()
        whole, reduced, extents = output
        whole = tuple(matrix_of(each, matrix) for each in whole)
        return whole, tuple(each[matrix, None, None] for each in reduced), extents

    def begin(self):
        """Totals of the reductions over columns, one for each row of a thread: none yet."""
        return [{} for _ in self.plan.reduced]

    def take(self, output, results, totals, first, place, panel):
        """Store a panel's results; those reduced over columns with the last panel of a tile."""
        if not self.plan.stores_from_registers:
            return
        whole, reduced, extents = output
        count = len(self.values) // self.plan.panels
        offsets = self.values[panel * count : (panel + 1) * count]
        for i, target in zip(self.plan.direct, whole, strict=True):
            self.store_whole(results[i], target, first, offsets)
        for i, target, total in zip(self.plan.reduced, reduced, totals, strict=True):
            result = self.epilogue.results[i]
            kept = 0 if result.over == "N" else 1
            self.reduce(result.reduction, kept, results[i], total, first, offsets, extents)
            if kept == 1 or panel + 1 == self.plan.panels:
                self.store_reduced(result.reduction, kept, target, total, first, place)
                total.clear()

    @cute.jit
    def store_whole(self, values, target, first, offsets: cutlass.Constexpr):
        """Store the values of a panel that are in bounds, in pairs if they are neighbours."""
        width = self.plan.store_width
        for i in cutlass.range_constexpr(0, len(offsets), width):
            row, column = first[0] + offsets[i][0], first[1] + offsets[i][1]
            if in_bounds((row, column), target.shape):
                if cutlass.const_expr(width == 2):
                    pair = cute.make_rmem_tensor((2,), Float32)
                    pair[0], pair[1] = values[i], values[i + 1]
                    address = target.iterator + cute.crd2idx((row, column), target.layout)
                    cute.autovec_copy(
                        pair, cute.make_tensor(lower.aligned(address, 8), pair.layout)
                    )
                else:
                    target[row, column] = values[i]

    def reduce(self, kind, kept, values, total, first, offsets, extents):
        """Add a panel's values to the totals of their kept coordinates."""
        identity = Float32(IDENTITIES[kind])
        groups = defaultdict(list)  # kept offset → values
        for i, offset in enumerate(offsets):
            present = first[1 - kept] + offset[1 - kept] < extents[1 - kept]
            groups[offset[kept]].append(select_(present, values[i], identity))
        for offset, group in groups.items():
            for value in group:
                total[offset] = combine(kind, total[offset], value) if offset in total else value

    def store_reduced(self, kind, kept, target, total, first, place):
        """Join the lanes that share an output; one of them stores it to its part."""
        thread = cute.arch.thread_idx()[0] % WARPGROUP
        share = [bit for bit in range(5) if self.threads[kept](1 << bit) == 0]
        mask = sum(1 << bit for bit in share)
        part = self.part(kept, place, thread)
        for offset, value in total.items():
            for bit in share:
                other = cute.arch.shuffle_sync_bfly(value, offset=1 << bit)
                value = combine(kind, value, other)
            self.store_part(target, part, first[kept] + offset, value, (thread & mask) == 0)

    def part(self, kept, place, thread):
        """The number of this warp's part: of the tile, or of its rows of the tile."""
        if kept == 0:
            return place[1]
        return place[0] * (WARPGROUP // WARP) + thread // WARP

    @cute.jit
    def store_part(self, target, part, kept, value, stores):
        """Store a reduced value (parts, extent) that is in bounds."""
        if stores & (kept < target.shape[1]):
            target[part, kept] = value
