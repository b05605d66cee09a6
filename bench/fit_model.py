"""The constants of select/costs.py, the correction, and the candidates worth keeping.

    python bench/fit_model.py FILE... [--steps 0] [--learn 96000] [--epilogues 10000] [--held 3]
                                      [--batches 2000] [--pick WHOLE SPLIT] [--write]

The files are CSVs of bench/candidates.py, compressed by xz or not. Those that the network learned
are in the repository: `python bench/fit_model.py bench/runs.csv.xz --write`.

The network of select/correction.py learns what the formulas miss (bench/learn.py), and `--write`
stores its weights. `--learn` is the number of steps for products alone, `--epilogues` that for
products with an epilogue, and `--batches` that for batches. With `--learn 0`, only the weights of
epilogues (WORK) and of batches (BATCH) change (docs/performance/notebook.md, "Epilogues learned
apart" and "Batches learned apart"). `--held 3` leaves out every third shape, and reports it.

The formulas rank all candidates, and a choice corrects only the first NEAR. `--steps 1000` first
fits the constants of the formulas, so that the candidate that the previous network ranks first is
among these. Then write the constants into costs.py, and let the network learn anew.

`--pick 428 122` picks as many plans that do not split K, and that do, of all that ran; with
`--write` they become the candidates, of which a second run learns. torch.mm runs without the
epilogue that the plans have. Needs no GPU; takes minutes.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
from learn import learn, learn_batches, learn_epilogues
from runs import Array, Runs, chosen, expectation, formulas, of_all, of_shape, read

from cutedsl_gemm.measure.decode import ROWS, WEIGHTS
from cutedsl_gemm.measure.random_shapes import draw
from cutedsl_gemm.select import candidate
from cutedsl_gemm.select.candidate import (
    ALL_CANDIDATES,
    CANDIDATES,
    FILL,
    LONG_EPILOGUES,
    Candidate,
)
from cutedsl_gemm.select.correction import FILE, LEARNED, Network, write
from cutedsl_gemm.select.costs import FITTED, Constants
from cutedsl_gemm.select.model import NEAR

SELDOM = 8  # runs of a plan that may become a candidate
DRAWN = 1500  # random shapes of `unmeasured`
# Constants that change no time at the shapes of `unmeasured`, so the fit leaves them alone.
ELSEWHERE = "tma_row", "dram", "kept", "narrow_write", "issue", "read", "full"


def unmeasured(plans: Sequence[Candidate] = CANDIDATES) -> Runs:
    """Plans at random shapes, and then at those of decoding; their times mean nothing."""
    shapes = *draw(DRAWN, seed=0), *((m, *weight) for m, weight in product(ROWS, WEIGHTS))
    rows = [
        (at, number, 1.0, *of_shape(*mnk, ""))
        for at, mnk in enumerate(shapes)
        for number in range(len(plans))
    ]
    return of_all(rows, [1.0] * len(shapes), [*plans])


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


def pick(runs: Runs, c: Constants, learned: Network, whole: int, split: int) -> list[Candidate]:
    """The candidates of a choice: so many that do not split K, and so many that do.

    They are picked greedily, of the plans that ran SELDOM or more times: always the one that most
    improves what the network expects at the shapes of `unmeasured`. What ran rarely counts as
    slower, since the network knows it less.
    """
    times = Counter(each.family for each in (runs.names[at] for at in runs.candidate))
    plans = [
        each for each, count in times.items() if count >= SELDOM and each not in LONG_EPILOGUES
    ]
    ran = np.array([times[each] for each in plans])
    doubt = np.select([ran >= 100, ran >= 30, ran >= 12], [0, 0.003, 0.008], 0.012)
    asked = unmeasured(plans)
    found = expectation(asked, c, learned)
    expected = np.where(found["serves"], np.log(found["seconds"]), np.inf)
    expected = expected.reshape(-1, len(plans)) + doubt
    lost = np.minimum(expected - expected.min(1, keepdims=True), 1)
    costs = lost + 2 * np.maximum(0, lost - 0.03)
    splits = np.array([each.splits == FILL for each in plans])
    if whole > (~splits).sum() or split > splits.sum():
        raise SystemExit(f"{(~splits).sum()} plans that do not split K ran, and {splits.sum()} do")
    now, taken = np.full(len(costs), costs.max()), np.zeros(len(plans), bool)
    while taken.sum() < whole + split:
        full = np.where(splits, taken[splits].sum() == split, taken[~splits].sum() == whole)
        value = np.minimum(now[:, None], costs).sum(0)
        at = int(np.where(taken | full, np.inf, value).argmin())
        taken[at], now = True, np.minimum(now, costs[:, at])
    print(f"the {whole + split} plans lose {lost[:, taken].min(1).mean():.2%} to all {len(plans)}")
    return [each for each, kept in zip(plans, taken, strict=True) if kept]


def report(name: str, runs: Runs, seconds: Array) -> None:
    """The speed over torch.mm of a plan for each shape, and what it loses to the best that ran."""
    epilogues, batches = runs.with_epilogue, runs.of_batches
    kinds = {"products": ~epilogues & ~batches, "with epilogues": epilogues, "batches": batches}
    for kind, some in kinds.items():
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
    parser.add_argument("--learn", type=int, default=96000)
    parser.add_argument("--epilogues", type=int, default=10000)
    parser.add_argument("--batches", type=int, default=2000)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--pick", type=int, nargs=2)
    parser.add_argument("--held", type=int, default=0)
    options = parser.parse_args()
    runs = read(options.files)
    numbers = np.arange(len(runs.torch))
    held = numbers % options.held == 0 if options.held else numbers < 0
    fitted, left = runs.of(numbers[~held]), runs.of(numbers[held])
    epilogues, batches = fitted.with_epilogue, fitted.of_batches
    kinds = {"learn": ~epilogues & ~batches, "epilogues": epilogues, "batches": batches}
    for steps, some in kinds.items():
        if getattr(options, steps) and not some.any():
            parser.error(f"the files have no runs from which --{steps} could learn; pass 0")
    parts = [("fitted", fitted)] + [("held out", left)] * bool(options.held)
    for name, part in parts:
        report(f"best, {name}", part, part.best)
        report(f"choice before, {name}", part, chosen(part, FITTED, LEARNED))
    c = fit(FITTED, LEARNED, options.steps) if options.steps else FITTED
    known = np.array([bool(options.pick) or each.family in ALL_CANDIDATES for each in runs.names])
    parts = [(name, part.plans(known)) for name, part in parts]
    learned = learn(parts[0][1], c, options.learn) if options.learn else LEARNED
    if options.epilogues:
        learned = learn_epilogues(parts[0][1], c, learned, options.epilogues)
    if options.batches:
        learned = learn_batches(parts[0][1], c, learned, options.batches)
    if options.write and not options.pick:
        write(FILE, learned)
    for name, part in parts:
        report(f"choice, {name}", part, chosen(part, c, learned))
    for name, value in c._asdict().items():
        text = ", ".join(f"{x:.3g}" for x in np.atleast_1d(value))
        print(f"    {name} = ({text})" if isinstance(value, tuple) else f"    {name} = {text}")
    if options.pick:
        kept = pick(parts[0][1], c, learned, *options.pick)
        for name, part in parts:
            few = part.plans(np.array([each.family in kept for each in part.names]))
            report(f"choice of {len(kept)}, {name}", few, chosen(few, c, learned))
        if options.write:
            candidate.write(candidate.FILE, kept)


if __name__ == "__main__":
    main()
