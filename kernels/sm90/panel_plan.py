"""PanelPlan: C is stored through shared memory, one panel at a time: stmatrix, then TMA or threads.

TMA stores rows of whole multiples of 16 bytes. Any other C is stored by the consumer's threads, out
of the same panels: `lines` says which words and elements each stores.

16-bit matrices that the epilogue reads, such as addmm's C, come the other way (`staged_operands`):
TMA loads them into the panels, and ldmatrix gives each thread what it will overwrite by stmatrix.

`stmatrix_rows` is the row address of each lane. `panel_store` is the bank report of all stores into
a panel; its proof is that of ConflictFree (layouts/hardware/conflict_free.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate, product
from typing import Any

from cutedsl_gemm.kernels.epilogue.expression import EpilogueOperand, Result
from cutedsl_gemm.kernels.plan.checks import BITS, PER_VECTOR, count_problem, shape_problem
from cutedsl_gemm.kernels.sm90.panel_lines import PanelLines, panel_lines
from cutedsl_gemm.kernels.sm90.panels import (
    fragment,
    loadable_operands,
    panel_layout,
    panel_widths,
    staging_problems,
    stmatrix_tv,
)
from cutedsl_gemm.kernels.sm90.plan import Sm90Plan
from cutedsl_gemm.kernels.sm90.resources import (
    ADDRESS_REGISTERS,
    PART_REGISTERS,
)
from layouts import (
    BankReport,
    Bijective,
    ComposedLayout,
    Layout,
    Proof,
    banks,
    composition,
    cosize,
    ldmatrix,
    make_layout,
    prove,
    size,
    stmatrix,
)
from layouts.hardware.atoms import WGMMA_M, MatrixAtom
from layouts.hardware.facts import WARP, WARPGROUP
from layouts.hardware.lane_addresses import row_addresses


@dataclass(frozen=True)
class PanelPlan(Sm90Plan):
    """A GEMM that stages C in shared memory, in panels of P columns.

    A panel is contiguous along the same mode as C. Along n, P is 64, 32 or 16, and a panel has the
    128-, 64- or 32-byte swizzle; if BN is an odd multiple of 8, P is one, too, and a panel has no
    swizzle. Along m, if operands are swapped, P is a multiple of 8 up to 64, and a panel has the
    128-byte swizzle. P divides BN. Four warps store S columns of 64 rows at a time: 16 by
    stmatrix.x4, or 8 by stmatrix.x2.
    """

    # (S/2, R/64, P/S, panels) = (stmatrix, m64, S columns, panel) → accumulator value; if there are
    # two accumulators, a fifth mode says of which
    fragment: Layout
    stmatrix_tv: Layout  # (thread, value) → m + 64 * n of the (64, S) tile of four warps' stmatrix
    staging: ComposedLayout  # (panel_rows, P) → element offset: a panel of C in shared memory
    c_stages: int  # buffers of a consumer for its panels

    @property
    def contiguous(self) -> int:
        """The contiguous mode of C and of its panels: 1, or 0 if operands are swapped."""
        return 0 if self.swapped else 1

    @property
    def stmatrix(self) -> MatrixAtom:
        """The instruction; it transposes if eight contiguous elements run along m.

        A thread of wgmma holds neighbours along n.
        """
        return stmatrix(self.stmatrix_columns // 4, transposed=self.contiguous == 0)

    @property
    def stmatrix_columns(self) -> int:
        """S, the columns of the tile of four warps' stmatrix."""
        return size(self.stmatrix_tv) // WGMMA_M

    @property
    def panel_columns(self) -> int:
        """P, the columns of a panel."""
        return size(self.staging[1])

    @property
    def panel_widths(self) -> tuple[int, ...]:
        """What P may be."""
        return panel_widths(self.consumer_tile[1], self.swapped)

    @property
    def panels(self) -> int:
        """Panels in a consumer's part of a tile of C."""
        return self.consumer_tile[1] // self.panel_columns

    @property
    def panel_rows(self) -> int:
        """Rows of a panel: those of a consumer's part of a tile of C, R if A is one matrix."""
        return self.consumer_tile[0]

    @property
    def staged(self) -> tuple[int, ...]:
        """The results that panels stage: whole, of 16 bits. Threads store any other at once."""
        return tuple(i for i, each in enumerate(self.epilogue.results) if each.is_16_bit_matrix)

    @property
    def direct(self) -> tuple[int, ...]:
        """The whole results in fp32, which threads store from their registers."""
        results = enumerate(self.epilogue.results)
        return tuple(i for i, each in results if each.reduction is None and each.dtype == "float32")

    @property
    def reduced(self) -> tuple[int, ...]:
        """The results that are reduced over the rows or the columns of C."""
        results = enumerate(self.epilogue.results)
        return tuple(i for i, each in results if each.reduction is not None)

    @property
    def stores_from_registers(self) -> bool:
        """Whether results leave straight from registers: those in fp32, and reductions."""
        return bool(self.direct or self.reduced)

    @property
    def store_width(self) -> int:
        """fp32 elements of a whole result that a thread stores at a time: two neighbours, or one.

        A thread of wgmma holds neighbours along n.
        """
        return 2 if self.contiguous == 1 and self.c_alignment == PER_VECTOR else 1

    def reduction_parts(self, result: Result, m: int, n: int) -> int:
        """Parts in which the kernel stores a reduction of an (M, N) result, in whole clusters.

        A consumer's part of a tile has one for its rows; for its columns, one for each warp.

        >>> from cutedsl_gemm.kernels.epilogue.expression import Result
        >>> from cutedsl_gemm.kernels.sm90.rungs import pingpong
        >>> [pingpong().reduction_parts(Result(0, None, "sum", o), 500, 1000) for o in ("N", "M")]
        [8, 16]
        """
        planned = result.transposed if self.swapped else result
        across = planned.over == "N"
        extent, step = self.exchanged((m, n))[across], self.cluster_tile[across]
        tiles = -(-extent // step) * self.cluster[across]
        parts = tiles * self.atom_layout[across]
        return parts if across else parts * (WARPGROUP // WARP)

    @property
    def loadable_operands(self) -> tuple[int, ...]:
        """The operands that TMA can load into panels (`loadable_operands`)."""
        return loadable_operands(self.planned_epilogue, self.c_alignment, self.contiguous)

    @property
    def staged_operands(self) -> tuple[int, ...]:
        """The operands that TMA loads into panels: all that it can, or none. Threads load others.

        It loads none if the buffers that a panel then takes do not divide `c_stages`.

        >>> from cutedsl_gemm.kernels.epilogue.expression import Epilogue, EpilogueOperand
        >>> from cutedsl_gemm.kernels.sm90.rungs import pingpong
        >>> c = EpilogueOperand("c", ("M", "N"), "bfloat16", alignment=8)
        >>> plan = pingpong(epilogue=Epilogue(operands=(EpilogueOperand("bias", ("N",)), c)))
        >>> plan.staged_operands
        (1,)
        """
        found = self.loadable_operands
        return () if found and self.c_stages % self.buffers_per_panel_for(found) else found

    @property
    def matrix_operands(self) -> tuple[int, ...]:
        """The operands that are matrices: with them, the epilogue is evaluated part by part."""
        operands = enumerate(self.planned_epilogue.operands)
        return tuple(i for i, operand in operands if operand.is_matrix)

    @property
    def read_by_threads(self) -> tuple[int, ...]:
        """The matrices that threads read from global memory: all but `staged_operands`."""
        return tuple(i for i in self.matrix_operands if i not in self.staged_operands)

    @property
    def stmatrix_tiles(self) -> list[tuple[int, int, int]]:
        """(m64, S columns, panel) of what each stmatrix stores, in the order of evaluation.

        A thread holds S/2 values of each accumulator of such a part of a tile.
        """
        _, m64s, columns, panels = self.fragment.shape[:4]
        return [(i, j, panel) for panel, i, j in product(*map(range, (panels, m64s, columns)))]

    @property
    def read_ahead(self) -> list[int]:
        """Parts whose matrices a thread has begun to read when it evaluates each part of a tile.

        It reads as far ahead as registers are free beside the accumulator, which shrinks with each
        part, and beside the results of the panel. Reading further would spill.

        >>> from cutedsl_gemm.kernels.epilogue.expression import Epilogue, EpilogueOperand
        >>> from cutedsl_gemm.kernels.sm90.rungs import pingpong
        >>> c = EpilogueOperand("c", ("M", "N"), "bfloat16", alignment=4)
        >>> plan = pingpong((128, 192, 64), c_stages=1, epilogue=Epilogue(operands=(c,)))
        >>> len(plan.stmatrix_tiles), plan.read_ahead[:12]
        (24, [1, 2, 3, 4, 5, 6, 7, 8, 18, 20, 22, 24])
        """
        held, (m64s, columns, _) = size(self.fragment[0]), self.fragment.shape[1:4]
        operands = (self.planned_epilogue.operands[i] for i in self.read_by_threads)
        needed = sum(held // (1 if e.dtype == "float32" else self.read_width(e)) for e in operands)
        free = self.consumer_registers - self.registers - ADDRESS_REGISTERS - PART_REGISTERS
        made = held * len(self.epilogue.results) // 2  # of a part: a register holds two results
        ahead, count = [], len(self.stmatrix_tiles)
        for i in range(count):
            room = free + i * held * self.epilogue.accumulators - i % (m64s * columns) * made
            ahead.append(min(count, i + max(1, room // max(1, needed))))
        return [*accumulate(ahead, max)]

    def added_panels(self, panel: int) -> range:
        """Panels to which a consumer adds what other GPUs have sent, before it stores this one.

        It loads the elements for as many as it has registers beside the accumulator, two in each.
        Panels to which it has already added are not among them.

        >>> from cutedsl_gemm.kernels.sm90.rungs import pingpong
        >>> [[*pingpong((128, 160, 64)).added_panels(panel)] for panel in range(5)]
        [[0, 1], [], [2, 3], [], [4]]
        """
        free = self.consumer_registers - self.registers - ADDRESS_REGISTERS
        at_once = max(1, 2 * free * self.panels // self.registers)
        return range(panel, panel if panel % at_once else min(panel + at_once, self.panels))

    @property
    def buffers_per_panel(self) -> int:
        """Buffers that a panel takes."""
        return self.buffers_per_panel_for(self.staged_operands)

    def buffers_per_panel_for(self, operands: tuple[int, ...]) -> int:
        """Buffers that a panel takes if TMA loads these operands into it.

        Slot i holds the panel of operand i, and then that of staged result i.
        """
        return max(len(self.staged), len(operands))

    @property
    def panel_stages(self) -> int:
        """Panels of a tile that a consumer's buffers hold, if TMA loads operands into them."""
        return self.c_stages // self.buffers_per_panel

    def buffer(self, panel: int, slot: int) -> int:
        """The buffer of a panel's slot, among those of a consumer, which slots take in turn.

        >>> from cutedsl_gemm.kernels.sm90.rungs import pingpong
        >>> plan = pingpong((128, 112, 64))  # seven panels, four buffers
        >>> [plan.buffer(panel, 0) for panel in range(plan.panels)]
        [0, 1, 2, 3, 0, 1, 2]
        """
        return (panel * self.buffers_per_panel + slot) % self.c_stages

    def staged_panel(self, consumer: Any, panel: int, slot: int) -> Any:
        """The buffer of a panel's slot, among the `staged_panels` of all consumers."""
        return consumer * self.c_stages + self.buffer(panel, slot)

    def store_index(self, panel: int, slot: int) -> int:
        """The number of a panel of `staged[slot]`, among those that are stored of a tile."""
        return panel * len(self.staged) + slot

    @property
    def loaded_panels(self) -> int:
        return self.consumers * self.panels if self.staged_operands else 0

    @property
    def stores(self) -> int:
        """Panels that a consumer stores of a tile, of all results."""
        return self.panels * len(self.staged)

    @property
    def panel_bytes(self) -> int:
        """Bytes of one panel of C in shared memory."""
        return cosize(self.staging) * BITS // 8

    @property
    def staged_panels(self) -> int:
        """Panels of C in shared memory, of all consumers."""
        return self.consumers * self.c_stages

    def read_width(self, operand: EpilogueOperand) -> int:
        """Elements of an operand of the plan's C that a thread loads at a time: 2 neighbours, or 1.

        A thread of wgmma holds neighbours along n. Lanes exchange the elements of a vector along n
        by shuffles of 32 bits: two elements of 16 bits, or one.
        """
        if operand.modes == ("N",):
            neighbours = operand.dtype != "float32"
        else:
            neighbours = operand.is_matrix and operand.row_major
        return 2 if neighbours and operand.alignment % 2 == 0 else 1

    def pending_stores(self, store: int) -> int:
        """Stores of a consumer that may still read shared memory when it writes the next panel.

        The next panel is number `store` of its tile. Counted are the stores after the last one from
        its buffer. Panels take the `c_stages` buffers in turn, and each tile begins with the
        first.

        >>> from cutedsl_gemm.kernels.sm90.rungs import pingpong
        >>> plan = pingpong((128, 80, 64))  # buffers 0, 1, 2, 3, 0; 0, 1, 2, 3, 0; …
        >>> [plan.pending_stores(store) for store in range(plan.stores)]
        [0, 4, 4, 4, 3]
        """
        if store >= self.c_stages:
            return self.c_stages - 1
        return (self.stores - 1 - store) % self.c_stages + store

    @property
    def epilogue_smem_bytes(self) -> int:
        return self.staged_panels * self.panel_bytes

    @property
    def epilogue_smem(self) -> str:
        return f"{self.staged_panels} panels × {self.panel_bytes:,}"

    @property
    def buffers(self) -> dict[str, ComposedLayout]:
        return {**super().buffers, "C panel": self.staging}

    @property
    def stmatrix_rows(self) -> Layout:
        """The row address of each lane: (lane, warp, m64, S columns) → m + R * n in a panel.

        A lane gives stmatrix the address of the first of eight contiguous elements. Which lane
        addresses which row follows from `stmatrix_tv` (layouts/hardware/lane_addresses.py).
        """
        columns = self.stmatrix_columns
        values = composition(Layout((WGMMA_M, columns), (1, self.panel_rows)), self.stmatrix_tv)
        (lane, warp, _), _ = row_addresses(self.stmatrix, values)
        m64 = Layout(self.panel_rows // WGMMA_M, WGMMA_M)
        return make_layout(
            lane, warp, m64, Layout(self.panel_columns // columns, columns * self.panel_rows)
        )

    @property
    def coordinates(self) -> tuple[Layout, Layout]:
        """(thread, (S/2, R/64, P/S, panels)) → row, and → column, of a consumer's part of a tile.

        They are those of the first accumulator. Operands of the epilogue are read there, and
        whatever is not staged is stored there.

        >>> from cutedsl_gemm.kernels.sm90.rungs import pingpong
        >>> for layout in pingpong((64, 64, 64)).coordinates:
        ...     print(layout)
        ((4,8,4),((2,2,2),1,4,1)):((0,1,16),((0,8,0),0,0,0))
        ((4,8,4),((2,2,2),1,4,1)):((2,0,0),((1,0,8),1,16,1))
        """
        threads, values = self.accumulator
        values = composition(values, make_layout(*tuple(self.fragment)[:4]))
        held = make_layout(threads, values)  # → m + R * n
        shape = self.rows, self.columns
        rows, columns = (composition(Layout(shape, stride), held) for stride in ((1, 0), (0, 1)))
        return rows, columns

    @property
    def panel_store(self) -> BankReport:
        """The bank report of one consumer's stmatrix stores into a whole panel of C."""
        return banks(self.staging, self.stmatrix, lanes=self.stmatrix_rows)

    @property
    def ldmatrix(self) -> MatrixAtom:
        """The instruction that reads a panel of an operand: `stmatrix` in the other direction.

        A thread receives the elements that it will overwrite.
        """
        return ldmatrix(self.stmatrix.matrices, self.stmatrix.transposed)

    @property
    def operand_read(self) -> BankReport:
        """The bank report of one consumer's ldmatrix of a whole panel of an operand."""
        return banks(self.staging, self.ldmatrix, lanes=self.stmatrix_rows)

    @property
    def stored_by_tma(self) -> bool:
        """Whether TMA stores C; else the consumer's threads do."""
        return self.c_alignment == PER_VECTOR

    @property
    def lines(self) -> PanelLines:
        """What each thread of a consumer stores of a panel, if TMA does not.

        >>> from cutedsl_gemm.kernels.sm90.rungs import pingpong
        >>> words = pingpong(c_alignment=1, swapped=True).lines.words
        >>> print(words.rows, words.columns)
        ((16,8),(8,(8,1))):((8,0),(0,(1,0))) ((16,8),(8,(8,1))):((0,1),(8,(0,0)))
        """
        return panel_lines(self.panel_rows, self.panel_columns, self.contiguous)

    @property
    def panel_load(self) -> BankReport:
        """The bank report of one consumer's loads of each word of a panel, if threads store C.

        A stored word spans two loaded ones; the loads of the second are the next thread's.
        """
        threads, (lines, (_, vectors)) = self.lines.words.offsets(1, self.panel_rows)
        first = make_layout(threads, lines, vectors)  # → the first element of each word
        width = self.lines.width
        load = f"ld.shared.v{width * BITS // 32}.b32" if width > 1 else f"ld.shared.b{BITS}"
        return banks(self.staging, load, lanes=first)

    def proofs(self) -> tuple[Proof, ...]:
        held = prove(Bijective(self.fragment))  # a register has one product of one output
        proofs = *super().proofs(), held, self.panel_store.proof()
        if self.staged_operands:
            return *proofs, self.operand_read.proof()
        if self.stored_by_tma:
            return proofs
        stored_once = prove(Bijective(self.lines.words.offsets(1, self.panel_rows)))
        return *proofs, stored_once, self.panel_load.proof()

    def device_code(self) -> Any:
        """The kernel of the plan's schedule."""
        if self.schedule == "single":
            from cutedsl_gemm.kernels.sm90.single import Single

            return Single(self)
        if self.schedule == "pingpong":
            from cutedsl_gemm.kernels.sm90.pingpong import Pingpong

            return Pingpong(self)
        from cutedsl_gemm.kernels.sm90.cooperative import Cooperative

        return Cooperative(self)

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        columns, widths = self.panel_columns, self.panel_widths
        if columns not in widths:
            yield f"C panel: it has {columns} columns; it must have one of {widths}"
        yield from shape_problem("C panel", self.staging, (self.panel_rows, columns))
        yield from staging_problems(self.staging, self.contiguous)
        yield from count_problem("c_stages", self.c_stages, 1)
        if self.c_stages > (most := self.panels * max(1, self.buffers_per_panel)):
            what = "the buffers of a tile's panels"
            yield f"c_stages is {self.c_stages}; it must be at most {most}, {what}"

    def required(self) -> Iterator[tuple[str, object, str]]:
        yield from super().required()
        why = "as wgmma leaves its registers, and stmatrix takes them (PTX ISA, Matrix Fragments)"
        columns, matrices = self.panel_columns, (self.a.matrices, self.b.matrices)
        if columns in self.panel_widths:  # else `problems` names the width
            yield "fragment", fragment(self.rows, self.columns, columns, *matrices), why
            yield "stmatrix_tv", stmatrix_tv(columns), why
        yield "splits", 1, "since a block stores final sums; to split K, take `split`"


def with_panels(plan: PanelPlan, columns: int, c_stages: int) -> PanelPlan:
    """The plan with panels of other columns, `c_stages` buffers, and as many stages as fit."""
    plan = replace(
        plan,
        fragment=fragment(plan.rows, plan.columns, columns, plan.a.matrices, plan.b.matrices),
        stmatrix_tv=stmatrix_tv(columns),
        staging=panel_layout(plan.panel_rows, columns, plan.swapped),
        c_stages=c_stages,
    )
    return replace(plan, stages=plan.stages_that_fit)
