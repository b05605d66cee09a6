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


# ----------------------------------------------------------------------------- shapes, bits


def _two_profiles(rng: Random) -> tuple[Any, ...]:
    """Two shapes, the second often finer than the first."""
    shape = _shape(rng)
    return shape, _split(rng, shape) if rng.random() < 0.7 else _shape(rng)


def _split(rng: Random, shape: Any) -> Any:
    """A shape with some extents split in two."""
    if isinstance(shape, tuple):
        return tuple(_split(rng, mode) for mode in shape)
    factor = g.size_divisor(rng, shape)
    return (factor, shape // factor) if rng.random() < 0.4 else rng.choice((shape, shape, factor))


def _pairs(a: Any, b: Any) -> list[tuple[Any, Any]] | None:
    """The leaves of `a` with what they face in `b`; None if `b` is not as deep as `a`."""
    if not isinstance(a, tuple):
        return [(a, b)]
    if not isinstance(b, tuple) or len(a) != len(b):
        return None
    parts = list(map(_pairs, a, b))
    return None if None in parts else [pair for part in parts for pair in part or []]


@law(L.congruent, _two_profiles)
def _(r: Any, a: Any, b: Any) -> None:
    """Each leaf of one faces a leaf of the other."""
    facing = _pairs(a, b)
    same(r, facing is not None and not any(isinstance(x, tuple) for _, x in facing), "congruent")


@law(L.weakly_congruent, _two_profiles)
def _(r: Any, a: Any, b: Any) -> None:
    """Each leaf of the first faces something of the second."""
    same(r, _pairs(a, b) is not None, "weakly congruent")


@law(L.compatible, _two_profiles)
def _(r: Any, a: Any, b: Any) -> None:
    """Each leaf of the first is the size of what it faces."""
    facing = _pairs(a, b)
    same(r, facing is not None and all(s == m.size(x) for s, x in facing), "compatible")


@law(L.elem_less, lambda rng: (lambda s: (g.coordinate(rng, s, beyond=0.3), s))(_shape(rng)))
def _(r: Any, c: Any, shape: Any) -> None:
    """Each entry of the coordinate is below what it faces."""
    facing = _pairs(c, shape)
    same(r, facing is not None and all(x < m.size(s) for x, s in facing), "less")


@law(L.make_identity_layout, lambda rng: (_shape(rng),))
def _(r: Any, shape: Any) -> None:
    """Each coordinate is taken to itself."""
    extents = m.leaves(shape)
    for i, v in enumerate(m.values(r)):
        steps = m.digits(i, extents)
        got = [x for _, x in sorted(v.items())] if isinstance(v, Counter) else [v]
        same([x for x in got if x], [x for x in steps if x], f"coordinate {i}")


@law(L.unflatten, lambda rng: (lambda s: (tuple(range(len(m.leaves(s)))), s))(_shape(rng)))
def _(r: Any, flat: Any, profile: Any) -> None:
    """The nesting of the profile, with the leaves in order."""
    same(m.leaves(r), list(flat), "leaves")
    must(_pairs(profile, r) is not None and _pairs(r, profile) is not None, "profile")


@law(L.to_bits, one())
def _(r: Any, f: Any) -> None:
    """Each value is the XOR of the columns of the set bits of its index."""
    sums = [0]
    for column in r:
        sums += [x ^ column for x in sums]
    same(m.values(f), sums, "values")


@law(
    L.from_bits,
    lambda rng: ([rng.choice((0, 1 << k, rng.randrange(64))) for k in range(rng.randint(0, 7))],),
)
def _(r: Any, columns: Any) -> None:
    """The layout whose values are the XORs of the columns."""
    sums = [0]
    for column in columns:
        sums += [x ^ column for x in sums]
    same(m.values(r), sums, "values")


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
