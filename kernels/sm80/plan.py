"""The sm80 ladder: GEMMs on mma.m16n8k16, each a plan that changes one idea.

mma → padded → swizzled → multistage → raster. The first three differ in the layout of shared memory
alone; `multistage` loads ahead, `raster` walks the tiles in another order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cutedsl_gemm.kernels.plan import BITS, UNIT, PlanError, ring, room
from cutedsl_gemm.kernels.raster import Raster
from cutedsl_gemm.kernels.share import Share, loads
from layouts import (
    Bijective,
    ComposedLayout,
    Injective,
    Layout,
    Proof,
    Swizzle,
    cosize,
    prove,
    size,
)
from layouts.descriptor import Major

TILE = (128, 128, 64)
WARPS = (2, 2)  # along M, along N
THREADS = 32 * WARPS[0] * WARPS[1]
STEP = (16 * WARPS[0], 16 * WARPS[1], 16)  # what the warps multiply at a time: two mma along N each
SMEM_BYTES = 166_912  # of a block, compute capability 8.0 (CUDA C++ Programming Guide)
PLAIN = Swizzle(0, 3, 3)
ALIGNMENT = 128  # bytes, of each buffer


@dataclass(frozen=True)
class Stage:
    """How an operand's tile (rows, BK) comes into shared memory: who brings what, and where to."""

    share: Share
    smem: ComposedLayout  # (rows, BK) → element


