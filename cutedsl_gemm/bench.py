"""Speed beside torch.mm (cuBLAS), measured in one process with all candidates in turn.

Burst protocol: a cool card. For each candidate in turn half a second of rest, 3 launches to warm
up, 10 timed by CUDA events; the median of the rounds. Inputs are random normal, since zeros draw
less power and run faster; every output is poisoned before and checked after.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table
from torch import Tensor

from cutedsl_gemm.api import gemm

SWEEP = [(8448, 9216, k) for k in (64, 128, 192, 256, 384, 512, 768, 1024, 1536, 1984)]
REST, WARM_UP, TIMED, ROUNDS = 0.5, 3, 10, 3
PROVIDERS: dict[str, Callable[[Tensor, Tensor, Tensor], object]] = {
    "torch.mm": lambda a, b, out: torch.mm(a, b, out=out),
    "ours": lambda a, b, out: gemm(a, b, out=out),
}


@dataclass(frozen=True)
class Point:
    """One shape and what each provider reached, in TFLOP/s."""

    mnk: tuple[int, int, int]
    tflops: dict[str, float]

    @property
    def ratio(self) -> float:
        return self.tflops["ours"] / self.tflops["torch.mm"]


def sweep(shapes: list[tuple[int, int, int]] = SWEEP) -> Iterator[Point]:
    """Measure all providers at each (M, N, K): bfloat16, A row-major, B column-major."""
    for mnk in shapes:
        m, n, k = mnk
        a, b = normal(m, k), normal(n, k).mT
        truth = (a @ b).float()
        times: dict[str, list[float]] = {name: [] for name in PROVIDERS}
        for _ in range(ROUNDS):
            for name, run in PROVIDERS.items():
                out = torch.full((m, n), torch.nan, dtype=a.dtype, device="cuda")
                time.sleep(REST)
                times[name].append(_burst(partial(run, a, b, out)))
                _check(name, mnk, out, truth)
        median = {name: statistics.median(seconds) for name, seconds in times.items()}
        yield Point(mnk, {name: 2 * m * n * k / median[name] / 1e12 for name in PROVIDERS})


def normal(rows: int, columns: int) -> Tensor:
    return torch.randn(rows, columns, device="cuda").to(torch.bfloat16)


def _burst(launch: Callable[[], object]) -> float:
    """Seconds a launch."""
    for _ in range(WARM_UP):
        launch()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(TIMED):
        launch()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / TIMED / 1e3


def _check(name: str, mnk: tuple[int, int, int], out: Tensor, truth: Tensor) -> None:
    error = float((out.float() - truth).norm() / truth.norm())
    if not error < 1e-2:
        raise RuntimeError(
            f"{name} at {mnk}: relative error {error:.1e} against torch.mm, poisoned output; "
            "it must be under 1e-2"
        )


def host_time(calls: int = 200, rounds: int = 7) -> dict[str, float]:
    """Microseconds of host time a call into an idle queue, the median of the rounds.

    The product is so small that the GPU keeps up.
    """
    a, b, out = normal(128, 64), normal(128, 64).mT, normal(128, 128)
    candidates = {
        "torch.mm(a, b)": lambda: torch.mm(a, b),
        "torch.mm(a, b, out=out)": lambda: torch.mm(a, b, out=out),
        "gemm(a, b)": lambda: gemm(a, b),
        "gemm(a, b, out=out)": lambda: gemm(a, b, out=out),
    }
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, run in candidates.items():
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(calls):
                run()
            times[name].append((time.perf_counter() - start) / calls * 1e6)
    return {name: statistics.median(found[1:]) for name, found in times.items()}


def main() -> None:
    """Print the host times and the sweep."""
    console = Console()
    for name, microseconds in host_time().items():
        console.print(f"host time of {name}: {microseconds:.1f} µs")
    machine = f"{torch.cuda.get_device_name()}, torch {torch.__version__}"
    table = Table(title=f"{machine}: TFLOP/s, burst")
    for column in ("M", "N", "K", *PROVIDERS, "ours / torch.mm"):
        table.add_column(column, justify="right")
    for point in track(sweep(), "measuring", total=len(SWEEP), console=Console(stderr=True)):
        figures = (f"{point.tflops[name]:.0f}" for name in PROVIDERS)
        table.add_row(*map(str, point.mnk), *figures, f"{point.ratio:.3f}")
    console.print(table)
