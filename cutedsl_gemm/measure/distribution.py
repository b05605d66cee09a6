"""Speed of gemm compared with torch.mm, or torch.bmm, over many shapes, as a distribution.

A population says which shapes are drawn, and the classes that they fall into. Both providers are
replayed from CUDA graphs in turn. Inputs and checks are those of bench.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from cutedsl_gemm.api import gemm
from cutedsl_gemm.inputs.tensors import problem_of
from cutedsl_gemm.kernels.compile.progress import track
from cutedsl_gemm.kernels.sm90.plan import Sm90Plan
from cutedsl_gemm.measure.bench import check, machine, normal
from cutedsl_gemm.measure.providers import CUBLAS
from cutedsl_gemm.measure.report import OURS, Shape, write_csv
from cutedsl_gemm.select.candidate import candidate_of
from cutedsl_gemm.select.choose import choose
from cutedsl_gemm.select.costs import SMS
from cutedsl_gemm.select.precompile import compiled_with_bar
from cutedsl_gemm.select.timing import Launch, launches_of_a_graph, race, timed

ROUNDS = 5
FEW_ROWS = 128
SLOW = 0.95  # a ratio under which a shape counts as slow
WORST = 20  # shapes that are listed


class Product(NamedTuple):
    """(M, N, K), and along which mode B (K, N) is contiguous; A (M, K) is row-major.

    Or a batch of such products.
    """

    mnk: Shape
    b_major: Literal["K", "N"] = "K"
    batch: int = 1

    def operands(self, dense: Callable[..., Tensor]) -> tuple[Tensor, Tensor]:
        """A and B; `dense` makes a contiguous tensor of these extents."""
        (m, n, k), batch = self.mnk, (self.batch,) if self.batch > 1 else ()
        b = dense(*batch, n, k).mT if self.b_major == "K" else dense(*batch, k, n)
        return dense(*batch, m, k), b

    @property
    def flops(self) -> int:
        """Multiplications and additions."""
        return 2 * self.batch * math.prod(self.mnk)


@dataclass(frozen=True)
class Sample:
    """Seconds of torch.mm, or torch.bmm, and of gemm for one product, and gemm's candidate plan."""

    product: Product
    cublas: float
    ours: float
    plan: str

    @property
    def ratio(self) -> float:
        """The speed of gemm over that of torch."""
        return self.cublas / self.ours


Classes: TypeAlias = Mapping[str, Callable[[Product], bool]]


@dataclass(frozen=True)
class Population:
    """The products that are measured: some by name, the others drawn."""

    name: str  # of the drawn ones, in titles
    draw: Callable[[int, int], list[Product]]  # (count, seed) → the same for the same seed
    count: int
    seed: int
    classes: Classes  # the rows of the summary; a product may be in several
    colours: tuple[str, ...]  # classes that are colours of the plot; a product is in one of them
    named: tuple[Product, ...] = ()


def few_tiles(product: Product) -> bool:
    """Whether tiles of 128×128 are fewer than the multiprocessors."""
    m, n, _ = product.mnk
    return product.batch * math.ceil(m / 128) * math.ceil(n / 128) < SMS


def few_rows(product: Product) -> bool:
    """Whether C has at most `FEW_ROWS` rows or columns."""
    return min(product.mnk[:2]) <= FEW_ROWS


SMALL: Classes = {
    f"fewer than {SMS} tiles of 128×128": few_tiles,
    f"M or N at most {FEW_ROWS}": few_rows,
}


def log_uniform(least: int, most: int, share: float) -> float:
    """The number at a share, 0 to 1, of the way from `least` to `most`, by ratio.

    >>> log_uniform(64, 16384, 0.5)
    1024.0
    """
    return float(least * (most / least) ** share)


def measure(products: Sequence[Product], invariant: bool = False) -> Iterator[Sample]:
    """Compile the kernels that gemm chooses on all cores, then time each product.

    The few kernels that copy operands are compiled at their first launch.
    """
    plans = {each: plan_of(each, invariant) for each in products}
    compiled_with_bar({*plans.values()})
    for each in track(products, "measuring", len(products)):
        cublas, ours = _seconds(each, invariant)
        candidate = candidate_of(plans[each])
        yield Sample(each, cublas, ours, candidate.name if candidate else "")


def plan_of(product: Product, invariant: bool = False) -> Sm90Plan:
    """The plan that gemm runs; operands that TMA cannot read count as their aligned copies."""
    empty = partial(torch.empty, dtype=torch.bfloat16)  # on the CPU, where it takes no memory
    a, b = product.operands(empty)
    return choose(problem_of(a, b, invariant=invariant, on_copies=True))


def _seconds(product: Product, invariant: bool) -> list[float]:
    """Seconds per launch of torch.mm, or torch.bmm, and of gemm."""
    a, b = product.operands(normal)
    expected = (a @ b).float()
    outs = [torch.full_like(expected, torch.nan, dtype=a.dtype) for _ in range(2)]
    launches: list[Launch] = [
        partial(torch.mm if product.batch == 1 else torch.bmm, a, b, out=outs[0]),
        partial(gemm, a, b, out=outs[1], invariant=invariant),
    ]
    for launch in launches:
        launch()  # loads the kernel
    # Of the faster one: the start of a graph takes 2 to 4 µs, which its launches share.
    count = launches_of_a_graph(min(timed(launch, 3) for launch in launches))
    seconds = race(launches, rounds=ROUNDS, count=count)
    for name, out in zip((CUBLAS, OURS), outs, strict=True):
        check(name, product.mnk, out, expected)
    return seconds


