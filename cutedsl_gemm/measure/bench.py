"""Speed beside torch.mm (cuBLAS), and beside quack and Triton where installed: in one process.

burst      a cool card: half a second of rest, 3 launches to warm up, 10 timed by CUDA events; the
           candidates in turn, the median of 3 rounds.
sustained  back to back, the candidates in turn, about 12 ms each, the median of 7 rounds. The card
           sits at its power limit: a contest of energy per flop.

Where a launch takes less than 30 µs, the launches are replayed from a CUDA graph, and the time of
a call from Python stands apart. Inputs are random normal, since zeros draw less power and run
faster; every output is poisoned before and checked after. bfloat16, A row-major, B column-major.
"""

from __future__ import annotations

import csv
import math
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from operator import truediv
from pathlib import Path
from typing import Any, TypeAlias

import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table
from torch import Tensor

from cutedsl_gemm.api import gemm, plan_for
from cutedsl_gemm.kernels.compile import build
from cutedsl_gemm.measure.peers import CUBLAS, Provider, peers
from cutedsl_gemm.measure.power import Gauge, Reading
from cutedsl_gemm.measure.timing import TIMED, WARM_UP, Launch, burst, captured, timed

Shape: TypeAlias = tuple[int, int, int]

OURS = "gemm"
# (N, K) of layers of Llama 3 8B and 70B: attention, and both ways through the MLP
WEIGHTS = [(4096, 4096), (14336, 4096), (4096, 14336), (8192, 8192), (28672, 8192), (8192, 28672)]
SHAPES: dict[str, list[Shape]] = {
    "sweep": [(8448, 9216, k) for k in (64, 128, 192, 256, 384, 512, 768, 1024, 1536, 1984)],
    "curve": [(8448, 9216, 64 * k) for k in range(1, 32)],
    "squares": [(n, n, n) for n in (512, 1024, 2048, 3072, 4096, 6144, 8192, 12288, 16384)],
    "weights": [(m, n, k) for m in (16, 128, 1024, 8192) for n, k in WEIGHTS],
    "split": [
        (512, 512, 16384),
        (256, 256, 16384),
        (128, 8192, 8192),
        (16, 8192, 8192),
        (64, 1024, 65536),
        (1024, 1024, 8192),
    ],
}
GPU = "MHz", "W"  # at the moment of the most power
BURST_ROUNDS, SUSTAINED_ROUNDS, SUSTAINED_SECONDS = 3, 7, 0.012
SHORT = 30e-6  # seconds of a launch below which a graph launches: a call takes up to 15 µs


@dataclass(frozen=True)
class Point:
    """One shape and what each provider reached, in TFLOP/s.

    `calls` are the microseconds of a call from Python, where `tflops` are of a graph's launches.
    """

    mnk: Shape
    tflops: dict[str, float]
    calls: dict[str, float] | None = None
    gpu: Reading | None = None

    @property
    def best_peer(self) -> float:
        """The fastest that is not ours."""
        return max(tflops for name, tflops in self.tflops.items() if not name.startswith(OURS))


def providers() -> dict[str, Provider]:
    """Who is measured: ours after the first peer, so that tables begin with what is compared."""
    cublas, *others = peers().items()
    ours: dict[str, Provider] = {
        OURS: lambda a, b, out: gemm(a, b, out=out),
        f"{OURS} 128×128": lambda a, b, out: gemm(a, b, out=out, tile=(128, 128, 64)),
    }
    return dict([cublas, *ours.items(), *others])


def sweep(shapes: Sequence[Shape], sustained: bool = False) -> Iterator[Point]:
    """Measure all providers at each (M, N, K)."""
    with Gauge(f"GPU-{torch.cuda.get_device_properties().uuid}") as gauge:
        for mnk in shapes:
            yield _point(mnk, sustained, gauge)


def _point(mnk: Shape, sustained: bool, gauge: Gauge) -> Point:
    m, n, k = mnk
    a, b = normal(m, k), normal(n, k).mT
    truth = (a @ b).float()
    outs = {name: torch.full_like(truth, torch.nan, dtype=a.dtype) for name in providers()}
    runs: dict[str, Launch] = {
        name: partial(run, a, b, outs[name]) for name, run in providers().items()
    }
    for run in runs.values():
        run()  # compiled, and loaded
    calls = None
    if replays := _replays(runs):
        calls = {name: 1e6 * timed(run, 10 * TIMED) for name, run in runs.items()}
        runs = replays
    gauge.peak()  # what was before does not count
    times = _times(runs, 1 if calls is None else TIMED, sustained)
    reading = gauge.peak()
    for name, out in outs.items():
        _check(name, mnk, out, truth)
    tflops = {name: 2e-12 * m * n * k / seconds for name, seconds in times.items()}
    return Point(mnk, tflops, calls, reading)


