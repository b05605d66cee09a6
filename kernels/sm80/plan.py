"""The sm80 ladder: GEMMs on mma.m16n8, each a plan that changes one idea.

mma_k8 → mma → padded → swizzled → ldmatrix_x4 → multistage → raster → ahead → large → wide. Three
device files serve all ten: `mma` the first five, which bring a k-block and then multiply it,
`multistage` the two that bring k-blocks ahead, `ahead` the three that also read a step ahead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, get_args

from cutedsl_gemm.kernels.plan.checks import (
    BITS,
    UNIT,
    PlanError,
    choice_problem,
    count_problem,
    extents_problem,
    field_problem,
    packed_bytes,
    raster_problem,
    refuse,
    smem_problem,
    staged_layout,
)
from cutedsl_gemm.kernels.plan.kernel_plan import Tell
from cutedsl_gemm.kernels.plan.memory import MemoryReport
from cutedsl_gemm.kernels.plan.partition import TVLayout, load_layout, partition_problems
from cutedsl_gemm.kernels.plan.raster import Raster
from cutedsl_gemm.kernels.sm80.registers import (
    Tile,
    Warps,
    accumulator,
    fragment,
    lines,
    result,
)
from cutedsl_gemm.kernels.sm80.stage import (
    ALIGNMENT,
    ALIGNMENTS,
    Stage,
    stage_problems,
    swizzle_period,
    tile_smem,
)
from layouts import (
    Bijective,
    ComposedLayout,
    Injective,
    Layout,
    Proof,
    composition,
    cosize,
    prove,
    size,
)
from layouts.hardware.descriptor import Major

if TYPE_CHECKING:
    from torch import Tensor

TILE = (128, 128, 64)
WARPS = (2, 2)  # along M, along N
SMEM_BYTES = 166_912  # of a block, compute capability 8.0 (CUDA C++ Programming Guide)


@dataclass(frozen=True)
class Sm80Plan:
    """A GEMM of mma by the warps of a block: C (M, N) = A (M, K) · B (K, N), summed in fp32.

    The tile of B is (BN, BK).
    """

    DTYPES: ClassVar[tuple[str, ...]] = ("bfloat16", "float16")

    name: str
    dtype: str
    a_major: Major
    b_major: Major
    tile: tuple[int, int, int]  # (BM, BN, BK)
    warps: tuple[int, int]  # along M, along N
    step: tuple[int, int, int]  # what the warps multiply at a time
    a: Stage
    b: Stage
    accumulator: TVLayout  # of (BM, lines of B), as mma leaves it
    c: TVLayout  # of C (BM, BN): the same registers
    fragment: Layout  # value of the two → accumulator register
    stages: int  # k-blocks in shared memory; with one, nothing is loaded ahead
    ahead: bool  # whether a step's fragments are loaded while the step before is multiplied
    raster: Raster

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return 32 * self.warps[0] * self.warps[1]

    @property
    def order(self) -> Layout:
        """(along M, along N, along K) → warp."""
        return Layout((*self.warps, 1))

    @property
    def smem_majors(self) -> tuple[Major, Major]:
        """The contiguous modes of A and of B in shared memory."""
        return self.a_major, self.b_major

    @property
    def alignment(self) -> int:
        """Elements of which leading strides and addresses must be multiples."""
        return max(share.width for share in self.shares.values())

    @property
    def steps(self) -> int:
        """Steps of a k-block."""
        return self.tile[2] // self.step[2]

    @property
    def matrices(self) -> tuple[int, int]:
        """8×8 matrices of A, and of B, that one ldmatrix loads."""
        m, n, k = self.step
        return m * k // (64 * self.warps[0]), n * k // (64 * self.warps[1])

    @property
    def how(self) -> str:
        """The instructions of a step, in words."""
        a, b = self.matrices
        return f"ldmatrix.x{a} for A, .x{b} for B, mma.m16n8k{self.step[2]}"

    @property
    def rings(self) -> tuple[ComposedLayout, ComposedLayout]:
        """(lines, BK, stages) of A and of B in shared memory."""
        return staged_layout(self.a.lines, self.stages), staged_layout(self.b.lines, self.stages)

    @property
    def smem_bytes(self) -> int:
        """Bytes of shared memory that a block takes."""
        return packed_bytes((cosize(ring) * BITS // 8 for ring in self.rings), ALIGNMENT)

    @property
    def shares(self) -> dict[str, TVLayout]:
        """What each thread takes of a tile of A, B and C in global memory."""
        return {"A": self.a.share, "B": self.b.share, "C": self.c}

    @property
    def places(self) -> dict[str, Layout]:
        """(thread, value) → row + rows * column, of each tile."""
        bm, bn, _ = self.tile
        return {
            "A": self.a.share.offsets(1, bm),
            "B": self.b.share.offsets(1, bn),
            "the accumulator": self.accumulator.offsets(1, bm),
            "C": self.c.offsets(1, bm),
        }

    @property
    def outputs(self) -> Layout:
        """(thread, value) → m + BM * n: the outputs that each thread holds."""
        return self.places["C"]

    @property
    def instruction_k(self) -> int:
        """The depth of one mma."""
        return self.step[2]

    def workspace(self, m: int, n: int) -> int:
        """No plan of this family needs one."""
        return 0

    def proofs(self) -> tuple[Proof, ...]:
        """Every element has one thread, one place in shared memory, one register."""
        shared = (layout for stage in (self.a, self.b) for layout in (stage.smem, stage.lines))
        return (
            *(prove(Bijective(place)) for place in self.places.values()),
            *(prove(Injective(layout)) for layout in shared),
            prove(Bijective(self.fragment)),
        )

    def check(self) -> Sm80Plan:
        """The plan itself, or PlanError with the first thing that cannot be."""
        refuse(f"{self.name}, {self.dtype}", self.problems())
        return self

    def explain(self) -> str:
        """The plan as text: what moves where, by which layout."""
        down, along = self.warps
        ahead = ", fragments a step ahead" if self.ahead else ""
        lines = (
            ("kernel", f"{self.name}, {self.dtype}, fp32 accumulation, tile {self.tile}"),
            ("block", f"{self.threads} threads, {down}×{along} warps, {self.step} a step"),
            ("a step", self.how),
            ("copies", f"{2 * self.alignment} bytes wide, from multiples of them"),
            ("memory", f"{self.stages} stages, {self.smem_bytes:,} bytes{ahead}"),
            ("A in smem", f"{self.a.smem}   (BM, BK), {self.a_major}-major"),
            ("B in smem", f"{self.b.smem}   (BN, BK), {self.b_major}-major"),
            ("C rows", f"{self.c.rows}   (thread, value) → m"),
            ("C columns", f"{self.c.columns}   (thread, value) → n"),
            ("raster", str(self.raster)),
        )
        return "\n".join(f"{name:<10} {text}" for name, text in lines)

    def memory_report(self) -> MemoryReport | None:
        """What the accesses of the first warp cost."""
        from cutedsl_gemm.kernels.sm80.memory_report import memory_report

        return memory_report(self)

    def device_code(self) -> Any:
        """The device file that loads as far ahead as the plan does."""
        if self.ahead:
            from cutedsl_gemm.kernels.sm80.ahead import Ahead

            return Ahead(self)
        if self.stages > 1:
            from cutedsl_gemm.kernels.sm80.multistage import Multistage

            return Multistage(self)
        from cutedsl_gemm.kernels.sm80.mma import Mma

        return Mma(self)

    def execute(self, a: Tensor, b: Tensor, out: Tensor, tell: Tell | None = None) -> None:
        """Compute out = a · b on CPU tensors, K > 0, moving data through the plan's layouts."""
        from cutedsl_gemm.kernels.sm80.execute import gemm

        gemm(self, a, b, out, tell)

    def problems(self) -> Iterator[str]:
        """What cannot be, in sentences."""
        if self.dtype not in self.DTYPES:
            yield f"dtype is {self.dtype}; this tensor core takes {' or '.join(self.DTYPES)}"
        yield from self._number_problems()
        bm, bn, bk = self.tile
        for name, stage, rows, major, along in (
            ("A", self.a, bm, self.a_major, self.smem_majors[0]),
            ("B", self.b, bn, self.b_major, self.smem_majors[1]),
        ):
            yield from stage_problems(name, stage, (rows, bk), self.threads, major, along)
        for name, share in (("the accumulator", self.accumulator), ("C", self.c)):
            yield from partition_problems(name, share, (bm, bn), self.threads)
        yield from self.mma_problems()
        yield from smem_problem(self.smem_bytes, SMEM_BYTES)

    def mma_problems(self) -> Iterator[str]:
        """What the instruction, and the kernel that issues it, cannot do."""
        yield from _step_problems(self)
        yield from _ahead_problems(self)
        yield from _register_problems(self)
        yield from _swizzle_problems(self)

    def _number_problems(self) -> Iterator[str]:
        for name, major in (("a_major", self.a_major), ("b_major", self.b_major)):
            yield from choice_problem(name, major, get_args(Major))
        yield from extents_problem("tile", self.tile, 3)
        yield from extents_problem("warps", self.warps, 2)
        yield from extents_problem("step", self.step, 3)
        yield from count_problem("stages", self.stages, 1)
        yield from raster_problem(self.raster)
        if self.threads > 1024:
            yield f"warps are {self.warps}, {self.threads} threads; a block can have at most 1024"


