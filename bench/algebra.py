"""What the algebra costs: the table of the study, as ratios to pycute.

    make bench-algebra          or          python bench/algebra.py [--repeats 5]

The first column is this package, now, on this machine; the second is pycute's as published in the
study (CUTLASS 4.7's python/pycute, Python 3.11, two cores of an EPYC, best of 5), and the ratio to
it says something only on a machine of that speed.  Peers that can be imported here are measured in
the same run, turn about with this package, and the ratio to them holds anywhere:

    torch   torch.distributed._pycute, PyTorch's fork of pycute.  It is row-major: an index has its
            rightmost digit fastest.  So every operand is given to it with its modes reversed, all
            the way down, which asks it the same question.
    tl      tensor-layouts, if it is installed

A peer that has no such operation, or gives another answer, has no figure.
"""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
from collections.abc import Callable
from timeit import Timer
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

import layouts as own
from layouts import ComposedLayout, Layout, Swizzle

#: (4,8,..) threads and values of the accumulator of SM80's 16x8x16 MMA.
SM80_C = (((4, 8), (2, 2)), ((32, 1), (16, 8)))


class Case(NamedTuple):
    """One line of the table: a call, the time published for pycute in microseconds, and what is
    asked: `make` takes a `Library` and gives the call and, so that answers can be compared, what
    to do with its result."""

    name: str
    published: float
    make: Callable[[Any], Callable[[], Any]]


class Ours:
    """This package under the names that the cases use."""

    name = "layouts"

    def __getattr__(self, operation: str) -> Any:
        return getattr(own, operation)

    def layout(self, shape: Any, stride: Any) -> Any:
        return Layout(shape, stride)

    def tiler(self, *tilers: Any) -> Any:
        return tilers

    def coordinate(self, coord: Any) -> Any:
        return coord

    def maker(self, shape: Any, stride: Any) -> Callable[[], Any]:
        return lambda: Layout(shape, stride)


def reversed_all(t: Any) -> Any:
    """`t` from right to left, all the way down."""
    return tuple(reversed_all(x) for x in reversed(t)) if isinstance(t, tuple) else t


class Torch:
    """torch.distributed._pycute, its operands reversed."""

    name = "torch"

    def __init__(self) -> None:
        self.module = importlib.import_module("torch.distributed._pycute")

    def __getattr__(self, operation: str) -> Any:
        return getattr(self.module, operation)

    def layout(self, shape: Any, stride: Any) -> Any:
        return self.module.Layout(reversed_all(shape), reversed_all(stride))

    def tiler(self, *tilers: Any) -> Any:
        return tilers[::-1]

    def coordinate(self, coord: Any) -> Any:
        return reversed_all(coord)

    def maker(self, shape: Any, stride: Any) -> Callable[[], Any]:
        shape, stride, make = reversed_all(shape), reversed_all(stride), self.module.Layout
        return lambda: make(shape, stride)


class TensorLayouts:
    """tensor-layouts, as it is."""

    name = "tl"

    def __init__(self) -> None:
        self.module = importlib.import_module("tensor_layouts")
        self.composition = self.module.compose

    def __getattr__(self, operation: str) -> Any:
        return getattr(self.module, operation)

    def layout(self, shape: Any, stride: Any) -> Any:
        return self.module.Layout(shape, stride)

    def tiler(self, *tilers: Any) -> Any:
        return tilers

    def coordinate(self, coord: Any) -> Any:
        return coord

    def maker(self, shape: Any, stride: Any) -> Callable[[], Any]:
        return lambda: self.module.Layout(shape, stride)


def called(layout: tuple[Any, Any], coord: Any) -> Callable[[Any], Callable[[], Any]]:
    """The offset of a coordinate."""

    def make(library: Any) -> Callable[[], Any]:
        value, at = library.layout(*layout), library.coordinate(coord)
        if isinstance(at, tuple) and library.name != "torch":
            return lambda: value(*at)
        return lambda: value(at)

    return make


