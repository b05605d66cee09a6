"""Host time of a call into an idle queue: gemm and torch.mm, and a layer before and after convert.

The products are so small that the GPU keeps up: 128×128×64, and 16 rows of 128 by 128×128. Calls
are timed in turn, `CALLS` in a row. The least of all rounds counts, since what else a host does
only adds to it.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from cutedsl_gemm.api import gemm, plan_for
from cutedsl_gemm.kernels.compile import build
from cutedsl_gemm.kernels.device.occupancy import multiprocessors
from cutedsl_gemm.layers.functions import linear
from cutedsl_gemm.measure.bench import machine, normal
from cutedsl_gemm.measure.report import write_csv
from cutedsl_gemm.models.conversion import convert
from cutedsl_gemm.select.timing import Launch

WIDTH, ROWS = 128, 16
ROUNDS, CALLS = 25, 100
TORCH, CONVERTED, LINEAR = "torch", "converted", "linear"
# with a bias or not, with gradients or not, and the shape of x
CALLED = (*product((False, True), (False, True), ((ROWS, WIDTH), (1, ROWS, WIDTH))),)
COLUMNS = (
    "bias",
    "gradients",
    "x",
    "torch, µs",
    "converted, µs",
    "converted over torch",
    "linear, µs",
)


@dataclass(frozen=True)
class Call:
    """A layer, how it is called, and the microseconds of a call."""

    bias: bool
    gradients: bool
    x: tuple[int, ...]  # its shape
    microseconds: Mapping[str, float]  # by TORCH, CONVERTED and LINEAR

    @property
    def cells(self) -> tuple[str, ...]:
        """A row of the table, by `COLUMNS`."""
        torchs, ours, function = (self.microseconds[name] for name in (TORCH, CONVERTED, LINEAR))
        return (
            "bias" if self.bias else "no bias",
            "yes" if self.gradients else "no",
            str(self.x),
            *(f"{torchs:.1f}", f"{ours:.1f}", f"{ours / torchs:.2f}", f"{function:.1f}"),
        )


def products() -> dict[str, Launch]:
    """Calls of torch.mm and gemm; the launch of gemm's kernel alone is the lower bound."""
    a, b, out = normal(WIDTH, 64), normal(WIDTH, 64).mT, normal(WIDTH, WIDTH)
    plan = plan_for(a, b)
    kernel, sms = build.load(plan), multiprocessors(a.device, plan)
    return {
        "torch.mm(a, b)": lambda: torch.mm(a, b),
        "torch.mm(a, b, out=out)": lambda: torch.mm(a, b, out=out),
        "gemm(a, b)": lambda: gemm(a, b),
        "gemm(a, b, out=out)": lambda: gemm(a, b, out=out),
        "gemm's kernel alone": lambda: kernel(a, b, out, sms),
    }


def layers() -> Iterator[Call]:
    """nn.Linear as it is and converted, and `linear` of the same tensors."""
    for bias, gradients, shape in CALLED:
        theirs = nn.Linear(WIDTH, WIDTH, bias=bias).to("cuda", torch.bfloat16)
        with torch.set_grad_enabled(gradients):
            found = microseconds(calls(theirs, normal(ROWS, WIDTH).view(shape)))
        yield Call(bias, gradients, shape, found)


def calls(theirs: nn.Linear, x: Tensor) -> dict[str, Launch]:
    """A layer's forward, by each provider."""
    ours = convert(copy.deepcopy(theirs))
    return {
        TORCH: lambda: theirs(x),
        CONVERTED: lambda: ours(x),
        LINEAR: lambda: linear(x, theirs.weight, theirs.bias),
    }


def microseconds(runs: Mapping[str, Launch]) -> dict[str, float]:
    """The host time of a call of each, in turn: the least of `ROUNDS` rounds after the first."""
    found: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(1 + ROUNDS):
        for name, run in runs.items():
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(CALLS):
                run()
            found[name].append((time.perf_counter() - start) / CALLS * 1e6)
    return {name: min(times[1:]) for name, times in found.items()}


def main(file: Path | None = None) -> None:
    """Print both tables; write that of the layers as CSV."""
    console = Console(width=200)
    for name, least in microseconds(products()).items():
        console.print(f"{name}: {least:.1f} µs")
    found = [*layers()]
    shown = Table(*COLUMNS, title=f"{machine()}: host time of a layer's forward")
    for each in found:
        shown.add_row(*each.cells)
    console.print(shown)
    if file is not None:
        write_csv(file, COLUMNS, (each.cells for each in found))
