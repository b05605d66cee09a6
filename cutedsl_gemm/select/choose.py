"""The choice of a plan for Hopper: the candidate that the model expects to be fastest.

`registry.default_kernel` names the kernel for older GPUs. `gemm(…, tune=True)` measures instead
(tune.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter, index
from typing import Any

from cutedsl_gemm.inputs.problem import Problem
from cutedsl_gemm.kernels.epilogue.expression import PLAIN
from cutedsl_gemm.kernels.plan.checks import PlanError
from cutedsl_gemm.kernels.sm90.operand import Tile
from cutedsl_gemm.kernels.sm90.plan import Sm90Plan
from cutedsl_gemm.kernels.sm90.rungs import cooperative, pingpong
from cutedsl_gemm.select.candidate import Candidate, Maker, candidates_for
from cutedsl_gemm.select.model import best, estimates, ranking
from layouts.errors import brief


def choose(problem: Problem, tile: Tile | None = None) -> Sm90Plan:
    """The plan that the model expects to be fastest.

    A given tile gets pingpong, or cooperative if it is too large for one consumer. `gemm` runs the
    plan on Hopper where no kernel is named. PlanError if no plan has this tile.

    >>> few = Problem.dense(512, 512, 16384, "float16")
    >>> choose(few).splits, choose(few, (128, 256, 64)).schedule
    (4, 'cooperative')
    """
    if tile is None:
        if problem.epilogue is PLAIN:
            return best(problem).plan(problem)
        return first_plan(problem, [found.candidate for found in ranking(problem)])
    tile = checked_tile(tile)
    try:
        return Candidate(pingpong, tile).plan(problem)
    except PlanError:
        if tile[0] * tile[1] <= 128 * 192 or tile[0] < 128:
            raise  # the size is not the reason: no schedule helps
        return Candidate(cooperative, tile).plan(problem)


def choose_among(maker: Maker, problem: Problem, tile: Tile | None = None) -> Sm90Plan:
    """The best plan of one maker: `single`, `pingpong`, `cooperative` or `split`.

    >>> from cutedsl_gemm.kernels.sm90.rungs import split
    >>> square = Problem.dense(4096, 4096, 4096, "float16")
    >>> choose_among(pingpong, square).tile, choose_among(split, square, (128, 64, 64)).splits
    ((128, 176, 64), 2)
    """
    tile = None if tile is None else checked_tile(tile)
    made = (each for each in candidates_for(problem) if each.maker is maker)
    of_tile = (each for each in made if tile in (None, each.tile))
    served = tuple(each for each in of_tile if each.serves(problem.majors, problem.invariant))
    if not served:
        return Candidate(maker, tile or (128, 128, 64)).plan(problem)
    ranked = sorted(estimates(problem, served), key=attrgetter("seconds"))
    return first_plan(problem, [found.candidate for found in ranked])


def first_plan(problem: Problem, candidates: Iterable[Candidate]) -> Sm90Plan:
    """The plan of the first candidate; with an epilogue, of the first that takes it.

    PlanError of the first candidate if there is none.
    """
    reasons = []
    for candidate in candidates:
        try:
            return candidate.plan(problem)
        except PlanError as reason:
            reasons.append(reason)
            if problem.epilogue is PLAIN:
                break
    raise reasons[0]


def checked_tile(tile: Any) -> Tile:
    """`tile` as a tuple of three ints; PlanError unless it is a sequence of three integers.

    >>> checked_tile([128, 128, 64])
    (128, 128, 64)
    """
    if type(tile) is tuple and len(tile) == 3:
        m, n, k = tile
        if type(m) is type(n) is type(k) is int:  # 0.1 µs: every call with a tile comes here
            return tile
    try:
        m, n, k = (index(tile[i]) for i in range(3 if len(tile) == 3 else 0))
    except (LookupError, TypeError, ValueError):
        raise PlanError(
            f"tile is {brief(tile)}: it must be three integers (BM, BN, BK), such as (128, 128, 64)"
        ) from None
    return m, n, k
