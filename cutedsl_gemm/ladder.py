"""Every rung of the ladder on this GPU: checked against float64, timed, a table a family.

simt at 8192³ in float32 (TF32 off), row × row; the others at 4096³ in bfloat16, row × column. Times
are of launches in a row by CUDA events, after one to warm up; torch.mm's are taken the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from cutedsl_gemm.api import gemm
from cutedsl_gemm.bench import timed
from cutedsl_gemm.rungs import KERNELS, Kernel

SIZES = {"simt": 8192, "sm80": 4096, "sm90": 4096}
SECONDS, MOST = 0.3, 50  # of a measurement: its length, and its launches
TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 1e-2}  # relative error, of the norm


@dataclass(frozen=True)
class Measured:
    """A rung at one shape: seconds, and the relative error against float64."""

    name: str
    seconds: float
    error: float


def measure(family: str, size: int) -> Iterator[Measured]:
    """torch.mm, then the rungs of a family, at size³."""
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
        once = timed(launch, 1)
        seconds = timed(launch, max(1, min(MOST, int(SECONDS / once))))
        yield Measured(name, seconds, float((out.double() - truth).norm() / truth.norm()))


def operands(kernel: Kernel, size: int) -> tuple[Tensor, Tensor]:
    """Random normal matrices of the kernel's first dtype; b column-major for the tensor core."""
    dtype = kernel.terms.dtypes[0]
    a, b = (torch.randn(size, size, device="cuda").to(dtype) for _ in range(2))
    return a, b if kernel.family == "simt" else b.mT


def table(family: str, size: int, measured: list[Measured]) -> Table:
    """Time, speed-up over the first rung, and share of torch.mm's speed."""
    reference, first = measured[0].seconds, measured[1].seconds
    shown = Table(title=f"{family}, {size}³ on {torch.cuda.get_device_name()}")
    for column in ("kernel", "ms", "TFLOP/s", "speed-up", "% of torch.mm", "error"):
        shown.add_column(column, justify="left" if column == "kernel" else "right")
    for row in (*measured[1:], measured[0]):
        shown.add_row(
            row.name,
            f"{row.seconds * 1e3:.3f}",
            f"{2e-12 * size**3 / row.seconds:.1f}",
            f"{first / row.seconds:.2f}×",
            f"{100 * reference / row.seconds:.1f}",
            f"{row.error:.1e}",
        )
    return shown


def main(size: int | None = None) -> None:
    """Measure and print every family; stop with the name of a rung whose answer is wrong."""
    console = Console(width=100)
    for family, rungs in groupby(KERNELS.values(), key=lambda kernel: kernel.family):
        extent, bound = size or SIZES[family], TOLERANCE[next(rungs).terms.dtypes[0]]
        measured = list(measure(family, extent))
        console.print(table(family, extent, measured))
        for row in measured:
            if not row.error < bound:
                raise RuntimeError(
                    f"{row.name} at {extent}³: relative error {row.error:.1e} against float64; "
                    f"it must be under {bound:.0e}"
                )