def _replays(runs: dict[str, Launch]) -> dict[str, Launch] | None:
    """Graphs of `TIMED` launches each, where one by itself is short; else None."""
    if min(timed(run, WARM_UP) for run in runs.values()) > 10 * SHORT:  # with the host's time
        return None
    replays = {name: captured(run, TIMED) for name, run in runs.items()}
    short = min(timed(replay, WARM_UP) / TIMED for replay in replays.values()) < SHORT
    return replays if short else None


def _times(runs: dict[str, Launch], launches: int, sustained: bool) -> dict[str, float]:
    """Seconds of a launch by each, of which a run is so many; the candidates in turn."""
    once = {name: timed(run, WARM_UP) for name, run in runs.items()} if sustained else {}
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(SUSTAINED_ROUNDS if sustained else BURST_ROUNDS):
        for name, run in runs.items():
            if sustained:
                found = timed(run, math.ceil(SUSTAINED_SECONDS / once[name]))
            else:
                found = burst(run, math.ceil(WARM_UP / launches), max(1, TIMED // launches))
            times[name].append(found / launches)
    return {name: statistics.median(found) for name, found in times.items()}


def normal(rows: int, columns: int) -> Tensor:
    return torch.randn(rows, columns, device="cuda").to(torch.bfloat16)


def _check(name: str, mnk: Shape, out: Tensor, truth: Tensor) -> None:
    error = float((out.float() - truth).norm() / truth.norm())
    if not error < 1e-2:
        raise RuntimeError(
            f"{name} at {mnk}: relative error {error:.1e} against torch.mm into poisoned output; "
            "it must be under 1e-2"
        )


def host_time(calls: int = 200, rounds: int = 7) -> dict[str, float]:
    """Microseconds of host time a call into an idle queue, the median of the rounds but the first.

    The product is so small that the GPU keeps up. The kernel alone is what no call can go below.
    """
    a, b, out = normal(128, 64), normal(128, 64).mT, normal(128, 128)
    kernel = build.load(plan_for(a, b))
    sms = torch.cuda.get_device_properties(a.device).multi_processor_count
    candidates = {
        "torch.mm(a, b)": lambda: torch.mm(a, b),
        "torch.mm(a, b, out=out)": lambda: torch.mm(a, b, out=out),
        "gemm(a, b)": lambda: gemm(a, b),
        "gemm(a, b, out=out)": lambda: gemm(a, b, out=out),
        "gemm's kernel alone": lambda: kernel(a, b, out, sms),
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


def main(
    shapes: str = "sweep",
    sustained: bool = False,
    file: Path | None = None,
    drawing: Path | None = None,
) -> None:
    """Print the host times and the table of `SHAPES[shapes]`; write it as CSV, and draw it."""
    console = Console(width=200)
    for name, microseconds in host_time().items():
        console.print(f"host time of {name}: {microseconds:.1f} µs")
    asked, bar = SHAPES[shapes], Console(stderr=True)
    points = list(track(sweep(asked, sustained), "measuring", total=len(asked), console=bar))
    protocol = "sustained" if sustained else "burst"
    machine = f"{torch.cuda.get_device_name()}, torch {torch.__version__}"
    title = f"{machine}: TFLOP/s, {protocol}"
    console.print(table(points, title))
    for name, peer in (
        (CUBLAS, lambda p: p.tflops[CUBLAS]),
        ("the best peer at each shape", lambda p: p.best_peer),
    ):
        mean = statistics.geometric_mean(point.tflops[OURS] / peer(point) for point in points)
        console.print(f"geometric mean of gemm / {name}: {mean:.3f}")
    if file is not None:
        write(points, file)
    if drawing is not None:
        plot(points, title, drawing)


def table(points: Sequence[Point], title: str) -> Table:
    """Speeds and their ratios; calls from Python where a graph launched; the GPU's state."""
    shown = Table(title=title)
    ratios = "gemm / torch.mm", "gemm / best peer"
    beside = "call, µs", "torch.mm", *GPU
    for column in ("M", "N", "K", *points[0].tflops, *ratios, *beside):
        shown.add_column(column, justify="right")
    for point in points:
        ours = point.tflops[OURS]
        calls, gpu = point.calls, point.gpu
        shown.add_row(
            *map(str, point.mnk),
            *(f"{tflops:.0f}" for tflops in point.tflops.values()),
            f"{ours / point.tflops[CUBLAS]:.3f}",
            f"{ours / point.best_peer:.3f}",
            *((f"{calls[name]:.1f}" for name in (OURS, CUBLAS)) if calls else ("", "")),
            *((f"{gpu.megahertz:.0f}", f"{gpu.watts:.0f}") if gpu else ("", "")),
        )
    return shown


def markdown(points: Sequence[Point]) -> str:
    """Speeds in TFLOP/s and their ratios, a column a shape: what docs/performance shows.

    >>> few = [Point((512, 512, k), {"torch.mm": 50.0, "gemm": 60.0}) for k in (64, 128)]
    >>> print(markdown(few))
    | K | 64 | 128 |
    |---|---|---|
    | torch.mm | 50 | 50 |
    | gemm | 60 | 60 |
    | gemm / torch.mm | 1.20 | 1.20 |
    | gemm / best of the others | 1.20 | 1.20 |
    """
    ours = [point.tflops[OURS] for point in points]
    others = {
        CUBLAS: [point.tflops[CUBLAS] for point in points],
        "best of the others": [point.best_peer for point in points],
    }
    head = "K" if _over_k(points) else "M, N, K"
    rows = [
        (head, *_names(points)),
        *((name, *(f"{point.tflops[name]:.0f}" for point in points)) for name in points[0].tflops),
        *(
            (f"{OURS} / {name}", *map("{:.2f}".format, map(truediv, ours, theirs)))
            for name, theirs in others.items()
        ),
    ]
    first, *rest = (f"| {' | '.join(cells)} |" for cells in rows)
    return "\n".join((first, "|---" * (len(points) + 1) + "|", *rest))


def _over_k(points: Sequence[Point]) -> bool:
    return len({point.mnk[:2] for point in points}) == 1


def _names(points: Sequence[Point]) -> list[str]:
    """K where M and N are the same at all points, n³ where all are cubes, else M×N×K."""
    if _over_k(points):
        return [str(point.mnk[2]) for point in points]
    if _cubes(points):
        return [f"{point.mnk[0]}³" for point in points]
    return ["×".join(map(str, point.mnk)) for point in points]


def _cubes(points: Sequence[Point]) -> bool:
    return all(len({*point.mnk}) == 1 for point in points)


def write(points: Sequence[Point], file: Path) -> None:
    """The table as CSV: TFLOP/s, microseconds of a call where a graph launched, MHz, W."""
    names = [*points[0].tflops]
    with file.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(("M", "N", "K", *names, *(f"{name}, µs a call" for name in names), *GPU))
        for point in points:
            calls, gpu = point.calls or {}, point.gpu
            writer.writerow(
                (
                    *point.mnk,
                    *(f"{tflops:.1f}" for tflops in point.tflops.values()),
                    *(f"{calls[name]:.1f}" if calls else "" for name in names),
                    *((gpu.megahertz, gpu.watts) if gpu else ("", "")),
                )
            )


def read(file: Path) -> list[Point]:
    """The shapes and speeds that `write` wrote; calls and the GPU's state are left out."""
    with file.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    names = list(takewhile(lambda name: "µs" not in name, list(rows[0])[3:]))
    return [
        Point(
            (int(row["M"]), int(row["N"]), int(row["K"])),
            {name: float(row[name]) for name in names},
        )
        for row in rows
    ]


def plot(points: Sequence[Point], title: str, file: Path) -> None:
    """TFLOP/s over K where M and N are the same, else a shape after the other.

    A line a provider where the shapes grow, else marks. The suffix of `file` says the format: .svg,
    .png, .pdf. ImportError without matplotlib.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 5), layout="constrained")
    axes = figure.subplots()
    over_k = _over_k(points)
    in_order = over_k or _cubes(points)
    places: list[Any] = [point.mnk[2] for point in points] if over_k else _names(points)
    for name in points[0].tflops:
        ours = name.startswith(OURS)
        style: dict[str, Any] = {
            "linewidth": 2.5 if name == OURS else 1.2,
            "zorder": 3 if ours else 2,
        }
        heights = [point.tflops[name] for point in points]
        mark = ("o-" if ours else "s--") if in_order else ("o" if ours else "s")
        axes.plot(places, heights, mark, label=name, markersize=4, **style)
    m, n, _ = points[0].mnk
    axes.set_xlabel(f"K, at M = {m}, N = {n}" if over_k else "M×N×K")
    if not over_k:
        axes.set_xticks(range(len(places)), places, rotation=60, ha="right", rotation_mode="anchor")
    axes.set_ylabel("TFLOP/s")
    axes.set_ylim(0)
    axes.set_title(title, fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(file)
