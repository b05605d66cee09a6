"""Where the time of a new layout goes: ways to make a frozen value, and ways to check its parts.

    python bench/construction.py [--repeats 300]

The first rows make a value of a shape and a stride; all but `Layout` look at neither.  The last
rows look at them and make no value.  All figures include 100 to 250 ns for the tuples.  pycute is
CUTLASS's (the package nvidia-cutlass ships it), or torch's fork of it.  What follows from the
figures is in docs/performance/notebook.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from marshal import dumps
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

from algebra import FrozenPair, N, Pair, best, new, peers
from rich.console import Console
from rich.table import Table

from layouts import Layout
from layouts.values.layout import _fit
from layouts.values.tuples import DEEPEST
from layouts.values.value import Value

# ------------------------------------------------------------------------- ways to make a value


class Unfrozen:
    """Two slots."""

    __slots__ = ("shape", "stride")

    def __init__(self, shape: Any, stride: Any) -> None:
        self.shape, self.stride = shape, stride


class ByDescriptors(Value):
    """Frozen; the constructor calls the setters of the two slots."""

    __slots__ = ("shape", "stride")

    def __init__(self, shape: Any, stride: Any) -> None:
        _set_shape(self, shape)
        _set_stride(self, stride)


_set_shape = ByDescriptors.__dict__["shape"].__set__
_set_stride = ByDescriptors.__dict__["stride"].__set__


class BySetattr(Value):
    """Frozen; the constructor calls `object.__setattr__`, as that of a frozen dataclass does."""

    __slots__ = ("shape", "stride")

    def __init__(self, shape: Any, stride: Any) -> None:
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "stride", stride)


class Making(type):
    """A metaclass whose instances are called without `type.__call__`."""

    def __call__(cls, shape: Any, stride: Any) -> Any:
        made: Any = Pair()
        made.shape, made.stride = shape, stride
        made.__class__ = cls
        return made


class ByMetaclass(Pair, Value, metaclass=Making):
    """Frozen, made as `Layout` is, but by a metaclass."""

    __slots__ = ()


class Private:
    """Private slots, which can be set, behind properties, which cannot.

    The constructor stores as fast as that of `Unfrozen`; reading `shape` takes 40 ns longer.
    """

    __slots__ = ("_shape", "_stride")
    shape = property(attrgetter("_shape"))
    stride = property(attrgetter("_stride"))

    def __init__(self, shape: Any, stride: Any) -> None:
        self._shape, self._stride = shape, stride


WAYS = {
    "two slots, not frozen": Unfrozen,
    "private slots behind properties": Private,
    "frozen: a metaclass": ByMetaclass,
    "frozen: the class changes, as Layout's": FrozenPair,
    "frozen: the setters of the slots": ByDescriptors,
    "frozen: object.__setattr__": BySetattr,
    "Layout, with its checks": Layout,
}

# ------------------------------------------------------------------------ ways to check the parts

_known: dict[Any, Any] = {}


def in_c(shape: Any, stride: Any) -> bool:
    """Of flat tuples alone: types by a set, ranges by `min`."""
    types = {*map(type, shape), *map(type, stride)}
    return len(shape) == len(stride) and types == {int} and min(shape) > 0 <= min(stride)


def zipped(shape: Any, stride: Any, deepest: int = DEEPEST) -> bool:
    """`_fit` with `zip` in place of an index."""
    if type(shape) is not tuple or type(stride) is not tuple:
        return type(shape) is int and type(stride) is int and shape > 0 <= stride
    if len(shape) != len(stride) or not deepest:
        return False
    for s, d in zip(shape, stride, strict=True):
        if type(s) is int and type(d) is int:
            if s < 1 or d < 0:
                return False
        elif not zipped(s, d, deepest - 1):
            return False
    return True


CHECKS: dict[str, Callable[[Any, Any], Any]] = {
    "no check: a call": lambda shape, stride: True,
    "the check of Layout, `_fit`": lambda shape, stride: _fit(shape, stride, DEEPEST),
    "`_fit` with zip": zipped,
    "types by a set, ranges by min (flat alone)": in_c,
    "whether the pair is in a dictionary": lambda shape, stride: (shape, stride) in _known,
    "marshal.dumps, whose bytes tell the types": lambda shape, stride: dumps((shape, stride), 2),
}

# ------------------------------------------------------------------------------------ the report

PARTS = {
    "(n,64)": ((N, 64), (64, 1)),
    "(n,2,3,4,5)": ((N, 2, 3, 4, 5), (1, 1, 1, 1, 1)),
    "((n,8),(2,2))": (((N, 8), (2, 2)), ((32, 1), (16, 8))),
    "(((n,3),4),(5,(6,7)))": ((((N, 3), 4), (5, (6, 7))), (((1, 1), 1), (1, (1, 1)))),
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Where the time of a new layout goes.")
    parser.add_argument("--repeats", type=int, default=300, help="turns, of which the best counts")
    repeats = parser.parse_args().repeats
    peer = peers()[0]
    functions = {f"{peer.name}'s Layout": peer.Layout, **WAYS, **CHECKS}
    table = Table("nanoseconds, and as a multiple of the first row", title_justify="left")
    columns = []
    for shape, (extents, strides) in PARTS.items():
        table.add_column(shape, justify="right")
        make = new(extents, strides)
        calls = [make(SimpleNamespace(Layout=function)) for function in functions.values()]
        columns.append(best(calls, repeats))
    for name, *times in zip(functions, *columns, strict=True):
        firsts = [column[0] for column in columns]
        cells = [f"{t * 1000:.0f} {t / first:.2f}x" for t, first in zip(times, firsts, strict=True)]
        table.add_row(name, *cells, end_section=name.startswith("Layout"))
    Console(width=128).print(table)


if __name__ == "__main__":
    main()
