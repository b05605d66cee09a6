"""Modes by name, and Triton's linear layouts."""

from __future__ import annotations

from random import Random
from typing import Any

import layouts as L
from layouts.values.symbols import free_symbols

from .. import generate as g
from .. import model as m
from .check import law, same


def _modes_with_names(rng: Random) -> tuple[Any, ...]:
    f = g.any_layout(rng, 64)
    return f, *(f"m{k}" for k in rng.sample(range(9), len(f)))


@law(L.named, _modes_with_names, by_value=False)
def _(r: Any, f: Any, *names: str) -> None:
    """The layout itself; a coordinate by name, its last entry first, has the layout's value."""
    same((r.layout, r.names), (f, names), "layout and names")
    if not free_symbols(f):
        at = [[*zip(names, c, strict=True)] for c in m.coords([m.size(mode.shape) for mode in f])]
        same([m.as_value(r(**dict(reversed(c)))) for c in at], m.values(f), "values")


def _bases(rng: Random) -> tuple[Any, ...]:
    sizes = [1 << rng.randrange(4) for _ in range(rng.randint(1, 3))]
    names = rng.sample(("register", "lane", "warp", "block"), rng.randint(1, 4))
    found = {
        name: [tuple(rng.randrange(n) for n in sizes) for _ in range(rng.randrange(3))]
        for name in names
    }
    return found, {f"dim{k}": n for k, n in enumerate(sizes)}


def _xors(bases: Any, out_dims: Any) -> list[int]:
    """The indices of the XORs of the bases, the first dimension fastest."""
    sums, shape = [(0,) * len(out_dims)], tuple(out_dims.values())
    for basis in (basis for found in bases.values() for basis in found):
        sums += [tuple(a ^ b for a, b in zip(x, basis, strict=True)) for x in sums]
    return [m.index_of(x, shape) for x in sums]


@law(L.from_linear_layout, _bases)
def _(r: Any, bases: Any, out_dims: Any) -> None:
    """The XOR of the bases of the bits that are set, as an index."""
    same(m.values(r), _xors(bases, out_dims), "values")


def _written(bases: Any, out_dims: Any) -> Any:
    """What is written of the layout that was read."""
    return L.to_linear_layout(L.from_linear_layout(bases, out_dims), bases, out_dims)


@law(_written, _bases, "to_linear_layout")
def _(r: Any, bases: Any, out_dims: Any) -> None:
    """The same bases, and again after they are printed."""
    same([(name, list(found)) for name, found in r.bases], [*bases.items()], "bases")
    again = L.from_linear_layout(str(r))
    same(m.values(again), _xors(bases, out_dims), "values of what is printed")
