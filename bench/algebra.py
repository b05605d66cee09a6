"""What the algebra costs, compared with pycute, torch's fork of it, and tensor-layouts.

    make bench-algebra          or          python bench/algebra.py [--repeats 100]

Peers that can be imported are measured in the same run, in turn with this package:

    pycute  CUTLASS's own, which the package nvidia-cutlass ships
    torch   torch.distributed._pycute, PyTorch's fork of pycute.  It is row-major: an index has its
            rightmost digit fastest.  So every operand is given to it with its modes reversed, all
            the way down, which asks it the same question.
    tl      tensor-layouts, if it is installed

    floor   no peer: a frozen value of a shape and a stride, neither looked at.  No layout of ours
            can be made faster than it.

A peer that has no such operation, or gives another answer, has no figure.  A turn takes about a
millisecond, less than a busy machine gives a process at a time, and the best of many turns counts.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import count, repeat
from timeit import Timer
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

import layouts as own
from layouts import ComposedLayout, Layout, Swizzle
from layouts.values.value import Value

#: (4,8,..) threads and values of the accumulator of SM80's 16x8x16 MMA.
SM80_C = (((4, 8), (2, 2)), ((32, 1), (16, 8)))


class Call(NamedTuple):
    """A function and its arguments.

    Each is timed in code of its own, since CPython adapts a call to what it met there first.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()

    def timer(self) -> Timer:
        names = [f"x{k}" for k in range(len(self.arguments))]
        values = dict(zip(names, self.arguments, strict=True))
        return Timer(f"f({', '.join(names)})", globals={"f": self.function, **values})


class Case(NamedTuple):
    """One line of the table, and what `make` has a library do."""

    name: str
    make: Callable[[Any], Call]


class Library:
    """A library under the names that the cases use; this one, if not said otherwise."""

    name, module = "layouts", "layouts"

    def __init__(self) -> None:
        self.library = importlib.import_module(self.module)

    def __getattr__(self, operation: str) -> Any:
        return getattr(self.library, operation)

    def tiler(self, *tilers: Any) -> Any:
        return tilers

    def tree(self, t: Any) -> Any:
        """A shape, a stride or a coordinate as the library takes it."""
        return t


def reversed_all(t: Any) -> Any:
    """`t` from right to left, all the way down."""
    return tuple(reversed_all(x) for x in reversed(t)) if isinstance(t, tuple) else t


class Pycute(Library):
    """CUTLASS's pycute."""

    name = module = "pycute"


class Torch(Library):
    """torch.distributed._pycute, its operands reversed."""

    name, module = "torch", "torch.distributed._pycute"

    def tiler(self, *tilers: Any) -> Any:
        return tilers[::-1]

    def tree(self, t: Any) -> Any:
        return reversed_all(t)


class TensorLayouts(Library):
    """tensor-layouts, as it is."""

    name, module = "tl", "tensor_layouts"

    def __init__(self) -> None:
        super().__init__()
        self.composition = self.library.compose


class Pair:
    """A shape and a stride, not frozen."""

    __slots__ = ("shape", "stride")


class FrozenPair(Pair, Value):
    """A frozen value of any shape and stride, made as `Layout` is."""

    __slots__ = ()

    def __new__(cls, shape: Any, stride: Any = None) -> Any:
        made: Any = Pair()
        made.shape, made.stride = shape, stride
        made.__class__ = cls
        return made


class Floor(Library):
    """Construction without its checks; it has no other operation."""

    name = "floor"

    def __init__(self) -> None:
        self.library = type(self)

    Layout = FrozenPair


#: In place of an extent of a new layout.
N = "n"


def construct(shape: Any, stride: Any) -> Callable[[Any], Call]:
    """The same layout each time."""
    return lambda library: Call(library.Layout, (library.tree(shape), library.tree(stride)))


def new(shape: Any, stride: Any = None) -> Callable[[Any], Call]:
    """A layout that was not there before: its extents N count up from 1.

    Iterators make the tuples, so that only the constructor runs Python code.
    """

    def make(library: Any) -> Call:
        parts = [shape] if stride is None else [shape, stride]
        return Call(map(library.Layout, *map(counting, parts)).__next__)

    return make


def counting(t: Any) -> Iterator[Any]:
    """`t` again and again, each time in new tuples, with 1, 2, ... in place of N."""
    if isinstance(t, tuple):
        return zip(*map(counting, t), strict=False)
    return count(1) if t == N else repeat(t)


