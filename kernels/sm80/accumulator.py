"""The accumulator of mma.m16n8: which thread holds which outputs, and in which register.

A tile of B has its columns of C as lines in shared memory. If a line is a column of the same
number, a thread holds two neighbouring columns of C, 4 bytes. With `permuted_mma` of r, the columns
of r mma along N are permuted so that a thread holds a run of 2r neighbours: `permutation_n` is the
permutation, `accumulator` is over lines of B and `outputs` is over columns of C. CuTe's TiledMMA
permutes N the same way (`permutation_mnk`).
"""

from __future__ import annotations

from typing import TypeAlias

from cutedsl_gemm.kernels.plan.tv_layout import TVLayout
from layouts import ComposedLayout, Layout, composition, size

Tile: TypeAlias = tuple[int, int, int]  # (BM, BN, BK)
Warps: TypeAlias = tuple[int, int]  # along M, along N
Pair: TypeAlias = tuple[int, int]


def accumulator(tile: Tile, warps: Warps, permuted_mma: int = 1) -> TVLayout:
    """(thread, value) → row of C, and → line of B: mma.m16n8's accumulator, tiled by the warps.

    A lane holds rows lane / 4 and lane / 4 + 8, lines 2 * (lane % 4) and the next (PTX ISA, Matrix
    Fragments for mma.m16n8k16). The warps are side by side, and step over the tile together. The
    values count `permuted_mma` mma along N at a time.

    >>> held = accumulator((128, 128, 64), (2, 2))
    >>> print(held.rows, held.columns, sep="\\n")
    ((4,8,2,2),((2,4),((2,1),8))):((0,1,16,0),((8,32),((0,0),0)))
    ((4,8,2,2),((2,4),((2,1),8))):((2,0,0,8),((0,0),((1,16),16)))
    """
    across = 8 * warps[1]
    return _held(tile, warps, permuted_mma, (2, 8), (1, across), permuted_mma * across)


def outputs(tile: Tile, warps: Warps, permuted_mma: int = 1) -> TVLayout:
    """(thread, value) → row, and → column of C: runs of 2 * `permuted_mma` neighbouring columns.

    >>> print(outputs((128, 256, 64), (2, 4), 4).columns)
    ((4,8,2,4),((2,4),((2,4),2))):((8,0,0,32),((0,0),((1,2),128)))
    """
    lane_and_warp = 2 * permuted_mma, 8 * permuted_mma
    return _held(tile, warps, permuted_mma, lane_and_warp, (1, 2), permuted_mma * 8 * warps[1])


def _held(
    tile: Tile, warps: Warps, permuted_mma: int, lane_and_warp: Pair, run: Pair, step: int
) -> TVLayout:
    """The layout whose columns have these strides: of a lane and a warp, of a run, of a step."""
    (bm, bn, _), (down, along) = tile, warps
    steps = bm // (16 * down), bn // (8 * along * permuted_mma)
    shape = ((4, 8, down, along), ((2, steps[0]), ((2, permuted_mma), steps[1])))
    lane, warp = lane_and_warp
    rows = Layout(shape, ((0, 1, 16, 0), ((8, 16 * down), ((0, 0), 0))))
    columns = Layout(shape, ((lane, 0, 0, warp), ((0, 0), (run, step))))
    return TVLayout(rows, columns)


def fragment(tile: Tile, warps: Warps, permuted_mma: int = 1) -> Layout:
    """Value of `accumulator`, and of `outputs` → accumulator register; rows of mma go first.

    >>> print(fragment((128, 128, 64), (2, 2)))
    ((2,4),((2,1),8)):((2,4),((1,16),16))
    """
    (bm, bn, _), (down, along) = tile, warps
    rows, runs = bm // (16 * down), bn // (8 * along * permuted_mma)
    shape = ((2, rows), ((2, permuted_mma), runs))
    return Layout(shape, ((2, 4), ((1, 4 * rows), 4 * rows * permuted_mma)))


def permutation_n(bn: int, warps: Warps, permuted_mma: int) -> Layout:
    """Column of C → line of B in shared memory where mma reads it.

    CuTe's `permutation_mnk` holds the inverse, line → column.

    >>> print(permutation_n(256, (2, 4), 4))
    (2,4,4,4,2):(1,32,2,8,128)
    """
    across = 8 * warps[1]
    runs = bn // (permuted_mma * across)
    return Layout((2, permuted_mma, 4, warps[1], runs), (1, across, 2, 8, permuted_mma * across))


def permuted_b(mma_smem: ComposedLayout, warps: Warps, permuted_mma: int) -> ComposedLayout:
    """B in shared memory, (lines, BK) → element, as (BN, BK) → element."""
    if permuted_mma == 1:
        return mma_smem
    return composition(mma_smem, (permutation_n(size(mma_smem[0]), warps, permuted_mma), None))
