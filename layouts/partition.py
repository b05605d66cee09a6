"""Tiles of a layout: which part a block of threads works on, and where it starts."""

from __future__ import annotations

import operator
from functools import reduce
from typing import Any, NamedTuple

from .algebra import Tiler, zipped_divide
from .errors import LayoutError
from .layout import Layout, make_layout
from .swizzle import ComposedLayout
from .tuples import IntTuple, text

__all__ = ["Tile", "local_tile"]


class Tile(NamedTuple):
    """A part of a layout: coordinate c of the part has the offset ``offset + layout(c)``.

    In C++ a tensor's pointer holds the offset (``slice_and_offset`` gives the pair in this order).
    """

    layout: Any
    offset: Any


def local_tile(layout: Any, tiler: Tiler, coord: IntTuple, proj: IntTuple = None) -> Tile:
    """Tile `coord` of `layout` cut up by `tiler` (C++ ``local_tile``).

    ``offset + tile(t) == zipped_divide(layout, tiler)(t, coord)``.  None in `coord` keeps that rest
    mode, after the modes of the tile.  `proj` drops, from both `tiler` and `coord`, the modes where
    it is None: C++ ``Step<_1, X, _1>`` is ``(1, None, 1)``.  The tile of a composed layout is a
    composed layout that holds the offset before its swizzle; `Tile.offset` is then 0.

    Raises `LayoutError` where `zipped_divide` does, or if `coord` has more modes than the rest.

    >>> tile = local_tile(Layout((128, 64), (64, 1)), (32, 16), (1, 2))
    >>> print(tile.layout, tile.offset)
    (32,16):(64,1) 2080
    >>> tiles = local_tile(Layout((128, 64), (64, 1)), (32, 128, 16), (1, 9, None), (1, None, 1))
    >>> print(tiles.layout, tiles.offset)
    (32,16,4):(64,1,16) 2048
    """
    if proj is not None:
        tiler, coord = _projected(tiler, proj), _projected(coord, proj)
    if isinstance(layout, ComposedLayout):
        tile = local_tile(layout.outer, tiler, coord)
        inside = ComposedLayout(layout.inner, layout.offset + tile.offset, tile.layout, layout.unit)
        return Tile(inside, 0)
    inner, rest = zipped_divide(layout, tiler)
    kept, offset = _sliced(rest, coord)
    return Tile(make_layout(*inner, *kept), offset)


def _projected(t: IntTuple, proj: tuple[Any, ...]) -> tuple[Any, ...]:
    """The entries of `t` where `proj` is not None (C++ ``dice``)."""
    if not isinstance(t, tuple) or not isinstance(proj, tuple) or len(t) != len(proj):
        raise LayoutError(f"proj {proj!r} must be a tuple with one entry for each of {t!r}")
    return tuple(entry for entry, keep in zip(t, proj, strict=True) if keep is not None)


def _sliced(rest: Layout, coord: IntTuple) -> tuple[list[Layout], Any]:
    """The modes of `rest` where `coord` is None, and the offset of the others."""
    entries = coord if isinstance(coord, tuple) else (coord,)
    if len(entries) > len(rest):
        raise LayoutError(
            f"coord {text(coord)} has {len(entries)} entries and there are {len(rest)} modes of "
            f"tiles, {rest}; give at most one per mode"
        )
    entries += (None,) * (len(rest) - len(entries))
    pairs = list(zip(rest, entries, strict=True))
    kept = [mode for mode, at in pairs if at is None]
    offsets = [mode(at) for mode, at in pairs if at is not None]
    return kept, reduce(operator.add, offsets) if offsets else 0
