"""A layout cut into tiles: `logical_divide`, and its halves gathered in three ways.

logical_divide   ((tile, rest), (tile, rest), ...)
zipped_divide    ((tile, tile, ...), (rest, rest, ...))
tiled_divide     ((tile, tile, ...), rest, rest, ...)
flat_divide      (tile, tile, ..., rest, rest, ...)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..values.layout import Layout, joined
from ..values.modes import as_xor_strides, has_xor_strides
from ..values.stride import ArithTuple, kind_of
from ..values.swizzle import AnyLayout, ComposedLayout
from ..values.tuples import IntTuple, size
from .by_mode import Tiler, flat, logical, tiled, tiled_coordinates, zipped
from .complement import complement
from .composition import composition
from .on_tensors import on_tensor

__all__ = ["extent_of", "flat_divide", "logical_divide", "tiled_divide", "zipped_divide"]


def logical_divide(layout: AnyLayout, tiler: Tiler) -> AnyLayout:
    """`layout` with each tiled mode as (tile, rest): within a tile, and from tile to tile.

    For a Layout B, ``R((t, r)) == A(B(t) + complement(B, size(A))(r))`` (C++ ``logical_divide``);
    the sum is an XOR if B has XOR strides.  A tuple of tilers divides mode by mode; None, and modes
    beyond the tuple, stay as they are.

    >>> print(logical_divide(Layout((4, 2, 3), (2, 1, 8)), Layout(4, 2)))
    ((2,2),(2,3)):((4,1),(2,8))
    >>> print(logical_divide(Layout((8, 64), (64, 1)), (4, None)))
    ((4,2),64):((64,256),1)
    """
    return _divided(logical, "logical_divide", layout, tiler)


def zipped_divide(layout: AnyLayout, tiler: Tiler) -> AnyLayout:
    """`layout` as ((tile modes), (rest modes)): `logical_divide` with the halves gathered.

    ``R[0] == composition(A, tiler)``, and ``R(0, r)`` is where tile r starts (C++
    ``zipped_divide``).  Modes beyond a tuple of tilers join the rest; None takes the whole mode
    into the tile.

    >>> print(zipped_divide(Layout((8, 64), (64, 1)), (4, 16)))
    ((4,16),(2,4)):((64,1),(256,16))
    """
    return _divided(zipped, "zipped_divide", layout, tiler)


def tiled_divide(layout: AnyLayout, tiler: Tiler) -> AnyLayout:
    """`layout` as ((tile modes), rest, rest, ...) (C++ ``tiled_divide``).

    ``R((t), r0, r1) == zipped_divide(layout, tiler)((t), (r0, r1))``.

    >>> print(tiled_divide(Layout((8, 64), (64, 1)), (4, 16)))
    ((4,16),2,4):((64,1),256,16)
    """
    return _divided(tiled, "tiled_divide", layout, tiler)


def flat_divide(layout: AnyLayout, tiler: Tiler) -> AnyLayout:
    """`layout` as (tile, tile, ..., rest, rest, ...) (C++ ``flat_divide``).

    ``R(t0, t1, r0, r1) == zipped_divide(layout, tiler)((t0, t1), (r0, r1))``.

    >>> print(flat_divide(Layout((8, 64), (64, 1)), (4, 16)))
    (4,16,2,4):(64,1,256,16)
    """
    return _divided(flat, "flat_divide", layout, tiler)


def _divided(
    gather: Callable[..., Layout], name: str, layout: AnyLayout, tiler: Tiler
) -> AnyLayout:
    """The gathered tiles and rests; of a composed layout, those of its outer layout."""
    if isinstance(layout, ComposedLayout):
        return layout.over(_divided(gather, name, layout.outer, tiler))
    if not isinstance(layout, Layout):
        return on_tensor(name, partial(_divided, gather, name), layout, tiler)
    xor_tiler = isinstance(tiler, Layout) and has_xor_strides(tiler)
    if xor_tiler or has_xor_strides(layout):  # if one part has to stay composed, all of them do
        coordinates = tiled_coordinates(layout.shape, tiler)
        parts = gather(name, _tile_and_rest, coordinates, tiler)
        found: AnyLayout = composition(layout, parts)
        return found
    return gather(name, _tile_and_rest, layout, tiler)


def _tile_and_rest(layout: Layout, tile: Layout) -> Layout:
    rest = complement(tile, extent_of(layout, tile))
    if has_xor_strides(tile):  # the sum of a tile and the rest is an XOR
        rest = as_xor_strides(rest)
    found: Layout = composition(layout, joined([tile, rest]))
    return found


def extent_of(layout: Layout, tile: Layout) -> IntTuple:
    """Up to where the complement of `tile` goes: the size of `layout`, or its shape if the tile
    gives coordinates.

    >>> from layouts import E
    >>> extent_of(Layout((8, 16)), Layout(4)), extent_of(Layout((8, 16)), Layout(4, E(0)))
    (128, (8, 16))
    """
    return layout.shape if kind_of(tile.modes) is ArithTuple else size(layout)
