"""The plan of the SIMT GEMMs: fp32 without tensor cores.

    global ─ copies ▶ shared memory ─ rows of A and B ▶ registers ─ FMA ▶ accumulator ▶ global

`rungs` makes the plans of the ladder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from cutedsl_gemm.kernels.epilogue.expression import PLAIN, Epilogue
from cutedsl_gemm.kernels.plan.arguments import epilogue_problems
from cutedsl_gemm.kernels.plan.block_plan import BlockPlan
from cutedsl_gemm.kernels.plan.checks import (
    extents_problem,
    field_problem,
    majors_problem,
    refuse,
    shape_problem,
    smem_problem,
    threads_problem,
)
from cutedsl_gemm.kernels.plan.epilogue import (
    explain_lines,
    one_product_problems,
    partial_proofs,
)
from cutedsl_gemm.kernels.plan.memory_report import MemoryReport
from cutedsl_gemm.kernels.plan.raster import row_by_row
from cutedsl_gemm.kernels.plan.smem import packed_bytes
from cutedsl_gemm.kernels.plan.tv_layout import TVLayout, partition_problems
from layouts import Bijective, Injective, Layout, Proof, cosize, make_layout, prove
from layouts.hardware.descriptor import Major

BITS = 32  # of an element: float32
SMEM_BYTES = 49_152  # of a block of any device (CUDA C++ Programming Guide)
ALIGNMENT = 16  # bytes, of each buffer


@dataclass(frozen=True)
class Operand:
    """How a tile (rows, BK) of A or B gets into shared memory: the copy, and the buffer."""

    copy: TVLayout
    smem: Layout  # (rows, BK) → element


@dataclass(frozen=True)
class SimtPlan(BlockPlan):
    """C (M, N) = A (M, K) · B (K, N) in fp32, one tile per block.

    The tile of B is (BN, BK). Without operands, threads read A and B from global memory.
    """

    name: str
    tile: tuple[int, int, int]  # (BM, BN, BK)
    a_major: Major
    b_major: Major
    c: TVLayout  # of C (BM, BN): the lines are its rows
    a: Operand | None = None
    b: Operand | None = None
    dtype: str = "float32"
    epilogue: Epilogue = PLAIN

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.c.threads

    @property
    def thread_tile(self) -> tuple[int, int]:
        """(rows, columns) of C that a thread computes."""
        return self.c.lines, self.c.width * self.c.vectors

    @property
    def operands(self) -> dict[str, Operand]:
        """A and B by name, if they go through shared memory."""
        operands = {"A": self.a, "B": self.b}
        return {name: operand for name, operand in operands.items() if operand is not None}

    @property
    def smem_copies(self) -> dict[str, TVLayout]:
        """How the threads copy A and B into shared memory."""
        return {name: operand.copy for name, operand in self.operands.items()}

    @property
    def global_copies(self) -> dict[str, TVLayout]:
        """How the threads access a tile of A, B and C in global memory."""
        rows, columns, k = self.c.rows, self.c.columns, self.c.zeros
        direct = {"A": TVLayout(rows, k), "B": TVLayout(columns, k)}
        return {**direct, **self.smem_copies, "C": self.c}

    def tile_coord(self, block: Any, tiles_m: Any, tiles_n: Any) -> tuple[Any, Any]:
        """The coordinate (m, n) of the tile of C that a block computes."""
        return row_by_row(block, tiles_m, tiles_n)

    @property
    def smem_bytes(self) -> int:
        """Bytes of shared memory that a block takes."""
        buffers = (cosize(operand.smem) * BITS // 8 for operand in self.operands.values())
        return packed_bytes(buffers, ALIGNMENT)

    def fragment(self, name: str) -> Layout:
        """(thread, value) → row of operand A, or B, that the thread multiplies by."""
        layout = self.c.rows if name == "A" else self.c.columns
        mode = 0 if name == "A" else 1
        return make_layout(layout[0], layout[1][mode])

    @property
    def partitions(self) -> dict[str, Layout]:
        """(thread, value) → row + rows * column, of each tile that is divided among the threads."""
        rows = {"A": self.tile[0], "B": self.tile[1]}
        copies = self.smem_copies.items()
        return {**{name: copy.offsets(1, rows[name]) for name, copy in copies}, "C": self.outputs}

    @property
    def instruction_k(self) -> int:
        """An FMA multiplies at one k."""
        return 1

    def proofs(self) -> tuple[Proof, ...]:
        """Every element has one thread, and one place in shared memory."""
        return (
            *(prove(Bijective(partition)) for partition in self.partitions.values()),
            *(prove(Injective(operand.smem)) for operand in self.operands.values()),
            *partial_proofs(self.epilogue, self.c, self.tile[:2]),
        )

    def explain(self) -> str:
        """The plan as text: what moves where, by which layout."""
        down, along = self.thread_tile
        lines = [
            ("kernel", f"{self.name}, {self.dtype}, tile {'×'.join(map(str, self.tile))}"),
            ("block", f"{self.threads} threads, {down}×{along} outputs each"),
            ("C rows", f"{self.c.rows}   (thread, value) → m"),
            ("C columns", f"{self.c.columns}   (thread, value) → n"),
        ]
        for name, operand in self.operands.items():
            lines += [
                (f"{name} rows", f"{operand.copy.rows}   (thread, value) → row"),
                (f"{name} columns", f"{operand.copy.columns}   (thread, value) → k"),
                (f"{name} in smem", f"{operand.smem}   (row, k) → element"),
            ]
        lines += explain_lines(self.epilogue, self.c, self.tile[:2])
        return "\n".join(f"{name:<10} {text}" for name, text in lines)

    def memory_report(self) -> MemoryReport:
        """What the accesses of the first warp cost."""
        from cutedsl_gemm.kernels.simt.memory_report import memory_report

        return memory_report(self)

    def device_code(self) -> Any:
        """`Staged` if A and B go through shared memory, else `Direct`."""
        if self.a is None:
            from cutedsl_gemm.kernels.simt.direct import Direct

            return Direct(self)
        from cutedsl_gemm.kernels.simt.staged import Staged

        return Staged(self)

    def executor(self) -> Callable[..., None]:
        """The family's executor."""
        from cutedsl_gemm.kernels.simt.execute import gemm

        return gemm

    def check(self) -> SimtPlan:
        """The plan itself; PlanError with its first problem if the hardware cannot run it."""
        refuse(f"{self.name}, tile {self.tile}", self.problems())
        return self

    def problems(self) -> Iterator[str]:
        """What the hardware cannot do, a message each."""
        yield from epilogue_problems(self)
        yield from field_problem("dtype", self.dtype, "float32", "since threads add in fp32")
        yield from majors_problem(self.a_major, self.b_major)
        yield from extents_problem("tile", self.tile, 3)
        yield from self._output_problems()
        if (self.a is None) != (self.b is None):
            yield (
                f"A is {self.a} and B is {self.b}; both must go through shared memory, or neither"
            )
        rows = {"A": self.tile[0], "B": self.tile[1]}
        for name, operand in self.operands.items():
            shape = rows[name], self.tile[2]
            yield from partition_problems(name, operand.copy, shape, self.threads)
            yield from shape_problem(name, operand.smem, shape)
            if not prove(Injective(operand.smem)):
                yield f"{name} in shared memory is {operand.smem}, with two elements in one place"
        yield from smem_problem(self.smem_bytes, SMEM_BYTES)
        yield from one_product_problems(self.epilogue)

    def _output_problems(self) -> Iterator[str]:
        yield from threads_problem(self.threads)
        yield from partition_problems("C", self.c, self.tile[:2], self.threads)
        if cosize(self.c.rows[1][1]) > 1 or cosize(self.c.columns[1][0]) > 1:
            yield (
                f"c is {self.c}; its lines must be rows and its vectors columns, since a thread "
                "multiplies rows of A by columns of B"
            )
        if self.a is None and self.thread_tile != (1, 1):
            yield (
                f"a thread has {self.thread_tile} outputs; without shared memory it must have one"
            )
