"""A model of the H100: the expected time of a candidate plan for a problem.

Blocks compute tiles of C in waves, one tile a multiprocessor at a time:

    time = launch + (main loops⁴ + DRAM⁴)^¼ + last epilogue + reduction

A k-tile takes about the longest of four times:

    tensor core    its flops
    shared memory  what TMA writes and wgmma reads there
    latency        from one wgmma to the next
    L2             what the loads of all multiprocessors ask of it

L2 serves all blocks of a GPC at once if they ask for the same line at the same time, as the blocks
of a single wave mostly do. Rows of 128 bytes that start off 128-byte lines touch two lines each.
Those at odd multiples of 16 bytes are mostly served to one block at a time: clusters, whose blocks
share loads by multicast, ask for less. A TMA box with rows beyond the edge of the matrix is slow.
Where K is split, a second kernel adds the partial sums.

`bench/fit_model.py` fits the constants to measurements on an H100 SXM:
docs/performance/notebook.md, "The model". All candidates are estimated at once, as arrays.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cutedsl_gemm.kernels.epilogue.cost import cost
from cutedsl_gemm.kernels.epilogue.expression import PLAIN
from cutedsl_gemm.kernels.plan.checks import PlanError
from cutedsl_gemm.kernels.sm90.epilogue_plan import panel_columns
from cutedsl_gemm.kernels.sm90.rungs import pingpong
from cutedsl_gemm.problem import Problem
from cutedsl_gemm.select.candidate import CANDIDATES, Candidate, candidates_for, depth
from layouts.hardware.facts import WARPGROUP

SMS = 132  # multiprocessors of an H100 SXM and an H200 SXM
# Blocks that run at once, by the size of their cluster (kernels/device/occupancy.py).
BLOCKS_AT_ONCE = {1: SMS, 2: SMS, 4: 120, 8: 120}
GPC = 16  # multiprocessors of a GPC; consecutive blocks run there
DRAM = 3.1e12  # bytes a second, at most
ALIGNMENTS = 128, 64, 32, 16  # of rows, in bytes

Array: TypeAlias = NDArray[Any]


class Constants(NamedTuple):
    """What the fit decides. Times are in seconds; rates, if not of flops, in bytes a second.

    The tables have an entry for each of ALIGNMENTS: what L2 serves for each row that the blocks of
    a GPC need, to all of them together (once) and to each of them (each), in rows.
    """

    sm_rate: float = 6.75e12  # flops a second of a multiprocessor while all multiply
    smem: float = 2.72e11  # of a multiprocessor's shared memory
    latency: float = 1.07e-07  # of a k-tile,
    latency_16: float = 9.72e-09  # and for each wgmma in it
    l2: float = 1.04e13
    once: tuple[float, ...] = (0.954, 0.452, 0.674, 0.193)
    each: tuple[float, ...] = (0.386, 0.968, 1.1, 1.85)
    in_step_once: tuple[float, ...] = (1.95, 0.768, 0.925, 0.287)  # in a single wave
    in_step_each: tuple[float, ...] = (0.00135, 0.876, 0.966, 1.69)
    missing_row: float = 3.87e-11  # that a row beyond the edge adds to all boxes of 64 columns
    clustered: float = 1.59  # of `once`, in a cluster
    dram: float = 2.84e12
    kept: float = 1.56e07  # bytes of A, B and C that L2 keeps from launch to launch
    sm_dram: float = 8.97e10  # that one multiprocessor reads from DRAM
    launch: float = 1.37e-06  # launch to first load, and last store to the end
    overlap: float = 3.19e-07  # of it, what launches save that overlap
    fill: float = 2.25e-08  # until the first k-tile of a tile arrives,
    fill_rate: float = 8.3e10  # and its bytes
    cluster_launch: float = 3.04e-07  # what a cluster adds to `launch`
    cluster_fill: float = 3.48e-09  # and to `fill`
    store: float = 3.42e10  # of C, of one consumer
    shared_store: float = 4.17e10  # of the consumers of a cooperative tile
    narrow_store: float = 2.39e10  # in rows of 32 bytes
    narrow_write: float = 1.41e12  # of C that DRAM takes in rows of 32 bytes
    reduction_launch: float = 1.48e-06  # of the kernel that adds partial sums
    reduction_rate: float = 4.98e12  # of partial sums, to L2 and from there
    # Of a slot of an epilogue (epilogue/cost.py); more if those of several consumers run at once.
    # By hand, of twelve epilogues at 8448×9216×256.
    issue: float = 2.0e-09
    crowded: float = 1.6


FITTED = Constants()


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


class Table(NamedTuple):
    """What the model needs of candidates, and what each of them costs: arrays of an entry each."""

    tile: Array  # (2, candidates): BM, BN
    cluster: Array  # (2, candidates): tiles down, across
    depth: Array  # of a k-tile of all splits
    splits: Array
    invariant: Array  # whether it serves an invariant problem
    swapped: Array  # M and N are then those of Cᵀ
    turns: Array  # consumers that take turns: the others store while one multiplies; else 1
    at_once: Array  # blocks that run at once
    groups: Array  # (3, candidates): tile rows of a raster group, by depth of K
    tensor_core: Array  # seconds of a k-tile, if all multiprocessors are busy
    smem: Array  # seconds of a k-tile
    l2: Array  # seconds of a k-tile, for each row that L2 serves to each block
    latency: Array  # seconds of a k-tile
    clustered: Array  # factor of what L2 serves to all blocks of a GPC together
    missing: Array  # seconds of a k-tile, for each missing row
    fill: Array  # seconds
    epilogue: Array
    slots: Array  # seconds of an issue slot for each output of a thread
    launch: Array
    write: Array  # bytes of C a second
    sums: Array  # seconds in which the partial sums of a tile are added


def table(candidates: Sequence[Candidate], c: Constants = FITTED) -> Table:
    """The table of candidates."""
    tile = np.array([each.tile for each in candidates], dtype=float).T  # (3, candidates)
    cluster = np.array([each.cluster for each in candidates], dtype=float).T
    splits = np.array([each.splits for each in candidates], dtype=float)
    narrow = np.array(
        [
            each.splits == 1 and not each.swapped and panel_columns(each.tile[1]) == 16
            for each in candidates
        ]
    )
    turns = np.array([each.consumers if each.maker is pingpong else 1 for each in candidates])
    (bm, bn, bk), clustered = tile, cluster.prod(0) > 1
    # Bytes that TMA writes and wgmma reads: B once for each 64 rows of A.
    written, read = 2 * bk * (bm + bn), 2 * bk * (bm + bm / 64 * bn)
    return Table(
        tile[:2],
        cluster,
        bk * splits,
        splits,
        np.array([each.invariant for each in candidates]),
        np.array([each.swapped for each in candidates]),
        turns,
        np.array([BLOCKS_AT_ONCE[math.prod(each.cluster)] for each in candidates], dtype=float),
        np.array([[of.group for of in each.rasters] for each in candidates], dtype=float).T,
        tensor_core=2 * bm * bn * bk / c.sm_rate,
        smem=(written + read) / c.smem,
        l2=2 * bk / c.l2,
        latency=c.latency + bk / 16 * c.latency_16,
        clustered=np.where(clustered, c.clustered, 1.0),
        missing=bk / 64 * c.missing_row,
        fill=c.fill + clustered * c.cluster_fill + written / c.fill_rate,
        epilogue=2
        * bm
        * bn
        / np.select([turns == 1, narrow], [c.shared_store, c.narrow_store], c.store),
        slots=bm
        * bn
        / WARPGROUP
        / np.where(turns > 1, 1, np.select([bm == 64, bm == 192], [1, 3], 2))
        * np.where(turns > 2, c.crowded, 1)
        * c.issue,
        launch=c.launch + clustered * c.cluster_launch + (splits > 1) * c.reduction_launch,
        write=np.where(narrow, c.narrow_write, c.dram),
        sums=(splits > 1) * 2 * 4 * splits * bm * bn / c.reduction_rate,
    )


# M, N, K, its depth, and the entries in the tables of A's and of B's rows
Key: TypeAlias = tuple[int, int, int, int, int, int]


def estimate(problem: Problem, candidate: Candidate) -> Estimate:
    """The expected time of a candidate.

    >>> from cutedsl_gemm.kernels.sm90.rungs import cooperative
    >>> found = estimate(Problem.dense(4096, 4096, 4096), Candidate(cooperative, (128, 256, 64)))
    >>> found.candidate.name, found.tiles, found.waves, round(found.seconds * 1e6)
    ('cooperative 128×256×64', 512, 4, 185)
    """
    return _estimates(problem, (candidate,))[0]


def ranking(problem: Problem, given: Iterable[Candidate] | None = None) -> list[Estimate]:
    """The estimates of the problem's candidates, or of those given, that may serve.

    The fastest is first; ties keep their order. K is split only to fill a single wave: the partial
    sums of several waves do not fit in L2. Only some candidates serve an invariant problem.
    """

    asked = candidates_for(problem) if given is None else tuple(given)
    found = _estimates(problem, asked)
    waves = np.array([each.waves for each in found])
    serving = itertools.compress(found, serves(_table(asked), waves, problem.invariant))
    return sorted(serving, key=attrgetter("seconds"))


def possible(problem: Problem) -> Iterator[Estimate]:
    """`ranking`, of the candidates whose plans take the problem's epilogue."""
    for found in ranking(problem):
        if problem.epilogue is PLAIN or takes(problem, found.candidate):
            yield found