def _plan(
    name: str,
    dtype: str,
    majors: tuple[Major, Major],
    alignment: int,
    *,
    tile: Tile = TILE,
    warps: Warps = WARPS,
    k: int = 16,
    across: int = 1,  # mma along N that a warp multiplies at a time
    padding: int = 0,
    bits: int = 0,
    stages: int = 1,
    group: int = 1,
    ahead: bool = False,
    run: int = 1,
) -> Sm80Plan:
    if alignment not in ALIGNMENTS:
        raise PlanError(
            f"sm80_{name}: alignment is {alignment!r}; it must be one of {ALIGNMENTS} elements, "
            "since cp.async moves 16, 8 or 4 bytes"
        )
    (bm, bn, bk), (down, along), (a_major, b_major) = tile, warps, majors
    threads = 32 * down * along
    a_smem, b_smem = (
        tile_smem(rows, bk, major, padding, bits) for rows, major in ((bm, a_major), (bn, b_major))
    )
    return Sm80Plan(
        f"sm80_{name}",
        dtype,
        a_major,
        b_major,
        tile,
        warps,
        (16 * down, 8 * across * along, k),
        Stage(load_layout(bm, bk, a_major, threads, alignment), a_smem, a_smem),
        Stage(
            load_layout(bn, bk, b_major, threads, alignment), _by_column(b_smem, warps, run), b_smem
        ),
        accumulator(tile, warps, run),
        result(tile, warps, run),
        fragment(tile, warps, run),
        stages,
        ahead,
        Raster(group),
    ).check()


