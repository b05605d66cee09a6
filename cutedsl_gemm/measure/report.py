"""What bench measured, as a table, as Markdown, as CSV and as a plot."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from statistics import geometric_mean
from typing import Any, TypeAlias

from rich.table import Table

from cutedsl_gemm.measure.power import Reading
from cutedsl_gemm.measure.providers import CUBLAS

Shape: TypeAlias = tuple[int, int, int]  # (M, N, K)

OURS = "gemm"
GPU = "MHz", "W"  # at the moment of highest power

#: What each file of docs/performance measures.
TITLES = {
    "sweep": "8448×9216×K, K from 64 to 1984, in bursts",
    "sustained": "the same at the power limit",
    "squares": "squares from 512³ to 16384³, in bursts",
    "split": "few tiles and large K, in bursts",
    "weights": "layers of Llama 3, 16 to 8192 rows, at the power limit",
}


@dataclass(frozen=True)
class Point:
    """One shape, and the TFLOP/s that each provider reached there.

    Where `tflops` were measured from CUDA graphs, `calls` has the microseconds of a call from
    Python.
    """

    mnk: Shape
    tflops: dict[str, float]
    calls: dict[str, float] | None = None
    gpu: Reading | None = None

    @property
    def best_peer(self) -> float:
        """TFLOP/s of the fastest provider that is not gemm."""
        return max(tflops for name, tflops in self.tflops.items() if not name.startswith(OURS))


def table(points: Sequence[Point], title: str) -> Table:
    """TFLOP/s and their ratios; calls from Python where a graph was timed; the GPU's state."""
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
    """TFLOP/s and their ratios, a column a shape, as in docs/performance.

    >>> few = [Point((512, 512, k), {"torch.mm": 50.0, "gemm": 60.0}) for k in (64, 128)]
    >>> print(markdown(few))
    | K | 64 | 128 |
    |---|---|---|
    | torch.mm | 50 | 50 |
    | gemm | 60 | 60 |
    | gemm / torch.mm | 1.20 | 1.20 |
    | gemm / best of the others | 1.20 | 1.20 |
    """
    rows = [
        _head(points),
        *((name, *(f"{point.tflops[name]:.0f}" for point in points)) for name in points[0].tflops),
        *(
            (f"{OURS} / {name}", *map("{:.2f}".format, found))
            for name, found in ratios(points).items()
        ),
    ]
    first, *rest = (f"| {' | '.join(cells)} |" for cells in rows)
    return "\n".join((first, "|---" * (len(points) + 1) + "|", *rest))


def summary(folder: Path) -> str:
    """The geometric mean and the lowest of the ratios of every file in a folder, as Markdown."""
    head = "shapes", f"{OURS} / {CUBLAS}", "lowest", f"{OURS} / best of the others", "lowest"
    rows: list[tuple[str, ...]] = [head, ("---",) * len(head)]
    measured = {file.stem: read(file) for file in files(folder)}
    for stem, title in TITLES.items():
        points = measured.pop(stem)
        found = ratios(points).values()
        cells = (f"{geometric_mean(each):.2f} | {min(each):.3f}" for each in found)
        rows.append((f"{title} ({len(points)})", *cells))
    if measured:
        raise KeyError(f"TITLES has no title for {', '.join(measured)}")
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def means(points: Sequence[Point]) -> str:
    """The geometric mean and the lowest of the ratios of one file, as a sentence.

    >>> few = [Point((512, 512, k), {"torch.mm": 40.0, "gemm": k / 2}) for k in (128, 64)]
    >>> means(few[:1])  # doctest: +ELLIPSIS
    'Geometric mean: 1.60 × torch.mm (lowest 1.600, at K = 128), 1.60 × the best of the others ...'
    """
    names, found = _names(points), []
    for (other, each), the in zip(ratios(points).items(), ("", "the "), strict=True):
        at = f"{'K = ' * _over_k(points)}{names[each.index(min(each))]}"
        found.append(f"{geometric_mean(each):.2f} × {the}{other} (lowest {min(each):.3f}, at {at})")
    return f"Geometric mean: {', '.join(found)}."


def ratios(points: Sequence[Point]) -> dict[str, list[float]]:
    """gemm's speed over torch.mm's and over that of the best of the others, at each shape."""
    return {
        CUBLAS: [point.tflops[OURS] / point.tflops[CUBLAS] for point in points],
        "best of the others": [point.tflops[OURS] / point.best_peer for point in points],
    }


def _over_k(points: Sequence[Point]) -> bool:
    return len({point.mnk[:2] for point in points}) == 1


def _head(points: Sequence[Point]) -> tuple[str, ...]:
    """The first row of `markdown`: the names; of shapes that share M, N×K alone, which is short.

    >>> _head([Point((16, n, 64), {}) for n in (8, 24)])
    ('N, K', '8×64', '24×64')
    """
    if _over_k(points):
        return "K", *_names(points)
    if len({point.mnk[0] for point in points}) == 1:
        return "N, K", *("×".join(map(str, point.mnk[1:])) for point in points)
    return "M, N, K", *_names(points)


