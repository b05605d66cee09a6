"""coalesce, filter and composition."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random
from typing import Any

import layouts as L
from layouts import ComposedLayout, Layout, Swizzle

from .. import generate as g
from .. import model as m
from .check import as_layout, law, must, one, refines, same


def _fewest(r: Any, f: Any) -> None:
    """No mode of extent 1, and no two neighbours that are one mode."""
    pairs = m.modes(r) if isinstance(r, Layout) else []
    must(len(pairs) < 2 or all(s != 1 for s, _ in pairs), "no mode of extent 1")
    for (s, d), (_, e) in pairwise(pairs):
        must(m.times(s, d) != m.times(1, e), f"{s}:{d} and the next mode are one")


@law(L.coalesce, one(), exactly=_fewest)
def _(r: Any, f: Any) -> None:
    """The same function of the index."""
    same(m.values(r), m.values(f), "values")


def _with_profile(rng: Random) -> tuple[Any, ...]:
    f = g.any_layout(rng)
    return f, tuple(rng.choice((1, None, (1, 1))) for _ in range(rng.randint(0, m.rank(f))))


@law(L.coalesce, _with_profile, "coalesce by mode")
def _(r: Any, f: Any, profile: Any) -> None:
    """The same function, and each mode is the same function."""
    same(m.values(r), m.values(f), "values")
    same(m.rank(r), m.rank(f), "rank")
    for k in range(m.rank(f)):
        same(m.values(m.part(r, k)), m.values(m.part(f, k)), f"mode {k}")


@law(L.filter, one())
def _(r: Any, f: Any) -> None:
    """The function of the modes that move; of a composed layout, those of its outer layout."""
    outer = f.outer if isinstance(f, ComposedLayout) else f
    kept = [mode for mode in m.modes(outer) if mode[0] != 1 and m.moves(mode[1])]
    moving: Any = Layout(tuple(s for s, _ in kept), tuple(d for _, d in kept))
    moving = f.over(moving) if isinstance(f, ComposedLayout) else moving
    same(m.values(r), m.values(moving), "values")


# -------------------------------------------------------------------------------- composition


def check_composition(r: Any, a: Any, b: Any) -> None:
    """``R(c) == A(B(c))`` for each coordinate c of B; of a tuple of tilers, mode by mode."""
    b = as_layout(b)
    if b is None:
        same(m.values(r), m.values(a), "values")
    elif isinstance(b, tuple):
        check_by_mode(r, a, b)
    elif isinstance(b, Swizzle):
        indices = range(m.size(a))
        same(m.values(r, m.size(a)), [m.value(a, m.value(b, i)) for i in indices], "values")
    else:
        same(m.values(r), [after(a, v) for v in m.values(b)], "A(B(c))")
        must(refines(b.shape, r.shape), f"the shape {r.shape} refines {b.shape}")


def after(a: Any, v: Any) -> Any:
    """A at a value of B: an index, or a coordinate."""
    return m.at_steps(a, v) if isinstance(v, Counter) else m.value(a, v)


def check_by_mode(r: Any, a: Any, tilers: tuple[Any, ...]) -> None:
    """Mode k is mode k of A after tiler k, and the modes add up to A."""
    same(m.rank(r), len(tilers), "rank")
    for k, tiler in enumerate(tilers):
        check_composition(m.part(r, k), m.part(a, k), tiler)
    indices = [[Counter()]]
    for k, tiler in enumerate(map(as_layout, tilers)):
        if isinstance(tiler, tuple) or m.is_coordinates(tiler) or m.size(r) > 2000:
            return
        taken = range(m.size(m.part(a, k))) if tiler is None else m.values(tiler)
        indices.append([Counter({**c, (k,): i}) for i in taken for c in indices[-1]])
    same(m.values(r), [m.at_steps(a, c) for c in indices[-1]], "A at the tiles")


def _pair(rng: Random) -> tuple[Any, ...]:
    """What may be composed."""
    if rng.random() < 0.07:
        kind = rng.choice((g.integers, g.xors, g.swizzles, g.composed, g.swizzle))
        return g.swizzle(rng), kind(rng)
    a, pick = g.any_layout(rng), rng.random()
    if pick < 0.6:
        return a, g.any_layout(rng, rng.choice((8, 60, 120)))
    if pick < 0.68:
        return a, g.swizzle(rng)
    return a, g.coordinates(rng, 60) if pick < 0.8 else g.tiler(rng, a)


def layout_exists(a: Any, b: Any) -> bool:
    """Whether A(B(c)) is a layout whose shape refines that of B, all strides being integers."""
    b = as_layout(b)
    if not all(
        isinstance(x, Layout) and not m.is_xor(x) and not m.is_coordinates(x) for x in (a, b)
    ):
        return False
    sequences = [[m.value(a, i * d) for i in range(s)] for s, d in m.modes(b)]
    sums = [0]
    for sequence in sequences:
        sums = [x + y for y in sequence for x in sums]
    return sums == [m.value(a, v) for v in m.values(b)] and all(map(is_mode, sequences))


def is_mode(values: list[int]) -> bool:
    """Whether a sequence is the function of one mode, which may be nested."""
    count = len(values)
    if values[0] != 0 or min(values) < 0:
        return False
    if count == 1 or all(v == i * values[1] for i, v in enumerate(values)):
        return True
    for extent in range(2, count // 2 + 1):
        if count % extent == 0 and all(
            v == i % extent * values[1] + values[i - i % extent] for i, v in enumerate(values)
        ):
            return is_mode(values[::extent])
    return False


@law(L.composition, _pair, weight=4, exists=layout_exists)
def _(r: Any, a: Any, b: Any) -> None:
    """``R(c) == A(B(c))``; and the cosize bounds the values."""
    if isinstance(r, Swizzle):
        same(m.values(r, 1024), [m.value(a, m.value(b, i)) for i in range(1024)], "values")
        return
    if isinstance(b, Swizzle) and isinstance(a, Swizzle):
        same(m.values(r), [m.value(a, m.value(b, i)) for i in range(m.size(r))], "values")
        return
    check_composition(r, a, b)
    if isinstance(r, (Layout, ComposedLayout)) and not m.is_coordinates(r):
        must(L.cosize(r) > max(m.values(r)), "the cosize bounds the values")