def takes(problem: Problem, candidate: Candidate) -> bool:
    """Whether a candidate has a plan for the problem."""
    try:
        candidate.plan(problem)
    except PlanError:
        return False
    return True


def serves(of: Table, waves: Array, invariant: bool = False) -> Array:
    """Whether each candidate of a table may serve, as `ranking` says; `waves` are its own."""
    return of.invariant if invariant else (of.splits == 1) | (waves == 1)


def best(problem: Problem) -> Candidate:
    """The first candidate of `ranking`, remembered.

    >>> [best(Problem.dense(*mnk)).name for mnk in ((2048, 2048, 2048), (2048, 2048, 2056))]
    ['cooperative 256×128×64', 'cooperative 256×128×64, cluster 1×2']
    """
    return _best(_key(problem), problem.invariant)


def _key(problem: Problem) -> Key:
    m, _, k = problem.mnk
    n = problem.columns
    a, b = (ALIGNMENTS.index(each.row_alignment) for each in (problem.a, problem.b))
    return m, n, k, depth(k), a, b


_ALL = table(CANDIDATES)


@lru_cache(maxsize=4096)
def _best(key: Key, invariant: bool) -> Candidate:
    found = terms(key, _ALL)
    serving = serves(_ALL, found["waves"], invariant)
    return CANDIDATES[np.where(serving, found["seconds"], np.inf).argmin()]


