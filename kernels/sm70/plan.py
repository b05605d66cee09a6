"""The sm70 rung: a GEMM on mma.m8n8k4, the tensor core of a Volta, after CUTLASS 1.3.3.

CUTLASS calls it h884gemm: OutputTile (K, N, M) 32×64×128, warp tile 32×64×64, two warps. A warp has
four quad pairs (PTX ISA, Matrix Fragments for mma.m8n8k4), 2×2 of them, and each computes 32×32:

    k      a step is four deep: a lane holds one k of eight rows, 16 bytes, contiguous in memory
    rows   32 * quad pair + 16 * load + 8 * half + 0…7; a load serves two mma, four rows of each
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from cutedsl_gemm.kernels.epilogue.expression import PLAIN, Epilogue
from cutedsl_gemm.kernels.plan.checks import BITS, PER_VECTOR, PlanError, field_problem
from cutedsl_gemm.kernels.plan.raster import Raster
from cutedsl_gemm.kernels.plan.tv_layout import TVLayout, load_layout
from cutedsl_gemm.kernels.sm80.operand import Operand
from cutedsl_gemm.kernels.sm80.plan import Sm80Plan
from layouts import ComposedLayout, Layout, Swizzle
from layouts.hardware.descriptor import Major

TILE = (128, 64, 32)
WARPS = (2, 1)  # along M, along N
STEP = (128, 64, 4)
# The modes of a thread: its k of a step; its quad pair along M, along N; its half of it; its warp.
THREADS = (4, 2, 2, 2, 2)


@dataclass(frozen=True)
class Sm70Plan(Sm80Plan):
    """An sm80 plan whose fragments are read by LDS.128, 16 bytes a lane.

    Shared memory is contiguous along M and along N, whatever the majors: a lane reads eight rows.
    """

    DTYPES: ClassVar[tuple[str, ...]] = ("float16",)

    @property
    def smem_majors(self) -> tuple[Major, Major]:
        return "MN", "MN"

    @property
    def fragment_copies(self) -> dict[str, TVLayout]:
        """(thread, (1, (8, 2))) → row, and → k of a step: what a thread reads of A and of B."""
        return {"A": _fragment_copy((32, 0), 64), "B": _fragment_copy((0, 32), 0)}

    @property
    def instructions(self) -> str:
        """The instructions of a step, in words."""
        return "LDS.128, mma.m8n8k4, residue of K first"

    def memory_report(self) -> None:
        """None: the report of sm80 counts wavefronts of ldmatrix."""

    def device_code(self) -> Any:
        """The only kernel of the family."""
        from cutedsl_gemm.kernels.sm70.volta import Volta

        return Volta(self)

    def executor(self) -> Callable[..., None]:
        """The family's executor."""
        from cutedsl_gemm.kernels.sm70.execute import gemm

        return gemm

    def check_k(self, k: int) -> None:
        """PlanError unless the kernel can compute the residue of K first.

        The rest of a K-major operand then begins at that k, and its vectors must be aligned.
        """
        if k % self.alignment and "K" in (self.a_major, self.b_major):
            raise PlanError(
                f"K is {k}: {self.name} computes the residue of K first, so K must be a multiple "
                f"of {self.alignment} if a is row-major or b is column-major; pad a and b with "
                "zeros, or pass a column-major and b row-major"
            )

    def mma_problems(self) -> Iterator[str]:
        """The kernel is written for these values: the plan must have them."""
        lanes = "since each of two warps has 2×2 quad pairs, and each computes 32×32"
        atom = "as mma.m8n8k4 leaves its registers (PTX ISA, Matrix Fragments for mma.m8n8k4)"
        smem = "since fragments are read where the copies write"
        loop = "since a k-tile and a step are loaded ahead, and tiles are walked along N"
        for name, found, wanted, why in (
            ("tile", self.tile, TILE, lanes),
            ("warps", self.warps, WARPS, lanes),
            ("step", self.step, STEP, lanes),
            ("accumulator", self.accumulator, accumulator(), atom),
            ("c", self.c, accumulator(), atom),
            ("fragment", self.fragment, FRAGMENT, atom),
            ("A in shared memory", self.a.smem, self.a.mma_smem, smem),
            ("B in shared memory", self.b.smem, self.b.mma_smem, smem),
            ("stages", self.stages, 2, loop),
            ("prefetch_fragments", self.prefetch_fragments, True, loop),
            ("raster", self.raster, Raster(1), loop),
            ("alignment", self.alignment, PER_VECTOR, "since K % BK is a multiple of it"),
        ):
            yield from field_problem(name, found, wanted, why)


