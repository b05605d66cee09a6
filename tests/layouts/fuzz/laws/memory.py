"""Wavefronts of shared memory and sectors of global memory, counted address by address."""

from __future__ import annotations

from random import Random
from typing import Any

import layouts as L

from .. import generate as g
from .. import model as m
from .check import law, same

WARP = 32


def _access(rng: Random) -> tuple[Any, ...]:
    return (
        g.any_layout(rng, rng.choice((8, 32, 64))),
        rng.choice((4, 8, 16)),
        rng.choice((8, 16, 32)),
    )


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


@law(L.sectors, _access)
def _(r: Any, lanes: Any, width: int, unit: int) -> None:
    """The sectors of 32 bytes that each warp touches."""
    touched = [{(x + k) // 32 for x in warp for k in range(width)} for warp in _warps(lanes, unit)]
    same(r.count, sum(map(len, touched)), "sectors")