def called(shape: Any, stride: Any, coord: Any) -> Callable[[Any], Call]:
    """The offset of a coordinate."""

    def make(library: Any) -> Call:
        at = library.tree(coord)
        layout = library.Layout(library.tree(shape), library.tree(stride))
        return Call(layout, at if isinstance(at, tuple) and library.name != "torch" else (at,))

    return make


def applied(operation: str, *layouts: Any) -> Callable[[Any], Call]:
    """`operation` on layouts given as (shape, stride), integers, and lists of these as tilers."""

    def make(library: Any) -> Call:
        def built(operand: Any) -> Any:
            if isinstance(operand, list):
                return library.tiler(*map(built, operand))
            if isinstance(operand, tuple):
                return library.Layout(*map(library.tree, operand))
            return operand

        return Call(getattr(library, operation), tuple(map(built, layouts)))

    return make


def swizzled(library: Any) -> Call:
    """One offset through Swizzle<3,3,3>."""
    return Call(library.Swizzle(3, 3, 3), (1234,))


ROWS = ((128, 64), (64, 1))
DEEP = ((((N, 3), 4), (5, (6, 7))), (((1, 1), 1), (1, (1, 1))))

CASES = [
    Case("construct Layout((128,64),(64,1))", construct(*ROWS)),
    Case("construct hierarchical", construct(*SM80_C)),
    Case("new (n,64):(64,1), n = 1, 2, ...", new((N, 64), (64, 1))),
    Case("new (n,2,3,4,5):(1,1,1,1,1)", new((N, 2, 3, 4, 5), (1, 1, 1, 1, 1))),
    Case("new ((n,8),(2,2)):((32,1),(16,8))", new(((N, 8), (2, 2)), SM80_C[1])),
    Case("new (((n,3),4),(5,(6,7))), strides 1", new(*DEEP)),
    Case("new (n,64), no stride", new((N, 64))),
    Case("new ((n,8),(2,2)), no stride", new(((N, 8), (2, 2)))),
    Case("new (((n,3),4),(5,(6,7))), no stride", new(DEEP[0])),
    Case("L(i) row-major (128,64)", called(*ROWS, 1234)),
    Case("L((i,j))", called(*ROWS, (17, 42))),
    Case("L(i) SM80 C TV", called(*SM80_C, 77)),
    Case("coalesce (2,(1,6)):(1,(6,2))", applied("coalesce", ((2, (1, 6)), (1, (6, 2))))),
    Case(
        "composition (6,2):(8,2) o (4,3):(3,1)",
        applied("composition", ((6, 2), (8, 2)), ((4, 3), (3, 1))),
    ),
    Case(
        "composition (128,64) o (16,8,64)",
        applied("composition", ROWS, ((16, 8, 64), (8, 1, 128))),
    ),
    Case("complement ((2,2):(1,6),24)", applied("complement", ((2, 2), (1, 6)), 24)),
    Case(
        "logical_divide (4,2,3)/4:2",
        applied("logical_divide", ((4, 2, 3), (2, 1, 8)), (4, 2)),
    ),
    Case(
        "logical_divide (128,64)/<32,16>",
        applied("logical_divide", ROWS, [(32, 1), (16, 1)]),
    ),
    Case("right_inverse SM80 C TV", applied("right_inverse", SM80_C)),
    Case("left_inverse (4,8):(1,5)", applied("left_inverse", ((4, 8), (1, 5)))),
    Case("Swizzle<3,3,3>(i)", swizzled),
]


def best(calls: list[Call], repeats: int, least: float = 0.001) -> list[float]:
    """The best time of each call in microseconds, of `repeats` turns of `least` seconds."""
    timers = [call.timer() for call in calls]
    once = [max(min(timer.repeat(3, 20)) / 20, 1e-9) for timer in timers]
    loops = [max(1, int(least / seconds)) for seconds in once]
    times = [float("inf")] * len(calls)
    for _ in range(repeats):
        for k, (timer, loop) in enumerate(zip(timers, loops, strict=True)):
            times[k] = min(times[k], timer.timeit(loop) / loop * 1e6)
    return times


def peers() -> list[Any]:
    """The libraries that can be imported here."""
    found: list[Any] = []
    for library in (Pycute, Torch, TensorLayouts):
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
    turn = reversed_all if library.name == "torch" else lambda t: t  # its last mode is fastest
    layout = own.Layout(turn(value.shape), turn(value.stride))
    return sorted(layout(index) for index in range(count))


