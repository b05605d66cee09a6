"""Speed of gemm, torch.mm (cuBLAS), quack and Triton, all measured in one process.

burst      a cool card: half a second of rest, 3 launches to warm up, 10 launches timed by CUDA
           events; the providers in turn, the median of 3 rounds.
sustained  launches back to back, the providers in turn, about 12 ms each, the median of 7 rounds.
           The card is at its power limit, so energy per flop decides.

Launches that take less than 30 µs are replayed from a CUDA graph; the time of a call from Python is
then reported separately. Inputs are random normal, since zeros draw less power and run faster.
Every output is filled with NaN before it is computed, and checked after. bfloat16, A row-major,
B column-major.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import torch
from rich.console import Console
from torch import Tensor

from cutedsl_gemm.api import gemm
from cutedsl_gemm.kernels.compile.progress import track
from cutedsl_gemm.measure.accuracy import relative_error
from cutedsl_gemm.measure.power import PowerMeter
from cutedsl_gemm.measure.providers import CUBLAS, Provider, baselines
from cutedsl_gemm.measure.report import OURS, Point, Shape, plot, table, write
from cutedsl_gemm.select.timing import TIMED, WARM_UP, Launch, burst, captured, timed

# (N, K) of Llama 3 8B's and 70B's layers: attention, and the MLP's first and last
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
BURST_ROUNDS, SUSTAINED_ROUNDS, SUSTAINED_SECONDS = 3, 7, 0.012
SHORT = 30e-6  # seconds: a shorter launch comes from a graph, since a call takes up to 15 µs


def providers() -> dict[str, Provider]:
    """Every provider by name: torch.mm, gemm, then the other baselines."""
    cublas, *others = baselines().items()
    ours: dict[str, Provider] = {
        OURS: lambda a, b, out: gemm(a, b, out=out),
        f"{OURS} 128×128": lambda a, b, out: gemm(a, b, out=out, tile=(128, 128, 64)),
    }
    return dict([cublas, *ours.items(), *others])


def sweep(shapes: Sequence[Shape], sustained: bool = False) -> Iterator[Point]:
    """Measure all providers at each (M, N, K)."""
    with PowerMeter(f"GPU-{torch.cuda.get_device_properties().uuid}") as meter:
        for mnk in shapes:
            yield _point(mnk, sustained, meter)


def _point(mnk: Shape, sustained: bool, meter: PowerMeter) -> Point:
    m, n, k = mnk
    a, b = normal(m, k), normal(n, k).mT
    expected = (a @ b).float()
    outs = {name: torch.full_like(expected, torch.nan, dtype=a.dtype) for name in providers()}
    runs: dict[str, Launch] = {
        name: partial(run, a, b, outs[name]) for name, run in providers().items()
    }
    for run in runs.values():
        run()  # compiles and loads the kernel
    calls = None
    if replays := _replays(runs):
        calls = {name: 1e6 * timed(run, 10 * TIMED) for name, run in runs.items()}
        runs = replays
    meter.peak()  # forgets the readings so far
    times = _times(runs, 1 if calls is None else TIMED, sustained)
    reading = meter.peak()
    for name, out in outs.items():
        check(name, mnk, out, expected)
    tflops = {name: 2e-12 * m * n * k / seconds for name, seconds in times.items()}
    return Point(mnk, tflops, calls, reading)


def _replays(runs: dict[str, Launch]) -> dict[str, Launch] | None:
    """Graphs of `TIMED` launches each if one launch is short; else None."""
    if min(timed(run, WARM_UP) for run in runs.values()) > 10 * SHORT:  # host time included
        return None
    replays = {name: captured(run, TIMED) for name, run in runs.items()}
    short = min(timed(replay, WARM_UP) / TIMED for replay in replays.values()) < SHORT
    return replays if short else None


def _times(runs: dict[str, Launch], launches: int, sustained: bool) -> dict[str, float]:
    """Seconds per launch of each provider, in turn; a run has `launches` of them."""
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


def normal(*extents: int) -> Tensor:
    """A random normal tensor in bfloat16, contiguous, on the GPU."""
    return torch.randn(extents, device="cuda").to(torch.bfloat16)


def check(name: str, shape: tuple[int, ...], out: Tensor, expected: Tensor) -> None:
    """RuntimeError unless `out` is close to `expected`."""
    error = relative_error(out, expected)
    if not error < 1e-2:
        raise RuntimeError(
            f"{name} at {shape}: the relative error against torch.mm is {error:.1e}; "
            "it must be under 1e-2 (the output held NaN before)"
        )


def main(
    shapes: str = "sweep",
    sustained: bool = False,
    file: Path | None = None,
    drawing: Path | None = None,
) -> None:
    """Print the table of `SHAPES[shapes]`; write it as CSV, and plot it."""
    console = Console(width=200)
    asked = SHAPES[shapes]
    points = [*track(sweep(asked, sustained), f"measuring {len(asked)} shapes", len(asked))]
    protocol = "sustained" if sustained else "burst"
    title = f"{machine()}, {protocol}"
    console.print(table(points, f"{title}: TFLOP/s"))
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


def machine() -> str:
    """The GPU and the version of torch, for titles."""
    return f"{torch.cuda.get_device_name()}, torch {torch.__version__}"
