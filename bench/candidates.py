"""Every candidate plan compared with torch.mm: the measurements to which select/model.py is fitted.

    python bench/candidates.py --csv FILE [--seed 1] [--count 220] [--slack 2.2] [--seconds 300] \
        [--dry]

Shapes are bench's random ones, then its named ones, then some whose rows are padded, so that only
the leading stride differs. Plans whose estimate is `--slack` times the best one's are left out.
Every plan runs in CUDA graphs, in turn with the others, and its output is checked. Needs an H100;
`--dry` only prints what would run.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import math
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from cutedsl_gemm.kernels.compile import build
from cutedsl_gemm.kernels.device.occupancy import multiprocessors
from cutedsl_gemm.kernels.plan.checks import PlanError
from cutedsl_gemm.kernels.plan.raster import Raster
from cutedsl_gemm.kernels.sm90.rungs import cooperative, pingpong, split
from cutedsl_gemm.measure.bench import SHAPES, check, normal
from cutedsl_gemm.measure.providers import CUBLAS
from cutedsl_gemm.measure.random_shapes import draw
from cutedsl_gemm.measure.report import Shape
from cutedsl_gemm.problem import Matrix, Problem
from cutedsl_gemm.select import precompile
from cutedsl_gemm.select.candidate import CANDIDATES, Candidate, Maker
from cutedsl_gemm.select.model import best, ranking
from cutedsl_gemm.select.timing import Launch, race, timed

SECONDS, LAUNCHES, ROUNDS = 0.3e-3, 50, 3  # of a graph: the time, at most so many launches
PADDED = [(2048, 2048, 2048), (4096, 4096, 4096), (8448, 9216, 512), (8192, 1024, 4096)]
PADDING = 8, 16, 32, 64  # elements between the rows of A and of B
RASTERS = Raster(1), Raster(4), Raster(8)
CLUSTERS = (2, 1), (1, 2), (4, 1), (1, 4), (2, 2), (4, 2), (2, 4)
TILES: dict[Maker, dict[int, range]] = {  # BM → BN
    pingpong: {64: range(16, 257, 8), 128: range(16, 193, 8), 192: range(64, 129, 8)},
    cooperative: {128: range(64, 257, 8), 192: range(96, 193, 8), 256: range(96, 193, 8)},
}
SPLITS = 2, 3, 4, 6, 8, 12, 16


def tried() -> Iterator[Candidate]:
    """Plans in addition to those of the model, with operands swapped or not, if they can exist."""
    for swapped, cluster in itertools.product((False, True), ((1, 1), *CLUSTERS)):
        plans = [
            Candidate(maker, (bm, bn, 64), 1, cluster, swapped)
            for maker, tiles in TILES.items()
            for bm, bns in tiles.items()
            for bn in bns
        ]
        plans += [Candidate(pingpong, (64, bn, 128), 1, cluster, swapped) for bn in (32, 64, 96)]
        plans += [
            Candidate(split, (bm, bn, 64), splits, cluster, swapped)
            for bm, bn, splits in itertools.product((64, 128), range(16, 177, 16), SPLITS)
        ]
        yield from filter(exists, plans)


def exists(candidate: Candidate) -> bool:
    """Whether the candidate is a legal plan."""
    try:
        candidate.plan(Problem.dense(64, 64, 64))
    except PlanError:
        return False
    return True


ALL = (*CANDIDATES, *(each for each in tried() if each not in CANDIDATES))


@dataclass(frozen=True)
class Case:
    """A shape, and the elements by which rows of A and B are padded."""

    mnk: Shape
    padding: int = 0

    @property
    def problem(self) -> Problem:
        (m, n, k), lead = self.mnk, self.mnk[2] + self.padding
        return Problem(Matrix((m, k), (lead, 1)), Matrix((k, n), (1, lead)), "bfloat16")

    def operands(self) -> tuple[Tensor, Tensor]:
        """A and B."""
        (m, n, k), lead = self.mnk, self.mnk[2] + self.padding
        return normal(m, lead)[:, :k], normal(n, lead)[:, :k].mT

    def plans(self, slack: float) -> list[tuple[Candidate, Raster]]:
        """What runs: all rasters of large tiles in more than two waves, else the default's."""
        ranked = ranking(self.problem, ALL)
        found: list[tuple[Candidate, Raster]] = []
        for each in ranked:
            if each.seconds <= slack * ranked[0].seconds:
                candidate = each.candidate
                rasters = [candidate.raster(self.mnk[2])]
                if each.waves > 2 and len({*candidate.rasters}) > 1:
                    rasters = [*RASTERS]
                found += [(candidate, raster) for raster in rasters]
        return found


