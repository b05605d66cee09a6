"""Tables: a layout, layouts side by side, the threads that hold a tile."""

from __future__ import annotations

from typing import Any

from ..errors import LayoutError
from ..hardware.facts import ACCESS_BYTES, PHASE_LANES, WARP
from ..hardware.wavefronts import wavefronts
from ..tiled.tensor import Tensor
from ..values.layout import Layout
from ..values.swizzle import ComposedLayout, Swizzle
from ..values.tuples import is_int, rank, size
from ..values.unit import in_units, unit_of
from .cells import Panel, Table
from .elements import Elements
from .panels import (
    LIMIT,
    Limits,
    Scale,
    asks_for_banks,
    blocks_of,
    check_drawable,
    check_integer_extents,
    panels_of,
)

__all__ = ["compare", "notebook", "scale_of", "table"]

#: Rows, and columns, of a panel that a notebook draws.
NOTEBOOK_LIMIT = 64


def table(
    layout: Layout | ComposedLayout | Swizzle | Tensor,
    unit: int | None = None,
    show: str = "offset",
    banks: int | None = None,
    limit: int | None = LIMIT,
) -> Table:
    """`layout` as a table: mode 0 down, mode 1 across, one panel for each index of further modes.

    A layout with one mode is drawn as one row.  Of a `Tensor`, cells show the elements.  Of a
    swizzle, rows count the bits that it reads, and columns those that it changes.

    `unit`   bits of one offset of a layout that has no unit of its own (default 16): a composed
             layout may have one, and so have the elements of a tensor
    `show`   what a cell shows: the ``"offset"`` or the element, its ``"byte"``, or its ``"bank"``
             of 4 bytes
    `banks`  bytes of one colour, by default 16: the colour of a cell is ``byte / banks % 8``

    The colour is ``offset % 8`` if nothing asks for banks: the layout has no swizzle and no unit,
    and no argument is given.

    `limit`  rows and columns of a panel that are drawn, and `limit` × `limit` cells in all, in at
             most 8 panels; None draws all of a panel.  Notes say what is not drawn.

    Raises `LayoutError` if an extent is a symbol, if `unit` is not that of the layout, or
    if an argument has another value.

    >>> print(table(Layout((2, 4), (4, 1))))
    (2,4):(4,1)
    offsets
    <BLANKLINE>
         0  1  2  3
       ┌────────────
     0 │ 0  1  2  3
     1 │ 4  5  6  7
    >>> from layouts import make_identity_tensor
    >>> print(table(make_identity_tensor((2, 3))))
    (0,0) o (2,3):(1@0,1@1)
    coordinates
    <BLANKLINE>
             0      1      2
       ┌─────────────────────
     0 │ (0,0)  (0,1)  (0,2)
     1 │ (1,0)  (1,1)  (1,2)
    """
    if isinstance(layout, Tensor):
        elements = Elements(layout, unit, show, banks)
        panels = panels_of(layout.layout, repr(layout), (), elements, Limits(limit))
        return _drawn(panels, elements, ())
    if isinstance(layout, Swizzle):
        layout = blocks_of(layout)
    scale = scale_of(layout, unit, show, banks)
    panels = panels_of(layout, str(layout), (), scale, Limits(limit))
    return _drawn(panels, scale, ((str(layout), layout),))


def compare(
    *layouts: Layout | ComposedLayout,
    unit: int | None = None,
    show: str = "offset",
    banks: int | None = None,
    limit: int | None = LIMIT,
    **named: Layout | ComposedLayout,
) -> Table:
    """Layouts side by side, each with the wavefronts of the same read down its first column.

    ``compare(naive=A, padded=B, swizzled=C)`` shows the names too.  The lanes of one phase read the
    column, each the widest vector to which the rows of all layouts are aligned.  All layouts have
    one `unit`, and share the cells of `limit`; the other arguments are those of `table`.

    Raises `LayoutError` as `table` does, and if the layouts have different units.

    >>> from layouts import Swizzle
    >>> naive, padded = Layout((8, 64), (64, 1)), Layout((8, 64), (72, 1))
    >>> for panel in compare(naive, padded, Swizzle(3, 3, 3) @ naive).panels:
    ...     print(panel.title, "|", *panel.notes)
    (8,64):(64,1) | 8 × 16 bytes down a column: 8 wavefronts instead of 1
    (8,64):(72,1) | 8 × 16 bytes down a column: 1 wavefront
    S<3,3,3> o 0 o (8,64):(64,1) | 8 × 16 bytes down a column: 1 wavefront
    """
    names = (*(("", layout) for layout in layouts), *named.items())
    if not names:
        raise LayoutError("compare takes layouts: compare(naive=A, padded=B, swizzled=C)")
    for _, layout in names:
        check_drawable(layout)
    scale = Scale(_common_unit([layout for _, layout in names], unit), show, banks)
    limits = Limits(limit, len(names))
    notes = _column_read([_first_column(layout, scale.unit) for _, layout in names])
    panels: list[Panel] = []
    for (name, layout), lines in zip(names, notes, strict=True):
        title = f"{name}: {layout}" if name else str(layout)
        panels += panels_of(layout, title, lines, scale, limits)
    return _drawn(tuple(panels), scale, tuple((name or str(one), one) for name, one in names))


