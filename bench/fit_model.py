"""The constants of select/model.py, its correction, and the candidates worth keeping.

    python bench/fit_model.py FILE... [--steps 0] [--learn 32000] [--held 3] [--pick N] [--write]

The files are CSVs of bench/candidates.py, compressed by xz or not. Those that the network learned
are in the repository: `python bench/fit_model.py bench/runs.csv.xz --write`.

The network of select/correction.py learns what the formulas miss, and `--write` stores its weights.
Its loss has two parts: the errors at plans near the best of each shape, and the time that the
choice loses. An error that all plans of a shape share hardly counts, since it changes no choice.
`--held 3` leaves out every third shape, and reports it. `--learn` is the number of training steps.

The formulas rank all candidates, and a choice corrects only the first NEAR. `--steps 1000` first
fits the constants of the formulas, so that the candidate that the previous network ranks first is
among these. Then write the constants into model.py, and let the network learn anew.

`--pick N` picks N of all measured plans greedily; with `--write` they become the candidates, of
which a second run learns. torch.mm runs without the epilogue that the plans have. Needs no GPU;
takes minutes.
"""

from __future__ import annotations

import argparse
import csv
import lzma
from collections import defaultdict
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import candidates as measured  # bench/candidates.py
import numpy as np
import torch
from candidates import EPILOGUES, KINDS
from numpy.typing import NDArray

from cutedsl_gemm.measure.decode import ROWS, WEIGHTS
from cutedsl_gemm.measure.providers import CUBLAS
from cutedsl_gemm.measure.random_shapes import draw
from cutedsl_gemm.select import candidate
from cutedsl_gemm.select.candidate import CANDIDATES, EVERY, LONG_EPILOGUES, Candidate
from cutedsl_gemm.select.correction import (
    FILE,
    LEARNED,
    UNITS,
    Network,
    network,
    of_candidates,
    of_rows,
    of_work,
    write,
)
from cutedsl_gemm.select.model import (
    FITTED,
    NEAR,
    Constants,
    Table,
    Work,
    aligned,
    correction,
    row_alignment,
    table,
    terms,
    work_of,
)

Array = NDArray[Any]
CLOSE = 0.15  # a plan that takes 1 + CLOSE times the best one's time weighs 1/e
SOFT = 0.05  # the choice is a softmax of log times over this
RAREST = 0.1  # a standard deviation, at least, of an input that is hardly ever there
JITTER = 0.02  # standard deviations by which inputs move, all plans of a shape alike
# The network sees some shapes more often than others: those of few rows or columns and of multiples
# of ROUND, which are rare in the pools but not in models, those with an epilogue, and those that
# bench names.
FEW, ROUND, RARE, NAMED = 128, 128, 3, 8
OFTEN = 12  # runs of a plan that may become a candidate
DRAWN = 1500  # random shapes of `unmeasured`
# Constants that change no time at the shapes of `unmeasured`, so the fit leaves them alone.
ELSEWHERE = "tma_row", "dram", "kept", "narrow_write", "issue", "read", "full"
SEED = 2  # of 0, 1 and 2, the one whose choice lost least in decoding and at the shapes of bench
SHAPES, PLANS = 128, 60  # of which the network learns at a time: most plans of each shape


class Runs(NamedTuple):
    """Measured runs, an entry each; `torch` and `best` have one for each shape."""

    shape: Array  # its number
    candidate: Array  # its number in `names`
    seconds: Array
    key: tuple[Array, ...]  # M, N, K, and the alignments of rows of A, B and C
    kind: Array  # its number in KINDS
    work: Work  # of the epilogue
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

    def only(self, keep: Array) -> Runs:
        """The runs whose entry is true, of the same shapes."""
        return self._replace(
            shape=self.shape[keep],
            candidate=self.candidate[keep],
            seconds=self.seconds[keep],
            key=tuple(each[keep] for each in self.key),
            kind=self.kind[keep],
            work=Work(*(each[keep] for each in self.work)),
        )


