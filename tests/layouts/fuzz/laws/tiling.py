"""complement, the divides and products, tile_to_shape."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from math import prod
from random import Random
from typing import Any, TypeAlias

import layouts as L
from layouts import ComposedLayout, Layout

from .. import generate as g
from .. import model as m
from .check import (
    as_layout,
    at,
    beside,
    distinct,
    law,
    moving_size,
    must,
    outer,
    refines,
    same,
    two,
    with_copies,
    with_tiler,
)
from .composing import check_composition

Check: TypeAlias = Callable[[Any, Any, Any], None]  # (result, layout, tiler)

# --------------------------------------------------------------------------------- complement


def _rising(layout: Layout) -> list[tuple[int, int]]:
    """The modes that move, by rising stride."""
    return sorted(((s, d) for s, d in m.modes(layout) if s != 1 and d), key=lambda mode: mode[1])


def fills(layout: Layout) -> bool:
    """Whether copies fill what the layout leaves free: each stride, in rising order, is a multiple
    of the extent times the stride before it."""
    reach = 1
    for s, d in _rising(layout):
        if d % reach:
            return False
        reach = s * d
    return True


def _is_ordered(layout: Any, target: Any = None) -> bool:
    """Whether C++ has a complement: no mode overlaps the one before it, in rising order."""
    if not isinstance(layout, Layout) or m.is_xor(layout) or m.is_coordinates(layout):
        return False
    reach = 1
    for s, d in _rising(layout):
        if d < reach:
            return False
        reach = s * d
    return target is None or type(target) is int


def _with_target(rng: Random) -> tuple[Any, ...]:
    f, pick = g.any_layout(rng, rng.choice((8, 24, 60))), rng.random()
    if pick < 0.4:
        return (f,)
    return f, rng.randint(1, 300) if pick < 0.9 else rng.choice(((4, 8), g.small(rng), g.M))


def _covers(r: Any, f: Any, target: Any = None) -> None:
    """Where copies fill what L leaves free, they do, up to the target."""
    if not isinstance(f, Layout) or m.is_xor(f) or m.is_coordinates(f) or not fills(f):
        return
    sums = [a + b for a in set(m.values(f)) for b in m.values(r)]
    same(sorted(sums), list(range(len(sums))), "the offsets of all copies")
    if target is not None:
        must(len(sums) >= m.size(target), f"{len(sums)} offsets, fewer than {target}")


@law(L.complement, _with_target, exactly=_covers, exists=_is_ordered, weight=2)
def _(r: Any, f: Any, target: Any = None) -> None:
    """It grows, and copies of L at its offsets do not overlap.  L is injective where it moves."""
    if m.is_coordinates(f):
        return
    own, copies = set(m.values(f)), m.values(r)
    must(copies == sorted(set(copies)), "it grows")
    linear = isinstance(f, ComposedLayout) or m.is_xor(f)
    apart = distinct([a + b for a in own for b in copies])
    must(apart or (linear and distinct([a ^ b for a in own for b in copies])), "no copies overlap")
    must(len(own) == moving_size(f), "L is injective where it moves")


# ------------------------------------------------------------------------------------- divides


def _mode_by_mode(check: Check) -> Check:
    """`check` for each tiler of a tuple; a mode without one keeps its values."""

    @wraps(check)
    def checked(r: Any, a: Any, b: Any) -> None:
        b = as_layout(b)
        if b is None:
            same(m.values(r), m.values(a), "values")
            return
        if isinstance(b, tuple):
            same(m.rank(r), m.rank(a), "rank")
            for k in range(m.rank(a)):
                checked(m.part(r, k), m.part(a, k), b[k] if k < len(b) else None)
            return
        same(m.rank(r), 2, "rank")
        check(r, a, b)

    return checked


@_mode_by_mode
def check_divide(r: Any, a: Any, b: Any) -> None:
    """``R((t, r)) == A(B(t) + complement(B, size(A))(r))``."""
    check_composition(m.part(r, 0), a, b)
    if m.is_coordinates(b):
        return
    rest = m.values(L.complement(b, m.size(a)))
    places = [x ^ y if m.is_xor(b) else x + y for y in rest for x in m.values(b)]
    same(m.values(r), [m.value(a, i) for i in places], "A(B(t) + B*(r))")
    if isinstance(b, Layout) and not m.is_xor(b) and fills(b):
        must(set(range(m.size(a))) <= set(places), "every index of A is in a tile")


@law(L.logical_divide, with_tiler, weight=2, exactly=check_divide)
def _(r: Any, a: Any, b: Any) -> None:
    """As `check_divide`; every value of A is in a tile, if tiles fill what they leave free."""
    if isinstance(b, Layout) and not m.is_xor(b) and not m.is_coordinates(b) and fills(b):
        check_composition(m.part(r, 0), a, b)
        tiled = [x or 0 for x in m.values(r)]
        missing = [x for x in m.values(a) if (x or 0) not in tiled]
        same(missing, [], "values that are in no tile")


def _halves(layout: Layout, tiler: Any) -> tuple[list[Layout], list[Layout]]:
    """The first and the second halves that the leaves of a tiler made."""
    if tiler is None:
        return [layout], []
    if not isinstance(tiler, tuple):
        return [m.part(layout, 0)], [m.part(layout, 1)]
    firsts, seconds = [], []
    for k in range(m.rank(layout)):
        mode = m.part(layout, k)
        first, second = _halves(mode, tiler[k]) if k < len(tiler) else ([], [mode])
        firsts, seconds = firsts + first, seconds + second
    return firsts, seconds


def _gathered(layout: Any, tiler: Any) -> list[Any]:
    """The values of a logical divide or product at ((first halves), (second halves))."""
    firsts, seconds = _halves(outer(layout), tiler)
    sums: list[Any] = [0]
    for mode in firsts + seconds:
        sums = [m.plus(x, m.total(mode, i)) for i in range(m.size(mode)) for x in sums]
    offsets = map(m.plain, sums)
    if isinstance(layout, ComposedLayout):
        return [m.value(layout.inner, layout.offset + x) for x in offsets]
    return list(offsets)


def _gathers(logical: Any, *operations: Any) -> None:
    """The values of `operations` are those of `logical`, the halves gathered."""
    for operation in operations:
        arguments = with_tiler if logical is L.logical_divide else with_copies

        @law(beside(operation, logical), arguments)
        def _(r: Any, a: Any, b: Any) -> None:
            gathered, halves = r
            same(m.values(gathered), _gathered(halves, b), f"as {logical.__name__}")


_gathers(L.logical_divide, L.zipped_divide, L.tiled_divide, L.flat_divide)
_gathers(L.logical_product, L.zipped_product, L.tiled_product, L.flat_product)


# ------------------------------------------------------------------------------------ products


@_mode_by_mode
def check_product(r: Any, a: Any, b: Any) -> None:
    """``R((x, y)) == A(x) + A*(B(y))``: copies of A that do not overlap, in the order of B."""
    same(m.values(m.part(r, 0)), m.values(a), "the block")
    must(refines(b.shape, m.part(r, 1).shape), f"the shape of the copies refines {b.shape}")
    if isinstance(a, Layout) and not m.is_coordinates(r) and not m.is_coordinates(b):
        _check_copies(m.values(a), m.values(m.part(r, 1)), m.values(b), m.is_xor(a))


def _check_copies(own: list[int], copies: list[int], order: list[int], xor: bool) -> None:
    """The offsets of a block, those of its copies, and the values of the layout of the copies."""
    sums = [x ^ y if xor else x + y for x in set(own) for y in set(copies)]
    must(distinct(sums), "no copies overlap")
    ranks = dict(zip(order, copies, strict=True))
    same(copies, [ranks[v] for v in order], "a copy for each value of B")
    must(len(set(copies)) == len(ranks), "another copy for each value of B")
    if not xor:
        rising = [ranks[v] for v in sorted(ranks)]
        same(rising, sorted(rising), "copies in the order of B")


@law(L.logical_product, with_copies, weight=2)
def _(r: Any, a: Any, b: Any) -> None:
    """As `check_product`."""
    check_product(r, a, b)


def _check_side_by_side(r: Any, a: Any, b: Any, block_first: bool) -> None:
    """Mode k holds mode k of the block and of the copies; the values are those of the product."""
    block, tiler, whole = outer(a), as_layout(b), L.logical_product(outer(a), b)
    found = outer(r) if isinstance(a, ComposedLayout) else r
    rank = max(m.rank(block), m.rank(tiler))
    same(m.rank(r), rank, "rank")
    own = [m.size(m.part(block, k)) if k < m.rank(block) else 1 for k in range(rank)]
    other = [m.size(m.part(tiler, k)) if k < m.rank(tiler) else 1 for k in range(rank)]
    for j, y in enumerate(m.coords(other)[:20]):
        for i, x in enumerate(m.coords(own)[:20]):
            fast, slow, extents = (x, y, own) if block_first else (y, x, other)
            mixed = tuple(p + s * q for p, q, s in zip(fast, slow, extents, strict=True))
            got = at(found, mixed if isinstance(r.shape, tuple) else mixed[0])
            same(got, m.value(whole, i + j * prod(own)), f"element {x} of copy {y}")


def _check_block(r: Any, a: Any, b: Any) -> None:
    """Copy 0 is the block, and no copies overlap."""
    block, tiler = outer(a), as_layout(b)
    own = [m.size(m.part(block, k)) for k in range(m.rank(block))]
    if isinstance(r, Layout) and distinct(m.values(block)) and distinct(m.values(tiler)):
        must(distinct(m.values(r)), "no copies overlap")
    same(m.size(r), prod(own) * m.size(tiler), "size")


@law(L.blocked_product, two(24, 16), exactly=partial(_check_side_by_side, block_first=True))
def _(r: Any, a: Any, b: Any) -> None:
    """Mode k is (block mode k, copies mode k)."""
    _check_block(r, a, b)


@law(L.raked_product, two(24, 16), exactly=partial(_check_side_by_side, block_first=False))
def _(r: Any, a: Any, b: Any) -> None:
    """Mode k is (copies mode k, block mode k)."""
    _check_block(r, a, b)


def _with_shape(rng: Random) -> tuple[Any, ...]:
    block = g.any_layout(rng, 24)
    shape = g.shape_for(rng, block)
    return block, shape, g.order_for(rng, shape)


@law(L.tile_to_shape, _with_shape)
def _(r: Any, block: Any, shape: Any, order: Any) -> None:
    """Each mode has the size of that of the shape; the block comes first; no copies overlap."""
    target = shape if isinstance(shape, tuple) else (shape,)
    sizes = [m.size(m.part(r, k)) for k in range(m.rank(r))]
    same(sizes, [m.size(s) for s in target], "sizes")
    own = m.coords([m.size(m.part(block, k)) for k in range(m.rank(block))])
    for i, c in enumerate(own[:60]):
        padded = (*c, *(0,) * (len(target) - len(c)))
        got = at(r, padded if isinstance(r.shape, tuple) else padded[0])
        same(got, m.value(block, i), f"the block at {c}")
    if isinstance(r, Layout) and distinct(m.values(block)):
        must(distinct(m.values(r)), "no copies overlap")
