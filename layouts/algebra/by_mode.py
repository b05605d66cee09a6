"""An operation that makes two halves of a layout and a tiler, mode by mode, and gathers them.

logical   ((a, b), (a, b), ...)
zipped    ((a, a, ...), (b, b, ...))
tiled     ((a, a, ...), b, b, ...)
flat      (a, a, ..., b, b, ...)

Of a divide the halves are (tile, rest), of a product (block, copies).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from ..values.layout import Layout, joined
from .composition import Tiler, by_mode, modes_for, tiler_layout

__all__ = ["Halving", "flat", "logical", "tiled", "zipped"]

#: What makes the halves of a layout and one tiler: a layout of two modes.
Halving: TypeAlias = Callable[[Layout, Layout], Layout]


def logical(name: str, operation: Halving, layout: Layout, tiler: Tiler) -> Layout:
    """The halves of each mode together; None, and modes beyond the tilers, stay as they are."""
    if tiler is None:
        return layout
    if isinstance(tiler, tuple):
        return by_mode(name, layout, tiler, partial(logical, name, operation), keep_rest=True)
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
    modes = modes_for(name, layout, tiler)
    pairs = [_halves(name, operation, *pair) for pair in zip(modes, tiler, strict=False)]
    firsts, seconds = [first for first, _ in pairs], [second for _, second in pairs]
    return joined(firsts), joined([*seconds, *modes[len(tiler) :]])
