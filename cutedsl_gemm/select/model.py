"""A model of the H100: the expected time of a candidate plan for a problem.

Blocks compute tiles of C in waves, each multiprocessor one tile at a time:

    time = (launch + main loops + last epilogue + reduction) × correction

A k-tile takes as long as L2 needs to serve the loads of all multiprocessors, or as long as the
multiprocessor needs: about the longest of three times.

    tensor core    its flops
    shared memory  what TMA writes and wgmma reads there
    latency        from one wgmma to the next

If an operand is not contiguous along K and its tile needs short rows, TMA is the limit: it takes
as long for a row of 32 bytes of shared memory as for one of 128.

L2 serves fewer rows a second if they start off 128-byte lines. Clusters, whose blocks share loads
by multicast, ask for less. Where K is split, a second kernel adds the partial sums.

The formula leaves out DRAM, which limits all candidates of a problem about alike, and so does not
rank them. It also leaves out how L2 serves blocks that ask for the same line, and the clocks of
busy multiprocessors. The correction covers these: a network learned it from measurements
(select/correction.py). It knows tiles and clusters like those of CANDIDATES. In pingpong, launches
of 2 ms or more then take 2 to 4 % longer (LONG).

`bench/fit_model.py` fits both to measurements on an H100 SXM: the network to times, the constants
so that the formulas rank the right candidates first (docs/performance/notebook.md, "The model").
All candidates are estimated at once, as arrays: a call of numpy takes half a microsecond.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from math import gcd
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cutedsl_gemm.inputs.problem import Problem
from cutedsl_gemm.inputs.remember import REMEMBERED
from cutedsl_gemm.kernels.epilogue.cost import cost
from cutedsl_gemm.kernels.epilogue.expression import PLAIN
from cutedsl_gemm.kernels.plan.checks import PlanError
from cutedsl_gemm.kernels.sm90.epilogue_plan import loadable_operands
from cutedsl_gemm.kernels.sm90.operand import ROW, SHORTEST_ROW
from cutedsl_gemm.kernels.sm90.resources import (
    ADDRESS_REGISTERS,
    EPILOGUE_REGISTERS,
    REGISTERS,
)
from cutedsl_gemm.kernels.sm90.rungs import pingpong, split
from cutedsl_gemm.select.candidate import (
    CANDIDATES,
    FILL,
    LEAST_K,
    MOST_SPLITS,
    Candidate,
    candidates_for,
)
from cutedsl_gemm.select.correction import (
    LEARNED,
    TERMS,
    Network,
    candidate_inputs,
    row_inputs,
    work_inputs,
)
from layouts.hardware.descriptor import Major
from layouts.hardware.facts import WARPGROUP

SMS = 132  # multiprocessors of an H100 SXM and an H200 SXM
# Blocks that run at once, by the size of their cluster (kernels/device/occupancy.py).
BLOCKS_AT_ONCE = {1: SMS, 2: SMS, 4: 120, 8: 120}
DRAM = 3.1e12  # bytes a second, at most
# A thread of two consumers has no more sums (kernels/sm90/checks.py).
MOST_SUMS = REGISTERS[2][1] - ADDRESS_REGISTERS - EPILOGUE_REGISTERS
ALIGNMENTS = 128, 64, 32, 16  # of rows, in bytes; a line of L2 has 128
# A choice corrects only this many candidates. If it corrected all of them, chosen plans would be
# expected to take 0.1 % less (3,000 random shapes).
NEAR = 24
# The network learned from launches in turn, which run at the clock that the power of the others
# leaves. One of LONG seconds or more runs at its own: pingpong takes longer then, most of all in
# clusters of 2×1. By hand, of 44 shapes (docs/performance, "Long launches at their own power").
LONG = 2e-3
OF_PINGPONG, OF_PAIRS = 1.02, 1.02
LOG_LONG = np.array(np.log(LONG), np.float32)
# The ratio up to which times tie: those of a tile with and without swapped operands often do.
TIED = np.array(1 + 1e-5, np.float32)
# Outputs of the largest tile whose K is split.
LARGEST_SPLIT = max(each.tile[0] * each.tile[1] for each in CANDIDATES if each.splits == FILL)
TIME = TERMS.index("time")  # of the `inputs` of `terms`
NEVER = np.array(1e30, np.float32)  # seconds of a candidate that does not serve a problem
SHORTEST, MOST = np.array(LEAST_K, np.float32), np.array(MOST_SPLITS, np.float32)

Array: TypeAlias = NDArray[Any]


class Constants(NamedTuple):
    """Constants of the formulas. Times are in seconds; rates, if not of flops, in bytes a second.

    `dram`, `kept` and `narrow_write` are inputs of the correction, and no part of the formula.
    """

    sm_rate: float = 5.19e12  # flops a second of a multiprocessor
    smem: float = 3.13e11  # of a multiprocessor's shared memory
    latency: float = 1.09e-07  # of a k-tile
    latency_16: float = 6.56e-09  # added for each wgmma of a k-tile
    tma_row: float = 1.9e-09  # of a row that TMA loads, where rows of B are of 32 or 64 bytes
    l2: tuple[float, ...] = (1.42e13, 7.41e12, 6.77e12, 4.76e12)  # of rows of each of ALIGNMENTS
    dram: float = 2.84e12
    kept: float = 1.56e07  # bytes of A, B and C that L2 keeps from launch to launch
    launch: float = 1.15e-06  # launch to first load, and last store to the end
    fill: float = 2.16e-08  # until the first k-tile of a tile arrives
    fill_rate: float = 6.48e10  # at which its bytes arrive, added to `fill`
    cluster_launch: float = 6.53e-07  # what a cluster adds to `launch`
    cluster_fill: float = 1.33e-08  # what it adds to `fill`
    store: float = 2.17e10  # of C, of one consumer
    shared_store: float = 1.83e10  # of the consumers of a cooperative tile
    narrow_store: float = 1.32e10  # in rows of 32 bytes
    narrow_write: float = 1.24e12  # of C that DRAM takes in rows of 32 bytes
    reduction_launch: float = 1.96e-06  # of the kernel that adds partial sums
    reduction_rate: float = 4.95e12  # of partial sums, to L2 and from there
    # Of an issue slot (epilogue/cost.py) of one output of a thread. By hand, from twelve epilogues
    # at 8448×9216×256.
    issue: float = 2.0e-09
    # Of a matrix that threads read, per output of a thread. Two cost four times as much, since they
    # share the registers for what is read ahead; `full` is the factor if sums take all of these. By
    # hand, of SwiGLU's derivative with ten tiles (docs/performance, "Epilogues that read
    # matrices").
    read: float = 4.0e-08
    full: float = 1.25


FITTED = Constants()


class Estimate(NamedTuple):
    """The model's expectation of one candidate."""

    candidate: Candidate
    seconds: float  # from launch to end
    tiles: int
    waves: int
    busy_sms: int  # multiprocessors that work in a full wave
    # Seconds of a k-tile, if this alone decided; see `bound`. That of L2 is for all busy SMs.
    tensor_core: float
    smem: float
    tma: float  # 0 where rows in shared memory are of 128 bytes
    l2: float
    launch: float  # seconds
    mainloop: float  # seconds of all waves, with the epilogues between them
    dram: float  # seconds in which DRAM moves what L2 does not keep of A, B and C
    epilogue: float  # seconds of the last epilogue
    reduction: float  # seconds in which partial sums are added; 0 if K is whole
    correction: float  # the factor that measurements say
    serves: bool  # whether the model may choose it

    @property
    def k_tile(self) -> dict[str, float]:
        """Seconds of a k-tile, if each of these decided."""
        times = {"tensor core": self.tensor_core, "shared memory": self.smem, "L2": self.l2}
        return times | ({"TMA": self.tma} if self.tma else {})

    @property
    def bound(self) -> str:
        """The limit: DRAM if it takes longer than the main loops, else the longest of `k_tile`.

        >>> square, askew = (Problem.dense(4096, 4096, k) for k in (4096, 4104))
        >>> [estimate(each, Candidate(pingpong, (128, 192, 64))).bound for each in (square, askew)]
        ['tensor core', 'L2']
        """
        if self.dram > self.mainloop:
            return "DRAM"
        return max(self.k_tile, key=lambda name: self.k_tile[name])


