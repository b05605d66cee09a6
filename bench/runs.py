"""Measured runs of bench/candidates.py, and what the model of select/model.py expects of them."""

from __future__ import annotations

import csv
import lzma
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import candidates as measured  # bench/candidates.py
import numpy as np
from candidates import EPILOGUES, KINDS
from numpy.typing import NDArray

from cutedsl_gemm.inputs.problem import Problem
from cutedsl_gemm.kernels.sm90.launch_policy import uses_pdl
from cutedsl_gemm.kernels.sm90.plan import Sm90Plan
from cutedsl_gemm.measure.providers import CUBLAS
from cutedsl_gemm.select.candidate import ALL_CANDIDATES, Candidate, distinct
from cutedsl_gemm.select.correction import Network, candidate_inputs, row_inputs, work_inputs
from cutedsl_gemm.select.costs import SMS, Constants, Table, aligned, table
from cutedsl_gemm.select.formulas import EpilogueWork, terms, work_of
from cutedsl_gemm.select.model import alignment_index, correction

Array = NDArray[Any]

# Pools with a name, or a number below FIRST_SINCE, ran when kernels divided behind the wait for the
# previous launch, and clusters began with a memory fence. Today a product takes so many seconds
# less, whatever its size (docs/performance/notebook.md, "Divisions before the waits").
FIRST_SINCE = 8000
SAVED_ALONE, SAVED_OVERLAPPING, SAVED_IN_CLUSTERS, SAVED_BY_SPLITS = 1e-7, 3.7e-7, 5e-7, 3.5e-7
# Those below WAVES_SINCE ran when a K beyond SHORT_BEFORE kept launches from overlapping, unless
# they had few tiles or a single row or column of them (notebook.md, "Which launches overlap").
WAVES_SINCE, SHORT_BEFORE = 9101, 512
SAVED_BY_WAVES = 4.5e-7
# Those below TANH_SINCE computed bias and gelu (tanh) in so many slots: eight instructions, two of
# them MUFU (notebook.md, "Gelu by tanh.approx, with fewer registers read").
TANH_SINCE, GELU_TANH_SLOTS = 9108, 10


class Runs(NamedTuple):
    """Measured runs, an entry each; `torch` and `best` have one for each shape."""

    shape: Array  # its number
    candidate: Array  # its number in `names`
    seconds: Array
    key: tuple[Array, ...]  # M, N, K, and the alignments of rows of A, B and C
    batch: Array  # how many such products
    kind: Array  # its number in KINDS
    work: EpilogueWork  # of the epilogue
    torch: Array
    best: Array
    names: list[Candidate]

    def of(self, shapes: Array) -> Runs:
        """The runs of some shapes."""
        number = np.full(len(self.torch), -1)
        number[shapes] = np.arange(len(shapes))
        found = self.only(number[self.shape] >= 0)
        return found._replace(
            shape=number[found.shape], torch=self.torch[shapes], best=self.best[shapes]
        )

    def plans(self, kept: Array) -> Runs:
        """The runs of some plans, those whose entry is true, of the shapes that ran any."""
        found = self.only(kept[self.candidate])
        return found.of(np.unique(found.shape))

    @property
    def with_epilogue(self) -> Array:
        """Whether the product of each shape has an epilogue."""
        return self._of_shapes(np.array([name in EPILOGUES for name in KINDS])[self.kind])

    @property
    def of_batches(self) -> Array:
        """Whether each shape is of a batch."""
        return self._of_shapes(self.batch > 1)

    def _of_shapes(self, values: Array) -> Array:
        """What all runs of a shape have in common, for each shape."""
        found = np.zeros(len(self.torch), bool)
        found[self.shape] = values
        return found

    def only(self, keep: Array) -> Runs:
        """The runs whose entry is true, of the same shapes."""
        return self._replace(
            shape=self.shape[keep],
            candidate=self.candidate[keep],
            seconds=self.seconds[keep],
            key=tuple(each[keep] for each in self.key),
            batch=self.batch[keep],
            kind=self.kind[keep],
            work=EpilogueWork(*(each[keep] for each in self.work)),
        )


def read(paths: Sequence[Path]) -> Runs:
    """The runs of all files. Wrong outputs do not count."""
    known = {each.name: each for each in distinct((*ALL_CANDIDATES, *measured.tried()))}
    shapes: dict[tuple[Any, ...], dict[str, float]] = defaultdict(dict)
    for path in paths:
        with (lzma.open if path.suffix == ".xz" else open)(path, "rt", newline="") as stream:
            for row in csv.DictReader(stream):
                extents = (int(row.get(name) or 1) for name in ("L", "M", "N", "K"))
                if not row["wrong"] and (row["plan"] in known or row["plan"] == CUBLAS):
                    times = shapes[(row["pool"], *extents, row["kind"])]
                    times[row["plan"]] = seconds_today(row, known.get(row["plan"]))
    shapes = {shape: times for shape, times in shapes.items() if {*times} - {CUBLAS}}
    names = sorted({name for times in shapes.values() for name in times} - {CUBLAS})
    number = {name: at for at, name in enumerate(names)}
    rows, cublas = [], []
    for at, ((pool, batch, *mnk, kind), times) in enumerate(shapes.items()):
        cublas.append(times.pop(CUBLAS))
        same = of_shape(*mnk, kind, number_of(pool), batch)
        rows += [(at, number[name], t, *same) for name, t in times.items()]
    return of_all(rows, cublas, [known[name] for name in names])