def _fragment_copy(quad_pair: tuple[int, int], warp: int) -> TVLayout:
    """The layout whose rows have these strides: of a quad pair along M and N, and of a warp."""
    shape = (THREADS, (1, (PER_VECTOR, 2)))
    rows = Layout(shape, ((0, *quad_pair, 8, warp), (0, (1, 16))))
    return TVLayout(rows, Layout(shape, ((1, 0, 0, 0, 0), (0, (0, 0)))))


def accumulator() -> TVLayout:
    """What each thread holds of C: sixteen accumulators of m8n8k4.

    Two bits of a lane and three of a value are the atom's own. Rows 4 to 7 of an atom belong to the
    other half of the quad pair, and are eight rows further in the tile.

    >>> print(accumulator().rows, accumulator().columns, sep="\\n")
    ((2,2,2,2,2,2),((2,2,2),(2,8))):((1,0,32,0,8,64),((2,4,16),(0,0)))
    ((2,2,2,2,2,2),((2,2,2),(2,8))):((0,2,0,32,0,0),((0,0,0),(1,4)))
    """
    shape = ((2, 2, 2, 2, 2, 2), ((2, 2, 2), (2, 8)))
    rows = Layout(shape, ((1, 0, 32, 0, 8, 64), ((2, 4, 16), (0, 0))))
    return TVLayout(rows, Layout(shape, ((0, 2, 0, 32, 0, 0), ((0, 0, 0), (1, 4)))))


# value → accumulator register: eight per mma; the mma of a step, those along M fastest
FRAGMENT = Layout(((2, 2, 2), (2, (2, 2, 2))), ((2, 8, 16), (1, (32, 4, 64))))


def volta884(
    dtype: str = "float16",
    a_major: Major = "K",
    b_major: Major = "MN",
    epilogue: Epilogue = PLAIN,
) -> Sm70Plan:
    """mma.m8n8k4 from permuted shared memory, without padding; a k-tile and a step ahead.

    The number of a vector of eight rows is XORed with k, so that eight lanes read theirs from eight
    groups of banks. A k-tile travels in registers while the one before is multiplied: Volta has no
    cp.async. Costs: a K-major operand is transposed on its way, element by element.
    """
    (bm, bn, bk), threads = TILE, 64
    a, b = (
        Operand(load_layout(rows, bk, major, threads, PER_VECTOR), smem, smem)
        for rows, major, smem in ((bm, a_major, permuted(bm)), (bn, b_major, permuted(bn)))
    )
    plan = Sm70Plan(
        name="sm70_volta884",
        dtype=dtype,
        a_major=a_major,
        b_major=b_major,
        tile=TILE,
        warps=WARPS,
        step=STEP,
        a=a,
        b=b,
        accumulator=accumulator(),
        c=accumulator(),
        fragment=FRAGMENT,
        stages=2,
        prefetch_fragments=True,
        raster=Raster(1),
        epilogue=epilogue,
    )
    plan.check()
    return plan


def permuted(rows: int) -> ComposedLayout:
    """A tile (rows, BK) in shared memory: the number of a vector of eight rows is XORed with k % 4.

    >>> print(permuted(128), permuted(64), sep="\\n")
    S<2,3,4> o 0 o (128,32):(1,128)
    S<2,3,3> o 0 o (64,32):(1,64)
    """
    swizzle = Swizzle(2, 3, (rows // PER_VECTOR).bit_length() - 1)
    return ComposedLayout(swizzle, 0, Layout((rows, TILE[2]), (1, rows)), unit=BITS)


RUNGS: tuple[Callable[..., Sm70Plan], ...] = (volta884,)