# Of A, B and C: the indices in ALIGNMENTS of their rows.
RowAlignments: TypeAlias = tuple[int, int, int]
Majors: TypeAlias = tuple[Major, Major]  # of A and B


class Table(NamedTuple):
    """What the model needs of candidates, and what each of them costs: arrays of an entry each."""

    side: Array  # (3, candidates): which of M, N, K are the rows, columns and depth of its plan
    tile: Array  # (2, candidates): BM, BN
    whole: Array  # (3, candidates): rows and columns of a cluster, depth of a k-tile
    least: Array  # (3, candidates): the share of `whole` to exceed: half of a cluster, else 0
    blocks: Array  # of a cluster
    splits: Array  # blocks that split K; 2, the least, if it is FILL: as many as fill a wave
    fills: Array  # 1 if FILL, else 0
    least_splits: Array  # 2 if FILL, else 0
    most_blocks: Array  # of a plan that may serve
    turns: Array  # consumers that take turns: the others store while one multiplies; else 1
    at_once: Array  # blocks that run at once
    tensor_core: Array  # seconds of a k-tile
    smem: Array  # seconds of a k-tile
    tma: Array  # seconds of a k-tile; 0 where rows in shared memory are of 128 bytes
    k_tile: Array  # seconds of a k-tile that never waits for L2
    row: Array  # (2, candidates): seconds of a k-tile, for each row of A, of B, and each block
    fill: Array  # seconds
    epilogue: Array
    slots: Array  # seconds of an issue slot for each output of a thread
    read: Array  # seconds in which a thread reads a matrix for its outputs
    launch: Array
    write: Array  # seconds to write an element of C
    sums: Array  # seconds in which a block's partial sums are added
    power: Array  # logarithm of the factor of launches of LONG seconds or more


