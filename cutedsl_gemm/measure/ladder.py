"""Every rung of the ladder on this GPU: checked against float64, timed, one table for each family.

simt runs at 8192³ in float32 (TF32 off), A and B row-major. sm70 runs at 4096³ in float16, A
column-major and B row-major, where its loads are widest. The others run at 4096³ in bfloat16, A
row-major and B column-major. A time is the median of three bursts, as in bench: half a second of
rest, warm-up launches, timed launches. torch.mm is timed in the same way.

docs/performance/ladder.csv holds a run; `python -m cutedsl_gemm ladder --csv FILE` writes it.
"""

from __future__ import annotations

import csv
import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from itertools import chain, groupby, pairwise
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from cutedsl_gemm.api import gemm, plan_for
from cutedsl_gemm.inputs.problem import dtype_name
from cutedsl_gemm.measure.accuracy import relative_error
from cutedsl_gemm.measure.providers import CUBLAS
from cutedsl_gemm.measure.report import write_csv
from cutedsl_gemm.select.registry import DEFAULT, KERNELS, Kernel
from cutedsl_gemm.select.timing import TIMED, WARM_UP, Launch, burst, timed

SIZES = {"simt": 8192, "sm70": 4096, "sm80": 4096, "sm90": 4096}
# Whether A and B are row-major: the order in which each family is fastest.
ROW_MAJOR = {
    "simt": (True, True),
    "sm70": (False, True),
    "sm80": (True, False),
    "sm90": (True, False),
}
SECONDS, BURSTS = 0.3, 3  # length of a burst, unless one launch is longer; number of bursts
# Largest relative error, in the Frobenius norm.
TOLERANCE = {torch.float32: 1e-5, torch.float16: 1e-2, torch.bfloat16: 1e-2}


@dataclass(frozen=True)
class Measured:
    """A rung, or torch.mm, at one size: how long a launch takes, and of what, and where."""

    family: str
    name: str
    size: int  # M, N and K
    tile: str  # of the plan that ran; "" for torch.mm
    dtype: str
    a: str  # "row" or "column": the major of A
    b: str  # that of B
    milliseconds: float  # of a launch
    error: float  # relative, against float64, in the Frobenius norm
    gpu: str
    date: str

    @property
    def tflops(self) -> float:
        """10¹² floating-point operations a second."""
        return 2e-9 * self.size**3 / self.milliseconds

    def speed_over(self, other: Measured) -> float:
        """How many times as fast it is as another."""
        return other.milliseconds / self.milliseconds

    @property
    def setting(self) -> str:
        """What was multiplied: "4096³ in bfloat16, row-major A × column-major B"."""
        return f"{self.size}³ in {self.dtype}, {self.a}-major A × {self.b}-major B"


def measure(family: str, size: int) -> Iterator[Measured]:
    """Measure torch.mm, then each rung of a family, at size³."""
    torch.backends.cuda.matmul.allow_tf32 = False
    rungs = [kernel for kernel in KERNELS.values() if kernel.family == family]
    a, b = operands(rungs[0], size)
    truth = a.double() @ b.double()
    runs: dict[str, Callable[..., Tensor]] = {CUBLAS: torch.mm}
    runs |= {rung.name: partial(gemm, kernel=rung.name) for rung in rungs}
    a_order, b_order = ("row" if row_major else "column" for row_major in ROW_MAJOR[family])
    dtype, gpu = measured_dtype(rungs[0]), torch.cuda.get_device_name()
    day = date.today().isoformat()
    for name, run in runs.items():
        out = torch.full((size, size), torch.nan, dtype=a.dtype, device="cuda")
        launch = partial(run, a, b, out=out)
        launch()  # compiles
        milliseconds = 1e3 * in_bursts(launch)
        error = relative_error(out, truth)
        tile = "" if name == CUBLAS else "×".join(map(str, plan_for(a, b, kernel=name).tile))
        yield Measured(
            family, name, size, tile, dtype, a_order, b_order, milliseconds, error, gpu, day
        )


def measured_dtype(kernel: Kernel) -> str:
    """The element type with which the ladder measures a kernel.

    >>> measured_dtype(KERNELS["simt_naive"])
    'float32'
    """
    return dtype_name(kernel.requirements.dtypes[0])


def in_bursts(launch: Launch) -> float:
    """Median seconds of a launch; a burst has fewer launches if each takes long."""
    count = max(1, min(TIMED, int(SECONDS / timed(launch, 1))))
    return statistics.median(burst(launch, min(WARM_UP, count), count) for _ in range(BURSTS))


def operands(kernel: Kernel, size: int) -> tuple[Tensor, Tensor]:
    """Random normal A and B in the kernel's first dtype and its family's order."""
    a, b = (
        matrix if row_major else matrix.mT
        for row_major in ROW_MAJOR[kernel.family]
        for matrix in (torch.randn(size, size, device="cuda").to(kernel.requirements.dtypes[0]),)
    )
    return a, b


COLUMNS = "kernel", "ms", "TFLOP/s", "× the rung below", "× the first rung", "% of torch.mm"


def cells(measured: Sequence[Measured]) -> Iterator[tuple[str, ...]]:
    """A family's rows of `COLUMNS`: its rungs in order, then torch.mm, to three digits."""
    reference, first, *_ = measured
    lower = below(measured)
    for row in (*measured[1:], reference):
        yield (
            row.name,
            digits(row.milliseconds),
            digits(row.tflops),
            f"{row.speed_over(lower[row.name]):.2f}" if row.name in lower else "",
            f"{row.speed_over(first):.2f}",
            f"{100 * row.speed_over(reference):.1f}",
        )


