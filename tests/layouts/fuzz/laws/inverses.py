"""Inverses, the nullspace, and what two layouts have in common."""

from __future__ import annotations

from typing import Any

import layouts as L
from layouts import ComposedLayout, Layout

from .. import model as m
from .check import alike, distinct, law, moving_size, must, one, same


def _longest(r: Any, f: Any) -> None:
    """Of an injective layout of integers, no right inverse is longer."""
    values = m.values(f)
    if isinstance(f, Layout) and not m.is_xor(f) and distinct(values):
        must(m.size(r) not in values, f"offset {m.size(r)} also has an index")


@law(L.right_inverse, one(), exactly=_longest, weight=2)
def _(r: Any, f: Any) -> None:
    """``L(R(i)) == i``, and each R(i) is an index of L."""
    indices = m.values(r)
    same([m.value(f, i) for i in indices], list(range(m.size(r))), "L(R(i))")
    must(all(i < m.size(f) for i in indices), "indices of L")


@law(L.left_inverse, one(), weight=2)
def _(r: Any, f: Any) -> None:
    """``R(L(i)) == i``; if L has modes of stride 0, ``L(R(L(i))) == L(i)``.

    Of a composed layout, those are the modes of the layout that it is as a whole.
    """
    values = m.values(f)
    back = [m.value(r, x) for x in values]
    if distinct(values):
        same(back, list(range(m.size(f))), "R(L(i))")
    else:
        joined = isinstance(f, ComposedLayout)
        must(joined or len(set(values)) == moving_size(f), "L is injective where it moves")
        same([m.value(f, i) for i in back], values, "L(R(L(i)))")


def _whole(r: Any, f: Any) -> None:
    """Of a bit matrix, or a swizzled one, every index with the value of index 0."""
    if m.is_xor(f):
        values = m.values(f)
        same(sorted(m.values(r)), [i for i, x in enumerate(values) if x == values[0]], "indices")


@law(L.nullspace, one(), exactly=_whole)
def _(r: Any, f: Any) -> None:
    """Indices that L maps where it maps 0, each once; all in which a mode of stride 0 moves."""
    found, start = m.values(r), m.value(f, 0)
    must(distinct(found), "each index once")
    must(all(m.value(f, i) == start for i in found), f"indices with the value {start}")
    if isinstance(f, Layout):
        still = m.size(tuple(s for s, d in m.modes(f) if not m.moves(d)))
        must(m.size(r) % still == 0, f"all {still} of them")


@law(L.max_common_layout, alike)
def _(r: Any, a: Any, b: Any) -> None:
    """``A(R(i)) == B(R(i)) == i``."""
    if m.is_coordinates(a) or m.is_coordinates(b):
        must(m.size(r) == 1, "coordinates have no offsets in common")
        return
    indices = m.values(r)
    for name, f in (("A", a), ("B", b)):
        same([m.value(f, i) for i in indices], list(range(m.size(r))), f"{name}(R(i))")


def _every_vector(r: int, a: Any, b: Any) -> None:
    """A copy may move vectors of `r` elements: every block of r offsets of one is one of the other.

    It holds of layouts of integers whose strides fit together; of swizzled ones it is what the
    base of the swizzle protects.
    """
    pairs = sorted(zip(m.values(a), m.values(b), strict=False))
    every = list(range(m.size(a)))
    to = [y for _, y in pairs]
    if r == 1 or [x for x, _ in pairs] != every or sorted(to) != every:
        return  # only of bijections is it plain what the vectors are
    for first in range(0, len(to), r):
        block = to[first : first + r]
        same(block, list(range(to[first], to[first] + len(block))), f"the vector at offset {first}")


@law(L.max_common_vector, alike, exactly=_every_vector)
def _(r: Any, a: Any, b: Any) -> None:
    """The offsets below it are at the same indices of both; so are all vectors of a copy."""
    must(r >= 1, "at least 1")
    if r > 1:
        both = set(zip(m.values(a), m.values(b), strict=False))
        first, second = min(both)
        for k in range(r):
            must((first + k, second + k) in both, f"an index with the offset {first + k} in both")
