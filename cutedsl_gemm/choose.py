"""Which plan serves a problem."""

from __future__ import annotations

from functools import lru_cache

from cutedsl_gemm.kernels.plan import Plan, PlanError, pingpong
from cutedsl_gemm.problem import Problem
from layouts.descriptor import Major

TILE = (128, 128, 64)
# K up to which C's bytes rule and N runs fastest; beyond, a wave's panels must stay in L2
# (docs/performance).
SHALLOW = 384


def choose(problem: Problem, tile: tuple[int, int, int] | None = None) -> Plan:
    """The plan for a problem; PlanError where `tile` cannot be."""
    tile = TILE if tile is None else _three_integers(tile)
    a_major: Major = "K" if problem.a.row_major else "MN"
    b_major: Major = "MN" if problem.b.row_major else "K"
    group = 1 if problem.mnk[2] <= SHALLOW else 4
    return _plan(tile, problem.dtype, a_major, b_major, group)


_plan = lru_cache(maxsize=None)(pingpong)


def _three_integers(tile: object) -> tuple[int, int, int]:
    if isinstance(tile, tuple) and len(tile) == 3 and all(type(extent) is int for extent in tile):
        return tile
    raise PlanError(
        f"tile is {tile!r}: it must be a tuple of three integers (BM, BN, BK), such as {TILE}"
    )