def below(measured: Sequence[Measured]) -> dict[str, Measured]:
    """The rung below each rung of a family. The first has none, nor the default: it is a choice."""
    rungs = [row for row in measured if row.name not in (CUBLAS, DEFAULT)]
    return {here.name: lower for lower, here in pairwise(rungs)}


def digits(number: float) -> str:
    """A positive number to three significant digits.

    >>> digits(2182.2), digits(98.94), digits(0.17223)
    ('2182', '98.9', '0.172')
    """
    return f"{number:.{max(0, 2 - math.floor(math.log10(number)))}f}"


def table(measured: Sequence[Measured]) -> Table:
    """A family's table for the terminal."""
    first = measured[1]
    shown = Table(title=f"{first.family}, {first.setting}, on {first.gpu}")
    for column in (*COLUMNS, "error"):
        name = column == "kernel"
        shown.add_column(column, justify="left" if name else "right", no_wrap=name)
    for row, made in zip(cells(measured), (*measured[1:], measured[0]), strict=True):
        shown.add_row(*row, f"{made.error:.1e}")
    return shown


def markdown(measured: Sequence[Measured]) -> str:
    """A family's table as Markdown, as in docs/performance."""
    first, *rest = (f"| {' | '.join(row)} |" for row in (COLUMNS, *cells(measured)))
    return "\n".join((first, "|---" * len(COLUMNS) + "|", *rest))


# The header of a CSV, and the type of each field of `Measured`.
FIELDS: dict[str, Callable[[str], Any]] = {
    "family": str,
    "kernel": str,
    "M=N=K": int,
    "tile": str,
    "dtype": str,
    "A": str,
    "B": str,
    "ms": float,
    "error": float,
    "GPU": str,
    "date": str,
}


def write(families: dict[str, list[Measured]], file: Path) -> None:
    """All families as CSV, a line for each rung and each torch.mm."""
    rows = []
    for row in chain.from_iterable(families.values()):
        found = {**vars(row), "milliseconds": f"{row.milliseconds:.6g}"}
        rows.append({**found, "error": f"{row.error:.1e}"}.values())
    write_csv(file, FIELDS, rows)


def read(file: Path) -> dict[str, list[Measured]]:
    """The families of a file that `write` wrote, torch.mm first in each."""
    with file.open(newline="", encoding="utf-8") as stream:
        header, *lines = csv.reader(stream)
    if header != list(FIELDS):
        raise ValueError(f"{file}: the header is {header}; it must be {list(FIELDS)}")
    rows = [
        Measured(*(kind(text) for kind, text in zip(FIELDS.values(), line, strict=True)))
        for line in lines
    ]
    return {name: list(group) for name, group in groupby(rows, key=lambda row: row.family)}


def plot(families: dict[str, list[Measured]], path: Path) -> None:
    """A panel for each family, a bar for each rung, a line at torch.mm's speed.

    The suffix of `path` sets the format: .svg, .png or .pdf. ImportError without matplotlib.
    """
    from matplotlib.figure import Figure

    heights = [len(measured) + 1 for measured in families.values()]
    figure = Figure(figsize=(7, 0.3 * sum(heights)), layout="constrained")
    panels = figure.subplots(len(families), squeeze=False, height_ratios=heights)[:, 0]
    for panel, (family, (reference, *rungs)) in zip(panels, families.items(), strict=True):
        bars = panel.barh([rung.name for rung in rungs], [rung.tflops for rung in rungs])
        panel.bar_label(bars, fmt="%.3g", padding=3)
        panel.axvline(reference.tflops, color="black", linestyle="dashed", linewidth=1)
        panel.set_title(f"{family}: TFLOP/s at {reference.setting}; dashed: torch.mm", fontsize=9)
        panel.set_xlim(0, 1.12 * max(row.tflops for row in (reference, *rungs)))
        panel.invert_yaxis()
    figure.savefig(path)


def main(size: int | None = None, file: Path | None = None, drawing: Path | None = None) -> None:
    """Measure and print every family; RuntimeError at a rung whose result is wrong.

    `file` gets the figures as CSV, and `drawing` the plot.
    """
    console, families = Console(width=100), {}
    for family, rungs in groupby(KERNELS.values(), key=lambda kernel: kernel.family):
        extent, bound = size or SIZES[family], TOLERANCE[next(rungs).requirements.dtypes[0]]
        measured = families[family] = list(measure(family, extent))
        console.print(table(measured))
        for row in measured:
            if not row.error < bound:
                raise RuntimeError(
                    f"{row.name} at {extent}³: relative error {row.error:.1e} against float64; "
                    f"it must be under {bound:.0e}"
                )
        if family == "sm80":
            limit = ceiling()
            console.print(
                f"mma.m16n8k16 on registers only: {limit:.0f} TFLOP/s; "
                f"{measured[-1].name} reaches {100 * measured[-1].tflops / limit:.0f} % of it"
            )
    if file is not None:
        write(families, file)
    if drawing is not None:
        plot(families, drawing)


def ceiling() -> float:
    """TFLOP/s of mma on registers, without data movement: the limit of the sm80 family."""
    from cutedsl_gemm.kernels.sm80 import ceiling as alone

    properties = torch.cuda.get_device_properties("cuda")
    run = alone.build(f"sm_{properties.major}{properties.minor}{'a' * (properties.major >= 9)}")
    blocks = properties.multi_processor_count
    numbers = torch.randn(32 * alone.WARPS, alone.NUMBERS, device="cuda").bfloat16()
    sums = torch.empty(blocks, 32 * alone.WARPS, device="cuda")
    launch = partial(run, numbers, sums, alone.ROUNDS, blocks)
    launch()
    return 1e-12 * alone.operations(blocks) / in_bursts(launch)
