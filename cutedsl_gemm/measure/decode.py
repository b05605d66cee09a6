"""Speed of gemm compared with torch.mm in decoding: few rows, weights of language models.

Hot: one copy of the weights, which L2 keeps if it is small. Cold: as many copies in turn as exceed
L2 eight times, so that all weights come from DRAM. Both from CUDA graphs.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from cutedsl_gemm.api import gemm
from cutedsl_gemm.inputs.problem import Problem
from cutedsl_gemm.kernels.compile.progress import track
from cutedsl_gemm.measure.bench import check, machine, normal
from cutedsl_gemm.measure.providers import CUBLAS
from cutedsl_gemm.measure.report import OURS, Shape, write_csv
from cutedsl_gemm.select.choose import choose
from cutedsl_gemm.select.precompile import compiled_with_bar
from cutedsl_gemm.select.timing import L2_BYTES, Launch, race

ROWS = 1, 2, 4, 8, 16, 32, 64, 128, 256
# (N, K) of the weights of Llama 3: of 1, 8 and 70 billion parameters.
WEIGHTS = (
    (2048, 8192),
    (4096, 4096),
    (6144, 4096),
    (4096, 14336),
    (28672, 4096),
    (128256, 4096),
    (8192, 8192),
    (10240, 8192),
    (8192, 28672),
    (57344, 8192),
)
TIMES_L2 = 8  # which the weights of a cold run exceed
HOT_LAUNCHES, ROUNDS = 20, 5


@dataclass(frozen=True)
class Sample:
    """Seconds of torch.mm and of gemm for one shape, with hot or cold weights."""

    mnk: Shape
    cold: bool
    cublas: float
    ours: float

    @property
    def ratio(self) -> float:
        """The speed of gemm over that of torch.mm."""
        return self.cublas / self.ours

    @property
    def bandwidth(self) -> float:
        """Bytes of the weights that gemm reads a second."""
        _, n, k = self.mnk
        return 2 * n * k / self.ours


def copies(n: int, k: int) -> int:
    """Copies of the weights that exceed L2 eight times.

    >>> copies(4096, 4096), copies(57344, 8192)
    (12, 1)
    """
    return math.ceil(TIMES_L2 * L2_BYTES / (2 * n * k))


def measure() -> Iterator[Sample]:
    """Compile the kernels that gemm chooses on all cores, then time each shape."""
    shapes = [(m, n, k) for (n, k), m in product(WEIGHTS, ROWS)]
    compiled_with_bar({choose(Problem.dense(*mnk)) for mnk in shapes})
    for n, k in track(WEIGHTS, "measuring", len(WEIGHTS)):
        weights = [normal(n, k).mT for _ in range(copies(n, k))]  # each (K, N)
        for m in ROWS:
            for cold in (True, False):
                yield Sample((m, n, k), cold, *_seconds(m, weights if cold else weights[:1]))


def _seconds(m: int, weights: list[Tensor]) -> list[float]:
    """Seconds a product of torch.mm and of gemm, by all weights in turn."""
    k, n = weights[0].shape
    a = normal(m, k)
    outs = [torch.full((m, n), torch.nan, dtype=a.dtype, device=a.device) for _ in range(2)]

    def all_weights(run: Launch, out: Tensor) -> None:
        for b in weights:
            run(a, b, out=out)  # type: ignore[call-arg]

    launches: list[Launch] = [
        partial(all_weights, run, out) for run, out in zip((torch.mm, gemm), outs, strict=True)
    ]
    for launch in launches:
        launch()  # loads the kernel
    count = 1 if len(weights) > 1 else HOT_LAUNCHES
    seconds = race(launches, rounds=ROUNDS, count=count)
    check(OURS, (m, n, k), outs[1], outs[0].float())
    return [each / len(weights) for each in seconds]


def table(samples: list[Sample], cold: bool) -> Table:
    """A row for each matrix of weights, a column for each M: the ratio, µs and GB/s."""
    name = "cold: all weights from DRAM" if cold else "hot: one copy of the weights"
    shown = Table(title=f"{machine()}, {name}: {OURS} / {CUBLAS}, µs, GB/s")
    shown.add_column("N × K")
    for m in ROWS:
        shown.add_column(f"M = {m}", justify="right")
    for n, k in WEIGHTS:
        row = [each for each in samples if each.cold == cold and each.mnk[1:] == (n, k)]
        cells = (f"{x.ratio:.2f} {1e6 * x.ours:.1f} {x.bandwidth / 1e9:.0f}" for x in row)
        shown.add_row(f"{n} × {k}", *cells)
    return shown


def write(samples: list[Sample], file: Path) -> None:
    """The samples as CSV: M, N, K, hot or cold, microseconds of both providers."""
    rows = []
    for each in samples:
        times = (f"{1e6 * seconds:.2f}" for seconds in (each.cublas, each.ours))
        rows.append((*each.mnk, "cold" if each.cold else "hot", *times))
    write_csv(file, ("M", "N", "K", "weights", f"{CUBLAS}, µs", f"{OURS}, µs"), rows)


def main(file: Path | None = None) -> None:
    """Print both tables and their geometric means; write the samples as CSV."""
    samples = list(measure())
    console = Console(width=200)
    for cold in (True, False):
        ratios = [each.ratio for each in samples if each.cold == cold]
        mean, lowest = statistics.geometric_mean(ratios), min(ratios)
        console.print(table(samples, cold))
        console.print(f"geometric mean {mean:.3f}, lowest {lowest:.3f}, of {len(ratios)}")
    if file is not None:
        write(samples, file)
