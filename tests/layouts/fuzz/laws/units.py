"""upcast, downcast and recast: the same memory in other units."""

from __future__ import annotations

from random import Random
from typing import Any

import layouts as L
from layouts import ComposedLayout, Layout

from .. import generate as g
from .. import model as m
from .check import law, must, same


def _with_factor(rng: Random) -> tuple[Any, ...]:
    return g.any_layout(rng), g.a_factor(rng)


def _facing(shape: Any, stride: Any, original: Any) -> list[Layout]:
    """The modes of a layout that stand for the leaves of a coarser shape."""
    if isinstance(original, tuple):
        pairs = zip(shape, stride, original, strict=True)
        return [mode for parts in pairs for mode in _facing(*parts)]
    return [Layout(shape, stride)]


def _one_unit_fits(f: Any, n: int) -> bool:
    """Whether each mode has whole units, or lies in one."""
    if not isinstance(f, Layout) or m.is_xor(f) or m.is_coordinates(f):
        return False
    held = 0
    for s, d in m.modes(f):
        if d % n == 0:
            continue
        if (s - 1) * d < n:
            held += (s - 1) * d
        elif n % d == 0 and s % (n // d) == 0:
            held += n - d
        else:
            return False
    return held < n


@law(L.upcast, _with_factor, exists=_one_unit_fits, weight=2)
def _(r: Any, f: Any, n: int) -> None:
    """``R(c // k) == L(c) // n`` leaf by leaf, where a unit holds k elements of the leaf."""
    if n == 1:
        same(m.values(r), m.values(f), "the layout")
        return
    if isinstance(f, ComposedLayout):
        same(sorted({*m.values(r)}), sorted({x // n for x in m.values(f)}), "units")
        return
    facing = _facing(r.shape, r.stride, f.shape)
    extents = [s for s, _ in m.modes(f)]
    held = [-(-s // m.size(mode)) for s, mode in zip(extents, facing, strict=True)]
    for i, c in enumerate(m.coords(extents)):
        unit: Any = 0
        for x, k, mode in zip(c, held, facing, strict=True):
            unit = m.plus(unit, m.total(mode, x // k))
        same(m.plain(unit), m.value(f, i) // n, f"the unit of {c}")


@law(L.downcast, _with_factor)
def _(r: Any, f: Any, n: int) -> None:
    """The n parts of each element, and no others."""
    if n == 1:
        same(m.values(r), m.values(f), "the layout")
        return
    same(m.size(r), n * m.size(f), "size")
    parts = [n * x + k for x in m.values(f) for k in range(n)]
    same(sorted(m.values(r)), sorted(parts), "parts")


def _with_widths(rng: Random) -> tuple[Any, ...]:
    return g.any_layout(rng), rng.choice((8, 16, 32, 6)), rng.choice((8, 16, 32, 4))


@law(L.recast, _with_widths)
def _(r: Any, f: Any, old: int, new: int) -> None:
    """Every bit is in a unit; of narrower units, no other bit is."""
    if old == new:
        same(m.values(r), m.values(f), "the layout")
        return
    before = {x * old + k for x in m.values(f) for k in range(old)}
    after = {x * new + k for x in m.values(r) for k in range(new)}
    must(before <= after, "every bit is in a unit")
    must(before == after or new > old or old % new != 0, "no other bit is in a unit")
