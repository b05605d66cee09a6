"""The constants of select/model.py, fitted to measurements, and the candidates worth keeping.

    python bench/fit_model.py FILE... [--steps 150] [--pick 110] [--held 3]

The files are CSVs of bench/candidates.py. The fit weighs the plans near the best of each shape, and
what the choice by the model loses there: errors that all plans of a shape share do not matter. A
shape weighs as the logarithm of its time. With `--held 3`, every third shape is left out of the fit
and reported. `--pick N` then takes one candidate after the other, always the one that most improves
the model's choice. Needs no GPU; takes minutes.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import candidates as measured  # bench/candidates.py
import numpy as np
from numpy.typing import NDArray

from cutedsl_gemm.measure.providers import CUBLAS
from cutedsl_gemm.select.candidate import CANDIDATES, Candidate, depth
from cutedsl_gemm.select.model import ALIGNMENTS, FITTED, Constants, Table, serves, table, terms

Array = NDArray[Any]
NEAR = 0.15  # a plan that takes 1 + NEAR times the best one's time weighs 1/e
SOFT = 0.03  # the choice is a softmax of log times over this


class Runs(NamedTuple):
    """Measured runs, an entry each; `torch` and `best` have one for each shape."""

    shape: Array  # its number
    candidate: Array  # its number in `names`
    seconds: Array
    key: tuple[Array, ...]
    torch: Array
    best: Array
    names: list[Candidate]

    def of(self, shapes: Array) -> Runs:
        """The runs of some shapes."""
        number = np.full(len(self.torch), -1)
        number[shapes] = np.arange(len(shapes))
        keep = number[self.shape] >= 0
        return Runs(
            number[self.shape[keep]],
            self.candidate[keep],
            self.seconds[keep],
            tuple(each[keep] for each in self.key),
            self.torch[shapes],
            self.best[shapes],
            self.names,
        )


def read(paths: Sequence[Path]) -> Runs:
    """The runs of all files; a plan's fastest raster counts, and wrong outputs do not."""
    known = {each.name: each for each in (*CANDIDATES, *measured.tried())}
    shapes: dict[tuple[Path, ...], dict[str, float]] = defaultdict(dict)
    for path in paths:
        with path.open(newline="") as stream:
            for row in csv.DictReader(stream):
                key: Any = (path, *(int(row[name]) for name in ("M", "N", "K", "padding")))
                name, seconds = row["plan"], float(row["µs"]) / 1e6
                if not row["wrong"] and (name in known or name == CUBLAS):
                    times = shapes[key]
                    times[name] = min(seconds, times.get(name, math.inf))
    names = sorted({name for times in shapes.values() for name in times} - {CUBLAS})
    number = {name: at for at, name in enumerate(names)}
    rows, cublas, best = [], [], []
    for at, ((_, m, n, k, padding), times) in enumerate(shapes.items()):
        cublas.append(times.pop(CUBLAS))
        best.append(min(times.values()))
        lines = math.gcd(2 * (k + padding), 128)
        entry = ALIGNMENTS.index(lines)
        rows += [(at, number[name], t, m, n, k, entry) for name, t in times.items()]
    shape, candidate, seconds, *mnk, entry = np.array(rows).T
    key = *mnk, entry.astype(int)
    found = shape.astype(int), candidate.astype(int), seconds, key
    return Runs(*found, np.array(cublas), np.array(best), [known[name] for name in names])


def expected(runs: Runs, c: Constants) -> tuple[Array, Array]:
    """The seconds that the model expects of each run, and whether it may choose the plan."""
    of = Table(*(column[..., runs.candidate] for column in table(runs.names, c)))
    m, n, k, entry = runs.key
    of = of._replace(groups=np.choose(depth(k), of.groups)[None])
    found = terms((m, n, k, 0, entry, entry), of, c)
    return found["seconds"], serves(of, found["waves"])


def chosen(runs: Runs, c: Constants) -> Array:
    """The measured seconds of the plan that the model chooses, for each shape."""
    seconds, legal = expected(runs, c)
    order = np.lexsort((np.where(legal, seconds, np.inf), runs.shape))
    first = order[np.unique(runs.shape[order], return_index=True)[1]]
    return runs.seconds[first]