def _by_column(smem: ComposedLayout, warps: Warps, run: int) -> ComposedLayout:
    """A tile of B (lines, BK) as (BN, BK)."""
    return smem if run == 1 else composition(smem, (lines(size(smem[0]), warps, run), None))


def _step_problems(plan: Sm80Plan) -> Iterator[str]:
    """What ldmatrix and mma cannot do in a step, nor steps in a tile."""
    (m, n, k), (down, along) = plan.step, plan.warps
    if m != 16 * down or n % (8 * along) or k not in (8, 16) or plan.matrices[1] not in (1, 2, 4):
        yield (
            f"step is {plan.step}; it must be ({16 * down}, n, k): mma.m16n8 is k = 8 or 16 deep, "
            f"and n is as many times {8 * along} as give each warp 1, 2 or 4 matrices of B by one "
            "ldmatrix"
        )
    if any(extent % step for extent, step in zip(plan.tile, plan.step, strict=True)):
        yield f"tile is {plan.tile}; it must be a multiple of the step, {plan.step}"


def _ahead_problems(plan: Sm80Plan) -> Iterator[str]:
    """What cannot be loaded ahead."""
    if plan.stages == 1:
        why = "since with one stage nothing is loaded ahead"
        yield from field_problem("ahead", plan.ahead, False, why)
        why = "since with one stage the tiles are walked along N"
        yield from field_problem("raster", plan.raster, Raster(1), why)
    if plan.ahead and plan.steps < 2:
        yield f"a k-block has {plan.steps} step; it must have 2 for one to be loaded ahead"