def measured(case: Case, libraries: list[Any], repeats: int) -> dict[str, float]:
    """The best times of `case` by library, of those that answer as this package does."""
    calls: dict[str, Call] = {}
    expected = None
    for library in libraries:
        try:
            call = case.make(library)
            answer = answers(library, call.function(*call.arguments))
        except Exception:  # whatever a peer raises where it has no answer
            if library.name == "layouts":
                raise
            continue
        expected = answer if library.name == "layouts" else expected
        if answer == expected:
            calls[library.name] = call
    return dict(zip(calls, best(list(calls.values()), repeats), strict=True))


#: What the red figures of construction say.
WHY_SLOWER = """\
With a stride, construction takes longer than pycute's, which stores two attributes and looks at
nothing.  Here every extent and stride is checked, and the layout is frozen.  Freezing alone takes
what `floor` says; the rest is the checks, about 40 ns for an int (CPython 3.11).
The notebook, docs/performance/notebook.md, says what was tried.
"""


def scalars(repeats: int, libraries: list[Any]) -> Table:
    """The table of scalar operations."""
    table = Table(title="microseconds a call, best of turns", title_justify="left")
    table.add_column("operation")
    table.add_column("layouts", justify="right")
    for library in libraries[1:]:
        table.add_column(library.name, justify="right")
        table.add_column("ratio", justify="right")
    for case in CASES:
        times = measured(case, libraries, repeats)
        ours = times["layouts"]
        cells = [case.name, f"{ours:.2f}"]
        for library in libraries[1:]:
            cells += beside(ours, times.get(library.name))
        table.add_row(*cells)
    return table


def beside(ours: float, other: float | None) -> list[str]:
    """Another's time, and ours as a multiple of it, green where this package takes no longer."""
    if other is None:
        return ["–", ""]
    colour = "green" if ours / other <= 1.05 else "red"
    return [f"{other:.2f}", f"[{colour}]{ours / other:.2f}x[/{colour}]"]


def tables(repeats: int, libraries: list[Any]) -> Table:
    """Whole tables: with numpy, one call maps all; without it, a call an offset."""
    import numpy as np

    tile = ComposedLayout(Swizzle(3, 3, 3), 0, Layout(*ROWS), unit=16)
    rows, columns = np.arange(128)[:, None], np.arange(64)[None, :]
    picture = own.table(ComposedLayout(Swizzle(3, 3, 3), 0, Layout((64, 64), (64, 1)), unit=16))
    lines: list[tuple[str, Callable[[], Any]]] = [
        ("Sw<3,3,3> o (128,64), numpy, tile(i, j)", lambda: tile(rows, columns)),
        ("the same, tile(index)", lambda: tile(np.arange(128 * 64))),
        ("the same, a call an offset", lambda: [tile(i) for i in range(128 * 64)]),
        ("picture (64,64): the cells", lambda: own.table(tile, limit=64)),
        ("picture (64,64): text", lambda: picture.text(colour=True)),
        ("picture (64,64): HTML", picture.html),
        ("picture (64,64): SVG", picture.svg),
        ("picture (64,64): LaTeX", picture.latex),
    ]
    table = Table(title="milliseconds a table, best of turns", title_justify="left")
    table.add_column("table")
    table.add_column("layouts", justify="right")
    for name, call in lines:
        (time,) = best([Call(call)], max(repeats // 5, 1))
        table.add_row(name, f"{time / 1000:.3f}")
    return table


def import_time(repeats: int) -> float:
    """Milliseconds of CPU that ``import layouts`` takes in a fresh interpreter, the best.

    The first run compiles; the others find the bytecode, as those of an installed package do.
    """
    script = "import time; t = time.process_time(); import layouts; print(time.process_time() - t)"
    with tempfile.TemporaryDirectory() as compiled:
        env = {**os.environ, "PYTHONPYCACHEPREFIX": compiled, "PYTHONDONTWRITEBYTECODE": ""}
        command = [sys.executable, "-c", script]
        runs = [
            subprocess.run(command, capture_output=True, text=True, check=True, env=env)
            for _ in range(max(repeats // 5, 5))
        ]
    return min(float(run.stdout) for run in runs) * 1000


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What the algebra costs.")
    parser.add_argument("--repeats", type=int, default=100, help="turns, of which the best counts")
    repeats = parser.parse_args().repeats
    console = Console(width=None if sys.stdout.isatty() else 128)
    libraries = [Library(), Floor(), *peers()]
    console.print(scalars(repeats, libraries))
    console.print(WHY_SLOWER)
    console.print(tables(repeats, libraries))
    console.print(f"\nimport layouts: {import_time(repeats):.1f} ms of CPU")


if __name__ == "__main__":
    main()