def loss(runs: Runs, c: Constants) -> float:
    """Errors among the plans of a shape, and what a soft choice loses to the best one."""
    seconds, legal = expected(runs, c)
    count = len(runs.torch)

    def by_shape(values: Array) -> Array:
        return np.bincount(runs.shape, values, minlength=count)

    weight = np.maximum(1, np.log2(runs.torch / 1e-6))  # of a shape
    near = np.exp((1 - runs.seconds / runs.best[runs.shape]) / NEAR) * weight[runs.shape]
    error = np.log(seconds / runs.seconds)
    common = by_shape(near * error) / by_shape(near)
    within = error - common[runs.shape]
    score = np.where(legal, -np.log(seconds / runs.best[runs.shape]) / SOFT, -np.inf)
    top = np.full(count, -np.inf)
    np.maximum.at(top, runs.shape, score)
    share = np.exp(score - top[runs.shape])
    lost = by_shape(share * np.log(runs.seconds / runs.best[runs.shape])) / by_shape(share)
    spread = (near * np.sqrt(within**2 + 1e-4)).sum() / near.sum()
    mean = (weight * (0.05 * np.abs(common) + 3 * lost + 6 * lost**2)).sum() / weight.sum()
    return float(spread + mean)


def flat(c: Constants) -> Array:
    """All constants, as logarithms."""
    return np.log(np.hstack(c))


def unflat(logs: Array, c: Constants) -> Constants:
    """The constants of `flat`."""
    values = iter(np.exp(logs).tolist())
    return Constants(
        *(tuple(next(values) for _ in old) if isinstance(old, tuple) else next(values) for old in c)
    )


def fit(runs: Runs, c: Constants, steps: int) -> Constants:
    """Adam on finite differences."""
    x = flat(c)
    mean, square = np.zeros_like(x), np.zeros_like(x)
    for step in range(1, steps + 1):
        here = loss(runs, unflat(x, c))
        slopes = np.empty_like(x)
        for at in range(len(x)):
            moved = x.copy()
            moved[at] += 1e-4
            slopes[at] = (loss(runs, unflat(moved, c)) - here) / 1e-4
        mean, square = 0.9 * mean + 0.1 * slopes, 0.99 * square + 0.01 * slopes**2
        rate = 0.04 * (1 - step / (steps + 1))
        x -= rate * mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.99**step)) + 1e-8)
        if step % 25 == 0:
            print(f"step {step}: loss {here:.4f}", flush=True)
    return unflat(x, c)


def pick(runs: Runs, c: Constants, count: int, kept: Sequence[str]) -> list[Candidate]:
    """So many candidates, each the one that most improves the model's choice."""
    shapes = len(runs.torch)
    times = np.full((shapes, len(runs.names)), np.inf)
    guesses = np.full_like(times, np.inf)
    seconds, legal = expected(runs, c)
    times[runs.shape, runs.candidate] = runs.seconds
    guesses[runs.shape, runs.candidate] = np.where(legal, seconds, np.inf)
    worst = np.log(2.5 * runs.torch)
    taken = [at for at, each in enumerate(runs.names) if each.name in kept]
    guess = guesses[:, taken].min(1, initial=np.inf)
    time = times[np.arange(shapes), np.array(taken)[guesses[:, taken].argmin(1)]]
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
    parser.add_argument("--steps", type=int, default=150)
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
        report(f"choice before, {name}", part, chosen(part, FITTED))
    c = fit(fitted, FITTED, options.steps)
    for name, part in parts:
        report(f"choice, {name}", part, chosen(part, c))
    for name, value in c._asdict().items():
        text = ", ".join(f"{x:.3g}" for x in np.atleast_1d(value))
        print(f"    {name} = ({text})" if isinstance(value, tuple) else f"    {name} = {text}")
    if options.pick:
        kept = {each.name for each in pick(fitted, c, options.pick, ["pingpong 128×128×64"])}
        for name, part in parts:
            shown = np.array([part.names[at].name in kept for at in part.candidate])
            few = Runs(
                *(column[shown] for column in part[:3]),
                tuple(x[shown] for x in part.key),
                *part[4:],
            )
            report(f"choice of {len(kept)}, {name}", few, chosen(few, c))
        print("\n".join(sorted(kept)))


if __name__ == "__main__":
    main()