_table = lru_cache(maxsize=64)(table)


def _estimates(problem: Problem, candidates: tuple[Candidate, ...]) -> list[Estimate]:
    found = terms(_key(problem), _table(candidates), work=_work(problem))
    counts = {name: found[name].astype(int) for name in ("tiles", "waves", "busy_sms")}
    fields = ((found | counts)[name].tolist() for name in Estimate._fields[1:])
    return [Estimate(*row) for row in zip(candidates, *fields, strict=True)]


def _work(problem: Problem) -> tuple[float, int]:
    """What the epilogue adds: instructions for each value of an accumulator, and bytes."""
    if problem.epilogue is PLAIN:
        return 0, 0
    m, _, k = problem.mnk
    a_b_c = 2 * (m * k + problem.columns * k + m * problem.columns)
    slots = cost(problem.epilogue).slots
    return slots / problem.epilogue.accumulators, problem.bytes - a_b_c


def terms(
    key: tuple[Any, ...], of: Table, c: Constants = FITTED, work: tuple[float, int] = (0, 0)
) -> dict[str, Array]:
    """The fields of an Estimate except the candidate, an entry for each candidate of the table.

    The key is that of one problem; or its members, except the depth, are arrays with a problem for
    each candidate. `work` is that of the epilogue, as `_work` returns it.
    """
    m, n, k, of_k, a_entry, b_entry = key
    extents = _sides(of, m, n)  # (2, candidates), as all that follows of M and N
    grid = np.ceil(extents / (of.tile * of.cluster)) * of.cluster  # tiles, of whole clusters
    blocks = grid[0] * grid[1] * of.splits
    waves = np.ceil(blocks / of.at_once)
    busy = blocks / waves
    k_tiles = np.ceil(k / of.depth)

    tensor_core = of.tensor_core * np.sqrt(np.sqrt(busy / SMS))
    entries = _sides(of, a_entry, b_entry) + len(ALIGNMENTS) * (waves == 1)
    l2 = of.l2 * busy * _served(c, of, of.groups[of_k], (extents, grid, entries))
    epilogue = of.epilogue + work[0] * of.slots
    k_tile = _longest(tensor_core, of.smem, l2, of.latency)
    first = of.fill + k_tiles * k_tile
    whole = waves * (first + epilogue) - epilogue
    in_turns = np.maximum(waves * first, waves / of.turns * (first + epilogue) - epilogue)
    # the last tile row and column: one wave has them, or one wave in `tiles`
    tiles = np.ceil(extents / of.tile)
    missing = (of.tile - extents / tiles) * np.maximum(1, waves / tiles) / of.cluster[::-1]
    slow = k_tiles * of.missing * busy * (missing[0] + missing[1])
    mainloop = np.where(of.turns > 1, in_turns, whole) + slow

    moved = np.maximum(0, 2 * (m * k + k * n + m * n) + work[1] - c.kept)
    dram = np.maximum(moved / np.minimum(c.dram, c.sm_dram * busy), 2 * m * n / of.write)
    launch = of.launch - (2 * blocks <= of.at_once) * c.overlap
    reduction = of.sums * grid[0] * grid[1]
    # Main loops and DRAM hinder each other where they take equally long.
    seconds = launch + _longest(mainloop, dram) + epilogue + reduction
    return {
        "seconds": seconds,
        "tiles": grid[0] * grid[1],
        "waves": waves,
        "busy_sms": np.ceil(busy),
        "tensor_core": tensor_core,
        "smem": of.smem,
        "l2": l2,
        "launch": launch,
        "mainloop": mainloop,
        "dram": dram,
        "epilogue": epilogue,
        "reduction": reduction,
    }


