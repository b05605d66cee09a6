"""Cutting a layout into tiles: `logical_divide`, and its halves gathered in three ways.

    logical_divide   ((tile, rest), (tile, rest), ...)
    zipped_divide    ((tile, tile, ...), (rest, rest, ...))
    tiled_divide     ((tile, tile, ...), rest, rest, ...)
    flat_divide      (tile, tile, ..., rest, rest, ...)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .core import AnyLayout, Tiler, by_mode, composition, modes_for, tiler_layout
from .gaps import complement
from .errors import LayoutError
from .layout import Layout, joined, make_identity_layout
from .modes import xors
from .swizzle import ComposedLayout
from .tuples import size

__all__ = ["flat_divide", "halves", "logical_divide", "tiled_divide", "zipped_divide"]


def logical_divide(layout: AnyLayout, tiler: Tiler) -> AnyLayout:
    """`layout` with each tiled mode as (tile, rest): inside a tile, and from tile to tile.

    For a Layout B, ``R((t, r)) == A(B(t) + complement(B, size(A))(r))`` (C++ ``logical_divide``).
    A tuple of tilers divides mode by mode; None, and modes beyond the tuple, stay as they are.

    >>> print(logical_divide(Layout((4, 2, 3), (2, 1, 8)), Layout(4, 2)))
    ((2,2),(2,3)):((4,1),(2,8))
    >>> print(logical_divide(Layout((8, 64), (64, 1)), (4, None)))
    ((4,2),64):((64,256),1)
    """
    return _on_outer(_logical_divide, layout, tiler)


def zipped_divide(layout: AnyLayout, tiler: Tiler) -> AnyLayout:
    """`layout` as ((tile modes), (rest modes)): `logical_divide` with the halves gathered.

    ``R[0] == composition(A, tiler)``, and ``R(0, r)`` is where tile r starts (C++
    ``zipped_divide``).  Modes beyond a tuple of tilers join the rest; None takes the whole mode
    into the tile.

    >>> print(zipped_divide(Layout((8, 64), (64, 1)), (4, 16)))
    ((4,16),(2,4)):((64,1),(256,16))
    """
    return _on_outer(lambda a, b: joined(_divided(a, b)), layout, tiler)


def tiled_divide(layout: AnyLayout, tiler: Tiler) -> AnyLayout:
    """`layout` as ((tile modes), rest, rest, ...) (C++ ``tiled_divide``).

    ``R((t), r0, r1) == zipped_divide(layout, tiler)((t), (r0, r1))``.

    >>> print(tiled_divide(Layout((8, 64), (64, 1)), (4, 16)))
    ((4,16),2,4):((64,1),256,16)
    """
    return _on_outer(_tiled_divide, layout, tiler)


def flat_divide(layout: AnyLayout, tiler: Tiler) -> AnyLayout:
    """`layout` as (tile, tile, ..., rest, rest, ...) (C++ ``flat_divide``).

    ``R(t0, t1, r0, r1) == zipped_divide(layout, tiler)((t0, t1), (r0, r1))``.

    >>> print(flat_divide(Layout((8, 64), (64, 1)), (4, 16)))
    (4,16,2,4):(64,1,256,16)
    """
    return _on_outer(_flat_divide, layout, tiler)


def _on_outer(operation: Callable[[Layout, Tiler], Layout], layout: Any, tiler: Tiler) -> Any:
    """`operation` on the coordinates of a composed layout, or of one with XOR strides."""
    if isinstance(layout, ComposedLayout):
        return layout.over(operation(layout.outer, tiler))
    if not isinstance(layout, Layout):
        raise LayoutError(f"divide of {layout!r}: it is no Layout and no ComposedLayout")
    if xors(layout):  # a part may have to stay composed, and it is all of them then
        return composition(layout, operation(make_identity_layout(layout.shape), tiler))
    return operation(layout, tiler)


def _logical_divide(layout: Layout, tiler: Tiler) -> Layout:
    if tiler is None:
        return layout
    if isinstance(tiler, tuple):
        return by_mode("logical_divide", layout, tiler, _logical_divide, keep_rest=True)
    tile = tiler_layout(tiler)
    found: Layout = composition(layout, joined([tile, complement(tile, size(layout))]))
    return found


def _tiled_divide(layout: Layout, tiler: Tiler) -> Layout:
    tile, rest = _divided(layout, tiler)
    return joined([tile, *rest])


def _flat_divide(layout: Layout, tiler: Tiler) -> Layout:
    tile, rest = _divided(layout, tiler)
    return joined([*tile, *rest])


def _divided(layout: Layout, tiler: Tiler) -> tuple[Layout, Layout]:
    return halves("zipped_divide", _logical_divide, layout, tiler)


def halves(
    name: str, operation: Callable[[Layout, Tiler], Layout], layout: Layout, tiler: Tiler
) -> tuple[Layout, Layout]:
    """The two halves that `operation` makes of each mode, gathered along the tuples of `tiler`."""
    if tiler is None:
        return layout, Layout(1, 0)
    if not isinstance(tiler, tuple):
        tile, rest = operation(layout, tiler)
        return tile, rest
    modes = modes_for(name, layout, tiler)
    pairs = [halves(name, operation, *pair) for pair in zip(modes, tiler, strict=False)]
    tiles, rests = [tile for tile, _ in pairs], [rest for _, rest in pairs]
    return joined(tiles), joined([*rests, *modes[len(tiler) :]])