def table(
    candidates: Sequence[Candidate], c: Constants = FITTED, majors: Majors = ("K", "K")
) -> Table:
    """The table of candidates, for rows of A and B on lines; `aligned` has it for others.

    `majors` are those of the problem's A and B.
    """
    tile = np.array([each.tile for each in candidates], dtype=float).T  # (3, candidates)
    cluster = np.array([each.cluster for each in candidates], dtype=float).T
    splits = np.array([each.splits for each in candidates], dtype=float)
    narrow = np.array(
        [
            each.maker is not split and not each.swapped and each.panels.columns == 16
            for each in candidates
        ]
    )
    turns = np.array([each.consumers if each.maker is pingpong else 1.0 for each in candidates])
    (bm, bn, bk), size = tile, cluster.prod(0)
    clustered, split_k, fills = size > 1, splits != 1, splits == FILL
    launch = c.launch + clustered * c.cluster_launch + split_k * c.reduction_launch
    at_once = np.array([BLOCKS_AT_ONCE[int(each)] for each in size], dtype=float)
    # Bytes that TMA writes and wgmma reads.
    written, read = 2 * bk * (bm + bn), 2 * bk * np.array([each.reads for each in candidates])
    tensor_core, smem = 2 * bm * bn * bk / c.sm_rate, (written + read) / c.smem
    row = np.array([row_of_b(each, majors) for each in candidates])
    rows = bk * (bm / ROW / cluster[1] + bn / row / cluster[0])
    tma = (row < ROW) * rows * c.tma_row
    latency = c.latency + bk / 16 * c.latency_16
    pairs = (cluster[0] == 2) & (cluster[1] == 1)
    power = (turns > 1) * (np.log(OF_PINGPONG) + pairs * np.log(OF_PAIRS))
    consumers = np.array([each.atom_layout for each in candidates], dtype=float).prod(1)
    outputs = bm * bn / WARPGROUP / consumers  # of a thread
    return Table(
        side=np.array([(1, 0, 2) if each.swapped else (0, 1, 2) for each in candidates]).T,
        tile=tile[:2],
        whole=np.vstack([tile[:2] * cluster, bk]),
        least=np.vstack([np.where(cluster > 1, 0.5, 0), 0 * splits]),
        blocks=size,
        splits=np.where(fills, 2, splits),
        fills=fills * 1.0,
        least_splits=fills * 2.0,
        most_blocks=np.where(split_k, at_once, np.inf),
        turns=turns,
        at_once=at_once,
        tensor_core=tensor_core,
        smem=smem,
        tma=tma,
        k_tile=np.maximum(tma, (tensor_core**4 + smem**4 + latency**4) ** 0.25),
        row=2 * bk / c.l2[0] / cluster[::-1],
        fill=c.fill + clustered * c.cluster_fill + written / c.fill_rate,
        epilogue=2
        * bm
        * bn
        / np.select([turns == 1, narrow], [c.shared_store, c.narrow_store], c.store),
        slots=outputs * c.issue,
        read=outputs * np.where(outputs >= MOST_SUMS, c.full, 1) * c.read,
        launch=launch,
        write=2 / np.where(narrow, c.narrow_write, c.dram),
        sums=split_k * 2 * 4 * bm * bn / c.reduction_rate,
        power=power,
    )


