"""The choice of a plan: a model of the H100 ranks the candidates, and the fastest one serves.

Blocks compute tiles of C in waves, one tile a multiprocessor at a time:

    time = launch + max(waves × (k-tiles × k-tile time + tile overhead), DRAM time) + reduction

A k-tile takes its flops over the rate of its tile. The rate is a little higher where some of the
multiprocessors idle, since power and L2 are shared. A k-tile never takes less than the latency of
its wgmmas. Where K is split, a second kernel adds the partial sums. Every constant was fitted to
measurements on an H100 SXM: docs/performance/notebook.md, "The model".
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
from cutedsl_gemm.kernels.sm90.operand import Tile
from cutedsl_gemm.kernels.sm90.plan import Sm90Plan
from cutedsl_gemm.kernels.sm90.rungs import cooperative, pingpong, split
from cutedsl_gemm.problem import Problem
from layouts.hardware.descriptor import Major

Maker: TypeAlias = Callable[..., Sm90Plan]  # pingpong, cooperative, split or single

SMS = 132  # multiprocessors of an H100 SXM and an H200 SXM
SM_PEAK = 6.9e12  # flops a second of one multiprocessor that has power and L2 for itself
DRAM = 3.1e12  # bytes a second
SM_DRAM = 80e9  # bytes a second that one multiprocessor reads from DRAM
LAUNCH = 2.7e-6  # seconds: launch to first wgmma, and last wgmma to the end of C's store
OVERLAP = 0.6e-6  # seconds of LAUNCH that overlapping launches save (kernels/sm90/mainloop.py)
REDUCTION_LAUNCH = 0.9e-6  # seconds: the launch of the kernel that adds partial sums
REDUCTION_RATE = 4e12  # bytes a second at which partial sums are written to and read from L2
FEW_ROWS = 128  # rows of A up to which B streams from DRAM through all multiprocessors
K_TILE_LATENCY = {64: 0.11e-6, 128: 0.16e-6}  # BK → the least seconds of a k-tile


@dataclass(frozen=True)
class Candidate:
    """A candidate plan: everything of a plan but its dtype, majors and raster."""

    maker: Maker
    tile: Tile
    splits: int = 1  # blocks that split K
    cluster: tuple[int, int] = (1, 1)  # tiles (down, across) that share B, A by multicast

    @property
    def name(self) -> str:
        """The name in `explain` and in the tuner's file.

        >>> Candidate(split, (128, 128, 64), 8).name
        'split 128×128×64, K over 8 blocks'
        """
        over = f", K over {self.splits} blocks" if self.splits > 1 else ""
        down, across = self.cluster
        cluster = f", cluster {down}×{across}" if down * across > 1 else ""
        return f"{self.maker.__name__} {'×'.join(map(str, self.tile))}{over}{cluster}"

    @property
    def rasters(self) -> tuple[Raster, ...]:
        """Every raster that `raster` returns."""
        if self.splits > 1:
            return (Raster(1),)
        return (Raster(4),) if self._small else (Raster(1), Raster(4), Raster(8))

    def raster(self, k: int) -> Raster:
        """The raster for a depth of K: while a wave runs, its panels of A and B must stay in L2.

        Groups of four make 4 × 4 tiles of the sixteen blocks of a GPC (docs/performance).
        """
        if self.splits > 1:
            return Raster(1)
        if self._small:
            return Raster(4)
        return Raster(1 if k <= 256 else 4 if k <= 1024 else 8)

    @property
    def _small(self) -> bool:
        return self.tile[0] * self.tile[1] <= 128 * 128

    def plan(self, problem: Problem, raster: Raster | None = None) -> Sm90Plan:
        """The checked plan for a problem; `raster` defaults to the one for the problem's K.

        PlanError if the plan cannot exist, or needs a workspace of 2^31 elements or more.
        """
        m, n, k = problem.mnk
        plan = _plan(self, raster or self.raster(k), problem.dtype, *problem.majors)
        if (elements := plan.workspace(m, n)) >= 1 << 31:
            raise PlanError(
                f"C is {m} × {n}: the partial sums of {plan.splits} parts of K take "
                f"{elements:,} elements; they must be fewer than 2^31; omit `kernel`"
            )
        return plan


@cache
def _plan(
    candidate: Candidate, raster: Raster, dtype: str, a_major: Major, b_major: Major
) -> Sm90Plan:
    maker, tile = candidate.maker, candidate.tile
    options: dict[str, Any] = {}
    if candidate.splits > 1:
        options["splits"] = candidate.splits
    if maker in (pingpong, cooperative):
        options |= {"raster": raster, "cluster": candidate.cluster}
    if maker is cooperative and tile[1] == 256:
        options["c_stages"] = 2  # they fit beside four stages
    return maker(tile, dtype, a_major, b_major, **options)


@dataclass(frozen=True)
class Fit:
    """The fitted constants of a candidate."""

    rate: float  # flops a second while all multiprocessors multiply
    tile_overhead: float  # seconds of a tile outside its main loop
    dram_share: float = 0.94  # share of DRAM's rate that B reaches where A has few rows


def _candidates() -> dict[Candidate, Fit]:
    overlapped = partial(Fit, tile_overhead=0.3e-6)  # the other consumer multiplies meanwhile
    exposed = partial(Fit, tile_overhead=1.55e-6)
    return {
        Candidate(pingpong, (128, 128, 64)): overlapped(818e12),
        Candidate(pingpong, (128, 192, 64)): overlapped(834e12),
        Candidate(pingpong, (64, 128, 64)): overlapped(730e12, dram_share=1.0),
        Candidate(pingpong, (64, 128, 128)): overlapped(713e12, dram_share=1.0),
        Candidate(pingpong, (64, 64, 64)): overlapped(820e12, dram_share=0.92),
        Candidate(pingpong, (64, 64, 128)): overlapped(670e12, dram_share=0.92),
        Candidate(cooperative, (128, 256, 64)): exposed(853e12),
        Candidate(cooperative, (256, 128, 64)): exposed(848e12),
        Candidate(cooperative, (256, 192, 64)): exposed(858e12),
        **{
            Candidate(split, (128, 128, 64), splits): overlapped(850e12)
            for splits in (2, 3, 4, 6, 8)
        },
        **{
            Candidate(split, (128, 64, 64), splits): overlapped(690e12, dram_share=0.74)
            for splits in (2, 3, 4, 6, 8, 16)
        },
    }


CANDIDATES = _candidates()


@dataclass(frozen=True)
class Estimate:
    """The model's expectation of one candidate."""

    candidate: Candidate
    tiles: int
    waves: int
    busy_sms: int  # multiprocessors that work in a full wave
    launch: float  # seconds
    mainloop: float  # seconds of all waves, tile overheads included
    dram: float  # seconds in which DRAM moves A, B and C once
    reduction: float  # seconds in which partial sums are written and added; 0 if K is whole

    @property
    def seconds(self) -> float:
        """From launch to end."""
        return self.launch + max(self.mainloop, self.dram) + self.reduction