def read(paths: Sequence[Path]) -> Runs:
    """The runs of all files. Wrong outputs do not count."""
    known = {each.name: each for each in (*EVERY, *measured.tried())}
    shapes: dict[tuple[Any, ...], dict[str, float]] = defaultdict(dict)
    for path in paths:
        with (lzma.open if path.suffix == ".xz" else open)(path, "rt", newline="") as stream:
            for row in csv.DictReader(stream):
                extents = (int(row[name]) for name in ("M", "N", "K"))
                if not row["wrong"] and (row["plan"] in known or row["plan"] == CUBLAS):
                    times = shapes[(row["pool"], *extents, row["kind"])]
                    times[row["plan"]] = float(row["µs"]) / 1e6
    shapes = {shape: times for shape, times in shapes.items() if {*times} - {CUBLAS}}
    names = sorted({name for times in shapes.values() for name in times} - {CUBLAS})
    number = {name: at for at, name in enumerate(names)}
    rows, cublas = [], []
    for at, ((_, *mnk, kind), times) in enumerate(shapes.items()):
        cublas.append(times.pop(CUBLAS))
        same = of_shape(*mnk, kind)
        rows += [(at, number[name], t, *same) for name, t in times.items()]
    return of_all(rows, cublas, [known[name] for name in names])


def of_shape(m: int, n: int, k: int, kind: str) -> tuple[float, ...]:
    """What the runs of a shape have in common: `key`, `kind` and `work`."""
    of_a, of_b = KINDS[kind].majors
    pitches = m if of_a == "MN" else k, n if of_b == "MN" else k, n
    work = work_of(measured.Case((m, n, k), kind).problem) if kind in EPILOGUES else Work()
    return m, n, k, *(row_alignment(2 * each) for each in pitches), [*KINDS].index(kind), *work


def of_all(
    rows: Sequence[Sequence[float]], cublas: Sequence[float], names: list[Candidate]
) -> Runs:
    """Runs of which each row has the shape's number, the plan's, the seconds, and `of_shape`."""
    shape, candidate, seconds, m, n, k, *entries = np.array(rows).T
    shape = shape.astype(int)
    best = np.full(len(cublas), np.inf)
    np.minimum.at(best, shape, seconds)
    *alignments, kinds = (each.astype(int) for each in entries[:4])
    found = shape, candidate.astype(int), seconds, (m, n, k, *alignments), kinds
    return Runs(*found, Work(*entries[4:]), np.array(cublas), best, names)


def unmeasured() -> Runs:
    """All candidates at random shapes, and then at those of decoding; their times mean nothing."""
    shapes = *draw(DRAWN, seed=0), *((m, *weight) for m, weight in product(ROWS, WEIGHTS))
    rows = [
        (at, number, 1.0, *of_shape(*mnk, ""))
        for at, mnk in enumerate(shapes)
        for number in range(len(CANDIDATES))
    ]
    return of_all(rows, [1.0] * len(shapes), [*CANDIDATES])


def by_shape(values: Array) -> Array:
    """(shapes, candidates), of the runs of `unmeasured`."""
    return values.reshape(-1, len(CANDIDATES))


def formulas(runs: Runs, c: Constants) -> dict[str, Array]:
    """`terms` of each run."""
    kinds, of_runs = np.unique(runs.kind, return_inverse=True)
    tables = (table(runs.names, c, [*KINDS.values()][kind].majors) for kind in kinds)
    every = (np.concatenate(columns, axis=-1) for columns in zip(*tables, strict=True))
    number = runs.candidate + len(runs.names) * of_runs
    costs = Table(*(column[..., number] for column in every))
    m, n, k, *rows = runs.key
    return terms(m, n, k, aligned(costs, rows, c), c, runs.work)


def expectation(runs: Runs, c: Constants, learned: Network) -> dict[str, Array]:
    """`formulas`, with the corrected seconds."""
    found = formulas(runs, c)
    others = learned.others(*other_inputs(runs))
    return found | {"seconds": found["seconds"] * correction(found["inputs"], others, learned)}