def row_of_b(candidate: Candidate, majors: Majors) -> int:
    """Elements of a row of the plan's B in shared memory, for the majors of the problem's A and B.

    >>> [row_of_b(Candidate(pingpong, (128, bn, 64)), ("K", "MN")) for bn in (128, 160, 176)]
    [64, 32, 16]
    """
    along_k = majors[0 if candidate.swapped else 1] == "K"
    return ROW if along_k else max(gcd(candidate.columns, ROW), SHORTEST_ROW)


def single(costs: Table) -> Table:
    """The table in single precision, each row in one piece: numpy computes it faster."""
    return Table(
        *(np.ascontiguousarray(x, np.float32 if x.dtype == float else x.dtype) for x in costs)
    )


def aligned(costs: Table, rows: RowAlignments, c: Constants = FITTED) -> Table:
    """The table for rows of A and B that start at such multiples; the correction knows C's."""
    a, b, _ = rows
    slower = c.l2[0] / np.array(c.l2)
    return costs._replace(row=costs.row * slower[_sides(costs, np.array((a, b, a)))[:2]])


def _sides(costs: Table, of_mnk: Array) -> Array:
    """(3, candidates): values for M, N and K, as the plans take them, operands swapped or not.

    Each of the three is a number, or has an entry for each candidate.
    """
    if of_mnk.ndim == 1:
        return of_mnk.take(costs.side)
    return np.take_along_axis(of_mnk, costs.side, 0)


def estimate(problem: Problem, candidate: Candidate) -> Estimate:
    """The expected time of a candidate.

    >>> found = estimate(Problem.dense(4096, 4096, 4096), Candidate(pingpong, (128, 192, 64)))
    >>> found.candidate.name, found.tiles, found.waves, round(found.seconds * 1e6)
    ('pingpong 128×192×64', 704, 6, 214)
    """
    return estimates(problem, (candidate,))[0]


def ranking(problem: Problem, given: Iterable[Candidate] | None = None) -> list[Estimate]:
    """The estimates of the problem's candidates, or of those given, that may serve.

    The fastest is first; ties keep their order. The NEAR fastest before the correction, and those
    tied with them, come before all others: a choice corrects only these. K is split only to fill a
    single wave: the partial sums of several waves do not fit in L2. C must fill more than half of a
    cluster. Only some candidates serve an invariant problem, or operands that are not contiguous
    along K.
    """
    asked = candidates_for(problem) if given is None else given
    served = tuple(each for each in asked if each.serves(problem.majors, problem.invariant))
    found = [each for each in estimates(problem, served) if each.serves]
    near = {*_near(np.array([each.seconds / each.correction for each in found])).tolist()}
    order = sorted(range(len(found)), key=lambda i: (i not in near, found[i].seconds))
    return [found[i] for i in order]


def _near(seconds: Array) -> Array:
    """The places of the NEAR shortest times, and of the times that tie with the last of them."""
    if len(seconds) <= NEAR:
        return np.arange(len(seconds))
    parted = seconds.copy()
    parted.partition(NEAR - 1)  # 1 µs less than np.partition
    return (seconds <= parted[NEAR - 1] * TIED).nonzero()[0]


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


def best(problem: Problem) -> Candidate:
    """The first candidate of `ranking` for a problem without an epilogue, remembered.

    >>> [best(Problem.dense(*mnk)).name for mnk in ((2048, 2048, 2048), (2048, 2048, 2056))]
    ['pingpong 128×128×64, swapped', 'cooperative 256×128×64, cluster 1×2, swapped']
    """
    m, k = problem.a.shape
    return _best(m, problem.columns, k, _row_alignments(problem), problem.majors, problem.invariant)


