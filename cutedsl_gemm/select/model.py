"""A model of the H100: the expected time of a candidate plan for a problem.

    time = formulas (select/formulas.py) × correction (select/correction.py)

The formulas leave out DRAM, which limits all candidates of a problem about alike, and so does not
rank them. They also leave out how L2 serves blocks that ask for the same line, and the clocks of
busy multiprocessors. The correction covers these: a network learned it from measurements. It knows
tiles and clusters like those of CANDIDATES. In pingpong, launches of 2 ms or more then take 2 to
4 % longer (LONG).

`bench/fit_model.py` fits both to measurements on an H100 SXM: the network to times, the constants
so that the formulas rank the right candidates first (docs/performance/notebook.md, "The model").
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from cutedsl_gemm.inputs.problem import Problem
from cutedsl_gemm.inputs.remember import REMEMBERED
from cutedsl_gemm.kernels.epilogue.expression import PLAIN
from cutedsl_gemm.kernels.plan.checks import PlanError
from cutedsl_gemm.select.candidate import CANDIDATES, FILL, LEAST_K, Candidate, candidates_for
from cutedsl_gemm.select.correction import (
    LEARNED,
    TERMS,
    Network,
    candidate_inputs,
    row_inputs,
    work_inputs,
)
from cutedsl_gemm.select.costs import (
    ALIGNMENTS,
    LONG,
    SMS,
    Array,
    Majors,
    RowAlignments,
    Table,
    aligned,
    as_float32,
    table,
)
from cutedsl_gemm.select.formulas import NO_WORK, EpilogueWork, terms, work_of

# A choice corrects only this many candidates. If it corrected all of them, chosen plans would be
# expected to take 0.1 % less (3,000 random shapes).
NEAR = 24
LOG_LONG = np.array(np.log(LONG), np.float32)
# The ratio up to which times tie: those of a tile with and without swapped operands often do.
TIED = np.array(1 + 1e-5, np.float32)
# Outputs of the largest tile whose K is split.
LARGEST_SPLIT = max(each.tile[0] * each.tile[1] for each in CANDIDATES if each.splits == FILL)
TIME = TERMS.index("time")  # of the `inputs` of `terms`
NEVER = np.array(1e30, np.float32)  # seconds of a candidate that does not serve a problem


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
    correction: float  # the network's factor on the seconds of the formulas
    serves: bool  # whether the model may choose it

    @property
    def k_tile(self) -> dict[str, float]:
        """Seconds of a k-tile, if each of these decided."""
        times = {"tensor core": self.tensor_core, "shared memory": self.smem, "L2": self.l2}
        return times | ({"TMA": self.tma} if self.tma else {})

    @property
    def bound(self) -> str:
        """The limit: DRAM if it takes longer than the main loops, else the longest of `k_tile`.

        >>> from cutedsl_gemm.kernels.sm90.rungs import pingpong
        >>> square, askew = (Problem.dense(4096, 4096, k) for k in (4096, 4104))
        >>> [estimate(each, Candidate(pingpong, (128, 192, 64))).bound for each in (square, askew)]
        ['tensor core', 'L2']
        """
        if self.dram > self.mainloop:
            return "DRAM"
        return max(self.k_tile, key=lambda name: self.k_tile[name])


def estimate(problem: Problem, candidate: Candidate) -> Estimate:
    """The expected time of a candidate.

    >>> from cutedsl_gemm.kernels.sm90.rungs import pingpong
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
    if problem.batch > 1:
        served = tuple(each for each in served if each.splits == 1)
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
    kind = row_alignments(problem), problem.majors, problem.invariant
    return _best(m, problem.columns, k, *kind, problem.batch)


def row_alignments(problem: Problem) -> RowAlignments:
    """Of A, B and C: the indices in ALIGNMENTS of their rows.

    >>> row_alignments(Problem.dense(4096, 4104, 4096))
    (0, 0, 3)
    """
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
def _served(majors: Majors, invariant: bool, splitting: bool) -> tuple[Candidate, ...]:
    """The candidates that serve problems of a kind."""
    able = (each for each in CANDIDATES if splitting or each.splits == 1)
    return tuple(each for each in able if each.serves(majors, invariant))


@lru_cache
def _serving(
    rows: RowAlignments, majors: Majors, invariant: bool, splitting: bool
) -> tuple[Sequence[Candidate], Table, Array]:
    """The candidates that serve problems of a kind, their table, and `others` of the network."""
    served = _served(majors, invariant, splitting)
    costs = as_float32(aligned(table(served, majors=majors), rows))
    return served, costs, _others(candidate_inputs(served), rows, NO_WORK)


@lru_cache
def _by_batch(majors: Majors, invariant: bool) -> Array:
    """`by_batch` of the network, of the candidates that serve batches of a kind."""
    return LEARNED.by_batch(candidate_inputs(_served(majors, invariant, splitting=False)))


@lru_cache(REMEMBERED)
def _best(
    m: int, n: int, k: int, rows: RowAlignments, majors: Majors, invariant: bool, batch: int
) -> Candidate:
    splitting = batch == 1 and _may_split(m, n, k)
    served, costs, others = _serving(rows, majors, invariant, splitting)
    found = terms(m, n, k, costs, splitting=splitting, batch=batch if batch > 1 else None)
    inputs = found["inputs"]
    seconds = inputs[TIME]
    seconds[~found["serves"]] = NEVER  # 0.7 µs less than `where`
    near = _near(seconds)
    logs = np.log(inputs.take(near, 1))
    others = others.take(near, 0)
    if batch > 1:
        others += math.log2(batch) * _by_batch(majors, invariant).take(near, 0)
    expected = logs[TIME] + LEARNED.log_factor(logs, others)
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
    rows, work = row_alignments(problem), work_of(problem)
    costs = aligned(_table(candidates, majors=problem.majors), rows)
    batch = problem.batch if problem.batch > 1 else None
    found = terms(m, problem.columns, k, costs, work=work, batch=batch)
    facts = _facts(candidates)
    others = _others(facts, rows, work)
    if batch is not None:
        others = others + math.log2(batch) * LEARNED.by_batch(facts)
    factor = correction(found["inputs"], others)
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


def _others(facts: Array, rows: RowAlignments, work: EpilogueWork) -> Array:
    """`others` of the network, of the facts of candidates."""
    added = work_inputs(work.slots, work.matrices, work.accumulators)
    return LEARNED.others(facts, row_inputs(rows), added)


def correction(inputs: Array, others: Array, learned: Network = LEARNED) -> Array:
    """The factor of candidates' seconds: of the `inputs` of `terms` and `others` of the network."""
    return np.exp(learned.log_factor(np.log(inputs, dtype=np.float32), others))
