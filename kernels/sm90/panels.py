"""Panels of C in shared memory: their widths, their layout, and the values stmatrix stores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from math import gcd
from typing import NamedTuple

from cutedsl_gemm.kernels.epilogue.expression import Epilogue
from cutedsl_gemm.kernels.plan import tma
from cutedsl_gemm.kernels.plan.checks import BITS, PER_VECTOR
from cutedsl_gemm.kernels.sm90.operand import ROW, SHORTEST_ROW, SWIZZLES, swizzled, unswizzled
from cutedsl_gemm.kernels.sm90.resources import BARRIER_BYTES, SMEM_BYTES
from layouts import ComposedLayout, Layout, LayoutError, append, size, wgmma_accumulator
from layouts.hardware.atoms import WGMMA_M


def panel_widths(bn: int, swapped: bool = False) -> tuple[int, ...]:
    """The columns that a panel may have, from the most to the fewest. They divide BN.

    Each is a swizzle's row unless operands are swapped. If BN is an odd multiple of 8, no row of a
    swizzle divides it, and a panel needs none: its columns are an odd multiple of 8 from 24 on, or
    BN.

    >>> [panel_widths(bn) for bn in (192, 176, 120, 104)]
    [(64, 32, 16), (16,), (40, 24), (104,)]
    >>> [panel_widths(bn, swapped=True) for bn in (96, 80, 8)]
    [(48, 32, 24, 16, 8), (40, 16, 8), (8,)]
    """
    widths: Iterable[int] = SWIZZLES
    if swapped:
        widths = range(8, ROW + 1, 8)
    elif bn % SHORTEST_ROW:
        widths = range(24, ROW + 1, 16)
    return tuple(sorted((each for each in widths if bn % each == 0), reverse=True)) or (bn,)


def panel_layout(rows: int, columns: int, swapped: bool = False) -> ComposedLayout:
    """A panel of C in shared memory: (rows, columns) → element offset.

    >>> print(panel_layout(64, 32))
    S<2,3,3> o 0 o ((8,8),(32,1)):((32,256),(1,0))
    >>> print(panel_layout(64, 40))
    S<0,3,3> o 0 o (64,40):(40,1)
    """
    if swapped or columns % SHORTEST_ROW == 0:
        return swizzled(rows, columns, "MN" if swapped else "K")
    return unswizzled(rows, columns)


@cache
def staging_problems(staging: ComposedLayout, contiguous: int) -> tuple[str, ...]:
    """What is wrong with the layout of a panel. Hundreds of plans share a few such layouts."""
    return tuple(_staging_problem(staging, contiguous))


def _staging_problem(staging: ComposedLayout, contiguous: int) -> Iterator[str]:
    line, along = ("row", "columns") if contiguous else ("column", "rows")
    for i in range(size(staging[1 - contiguous])):
        # stmatrix writes lines of eight elements
        offsets = [staging((i, j) if contiguous else (j, i)) for j in range(8)]
        if offsets != list(range(offsets[0], offsets[0] + 8)) or offsets[0] % 8:
            yield (
                f"C panel: eight elements of {line} {i} have the offsets {offsets}; "
                "stmatrix writes a row as 16 contiguous bytes at a multiple of 16 "
                f"(PTX ISA, stmatrix); take a layout contiguous in {along} "
                "whose swizzle keeps the low 3 bits"
            )
            return
    try:
        tma.boxes(staging, contiguous)
    except LayoutError as error:
        yield f"C panel: {error}"


def stmatrix_tv(columns: int) -> Layout:
    """(thread, value) → m + 64 * n of 64 rows and S columns: what four warps' stmatrix stores.

    S is 16 if it divides the columns of a panel, else 8.

    >>> print(stmatrix_tv(48), stmatrix_tv(40))
    ((4,8,4),(2,2,2)):((128,1,16),(64,8,512)) ((4,8,4),(2,2,1)):((128,1,16),(64,8,512))
    """
    return wgmma_accumulator(gcd(columns, 16))


def fragment(rows: int, bn: int, columns: int, a_matrices: int = 1, b_matrices: int = 1) -> Layout:
    """(stmatrix, m64, S columns, panel) → value of the accumulator, in panels of `columns`.

    If A or B has rows of two matrices, a fifth mode tells their accumulators apart: a thread holds
    a value of both for each output.

    >>> print(fragment(128, 128, 64), fragment(128, 80, 40))
    (8,2,4,2):(1,64,8,32) (4,2,5,2):(1,40,4,20)
    >>> print(fragment(128, 128, 64, b_matrices=2), fragment(128, 128, 64, a_matrices=2))
    (8,2,4,1,2):(1,64,8,32,32) (8,1,4,2,2):(1,64,8,32,64)
    """
    held = size(stmatrix_tv(columns)[1])  # values that one stmatrix takes of a thread
    stores = columns // 2 // held  # of a panel and 64 rows
    shape = held, rows // WGMMA_M // a_matrices, stores, bn // b_matrices // columns
    one = Layout(shape, (1, bn // 2, held, columns // 2))
    if a_matrices == b_matrices == 1:
        return one
    apart = bn // 2 // b_matrices if b_matrices > 1 else shape[1] * bn // 2
    return append(one, Layout(a_matrices * b_matrices, apart))


# Elements of K that the stages of A and B hold, if panels of C can be narrow enough. With three
# stages of 64, not four, 256×160×64 takes up to 1.2 times as long where rows of A and B start off
# lines of 128 bytes (docs/performance/notebook.md, "A fourth stage for large tiles").
STAGED_K = 256


class Panels(NamedTuple):
    """How a consumer stages C."""

    columns: int  # P
    in_flight: int


def default_panels(rows: int, bn: int, swapped: bool, k_bytes: int, buffers: int = 0) -> Panels:
    """The widest panels that leave room for stages with STAGED_K elements of K.

    A consumer has at most 64 columns of them in flight, or one panel. If no panel is narrow enough,
    the widest are taken. `rows` counts the rows of the panels of all consumers, `bn` the columns of
    C in a tile, and `k_bytes` the bytes of A and B for each k.

    If TMA loads matrices into them, each panel takes `buffers` of them, and a consumer has two or
    more. If operands are swapped, panels have at most 16 columns, so that it has four: 2 % faster
    (docs/performance/notebook.md, "Matrices come through a ring of panels").

    >>> default_panels(128, 160, False, k_bytes=2 * (128 + 160))
    Panels(columns=32, in_flight=2)
    >>> default_panels(256, 160, False, k_bytes=2 * (256 + 160))
    Panels(columns=32, in_flight=1)
    >>> default_panels(256, 192, False, k_bytes=2 * (256 + 192))
    Panels(columns=64, in_flight=1)
    >>> default_panels(256, 128, True, k_bytes=2 * (128 + 128), buffers=1)
    Panels(columns=16, in_flight=4)
    """
    least, widths = max(2, buffers) if buffers else 1, panel_widths(bn, swapped)
    if buffers and swapped:
        widths = tuple(each for each in widths if each <= SHORTEST_ROW)
    panels = [Panels(columns, max(least, min(ROW, bn) // columns)) for columns in widths]
    free = SMEM_BYTES - BARRIER_BYTES - STAGED_K * k_bytes
    for columns, most in panels:
        fit = free // (rows * columns * BITS // 8)
        if fit >= least:
            return Panels(columns, min(most, fit))
    return panels[0]


def loadable_operands(epilogue: Epilogue, c_alignment: int, contiguous: int = 1) -> tuple[int, ...]:
    """The operands that TMA can load into panels of C: 16-bit matrices that lie in memory as C.

    `contiguous` is the contiguous mode of C. There are none unless TMA stores a result from panels.
    """
    stages_any = any(each.is_16_bit_matrix for each in epilogue.results)
    if c_alignment != PER_VECTOR or not stages_any:
        return ()
    return tuple(
        i
        for i, operand in enumerate(epilogue.operands)
        if operand.is_matrix
        and operand.row_major == (contiguous == 1)
        and operand.dtype != "float32"
        and operand.alignment % PER_VECTOR == 0
    )
