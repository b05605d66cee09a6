"""Which plan serves a problem: the tile by waves, the raster by depth.

A persistent grid computes its tiles in waves, one tile an SM. A tile that leaves the last wave half
empty wastes it, so that the time goes with waves × tile area ÷ rate, where the rate is how fast a
tile of this shape runs when all SMs are busy. Constants: docs/performance.
"""

from __future__ import annotations

from functools import lru_cache

from cutedsl_gemm.kernels.plan import PlanError
from cutedsl_gemm.kernels.sm90.plan import Plan, pingpong
from cutedsl_gemm.problem import Problem
from layouts.descriptor import Major

Tile = tuple[int, int, int]

# Flops a second in full waves, against 128×128.
RATES: dict[Tile, float] = {(128, 192, 64): 1.05, (128, 128, 64): 1.0, (64, 128, 64): 0.83}
SMS = 132  # of an H100 and an H200


def choose(problem: Problem, tile: Tile | None = None) -> Plan:
    """The plan for a problem; PlanError where `tile` cannot be."""
    m, n, k = problem.mnk
    tile = best_tile(m, n) if tile is None else _three_integers(tile)
    a_major: Major = "K" if problem.a.row_major else "MN"
    b_major: Major = "MN" if problem.b.row_major else "K"
    return _plan(tile, problem.dtype, a_major, b_major, best_group(tile, k))


def best_tile(m: int, n: int) -> Tile:
    """The tile whose waves take the shortest time.

    >>> best_tile(8448, 9216), best_tile(2048, 2048), best_tile(1024, 1024)
    ((128, 192, 64), (128, 128, 64), (64, 128, 64))
    """

    def time(tile: Tile) -> float:
        bm, bn, _ = tile
        waves = -(-(-(-m // bm) * -(-n // bn)) // SMS)
        return waves * bm * bn / RATES[tile]

    return min(RATES, key=time)


def best_group(tile: Tile, k: int) -> int:
    """Rows of tiles in a group of the raster: while a wave runs, its panels must stay in L2."""
    if tile[1] < 192:
        return 4
    return 1 if k <= 256 else 4 if k <= 1024 else 8


_plan = lru_cache(maxsize=None)(pingpong)


def _three_integers(tile: object) -> Tile:
    if isinstance(tile, tuple) and len(tile) == 3 and all(type(extent) is int for extent in tile):
        return tile
    raise PlanError(
        f"tile is {tile!r}: it must be a tuple of three integers (BM, BN, BK), "
        "such as (128, 128, 64)"
    )