def seconds_today(row: dict[str, str], candidate: Candidate | None) -> float:
    """The seconds of a run, a row of the file; with today's kernels if it is a candidate's."""
    seconds = float(row["µs"]) / 1e6
    if candidate is None:
        return seconds
    mnk = (int(row[name]) for name in ("M", "N", "K"))
    return seconds - saved(candidate, number_of(row["pool"]), *mnk)


def number_of(pool: str) -> int:
    """The number of a pool; 0 if it has a name."""
    return int(pool) if pool.isdigit() else 0


@cache
def plan_of(candidate: Candidate) -> Sm90Plan:
    """A plan of a candidate, whatever the problem."""
    return candidate.plan(Problem.dense(4096, 4096, 4096))


def saved(candidate: Candidate, pool: int, m: int, n: int, k: int) -> float:
    """How many seconds less a run of a pool would take today."""
    plan = plan_of(candidate)
    rows = plan.operand_rows(m, n)
    overlaps = uses_pdl(plan, *rows, k, SMS)
    before = overlaps and overlapped_before(plan, *rows, k)
    found = 0.0
    if pool < FIRST_SINCE:
        found += saved_by_divisions(plan, before)
    if pool < WAVES_SINCE and overlaps and not before:
        found += SAVED_BY_WAVES
    return found


def saved_by_divisions(plan: Sm90Plan, overlapped: bool) -> float:
    """What a launch has saved since FIRST_SINCE, if it overlapped the previous one or not."""
    if plan.cluster_size > 1 or plan.splits > 1:
        return SAVED_IN_CLUSTERS * (plan.cluster_size > 1) + SAVED_BY_SPLITS * (plan.splits > 1)
    return SAVED_OVERLAPPING if overlapped else SAVED_ALONE


def overlapped_before(plan: Sm90Plan, m: int, n: int, k: int) -> bool:
    """Whether a launch that overlaps today did so in pools below WAVES_SINCE."""
    if plan.cluster_size > 1 or plan.splits > 1:
        return True
    bm, bn, _ = plan.tile
    down, across = -(-m // bm), -(-n // bn)
    return k <= SHORT_BEFORE or 2 * down * across <= SMS or 1 in (down, across)


def of_shape(
    m: int, n: int, k: int, kind: str, pool: int = TANH_SINCE, batch: int = 1
) -> tuple[float, ...]:
    """What the runs of a shape in a pool have in common: `key`, `batch`, `kind` and `work`."""
    of_a, of_b = KINDS[kind].majors
    pitches = m if of_a == "MN" else k, n if of_b == "MN" else k, n
    work = work_of(measured.Case((m, n, k), kind).problem) if kind in EPILOGUES else EpilogueWork()
    if kind == "gelu_tanh" and pool < TANH_SINCE:
        work = work._replace(slots=GELU_TANH_SLOTS)
    alignments = (alignment_index(2 * each) for each in pitches)
    return m, n, k, *alignments, batch, [*KINDS].index(kind), *work


def of_all(
    rows: Sequence[Sequence[float]], cublas: Sequence[float], names: list[Candidate]
) -> Runs:
    """Runs of which each row has the shape's number, the plan's, the seconds, and `of_shape`."""
    shape, candidate, seconds, m, n, k, *others = np.array(rows).T
    shape = shape.astype(int)
    best = np.full(len(cublas), np.inf)
    np.minimum.at(best, shape, seconds)
    *alignments, batch, kinds = (each.astype(int) for each in others[:5])
    found = shape, candidate.astype(int), seconds, (m, n, k, *alignments), batch, kinds
    return Runs(*found, EpilogueWork(*others[5:]), np.array(cublas), best, names)


def formulas(runs: Runs, c: Constants) -> dict[str, Array]:
    """`terms` of each run."""
    kinds, of_runs = np.unique(runs.kind, return_inverse=True)
    tables = (table(runs.names, c, [*KINDS.values()][kind].majors) for kind in kinds)
    every = (np.concatenate(columns, axis=-1) for columns in zip(*tables, strict=True))
    number = runs.candidate + len(runs.names) * of_runs
    costs = Table(*(column[..., number] for column in every))
    m, n, k, *rows = runs.key
    return terms(m, n, k, aligned(costs, rows, c), c, runs.work, batch=runs.batch)


def expectation(runs: Runs, c: Constants, learned: Network) -> dict[str, Array]:
    """`formulas`, with the corrected seconds."""
    found = formulas(runs, c)
    facts, rows, work = other_inputs(runs)
    others = learned.others(facts, rows, work) + log_batch(runs).T * learned.by_batch(facts)
    return found | {"seconds": found["seconds"] * correction(found["inputs"], others, learned)}


def other_inputs(runs: Runs) -> tuple[Array, Array, Array]:
    """The network's inputs other than the terms."""
    facts = candidate_inputs(runs.names)[:, runs.candidate]
    slots, matrices, _, _, accumulators = runs.work
    return facts, row_inputs(runs.key[3:]), work_inputs(slots, matrices, accumulators)


def log_batch(runs: Runs) -> Array:
    """(1, runs): log2 of the matrices of a batch."""
    found: Array = np.log2(runs.batch, dtype=np.float32)[None]
    return found


def chosen(runs: Runs, c: Constants, learned: Network) -> Array:
    """The measured seconds of the plan that the model chooses, for each shape."""
    return runs.seconds[choice(runs, expectation(runs, c, learned))]


def choice(runs: Runs, found: dict[str, Array]) -> Array:
    """The run that is expected to be fastest, of each shape."""
    order = np.lexsort((np.where(found["serves"], found["seconds"], np.inf), runs.shape))
    return order[np.unique(runs.shape[order], return_index=True)[1]]