def other_inputs(runs: Runs) -> tuple[Array, Array, Array]:
    """The network's inputs other than the terms."""
    facts = of_candidates(runs.names)[:, runs.candidate]
    slots, reads, _, accumulators = runs.work
    return facts, of_rows(runs.key[3:]), of_work(slots, reads, accumulators)


def chosen(runs: Runs, c: Constants, learned: Network) -> Array:
    """The measured seconds of the plan that the model chooses, for each shape."""
    return runs.seconds[choice(runs, expectation(runs, c, learned))]


def choice(runs: Runs, found: dict[str, Array]) -> Array:
    """The run that is expected to be fastest, of each shape."""
    order = np.lexsort((np.where(found["serves"], found["seconds"], np.inf), runs.shape))
    return order[np.unique(runs.shape[order], return_index=True)[1]]


def cost(runs: Runs) -> Array:
    """What the choice of each run would cost: time lost to the best plan, and to torch.mm."""
    beyond_best = np.log(runs.seconds / runs.best[runs.shape])
    beyond_torch = np.log(runs.seconds / runs.torch[runs.shape])
    return np.minimum(beyond_best, 1) + 2 * np.clip(beyond_torch, 0, 0.7)


def relevant(runs: Runs, physical: Array, legal: Array) -> Array:
    """Whether a run is among the PLANS of its shape that are fast, or are expected to be."""
    least = np.full(len(runs.torch), np.inf)
    np.minimum.at(least, runs.shape, np.where(legal, physical, np.inf))
    slow = 1.5 * np.log(runs.seconds / runs.best[runs.shape])
    order = np.lexsort((np.minimum(slow, physical - least[runs.shape]), ~legal, runs.shape))
    rank = np.empty(len(order), int)
    rank[order] = places(runs.shape[order], len(runs.torch))
    return legal & (rank < PLANS)


def places(shape: Array, count: int) -> Array:
    """The place of each run among those of its shape; the shapes are sorted."""
    counts = np.bincount(shape, minlength=count)
    return np.arange(len(shape)) - np.repeat(np.cumsum(counts) - counts, counts)


def learn(runs: Runs, c: Constants, steps: int) -> Network:
    """The network that makes the least loss, without bias.

    A choice prefers plans that it takes for too fast. With the bias of the output, the chosen plans
    take what the model says, on average.
    """
    unbiased = trained(runs, c, steps)
    found = expectation(runs, c, unbiased)
    first = choice(runs, found)
    bias = np.log(runs.seconds[first] / found["seconds"][first]).mean()
    output = np.append(unbiased.output[:-1], bias.astype(np.float32))
    return unbiased._replace(output=output)


def frequencies(runs: Runs) -> Array:
    """How often the network sees each shape, beside others."""
    extents = np.zeros((3, len(runs.torch)), int)
    extents[:, runs.shape] = runs.key[:3]
    rare = (extents[:2].min(0) <= FEW) | (extents % ROUND == 0).all(0)
    named = {*measured.NAMED, *((m, *weight) for m, weight in product(ROWS, WEIGHTS))}
    known = np.array([mnk in named for mnk in zip(*extents.tolist(), strict=True)])
    rare[runs.shape] |= np.array([name in EPILOGUES for name in KINDS])[runs.kind]
    return np.select([known, rare], [NAMED, RARE], 1)


