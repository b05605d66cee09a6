"""A proof with a number, a tuple, a type or a part of it changed."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from random import Random
from typing import Any

import sympy

from layouts import F2, ComposedLayout, E, Layout, Proof, Swizzle
from layouts.proof import certificates as C
from layouts.values.value import Value

#: A place in a tree of tuples and values: the numbers of the entries and fields that lead to it.
Place = tuple[int, ...]

#: The witnesses that have no fields, for one to be put where another was.
BARE = C.Exhaustive(), C.SameBits(), C.SameFloors(), C.FullRank(), C.NoDifference()


def mutated(rng: Random, proof: Proof, others: list[Proof]) -> Proof:
    """`proof` with one to three changes in its statement, its certificates or its counterexample;
    or with those of another proof.  Raises whatever a constructor says of it."""
    statement, holds, _, found, certificates = proof._fields()
    if rng.random() < 0.15:
        other = rng.choice(others)
        found, certificates = other.counterexample, other.certificates
        holds = rng.choice((holds, other.holds))
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3))):
        where = rng.random()
        if where < 0.5:
            statement = changed(rng, statement)
        elif where < 0.95:
            certificates, found = changed(rng, certificates), found and changed(rng, found)
        else:
            holds = not holds
    return Proof(statement, holds, (), found, certificates)


def changed(rng: Random, tree: Any) -> Any:
    """`tree` with one place in it changed."""
    places = [place for place, _ in _places(tree) if place]
    if not places:
        return tree
    place = rng.choice(places)
    return _replaced(tree, place, _other(rng, _at(tree, place)), forged=rng.random() < 0.3)


def _places(tree: Any, at: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Every place in a tree, with what stands there."""
    yield at, tree
    for k, branch in enumerate(_branches(tree)):
        yield from _places(branch, (*at, k))


def _branches(tree: Any) -> tuple[Any, ...]:
    if isinstance(tree, Value):
        return tree._fields()
    return tree if isinstance(tree, tuple) else ()


def _at(tree: Any, place: Place) -> Any:
    for k in place:
        tree = _branches(tree)[k]
    return tree


def _replaced(tree: Any, place: Place, new: Any, forged: bool) -> Any:
    """`tree` with `new` at `place`; a forged value is made without its constructor."""
    if not place:
        return new
    k, *rest = place
    branches = list(_branches(tree))
    branches[k] = _replaced(branches[k], tuple(rest), new, forged)
    if isinstance(tree, tuple):
        return tuple(branches)
    return _forged(tree, branches) if forged else type(tree)(*branches)


def _forged(old: Value, fields: list[Any]) -> Any:
    """A value of these fields, with whatever else `old` has computed beforehand."""
    new = object.__new__(type(old))
    for name in ("_modes", "source", "target"):
        if hasattr(old, name):
            object.__setattr__(new, name, getattr(old, name))
    for name, field in zip(type(old).__match_args__, fields, strict=True):
        object.__setattr__(new, name, field)
    return new


# -------------------------------------------------------------------------------- other contents


def _other(rng: Random, x: Any) -> Any:
    """Something else for `x`, mostly of its kind."""
    if rng.random() < 0.03:
        return rng.choice((None, (), 0, 1, "1", 2.0, True, Layout(4), Swizzle(1, 0, 1), *BARE))
    if isinstance(x, (int, sympy.Expr)):
        return _other_number(rng, x)
    if isinstance(x, tuple):
        return _other_tuple(rng, x)
    if isinstance(x, (Layout, ComposedLayout)):
        return _other_layout(rng, x)
    if isinstance(x, F2):
        return F2(max(0, x.value + rng.choice((-1, 1, 2, 4, 8))))
    if type(x) in map(type, BARE):
        return rng.choice(BARE)
    if isinstance(x, C.Growing):
        return rng.choice((C.Growing, C.Chain))(x.order)
    return rng.choice((None, x))


def _other_number(rng: Random, x: Any) -> Any:
    near = (x + 1, x - 1, x + 2, 2 * x, 3 * x, -x, 0, 1, 2, 4, 8, x + 8)
    if rng.random() < 0.15:
        half, third = sympy.sympify(x) / 2, sympy.sympify(x) / 3
        parts = [part for part in (half, third) if not part.is_Integer]
        return rng.choice((sympy.Rational(1, 2), Fraction(1, 2), 1.0, True, *parts))
    return rng.choice(near)


def _other_tuple(rng: Random, x: tuple[Any, ...]) -> Any:
    """An entry less, an entry more, two exchanged, some turned or nested."""
    entries = list(x)
    how = rng.randrange(6)
    if entries and how == 0:
        entries.pop(rng.randrange(len(entries)))
    elif entries and how == 1:
        entries.insert(rng.randrange(len(entries)), rng.choice(entries))
    elif how == 2:
        rng.shuffle(entries)
    elif how == 3:
        entries.reverse()
    elif entries and how == 4:
        k = rng.randrange(len(entries))
        entries[k] = (entries[k],)
    else:
        entries.append(rng.choice((0, 1, 2, None)))
    return tuple(entries)


def _other_layout(rng: Random, x: Any) -> Any:
    """A layout over or under this one, one of its modes, or its strides of another kind."""
    how = rng.randrange(6)
    if how == 0:
        return x[rng.randrange(len(x))]
    if how == 1:
        return ComposedLayout(Swizzle(1, 0, rng.choice((1, 2, -1))), rng.choice((0, 1, 4)), x)
    if isinstance(x, ComposedLayout):
        return rng.choice((x.outer, x.inner))
    if how == 2:
        return Layout(x.shape)
    if how == 3:
        return _with_strides(x, F2)
    if how == 4:
        return _with_strides(x, lambda stride: stride * E(rng.choice((0, 1))))
    return Layout((x.shape, 2), (x.stride, rng.choice((0, 1, 8))))


def _with_strides(layout: Layout, stride_of: Any) -> Layout:
    def each(stride: Any) -> Any:
        return tuple(map(each, stride)) if isinstance(stride, tuple) else stride_of(stride)

    return Layout(layout.shape, each(layout.stride))
