"""Speed of gemm beside torch.mm over random shapes, as a distribution.

M, N and K are log-uniform in 64..16384, rounded to multiples of q. A shape's q is drawn from 8, 8,
16, 64 and 128, so that many leading strides are not multiples of 128 bytes. Both providers are
replayed from CUDA graphs in turn. Inputs and checks are those of bench.
"""

from __future__ import annotations

import csv
import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table

from cutedsl_gemm.api import gemm
from cutedsl_gemm.measure.bench import check, machine, normal
from cutedsl_gemm.measure.providers import CUBLAS
from cutedsl_gemm.measure.report import OURS, Shape
from cutedsl_gemm.problem import Problem
from cutedsl_gemm.select.candidate import candidate_of
from cutedsl_gemm.select.choose import choose
from cutedsl_gemm.select.model import SMS
from cutedsl_gemm.select.precompile import compiled_with_bar
from cutedsl_gemm.select.timing import Launch, race, timed

LEAST, MOST = 64, 16384
MULTIPLES = 8, 8, 16, 64, 128  # of which an extent is one; equally likely
SEED, COUNT = 2, 150
SECONDS, LAUNCHES, ROUNDS = 0.5e-3, 50, 5  # of a graph: the time, at most so many launches
FEW_ROWS, MANY_ROWS = 128, 256
SLOW = 0.95  # a ratio under which a shape counts as slow
WORST = 20  # shapes that are listed


@dataclass(frozen=True)
class Sample:
    """Seconds of torch.mm and of gemm for one shape, and gemm's candidate plan."""

    mnk: Shape
    cublas: float
    ours: float
    plan: str

    @property
    def ratio(self) -> float:
        """The speed of gemm over that of torch.mm."""
        return self.cublas / self.ours


def draw(count: int, seed: int) -> list[Shape]:
    """`count` random (M, N, K), the same for the same seed.

    >>> draw(2, seed=1)
    [(7032, 4424, 264), (768, 2368, 5072)]
    """
    random = Random(seed).random  # whose sequence no version of Python changes
    shapes: list[Shape] = []
    for _ in range(count):
        q = MULTIPLES[int(len(MULTIPLES) * random())]
        m, n, k = (max(1, round(LEAST * (MOST / LEAST) ** random() / q)) * q for _ in range(3))
        shapes.append((m, n, k))
    return shapes


def line_bytes(mnk: Shape) -> int:
    """The class of the leading stride of A and B, K elements: a multiple of 128, 32 or 16 bytes."""
    return next(each for each in (128, 32, 16) if 2 * mnk[2] % each == 0)


def few_tiles(mnk: Shape) -> bool:
    """Whether tiles of 128×128 are fewer than the multiprocessors."""
    m, n, _ = mnk
    return math.ceil(m / 128) * math.ceil(n / 128) < SMS


def leads(line: int, mnk: Shape) -> bool:
    """Whether a shape is of a class of leading strides."""
    return line_bytes(mnk) == line


LINES = {line: f"leading strides of {line} bytes" for line in (128, 32, 16)}
# Classes overlap: a shape is in one of LINES, and may be in the others.
CLASSES: dict[str, Callable[[Shape], bool]] = {
    "all": lambda mnk: True,
    **{name: partial(leads, line) for line, name in LINES.items()},
    f"fewer than {SMS} tiles of 128×128": few_tiles,
    f"M or N at most {FEW_ROWS}": lambda mnk: min(mnk[:2]) <= FEW_ROWS,
    f"M at least {MANY_ROWS}": lambda mnk: mnk[0] >= MANY_ROWS,
}


def measure(shapes: Sequence[Shape], invariant: bool = False) -> Iterator[Sample]:
    """Compile the kernels that gemm chooses on all cores, then time each shape."""
    problems = {mnk: replace(Problem.dense(*mnk), invariant=invariant) for mnk in shapes}
    plans = {mnk: choose(problem) for mnk, problem in problems.items()}
    compiled_with_bar({*plans.values()})
    for mnk in track(shapes, "measuring", console=Console(stderr=True)):
        cublas, ours = _seconds(mnk, invariant)
        candidate = candidate_of(plans[mnk])
        yield Sample(mnk, cublas, ours, candidate.name if candidate else "")


def _seconds(mnk: Shape, invariant: bool) -> list[float]:
    """Seconds a launch of torch.mm and of gemm."""
    m, n, k = mnk
    a, b = normal(m, k), normal(n, k).mT
    expected = (a @ b).float()
    outs = [torch.full_like(expected, torch.nan, dtype=a.dtype) for _ in range(2)]
    launches: list[Launch] = [
        partial(torch.mm, a, b, out=outs[0]),
        partial(gemm, a, b, out=outs[1], invariant=invariant),
    ]
    for launch in launches:
        launch()  # loads the kernel
    seconds = race(launches, rounds=ROUNDS, count=_count(timed(launches[0], 3)))
    for name, out in zip((CUBLAS, OURS), outs, strict=True):
        check(name, mnk, out, expected)
    return seconds