def _row_alignments(problem: Problem) -> RowAlignments:
    a, b = problem.a.stride, problem.b.stride  # one stride of each is 1
    return (
        alignment_index(2 * max(a)),
        alignment_index(2 * max(b)),
        alignment_index(2 * problem.columns),
    )


_INDEX_OF_ALIGNMENT = {each: at for at, each in enumerate(ALIGNMENTS)}


def alignment_index(pitch: int) -> int:
    """The index in ALIGNMENTS of rows that start `pitch` bytes apart; the last one for fewer.

    >>> [alignment_index(pitch) for pitch in (256, 192, 2 * 50257)]
    [0, 1, 3]
    """
    return _INDEX_OF_ALIGNMENT.get(min(pitch & -pitch, ALIGNMENTS[0]), len(ALIGNMENTS) - 1)


def _may_split(m: int, n: int, k: int) -> bool:
    """Whether two or more blocks of a wave may split K.

    If not, no candidate that splits K serves, and a choice without them takes a quarter less time.
    """
    return k >= 2 * LEAST_K and 2 * m * n <= SMS * LARGEST_SPLIT


@lru_cache
def _serving(
    rows: RowAlignments, majors: Majors, invariant: bool, splitting: bool
) -> tuple[Sequence[Candidate], Table, Array]:
    """The candidates that serve problems of a kind, their table, and `others` of the network."""
    able = (each for each in CANDIDATES if splitting or each.splits == 1)
    served = tuple(each for each in able if each.serves(majors, invariant))
    costs = single(aligned(table(served, majors=majors), rows))
    return served, costs, _others(candidate_inputs(served), rows, NO_WORK)


@lru_cache(REMEMBERED)
def _best(
    m: int, n: int, k: int, rows: RowAlignments, majors: Majors, invariant: bool
) -> Candidate:
    splitting = _may_split(m, n, k)
    served, costs, others = _serving(rows, majors, invariant, splitting)
    found = terms(m, n, k, costs, splitting=splitting)
    inputs = found["inputs"]
    seconds = inputs[TIME]
    seconds[~found["serves"]] = NEVER  # 0.7 µs less than `where`
    near = _near(seconds)
    logs = np.log(inputs.take(near, 1))
    expected = logs[TIME] + LEARNED.log_factor(logs, others.take(near, 0))
    first = expected.argmin()
    if expected[first] >= LOG_LONG:
        first = (expected + costs.power.take(near)).argmin()
    first = near[first]
    return served[first].over(int(found["splits"][first]))


_table = lru_cache(maxsize=64)(table)
_facts = lru_cache(maxsize=64)(candidate_inputs)


def estimates(problem: Problem, candidates: tuple[Candidate, ...]) -> list[Estimate]:
    """The estimates of candidates, one or more, at once and in their order."""
    m, _, k = problem.mnk
    rows, work = _row_alignments(problem), work_of(problem)
    costs = aligned(_table(candidates, majors=problem.majors), rows)
    found = terms(m, problem.columns, k, costs, work=work)
    factor = correction(found["inputs"], _others(_facts(candidates), rows, work))
    factor *= np.exp(costs.power * (found["seconds"] * factor >= LONG))
    tiles = found["blocks"] / found["splits"]
    found |= {"seconds": found["seconds"] * factor, "correction": factor, "tiles": tiles}
    names = "splits", *Estimate._fields[1:]
    columns = [np.broadcast_to(found[name], len(candidates)) for name in names]
    return [
        Estimate(each.over(int(splits)), seconds, int(tiles), int(waves), math.ceil(busy), *rest)
        for each, splits, seconds, tiles, waves, busy, *rest in zip(
            candidates, *(column.tolist() for column in columns), strict=True
        )
    ]


class EpilogueWork(NamedTuple):
    """What an epilogue adds: numbers, or arrays of an entry for each candidate."""

    slots: Any = 0  # issue slots, for each value of an accumulator
    matrices: Any = 0  # that it reads, for each accumulator
    reads: Any = 0  # the square of how many of them threads read, for each accumulator
    bytes: Any = 0
    accumulators: Any = 1


NO_WORK = EpilogueWork()