def cases(count: int, seed: int) -> list[Case]:
    """Random shapes, named shapes, padded ones; each once."""
    named = itertools.chain(*(SHAPES[name] for name in ("sweep", "squares", "weights", "split")))
    padded = (Case(mnk, padding) for mnk in PADDED for padding in (0, *PADDING))
    return [*dict.fromkeys([*map(Case, draw(count, seed)), *padded, *map(Case, named)])]


def measure(case: Case, slack: float) -> Iterator[tuple[str, Raster | None, float, str]]:
    """The plan, its raster, seconds a launch, and what is wrong with its output."""
    a, b = case.operands()
    expected = (a @ b).float()
    plans = case.plans(slack)
    outs = [torch.full(case.mnk[:2], torch.nan, dtype=a.dtype, device="cuda") for _ in range(2)]
    launches: list[Launch] = [partial(torch.mm, a, b, out=outs[0])]
    wrong = [""]
    for candidate, raster in plans:
        plan = candidate.plan(case.problem, raster)
        kernel, sms = build.load(plan), multiprocessors(a.device, plan)
        launch = partial(kernel, a, b, outs[1], sms)
        outs[1].fill_(torch.nan)
        launch()
        wrong.append("")
        try:
            check(candidate.name, case.mnk, outs[1], expected)
        except RuntimeError as error:
            wrong[-1] = str(error)
        launches.append(launch)
    count = max(1, min(LAUNCHES, math.ceil(SECONDS / timed(launches[0], 3))))
    seconds = race(launches, rounds=ROUNDS, count=count)
    names = [(CUBLAS, None), *((candidate.name, raster) for candidate, raster in plans)]
    for (name, raster), found, text in zip(names, seconds, wrong, strict=True):
        yield name, raster, found, text


def main() -> None:
    """Compile on all cores, then measure case after case until the time is over."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=220)
    parser.add_argument("--slack", type=float, default=2.2)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    start = time.monotonic()
    for seed in (3, 4):  # the second is warm, and new to the cache
        began = time.perf_counter()
        for mnk in draw(200, seed):
            best(Problem.dense(*mnk))
        print(f"choice: {(time.perf_counter() - began) / 200 * 1e6:.1f} µs a shape")
    asked = cases(options.count, options.seed)
    runs = [(case, *plan) for case in asked for plan in case.plans(options.slack)]
    plans = {candidate.plan(case.problem, raster) for case, candidate, raster in runs}
    print(f"{len(asked)} cases, {len(runs)} runs, {len(plans)} kernels")
    if options.dry:
        return
    for number, _ in enumerate(precompile.compile_all(plans), 1):
        if number % 20 == 0 or number == len(plans):
            print(f"compiled {number} at {time.monotonic() - start:.0f} s", flush=True)
    with options.csv.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(("M", "N", "K", "padding", "plan", "raster", "µs", "wrong"))
        for number, case in enumerate(asked):
            if time.monotonic() - start > options.seconds:
                print(f"out of time after {number} cases", file=sys.stderr)
                break
            for name, raster, seconds, wrong in measure(case, options.slack):
                group = "" if raster is None else raster.group
                times = f"{1e6 * seconds:.3f}"
                writer.writerow((*case.mnk, case.padding, name, group, times, wrong))
                if wrong:
                    print(wrong, file=sys.stderr)
            stream.flush()
            if number % 20 == 0:
                print(f"case {number} at {time.monotonic() - start:.0f} s", flush=True)
    print(f"done at {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
