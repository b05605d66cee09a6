"""Time of a product with an epilogue, compared with the product alone and with other providers.

All are replayed from CUDA graphs in turn, of random inputs. The result of each is filled with NaN
before the graphs run, and checked after, against the layer in float32. torch.compile is that of
inductor, without max-autotune. quack's SwiGLU has a weight that was repacked before.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from cutedsl_gemm.kernels.compile.progress import track
from cutedsl_gemm.measure.bench import check, machine, normal
from cutedsl_gemm.measure.layers import ALONE, LAYERS, PROVIDERS, SWIGLU, Extents, Layer
from cutedsl_gemm.measure.report import OURS, write_csv
from cutedsl_gemm.select.precompile import compiled_with_bar
from cutedsl_gemm.select.timing import captured, in_turn, launches_of_a_graph, timed

SHAPES = (8448, 9216, 256), (4096, 4096, 4096), (8192, 14336, 4096), (1024, 4096, 4096)
LARGEST = 8192, 28672, 8192  # of SwiGLU; N is that of the weight's rows
CASES = *((layer, mnk) for layer in LAYERS for mnk in SHAPES), (SWIGLU, LARGEST)
EXTENTS = "L", "M", "N", "K"
WARM_UP, ROUNDS = 3, 7


@dataclass(frozen=True)
class Sample:
    """Seconds of each provider that has a layer, for one M, N and K; of experts, L, M, N and K."""

    layer: str
    shape: Extents
    seconds: dict[str, float]

    @property
    def cost(self) -> float:
        """The time of gemm with the epilogue over that of the product alone."""
        return self.seconds[OURS] / self.seconds[ALONE]

    def speed(self, provider: str) -> float:
        """How many times as fast as a provider gemm is."""
        return self.seconds[provider] / self.seconds[OURS]


class Kept:
    """A launch that keeps its result. Of a graph, it is memory that each replay writes."""

    result: Tensor

    def __init__(self, launch: Callable[[], Tensor]) -> None:
        self.launch = launch

    def __call__(self) -> None:
        self.result = self.launch()


def measure(cases: Sequence[tuple[Layer, Extents]]) -> Iterator[Sample]:
    """Compile the kernels that gemm chooses on all cores, then time each layer."""
    compiled_with_bar({plan for layer, shape in cases for plan in layer.plans(shape)})
    for layer, shape in track(cases, "measuring", len(cases)):
        yield Sample(layer.name, shape, _seconds(layer, shape))


@torch.no_grad()
def _seconds(layer: Layer, shape: Extents) -> dict[str, float]:
    """Seconds per launch of each provider."""
    x, weight, *operand = layer.inputs(shape, normal)
    inputs = x, weight.mul_(shape[-1] ** -0.5), *operand  # the sums are of the size of the operand
    runs = dict(_that_run(layer, inputs))
    count = launches_of_a_graph(timed(runs[ALONE], WARM_UP))
    graphs = [captured(run, count) for run in runs.values()]
    for run in runs.values():
        run.result.fill_(torch.nan)
    seconds = in_turn(graphs, rounds=ROUNDS, count=count)
    expected = layer.torch(*(each.float() for each in inputs))
    for name, run in runs.items():
        if name != ALONE:
            check(f"{layer.name} by {name}", shape, run.result, expected)
    return dict(zip(runs, seconds, strict=True))


def _that_run(layer: Layer, inputs: tuple[Tensor, ...]) -> Iterator[tuple[str, Kept]]:
    """The providers' launches; a peer that raises is left out, and the reason is printed."""
    for name, launch in layer.launches(inputs):
        run = Kept(launch)
        try:
            run()  # compiles and loads the kernel
            captured(run, 1)
        except Exception as error:
            if name in (ALONE, OURS):
                raise
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            Console(stderr=True).print(f"{layer.name} by {name}: {reason}", markup=False)
            continue
        yield name, run


