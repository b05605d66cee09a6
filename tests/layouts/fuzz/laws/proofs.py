"""`prove`: the verdict is the truth, found by trying every index, and verify accepts it."""

from __future__ import annotations

from random import Random
from typing import Any

import layouts as L
from layouts.values.symbols import free_symbols, substitute

from .. import generate as g
from .. import model as m
from ..call import assignments
from ..shrink import simpler
from .check import distinct, law, must, refines
from .composing import after


def _true(statement: Any) -> bool | None:
    """Whether a statement holds, by its definition; None if the definition is not written here."""
    match statement:
        case L.Injective(layout):
            return distinct(m.values(layout))
        case L.Bijective(layout, start):
            count = range(start, start + m.size(layout))
            return not m.is_coordinates(layout) and sorted(m.values(layout)) == list(count)
        case L.Equivalent(a, b):
            return bool(_plain(m.values(a)) == _plain(m.values(b)))
        case L.CompositionLaw(a, b, r) if r is not None:
            want = [after(a, v) for v in m.values(b)]
            return refines(b.shape, r.shape) and _plain(m.values(r)) == _plain(want)
        case L.RightInverseLaw(layout, r) if r is not None:
            return [m.value(layout, i) for i in m.values(r)] == list(range(m.size(r)))
        case L.LeftInverseLaw(layout, r) if r is not None:
            return [m.value(r, x) for x in m.values(layout)] == list(range(m.size(layout)))
    return None


def _plain(values: list[Any]) -> list[Any]:
    """Values, a coordinate that is 0 everywhere as 0."""
    return [v or 0 for v in values]


# ---------------------------------------------------------------------------------- statements


def _statement(rng: Random) -> tuple[Any, ...]:
    """A statement that may be true, or false by a little."""
    f = g.any_layout(rng, rng.choice((8, 60)))
    make = rng.choice((_of_one, _of_one, _of_two, _of_composition, _of_inverse, _of_operation))
    try:
        return (make(rng, f),)
    except Exception:  # a result that another law looks at
        return (L.Injective(f),)


def _of_one(rng: Random, f: Any) -> Any:
    return L.Injective(f) if rng.random() < 0.5 else L.Bijective(f, rng.choice((0, 0, 0, 1, 4)))


def _nearby(rng: Random, f: Any) -> Any:
    """A layout that differs in one number, at times."""
    if rng.random() < 0.5:
        return f
    near = [x for x in simpler(f) if type(x) is type(f)]
    return rng.choice(near) if near else f


def _of_two(rng: Random, f: Any) -> Any:
    same = rng.choice((L.coalesce, lambda x: x, lambda x: g.any_layout(rng, 8)))(f)
    return L.Equivalent(f, _nearby(rng, same))


def _of_composition(rng: Random, f: Any) -> Any:
    b = rng.choice((g.integers, g.integers, g.xors, g.swizzles))(rng, 24)
    return L.CompositionLaw(f, b, _nearby(rng, L.composition(f, b)))


def _of_inverse(rng: Random, f: Any) -> Any:
    if rng.random() < 0.5:
        return L.RightInverseLaw(f, _nearby(rng, L.right_inverse(f)))
    return L.LeftInverseLaw(f, _nearby(rng, L.left_inverse(f)))


def _of_operation(rng: Random, f: Any) -> Any:
    """The law of an operation without its result, which the law computes."""
    b = g.integers(rng, 8)
    return rng.choice(
        (
            L.ComplementLaws(f, rng.choice((None, 64))),
            L.DivideLaw(f, b),
            L.ProductLaw(f, b),
            L.CompositionLaw(f, b),
            L.LeftInverseLaw(f),
            L.RightInverseLaw(f),
        )
    )


def _two_alike(rng: Random) -> tuple[Any, ...]:
    f = g.any_layout(rng, 60)
    return f, _nearby(rng, L.coalesce(f))


@law(L.equivalent, _two_alike, by_value=False)
def _(r: Any, a: Any, b: Any) -> None:
    """As `prove` of `Equivalent`."""
    check_proof(r, L.Equivalent(a, b))


@law(L.prove, _statement, weight=4, by_value=False)
def check_proof(r: Any, statement: Any) -> None:
    """The verdict is the truth, for all values of the symbols; verify accepts it."""
    given = list(assignments(statement)) if free_symbols(statement) else [{}]
    truths = [_true(substitute(statement, values) if values else statement) for values in given]
    if r.holds:
        must(all(truth is not False for truth in truths), "proved, and false")
    elif not free_symbols(statement):
        must(truths != [True], "refuted, and true")
    must(r.verify() or (not r.holds and r.counterexample is None), "verify rejects it")
    str(r)
