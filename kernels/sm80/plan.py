"""The plan of the sm80 GEMMs: mma.m16n8 by the warps of a block.

    global ─ copies ▶ shared memory ─ ldmatrix ▶ fragments ─ mma ▶ accumulator ─ copies ▶ global

`rungs` makes the plans of the ladder. `checks` says what the instructions cannot do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from cutedsl_gemm.kernels.epilogue.expression import PLAIN, Epilogue
from cutedsl_gemm.kernels.plan.arguments import epilogue_problems
from cutedsl_gemm.kernels.plan.block_plan import BlockPlan
from cutedsl_gemm.kernels.plan.checks import (
    BITS,
    count_problem,
    extents_problem,
    majors_problem,
    raster_problem,
    refuse,
    smem_problem,
    threads_problem,
)
from cutedsl_gemm.kernels.plan.epilogue import (
    explain_lines,
    one_product_problems,
    partial_proofs,
)
from cutedsl_gemm.kernels.plan.memory_report import MemoryReport
from cutedsl_gemm.kernels.plan.raster import Raster
from cutedsl_gemm.kernels.plan.smem import packed_bytes, staged_layout
from cutedsl_gemm.kernels.plan.tv_layout import TVLayout, partition_problems
from cutedsl_gemm.kernels.sm80 import checks
from cutedsl_gemm.kernels.sm80.operand import ALIGNMENT, Operand, operand_problems
from layouts import Bijective, ComposedLayout, Injective, Layout, Proof, cosize, prove
from layouts.hardware.descriptor import Major

SMEM_BYTES = 166_912  # of a block, compute capability 8.0 (CUDA C++ Programming Guide)


@dataclass(frozen=True)
class Sm80Plan(BlockPlan):
    """C (M, N) = A (M, K) · B (K, N), summed in fp32 by mma of the warps of a block.

    The tile of B is (BN, BK).
    """

    DTYPES: ClassVar[tuple[str, ...]] = ("bfloat16", "float16")

    name: str
    dtype: str
    a_major: Major
    b_major: Major
    tile: tuple[int, int, int]  # (BM, BN, BK)
    warps: tuple[int, int]  # along M, along N
    step: tuple[int, int, int]  # (M, N, K) that all warps multiply at a time
    a: Operand
    b: Operand
    accumulator: TVLayout  # of (BM, lines of B): the registers as mma leaves them
    c: TVLayout  # of C (BM, BN): the same registers
    fragment: Layout  # value of the two → accumulator register
    stages: int  # k-tiles in shared memory; with one, no k-tile is loaded ahead
    prefetch_fragments: bool  # whether a step's fragments are loaded during the step before
    raster: Raster
    epilogue: Epilogue = PLAIN

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return 32 * self.warps[0] * self.warps[1]

    @property
    def warp_layout(self) -> Layout:
        """(along M, along N, along K) → warp."""
        return Layout((*self.warps, 1))

    @property
    def smem_majors(self) -> tuple[Major, Major]:
        """The contiguous modes of A and of B in shared memory."""
        return self.a_major, self.b_major

    @property
    def steps(self) -> int:
        """Steps of a k-tile."""
        return self.tile[2] // self.step[2]

    @property
    def matrices_per_ldmatrix(self) -> tuple[int, int]:
        """8×8 matrices of A, and of B, that one ldmatrix loads."""
        m, n, k = self.step
        return m * k // (64 * self.warps[0]), n * k // (64 * self.warps[1])

    @property
    def instructions(self) -> str:
        """The instructions of a step, in words."""
        a, b = self.matrices_per_ldmatrix
        return f"ldmatrix.x{a} for A, .x{b} for B, mma.m16n8k{self.step[2]}"

    @property
    def staged_smem(self) -> tuple[ComposedLayout, ComposedLayout]:
        """(lines, BK, stages) of A and of B in shared memory, as mma reads them."""
        a, b = self.a.mma_smem, self.b.mma_smem
        return staged_layout(a, self.stages), staged_layout(b, self.stages)

    def tile_coord(
        self, block: Any, tiles_m: Any, tiles_n: Any, minimum: Any = min
    ) -> tuple[Any, Any]:
        """The coordinate (m, n) of the tile of C that a block computes."""
        return self.raster(block, tiles_m, tiles_n, minimum)

    @property
    def smem_bytes(self) -> int:
        """Bytes of shared memory that a block takes."""
        return packed_bytes((cosize(x) * BITS // 8 for x in self.staged_smem), ALIGNMENT)

    @property
    def global_copies(self) -> dict[str, TVLayout]:
        """How the threads access a tile of A, B and C in global memory."""
        return {"A": self.a.copy, "B": self.b.copy, "C": self.c}

    @property
    def partitions(self) -> dict[str, Layout]:
        """(thread, value) → row + rows * column, of each tile."""
        bm, bn, _ = self.tile
        return {
            "A": self.a.copy.offsets(1, bm),
            "B": self.b.copy.offsets(1, bn),
            "the accumulator": self.accumulator.offsets(1, bm),
            "C": self.outputs,
        }

    @property
    def instruction_k(self) -> int:
        """The depth of one mma."""
        return self.step[2]

    def proofs(self) -> tuple[Proof, ...]:
        """Every element has one thread, one place in shared memory, one register."""
        buffers = (layout for x in (self.a, self.b) for layout in (x.smem, x.mma_smem))
        return (
            *(prove(Bijective(partition)) for partition in self.partitions.values()),
            *(prove(Injective(buffer)) for buffer in buffers),
            prove(Bijective(self.fragment)),
            *partial_proofs(self.epilogue, self.c, self.tile[:2]),
        )

    def explain(self) -> str:
        """The plan as text: what moves where, by which layout."""
        down, along = self.warps
        prefetch = ", fragments one step ahead" if self.prefetch_fragments else ""
        lines = (
            ("kernel", f"{self.name}, {self.dtype}, fp32 accumulation, tile {self.tile}"),
            ("block", f"{self.threads} threads, {down}×{along} warps, {self.step} a step"),
            ("a step", self.instructions),
            ("copies", f"{2 * self.alignment} bytes, {2 * self.alignment}-byte aligned"),
            ("memory", f"{self.stages} stages, {self.smem_bytes:,} bytes{prefetch}"),
            ("A in smem", f"{self.a.smem}   (BM, BK), {self.a_major}-major"),
            ("B in smem", f"{self.b.smem}   (BN, BK), {self.b_major}-major"),
            ("C rows", f"{self.c.rows}   (thread, value) → m"),
            ("C columns", f"{self.c.columns}   (thread, value) → n"),
            ("raster", str(self.raster)),
            *explain_lines(self.epilogue, self.c, self.tile[:2]),
        )
        return "\n".join(f"{name:<10} {text}" for name, text in lines)

    def memory_report(self) -> MemoryReport | None:
        """What the accesses of the first warp cost."""
        from cutedsl_gemm.kernels.sm80.memory_report import memory_report

        return memory_report(self)

    def device_code(self) -> Any:
        """The kernel that loads as far ahead as the plan does."""
        if self.prefetch_fragments:
            from cutedsl_gemm.kernels.sm80.register_pipeline import RegisterPipeline

            return RegisterPipeline(self)
        if self.stages > 1:
            from cutedsl_gemm.kernels.sm80.multistage import Multistage

            return Multistage(self)
        from cutedsl_gemm.kernels.sm80.singlestage import Singlestage

        return Singlestage(self)

    def executor(self) -> Callable[..., None]:
        """The family's executor."""
        from cutedsl_gemm.kernels.sm80.execute import gemm

        return gemm

    def check(self) -> Sm80Plan:
        """The plan itself; PlanError with its first problem if the hardware cannot run it."""
        refuse(f"{self.name}, {self.dtype}", self.problems())
        return self

    def problems(self) -> Iterator[str]:
        """What the hardware cannot do, a message each."""
        yield from epilogue_problems(self)
        if self.dtype not in self.DTYPES:
            yield f"dtype is {self.dtype}; this tensor core takes {' or '.join(self.DTYPES)}"
        yield from self._number_problems()
        bm, bn, bk = self.tile
        for name, operand, rows, major, smem_major in (
            ("A", self.a, bm, self.a_major, self.smem_majors[0]),
            ("B", self.b, bn, self.b_major, self.smem_majors[1]),
        ):
            yield from operand_problems(name, operand, (rows, bk), self.threads, major, smem_major)
        for name, held in (("the accumulator", self.accumulator), ("C", self.c)):
            yield from partition_problems(name, held, (bm, bn), self.threads)
        yield from self.mma_problems()
        yield from smem_problem(self.smem_bytes, SMEM_BYTES)
        yield from one_product_problems(self.epilogue)

    def mma_problems(self) -> Iterator[str]:
        """What the instructions, and the kernels that issue them, cannot do."""
        yield from checks.step_problems(self)
        yield from checks.pipeline_problems(self)
        yield from checks.register_problems(self)
        yield from checks.swizzle_problems(self)

    def _number_problems(self) -> Iterator[str]:
        yield from majors_problem(self.a_major, self.b_major)
        yield from extents_problem("tile", self.tile, 3)
        yield from extents_problem("warps", self.warps, 2)
        yield from extents_problem("step", self.step, 3)
        yield from count_problem("stages", self.stages, 1)
        yield from raster_problem(self.raster)
        yield from threads_problem(self.threads)
