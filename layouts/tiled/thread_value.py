"""Thread-value layouts: made of threads and values, and sliced at one thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..algebra import composition, raked_product, right_inverse
from ..algebra.by_mode import tiled_coordinates
from ..algebra.on_tensors import on_tensor
from ..algebra.partition import part_at
from ..errors import LayoutError, brief, type_of
from ..values.layout import Layout
from ..values.modes import has_xor_strides
from ..values.stride import kind_of
from ..values.swizzle import ComposedLayout
from ..values.tuples import IntTuple, size

__all__ = ["make_layout_tv"]


def make_layout_tv(thr_layout: Layout, val_layout: Layout) -> tuple[tuple[int, ...], Layout]:
    """(tiler, layout_tv): the tile of all threads, and (thread, value) → its element (DSL
    ``make_layout_tv``; the layout that C++ ``make_tiled_copy`` computes).

    `thr_layout` takes a coordinate to a thread, and `val_layout` takes one to a value.  The values
    of one thread are neighbours: the tile is ``raked_product(thr_layout, val_layout)``.  Element
    (m, n) of the tile has the index ``m + tiler[0] * n``.

    Raises `LayoutError` unless both are bijections onto the integers below their sizes.

    >>> tiler, layout_tv = make_layout_tv(Layout((2, 3), (3, 1)), Layout((2, 2), (2, 1)))
    >>> print(tiler, layout_tv)
    (4, 6) ((3,2),(2,2)):((8,2),(4,1))
    """
    for name, layout in (("thr_layout", thr_layout), ("val_layout", val_layout)):
        if not isinstance(layout, Layout) or kind_of(layout.modes) is not None:
            raise LayoutError(f"make_layout_tv: {name} {layout!r} must be a Layout of integers")
        require_bijective(f"make_layout_tv: {name}", layout)
    holders = raked_product(thr_layout, val_layout)  # (m, n) → thread + threads * value
    layout_tv = composition(right_inverse(holders), Layout((size(thr_layout), size(val_layout))))
    return tuple(map(size, holders)), layout_tv


def instance_of(what: str, kind: type, x: Any) -> None:
    """Raises `LayoutError` unless `x` is a `kind`."""
    if not isinstance(x, kind):
        raise LayoutError(f"{what}: {brief(x)} is {type_of(x)} and must be a {kind.__name__}")


def require_bijective(what: str, layout: Layout) -> None:
    """Raises `LayoutError` unless `layout` takes each integer below its size, once."""
    reach = size(right_inverse(layout))
    if reach != size(layout):
        raise LayoutError(
            f"{what} {layout} must be a bijection onto the {size(layout)} integers from 0; after "
            f"{reach - 1} it goes on with another offset than {reach}"
        )


def by_layout(name: str, divide: Callable[[Layout], Layout], x: Any) -> Any:
    """``divide(x)``, of a layout of integers or coordinates, for every kind of `x`.

    Of a tensor it divides the layout, and of a composed layout the outer one.  With XOR strides it
    divides the coordinates, and composes once: if one part has to stay composed, all of them do.
    """
    if isinstance(x, ComposedLayout) and not has_xor_strides(x.outer):
        return x.over(divide(x.outer))
    if isinstance(x, ComposedLayout) or (isinstance(x, Layout) and has_xor_strides(x)):
        return composition(x, divide(tiled_coordinates(x.shape, (1,) * len(x))))
    if isinstance(x, Layout):
        return divide(x)
    return on_tensor(name, lambda layout: by_layout(name, divide, layout), x)


def at_thread(thread: IntTuple, parts: Any) -> Any:
    """The part of `thread` in (thread, (values, (tiles, ...))): a tensor, or of a layout a `Tile`.

    The values, and each of the tiles, become its modes.
    """
    _, tiles = parts.shape[1]
    return part_at((thread, (None, (None,) * len(tiles))), parts)