def _names(points: Sequence[Point]) -> list[str]:
    """K if all points have the same M and N, n³ if all are cubes, else M×N×K."""
    if _over_k(points):
        return [str(point.mnk[2]) for point in points]
    if _cubes(points):
        return [f"{point.mnk[0]}³" for point in points]
    return ["×".join(map(str, point.mnk)) for point in points]


def _cubes(points: Sequence[Point]) -> bool:
    return all(len({*point.mnk}) == 1 for point in points)


def write_csv(file: Path, head: Iterable[object], rows: Iterable[Iterable[object]]) -> None:
    """A table as CSV in UTF-8, whatever the locale."""
    with file.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream, lineterminator="\n").writerows([head, *rows])


def write(points: Sequence[Point], file: Path) -> None:
    """The table as CSV: TFLOP/s, microseconds of a call where a graph was timed, MHz, W."""
    names = [*points[0].tflops]
    head = "M", "N", "K", *names, *(f"{name}, µs a call" for name in names), *GPU
    rows = []
    for point in points:
        calls, gpu = point.calls or {}, point.gpu
        rows.append(
            (
                *point.mnk,
                *(f"{tflops:.1f}" for tflops in point.tflops.values()),
                *(f"{calls[name]:.1f}" if calls else "" for name in names),
                *((gpu.megahertz, gpu.watts) if gpu else ("", "")),
            )
        )
    write_csv(file, head, rows)


def read(file: Path) -> list[Point]:
    """The shapes and TFLOP/s of a file that `write` wrote, without calls and the GPU's state."""
    with file.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    names = list(takewhile(lambda name: "µs" not in name, list(rows[0])[3:]))
    return [
        Point(
            (int(row["M"]), int(row["N"]), int(row["K"])),
            {name: float(row[name]) for name in names},
        )
        for row in rows
    ]


def files(folder: Path) -> list[Path]:
    """The files of a folder that `write` wrote: shapes first, the GPU's state last."""
    heads = ((file, file.read_text().partition("\n")[0]) for file in sorted(folder.glob("*.csv")))
    end = ",".join(GPU)
    return [file for file, head in heads if head.startswith("M,N,K,") and head.endswith(end)]


# The colour of each provider: they are read on light and on dark.
COLOURS = {
    CUBLAS: "#8b949e",
    OURS: "#2f81f7",
    f"{OURS} 128×128": "#a371f7",
    "quack pp 128×192": "#d29922",
    "quack 128×256": "#c2571a",
    "triton": "#2da44e",
}


def plot(points: Sequence[Point], title: str, file: Path) -> None:
    """The figure of `drawn`. The suffix of `file` is the format: .svg, .png, .pdf."""
    figure = drawn(points)
    figure.suptitle(title, fontsize=10)
    figure.savefig(file)


def drawn(points: Sequence[Point]) -> Any:
    """matplotlib's figure of the table, without a title; ImportError without matplotlib.

    TFLOP/s over K or over the size, a line for each provider. Shapes in no order have markers, and
    speeds relative to torch.mm.
    """
    from matplotlib.figure import Figure

    relative = is_relative(points)
    figure = Figure(figsize=(8, 5 if relative else 4.2), layout="constrained")
    axes = figure.subplots()
    for name in points[0].tflops:
        marker = "o" if name.startswith(OURS) else "s"
        style: dict[str, Any] = {"color": COLOURS.get(name), "label": name, "markersize": 4}
        style |= {"linewidth": 2.5, "markersize": 6, "zorder": 3} if name == OURS else {}
        heights = [point.tflops[name] for point in points]
        if not relative:
            over = [point.mnk[2] for point in points] if _over_k(points) else _names(points)
            axes.plot(over, heights, f"{marker}{'-' if marker == 'o' else '--'}", **style)
        elif name == CUBLAS:
            axes.axhline(1, **style)
        else:
            ratios = [tflops / p.tflops[CUBLAS] for tflops, p in zip(heights, points, strict=True)]
            axes.plot(_names(points), ratios, marker, **style)
    m, n, _ = points[0].mnk
    axes.set_xlabel(f"K, at M = {m}, N = {n}" if _over_k(points) else "M, N, K")
    axes.set_ylabel(f"speed relative to {CUBLAS}" if relative else "TFLOP/s")
    axes.set_ylim(0)
    axes.tick_params("x", rotation=90 if relative else 0)
    axes.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return figure


def is_relative(points: Sequence[Point]) -> bool:
    """Whether `drawn` shows speeds relative to torch.mm: if the shapes are in no order."""
    return not (_over_k(points) or _cubes(points))