def _others(facts: Array, rows: RowAlignments, work: EpilogueWork) -> Array:
    """`others` of the network, of the facts of candidates."""
    added = work_inputs(work.slots, work.matrices, work.accumulators)
    return LEARNED.others(facts, row_inputs(rows), added)


def work_of(problem: Problem) -> EpilogueWork:
    """What the problem's epilogue adds."""
    epilogue = problem.epilogue
    if epilogue is PLAIN:
        return NO_WORK
    m, _, k = problem.mnk
    a_b_c = 2 * (m * k + problem.columns * k + m * problem.columns)
    matrices = sum(operand.is_matrix for operand in epilogue.operands)
    by_threads = matrices - len(loadable_operands(epilogue, problem.c_alignment))
    count = epilogue.accumulators
    return EpilogueWork(
        cost(epilogue).slots / count,
        matrices / count,
        by_threads**2 / count,
        problem.bytes - a_b_c,
        count,
    )


def terms(
    m: Any,
    n: Any,
    k: Any,
    costs: Table,
    c: Constants = FITTED,
    work: EpilogueWork = NO_WORK,
    splitting: bool = True,
) -> dict[str, Array]:
    """The fields of an Estimate before the correction, and its `inputs`: an entry a candidate.

    It has `blocks` in place of `tiles`: no choice needs tiles, and a division takes 0.4 µs.
    M, N and K are those of one problem; or they are arrays, with a problem for each candidate.
    `work` is that of the epilogue. If not `splitting`, no candidate splits K.
    """
    extents = _sides(costs, np.array((m, n, k), costs.fill.dtype))  # (3, candidates)
    clusters = extents / costs.whole  # down and across, k-tiles
    counts = np.ceil(clusters)
    used = clusters / counts
    filled = used > costs.least
    serves = filled[0] & filled[1]
    blocks = counts[0] * counts[1] * costs.blocks
    splits, k_tiles = costs.splits, counts[2]
    if splitting:
        most = np.minimum(extents[2] / SHORTEST, MOST)
        filling = np.floor(np.minimum(costs.at_once / blocks, most)) * costs.fills
        splits = np.maximum(filling, splits)
        blocks *= splits
        k_tiles = np.ceil(k_tiles / splits)
        serves &= (filling >= costs.least_splits) & (blocks <= costs.most_blocks)
    waves = np.ceil(blocks / costs.at_once)
    busy = blocks / waves

    asked = np.minimum(costs.tile, extents[:2]) * costs.row
    l2 = (asked[0] + asked[1]) * busy
    epilogue = costs.epilogue
    if work is not NO_WORK:
        epilogue = epilogue + work.slots * costs.slots + work.reads * costs.read
    k_tile = np.maximum(costs.k_tile, l2)
    all_first = (costs.fill + k_tiles * k_tile) * waves
    in_turns = (all_first + waves * epilogue) / costs.turns - epilogue
    mainloop = np.maximum(all_first, in_turns)

    moved = 2 * (m * k + k * n + m * n) + work.bytes - c.kept
    dram = np.maximum(m * n * costs.write, moved / c.dram)
    seconds = costs.launch + mainloop + epilogue
    reduction = costs.sums
    if splitting:
        reduction = reduction * blocks
        seconds += reduction
    # Unpacking an array takes 0.2 µs a row, indexing 0.07.
    inputs = waves, busy, k_tiles, splits, l2, k_tile, mainloop, dram, seconds, used[0], used[1]
    return {
        "seconds": seconds,
        "blocks": blocks,
        "splits": splits,
        "waves": waves,
        "busy_sms": busy,
        "tensor_core": costs.tensor_core,
        "smem": costs.smem,
        "tma": costs.tma,
        "l2": l2,
        "launch": costs.launch,
        "mainloop": mainloop,
        "dram": dram,
        "epilogue": epilogue,
        "reduction": reduction,
        "serves": serves,
        "inputs": np.array((*inputs, extents[0], extents[1])),  # np.concatenate takes 4 µs more
    }


def correction(inputs: Array, others: Array, learned: Network = LEARNED) -> Array:
    """The factor of candidates' seconds: of the `inputs` of `terms` and `others` of the network."""
    return np.exp(learned.log_factor(np.log(inputs, dtype=np.float32), others))
