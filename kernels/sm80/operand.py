"""How A and B get into shared memory: the copy, the buffer, and the checks of both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cutedsl_gemm.kernels.plan.checks import BITS, PER_VECTOR, shape_problem
from cutedsl_gemm.kernels.plan.tv_layout import TVLayout, partition_problems
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
# Elements that a copy may move, the widest first.
ALIGNMENTS = PER_VECTOR, PER_VECTOR // 2, PER_VECTOR // 4


@dataclass(frozen=True)
class Operand:
    """How a tile (rows, BK) of A or B gets into shared memory, and how mma reads it there.

    The copy writes by `smem`, ldmatrix reads by `mma_smem`. Both are the same buffer; they differ
    where mma takes the rows in another order (`accumulator.permutation_n`).
    """

    copy: TVLayout
    smem: ComposedLayout  # (rows, BK) → element
    mma_smem: ComposedLayout  # (rows in the order of mma, BK) → element


def tile_smem(
    rows: int, columns: int, major: Major, padding: int = 0, swizzle_bits: int = 0
) -> ComposedLayout:
    """A tile (rows, columns) in shared memory, with `padding` elements after each contiguous line.

    The swizzle XORs the low `swizzle_bits` bits of a line's number into the number of each 16-byte
    vector of the line. A line of fewer than 2^swizzle_bits vectors takes as many bits as it can.

    >>> print(tile_smem(128, 64, "K", padding=8))
    S<0,3,3> o 0 o (128,64):(72,1)
    >>> print(tile_smem(128, 32, "K", swizzle_bits=3))
    S<2,3,3> o 0 o (128,32):(32,1)
    """
    line = columns if major == "K" else rows
    vector_bits = (line // PER_VECTOR).bit_length() - 1  # of a vector's number in its line
    swizzle = Swizzle(min(swizzle_bits, vector_bits), 3, max(3, vector_bits))
    stride = (columns + padding, 1) if major == "K" else (1, rows + padding)
    return ComposedLayout(swizzle, 0, Layout((rows, columns), stride), unit=BITS)


def swizzle_period(smem: ComposedLayout) -> int:
    """The power of two whose multiples may be added to a swizzled offset.

    They change no bit that the swizzle reads or writes.

    >>> swizzle_period(tile_smem(128, 64, "K", swizzle_bits=3))
    512
    >>> swizzle_period(tile_smem(128, 64, "K"))
    1
    """
    swizzle = smem.inner
    bits = swizzle.source | swizzle.target if isinstance(swizzle, Swizzle) else 0
    return 1 << bits.bit_length()


def operand_problems(
    name: str,
    operand: Operand,
    shape: tuple[int, int],
    threads: int,
    major: Major,
    smem_major: Major,
) -> Iterator[str]:
    """What is wrong with an operand that is `major` in global memory, `smem_major` in shared.

    ldmatrix reads 16 bytes at a time; the copy moves a vector along global memory.
    """
    copy = operand.copy
    yield from partition_problems(name, copy, shape, threads)
    vector = copy.rows[1][1][0], copy.columns[1][1][0]
    steps = int(major == "MN"), int(major == "K")
    if not any(vector == tuple(Layout(width, step) for step in steps) for width in ALIGNMENTS):
        yield (
            f"a thread moves rows {vector[0]} and columns {vector[1]} of {name} as one vector; "
            f"they must be one of {ALIGNMENTS} neighbours along memory, and {name} is {major}-major"
        )
    for smem in dict.fromkeys((operand.smem, operand.mma_smem)):
        yield from _smem_problems(name, smem, shape, smem_major)


def _smem_problems(
    name: str, smem: ComposedLayout, shape: tuple[int, int], major: Major
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
            f"{name} in shared memory is {smem}; its swizzle must stay within {ALIGNMENT} bytes, "
            "since each buffer begins at a multiple of them"
        )
    yield from shape_problem(name, smem, shape)
    yield from _vector_problems(name, smem, shape, major)
    if not prove(Injective(smem)):
        yield f"{name} in shared memory is {smem}, which has two elements in one place"


def _vector_problems(
    name: str, smem: ComposedLayout, shape: tuple[int, int], major: Major
) -> Iterator[str]:
    (rows, columns), why = shape, f"eight elements along {major} must be 16 contiguous bytes"
    wanted = (rows, columns // PER_VECTOR) if major == "K" else (rows // PER_VECTOR, columns)
    try:
        vectors = recast(smem, BITS, BITS * PER_VECTOR)
    except LayoutError as error:
        yield f"{name} in shared memory is {smem}; {why}: {error}"
        return
    found = tuple(map(size, vectors))
    if found != wanted:
        yield f"{name} in shared memory is {smem}, of {found} vectors; {why}, {wanted} vectors"