def applied(operation: str, *layouts: Any) -> Callable[[Any], Callable[[], Any]]:
    """`operation` on layouts given as (shape, stride), integers, and lists of these as tilers."""

    def make(library: Any) -> Callable[[], Any]:
        def built(operand: Any) -> Any:
            if isinstance(operand, list):
                return library.tiler(*map(built, operand))
            return library.layout(*operand) if isinstance(operand, tuple) else operand

        function, operands = getattr(library, operation), [built(each) for each in layouts]
        return lambda: function(*operands)

    return make


def swizzled(library: Any) -> Callable[[], Any]:
    """One offset through Swizzle<3,3,3>."""
    swizzle = library.Swizzle(3, 3, 3)
    return lambda: swizzle(1234)


ROWS = ((128, 64), (64, 1))

CASES = [
    Case("construct Layout((128,64),(64,1))", 0.11, lambda lib: lib.maker(*ROWS)),
    Case("construct hierarchical", 0.09, lambda lib: lib.maker(*SM80_C)),
    Case("L(i) row-major (128,64)", 0.97, called(ROWS, 1234)),
    Case("L((i,j))", 1.24, called(ROWS, (17, 42))),
    Case("L(i) SM80 C TV", 2.58, called(SM80_C, 77)),
    Case("coalesce (2,(1,6)):(1,(6,2))", 2.24, applied("coalesce", ((2, (1, 6)), (1, (6, 2))))),
    Case(
        "composition (6,2):(8,2) o (4,3):(3,1)",
        9.73,
        applied("composition", ((6, 2), (8, 2)), ((4, 3), (3, 1))),
    ),
    Case(
        "composition (128,64) o (16,8,64)",
        13.59,
        applied("composition", ROWS, ((16, 8, 64), (8, 1, 128))),
    ),
    Case("complement ((2,2):(1,6),24)", 3.73, applied("complement", ((2, 2), (1, 6)), 24)),
    Case(
        "logical_divide (4,2,3)/4:2",
        21.42,
        applied("logical_divide", ((4, 2, 3), (2, 1, 8)), (4, 2)),
    ),
    Case(
        "logical_divide (128,64)/<32,16>",
        19.16,
        applied("logical_divide", ROWS, [(32, 1), (16, 1)]),
    ),
    Case("right_inverse SM80 C TV", 6.39, applied("right_inverse", SM80_C)),
    Case("left_inverse (4,8):(1,5)", 9.10, applied("left_inverse", ((4, 8), (1, 5)))),
    Case("Swizzle<3,3,3>(i)", 0.11, swizzled),
]


# -------------------------------------------------------------------------------- measuring


def best(calls: list[Callable[[], Any]], repeats: int, least: float = 0.02) -> list[float]:
    """The best time of each call in microseconds, of `repeats` rounds in which all take turns."""
    timers = [Timer(call) for call in calls]
    loops = []
    for timer in timers:
        once = max(timer.timeit(20) / 20, 1e-9)
        loops.append(max(20, int(least / once)))
    times = [float("inf")] * len(calls)
    for _ in range(repeats):
        for k, (timer, count) in enumerate(zip(timers, loops, strict=True)):
            times[k] = min(times[k], timer.timeit(count) / count * 1e6)
    return times


def peers() -> list[Any]:
    """The libraries that can be imported here."""
    found: list[Any] = []
    for library in (Torch, TensorLayouts):
        try:
            found.append(library())
        except (ImportError, AttributeError):
            continue
    return found


def answers(library: Any, value: Any) -> Any:
    """The offsets of a result in rising order, to compare it by; or a number.

    In order, since torch leaves the modes (tile, rest) of a divide as they are, while its indices
    go through them the other way round.
    """
    if not hasattr(value, "shape"):
        return value
    count = own.size(value.shape)
    if library.name == "torch":  # its last mode is fastest, as our first
        value = own.Layout(reversed_all(value.shape), reversed_all(value.stride))
    return sorted(value(index) for index in range(count))