def trained(runs: Runs, c: Constants, steps: int) -> Network:
    """The network that makes the least loss, by Adam, of some shapes at a time."""
    found = formulas(runs, c)
    physical = np.log(found["seconds"])
    logs = np.log(found["inputs"], dtype=np.float32)
    inputs = np.vstack([logs, *other_inputs(runs)])
    slow = np.log(runs.seconds / runs.best[runs.shape])
    legal = relevant(runs, physical, found["serves"])
    shape = runs.shape[legal]
    counts = np.bincount(shape, minlength=len(runs.torch))
    place = places(shape, len(runs.torch))

    def dense(values: Array, empty: float) -> torch.Tensor:
        """(shapes, plans, …), of an entry for each run."""
        filled = np.full((len(counts), counts.max(), *values.shape[1:]), empty, np.float32)
        filled[shape, place] = values[legal]
        return torch.from_numpy(filled)

    mean, scale = inputs.mean(1), np.maximum(inputs.std(1), RAREST)
    x = dense(((inputs - mean[:, None]) / scale[:, None]).T, 0)
    expected, measured_ = dense(physical, 99), dense(np.log(runs.seconds), 99)
    weight = dense(np.exp((1 - np.exp(slow)) / CLOSE), 0)
    costs = dense(cost(runs), 0)
    often = torch.from_numpy(np.where(counts < 2, 0, frequencies(runs))).float()
    torch.manual_seed(SEED)
    first, second = torch.nn.Linear(len(inputs), UNITS), torch.nn.Linear(UNITS, UNITS)
    last = torch.nn.Linear(UNITS, 1, bias=False)
    layers = torch.nn.Sequential(first, torch.nn.ReLU(), second, torch.nn.ReLU(), last)
    with torch.no_grad():
        last.weight *= 0.1
    adam = torch.optim.AdamW(layers.parameters(), weight_decay=0.1)
    rate = torch.optim.lr_scheduler.OneCycleLR(adam, 0.005, total_steps=steps, pct_start=0.1)
    for _ in range(steps):
        some = torch.multinomial(often, SHAPES, replacement=True)
        jitter = JITTER * torch.randn(SHAPES, 1, len(inputs))
        seconds = expected[some] + layers(x[some] + jitter)[..., 0]
        lost = (torch.softmax(-seconds / SOFT, 1) * costs[some]).sum(1).mean()
        near, error = weight[some], seconds - measured_[some]
        common = (near * error).sum(1) / near.sum(1)
        within = torch.nn.functional.huber_loss(
            error, common[:, None].expand_as(error), reduction="none", delta=0.1
        )
        total = 20 * (near * within).sum() / near.sum() + 3 * lost + 0.1 * common.abs().mean()
        adam.zero_grad()
        total.backward()
        adam.step()
        rate.step()
    weights = first.weight.detach().numpy().T / scale[:, None]
    bias = first.bias.detach().numpy() - mean @ weights
    hidden = np.vstack([each.detach().numpy() for each in (second.weight.T, second.bias)])
    return network(np.vstack([weights, bias]), hidden, np.append(last.weight[0].detach(), 0))


def flat(c: Constants) -> Array:
    """All constants, as logarithms."""
    return np.log(np.hstack(c))


def unflat(logs: Array, c: Constants) -> Constants:
    """The constants of `flat`."""
    values = iter(np.exp(logs).tolist())
    return Constants(
        *(tuple(next(values) for _ in old) if isinstance(old, tuple) else next(values) for old in c)
    )


