"""Which plan serves a problem: the one that a model of the H100 expects to end first.

Blocks make their tiles in waves, one tile a multiprocessor at a time:

    time = launch + max(waves × (k-blocks × a k-block's time + a tile's), DRAM's time) + addition

A k-block takes as long as its flops do at the rate of its tile, a little less where part of the
multiprocessors rest, since power and L2 are shared, and never less than the latency of a wgmma.
Where K is divided, a second kernel adds. Every constant was fitted to measurements on an H100 SXM:
docs/performance, "The model".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from itertools import product
from typing import Any, TypeAlias, get_args

from cutedsl_gemm.kernels.plan.checks import PlanError
from cutedsl_gemm.kernels.plan.raster import Raster
from cutedsl_gemm.kernels.sm90.mainloop import Tile
from cutedsl_gemm.kernels.sm90.plan import Plan, cooperative, pingpong
from cutedsl_gemm.kernels.sm90.split_plan import SplitPlan, split
from cutedsl_gemm.problem import Problem
from layouts.hardware.descriptor import Major

AnySm90: TypeAlias = Plan | SplitPlan
Make: TypeAlias = Callable[..., AnySm90]  # pingpong, cooperative, split or single

SMS = 132  # of an H100 and an H200 SXM
PEAK = 6.9e12  # flops a second of one multiprocessor that has power and L2 for itself
DRAM = 3.1e12  # bytes a second
INFLOW = 80e9  # bytes a second that a multiprocessor takes from DRAM
LAUNCH = 2.7e-6  # seconds: launch to first wgmma, and last wgmma to the end of C's store
EARLY = 0.6e-6  # seconds of it that are saved where launches overlap (sm90/gemm.py)
SECOND = 0.9e-6  # seconds: the launch of the kernel that adds
ADDED = 4e12  # bytes a second that sums are written and read at, in L2
FEW_ROWS = 128  # for which B streams from DRAM past all multiprocessors
LATENCY = {64: 0.11e-6, 128: 0.16e-6}  # seconds of a k-block of BK, however few its flops


@dataclass(frozen=True)
class Way:
    """A way to make C: a plan but for dtype, majors and raster, and what it was seen to do."""

    make: Make
    tile: Tile
    rate: float  # flops a second where all multiprocessors multiply
    rest: float  # seconds of a tile beside its k-blocks
    splits: int = 1
    stream: float = 0.94  # of DRAM's rate, where few rows have B stream

    @property
    def name(self) -> str:
        """As a person would call it.

        >>> WAYS[0].name
        'pingpong 128×128×64'
        """
        over = f", K over {self.splits} blocks" if self.splits > 1 else ""
        return f"{self.make.__name__} {'×'.join(map(str, self.tile))}{over}"


def _ways() -> tuple[Way, ...]:
    take_turns = partial(Way, pingpong, rest=0.3e-6)
    share = partial(Way, cooperative, rest=1.55e-6)
    return (
        take_turns((128, 128, 64), 818e12),
        take_turns((128, 192, 64), 834e12),
        take_turns((64, 128, 64), 730e12, stream=1.0),
        take_turns((64, 128, 128), 713e12, stream=1.0),
        take_turns((64, 64, 64), 820e12, stream=0.92),
        take_turns((64, 64, 128), 670e12, stream=0.92),
        share((128, 256, 64), 853e12),
        share((256, 128, 64), 848e12),
        share((256, 192, 64), 858e12),
        *(Way(split, (128, 128, 64), 850e12, 0.3e-6, splits) for splits in (2, 3, 4, 6, 8)),
        *(
            Way(split, (128, 64, 64), 690e12, 0.3e-6, splits, stream=0.74)
            for splits in (2, 3, 4, 6, 8, 16)
        ),
    )


WAYS = _ways()


@dataclass(frozen=True)
class Estimate:
    """What the model expects of one way."""

    way: Way
    tiles: int
    waves: int
    busy: int  # multiprocessors that work in a full wave
    multiply: float  # seconds, all waves
    launch: float  # seconds
    memory: float  # seconds in which DRAM moves A, B and C once
    addition: float  # seconds in which sums are written, and added

    @property
    def seconds(self) -> float:
        """From launch to end."""
        return self.launch + max(self.multiply, self.memory) + self.addition


def estimate(m: int, n: int, k: int, way: Way) -> Estimate:
    """The time that the model expects.

    >>> found = estimate(4096, 4096, 4096, WAYS[6])
    >>> found.way.name, found.tiles, found.waves, found.busy, round(found.seconds * 1e6)
    ('cooperative 128×256×64', 512, 4, 128, 173)
    """
    bm, bn, bk = way.tile
    tiles = _ceil(m, bm) * _ceil(n, bn)
    blocks = tiles * way.splits
    waves = _ceil(blocks, SMS)
    busy = _ceil(blocks, waves)
    rate = min(PEAK, way.rate / SMS * math.sqrt(SMS / busy))
    block = max(2 * bm * bn * bk / rate, LATENCY[bk])
    moved = 2 * (m * k + k * n + m * n)
    sums = 2 * 4 * blocks * bm * bn if way.splits > 1 else 0  # bytes, written and read
    return Estimate(
        way,
        tiles,
        waves,
        busy,
        multiply=waves * (_ceil(_ceil(k, bk), way.splits) * block + way.rest),
        launch=LAUNCH - (EARLY if way.splits == 1 and 2 * blocks <= SMS else 0),
        memory=moved / min(DRAM * (way.stream if m <= FEW_ROWS else 1), busy * INFLOW),
        addition=SECOND + sums / ADDED if sums else 0.0,
    )


def ranking(m: int, n: int, k: int, make: Make | None = None) -> list[Estimate]:
    """All ways that serve, or those of one kind, the one expected to end first in front.

    Of equals, the first of `WAYS`. K is divided to fill one wave, and not where there are more: the
    sums would no longer lie in L2.
    """
    found = [estimate(m, n, k, way) for way in WAYS if make in (None, way.make)]
    if make is None:
        found = [each for each in found if each.way.splits == 1 or each.waves == 1]
    return sorted(found, key=lambda each: each.seconds)


def way_of(plan: AnySm90) -> Way | None:
    """The way by which a plan was made; None for one of a tile that the model does not know.

    >>> way_of(pingpong((128, 192, 64))) is WAYS[1], way_of(pingpong((192, 128, 64)))
    (True, None)
    """
    asked = (plan.tile, plan.splits, plan.schedule if plan.splits == 1 else split.__name__)
    found = (way for way in WAYS if (way.tile, way.splits, way.make.__name__) == asked)
    return next(found, None)


def choose(problem: Problem, tile: Tile | None = None) -> AnySm90:
    """The plan of the way that the model expects to end first; PlanError where `tile` cannot be.

    >>> from cutedsl_gemm.problem import Matrix
    >>> few = Problem(Matrix((512, 16384), (16384, 1)), Matrix((16384, 512), (1, 16384)), "float16")
    >>> choose(few).splits, choose(few, (128, 256, 64)).schedule
    (4, 'cooperative')
    """
    m, n, k = problem.mnk
    if tile is None:
        way = best(m, n, k)
        return planned(problem, way.make, way.tile, way.splits)
    tile = three_integers(tile)
    try:
        return planned(problem, pingpong, tile)
    except PlanError:
        if tile[0] * tile[1] <= 128 * 192 or tile[0] % 128:
            raise  # not for its size: no schedule helps
        return planned(problem, cooperative, tile)


def choose_among(make: Make, problem: Problem, tile: Tile | None = None) -> AnySm90:
    """The plan of one kind: `single`, `pingpong`, `cooperative` or `split`.

    >>> from cutedsl_gemm.problem import Matrix
    >>> matrix = Matrix((4096, 4096), (4096, 1))
    >>> square = Problem(matrix, matrix, "float16")
    >>> choose_among(pingpong, square).tile, choose_among(split, square, (128, 64, 64)).splits
    ((128, 128, 64), 2)
    """
    m, n, k = problem.mnk
    ranked = ranking(m, n, k, make)
    if tile is not None:
        tile = three_integers(tile)
        ranked = [found for found in ranked if found.way.tile == tile]
    if ranked:
        way = ranked[0].way
        return planned(problem, make, way.tile, way.splits)
    return planned(problem, make, tile or (128, 128, 64))


@lru_cache(maxsize=4096)
def best(m: int, n: int, k: int) -> Way:
    """The way that the model expects to end first.

    >>> [best(*mnk).name for mnk in ((8448, 9216, 1984), (1024, 1024, 1024), (6144, 6144, 6144))]
    ['pingpong 128×192×64', 'pingpong 64×128×64', 'cooperative 256×192×64']
    """
    return ranking(m, n, k)[0].way


def planned(
    problem: Problem,
    make: Make,
    tile: Tile,
    splits: int = 1,
    raster: Raster | None = None,
) -> AnySm90:
    """The checked plan of a way; where raster is None, with the one for the problem's extents.

    PlanError where its sums are more than 32 bits count.
    """
    m, n, k = problem.mnk
    raster = raster or best_raster(tile, k)
    plan = _plan(make, tile, problem.dtype, *problem.majors, splits, raster)
    if (room := plan.workspace(m, n)) >= 1 << 31:
        raise PlanError(
            f"C is {m} × {n}, and its sums over {splits} parts of K would take {room:,} elements; "
            "they must be fewer than 2^31: leave kernel away"
        )
    return plan


@cache
def _plan(
    make: Make,
    tile: Tile,
    dtype: str,
    a_major: Major,
    b_major: Major,
    splits: int,
    raster: Raster,
) -> AnySm90:
    how: dict[str, Any] = {}
    if splits > 1:
        how["splits"] = splits
    if make in (pingpong, cooperative):
        how["raster"] = raster
    if make is cooperative and tile[1] == 256:
        how["c_stages"] = 2  # they fit beside four stages
    return make(tile, dtype, a_major, b_major, **how)


def plans() -> list[AnySm90]:
    """Every plan that `choose` makes where no tile is asked for.

    >>> len(plans())
    224
    """
    kinds = product(("bfloat16", "float16"), get_args(Major), get_args(Major))
    return [
        _plan(way.make, way.tile, *kind, way.splits, raster)
        for kind in kinds
        for way in WAYS
        for raster in rasters(way.tile)[: 1 if way.splits > 1 else None]
    ]


def rasters(tile: Tile) -> tuple[Raster, ...]:
    """Those that `best_raster` may take for a tile."""
    return (Raster(4),) if _small(tile) else (Raster(1), Raster(4), Raster(8))


def _small(tile: Tile) -> bool:
    return tile[0] * tile[1] <= 128 * 128


def best_raster(tile: Tile, k: int) -> Raster:
    """The order of tiles: while a wave runs, its panels of A and B must stay in L2.

    Groups of four make 4 × 4 tiles of the sixteen blocks of a GPC (docs/performance).
    """
    if _small(tile):
        return Raster(4)
    return Raster(1 if k <= 256 else 4 if k <= 1024 else 8)


def _ceil(whole: int, part: int) -> int:
    return -(-whole // part)


def three_integers(tile: object) -> Tile:
    """`tile`, or PlanError where it is none."""
    if isinstance(tile, tuple) and len(tile) == 3:
        m, n, k = tile
        if type(m) is type(n) is type(k) is int:  # 0.1 µs: gemm asks at every call with a tile
            return m, n, k
    raise PlanError(
        f"tile is {tile!r}: it must be a tuple of three integers (BM, BN, BK), "
        "such as (128, 128, 64)"
    )