def scale_of(
    layout: Layout | ComposedLayout,
    unit: int | None = None,
    show: str = "offset",
    banks: int | None = None,
    start: Any = 0,
) -> Scale:
    """The scale of a table of `layout` alone; `start` is added to its offsets."""
    banked = asks_for_banks(layout, unit, show, banks)
    return Scale(unit_of(layout, unit), show, banks, banked, start)


def _common_unit(layouts: list[Layout | ComposedLayout], given: int | None) -> int:
    """The unit of layouts that are drawn on one scale: that of those that have one."""
    with_unit = [layout for layout in layouts if getattr(layout, "unit", None) is not None]
    units = sorted(set(map(unit_of, with_unit)))
    if len(units) > 1:
        raise LayoutError(
            f"compare: the layouts have {' and '.join(map(in_units, units))}; convert them to one "
            f"unit with recast(layout, old_bits, new_bits)"
        )
    return unit_of((with_unit or layouts)[0], given)


def _first_column(layout: Layout | ComposedLayout, unit: int) -> list[int]:
    """The bits at which the first rows of the first column start; [] if there is no such column."""
    if rank(layout) != 2:
        return []
    check_integer_extents(layout)
    offsets: list[Any] = [layout(row, 0) for row in range(min(WARP, size(layout, 0)))]
    return [offset * unit for offset in offsets] if all(map(is_int, offsets)) else []


def _column_read(columns: list[list[int]]) -> list[tuple[str, ...]]:
    """For each column the wavefronts of one read, the same for all, as notes.

    Where rows of one column allow less than those of another, a note says so.
    """
    read = [column for column in columns if len(column) > 1]
    count, width = _widest(read)
    most = max([_widest([column])[1] for column in read], default=0)

    def note(column: list[int]) -> tuple[str, ...]:
        if len(column) < 2 or not width:
            return ()
        found = wavefronts([bit // 8 for bit in column[:count]], width)
        read = f"{width} {'byte' if width == 1 else 'bytes'}"
        lines = f"{count} × {read} down a column:", found.counted()
        narrow = _widest([column])[1] == width < most
        return (*lines, f"rows are aligned to {read} only") if narrow else lines

    return list(map(note, columns))


def _widest(columns: list[list[int]]) -> tuple[int, int]:
    """The lanes of a phase and the bytes of a lane of the widest read that all columns allow."""
    for width in reversed(ACCESS_BYTES):
        count = min([PHASE_LANES[width], *map(len, columns)])
        if all(bit % (8 * width) == 0 for column in columns for bit in column[:count]):
            return count, width
    return 0, 0


def _drawn(
    panels: tuple[Panel, ...],
    scale: Scale,
    layouts: tuple[tuple[str, Layout | ComposedLayout], ...],
) -> Table:
    """The table; if all offsets are coordinates, there are no units and no colours."""
    coloured = any(c is not None for panel in panels for row in panel.cells for _, c in row)
    legend, colours = (scale.legend(), scale.colours()) if coloured else ("coordinates", "")
    return Table(panels, legend, colours, layouts, scale.unit)


def notebook(value: Any) -> str | None:
    """The HTML that a notebook shows for a layout, at most 64 x 64 cells; None without a picture.

    >>> notebook(Layout((2, 2)))[:18], notebook("no layout")
    ('<div style="font:1', None)
    """
    try:
        return table(value, limit=NOTEBOOK_LIMIT).html()
    except LayoutError:
        return None
