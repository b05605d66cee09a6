"""Wavefronts of shared memory and sectors of global memory, counted address by address."""

from __future__ import annotations

from random import Random
from typing import Any

import layouts as L
from layouts import Layout

from .. import generate as g
from .. import model as m
from .check import law, must, same

WARP = 32

#: Swizzles that are tried where none is said to help.
SWIZZLES = [
    L.Swizzle(bits, base, bits + more)
    for bits in (1, 2, 3)
    for base in range(1, 6)
    for more in range(3)
]


def _access(rng: Random) -> tuple[Any, ...]:
    """Lanes, the bytes that each accesses, and the bits of an offset."""
    lanes = g.any_layout(rng, rng.choice((8, 32, 64)))
    return lanes, rng.choice((4, 8, 16)), rng.choice((8, 16, 32))


def _warps(lanes: Any, unit: int) -> list[list[int]]:
    """The byte addresses of each warp."""
    addresses = [x * unit // 8 for x in m.values(lanes)]
    return [addresses[k : k + WARP] for k in range(0, len(addresses), WARP)]


@law(L.wavefronts, _access)
def _(r: Any, lanes: Any, width: int, unit: int) -> None:
    """In each phase of 128 bytes, the most words that one bank holds."""
    count = 0
    for warp in _warps(lanes, unit):
        phase = 128 // width
        for k in range(0, len(warp), phase):
            words: dict[int, set[int]] = {}
            for address in warp[k : k + phase]:
                words.setdefault(address // width % phase, set()).add(address // width)
            count += max(map(len, words.values()))
    same(r.count, count, "wavefronts")


def _accesses(rng: Random) -> tuple[Any, ...]:
    """A tile, and lanes that access runs of it."""
    rows, columns = rng.choice((8, 16, 32)), rng.choice((8, 16, 32, 64))
    tile = Layout((rows, columns), rng.choice(((columns, 1), (1, rows))))
    lanes = rng.choice(
        (Layout(8), Layout((8, 4), (1, 8 * rows)), Layout(32), Layout((16, 2), (1, 16 * rows)))
    )
    return tile, [L.Access(rng.choice((4, 8, 16)), lanes)], rng.choice((8, 16, 32))


def _is_free(layout: Any, access: L.Access, unit: int) -> bool:
    """Whether the lanes of each phase access other banks, or the same words."""
    width = access.instruction.width
    for warp in _warps(access.lanes, 8):
        places = [m.value(layout, i) * unit // 8 for i in warp]
        for k in range(0, len(places), 128 // width):
            words = {x // width for x in places[k : k + 128 // width]}
            if len({word % (128 // width) for word in words}) < len(words):
                return False
    return True


@law(L.swizzle_for, _accesses, by_value=False)
def _(r: Any, tile: Any, accesses: Any, unit: int) -> None:
    """The swizzle frees every access; or none does that moves the accessed bytes as a whole."""
    if r:
        must(all(_is_free(r.layout, access, unit) for access in accesses), "it has conflicts")
        return
    widest = 8 * max(access.instruction.width for access in accesses)
    for swizzle in SWIZZLES:
        if unit << swizzle.base >= widest:
            tried = L.ComposedLayout(swizzle, 0, tile)
            must(not all(_is_free(tried, a, unit) for a in accesses), f"{swizzle} frees them")


@law(L.padding_for, _accesses, by_value=False)
def _(r: Any, tile: Any, accesses: Any, unit: int) -> None:
    """The padded tile has no conflicts, and the offsets of its elements are distinct."""
    if r is not None:
        must(all(_is_free(r.layout, access, unit) for access in accesses), "it has conflicts")
        must(len(set(m.values(r.layout))) == m.size(tile), "its offsets are distinct")


@law(L.sectors, _access)
def _(r: Any, lanes: Any, width: int, unit: int) -> None:
    """The sectors of 32 bytes that each warp touches."""
    touched = [{(x + k) // 32 for x in warp for k in range(width)} for warp in _warps(lanes, unit)]
    same(r.count, sum(map(len, touched)), "sectors")