def fit(c: Constants, learned: Network, steps: int) -> Constants:
    """Constants by which a choice corrects the right candidates: a random search.

    The candidate that the network ranks first should be among the NEAR that the formulas do.
    """
    random = np.random.default_rng(0)
    runs = unmeasured()
    found = expectation(runs, c, learned)
    expected = by_shape(np.where(found["serves"], np.log(found["seconds"]), np.inf))
    first = expected.min(1)

    def missed(logs: Array) -> float:
        """What a choice loses: the mean at random shapes, and half of that of decoding.

        A choice of fewer candidates than NEAR, and one of more, count too: that smooths the loss.
        """
        found = formulas(runs, unflat(logs, c))
        seconds, total = by_shape(np.where(found["serves"], found["seconds"], np.inf)), 0.0
        for count, share in ((NEAR * 2 // 3, 0.25), (NEAR, 1.0), (NEAR * 4 // 3, 0.25)):
            near = seconds.argpartition(min(count, len(CANDIDATES)) - 1)[:, :count]
            lost = np.take_along_axis(expected, near, 1).min(1) - first
            total += share * (lost[:DRAWN].mean() + lost[DRAWN:].mean() / 2) / 1.5
        return total

    free = np.concatenate(
        [np.full(np.size(x), name not in ELSEWHERE) for name, x in c._asdict().items()]
    )
    logs, width = flat(c), 0.1
    least = missed(logs)
    for step in range(1, steps + 1):
        moved = free & (random.random(len(logs)) < 0.25)
        there = logs + width * moved * random.standard_normal(len(logs))
        lost = missed(there)
        better = lost < least
        logs, least = (there, lost) if better else (logs, least)
        width = np.clip(width * (1.2 if better else 0.97), 0.02, 0.3)
        if step % 100 == 0:
            print(f"step {step}: {least:.3%} lost", flush=True)
    return unflat(logs, c)


def pick(runs: Runs, c: Constants, learned: Network, count: int) -> list[Candidate]:
    """`count` plans, picked greedily: each is the one that most improves the model's choice."""
    shapes = len(runs.torch)
    times = np.full((shapes, len(runs.names)), np.inf)
    guesses = np.full_like(times, np.inf)
    found = expectation(runs, c, learned)
    times[runs.shape, runs.candidate] = runs.seconds
    guesses[runs.shape, runs.candidate] = np.where(found["serves"], found["seconds"], np.inf)
    worst = np.log(2.5 * runs.torch)
    taken: list[int] = []
    guess, time = np.full(shapes, np.inf), 2.5 * runs.torch
    while len(taken) < count:
        better = guesses < guess[:, None]
        now = np.minimum(np.log(np.where(better, times, time[:, None])), worst[:, None])
        slow = np.maximum(0, now - np.log(runs.torch)[:, None] + 0.03)  # beside torch.mm
        value = (now + slow).sum(0)
        value[taken] = np.inf
        at = int(value.argmin())
        taken.append(at)
        time = np.where(better[:, at], times[:, at], time)
        guess = np.minimum(guess, guesses[:, at])
    return [runs.names[at] for at in taken]


def report(name: str, runs: Runs, seconds: Array) -> None:
    """The speed over torch.mm of a plan for each shape."""
    speed = runs.torch / seconds
    mean = np.exp(np.log(speed).mean())
    below = ", ".join(f"{(speed < x).mean():.1%} below {x}" for x in (0.95, 0.85))
    print(f"{name:24} {len(speed):5} shapes: {mean:.3f} × torch.mm, {below}", flush=True)


def main() -> None:
    """Fit, report, and print the constants and the candidates."""
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--learn", type=int, default=32000)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--pick", type=int)
    parser.add_argument("--held", type=int, default=0)
    options = parser.parse_args()
    runs = read(options.files)
    numbers = np.arange(len(runs.torch))
    held = numbers % options.held == 0 if options.held else numbers < 0
    fitted, left = runs.of(numbers[~held]), runs.of(numbers[held])
    parts = [("fitted", fitted)] + [("held out", left)] * bool(options.held)
    for name, part in parts:
        report(f"best, {name}", part, part.best)
        report(f"choice before, {name}", part, chosen(part, FITTED, LEARNED))
    c = fit(FITTED, LEARNED, options.steps) if options.steps else FITTED
    if options.pick:
        known = np.bincount(runs.candidate, minlength=len(runs.names)) >= OFTEN
        known &= np.array([each not in LONG_EPILOGUES for each in runs.names])
    else:
        known = np.array([each in EVERY for each in runs.names])
    parts = [(name, part.plans(known)) for name, part in parts]
    learned = learn(parts[0][1], c, options.learn) if options.learn else LEARNED
    if options.write and not options.pick:
        write(FILE, learned)
    for name, part in parts:
        report(f"choice, {name}", part, chosen(part, c, learned))
    for name, value in c._asdict().items():
        text = ", ".join(f"{x:.3g}" for x in np.atleast_1d(value))
        print(f"    {name} = ({text})" if isinstance(value, tuple) else f"    {name} = {text}")
    if options.pick:
        kept = pick(parts[0][1], c, learned, options.pick)
        for name, part in parts:
            few = part.plans(np.array([each in kept for each in part.names]))
            report(f"choice of {len(kept)}, {name}", few, chosen(few, c, learned))
        if options.write:
            candidate.write(candidate.FILE, kept)


if __name__ == "__main__":
    main()