def _register_problems(plan: Sm80Plan) -> Iterator[str]:
    """What mma leaves in the registers, and which line of B is which column of C."""
    tile, warps, run = plan.tile, plan.warps, max(1, plan.accumulator.width // 2)
    if tile[1] % (8 * warps[1] * run):
        yield f"BN is {tile[1]}; it must be a multiple of {run} mma of 8 columns a warp"
        return
    why = "as mma.m16n8 leaves its registers (PTX ISA, Matrix Fragments for mma.m16n8k16)"
    held = accumulator(tile, warps, run)
    yield from field_problem("accumulator", plan.accumulator, held, why)
    yield from field_problem("c", plan.c, result(tile, warps, run), why)
    yield from field_problem("fragment", plan.fragment, fragment(tile, warps, run), why)
    why = "since the accumulator says which line of it is which row"
    yield from field_problem("A in shared memory", plan.a.smem, plan.a.lines, why)
    wanted = _by_column(plan.b.lines, warps, run)
    yield from field_problem("B in shared memory", plan.b.smem, wanted, why)
    if plan.stages == 1:
        why = "since with one stage what is brought is put where mma takes it"
        yield from field_problem("B in shared memory", plan.b.smem, plan.b.lines, why)


def _swizzle_problems(plan: Sm80Plan) -> Iterator[str]:
    """What ldmatrix's addresses cannot do: one of many has its swizzle applied (sm80/parts.py)."""
    (m, n, k), (_, _, bk) = plan.step, plan.tile
    operands = ("A", plan.a, plan.a_major, m), ("B", plan.b, plan.b_major, n)
    for name, stage, major, step in operands:
        lines, period = stage.lines, swizzle_period(stage.lines)
        if major == "K":
            starts = [lines.outer(line, 0) for line in range(0, size(lines[0]), step)]
        else:
            starts = [lines.outer(0, column) for column in range(0, bk, k)]
        if any(start % period for start in starts):
            yield (
                f"{name} in shared memory is {lines}; its steps along "
                f"{'MN' if major == 'K' else 'K'} begin at {starts}, which must be multiples of "
                f"{period}, so that the swizzle does the same in all of them"
            )


_LARGE: dict[str, Any] = {
    "tile": (128, 256, 64),
    "warps": (2, 4),
    "bits": 3,
    "across": 2,
    "stages": 3,
    "group": 8,
    "ahead": True,
}


def mma_k8(
    dtype: str = "bfloat16", a_major: Major = "K", b_major: Major = "MN", alignment: int = UNIT
) -> Sm80Plan:
    """Four warps on the tensor core: ldmatrix from shared memory, mma.m16n8k8.

    Costs: rows of a tile are 128 bytes apart, so that the eight rows of a matrix meet in the same
    four banks: ldmatrix takes 8 wavefronts a matrix where 1 would do.
    """
    return _plan("mma_k8", dtype, (a_major, b_major), alignment, k=8)


def mma(
    dtype: str = "bfloat16", a_major: Major = "K", b_major: Major = "MN", alignment: int = UNIT
) -> Sm80Plan:
    """New: mma.m16n8k16, twice as deep.

    Gains: half the instructions, mma and ldmatrix. Costs: nothing.
    """
    return _plan("mma", dtype, (a_major, b_major), alignment)


def padded(
    dtype: str = "bfloat16", a_major: Major = "K", b_major: Major = "MN", alignment: int = UNIT
) -> Sm80Plan:
    """New: lines of shared memory are 16 bytes further apart.

    Gains: the eight rows of a matrix lie in different banks. Costs: an eighth more shared memory.
    """
    return _plan("padded", dtype, (a_major, b_major), alignment, padding=8)


def swizzled(
    dtype: str = "bfloat16", a_major: Major = "K", b_major: Major = "MN", alignment: int = UNIT
) -> Sm80Plan:
    """New: no padding; the number of a line is XORed into the place of its 16-byte pieces.

    Gains: as `padded`. Costs: nothing.
    """
    return _plan("swizzled", dtype, (a_major, b_major), alignment, bits=3)


def ldmatrix_x4(
    dtype: str = "bfloat16", a_major: Major = "K", b_major: Major = "MN", alignment: int = UNIT
) -> Sm80Plan:
    """New: a warp takes two mma along N at a time, so that one ldmatrix loads four matrices of B.

    Gains: half the ldmatrix of B. Costs: nothing.
    """
    return _plan("ldmatrix_x4", dtype, (a_major, b_major), alignment, bits=3, across=2)


def multistage(
    dtype: str = "bfloat16", a_major: Major = "K", b_major: Major = "MN", alignment: int = UNIT
) -> Sm80Plan:
    """New: cp.async brings k-blocks into a ring of three stages while the warps multiply.

    Gains: the tensor core no longer waits for memory, and no register holds what is on its way.
    Costs: three times the shared memory.
    """
    return _plan("multistage", dtype, (a_major, b_major), alignment, bits=3, across=2, stages=3)


def raster(
    dtype: str = "bfloat16", a_major: Major = "K", b_major: Major = "MN", alignment: int = UNIT
) -> Sm80Plan:
    """New: blocks that run together compute tiles of eight rows of tiles, not of one.

    Gains: what they read of A and B is smaller, and stays in L2. Costs: nothing.
    """
    return _plan(
        "raster", dtype, (a_major, b_major), alignment, bits=3, across=2, stages=3, group=8
    )


def ahead(
    dtype: str = "bfloat16", a_major: Major = "K", b_major: Major = "MN", alignment: int = UNIT
) -> Sm80Plan:
    """New: ldmatrix brings the next step's fragments while mma multiplies by this step's.

    Gains: the tensor core no longer waits for shared memory, nor at the barrier of a k-block.
    Costs: the registers of two steps.
    """
    return _plan(
        "ahead",
        dtype,
        (a_major, b_major),
        alignment,
        bits=3,
        across=2,
        stages=3,
        group=8,
        ahead=True,
    )


def large(
    dtype: str = "bfloat16", a_major: Major = "K", b_major: Major = "MN", alignment: int = UNIT
) -> Sm80Plan:
    """New: eight warps on a tile of 128×256.

    Gains: an element of A serves twice the columns: three quarters of the bytes into shared memory
    for a product. Costs: all registers of a multiprocessor for one block, which nothing relieves
    while it starts and ends; 144 KB of shared memory, more than 8.6 and 8.9 have.
    """
    return _plan("large", dtype, (a_major, b_major), alignment, **_LARGE)


def wide(
    dtype: str = "bfloat16", a_major: Major = "K", b_major: Major = "MN", alignment: int = UNIT
) -> Sm80Plan:
    """New: the columns of B lie in shared memory in an order that gives a thread eight in a row.

    Gains: C is stored 16 bytes at a time, not 4, and no shuffle is needed for it. Costs: nothing.
    Where B is MN-major its columns are the pieces that ldmatrix turns, and stay as they are; as do
    those where rows of C are no multiples of 16 bytes.
    """
    run = 4 if b_major == "K" and alignment == UNIT else 1
    return _plan("wide", dtype, (a_major, b_major), alignment, **_LARGE, run=run)


RUNGS: tuple[Callable[..., Sm80Plan], ...] = (
    mma_k8,
    mma,
    padded,
    swizzled,
    ldmatrix_x4,
    multistage,
    raster,
    ahead,
    large,
    wide,
)
