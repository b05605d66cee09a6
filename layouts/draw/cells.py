"""What a picture of a layout shows: panels of cells, each with its words and its hue.

A cell is a pair (words, hue); the hue, 0 to 7 or None, is its group of banks, ``byte / 16 % 8``, or
its thread.  Lines are drawn where a nested mode ends, thicker the further out it is.  The writers,
in `text`, `html`, `svg` and `latex` beside this file, decide nothing more; none of them needs more
than the standard library.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeAlias

from ..errors import LayoutError
from ..hardware.wavefronts import wavefronts
from ..values.layout import Layout, make_layout
from ..values.swizzle import ComposedLayout
from ..values.tuples import idx2crd, is_int, leaves, rank, size, text
from ..values.value import Value

__all__ = ["TINTS", "Cell", "Panel", "Table", "compare", "notebook", "table", "table_tv"]

#: One tint for each hue: Okabe and Ito's palette, which colour-blind readers can tell apart, mixed
#: half and half with white so that black text is read on it.
TINTS = (
    (242, 207, 128),  # orange
    (170, 217, 244),  # sky blue
    (128, 206, 185),  # bluish green
    (247, 241, 160),  # yellow
    (128, 184, 216),  # blue
    (234, 174, 128),  # vermillion
    (229, 188, 211),  # reddish purple
    (204, 204, 204),  # grey
)

#: Bytes of one group of banks: what a lane reads at most, and what a swizzle of tiles moves whole.
GROUP_BYTES = 16

#: Bits of one offset where nothing says it: half elements.
DEFAULT_UNIT = 16

#: Rows, and columns, that a panel shows unless more are asked for; a notebook shows fewer.  All
#: panels together show no more cells than one that is full.
LIMIT, NOTEBOOK_LIMIT = 128, 64

#: The most that may be asked for: a million cells.
LARGEST_LIMIT = 1024

#: Panels for the modes beyond the second.
MOST_PANELS = 8

#: The words of a cell, and its hue.
Cell: TypeAlias = "tuple[str, int | None]"


class Panel(Value):
    """A rectangle of cells: `cells[row][column]`.

    `row_ends[r]` is how many nested modes end below row r, and `column_ends[c]` right of column c.
    """

    __slots__ = __match_args__ = ("title", "notes", "cells", "row_ends", "column_ends")
    title: str
    notes: tuple[str, ...]
    cells: tuple[tuple[Cell, ...], ...]
    row_ends: tuple[int, ...]
    column_ends: tuple[int, ...]

    def __init__(
        self,
        title: str,
        notes: tuple[str, ...],
        cells: tuple[tuple[Cell, ...], ...],
        row_ends: tuple[int, ...],
        column_ends: tuple[int, ...],
    ) -> None:
        self._set(title, notes, cells, row_ends, column_ends)


class Table(Value):
    """A picture: `panels` side by side, under a `legend` that says what is counted.

    It prints as text, coloured in a terminal, and shows itself in a notebook.  `hues` says what the
    eight tints stand for, and is empty where there are none.  `layouts` are those whose offsets, of
    `unit` bits, are drawn, each with its name.
    """

    __slots__ = __match_args__ = ("panels", "legend", "hues", "layouts", "unit")
    panels: tuple[Panel, ...]
    legend: str
    hues: str
    layouts: tuple[tuple[str, Layout | ComposedLayout], ...]
    unit: int

    def __init__(
        self,
        panels: tuple[Panel, ...],
        legend: str,
        hues: str,
        layouts: tuple[tuple[str, Layout | ComposedLayout], ...] = (),
        unit: int = DEFAULT_UNIT,
    ) -> None:
        self._set(panels, legend, hues, layouts, unit)

    def text(self, colour: bool | None = None, width: int | None = None) -> str:
        """The picture as lines of text, cut into blocks of columns where they pass `width`.

        With `colour` cells are tinted; None asks whether standard output is a terminal and NO_COLOR
        is unset.  Without a `width` that of the terminal holds; elsewhere columns are not cut.
        """
        from .text import written

        return written(self, colour, width)

    def html(self) -> str:
        """The picture as an HTML fragment with inline styles alone."""
        from .html import written

        return written(self)

    def svg(self) -> str:
        """The picture as an SVG document; ``data-o`` on a number is the offset it shows."""
        from .svg import written

        return written(self)

    def latex(self) -> str:
        """The picture as a LaTeX document that needs TikZ alone."""
        from .latex import written

        return written(self)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return self.html()


# ------------------------------------------------------------------------------- pictures


def table(
    layout: Layout | ComposedLayout,
    unit: int | None = None,
    show: str = "offset",
    banks: int = GROUP_BYTES,
    limit: int | None = LIMIT,
) -> Table:
    """`layout` as a table: mode 0 down, mode 1 across, a panel for each index of further modes.

    A single mode goes across.  `unit` is the bits of one offset: that of a composed layout, or 16,
    unless given; the table says which.  A cell shows the ``"offset"``, its ``"byte"``, or its
    ``"bank"`` of 4 bytes, and is tinted by ``byte / banks % 8``.  Beyond `limit` rows and columns
    of a panel, `limit` × `limit` cells in all, and 8 panels it says what is left out; None shows
    all of a panel.

    Raises `LayoutError` if an extent is a symbol, or `show`, `unit`, `banks` or `limit` is none of
    these.

    >>> print(table(Layout((2, 4), (4, 1))))
    (2,4):(4,1)
    offsets in elements of 16 bits
    <BLANKLINE>
         0  1  2  3
       ┌────────────
     0 │ 0  1  2  3
     1 │ 4  5  6  7
    """
    own = getattr(layout, "unit", None) or DEFAULT_UNIT
    scale = _Scale(own if unit is None else unit, show, banks)
    panels = _panels(layout, str(layout), (), scale, _Room(limit))
    return _drawn(panels, scale, ((str(layout), layout),))


def compare(
    *layouts: Layout | ComposedLayout,
    unit: int | None = None,
    show: str = "offset",
    banks: int = GROUP_BYTES,
    limit: int | None = LIMIT,
    **named: Layout | ComposedLayout,
) -> Table:
    """Layouts side by side, each with the wavefronts that reading down its first column takes.

    Names are shown: ``compare(naive=A, padded=B, swizzled=C)``.  A column is read by the lanes of
    one phase, as many bytes each as the rows are aligned to.  The unit is one for all of them, and
    they share the cells of `limit`.

    >>> from layouts import Swizzle
    >>> naive, padded = Layout((8, 64), (64, 1)), Layout((8, 64), (72, 1))
    >>> for panel in compare(naive, padded, Swizzle(3, 3, 3) @ naive).panels:
    ...     print(panel.title, "|", *panel.notes)
    (8,64):(64,1) | 8 × 16 bytes down a column: 8 wavefronts, 1 would do
    (8,64):(72,1) | 8 × 16 bytes down a column: 1 wavefront
    S<3,3,3> o 0 o (8,64):(64,1) | 8 × 16 bytes down a column: 1 wavefront
    """
    names = (*(("", layout) for layout in layouts), *named.items())
    if not names:
        raise LayoutError("compare takes layouts: compare(naive=A, padded=B, swizzled=C)")
    for _, layout in names:
        _check_drawable(layout)
    own = (getattr(layout, "unit", None) for _, layout in names)
    units: set[int] = {given for given in own if given is not None}
    if unit is None and len(units) > 1:
        raise LayoutError(
            f"compare: the layouts count units of {' and '.join(map(str, sorted(units)))} bits; "
            f"say which with unit=, or recast them to one"
        )
    scale = _Scale(next(iter(units), DEFAULT_UNIT) if unit is None else unit, show, banks)
    room = _Room(limit, len(names))
    panels: list[Panel] = []
    for name, layout in names:
        title = f"{name}: {layout}" if name else str(layout)
        panels += _panels(layout, title, _column_access(layout, scale.unit), scale, room)
    return _drawn(tuple(panels), scale, tuple((name or str(one), one) for name, one in names))


def _drawn(
    panels: tuple[Panel, ...],
    scale: _Scale,
    layouts: tuple[tuple[str, Layout | ComposedLayout], ...],
) -> Table:
    """The picture; offsets that are coordinates count nothing and have no hues."""
    hued = any(hue is not None for panel in panels for row in panel.cells for _, hue in row)
    legend, hues = (scale.legend(), scale.hues()) if hued else ("coordinates", "")
    return Table(panels, legend, hues, layouts, scale.unit)


def table_tv(layout: Layout | ComposedLayout, shape: Any, limit: int | None = LIMIT) -> Table:
    """Who holds each element of an M x N tile: ``T5 V2`` for thread 5, value 2.

    `layout` takes (thread, value) to an index of the tile, ``m + M * n``, as the thread-value
    layouts of CuTe do.  `shape` is (M, N), modes of which may be nested.  Hues are threads, mod 8.

    Raises `LayoutError` if `layout` has not two modes, or leaves the tile.

    >>> print(table_tv(Layout(((2, 2), 2), ((1, 4), 2)), (4, 2)))
    ((2,2),2):((1,4),2) over (4,2)
    T thread, V value
    <BLANKLINE>
             0      1
       ┌──────────────
     0 │ T0 V0  T2 V0
     1 │ T1 V0  T3 V0
     2 │ T0 V1  T2 V1
     3 │ T1 V1  T3 V1
    """
    if rank(layout) != 2:
        raise LayoutError(
            f"table_tv of {layout}: it must have two modes, (threads, values), and has "
            f"{rank(layout)}"
        )
    tile = Layout(shape) if not isinstance(shape, Layout) else shape
    if rank(tile) != 2:
        raise LayoutError(f"table_tv: the tile {text(tile.shape)} must have two modes, (M, N)")
    holders = _holders(layout, size(tile))
    rows = size(tile, 0)

    def cell(row: int, column: int) -> Cell:
        held = holders[row + rows * column]
        words = " ".join(f"T{thread} V{value}" for thread, value in held[:1])
        more = f" +{len(held) - 1}" if len(held) > 1 else ""
        return words + more, held[0][0] % 8 if held else None

    panel = _panel(f"{layout} over {text(tile.shape)}", (), tile, cell, _Room(limit))
    return Table((panel,), "T thread, V value", "hues: thread mod 8")


def notebook(value: Any) -> str | None:
    """What a notebook shows for a layout, at most 64 x 64 cells; None where it has no picture.

    >>> notebook(Layout((2, 2)))[:18], notebook("no layout")
    ('<div style="font:1', None)
    """
    try:
        return table(value, limit=NOTEBOOK_LIMIT).html()
    except LayoutError:
        return None


def _holders(layout: Layout | ComposedLayout, count: int) -> list[list[tuple[int, int]]]:
    """For each index of a tile of `count` elements, the pairs (thread, value) that hold it."""
    _known(layout)
    holders: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    for thread in range(size(layout, 0)):
        for value in range(size(layout, 1)):
            index = layout(thread, value)
            if not is_int(index) or index >= count:
                raise LayoutError(
                    f"table_tv of {layout}: thread {thread}, value {value} holds element {index}, "
                    f"and the tile has {count}; give the shape of the whole tile"
                )
            holders[index].append((thread, value))
    return holders


# ------------------------------------------------------------------------------- the cells


class _Scale:
    """What the cells show of an offset, and their hue."""

    def __init__(self, unit: int, show: str, banks: int) -> None:
        self.unit, self.show, self.banks = unit, show, banks
        for name, value in (("unit", unit), ("banks", banks)):
            if not is_int(value) or value < 1:
                raise LayoutError(f"{name} {value!r}: it must be an integer of at least 1")
        if show not in SHOWN:
            raise LayoutError(f"show {show!r}: it must be one of {', '.join(SHOWN)}")

    def cell(self, offset: Any) -> Cell:
        """An offset that is a coordinate or holds symbols has no hue."""
        if not is_int(offset):
            return text(offset) if isinstance(offset, tuple) else str(offset), None
        byte = offset * self.unit // 8
        shown = offset if self.show == "offset" else byte if self.show == "byte" else byte // 4 % 32
        return str(shown), byte // self.banks % len(TINTS)

    def legend(self) -> str:
        """What is counted."""
        counted = "bytes" if self.unit == 8 else f"elements of {self.unit} bits"
        return SHOWN[self.show].format(counted=counted)

    def hues(self) -> str:
        """What the tints stand for."""
        if self.banks == GROUP_BYTES:
            return "16-byte groups of banks:"
        return f"byte / {self.banks} mod 8:"


class _Room:
    """How much of a layout is shown: its part of `limit` × `limit` cells; all where it is None."""

    def __init__(self, limit: int | None, layouts: int = 1) -> None:
        if limit is not None and not (is_int(limit) and 1 <= limit <= LARGEST_LIMIT):
            raise LayoutError(
                f"limit {limit}: it must be an integer from 1 to {LARGEST_LIMIT}, or None for all"
            )
        self.limit = limit
        self.cells = None if limit is None else max(limit * limit // layouts, 1)

    def of_panel(self, rows: int, columns: int) -> tuple[int, int]:
        """The rows and columns that are shown of a panel: the longer side is halved until it fits.

        >>> _Room(128).of_panel(200, 4), _Room(128, 3).of_panel(4096, 4096)
        ((128, 4), (64, 64))
        """
        if self.limit is None or self.cells is None:
            return rows, columns
        rows, columns = min(rows, self.limit), min(columns, self.limit)
        while rows * columns > self.cells:
            rows, columns = (-(-rows // 2), columns) if rows > columns else (rows, -(-columns // 2))
        return rows, columns

    def of_planes(self, planes: int, rows: int, columns: int) -> int:
        """How many panels of so many rows and columns are shown, at least one."""
        shown_rows, shown_columns = self.of_panel(rows, columns)
        fit = MOST_PANELS if self.cells is None else self.cells // (shown_rows * shown_columns)
        return min(planes, MOST_PANELS, max(fit, 1))


SHOWN = {
    "offset": "offsets in {counted}",
    "byte": "bytes, of offsets in {counted}",
    "bank": "banks of 4 bytes, of offsets in {counted}",
}


def _panels(
    layout: Layout | ComposedLayout,
    title: str,
    notes: tuple[str, ...],
    scale: _Scale,
    room: _Room,
) -> tuple[Panel, ...]:
    """The panels of `layout`, one for each index of the modes beyond the second."""
    _check_drawable(layout)
    outer = layout.outer if isinstance(layout, ComposedLayout) else layout
    _known(outer)
    modes = list(outer) or [Layout(1, 0)]
    if len(modes) == 1:
        domain = make_layout(Layout(1, 0), modes[0])
        return (_panel(title, notes, domain, lambda _, j: scale.cell(layout(j)), room),)
    domain = make_layout(*modes[:2])
    extents = [size(mode) for mode in modes[2:]]
    shown = room.of_planes(prod(extents), size(domain, 0), size(domain, 1))
    if shown < prod(extents):
        notes += (f"{shown} of {prod(extents)} panels",)
    panels: list[Panel] = []
    for plane in range(shown):
        rest = idx2crd(plane, tuple(extents))
        name = f"{title} at (_,_,{','.join(map(str, rest))})" if rest else title

        def cell(i: int, j: int, rest: tuple[int, ...] = rest) -> Cell:
            return scale.cell(layout(i, j, *rest))

        panels.append(_panel(name, notes, domain, cell, room))
    return tuple(panels)


def _panel(
    title: str,
    notes: tuple[str, ...],
    domain: Layout,
    cell: Callable[[int, int], Cell],
    room: _Room,
) -> Panel:
    rows, columns = size(domain, 0), size(domain, 1)
    shown_rows, shown_columns = room.of_panel(rows, columns)
    if (shown_rows, shown_columns) != (rows, columns):
        notes += (f"{shown_rows} x {shown_columns} of {rows} x {columns} cells",)
    cells = tuple(
        tuple(cell(row, column) for column in range(shown_columns)) for row in range(shown_rows)
    )
    return Panel(title, notes, cells, _ends(domain[0], shown_rows), _ends(domain[1], shown_columns))


def _ends(mode: Layout, count: int) -> tuple[int, ...]:
    """How many nested modes end after each of the first `count` indices of `mode`.

    >>> _ends(Layout((2, 2, 2)), 8)
    (0, 1, 0, 2, 0, 1, 0, 0)
    """
    ends = [0] * count
    step = 1
    for extent in leaves(mode.shape)[:-1]:
        step *= extent
        if step > 1:
            for index in range(step - 1, count - 1, step):
                ends[index] += 1
    return tuple(ends)


def _check_drawable(layout: Any) -> None:
    if not isinstance(layout, (Layout, ComposedLayout)):
        raise LayoutError(f"table of {layout!r}: it must be a Layout or a ComposedLayout")


def _known(layout: Layout | ComposedLayout) -> None:
    symbols = [extent for extent in leaves(layout.shape) if not is_int(extent)]
    if symbols:
        raise LayoutError(
            f"table of {layout}: the extent {symbols[0]} is a symbol; give it a value first"
        )


def _column_access(layout: Layout | ComposedLayout, unit: int) -> tuple[str, ...]:
    """What reading down the first column costs, if that can be said."""
    if rank(layout) != 2:
        return ()
    _known(layout)
    for width, lanes in ((16, 8), (8, 16), (4, 32), (2, 32), (1, 32)):
        count = min(lanes, size(layout, 0))
        offsets: Sequence[Any] = [layout(row, 0) for row in range(count)]
        if count < 2 or not all(map(is_int, offsets)):
            return ()
        if all(offset * unit % (8 * width) == 0 for offset in offsets):
            found = wavefronts([offset * unit // 8 for offset in offsets], width)
            said = f"{found.count} wavefront{'s' * (found.count > 1)}"
            would_do = "" if found.conflict_free else f", {found.ideal} would do"
            return f"{count} × {width} bytes down a column:", f"{said}{would_do}"
    return ()
