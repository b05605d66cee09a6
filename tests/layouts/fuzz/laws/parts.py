"""Slices of a layout, the tile of a block, the elements of a thread."""

from __future__ import annotations

from collections import Counter
from math import prod
from random import Random
from typing import Any

import layouts as L
from layouts import ComposedLayout

from .. import generate as g
from .. import model as m
from .check import beside, law, must, outer, same, steps

MOST = 200  # elements of a part that are compared


def _sliced(rng: Random) -> tuple[Any, ...]:
    f = g.any_layout(rng)
    return g.coordinate(rng, f.shape, 0.35, 0.05), f


def _kept(c: Any, shape: Any) -> list[tuple[Any, tuple[int, ...]]]:
    """The modes where a coordinate is None, with their paths."""
    if isinstance(c, tuple):
        pairs = enumerate(zip(c, shape, strict=True))
        return [(s, (k, *path)) for k, pair in pairs for s, path in _kept(*pair)]
    return [(shape, ())] if c is None else []


def _fixed(c: Any) -> Any:
    """A coordinate with 0 for None."""
    return tuple(map(_fixed, c)) if isinstance(c, tuple) else 0 if c is None else c


def _moved(layout: Any, part: Any, offset: Any, index: int) -> Any:
    """``offset + part(index)``; the sum is an XOR for XOR strides."""
    value = m.value(part, index)
    if m.is_xor(layout):
        return value ^ offset
    return m.plus(value, m.as_value(offset))


def check_slice(part: Any, offset: Any, c: Any, f: Any) -> None:
    """``L(c) == offset + part(kept entries)``."""
    kept = _kept(c, f.shape)
    sizes = [m.size(s) for s, _ in kept]
    same(m.size(part), prod(sizes), "size")
    for i, entries in enumerate(m.coords(sizes)[:MOST]):
        whole = steps(_fixed(c)) | Counter(
            dict(zip([path for _, path in kept], entries, strict=True))
        )
        same(_moved(f, part, offset, i), m.at_steps(f, whole), f"at {entries}")


@law(L.slice_and_offset, _sliced)
def _(r: Any, c: Any, f: Any) -> None:
    """As `check_slice`."""
    check_slice(*r, c, f)


@law(L.slice_, _sliced)
def _(r: Any, c: Any, f: Any) -> None:
    """The slice without the offset of the fixed entries; a composed layout holds it."""
    if isinstance(f, ComposedLayout):
        check_slice(r, 0, c, f)
    elif not m.is_coordinates(f):
        check_slice(r, m.at_steps(f, steps(_fixed(c))), c, f)


@law(L.dice, _sliced)
def _(r: Any, c: Any, f: Any) -> None:
    """The modes that the slice has not."""
    others = prod(m.size(s) for s, _ in _kept(c, f.shape))
    same(m.size(outer(r)) * others, m.size(f), "size")


# ---------------------------------------------------------------------------------- rearranged


def _same_modes(r: Any, modes: list[Any]) -> None:
    """The modes of R are these, as functions."""
    same(m.rank(r), len(modes), "rank")
    for k, mode in enumerate(modes):
        same(m.values(m.part(r, k)), m.values(mode), f"mode {k}")


def _modes(f: Any) -> list[Any]:
    return [m.part(f, k) for k in range(m.rank(f))]


def _some_modes(rng: Random) -> tuple[Any, ...]:
    f = g.any_layout(rng)
    return f, tuple(rng.sample(range(m.rank(f)), rng.randint(0, m.rank(f))))


def _with_mode(rng: Random) -> tuple[Any, ...]:
    f = g.any_layout(rng)
    return f, g.small(rng)


@law(L.select, _some_modes, weight=0.5)
def _(r: Any, f: Any, chosen: Any) -> None:
    """The chosen modes, in that order."""
    _same_modes(r, [m.part(f, k) for k in chosen])


def _range_of_modes(rng: Random) -> tuple[Any, ...]:
    f = g.any_layout(rng)
    return f, *sorted(rng.randint(0, m.rank(f)) for _ in range(2))