def estimate(m: int, n: int, k: int, candidate: Candidate) -> Estimate:
    """The expected time of a candidate of `CANDIDATES`.

    >>> found = estimate(4096, 4096, 4096, Candidate(cooperative, (128, 256, 64)))
    >>> found.tiles, found.waves, found.busy_sms, round(found.seconds * 1e6)
    (512, 4, 128, 173)
    """
    fit, (bm, bn, bk), splits = CANDIDATES[candidate], candidate.tile, candidate.splits
    tiles = _ceil_div(m, bm) * _ceil_div(n, bn)
    blocks = tiles * splits
    waves = _ceil_div(blocks, SMS)
    busy_sms = _ceil_div(blocks, waves)
    rate = min(SM_PEAK, fit.rate / SMS * math.sqrt(SMS / busy_sms))
    k_tile = max(2 * bm * bn * bk / rate, K_TILE_LATENCY[bk])
    moved = 2 * (m * k + k * n + m * n)  # bytes
    summed = 2 * 4 * blocks * bm * bn if splits > 1 else 0  # bytes, written and read
    return Estimate(
        candidate,
        tiles,
        waves,
        busy_sms,
        launch=LAUNCH - (OVERLAP if splits == 1 and 2 * blocks <= SMS else 0),
        mainloop=waves * (_ceil_div(_ceil_div(k, bk), splits) * k_tile + fit.tile_overhead),
        dram=moved / min(DRAM * (fit.dram_share if m <= FEW_ROWS else 1), busy_sms * SM_DRAM),
        reduction=REDUCTION_LAUNCH + summed / REDUCTION_RATE if summed else 0.0,
    )