def measured(case: Case, libraries: list[Any], repeats: int) -> dict[str, float]:
    """The best times of `case` by library, of those that answer as this package does."""
    calls: dict[str, Callable[[], Any]] = {}
    expected = None
    for library in libraries:
        try:
            call = case.make(library)
            answer = answers(library, call())
        except Exception:  # whatever a peer raises where it has no answer
            if library.name == "layouts":
                raise
            continue
        expected = answer if library.name == "layouts" else expected
        if answer == expected:
            calls[library.name] = call
    return dict(zip(calls, best(list(calls.values()), repeats), strict=True))


# ------------------------------------------------------------------------------- the report


def scalars(repeats: int, libraries: list[Any]) -> Table:
    """The table of scalar operations."""
    table = Table(title="microseconds a call, best of turns", title_justify="left")
    table.add_column("operation")
    for name in ("layouts", "pycute*", "ratio*"):
        table.add_column(name, justify="right")
    for library in libraries[1:]:
        table.add_column(library.name, justify="right")
        table.add_column("ratio", justify="right")
    for case in CASES:
        times = measured(case, libraries, repeats)
        ours = times["layouts"]
        cells = [case.name, f"{ours:.2f}", f"{case.published:.2f}", ratio(ours / case.published)]
        for library in libraries[1:]:
            peer = times.get(library.name)
            cells += ["–", ""] if peer is None else [f"{peer:.2f}", ratio(ours / peer)]
        table.add_row(*cells)
    return table


def ratio(value: float) -> str:
    """Green where this package takes no longer."""
    colour = "green" if value <= 1.05 else "red"
    return f"[{colour}]{value:.2f}x[/{colour}]"


def tables(repeats: int, libraries: list[Any]) -> Table:
    """Whole tables: with numpy, one call maps all; without it, a call an offset."""
    import numpy as np

    tile = ComposedLayout(Swizzle(3, 3, 3), 0, Layout(*ROWS), unit=16)
    rows, columns = np.arange(128)[:, None], np.arange(64)[None, :]
    picture = own.table(ComposedLayout(Swizzle(3, 3, 3), 0, Layout((64, 64), (64, 1)), unit=16))
    lines: list[tuple[str, Callable[[], Any], str]] = [
        ("Sw<3,3,3> o (128,64), numpy, tile(i, j)", lambda: tile(rows, columns), "0.05 to reach"),
        ("the same, tile(index)", lambda: tile(np.arange(128 * 64)), ""),
        ("the same, a call an offset", lambda: [tile(i) for i in range(128 * 64)], "pycute* 12.31"),
        ("picture (64,64): the cells", lambda: own.table(tile, limit=64), ""),
        ("picture (64,64): text", lambda: picture.text(colour=True), ""),
        ("picture (64,64): HTML", picture.html, "study's prototype 5.2"),
        ("picture (64,64): SVG", picture.svg, "study's prototype 6.5"),
        ("picture (64,64): LaTeX", picture.latex, ""),
    ]
    table = Table(title="milliseconds a table, best of turns", title_justify="left")
    table.add_column("table")
    table.add_column("layouts", justify="right")
    table.add_column("to compare with")
    for name, call, other in lines:
        (time,) = best([call], repeats, least=0.005)
        table.add_row(name, f"{time / 1000:.3f}", other)
    return table


def import_time(repeats: int) -> float:
    """Milliseconds that ``import layouts`` takes in a fresh interpreter, the best."""
    script = "import time; t = time.perf_counter(); import layouts; print(time.perf_counter() - t)"
    runs = [
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        for _ in range(max(repeats, 5))
    ]
    return min(float(run.stdout) for run in runs) * 1000


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What the algebra costs.")
    parser.add_argument("--repeats", type=int, default=5, help="rounds, of which the best counts")
    repeats = parser.parse_args().repeats
    console = Console(width=None if sys.stdout.isatty() else 110)
    libraries = [Ours(), *peers()]
    console.print(scalars(repeats, libraries))
    console.print("* published: CUTLASS's python/pycute, Python 3.11, on the study's machine\n")
    console.print(tables(repeats, libraries))
    console.print(f"\nimport layouts: {import_time(repeats):.1f} ms, of 20 allowed")


if __name__ == "__main__":
    main()
