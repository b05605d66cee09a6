"""Every rung of the ladder on this GPU: checked against float64, timed, one table for each family.

simt runs at 8192³ in float32 (TF32 off), A and B row-major. sm70 runs at 4096³ in float16, A
column-major and B row-major, where its loads are widest. The others run at 4096³ in bfloat16, A
row-major and B column-major. A time is the median of three bursts, as in bench: half a second of
rest, warm-up launches, timed launches. torch.mm is timed in the same way.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from cutedsl_gemm.api import gemm
from cutedsl_gemm.select.registry import KERNELS, Kernel
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
    """A rung at one size: seconds of a launch, and the relative error against float64."""

    name: str
    size: int
    seconds: float
    error: float

    @property
    def tflops(self) -> float:
        """10¹² floating-point operations a second."""
        return 2e-12 * self.size**3 / self.seconds


def measure(family: str, size: int) -> Iterator[Measured]:
    """Measure torch.mm, then each rung of a family, at size³."""
    torch.backends.cuda.matmul.allow_tf32 = False
    rungs = [kernel for kernel in KERNELS.values() if kernel.family == family]
    a, b = operands(rungs[0], size)
    truth = a.double() @ b.double()
    runs: dict[str, Callable[..., Tensor]] = {"torch.mm": torch.mm}
    runs |= {rung.name: partial(gemm, kernel=rung.name) for rung in rungs}
    for name, run in runs.items():
        out = torch.full((size, size), torch.nan, dtype=a.dtype, device="cuda")
        launch = partial(run, a, b, out=out)
        launch()  # compiles
        seconds = in_bursts(launch)
        yield Measured(name, size, seconds, float((out.double() - truth).norm() / truth.norm()))


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


def table(family: str, measured: list[Measured]) -> Table:
    """Time, speed-up over the first rung, and speed as a percentage of torch.mm's."""
    reference, first = measured[:2]
    shown = Table(title=f"{family}, {first.size}³ on {torch.cuda.get_device_name()}")
    for column in ("kernel", "ms", "TFLOP/s", "speed-up", "% of torch.mm", "error"):
        shown.add_column(column, justify="left" if column == "kernel" else "right")
    for row in (*measured[1:], reference):
        shown.add_row(
            row.name,
            f"{row.seconds * 1e3:.3f}",
            f"{row.tflops:.1f}",
            f"{first.seconds / row.seconds:.2f}×",
            f"{100 * reference.seconds / row.seconds:.1f}",
            f"{row.error:.1e}",
        )
    return shown


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
        panel.set_title(f"{family}, {reference.size}³: TFLOP/s; dashed: torch.mm", fontsize=9)
        panel.set_xlim(0, 1.12 * max(row.tflops for row in (reference, *rungs)))
        panel.invert_yaxis()
    figure.savefig(path)


def main(size: int | None = None, path: Path | None = None) -> None:
    """Measure, print and plot every family; RuntimeError at a rung whose result is wrong."""
    console, families = Console(width=100), {}
    for family, rungs in groupby(KERNELS.values(), key=lambda kernel: kernel.family):
        extent, bound = size or SIZES[family], TOLERANCE[next(rungs).requirements.dtypes[0]]
        measured = families[family] = list(measure(family, extent))
        console.print(table(family, measured))
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
    if path is not None:
        plot(families, path)


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