def _sides(of: Table, first: Any, second: Any) -> Array:
    """(2, candidates): a value for M and one for N, exchanged where operands are swapped."""
    both = np.array((first, second)).reshape(2, -1)
    return np.where(of.swapped, both[::-1], both)


def _longest(*times: Array) -> Array:
    """Their 4-norm: the longest, and more where others are as long."""
    total = np.zeros_like(times[0])
    for time in times:
        total += (time * time) ** 2
    return np.sqrt(np.sqrt(total))


def _served(c: Constants, of: Table, group: Array, sides: tuple[Array, Array, Array]) -> Array:
    """The rows of A and of B that L2 serves to each block, in a k-tile."""
    extents, (rows, columns), entries = sides
    together = np.minimum(GPC, rows * columns)  # blocks of a GPC: they compute high × wide tiles
    wide = np.minimum(together / np.minimum(np.minimum(group, rows), together), columns)
    high = np.minimum(together / wide, rows)
    shared = np.minimum(np.array((high, wide)) * of.tile, extents) / together * of.clustered
    own = np.minimum(of.tile, extents) / of.cluster[::-1]
    once, each = np.array(c.once + c.in_step_once), np.array(c.each + c.in_step_each)
    found = once[entries] * shared + each[entries] * own
    return found[0] + found[1]