@dataclass(frozen=True)
class Sm80Plan:
    """A GEMM of four warps a tile, fp32 accumulation: C (M, N) = A (M, K) · B (K, N).

    The tile of B is (BN, BK).
    """

    name: str
    dtype: str
    a_major: Major
    b_major: Major
    a: Stage
    b: Stage
    c: Share  # of C (BM, BN), as mma leaves it
    fragment: Layout  # value of `c` → accumulator register
    stages: int  # k-blocks in shared memory; with one, nothing is loaded ahead
    raster: Raster
    tile: tuple[int, int, int] = TILE
    alignment: int = UNIT

    @property
    def warps(self) -> Layout:
        """(along M, along N, along K) → warp."""
        return Layout((*WARPS, 1))

    @property
    def rings(self) -> tuple[ComposedLayout, ComposedLayout]:
        """(rows, BK, stages) of A and of B in shared memory."""
        return ring(self.a.smem, self.stages), ring(self.b.smem, self.stages)

    @property
    def smem_bytes(self) -> int:
        """Bytes of shared memory that a block takes."""
        return room((cosize(ring) * BITS // 8 for ring in self.rings), ALIGNMENT)

    @property
    def places(self) -> dict[str, Layout]:
        """(thread, value) → row + rows * column, of each tile."""
        bm, bn, _ = self.tile
        return {
            "A": self.a.share.at(1, bm),
            "B": self.b.share.at(1, bn),
            "C": self.c.at(1, bm),
        }

    def proofs(self) -> tuple[Proof, ...]:
        """Every element has one thread, one place in shared memory, one register."""
        shared = (prove(Injective(stage.smem)) for stage in (self.a, self.b))
        return (
            *(prove(Bijective(place)) for place in self.places.values()),
            *shared,
            prove(Bijective(self.fragment)),
        )

    def check(self) -> Sm80Plan:
        """The plan itself, or PlanError with the first thing that cannot be."""
        for problem in self._problems():
            raise PlanError(f"{self.name}, {self.dtype}: {problem}")
        return self

    def explain(self) -> str:
        """The plan as text: what moves where, by which layout."""
        lines = (
            ("kernel", f"{self.name}, {self.dtype}, fp32 accumulation, tile {self.tile}"),
            ("block", f"{THREADS} threads, {WARPS[0]}×{WARPS[1]} warps"),
            ("memory", f"{self.stages} stages, {self.smem_bytes:,} bytes"),
            ("A in smem", f"{self.a.smem}   (BM, BK), {self.a_major}-major"),
            ("B in smem", f"{self.b.smem}   (BN, BK), {self.b_major}-major"),
            ("C rows", f"{self.c.rows}   (thread, value) → m"),
            ("C columns", f"{self.c.columns}   (thread, value) → n"),
            ("raster", f"groups of {self.raster.group} tile rows, N inside"),
        )
        return "\n".join(f"{name:<10} {text}" for name, text in lines)

    def _problems(self) -> Iterator[str]:
        if self.dtype not in ("bfloat16", "float16"):
            yield f"dtype is {self.dtype}; the tensor core takes bfloat16 or float16 here"
        if self.smem_bytes > SMEM_BYTES:
            yield f"{self.smem_bytes} bytes of shared memory; a block has {SMEM_BYTES}"
        bm, bn, bk = self.tile
        for name, place in self.places.items():
            wanted = {"A": bm * bk, "B": bn * bk, "C": bm * bn}[name]
            if size(place) != wanted or not prove(Bijective(place)):
                yield f"the threads' shares of {name}, {place}, must take each of {wanted} once"


def tile_smem(
    rows: int, columns: int, major: Major, padding: int, swizzle: Swizzle
) -> ComposedLayout:
    """A tile (rows, columns) in shared memory, its lines `padding` elements apart.

    >>> print(tile_smem(128, 64, "K", 8, PLAIN))
    S<0,3,3> o 0 o (128,64):(72,1)
    """
    if major == "K":
        plain = Layout((rows, columns), (columns + padding, 1))
    else:
        plain = Layout((rows, columns), (1, rows + padding))
    return ComposedLayout(swizzle, 0, plain, unit=BITS)


def accumulator() -> Share:
    """What each thread holds of C: mma.m16n8's accumulator, tiled by the warps.

    A lane has rows lane / 4 and the one 8 below, columns 2 * (lane % 4) and the next (PTX ISA,
    Matrix Fragments for mma.m16n8k16). The warps are side by side, and step over the tile together.

    >>> print(accumulator().rows, accumulator().columns, sep="\\n")
    ((4,8,2,2),((2,4),(2,8))):((0,1,16,0),((8,32),(0,0)))
    ((4,8,2,2),((2,4),(2,8))):((2,0,0,8),((0,0),(1,16)))
    """
    bm, bn, _ = TILE
    shape = ((4, 8, *WARPS), ((2, bm // STEP[0]), (2, bn // (8 * WARPS[1]))))
    rows = Layout(shape, ((0, 1, 16, 0), ((8, STEP[0]), (0, 0))))
    columns = Layout(shape, ((2, 0, 0, 8), ((0, 0), (1, 8 * WARPS[1]))))
    return Share(rows, columns)


def _plan(
    name: str,
    dtype: str,
    majors: tuple[Major, Major],
    padding: int = 0,
    swizzle: Swizzle = PLAIN,
    stages: int = 1,
    group: int = 1,
) -> Sm80Plan:
    (bm, bn, bk), (a_major, b_major) = TILE, majors
    a, b = (
        Stage(
            loads(rows, bk, major, THREADS, UNIT),
            tile_smem(rows, bk, major, padding, _fitting(swizzle, rows, bk, major)),
        )
        for rows, major in ((bm, a_major), (bn, b_major))
    )
    down, across = bm // STEP[0], bn // (8 * WARPS[1])
    fragment = Layout(((2, down), (2, across)), ((2, 4), (1, 4 * down)))
    return Sm80Plan(
        f"sm80_{name}",
        dtype,
        a_major,
        b_major,
        a,
        b,
        accumulator(),
        fragment,
        stages,
        Raster(group),
    ).check()


def _fitting(swizzle: Swizzle, rows: int, columns: int, major: Major) -> Swizzle:
    """The swizzle that reads the number of a line, wherever a line's length puts it."""
    line = columns if major == "K" else rows
    return Swizzle(swizzle.bits, 3, line.bit_length() - 4)


def mma(dtype: str = "bfloat16", a_major: Major = "K", b_major: Major = "MN") -> Sm80Plan:
    """Four warps on the tensor core: ldmatrix from shared memory, mma.m16n8k16.

    Costs: rows of a tile are 128 bytes apart, so that the eight rows of a matrix meet in the same
    four banks: ldmatrix takes 8 wavefronts a matrix where 1 would do.
    """
    return _plan("mma", dtype, (a_major, b_major))


def padded(dtype: str = "bfloat16", a_major: Major = "K", b_major: Major = "MN") -> Sm80Plan:
    """New: lines of shared memory are 16 bytes further apart.

    Gains: the eight rows of a matrix lie in different banks. Costs: an eighth more shared memory.
    """
    return _plan("padded", dtype, (a_major, b_major), padding=8)


def swizzled(dtype: str = "bfloat16", a_major: Major = "K", b_major: Major = "MN") -> Sm80Plan:
    """New: no padding; the number of a line is XORed into the place of its 16-byte pieces.

    Gains: as `padded`. Costs: nothing.
    """
    return _plan("swizzled", dtype, (a_major, b_major), swizzle=Swizzle(3, 3, 3))


def multistage(dtype: str = "bfloat16", a_major: Major = "K", b_major: Major = "MN") -> Sm80Plan:
    """New: cp.async brings k-blocks into a ring of three stages while the warps multiply.

    Gains: the tensor core no longer waits for memory, and no register holds what is on its way.
    Costs: three times the shared memory.
    """
    return _plan("multistage", dtype, (a_major, b_major), swizzle=Swizzle(3, 3, 3), stages=3)


def raster(dtype: str = "bfloat16", a_major: Major = "K", b_major: Major = "MN") -> Sm80Plan:
    """New: blocks that run together compute tiles of eight rows of tiles, not of one.

    Gains: what they read of A and B is smaller, and stays in L2. Costs: nothing.
    """
    return _plan("raster", dtype, (a_major, b_major), swizzle=Swizzle(3, 3, 3), stages=3, group=8)


RUNGS: tuple[Callable[..., Sm80Plan], ...] = (mma, padded, swizzled, multistage, raster)
