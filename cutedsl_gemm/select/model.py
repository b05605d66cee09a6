"""A model of the H100: the expected time of a candidate plan for a problem.

Blocks compute tiles of C in waves, one tile a multiprocessor at a time:

    time = launch + (main loops⁴ + DRAM⁴)^¼ + last epilogue + reduction

A k-tile takes the longest of three times:

    tensor core    its flops, slower where more multiprocessors share the power
    shared memory  what TMA writes and wgmma reads there; at least the latency of wgmma
    L2             what the loads of all multiprocessors ask of it

L2 serves all blocks of a GPC at once if they ask for the same line at the same time. Rows of 128
bytes that start off 128-byte lines touch two lines each. Those at odd multiples of 16 bytes are
mostly served to one block at a time: clusters, whose blocks share loads by multicast, ask for less.
A TMA box with rows beyond the edge of the matrix is slow. Where K is split, a second kernel adds
the partial sums.

Every constant was fitted to measurements on an H100 SXM: docs/performance/notebook.md, "The model".
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache, lru_cache
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

from cutedsl_gemm.kernels.sm90.epilogue_plan import panel_columns
from cutedsl_gemm.kernels.sm90.operand import Tile
from cutedsl_gemm.kernels.sm90.rungs import pingpong
from cutedsl_gemm.problem import Problem
from cutedsl_gemm.select.candidate import CANDIDATES, Candidate, depth

SMS = 132  # multiprocessors of an H100 SXM and an H200 SXM
# Blocks that run at once, by the size of their cluster (kernels/device/occupancy.py).
BLOCKS_AT_ONCE = {1: SMS, 2: SMS, 4: 120, 8: 120}
SM_RATE = 5.97e12  # flops a second of a multiprocessor while all multiply
POWER = 0.25  # a multiprocessor is slower by this power of the share that is busy
SMEM = 238e9  # bytes a second of a multiprocessor's shared memory
K_TILE_LATENCY = 0.173e-6  # seconds
L2 = 8.42e12  # bytes a second
GPC = 16  # multiprocessors of a GPC; consecutive blocks run there
# By alignment of rows in bytes: what L2 serves for each row that the blocks of a GPC need, to all
# of them together and to each of them, in rows.
SERVED = {128: (1.01, 0.43), 64: (1.12, 0.63), 32: (1.12, 0.72), 16: (0.40, 1.41)}
IN_STEP = SERVED | {128: (1.60, 0.05)}  # in a single wave
MISSING_ROW = 22e-12  # seconds that a row beyond the edge adds to all boxes of 64 columns
DRAM = 3.1e12  # bytes a second
KEPT = 16e6  # bytes of A, B and C that L2 keeps from launch to launch
SM_DRAM = 120e9  # bytes a second that one multiprocessor reads from DRAM
LAUNCH = 2.44e-6  # seconds: launch to first load, and last store to the end
OVERLAP = 0.72e-6  # seconds of LAUNCH that overlapping launches save (kernels/sm90/mainloop.py)
FILL = 0.24e-6  # seconds until the first k-tile of a tile has arrived
CLUSTER_LAUNCH, CLUSTER_FILL = 1.42e-6, 0.23e-6  # seconds that a cluster adds to LAUNCH and FILL
STORE, NARROW_STORE = 39e9, 30e9  # bytes of C a second of a multiprocessor; in rows of 32 bytes
NARROW_WRITE = 1.70e12  # bytes of C a second that DRAM takes in rows of 32 bytes
REDUCTION_LAUNCH = 0.60e-6  # seconds: the launch of the kernel that adds partial sums
REDUCTION_RATE = 4.9e12  # bytes a second at which partial sums are written to and read from L2


class Estimate(NamedTuple):
    """The model's expectation of one candidate."""

    candidate: Candidate
    seconds: float  # from launch to end
    tiles: int
    waves: int
    busy_sms: int  # multiprocessors that work in a full wave
    tensor_core: float  # seconds of a k-tile; the longest of the three decides
    smem: float
    l2: float
    launch: float  # seconds
    mainloop: float  # seconds of all waves, with the epilogues between them
    dram: float  # seconds in which DRAM moves what L2 does not keep of A, B and C
    epilogue: float  # seconds of the last epilogue
    reduction: float  # seconds in which partial sums are added; 0 if K is whole

    @property
    def k_tile(self) -> dict[str, float]:
        """Seconds of a k-tile, if each of these decided."""
        return {"tensor core": self.tensor_core, "shared memory": self.smem, "L2": self.l2}

    @property
    def bound(self) -> str:
        """What decides the time.

        >>> square, askew = (Problem.dense(4096, 4096, k) for k in (4096, 4104))
        >>> [estimate(each, Candidate(pingpong, (128, 192, 64))).bound for each in (square, askew)]
        ['tensor core', 'L2']
        """
        if self.dram > self.mainloop:
            return "DRAM"
        return max(self.k_tile, key=lambda name: self.k_tile[name])


