"""Values, sizes and coordinates; parsing what is printed."""

from __future__ import annotations

from collections import Counter
from math import prod
from random import Random
from typing import Any

import layouts as L
from layouts import ComposedLayout, Layout

from .. import generate as g
from .. import model as m
from .check import at, law, must, one, same


def _with_index(rng: Random) -> tuple[Any, ...]:
    f = g.any_layout(rng)
    return f, g.index(rng, f)


def _with_coordinate(rng: Random) -> tuple[Any, ...]:
    f = g.any_layout(rng)
    return f, g.coordinate(rng, f.shape)


@law(lambda f, i: f(i), _with_index, "L(i)")
def _(r: Any, f: Any, i: int) -> None:
    """The sum of digit times stride, the last digit unbounded; of a composition, one after one."""
    same(m.as_value(r), m.value(f, i), f"value at {i}")


@law(lambda f, c: f(c), _with_coordinate, "L(c)")
def _(r: Any, f: Any, c: Any) -> None:
    """The sum over the entries; an entry that faces a tuple is an index into it."""
    same(m.as_value(r), at(f, c), f"value at {c}")


@law(
    L.crd2idx,
    lambda rng: (lambda f: (g.coordinate(rng, f.shape), f.shape, f.stride))(g.a_layout(rng)),
)
def _(r: Any, c: Any, shape: Any, stride: Any) -> None:
    """As the layout of the shape and the stride."""
    got = Counter(dict(r.terms)) if isinstance(r, L.ArithTuple) else m.plain(r)
    same(got, at(Layout(shape, stride), c), "offset")


@law(L.size, one())
def _(r: Any, f: Any) -> None:
    """The product of the extents."""
    same(r, m.size(f), "size")


@law(L.cosize, one())
def _(r: Any, f: Any) -> None:
    """One more than the largest value, by entry of a coordinate; of a composition, a bound."""
    values = m.values(f)
    if m.is_coordinates(f):
        ends = m.as_value(r) if isinstance(r, tuple) else Counter({(): r})
        for path in {path for v in values if isinstance(v, Counter) for path in v}:
            same(ends[path], max(v[path] for v in values) + 1, f"cosize at {path}")
    elif isinstance(f, ComposedLayout):
        must(r > max(values), f"a bound of {max(values)}")
    else:
        same(r, max(values) + 1, "cosize")


@law(L.depth, one())
def _(r: Any, f: Any) -> None:
    """How deep the tuples of the shape are nested."""

    def depth(t: Any) -> int:
        return 1 + max(map(depth, t), default=0) if isinstance(t, tuple) else 0

    same(r, depth(f.shape), "depth")


@law(L.flatten, one())
def _(r: Any, f: Any) -> None:
    """The same function."""
    same(m.values(r), m.values(f), "values")


@law(L.make_layout, lambda rng: (g.a_layout(rng, 24), g.a_layout(rng, 24)))
def _(r: Any, a: Any, b: Any) -> None:
    """``R(x, y) == A(x) + B(y)``."""
    sums = [
        m.plus(m.total(a, i), m.total(b, j)) for j in range(m.size(b)) for i in range(m.size(a))
    ]
    same(m.values(r), list(map(m.plain, sums)), "A(x) + B(y)")


@law(L.make_layout_like, one())
def _(r: Any, f: Any) -> None:
    """Compact over the modes that move, with the shape of L."""
    same(r.shape, f.shape, "shape")
    moving = prod(s for s, d in m.modes(f) if s != 1 and m.moves(d))
    same(sorted(set(m.values(r))), list(range(moving)), "compact")


def _with_order(rng: Random) -> tuple[Any, ...]:
    shape = g.profile(rng, g.some_extents(rng, g.EXTENTS))
    return shape, g.order_for(rng, shape) or 0


@law(L.make_ordered_layout, _with_order)
def _(r: Any, shape: Any, order: Any) -> None:
    """Compact, its strides in the given order."""
    same(sorted(m.values(r)), list(range(m.size(shape))), "compact")
    if isinstance(order, tuple):
        first = {k: [d for s, d in m.modes(m.part(r, k)) if s != 1] for k in order}
        ranked = [first[k][0] for k in sorted(first, key=lambda k: order[k]) if first[k]]
        same(ranked, sorted(ranked), "order")


@law(L.parse, lambda rng: (str(g.any_layout(rng)),))
def _(r: Any, text: str) -> None:
    """What it reads prints as what it read."""
    same(str(r), text, "text")


# ------------------------------------------------------------------------------- coordinates


def _shape(rng: Random) -> Any:
    return g.profile(rng, g.some_extents(rng, g.EXTENTS))


def _index(c: Any, shape: Any) -> int:
    """The index of a coordinate into a shape."""
    place, total = 1, 0
    for x, s in zip(m.leaves(c), m.leaves(shape), strict=True):
        total += x * place
        place *= s
    return total


@law(L.idx2crd, lambda rng: (rng.randrange(500), _shape(rng)))
def _(r: Any, i: int, shape: Any) -> None:
    """The digits of the index, the last unbounded."""
    inside = zip(m.leaves(r)[:-1], m.leaves(shape), strict=False)
    must(all(0 <= x < s for x, s in inside), "within the extents")
    if shape:
        same(_index(r, shape), i, "index")


def _two_shapes(rng: Random) -> tuple[Any, ...]:
    source = _shape(rng)
    return g.coordinate(rng, source, beyond=0), source, _shape(rng)


@law(L.crd2crd, _two_shapes)
def _(r: Any, c: Any, source: Any, target: Any) -> None:
    """The coordinate with the same index."""
    if target:
        same(_index(r, target), m.index_of(c, source), "index")
