"""The sm80 ladder: GEMMs on mma.m16n8k16, each a plan that changes one idea.

mma → padded → swizzled → multistage → raster. The first three differ in the layout of shared memory
alone; `multistage` loads ahead, `raster` walks the tiles in another order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

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
    composition,
    cosize,
    prove,
    size,
)
from layouts.descriptor import Major

TILE = (128, 128, 64)
WARPS = (2, 2)  # along M, along N
SMEM_BYTES = 166_912  # of a block, compute capability 8.0 (CUDA C++ Programming Guide)
ALIGNMENT = 128  # bytes, of each buffer
ALIGNMENTS = UNIT, UNIT // 2, UNIT // 4  # elements that a copy may move, the widest first

Tile: TypeAlias = tuple[int, int, int]
Warps: TypeAlias = tuple[int, int]
Pair: TypeAlias = tuple[int, int]


@dataclass(frozen=True)
class Stage:
    """How an operand's tile (rows, BK) comes into shared memory: who brings what, and where to.

    mma takes the lines of the tile in the order in which ldmatrix finds them: `lines` differs from
    `smem` where that is not the order of the rows.
    """

    share: Share
    smem: ComposedLayout  # (rows, BK) → element
    lines: ComposedLayout  # (lines, BK) → element


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
    accumulator: Share  # of (BM, lines of B), as mma leaves it
    c: Share  # of C (BM, BN): the same registers
    fragment: Layout  # value of the two → accumulator register
    stages: int  # k-blocks in shared memory; with one, nothing is loaded ahead
    ahead: bool  # whether a step's fragments are loaded while the step before is multiplied
    raster: Raster
    alignment: int = UNIT

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return 32 * self.warps[0] * self.warps[1]

    @property
    def order(self) -> Layout:
        """(along M, along N, along K) → warp."""
        return Layout((*self.warps, 1))

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
        return ring(self.a.lines, self.stages), ring(self.b.lines, self.stages)

    @property
    def smem_bytes(self) -> int:
        """Bytes of shared memory that a block takes."""
        return room((cosize(ring) * BITS // 8 for ring in self.rings), ALIGNMENT)

    @property
    def shares(self) -> dict[str, Share]:
        """What each thread takes of a tile of A, B and C in global memory."""
        return {"A": self.a.share, "B": self.b.share, "C": self.c}

    @property
    def places(self) -> dict[str, Layout]:
        """(thread, value) → row + rows * column, of each tile."""
        bm, bn, _ = self.tile
        return {
            "A": self.a.share.at(1, bm),
            "B": self.b.share.at(1, bn),
            "the accumulator": self.accumulator.at(1, bm),
            "C": self.c.at(1, bm),
        }

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
        for problem in self._problems():
            raise PlanError(f"{self.name}, {self.dtype}: {problem}")
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
            ("raster", f"groups of {self.raster.group} tile rows, N inside"),
        )
        return "\n".join(f"{name:<10} {text}" for name, text in lines)

    def _problems(self) -> Iterator[str]:
        if self.dtype not in self.DTYPES:
            yield f"dtype is {self.dtype}; this tensor core takes {' or '.join(self.DTYPES)}"
        if self.smem_bytes > SMEM_BYTES:
            yield f"{self.smem_bytes} bytes of shared memory; a block has {SMEM_BYTES}"
        bm, bn, bk = self.tile
        for name, place in self.places.items():
            wanted = {"A": bm * bk, "B": bn * bk}.get(name, bm * bn)
            if size(place) != wanted or not prove(Bijective(place)):
                yield f"the threads' shares of {name}, {place}, must take each of {wanted} once"


def tile_smem(
    rows: int, columns: int, major: Major, padding: int = 0, bits: int = 0
) -> ComposedLayout:
    """A tile (rows, columns) in shared memory, its lines `padding` elements apart.

    The swizzle XORs `bits` bits of a line's number into the place of its 16-byte pieces, or as many
    as a line has pieces for; a line's number stands where a line's length puts it.

    >>> print(tile_smem(128, 64, "K", padding=8), tile_smem(128, 32, "K", bits=3), sep="\\n")
    S<0,3,3> o 0 o (128,64):(72,1)
    S<2,3,3> o 0 o (128,32):(32,1)
    """
    line = columns if major == "K" else rows
    pieces = (line // UNIT).bit_length() - 1
    swizzle = Swizzle(min(bits, pieces), 3, max(3, pieces))
    if major == "K":
        plain = Layout((rows, columns), (columns + padding, 1))
    else:
        plain = Layout((rows, columns), (1, rows + padding))
    return ComposedLayout(swizzle, 0, plain, unit=BITS)


def accumulator(tile: Tile, warps: Warps, run: int = 1) -> Share:
    """What each thread holds of (BM, lines of B): mma.m16n8's accumulator, tiled by the warps.

    A lane has rows lane / 4 and the one 8 below, lines 2 * (lane % 4) and the next (PTX ISA, Matrix
    Fragments for mma.m16n8k16). The warps are side by side, and step over the tile together. Its
    values are counted `run` mma along N at a time.

    >>> print(accumulator(TILE, WARPS).rows, accumulator(TILE, WARPS).columns, sep="\\n")
    ((4,8,2,2),((2,4),((2,1),8))):((0,1,16,0),((8,32),((0,0),0)))
    ((4,8,2,2),((2,4),((2,1),8))):((2,0,0,8),((0,0),((1,16),16)))
    """
    across = 8 * warps[1]
    return _held(tile, warps, run, (2, 8), (1, across), run * across)


def result(tile: Tile, warps: Warps, run: int = 1) -> Share:
    """What each thread holds of C (BM, BN): `run` mma along N give it 2 * run columns in a row.

    >>> print(result((128, 256, 64), (2, 4), 4).columns)
    ((4,8,2,4),((2,4),((2,4),2))):((8,0,0,32),((0,0),((1,2),128)))
    """
    return _held(tile, warps, run, (2 * run, 8 * run), (1, 2), run * 8 * warps[1])


def _held(tile: Tile, warps: Warps, run: int, threads: Pair, values: Pair, step: int) -> Share:
    (bm, bn, _), (down, along) = tile, warps
    steps = bm // (16 * down), bn // (8 * along * run)
    shape = ((4, 8, down, along), ((2, steps[0]), ((2, run), steps[1])))
    lane, warp = threads
    rows = Layout(shape, ((0, 1, 16, 0), ((8, 16 * down), ((0, 0), 0))))
    columns = Layout(shape, ((lane, 0, 0, warp), ((0, 0), (values, step))))
    return Share(rows, columns)


def lines(bn: int, warps: Warps, run: int) -> Layout:
    """Column of C → line of B in shared memory: where `accumulator` and `result` meet.

    >>> print(lines(256, (2, 4), 4))
    (2,4,4,4,2):(1,32,2,8,128)
    """
    across = 8 * warps[1]
    return Layout((2, run, 4, warps[1], bn // (run * across)), (1, across, 2, 8, run * across))


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
    down_values, fragments = bm // (16 * down), bn // (8 * along * run)
    registers = ((2, 4), ((1, 4 * down_values), 4 * down_values * run))
    return Sm80Plan(
        f"sm80_{name}",
        dtype,
        a_major,
        b_major,
        tile,
        warps,
        (16 * down, 8 * across * along, k),
        Stage(loads(bm, bk, a_major, threads, alignment), a_smem, a_smem),
        Stage(loads(bn, bk, b_major, threads, alignment), _by_column(b_smem, warps, run), b_smem),
        accumulator(tile, warps, run),
        result(tile, warps, run),
        Layout(((2, down_values), ((2, run), fragments)), registers),
        stages,
        ahead,
        Raster(group),
        alignment,
    ).check()


def _by_column(smem: ComposedLayout, warps: Warps, run: int) -> ComposedLayout:
    """A tile of B (lines, BK) as (BN, BK)."""
    return smem if run == 1 else composition(smem, (lines(size(smem[0]), warps, run), None))


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