@law(L.group_modes, _range_of_modes, weight=0.5)
def _(r: Any, f: Any, begin: int, end: int) -> None:
    """The same function, with the modes of the range in one."""
    same(m.values(r), m.values(f), "values")
    same(m.rank(r), m.rank(f) - (end - begin) + 1, "rank")


@law(L.append, _with_mode, weight=0.5)
def _(r: Any, f: Any, mode: Any) -> None:
    """One mode more, the last."""
    _same_modes(r, [*_modes(f), _beside(f, mode)])


@law(L.prepend, _with_mode, weight=0.5)
def _(r: Any, f: Any, mode: Any) -> None:
    """One mode more, the first."""
    _same_modes(r, [_beside(f, mode), *_modes(f)])


def _with_place(rng: Random) -> tuple[Any, ...]:
    f, mode = _with_mode(rng)
    return f, rng.randrange(m.rank(f) + 1), mode


@law(L.replace, _with_place, weight=0.5)
def _(r: Any, f: Any, place: int, mode: Any) -> None:
    """Another mode in the place of one."""
    _same_modes(r, [*_modes(f)[:place], _beside(f, mode), *_modes(f)[place + 1 :]])


def _beside(f: Any, mode: Any) -> Any:
    """A mode as a composed layout has it, under its inner function."""
    return ComposedLayout(f.inner, f.offset, mode) if isinstance(f, ComposedLayout) else mode


# ----------------------------------------------------------------------------------- partition


def _tiled(rng: Random) -> tuple[Any, ...]:
    f = g.any_layout(rng)
    tiler = g.tiler(rng, f) if rng.random() < 0.2 else g.even_tiler(rng, f)
    coord = tuple(rng.choice((0, 0, 1, 2, None)) for _ in range(rng.randint(0, m.rank(f))))
    return f, tiler, coord if rng.random() < 0.8 else rng.randrange(4)


@law(beside(L.local_tile, L.zipped_divide), _tiled)
def _(r: Any, f: Any, tiler: Any, coord: Any) -> None:
    """``offset + tile(t) == zipped_divide(L, tiler)(t, coord)``."""
    (part, offset), whole = r
    tile, rest = m.part(whole, 0), m.part(whole, 1)
    if isinstance(coord, tuple):
        if not isinstance(rest.shape, tuple):
            return
        coord = (*coord, *(None,) * (m.rank(rest) - len(coord)))
        if any(c is not None and c >= m.size(s) for c, s in zip(coord, rest.shape, strict=True)):
            return
    elif coord >= m.size(rest):
        return
    every = (None,) * m.rank(tile) if isinstance(tile.shape, tuple) else None
    check_slice(part, offset, (every, coord), whole)


def _partitioned(rng: Random) -> tuple[Any, ...]:
    f, tile = g.any_layout(rng), g.threads(rng)
    if rng.random() < 0.5 and isinstance(f.shape, tuple):  # one thread layout mode for each of f
        tile = g.of_shape(rng, g.even_tiler(rng, f))
    return f, tile, rng.randrange(m.size(tile) + rng.choice((0, 0, 0, 1)))


@law(L.local_partition, _partitioned)
def _(r: Any, f: Any, tile: Any, index: int) -> None:
    """``offset + part(j) == zipped_divide(L, shape of tile)(t, j)`` where ``tile(t) == index``."""
    sizes = tuple(m.size(m.part(tile, k)) for k in range(m.rank(tile)))
    whole = L.zipped_divide(f, sizes)
    count = m.size(m.part(whole, 1))
    same(m.size(r.layout), count, "size")
    got = [_moved(f, r.layout, r.offset, j) for j in range(min(count, MOST))]
    threads = [t for t in range(m.size(tile)) if m.value(tile, t) == index]
    must(bool(threads), f"{tile} has the thread {index}")
    for t in threads:
        if got == [m.value(whole, t + m.size(tile) * j) for j in range(min(count, MOST))]:
            return
    must(False, f"the elements of thread {index} are not {got[:8]}")