def _count(seconds: float) -> int:
    """Launches of a graph, for a launch of so many seconds.

    >>> _count(1e-6), _count(100e-6), _count(0.02)
    (50, 5, 1)
    """
    return max(1, min(LAUNCHES, math.ceil(SECONDS / seconds)))


def percentile(values: Sequence[float], share: float) -> float:
    """The value that a share of all values do not exceed (nearest rank).

    >>> percentile([4, 1, 3, 2], 0.5), percentile([4, 1, 3, 2], 0)
    (2, 1)
    """
    rank = math.ceil(share * len(values) - 1e-9)  # 0.07 * 100 is more than 7
    return sorted(values)[max(0, rank - 1)]


def summary(samples: Sequence[Sample], title: str) -> Table:
    """A row for each class that has samples: the distribution of speed over torch.mm's."""
    shown = Table(title=title)
    shown.add_column("shapes")
    heads = "count", "geometric mean", "lowest", "5 %", "25 %", "50 %", "75 %", "95 %"
    for head in (*heads, f"below {SLOW}"):
        shown.add_column(head, justify="right")
    for name, belongs in CLASSES.items():
        ratios = [each.ratio for each in samples if belongs(each.mnk)]
        if ratios:
            figures = (
                statistics.geometric_mean(ratios),
                *(percentile(ratios, share) for share in (0, 0.05, 0.25, 0.5, 0.75, 0.95)),
            )
            slow = sum(ratio < SLOW for ratio in ratios)
            shown.add_row(name, str(len(ratios)), *(f"{x:.3f}" for x in figures), str(slow))
    return shown


def worst(samples: Sequence[Sample]) -> Table:
    """The samples of the lowest ratios, lowest first."""
    shown = Table(title=f"the {WORST} lowest ratios")
    for head in ("M", "N", "K", "torch.mm, µs", "gemm, µs", "ratio", "plan"):
        shown.add_column(head, justify="left" if head == "plan" else "right")
    for each in sorted(samples, key=lambda each: each.ratio)[:WORST]:
        times = (f"{1e6 * seconds:.1f}" for seconds in (each.cublas, each.ours))
        shown.add_row(*map(str, each.mnk), *times, f"{each.ratio:.3f}", each.plan)
    return shown


def write(samples: Sequence[Sample], file: Path) -> None:
    """The samples as CSV: M, N, K, microseconds of both providers, gemm's plan."""
    with file.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(("M", "N", "K", f"{CUBLAS}, µs", f"{OURS}, µs", "plan"))
        for each in samples:
            times = (f"{1e6 * seconds:.2f}" for seconds in (each.cublas, each.ours))
            writer.writerow((*each.mnk, *times, each.plan))


def plot(samples: Sequence[Sample], title: str, file: Path) -> None:
    """The ratio over the flops, coloured by leading stride; hollow where tiles are few.

    The suffix of `file` is the format: .svg, .png, .pdf. ImportError without matplotlib.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 5), layout="constrained")
    axes = figure.subplots()
    for number, (line, name) in enumerate(LINES.items()):
        for hollow in (False, True):
            drawn = [
                each for each in samples if leads(line, each.mnk) and few_tiles(each.mnk) == hollow
            ]
            colour = f"C{number}"
            style: dict[str, Any] = {
                "edgecolors": colour,
                "facecolors": "none" if hollow else colour,
                "label": name + (", few tiles" if hollow else ""),
            }
            flops = [2 * math.prod(each.mnk) for each in drawn]
            axes.scatter(flops, [each.ratio for each in drawn], s=16, **style)
    axes.axhline(1, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.set_xlabel("2·M·N·K, flops")
    axes.set_ylabel(f"speed of {OURS} / speed of {CUBLAS}")
    axes.set_title(title, fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    figure.savefig(file)


def main(
    count: int = COUNT,
    seed: int = SEED,
    invariant: bool = False,
    file: Path | None = None,
    drawing: Path | None = None,
) -> None:
    """Print the distribution and the worst shapes; write the samples as CSV, and plot them."""
    samples = list(measure(draw(count, seed), invariant))
    console = Console(width=160)
    ours = f"{OURS}(…, invariant=True)" if invariant else OURS
    title = f"{machine()}: speed of {ours} / {CUBLAS}, {count} random shapes of seed {seed}"
    console.print(summary(samples, title), worst(samples))
    if file is not None:
        write(samples, file)
    if drawing is not None:
        plot(samples, title, drawing)
