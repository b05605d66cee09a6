"""The constants of select/model.py, its correction, and the candidates worth keeping.

    python bench/fit_model.py FILE... [--steps 0] [--learn 32000] [--epilogues 3000] [--held 3]
                                      [--pick N] [--write]

The files are CSVs of bench/candidates.py, compressed by xz or not. Those that the network learned
are in the repository: `python bench/fit_model.py bench/runs.csv.xz --write`.

The network of select/correction.py learns what the formulas miss (bench/learn.py), and `--write`
stores its weights. `--learn` is the number of steps for products alone, `--epilogues` that for
products with an epilogue. With `--learn 0`, only the weights of epilogues (WORK) change. That run
wrote those in the repository; the others are of a former training (docs/performance/notebook.md,
"Epilogues learned apart"). `--held 3` leaves out every third shape, and reports it.

The formulas rank all candidates, and a choice corrects only the first NEAR. `--steps 1000` first
fits the constants of the formulas, so that the candidate that the previous network ranks first is
among these. Then write the constants into model.py, and let the network learn anew.

`--pick N` picks N of all measured plans greedily; with `--write` they become the candidates, of
which a second run learns. torch.mm runs without the epilogue that the plans have. Needs no GPU;
takes minutes.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path

import numpy as np
from learn import learn, learn_epilogues
from runs import Array, Runs, chosen, expectation, formulas, of_all, of_shape, read

from cutedsl_gemm.measure.decode import ROWS, WEIGHTS
from cutedsl_gemm.measure.random_shapes import draw
from cutedsl_gemm.select import candidate
from cutedsl_gemm.select.candidate import CANDIDATES, EVERY, LONG_EPILOGUES, Candidate
from cutedsl_gemm.select.correction import FILE, LEARNED, Network, write
from cutedsl_gemm.select.model import FITTED, NEAR, Constants

OFTEN = 12  # runs of a plan that may become a candidate
DRAWN = 1500  # random shapes of `unmeasured`
# Constants that change no time at the shapes of `unmeasured`, so the fit leaves them alone.
ELSEWHERE = "tma_row", "dram", "kept", "narrow_write", "issue", "read", "full"


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
    """The speed over torch.mm of a plan for each shape, and what it loses to the best that ran."""
    for kind, some in ("products", ~runs.with_epilogue), ("with epilogues", runs.with_epilogue):
        if not some.any():
            continue
        speed = (runs.torch / seconds)[some]
        lost = np.log(seconds / runs.best)[some].mean()
        below = ", ".join(f"{(speed < x).mean():.1%} below {x}" for x in (0.95, 0.85))
        print(
            f"{name:24} {some.sum():5} {kind:14}: {np.exp(np.log(speed).mean()):.3f} × torch.mm, "
            f"{below}; loses {lost:.2%}",
            flush=True,
        )


def main() -> None:
    """Fit, report, and print the constants and the candidates."""
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--learn", type=int, default=32000)
    parser.add_argument("--epilogues", type=int, default=3000)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--pick", type=int)
    parser.add_argument("--held", type=int, default=0)
    options = parser.parse_args()
    runs = read(options.files)
    numbers = np.arange(len(runs.torch))
    held = numbers % options.held == 0 if options.held else numbers < 0
    fitted, left = runs.of(numbers[~held]), runs.of(numbers[held])
    for steps, some in ("learn", ~fitted.with_epilogue), ("epilogues", fitted.with_epilogue):
        if getattr(options, steps) and not some.any():
            parser.error(f"the files have no runs from which --{steps} could learn; pass 0")
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
    if options.epilogues:
        learned = learn_epilogues(parts[0][1], c, learned, options.epilogues)
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