class _Constants(NamedTuple):
    """What the model needs of a candidate; times in seconds."""

    candidate: Candidate
    splits: int
    swapped: bool  # M and N are then those of Cᵀ
    step: Tile  # M, N and K that a cluster computes in a k-tile, with all splits
    blocks: int  # of a cluster, with all splits
    sms: int  # multiprocessors that its clusters fill at once
    tensor_core: float  # of a k-tile, if one multiprocessor is busy
    smem: float  # of a k-tile
    fill: float
    epilogue: float
    launch: float
    groups: tuple[int, ...]  # tile rows of a raster group, by depth of K
    write: float  # bytes of C a second
    overlaps: bool  # pingpong: one consumer stores while the other multiplies


@cache
def _constants(candidate: Candidate) -> _Constants:
    (bm, bn, bk), splits, (down, across) = candidate.tile, candidate.splits, candidate.cluster
    clustered = down * across > 1
    # Bytes that TMA writes and wgmma reads: B once for each 64 rows of A.
    moved = 2 * bk * (bm + bn) + 2 * bk * (bm + bm // 64 * bn)
    narrow = splits == 1 and not candidate.swapped and panel_columns(bn) == 16
    return _Constants(
        candidate,
        splits,
        candidate.swapped,
        (bm * down, bn * across, bk * splits),
        down * across * splits,
        BLOCKS_AT_ONCE[down * across],
        2 * bm * bn * bk / SM_RATE / SMS**POWER,
        max(moved / SMEM, K_TILE_LATENCY),
        FILL + clustered * CLUSTER_FILL,
        2 * bm * bn / (NARROW_STORE if narrow else STORE),
        LAUNCH + clustered * CLUSTER_LAUNCH,
        tuple(raster.group for raster in candidate.rasters),
        NARROW_WRITE if narrow else DRAM,
        candidate.maker is pingpong,
    )


def estimate(problem: Problem, candidate: Candidate) -> Estimate:
    """The expected time of a candidate.

    >>> from cutedsl_gemm.kernels.sm90.rungs import cooperative
    >>> found = estimate(Problem.dense(4096, 4096, 4096), Candidate(cooperative, (128, 256, 64)))
    >>> found.candidate.name, found.tiles, found.waves, round(found.seconds * 1e6)
    ('cooperative 128×256×64', 512, 4, 189)
    """
    key = _key(candidate.as_planned(problem))
    return Estimate(candidate, *_seconds(key, _constants(candidate)))


def ranking(problem: Problem, candidates: Iterable[Candidate] = CANDIDATES) -> list[Estimate]:
    """The estimates of the candidates that may serve, the fastest first; ties keep their order.

    K is split only to fill a single wave: the partial sums of several waves do not fit in L2. It is
    not split if the problem is invariant.
    """

    def serves(found: Estimate) -> bool:
        return found.candidate.splits == 1 or (found.waves == 1 and not problem.invariant)

    found = (estimate(problem, candidate) for candidate in candidates)
    return sorted(filter(serves, found), key=attrgetter("seconds"))


def best(problem: Problem) -> Candidate:
    """The first candidate of `ranking`, remembered.

    >>> [best(Problem.dense(*mnk)).name for mnk in ((2048, 2048, 2048), (2048, 2048, 2056))]
    ['pingpong 128×128×64', 'cooperative 128×256×64, cluster 2×1']
    """
    return _best(_key(problem), problem.invariant)


Key: TypeAlias = tuple[int, int, int, int, int]  # M, N, K, alignments of the rows of A and B


def _key(problem: Problem) -> Key:
    return *problem.mnk, problem.a.row_alignment, problem.b.row_alignment


@lru_cache(maxsize=4096)
def _best(key: Key, invariant: bool) -> Candidate:
    """A few estimates suffice: in the order of what the main loops alone take at least."""
    m, n, k, a_alignment, b_alignment = key
    keys = key, (n, m, k, b_alignment, a_alignment)  # of C, and of Cᵀ
    least: list[tuple[float, int]] = []
    for number, swapped, steps, blocks, sms, tensor_core, smem, fill, fixed, splits in _BOUNDS:
        rows, columns = (n, m) if swapped else (m, n)
        step_m, step_n, step_k = steps
        blocks *= -(-rows // step_m) * -(-columns // step_n)
        waves = -(-blocks // sms)
        if splits == 1 or (waves == 1 and not invariant):
            k_tile = tensor_core * (blocks / waves) ** POWER
            k_tile = k_tile if k_tile > smem else smem  # max() takes twice as long
            least.append((fixed + waves * (-(-k // step_k) * k_tile + fill), number))
    least.sort()
    fastest = math.inf, 0
    for bound, number in least:
        if bound > fastest[0]:
            break
        of = _ALL[number]
        fastest = min(fastest, (_seconds(keys[of.swapped], of)[0], number))
    return CANDIDATES[fastest[1]]


_ALL = [_constants(candidate) for candidate in CANDIDATES]
_BOUNDS = [
    (number, of.swapped, of.step, of.blocks, of.sms, of.tensor_core, of.smem, of.fill)
    + (of.launch - OVERLAP + of.epilogue, of.splits)
    for number, of in enumerate(_ALL)
]


def _seconds(key: Key, of: _Constants) -> tuple[Any, ...]:
    """The fields of an Estimate but the candidate, for a problem whose C is the plan's."""
    m, n, k, a_alignment, b_alignment = key
    (bm, bn, bk), (down, across) = of.candidate.tile, of.candidate.cluster
    step_m, step_n, step_k = of.step
    rows, columns = -(-m // step_m) * down, -(-n // step_n) * across  # tiles of whole clusters
    tiles = rows * columns
    waves = -(-tiles * of.splits // of.sms)
    busy = -(-tiles * of.splits // waves)
    k_tiles = -(-k // step_k)

    together = min(GPC, tiles)  # blocks of a GPC: they compute high × wide tiles
    wide = min(together / min(of.groups[depth(k)], rows, together), columns)
    high = min(together / wide, rows)
    served = IN_STEP if waves == 1 else SERVED
    (a_once, a_each), (b_once, b_each) = served[a_alignment], served[b_alignment]
    once = (a_once * min(high * bm, m) + b_once * min(wide * bn, n)) / together
    each = a_each * min(bm, m) / across + b_each * min(bn, n) / down
    l2 = 2 * bk * (once + each) * busy / L2

    tensor_core = of.tensor_core * busy**POWER
    first = of.fill + k_tiles * max(tensor_core, of.smem, l2)
    if of.overlaps:
        mainloop = max(waves * first, waves / 2 * (first + of.epilogue) - of.epilogue)
    else:
        mainloop = waves * (first + of.epilogue) - of.epilogue
    # the last tile row and column: one wave has them, or one wave in `rows`
    tile_rows, tile_columns = -(-m // bm), -(-n // bn)
    missing = (bm - m / tile_rows) * max(1, waves / tile_rows) / across
    missing += (bn - n / tile_columns) * max(1, waves / tile_columns) / down
    mainloop += k_tiles * bk / 64 * busy * missing * MISSING_ROW

    moved = max(0, 2 * (m * k + k * n + m * n) - KEPT)
    dram = max(moved / min(DRAM, SM_DRAM * busy), 2 * m * n / of.write)
    launch, reduction = of.launch, 0.0
    if of.splits > 1:  # partial sums of fp32, written and read
        reduction = REDUCTION_LAUNCH + 2 * 4 * tiles * of.splits * bm * bn / REDUCTION_RATE
    elif 2 * tiles <= SMS and of.blocks == 1:
        launch -= OVERLAP
    # Main loops and DRAM hinder each other where they take equally long.
    seconds = launch + math.sqrt(math.hypot(mainloop**2, dram**2)) + of.epilogue + reduction
    shape = tiles, waves, busy
    k_tile = tensor_core, of.smem, l2
    return seconds, *shape, *k_tile, launch, mainloop, dram, of.epilogue, reduction
