"""What mma.m16n8 leaves in the registers: who holds what of C, and of which lines of B."""

from __future__ import annotations

from typing import TypeAlias

from cutedsl_gemm.kernels.plan.partition import TVLayout
from layouts import Layout

Tile: TypeAlias = tuple[int, int, int]  # (BM, BN, BK)
Warps: TypeAlias = tuple[int, int]  # along M, along N
Pair: TypeAlias = tuple[int, int]


def accumulator(tile: Tile, warps: Warps, run: int = 1) -> TVLayout:
    """What each thread holds of (BM, lines of B): mma.m16n8's accumulator, tiled by the warps.

    A lane has rows lane / 4 and the one 8 below, lines 2 * (lane % 4) and the next (PTX ISA, Matrix
    Fragments for mma.m16n8k16). The warps are side by side, and step over the tile together. Its
    values are counted `run` mma along N at a time.

    >>> held = accumulator((128, 128, 64), (2, 2))
    >>> print(held.rows, held.columns, sep="\\n")
    ((4,8,2,2),((2,4),((2,1),8))):((0,1,16,0),((8,32),((0,0),0)))
    ((4,8,2,2),((2,4),((2,1),8))):((2,0,0,8),((0,0),((1,16),16)))
    """
    across = 8 * warps[1]
    return _held(tile, warps, run, (2, 8), (1, across), run * across)


def result(tile: Tile, warps: Warps, run: int = 1) -> TVLayout:
    """What each thread holds of C (BM, BN): `run` mma along N give it 2 * run columns in a row.

    >>> print(result((128, 256, 64), (2, 4), 4).columns)
    ((4,8,2,4),((2,4),((2,4),2))):((8,0,0,32),((0,0),((1,2),128)))
    """
    return _held(tile, warps, run, (2 * run, 8 * run), (1, 2), run * 8 * warps[1])


def _held(tile: Tile, warps: Warps, run: int, threads: Pair, values: Pair, step: int) -> TVLayout:
    (bm, bn, _), (down, along) = tile, warps
    steps = bm // (16 * down), bn // (8 * along * run)
    shape = ((4, 8, down, along), ((2, steps[0]), ((2, run), steps[1])))
    lane, warp = threads
    rows = Layout(shape, ((0, 1, 16, 0), ((8, 16 * down), ((0, 0), 0))))
    columns = Layout(shape, ((lane, 0, 0, warp), ((0, 0), (values, step))))
    return TVLayout(rows, columns)


def fragment(tile: Tile, warps: Warps, run: int = 1) -> Layout:
    """Value of `accumulator`, and of `result` → accumulator register: rows of mma go first.

    >>> print(fragment((128, 128, 64), (2, 2)))
    ((2,4),((2,1),8)):((2,4),((1,16),16))
    """
    (bm, bn, _), (down, along) = tile, warps
    rows, runs = bm // (16 * down), bn // (8 * along * run)
    return Layout(((2, rows), ((2, run), runs)), ((2, 4), ((1, 4 * rows), 4 * rows * run)))


def lines(bn: int, warps: Warps, run: int) -> Layout:
    """Column of C → line of B in shared memory: where `accumulator` and `result` meet.

    >>> print(lines(256, (2, 4), 4))
    (2,4,4,4,2):(1,32,2,8,128)
    """
    across = 8 * warps[1]
    return Layout((2, run, 4, warps[1], bn // (run * across)), (1, across, 2, 8, run * across))
