"""An operation applied mode by mode, and its results gathered.

A tiler is what the right operand of a by-mode operation may be: a Layout, an integer n (for n:1),
or a tuple of tilers, one per mode; None leaves a mode whole.

A divide makes two halves of each mode, (tile, rest), and a product makes (block, copies).  The
halves (a, b) of all modes are gathered in four ways:

    logical   ((a, b), (a, b), ...)
    zipped    ((a, a, ...), (b, b, ...))
    tiled     ((a, a, ...), b, b, ...)
    flat      (a, a, ..., b, b, ...)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from ..errors import LayoutError
from ..values.layout import Layout, joined
from ..values.stride import E
from ..values.swizzle import layout_for
from ..values.tuples import IntTuple, is_int, product, shallow

__all__ = [
    "Halving",
    "Tiler",
    "by_mode",
    "flat",
    "logical",
    "tiled",
    "tiled_coordinates",
    "tiler_layout",
    "zipped",
]

#: A Layout, an integer, None, or a tuple of tilers.
Tiler: TypeAlias = Any

#: What makes the halves of a layout and one tiler: a layout of two modes.
Halving: TypeAlias = Callable[[Layout, Layout], Layout]


def by_mode(
    name: str,
    layout: Layout,
    tilers: tuple[Tiler, ...],
    operation: Callable[[Layout, Tiler], Layout],
    keep_others: bool,
) -> Layout:
    """`operation` on each mode and its tiler; the modes beyond the tilers are kept or dropped."""
    modes = _modes_for(name, layout, tilers)
    done = map(operation, modes, tilers)
    return joined((*done, *(modes[len(tilers) :] if keep_others else ())))


def _modes_for(name: str, layout: Layout, tilers: tuple[Tiler, ...]) -> list[Layout]:
    """The modes of `layout`, if there is one for each of `tilers`."""
    layout_for(name, layout)
    if len(shallow(tilers)) > len(layout):
        raise LayoutError(
            f"{name}: {len(tilers)} tilers for the {len(layout)} modes of {layout}; give at most "
            f"one per mode"
        )
    return list(layout)


def tiler_layout(tiler: Any) -> Layout:
    """The layout of a tiler that is neither a tuple nor None."""
    if isinstance(tiler, Layout):
        return tiler
    if is_int(tiler) or (hasattr(tiler, "free_symbols") and tiler.is_integer):
        return Layout(tiler)
    raise LayoutError(
        f"tiler {tiler!r}: it must be a Layout, an integer, None, or a tuple of these, one per mode"
    )


def tiled_coordinates(shape: IntTuple, tiler: Tiler, path: tuple[int, ...] = ()) -> Layout:
    """The coordinates of `shape` that `tiler` cuts: those of each mode that faces no tuple in one
    number, the index into the mode.  `path` is where `shape` is in the whole.

    Tiling them first, and composing once, keeps a layout whole whose tiles are not layouts.

    >>> print(tiled_coordinates(((2, 4), 8), (4, None)))
    (8,8):(1@0,1@1)
    """
    if isinstance(tiler, tuple) and isinstance(shape, tuple):
        tilers = (*tiler, *[None] * (len(shape) - len(tiler)))
        return joined(
            tiled_coordinates(mode, each, (*path, k))
            for k, (mode, each) in enumerate(zip(shape, tilers, strict=False))
        )
    if tiler is None and isinstance(shape, tuple):
        return joined(tiled_coordinates(mode, None, (*path, k)) for k, mode in enumerate(shape))
    return Layout(product(shape), E(*path) if path else 1)


# ------------------------------------------------------------------------------- two halves


def logical(name: str, operation: Halving, layout: Layout, tiler: Tiler) -> Layout:
    """The halves of each mode together; None, and modes beyond the tilers, stay as they are."""
    if tiler is None:
        return layout
    if isinstance(tiler, tuple):
        return by_mode(name, layout, tiler, partial(logical, name, operation), keep_others=True)
    return operation(layout, tiler_layout(tiler))


def zipped(name: str, operation: Halving, layout: Layout, tiler: Tiler) -> Layout:
    """The first halves in mode 0, the second in mode 1."""
    return joined(_halves(name, operation, layout, tiler))


def tiled(name: str, operation: Halving, layout: Layout, tiler: Tiler) -> Layout:
    """The first halves in mode 0, each of the second in a mode of its own."""
    first, second = _halves(name, operation, layout, tiler)
    return joined([first, *second])


def flat(name: str, operation: Halving, layout: Layout, tiler: Tiler) -> Layout:
    """Each half in a mode of its own."""
    first, second = _halves(name, operation, layout, tiler)
    return joined([*first, *second])


def _halves(name: str, operation: Halving, layout: Layout, tiler: Tiler) -> tuple[Layout, Layout]:
    """The first halves, and the second, gathered along the tuples of `tiler`."""
    if tiler is None:
        return layout, Layout(1, 0)
    if not isinstance(tiler, tuple):
        first, second = operation(layout, tiler_layout(tiler))
        return first, second
    modes = _modes_for(name, layout, tiler)
    pairs = [_halves(name, operation, *pair) for pair in zip(modes, tiler, strict=False)]
    firsts, seconds = [first for first, _ in pairs], [second for _, second in pairs]
    return joined(firsts), joined([*seconds, *modes[len(tiler) :]])
