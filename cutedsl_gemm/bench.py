"""Speed beside torch.mm (cuBLAS), and beside quack where it is installed: all in one process.

burst      a cool card: half a second of rest, 3 launches to warm up, 10 timed by CUDA events; the
           candidates in turn, the median of 3 rounds.
sustained  back to back, the candidates in turn, about 12 ms each, the median of 7 rounds. The card
           sits at its power limit: a contest of energy per flop.

Inputs are random normal, since zeros draw less power and run faster; every output is poisoned
before and checked after. bfloat16, A row-major, B column-major.
"""

from __future__ import annotations

import csv
import math
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table
from torch import Tensor

from cutedsl_gemm.api import gemm

Shape: TypeAlias = tuple[int, int, int]
Provider: TypeAlias = Callable[[Tensor, Tensor, Tensor], object]  # (a, b, out)

OURS = "gemm"
SHAPES: dict[str, list[Shape]] = {
    "sweep": [(8448, 9216, k) for k in (64, 128, 192, 256, 384, 512, 768, 1024, 1536, 1984)],
    "squares": [(n, n, n) for n in (1024, 2048, 3072, 4096, 6144, 8192)],
    "weights": [(m, 8192, 8192) for m in (16, 128, 1024)] + [(8192, 1024, 8192)],
}
REST, WARM_UP, TIMED = 0.5, 3, 10
BURST_ROUNDS, SUSTAINED_ROUNDS, SUSTAINED_SECONDS = 3, 7, 0.012


@dataclass(frozen=True)
class Point:
    """One shape and what each provider reached, in TFLOP/s."""

    mnk: Shape
    tflops: dict[str, float]

    @property
    def best_peer(self) -> float:
        """The fastest that is not ours."""
        return max(tflops for name, tflops in self.tflops.items() if not name.startswith(OURS))


def providers() -> dict[str, Provider]:
    """Who is measured."""
    found: dict[str, Provider] = {
        "torch.mm": lambda a, b, out: torch.mm(a, b, out=out),
        OURS: lambda a, b, out: gemm(a, b, out=out),
        f"{OURS} 128×128": lambda a, b, out: gemm(a, b, out=out, tile=(128, 128, 64)),
    }
    if find_spec("quack") is not None:
        from quack.gemm_config import GemmConfig
        from quack.gemm_interface import gemm_tuned

        for name, config in (
            ("quack pp 128×192", GemmConfig(tile_m=128, tile_n=192, pingpong=True)),
            ("quack 128×256", GemmConfig(tile_m=128, tile_n=256, pingpong=False)),
        ):
            found[name] = partial(gemm_tuned.fn, config=config)
    return found


def sweep(shapes: list[Shape], sustained: bool = False) -> Iterator[Point]:
    """Measure all providers at each (M, N, K)."""
    rounds = SUSTAINED_ROUNDS if sustained else BURST_ROUNDS
    for m, n, k in shapes:
        a, b = normal(m, k), normal(n, k).mT
        truth = (a @ b).float()
        outs = {name: torch.full_like(truth, torch.nan, dtype=a.dtype) for name in providers()}
        runs = {name: partial(run, a, b, outs[name]) for name, run in providers().items()}
        for run in runs.values():
            run()  # compiled, and loaded
        once = {name: timed(run, WARM_UP) for name, run in runs.items()}
        times: dict[str, list[float]] = {name: [] for name in runs}
        for _ in range(rounds):
            for name, run in runs.items():
                if sustained:
                    times[name].append(timed(run, math.ceil(SUSTAINED_SECONDS / once[name])))
                else:
                    time.sleep(REST)
                    timed(run, WARM_UP)
                    times[name].append(timed(run, TIMED))
        for name, out in outs.items():
            _check(name, (m, n, k), out, truth)
        seconds = {name: statistics.median(found) for name, found in times.items()}
        yield Point((m, n, k), {name: 2e-12 * m * n * k / seconds[name] for name in runs})


def normal(rows: int, columns: int) -> Tensor:
    return torch.randn(rows, columns, device="cuda").to(torch.bfloat16)


def timed(launch: Callable[[], object], count: int) -> float:
    """Seconds a launch, of `count` in a row."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(count):
        launch()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / count / 1e3


def _check(name: str, mnk: Shape, out: Tensor, truth: Tensor) -> None:
    error = float((out.float() - truth).norm() / truth.norm())
    if not error < 1e-2:
        raise RuntimeError(
            f"{name} at {mnk}: relative error {error:.1e} against torch.mm into poisoned output; "
            "it must be under 1e-2"
        )


def host_time(calls: int = 200, rounds: int = 7) -> dict[str, float]:
    """Microseconds of host time a call into an idle queue, the median of the rounds but the first.

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


def main(shapes: str = "sweep", sustained: bool = False, file: Path | None = None) -> None:
    """Print the host times and the table of `SHAPES[shapes]`; write it to `file` as CSV."""
    console = Console(width=160)
    for name, microseconds in host_time().items():
        console.print(f"host time of {name}: {microseconds:.1f} µs")
    protocol = "sustained" if sustained else "burst"
    machine = f"{torch.cuda.get_device_name()}, torch {torch.__version__}"
    table = Table(title=f"{machine}: TFLOP/s, {protocol}")
    for column in ("M", "N", "K", *providers(), "gemm / torch.mm", "gemm / best peer"):
        table.add_column(column, justify="right")
    asked, points = SHAPES[shapes], []
    for point in track(
        sweep(asked, sustained), "measuring", total=len(asked), console=Console(stderr=True)
    ):
        points.append(point)
        ours, cublas = point.tflops[OURS], point.tflops["torch.mm"]
        ratios = (f"{ours / cublas:.3f}", f"{ours / point.best_peer:.3f}")
        figures = (f"{tflops:.0f}" for tflops in point.tflops.values())
        table.add_row(*map(str, point.mnk), *figures, *ratios)
    console.print(table)
    for name, peer in (
        ("torch.mm", lambda p: p.tflops["torch.mm"]),
        ("the best peer at each shape", lambda p: p.best_peer),
    ):
        mean = statistics.geometric_mean(point.tflops[OURS] / peer(point) for point in points)
        console.print(f"geometric mean of gemm / {name}: {mean:.3f}")
    if file is not None:
        _write(file, points)


def _write(file: Path, points: list[Point]) -> None:
    with file.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(("M", "N", "K", *points[0].tflops))
        for point in points:
            figures = (f"{tflops:.1f}" for tflops in point.tflops.values())
            writer.writerow((*point.mnk, *figures))
