"""Operands of the epilogue that threads read from global memory, each for its own outputs.

When   ahead of the products   numbers, scalars and vectors: they come while the tile is multiplied
       ahead of each part      matrices: as far ahead as registers allow (`PanelPlan.read_ahead`)
Where  `PanelPlan.coordinates` says which row and column of C each value of a thread has. An operand
       is a layout over C, so that what several values share is read once.

The lanes of a warp read a vector along N together, each word once, and give each other what they
need by shuffles. If each lane loaded all that it needs, it would wait for eight loads a panel: with
bias and gelu, 95.6 µs at 8448×9216×256, not 86.1 (docs/performance/notebook.md, "Long
epilogues").
"""

from collections import deque
from typing import Any, NamedTuple

import cutlass.cute as cute
from cutlass import Float32, Int32

from cutedsl_gemm.kernels.device import lower
from cutedsl_gemm.kernels.device.epilogue import load_values
from cutedsl_gemm.kernels.device.tile import matrix_of
from layouts import crd2idx, size, slice_and_offset
from layouts.hardware.facts import WARP


class Read(NamedTuple):
    """What a thread has read before its outputs are computed."""

    first: tuple[Any, Any]  # the coordinate in C of the thread's first value
    column: Any  # that value's column in its tile
    operands: list[Any]  # numbers, and registers; None for a matrix


class ThreadReads:
    """What a thread reads of the operands over C, by a plan."""

    def __init__(self, plan):
        self.plan, self.operands = plan, plan.planned_epilogue.operands

    def of_matrix(self, views, matrix):
        """What a thread reads of the operands of a batch, for one of its matrices."""
        read = [
            operand.batched and i not in self.plan.staged_operands
            for i, operand in enumerate(self.operands)
        ]
        pairs = zip(views, read, strict=True)
        return tuple(matrix_of(each, matrix) if has_own else each for each, has_own in pairs)

    def ahead(self, views, thread, m, n):
        """Read all but the matrices, for row m of panels in tile column n."""
        (_, row), (_, column) = (
            slice_and_offset((thread, None), layout) for layout in self.plan.coordinates
        )
        rows, columns = self.plan.consumer_tile
        tile = rows * m, columns * n  # its first coordinate in C
        first = tile[0] + row, tile[1] + column
        operands = zip(self.operands, views, strict=True)
        return Read(first, column, [self.once(*each, first, tile, thread) for each in operands])

    def once(self, operand, view, first, tile, thread):
        """One operand of `ahead`."""
        if operand.by_value:
            return view
        if operand.modes == ("N",):
            return self.words(operand, view, tile, thread % WARP)
        return None if "N" in operand.modes else self.read(operand, view, first)

    def words(self, operand, view, tile, lane):
        """The words of a vector along N that a lane reads for its warp, in registers.

        A word has `read_width` columns of the tile. Word w is in register w // 32 of lane w % 32.
        """
        width = self.plan.read_width(operand)
        count = -(-self.plan.consumer_tile[1] // (width * WARP))
        offsets = [(0, WARP * width * j + i) for j in range(count) for i in range(width)]
        first = tile[0], tile[1] + width * lane
        values = load_values(view, first, offsets, width * count, width)
        if width == 2:
            return cute.recast_tensor(values, Int32)
        words = cute.make_rmem_tensor(count, Float32)
        words.store(values.load().to(Float32))
        return words

    def of_panel(self, read, panel):
        """The operands' values for a panel: numbers, or registers (S/2, R/64, P/S).

        None for a matrix, which comes part by part.
        """
        return [
            self.shuffled(operand, known, read.column, panel) if operand.modes == ("N",) else known
            for operand, known in zip(self.operands, read.operands, strict=True)
        ]

    def shuffled(self, operand, words, column, panel):
        """A panel's values of a vector along N, from the lanes that have read them."""
        width, offsets = self.plan.read_width(operand), self.offsets(panel)
        dtype = words.element_type if width == 1 else lower.DTYPES[operand.dtype]
        values = cute.make_rmem_tensor(self.plan.fragment.shape[:3], dtype)
        into = cute.recast_tensor(values, words.element_type)
        found = {}  # word → its value
        for i in range(0, len(offsets), width):
            word = offsets[i][1] // width
            if word not in found:
                register, lane = divmod(word, WARP)
                found[word] = cute.arch.shuffle_sync(words[register], column // width + lane)
            into[i // width] = found[word]
        return values

    def read(self, operand, view, first):
        """The values of a vector along M for any panel, in registers (S/2, R/64, P/S)."""
        shape = self.plan.fragment.shape[:3]
        return load_values(view, first, self.offsets(0), shape, self.plan.read_width(operand))

    def part(self, i, view, first, part):
        """The values of operand i, a matrix, for a part of the tile, in registers (S/2,)."""
        shape, width = self.plan.fragment.shape[:4], self.plan.read_width(self.operands[i])
        offsets = self.coordinates(crd2idx((0, *part), shape), shape[0])
        return load_values(view, first, offsets, (shape[0],), width)

    def offsets(self, panel):
        """(row, column) of each of a thread's values in a panel, from its first value on."""
        count = size(self.plan.fragment.shape[:3])
        return self.coordinates(panel * count, count)

    def coordinates(self, start, count):
        """(row, column) of a thread's values, from its first value on."""
        rows, columns = (layout[1] for layout in self.plan.coordinates)
        return [(rows(v), columns(v)) for v in range(start, start + count)]


class Matrices:
    """The matrices that a thread reads for a tile, part by part."""

    def __init__(self, reads, views, read):
        plan = reads.plan
        self.ahead, self.count = iter(plan.read_ahead), 0
        self.in_flight: deque[dict[int, Any]] = deque()
        self.parts = (  # a part is read when it is asked for
            {i: reads.part(i, views[i], read.first, part) for i in plan.read_by_threads}
            for part in plan.stmatrix_tiles
        )

    def next(self):
        """The values of the next part, by the operand's place; reads of later parts begin."""
        for _ in range((count := next(self.ahead)) - self.count):
            self.in_flight.append(next(self.parts))
        self.count = count
        return self.in_flight.popleft()