def ranking(m: int, n: int, k: int, maker: Maker | None = None) -> list[Estimate]:
    """The estimates of all candidates, or of one maker's, the fastest first.

    Equal candidates keep the order of `CANDIDATES`. Without a maker, K is split only to fill a
    single wave: the partial sums of several waves no longer fit in L2.
    """
    found = [
        estimate(m, n, k, candidate) for candidate in CANDIDATES if maker in (None, candidate.maker)
    ]
    if maker is None:
        found = [each for each in found if each.candidate.splits == 1 or each.waves == 1]
    return sorted(found, key=lambda each: each.seconds)


@lru_cache(maxsize=4096)
def best(m: int, n: int, k: int) -> Candidate:
    """The candidate that the model expects to be fastest.

    >>> [best(*mnk).name for mnk in ((8448, 9216, 1984), (1024, 1024, 1024), (6144, 6144, 6144))]
    ['pingpong 128×192×64', 'pingpong 64×128×64', 'cooperative 256×192×64']
    """
    return ranking(m, n, k)[0].candidate


def choose(problem: Problem, tile: Tile | None = None) -> Sm90Plan:
    """The plan of the best candidate, or of the best schedule for a given tile.

    PlanError if no plan has this tile.

    >>> from cutedsl_gemm.problem import Matrix
    >>> few = Problem(Matrix((512, 16384), (16384, 1)), Matrix((16384, 512), (1, 16384)), "float16")
    >>> choose(few).splits, choose(few, (128, 256, 64)).schedule
    (4, 'cooperative')
    """
    if tile is None:
        return best(*problem.mnk).plan(problem)
    tile = checked_tile(tile)
    try:
        return Candidate(pingpong, tile).plan(problem)
    except PlanError:
        if tile[0] * tile[1] <= 128 * 192 or tile[0] % 128:
            raise  # the size is not the reason: no schedule helps
        return Candidate(cooperative, tile).plan(problem)


def choose_among(maker: Maker, problem: Problem, tile: Tile | None = None) -> Sm90Plan:
    """The best plan of one maker: `single`, `pingpong`, `cooperative` or `split`.

    >>> from cutedsl_gemm.problem import Matrix
    >>> matrix = Matrix((4096, 4096), (4096, 1))
    >>> square = Problem(matrix, matrix, "float16")
    >>> choose_among(pingpong, square).tile, choose_among(split, square, (128, 64, 64)).splits
    ((128, 128, 64), 2)
    """
    ranked = [found.candidate for found in ranking(*problem.mnk, maker)]
    if tile is not None:
        tile = checked_tile(tile)
        ranked = [candidate for candidate in ranked if candidate.tile == tile]
    first = ranked[0] if ranked else Candidate(maker, tile or (128, 128, 64))
    return first.plan(problem)


def candidate_of(plan: Sm90Plan) -> Candidate | None:
    """The candidate that makes a plan; None if the model has no constants for it.

    >>> candidate_of(pingpong((128, 192, 64))).name, candidate_of(pingpong((192, 128, 64)))
    ('pingpong 128×192×64', None)
    """
    kind = plan.schedule if plan.splits == 1 else split.__name__
    same = (plan.tile, plan.splits, plan.cluster)
    found = (each for each in CANDIDATES if (each.tile, each.splits, each.cluster) == same)
    return next((each for each in found if each.maker.__name__ == kind), None)


def plans() -> list[Sm90Plan]:
    """Every plan that `choose` returns without a tile.

    >>> len(plans())
    224
    """
    kinds = product(("bfloat16", "float16"), get_args(Major), get_args(Major))
    return [
        _plan(candidate, raster, *kind)
        for kind in kinds
        for candidate in CANDIDATES
        for raster in candidate.rasters
    ]


def checked_tile(tile: object) -> Tile:
    """`tile`; PlanError unless it is a tuple of three ints."""
    if isinstance(tile, tuple) and len(tile) == 3:
        m, n, k = tile
        if type(m) is type(n) is type(k) is int:  # 0.1 µs: every call with a tile comes here
            return m, n, k
    raise PlanError(
        f"tile is {tile!r}: it must be a tuple of three integers (BM, BN, BK), "
        "such as (128, 128, 64)"
    )


def _ceil_div(whole: int, part: int) -> int:
    return -(-whole // part)