def percentile(values: Sequence[float], share: float) -> float:
    """The value that a share of all values do not exceed (nearest rank).

    >>> percentile([4, 1, 3, 2], 0.5), percentile([4, 1, 3, 2], 0)
    (2, 1)
    """
    rank = math.ceil(share * len(values) - 1e-9)  # 0.07 * 100 is more than 7
    return sorted(values)[max(0, rank - 1)]


def summary(samples: Sequence[Sample], classes: Classes, title: str) -> Table:
    """A row for each class that has samples: the distribution of speed over torch.mm's."""
    shown = Table(title=title)
    shown.add_column("shapes")
    heads = "count", "geometric mean", "lowest", "5 %", "25 %", "50 %", "75 %", "95 %"
    for head in (*heads, f"below {SLOW}"):
        shown.add_column(head, justify="right")
    for name, belongs in classes.items():
        ratios = [each.ratio for each in samples if belongs(each.product)]
        if ratios:
            figures = (
                statistics.geometric_mean(ratios),
                *(percentile(ratios, share) for share in (0, 0.05, 0.25, 0.5, 0.75, 0.95)),
            )
            slow = sum(ratio < SLOW for ratio in ratios)
            shown.add_row(name, str(len(ratios)), *(f"{x:.3f}" for x in figures), str(slow))
    return shown


def listed(samples: Sequence[Sample], title: str) -> Table:
    """A row for each sample. torch's function is torch.mm, or torch.bmm of batches."""
    shown = Table(title=title)
    for head in ("L", "M", "N", "K", "B", "torch, µs", "gemm, µs", "ratio", "plan"):
        shown.add_column(head, justify="left" if head == "plan" else "right")
    for each in samples:
        mnk, b_major, batch = each.product
        times = (f"{1e6 * seconds:.1f}" for seconds in (each.cublas, each.ours))
        extents = map(str, (batch, *mnk))
        shown.add_row(*extents, f"{b_major}-major", *times, f"{each.ratio:.3f}", each.plan)
    return shown


def worst(samples: Sequence[Sample]) -> Table:
    """The samples of the lowest ratios, lowest first."""
    lowest = sorted(samples, key=lambda each: each.ratio)[:WORST]
    return listed(lowest, f"the {len(lowest)} lowest ratios")


def write(samples: Sequence[Sample], file: Path) -> None:
    """The samples as CSV: L, M, N, K, B's major, microseconds of both providers, gemm's plan."""
    rows = []
    for each in samples:
        mnk, b_major, batch = each.product
        times = (f"{1e6 * seconds:.2f}" for seconds in (each.cublas, each.ours))
        rows.append((batch, *mnk, f"{b_major}-major", *times, each.plan))
    write_csv(file, ("L", "M", "N", "K", "B", "torch, µs", f"{OURS}, µs", "plan"), rows)


def plot(samples: Sequence[Sample], colours: Classes, title: str, file: Path) -> None:
    """The ratio over the flops, coloured by class; hollow where tiles are few.

    The suffix of `file` is the format: .svg, .png, .pdf. ImportError without matplotlib.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 5), layout="constrained")
    axes = figure.subplots()
    for number, (name, belongs) in enumerate(colours.items()):
        for hollow in (False, True):
            drawn = [
                each
                for each in samples
                if belongs(each.product) and few_tiles(each.product) == hollow
            ]
            colour = f"C{number}"
            style: dict[str, Any] = {
                "edgecolors": colour,
                "facecolors": "none" if hollow else colour,
                "label": name + (", few tiles" if hollow else ""),
            }
            flops = [each.product.flops for each in drawn]
            axes.scatter(flops, [each.ratio for each in drawn], s=16, **style)
    axes.axhline(1, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.set_xlabel("2·L·M·N·K, flops")
    axes.set_ylabel(f"speed of {OURS} / speed of torch")
    axes.set_title(title, fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    figure.savefig(file)


def main(
    population: Population,
    count: int | None = None,
    seed: int | None = None,
    invariant: bool = False,
    file: Path | None = None,
    drawing: Path | None = None,
) -> None:
    """Print the named shapes, the distribution and the worst of the others; write and plot all."""
    count, seed = count or population.count, population.seed if seed is None else seed
    named = population.named
    samples = list(measure([*named, *population.draw(count, seed)], invariant))
    drawn = samples[len(named) :]
    console = Console(width=160)
    ours = f"{OURS}(…, invariant=True)" if invariant else OURS
    title = f"{machine()}: speed of {ours} / torch, {count} {population.name} of seed {seed}"
    if named:
        console.print(listed(samples[: len(named)], "named shapes"))
    console.print(summary(drawn, population.classes, title), worst(drawn))
    if file is not None:
        write(samples, file)
    if drawing is not None:
        colours = {name: population.classes[name] for name in population.colours}
        plot(samples, colours, title, drawing)
