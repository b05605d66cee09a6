"""What `explain` writes of the tile of a block and the part of a thread.

>>> from layouts import Layout, explain, local_tile
>>> print(explain(local_tile, Layout((8, 8), (8, 1)), (4, 4), (1, 0)).lines[-2])
the tile is (4,4):(8,1); at (1,0) of (2,2):(32,4) it starts at 32
"""

from __future__ import annotations

from collections.abc import Callable
from operator import xor
from typing import Any

from ..algebra.divide import zipped_divide
from ..algebra.partition import get_flat_coord, local_partition, local_tile
from ..algebra.slice import shown
from ..values.layout import Layout, make_identity_layout
from ..values.modes import has_xor_strides
from ..values.swizzle import ComposedLayout
from ..values.symbols import free_symbols
from ..values.tuples import added, is_int, leaves, size, text
from .checks import check_values
from .steps import Lines, explains, substep
from .views import Views, drawable, in_place, index_at, shows


@explains(local_tile)
def _local_tile(lines: Lines, result: Any, layout: Any, tiler: Any, at: Any, *proj: Any) -> None:
    if proj or isinstance(layout, ComposedLayout):
        lines.append(f"as zipped_divide of {_without_swizzle(layout)}, at {shown(at)}")
        return
    divided = substep(lines, zipped_divide, layout, tiler)
    if result is None or divided is None:
        return
    tile, rest = divided
    lines.append(f"the tile is {tile}; at {shown(at)} of {rest} it starts at {text(result.offset)}")
    if None not in leaves(at):
        _check_part(lines, "offset + tile(t) == Z(t, c)", divided, rest(at), tile, result)


@explains(local_partition)
def _local_partition(
    lines: Lines, result: Any, layout: Any, tile: Any, index: Any, *proj: Any
) -> None:
    if proj or result is None or not is_int(index) or isinstance(layout, ComposedLayout):
        lines.append(f"as zipped_divide of {_without_swizzle(layout)}, for thread {text(index)}")
        return
    shape = tuple(map(size, tile))
    coord = get_flat_coord(tile, index)
    lines.append(f"thread {index} of {tile} is at {text(coord)}")
    threads, rest = divided = substep(lines, zipped_divide, layout, shape)
    start = threads(coord)
    lines.append(
        f"its part is {rest}, from {text(start)} on, the offset of {text(coord)} in {threads}"
    )
    _check_part(lines, "offset + part(r) == Z(t, r)", divided, start, rest, result)


def _check_part(
    lines: Lines, formula: str, divided: Layout, start: Any, part: Any, result: Any
) -> None:
    """Compare a part of `divided`, which starts at `start`, with the result."""
    if not isinstance(divided, Layout) or free_symbols((divided, start)):
        return
    plus = xor if has_xor_strides(divided) else added
    check_values(
        lines,
        formula,
        lambda i: plus(result.offset, result.layout(i)),
        lambda i: plus(start, part(i)),
        size(part),
    )


def _without_swizzle(layout: Any) -> str:
    if isinstance(layout, ComposedLayout):
        return f"{layout.outer}, before its swizzle"
    return text(layout)


def _shown(op: Callable[..., Any]) -> None:
    """Register the views of an operation that gives a part: L with the part in colour, and R."""

    @shows(op)
    def views(result: Any, layout: Any, *arguments: Any) -> Views | None:
        if not drawable(layout):
            return None
        part = op(make_identity_layout(layout.shape), *arguments)

        def elements(cell: int) -> tuple[int, ...]:
            return index_at(added(part.offset, part.layout(cell)), layout.shape)

        return in_place(layout, result, elements)


_shown(local_tile)
_shown(local_partition)
