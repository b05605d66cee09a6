"""Random statements about small layouts of every kind; about half of them hold."""

from __future__ import annotations

from random import Random
from typing import Any

import layouts as L
from tests.layouts.fuzz import generate as g
from tests.layouts.fuzz.shrink import simpler

#: The most indices of a layout, so that brute force takes less than a millisecond.
MOST = 24


def statement(rng: Random) -> Any:
    """A statement; one whose operands an operation or a law refuses is drawn again."""
    while True:
        make = rng.choice(MAKERS)
        try:
            return make(rng, _layout(rng))
        except Exception:  # operations have a fuzzer of their own
            continue


def _layout(rng: Random) -> Any:
    kinds = g.integers, g.integers, g.integers, g.xors, g.swizzles, g.coordinates, g.composed
    return rng.choice((*kinds, g.symbolic))(rng, rng.choice((8, MOST)))


def _nearby(rng: Random, f: Any) -> Any:
    """A layout that differs in one number, at times."""
    near = [x for x in simpler(f) if type(x) is type(f)] if rng.random() < 0.4 else []
    return rng.choice(near) if near else f


def _injective(rng: Random, f: Any) -> Any:
    return L.Injective(f)


def _bijective(rng: Random, f: Any) -> Any:
    return L.Bijective(f, rng.choice((0, 0, 0, 1, getattr(f, "offset", 4))))


def _equivalent(rng: Random, f: Any) -> Any:
    other = rng.choice((L.coalesce, L.flatten, lambda x: x))(f)
    return L.Equivalent(f, _nearby(rng, other))


def _composition(rng: Random, f: Any) -> Any:
    b = rng.choice((g.integers, g.integers, g.xors, g.swizzles))(rng, MOST)
    return L.CompositionLaw(f, b, _result(rng, L.composition, f, b))


def _right_inverse(rng: Random, f: Any) -> Any:
    return L.RightInverseLaw(f, _result(rng, L.right_inverse, f))


def _left_inverse(rng: Random, f: Any) -> Any:
    return L.LeftInverseLaw(f, _result(rng, L.left_inverse, f))


def _divide(rng: Random, f: Any) -> Any:
    tiler = _tiler(rng, f)
    return L.DivideLaw(f, tiler, _result(rng, L.logical_divide, f, tiler))


def _product(rng: Random, f: Any) -> Any:
    tiler = _tiler(rng, f)
    return L.ProductLaw(f, tiler, _result(rng, L.logical_product, f, tiler))


def _complement(rng: Random, f: Any) -> Any:
    cotarget = rng.choice((None, 16, 30))
    return L.ComplementLaws(f, cotarget, _result(rng, L.complement, f, cotarget))


def _swizzle(rng: Random, f: Any) -> Any:
    return rng.choice((L.SwizzleInvolution, L.SwizzleAlignment))(g.swizzle(rng))


def _tiler(rng: Random, f: Any) -> Any:
    if rng.random() < 0.6:
        return rng.choice((g.integers(rng, 6), 2, 4))
    return tuple(rng.choice((None, 2, L.Layout(2, 2))) for _ in range(rng.randint(0, len(f))))


def _result(rng: Random, operation: Any, *operands: Any) -> Any:
    """What the operation returns, perhaps with one number changed; None to leave it to the law."""
    return None if rng.random() < 0.3 else _nearby(rng, operation(*operands))


MAKERS = (
    *(_injective, _injective, _bijective, _bijective, _equivalent, _equivalent),
    *(_composition, _composition, _composition, _right_inverse, _left_inverse),
    *(_divide, _product, _complement, _swizzle),
)
