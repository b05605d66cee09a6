"""How A and B come into shared memory: who brings what, where it lies, and what keeps it whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cutedsl_gemm.kernels.plan.checks import BITS, UNIT, shape_problem
from cutedsl_gemm.kernels.plan.partition import TVLayout, partition_problems
from layouts import (
    ComposedLayout,
    Injective,
    Layout,
    LayoutError,
    Swizzle,
    prove,
    recast,
    size,
)
from layouts.hardware.descriptor import Major

ALIGNMENT = 128  # bytes, of each buffer
ALIGNMENTS = UNIT, UNIT // 2, UNIT // 4  # elements that a copy may move, the widest first


@dataclass(frozen=True)
class Stage:
    """How an operand's tile (rows, BK) comes into shared memory: who brings what, and where to.

    mma takes the lines of the tile in the order in which ldmatrix finds them: `lines` differs from
    `smem` where that is not the order of the rows.
    """

    share: TVLayout
    smem: ComposedLayout  # (rows, BK) → element
    lines: ComposedLayout  # (lines, BK) → element


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


def swizzle_period(smem: ComposedLayout) -> int:
    """Multiples of it may be added to a swizzled address: they leave its bits alone.

    >>> swizzle_period(tile_smem(128, 64, "K", bits=3)), swizzle_period(tile_smem(128, 64, "K"))
    (512, 1)
    """
    swizzle = smem.inner
    bits = swizzle.source | swizzle.target if isinstance(swizzle, Swizzle) else 0
    return 1 << bits.bit_length()


def stage_problems(
    name: str, stage: Stage, shape: tuple[int, int], threads: int, major: Major, along: Major
) -> Iterator[str]:
    """What keeps a tile (rows, BK), `major` in global memory, from lying `along` in shared memory.

    To the tensor core it moves 16 bytes at a time, and no wider from global memory.
    """
    yield from partition_problems(name, stage.share, shape, threads)
    moved = stage.share.rows[1][1][0], stage.share.columns[1][1][0]
    steps = int(major == "MN"), int(major == "K")
    if not any(moved == tuple(Layout(width, step) for step in steps) for width in ALIGNMENTS):
        yield (
            f"a thread moves rows {moved[0]} and columns {moved[1]} of {name} as one; they must be "
            f"one of {ALIGNMENTS} that follow one another along memory, and {name} is {major}-major"
        )
    for smem in dict.fromkeys((stage.smem, stage.lines)):
        yield from _smem_problems(name, smem, shape, along)


def _smem_problems(
    name: str, smem: ComposedLayout, shape: tuple[int, int], along: Major
) -> Iterator[str]:
    if not isinstance(smem, ComposedLayout) or not isinstance(smem.inner, Swizzle):
        yield f"{name} in shared memory is {smem}; it must be a Swizzle over a Layout"
        return
    if (smem.offset, smem.unit) != (0, BITS):
        yield (
            f"{name} in shared memory is {smem}, of units of {smem.unit} bits; it must begin at "
            f"offset 0 and count elements, unit={BITS}"
        )
        return
    if smem.inner.block * BITS // 8 > ALIGNMENT:
        yield (
            f"{name} in shared memory is {smem}; its swizzle must keep inside {ALIGNMENT} bytes, "
            "since the buffers begin at multiples of them"
        )
    yield from shape_problem(name, smem, shape)
    yield from _piece_problems(name, smem, shape, along)
    if not prove(Injective(smem)):
        yield f"{name} in shared memory is {smem}, which has two elements in one place"


def _piece_problems(
    name: str, smem: ComposedLayout, shape: tuple[int, int], along: Major
) -> Iterator[str]:
    (rows, columns), why = shape, f"eight elements along {along} must be 16 contiguous bytes"
    wanted = (rows, columns // UNIT) if along == "K" else (rows // UNIT, columns)
    try:
        pieces = recast(smem, BITS, BITS * UNIT)
    except LayoutError as error:
        yield f"{name} in shared memory is {smem}; {why}: {error}"
        return
    found = tuple(map(size, pieces))
    if found != wanted:
        yield f"{name} in shared memory is {smem}, of {found} pieces; {why}, {wanted} pieces"
