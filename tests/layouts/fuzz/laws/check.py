"""What the post-conditions are written with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import wraps
from math import prod
from random import Random
from typing import Any

from layouts import ComposedLayout, Layout

from .. import generate as g
from .. import model as m
from ..call import Law, Wrong

LAWS: list[Law] = []

Arguments = Callable[[Random], tuple[Any, ...]]


def law(
    call: Callable[..., Any], arguments: Arguments, name: str = "", **more: Any
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Enter a post-condition into `LAWS`; `more` are the other fields of `Law`."""

    def enter(holds: Callable[..., None]) -> Callable[..., None]:
        LAWS.append(Law(name or call.__name__, call, arguments, holds, **more))
        return holds

    return enter


def beside(operation: Callable[..., Any], other: Callable[..., Any]) -> Callable[..., Any]:
    """The results of an operation of two or more arguments, and of another of the first two, in
    whose terms its law is stated.  With symbols, that may differ from the other's result for their
    values."""

    @wraps(operation)
    def both(*arguments: Any) -> tuple[Any, Any]:
        return operation(*arguments), other(*arguments[:2])

    return both


def must(condition: bool, what: str) -> None:
    """Raise unless the condition holds."""
    if not condition:
        raise Wrong(what)


def same(got: Any, want: Any, what: str) -> None:
    """Raise unless two values, or two lists of values, are equal."""
    got, want = _plain(got), _plain(want)
    if got == want:
        return
    if isinstance(got, list) and isinstance(want, list):
        if len(got) != len(want):
            raise Wrong(f"{what}: {len(got)} values, not {len(want)}")
        k = next(k for k in range(len(got)) if got[k] != want[k])
        raise Wrong(f"{what}: {got[k]} at {k}, not {want[k]}")
    raise Wrong(f"{what}: {got}, not {want}")


def _plain(x: Any) -> Any:
    """A coordinate that is 0 everywhere as 0: it has no rank of its own."""
    if isinstance(x, list):
        return list(map(_plain, x))
    return 0 if isinstance(x, Counter) and not x else x


def distinct(values: list[Any]) -> bool:
    """Whether no value occurs twice; coordinates may be among them."""
    keys = [frozenset(v.items()) if isinstance(v, Counter) else v for v in values]
    return len(set(keys)) == len(keys)


def refines(shape: Any, finer: Any) -> bool:
    """Whether every coordinate of `shape` is one of `finer`, at the same index."""
    if not isinstance(shape, tuple):
        return m.size(finer) == shape
    return isinstance(finer, tuple) and len(shape) == len(finer) and all(map(refines, shape, finer))


def as_layout(tiler: Any) -> Any:
    """A tiler that is an integer as its layout."""
    return Layout(tiler) if type(tiler) is int else tiler


def moving_size(layout: Any) -> int:
    """The number of indices that differ in a mode whose stride is not 0."""
    return prod(s for s, d in m.modes(outer(layout)) if m.moves(d))


def outer(layout: Any) -> Layout:
    """What an operation on the coordinates changes of a composed layout."""
    return layout.outer if isinstance(layout, ComposedLayout) else layout


def steps(c: Any, path: tuple[int, ...] = ()) -> Counter[tuple[int, ...]]:
    """The entry of a coordinate at each path."""
    if isinstance(c, tuple):
        return Counter({p: i for k, x in enumerate(c) for p, i in steps(x, (*path, k)).items()})
    return Counter({path: c})


def at(f: Any, c: Any) -> Any:
    """A layout at a coordinate; each entry may be beyond its mode."""
    return m.at_steps(f, steps(c))


# ------------------------------------------------------------------------------- arguments


def one(generator: Callable[..., Any] = g.any_layout, *options: Any) -> Arguments:
    """One layout."""
    return lambda rng: (generator(rng, *options),)


def two(most: int = g.MOST, other: int = g.MOST) -> Arguments:
    """Two layouts of any kinds, of at most so many elements."""
    return lambda rng: (g.any_layout(rng, most), g.any_layout(rng, other))


def alike(rng: Random) -> tuple[Any, ...]:
    """Two layouts, mostly of one shape; the second may be swizzled."""
    a = g.any_layout(rng)
    if rng.random() < 0.3:
        return a, g.any_layout(rng)
    b = g.of_shape(rng, a.shape)
    return a, ComposedLayout(g.swizzle(rng), g.offset(rng), b) if rng.random() < 0.3 else b


def with_tiler(rng: Random) -> tuple[Any, ...]:
    """A layout and a tiler."""
    layout = g.any_layout(rng)
    return layout, g.tiler(rng, layout)


def with_copies(rng: Random) -> tuple[Any, ...]:
    """A block and the layout of its copies, or a tuple of these."""
    block = g.any_layout(rng, rng.choice((8, 24, 60)))
    return block, g.tiler(rng, block) if rng.random() < 0.3 else g.small(rng, 16)