def table(samples: Sequence[Sample]) -> Table:
    """A row for each sample: µs, and how many times as fast as each peer gemm is."""
    shown = Table(title=f"{machine()}: µs, and the speed of {OURS} over it")
    shown.add_column("layer")
    for column in (*EXTENTS, ALONE, OURS, f"time / {ALONE}", *PROVIDERS[2:]):
        shown.add_column(column, justify="right")
    for each, after in zip(samples, [*samples[1:], None], strict=True):
        own = (f"{1e6 * each.seconds[name]:.1f}" for name in (ALONE, OURS))
        peers = (
            f"{1e6 * each.seconds[name]:.1f}  {each.speed(name):.2f}"
            if name in each.seconds
            else "—"
            for name in PROVIDERS[2:]
        )
        last = after is None or after.layer != each.layer
        extents = map(str, _with_experts(each.shape))
        shown.add_row(each.layer, *extents, *own, f"{each.cost:.3f}", *peers, end_section=last)
    return shown


def write(samples: Sequence[Sample], file: Path) -> None:
    """The samples as CSV: layer, extents, microseconds of each provider, empty if it lacks it."""
    rows = []
    for each in samples:
        found = (each.seconds.get(name) for name in PROVIDERS)
        times = ("" if seconds is None else f"{1e6 * seconds:.2f}" for seconds in found)
        rows.append((each.layer, *_with_experts(each.shape), *times))
    write_csv(file, ("layer", *EXTENTS, *(f"{name}, µs" for name in PROVIDERS)), rows)


def read(file: Path) -> list[Sample]:
    """The samples of a file that `write` wrote."""
    with file.open(newline="", encoding="utf-8") as stream:
        return [
            Sample(
                row["layer"],
                tuple(int(row[name]) for name in EXTENTS if row.get(name)),
                {name: float(row[f"{name}, µs"]) / 1e6 for name in PROVIDERS if row[f"{name}, µs"]},
            )
            for row in csv.DictReader(stream)
        ]


def markdown(samples: Sequence[Sample]) -> str:
    """A row for each sample, as in docs/epilogues.md: µs, and the speed of gemm over each peer.

    >>> seconds = {ALONE: 70e-6, OURS: 77e-6, "torch": 231e-6, "cuBLAS fused": 154e-6}
    >>> print(markdown([Sample("addmm", (8448, 9216, 256), seconds)]))
    | layer | M×N×K | gemm alone | gemm | time / gemm alone | torch | cuBLAS fused |
    |---|---|---|---|---|---|---|
    | addmm | 8448×9216×256 | 70.0 | 77.0 | 1.10 | 231.0 (3.00\xa0×) | 154.0 (2.00\xa0×) |
    """
    peers = [name for name in PROVIDERS[2:] if any(name in each.seconds for each in samples)]
    extents = "L×M×N×K" if len(samples[0].shape) > 3 else "M×N×K"
    rows = [("layer", extents, ALONE, OURS, f"time / {ALONE}", *peers)]
    for each in samples:
        own = (f"{1e6 * each.seconds[name]:.1f}" for name in (ALONE, OURS))
        others = (
            f"{1e6 * each.seconds[name]:.1f} ({each.speed(name):.2f}\N{NO-BREAK SPACE}×)"
            if name in each.seconds
            else "—"
            for name in peers
        )
        shape = "×".join(map(str, each.shape))
        rows.append((each.layer, shape, *own, f"{each.cost:.2f}", *others))
    first, *rest = (f"| {' | '.join(cells)} |" for cells in rows)
    return "\n".join((first, "|---" * len(rows[0]) + "|", *rest))


def _with_experts(shape: Extents) -> tuple[int | str, ...]:
    """L, M, N and K; L is empty where there are no experts."""
    extents: tuple[int | str, ...] = "", *shape
    return extents[-len(EXTENTS) :]


def main(file: Path | None = None, cases: Sequence[tuple[Layer, Extents]] = CASES) -> None:
    """Print the table; write the samples as CSV."""
    samples = list(measure(cases))
    Console(width=200).print(table(samples))
    if file is not None:
        write(samples, file)
