"""What measurements say beyond the formulas: a factor for each candidate's time.

The factor comes from a network with two hidden layers of 64 ReLU units. The inputs of the first are

    TERMS   of the formulas: they change with the problem and the candidate
    FACTS   of the candidate: its tile, cluster, schedule, stages and panels of C
    ROWS    the alignments of the rows of A, B and C
    WORK    of the epilogue, alone and times each of FACTS: 0 without an epilogue
    BATCH   log2 of the matrices of a batch, alone and times each of FACTS: 0 for one product

The formulas cover flops and L2. The network learns how plans deviate from them: those that wait for
DRAM, blocks that share what L2 serves or fall out of step, tiles beyond the edge, short loops.
`bench/fit_model.py` writes the weights, correction.csv. It learns those of WORK and of BATCH last,
while all others stay, so that epilogues and batches change no choice for a product alone.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cutedsl_gemm.kernels.sm90.operand import SHORTEST_ROW
from cutedsl_gemm.kernels.sm90.rungs import pingpong, split
from cutedsl_gemm.select.candidate import Candidate

FILE = Path(__file__).with_name("correction.csv")
LIMIT = math.log(4.0)  # of the factor's logarithm

TERMS = (  # their logarithms
    "waves",
    "busy multiprocessors",
    "k-tiles",
    "splits",
    "L2",
    "k-tile",
    "main loops",
    "DRAM",
    "time",
    "used part of tile rows",
    "used part of tile columns",
    "rows",
    "columns",
)
ROWS = tuple(f"{name} at {each} bytes" for name in ("A and B", "C") for each in (64, 32, 16))

Array: TypeAlias = NDArray[Any]


def facts(candidate: Candidate) -> dict[str, float]:
    """What the network knows of a candidate.

    >>> from cutedsl_gemm.kernels.sm90.rungs import split
    >>> found = facts(Candidate(split, (128, 96, 64), 4, (4, 1), swapped=True))
    >>> [found[name] for name in ("log2 BM", "log2 down", "log2 across", "K split", "8 blocks")]
    [7.0, 2.0, 0.0, 1, 0]
    """
    (bm, bn, bk), (down, across) = candidate.tile, candidate.cluster
    numbers = {
        "BM": bm,
        "BN": bn,
        "BK": bk,
        "down": down,
        "across": across,
        "smem": bm + bn + candidate.reads,  # written and read, for each k
        "stages": candidate.stages,
        "panel columns": candidate.panels.columns,
    }
    return {f"log2 {name}": math.log2(value) for name, value in numbers.items()} | {
        "K split": int(candidate.maker is split),
        "cluster": int(down * across > 1),
        "4 blocks or more": int(down * across >= 4),
        "8 blocks": int(down * across >= 8),
        "in turns": int(candidate.maker is pingpong),
        "3 consumers": int(candidate.consumers == 3),
        "swapped": int(candidate.swapped),
        "BM 64": int(bm == 64),
        "BM 192": int(bm == 192),
        "BM 256": int(bm == 256),
        "unswizzled panel": int(bn % SHORTEST_ROW != 0 and not candidate.swapped),
    }


FACTS = tuple(facts(Candidate(pingpong, (64, 64, 64))))
EPILOGUE = "slots", "matrices", "two accumulators"  # what it adds; 0 for a product alone
TIMES = "", *(f" × {fact}" for fact in FACTS)
WORK = tuple(name + times for name in EPILOGUE for times in TIMES)
BATCH = tuple("log2 matrices" + times for times in TIMES)
UNITS = 64  # of each layer
# Rows of the file: the weights of an input, or of a unit of the first layer, to each unit.
NAMES = (
    *(*TERMS, *FACTS, *ROWS, *WORK, *BATCH, "bias"),
    *(*(f"unit {number}" for number in range(UNITS)), "second bias"),
    *("output", "offset"),
)


def candidate_inputs(candidates: Sequence[Candidate]) -> Array:
    """(FACTS, candidates)"""
    return np.array([[*facts(each).values()] for each in candidates], np.float32).T


def row_inputs(alignments: Sequence[Any]) -> Array:
    """(ROWS, 1 or candidates), of the alignments of A's, B's and C's rows.

    Each is an index in `costs.ALIGNMENTS`: of 128, 64, 32 or 16 bytes.
    """
    a, b, c = (np.arange(1, 4)[:, None] == each for each in alignments)
    return np.vstack([(a * 0.5 + b * 0.5), c]).astype(np.float32)


def work_inputs(slots: Any, matrices: Any, accumulators: Any) -> Array:
    """(EPILOGUE, 1 or candidates), of the fields of `formulas.EpilogueWork`."""
    work = np.log2(1 + slots), np.log2(1 + matrices), np.equal(accumulators, 2)
    return np.array(work, np.float32).reshape(len(EPILOGUE), -1)


def times_facts(work: Array, facts: Array) -> Array:
    """(WORK, candidates): `work_inputs`, alone and times each of (FACTS, candidates)."""
    found: Array = work[:, None] * np.vstack([np.ones_like(facts[:1]), facts])
    return found.reshape(-1, facts.shape[1])


class Network(NamedTuple):
    """The weights: a row for each input, a column for each unit.

    The last unit of each layer is always 1: its weights are the biases of the next layer.
    """

    terms: Array  # (TERMS, units)
    facts: Array  # (FACTS, units)
    rows: Array  # (ROWS, units)
    work: Array  # (WORK, units)
    batch: Array  # (BATCH, units)
    bias: Array  # (1, units)
    hidden: Array  # (units, units of the second layer)
    output: Array  # (units of the second layer,)

    def others(self, facts: Array, rows: Array, work: Array) -> Array:
        """(candidates, units): what the first layer adds up of all inputs but the terms.

        The arguments are those of `candidate_inputs`, `row_inputs` and `work_inputs`. A candidate's
        row is contiguous, since a choice takes the rows of a few.
        """
        by_work = times_facts(work, facts).T @ self.work
        found: Array = facts.T @ self.facts + (rows.T @ self.rows + by_work + self.bias)
        return found

    def by_batch(self, facts: Array) -> Array:
        """(candidates, units): what a batch adds to `others`, divided by log2 of its matrices."""
        found: Array = times_facts(ONE, facts).T @ self.batch
        return found

    def log_factor(self, logs: Array, others: Array) -> Array:
        """(candidates,): the logarithm of the factor, which is 1/4 to 4.

        `logs` are the logarithms of the terms, (TERMS, candidates).
        """
        first = logs.T.dot(self.terms)  # half a microsecond less than @, as below
        first += others
        second = np.maximum(first, ZERO).dot(self.hidden)
        return np.maximum(second, ZERO).dot(self.output).clip(LEAST, MOST)


# As arrays: with Python's floats, each call above would take 0.3 µs more.
ZERO, LEAST, MOST = (np.array(x, np.float32) for x in (0, -LIMIT, LIMIT))
ONE = np.ones((1, 1), np.float32)


def network(inputs: Array, hidden: Array, output: Array) -> Network:
    """The network of such weights, a row for each input; the last row has the biases."""
    ends = np.cumsum([len(TERMS), len(FACTS), len(ROWS), len(WORK), len(BATCH)])
    terms, facts, rows, work, batch, bias = np.split(_with_one(inputs), ends)
    layers = terms, facts, rows, work, batch, bias, _with_one(hidden)
    return Network(*layers, output.astype(np.float32))


def _with_one(weights: Array) -> Array:
    """The weights with one more unit, which is always 1."""
    unit = np.zeros((len(weights), 1))
    unit[-1] = 1
    return np.hstack([weights, unit]).astype(np.float32)


def read(path: Path) -> Network:
    """The weights of a file: a row for each of NAMES. ValueError if it has others."""
    with path.open(newline="", encoding="utf-8") as stream:
        rows = {name: np.array(weights, np.float32) for name, *weights in csv.reader(stream)}
    if tuple(rows) != NAMES:
        raise ValueError(
            f"{path} has weights of other inputs: give it a row for each of NAMES, whatever the "
            "weights, and learn them: python bench/fit_model.py bench/runs.csv.xz --write"
        )
    *weights, output, offset = rows.values()
    inputs, hidden = np.split(np.array(weights), [-UNITS - 1])
    return network(inputs, hidden, np.append(output, offset))


def write(path: Path, weights: Network) -> None:
    """Writes what `read` reads."""
    *layers, output = weights
    rows = *np.vstack(layers)[:, :-1], output[:-1], output[-1:]
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        for name, row in zip(NAMES, rows, strict=True):
            writer.writerow((name, *(f"{weight:.4g}" for weight in row)))


LEARNED = read(FILE)
