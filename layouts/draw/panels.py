"""From a layout to the panels of a table: what a cell shows, and how many cells are drawn."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from ..errors import LayoutError, brief
from ..hardware.facts import BANK_BYTES, BANKS
from ..hardware.fragment import Drawn
from ..values.layout import Layout, make_layout
from ..values.swizzle import ComposedLayout, Swizzle, outer_layout
from ..values.symbols import GIVE_VALUES
from ..values.tuples import IntTuple, added, idx2crd, is_int, is_one_of, leaves, size, text
from ..values.unit import in_units
from .cells import COLOURS, Cell, Panel

__all__ = [
    "BANK_GROUP_BYTES",
    "LIMIT",
    "Limits",
    "Scale",
    "asks_for_banks",
    "blocks_of",
    "check_drawable",
    "check_integer_extents",
    "panel_of",
    "panels_of",
]

#: Bytes of a group of four banks: the widest access of a lane, and what a swizzle keeps together.
BANK_GROUP_BYTES = 4 * BANK_BYTES

#: Rows, and columns, of a panel that are drawn by default; all panels together draw LIMIT * LIMIT
#: cells at most.
LIMIT = 128

#: The largest limit: a million cells.
LARGEST_LIMIT = 1024

#: Panels that are drawn for the modes beyond the second.
MOST_PANELS = 8

#: What a cell can show of an offset → the legend.
LEGENDS = {
    "offset": "{offsets}",
    "byte": "byte offsets; the layout has {offsets}",
    "bank": "banks of 4 bytes; the layout has {offsets}",
}


class Scale:
    """What a cell shows of an offset, and its colour.

    `unit`    bits of one offset
    `show`    a key of `LEGENDS`
    `banks`   bytes of one colour, which is ``byte / banks % 8``; 16 by default
    `banked`  whether colours are those of banks; else the colour is ``offset % 8``, and the unit
              does not matter
    `start`   what is added to each offset

    Raises `LayoutError` if `unit` or `banks` is not a positive integer, or `show` not a key.
    """

    def __init__(
        self, unit: int, show: str, banks: int | None, banked: bool = True, start: Any = 0
    ) -> None:
        self.unit, self.show, self.banked, self.start = unit, show, banked, start
        self.banks = BANK_GROUP_BYTES if banks is None else banks
        for name, value in (("unit", self.unit), ("banks", self.banks)):
            if not is_int(value) or value < 1:
                raise LayoutError(f"{name} {value!r}: it must be an integer of at least 1")
        if not is_one_of(show, LEGENDS):
            raise LayoutError(f"show {show!r}: it must be one of {', '.join(LEGENDS)}")

    def cell(self, offset: Any) -> Cell:
        """The cell of an offset; a coordinate, or an offset with symbols, has no colour.

        >>> Scale(16, "bank", 16).cell(72), Scale(16, "offset", None, banked=False).cell(11)
        (('4', 1), ('11', 3))
        """
        at = added(self.start, offset) if self.start else offset
        if not is_int(at):
            return text(at) if isinstance(at, tuple) else str(at), None
        if not self.banked:
            return str(at), at % len(COLOURS)
        byte = at * self.unit // 8
        if self.show == "offset":
            shown = at
        else:
            shown = byte if self.show == "byte" else byte // BANK_BYTES % BANKS
        return str(shown), byte // self.banks % len(COLOURS)

    def legend(self) -> str:
        """What the numbers count."""
        return LEGENDS[self.show].format(offsets=in_units(self.unit)) if self.banked else "offsets"

    def colours(self) -> str:
        """What the colours stand for."""
        if self.banked and self.banks == BANK_GROUP_BYTES:
            return "colour = group of 4 banks:"
        if not self.banked or 8 * self.banks == self.unit:  # a colour for each element
            return f"colour = offset mod {len(COLOURS)}:"
        return f"colour = byte / {self.banks} mod {len(COLOURS)}:"


def asks_for_banks(
    layout: Layout | ComposedLayout, unit: int | None, show: str, banks: int | None
) -> bool:
    """Whether a table of `layout` shows banks: it has a swizzle or a unit, or an argument is given.

    >>> [asks_for_banks(Layout(8), unit, "offset", None) for unit in (None, 32)]
    [False, True]
    """
    given = unit is not None or not is_one_of(show, ("offset",)) or banks is not None
    swizzled = isinstance(layout, ComposedLayout) and isinstance(layout.inner, Swizzle)
    return given or swizzled or getattr(layout, "unit", None) is not None


class Limits:
    """How many rows, columns and panels are drawn: at most `limit` × `limit` cells for all layouts.

    None draws all of a panel.  Raises `LayoutError` unless `limit` is None or 1 to 1024.
    """

    def __init__(self, limit: int | None, layouts: int = 1) -> None:
        if limit is not None and not (is_int(limit) and 1 <= limit <= LARGEST_LIMIT):
            raise LayoutError(
                f"limit {limit}: it must be an integer from 1 to {LARGEST_LIMIT}, or None for all"
            )
        self.limit = limit
        self.cells = None if limit is None else max(limit * limit // layouts, 1)

    def of_panel(self, rows: int, columns: int) -> tuple[int, int]:
        """The rows and columns of a panel that are drawn: the longer side is halved until it fits.

        >>> Limits(128).of_panel(200, 4), Limits(128, 3).of_panel(4096, 4096)
        ((128, 4), (64, 64))
        """
        if self.limit is None or self.cells is None:
            return rows, columns
        rows, columns = min(rows, self.limit), min(columns, self.limit)
        while rows * columns > self.cells:
            rows, columns = (-(-rows // 2), columns) if rows > columns else (rows, -(-columns // 2))
        return rows, columns

    def of_panels(self, panels: int, rows: int, columns: int) -> int:
        """How many panels of `rows` and `columns` are drawn, at least one."""
        drawn_rows, drawn_columns = self.of_panel(rows, columns)
        fit = MOST_PANELS if self.cells is None else self.cells // (drawn_rows * drawn_columns)
        return min(panels, MOST_PANELS, max(fit, 1))


def panels_of(
    layout: Layout | ComposedLayout,
    title: str,
    notes: tuple[str, ...],
    scale: Scale,
    limits: Limits,
) -> tuple[Panel, ...]:
    """The panels of `layout`: one for each index of the modes beyond the second.

    Raises `LayoutError` unless `layout` is a layout with integer extents.
    """
    check_drawable(layout)
    outer = outer_layout(layout)
    check_integer_extents(outer)
    modes = list(outer) or [Layout(1, 0)]
    if len(modes) == 1:
        domain = make_layout(Layout(1, 0), modes[0])
        shape = (modes[0].shape,)
        return (panel_of(title, notes, domain, lambda _, j: scale.cell(layout(j)), limits, shape),)
    domain = make_layout(*modes[:2])
    extents = [size(mode) for mode in modes[2:]]
    drawn = limits.of_panels(prod(extents), size(domain, 0), size(domain, 1))
    if drawn < prod(extents):
        notes += (f"{drawn} of {prod(extents)} panels",)
    panels: list[Panel] = []
    for index in range(drawn):
        rest = idx2crd(index, tuple(extents))
        name = f"{title} at (_,_,{','.join(map(str, rest))})" if rest else title

        def cell(i: int, j: int, rest: tuple[int, ...] = rest) -> Cell:
            return scale.cell(layout(i, j, *rest))

        panels.append(panel_of(name, notes, domain, cell, limits, outer.shape, rest))
    return tuple(panels)


def panel_of(
    title: str,
    notes: tuple[str, ...],
    domain: Layout,
    cell: Callable[[int, int], Cell],
    limits: Limits,
    shape: IntTuple = (),
    at: tuple[int, ...] = (),
) -> Panel:
    """The panel of ``cell(row, column)`` over the two modes of `domain`; `shape` and `at` are those
    of `Panel`."""
    rows, columns = size(domain, 0), size(domain, 1)
    drawn_rows, drawn_columns = limits.of_panel(rows, columns)
    if (drawn_rows, drawn_columns) != (rows, columns):
        notes += (f"{drawn_rows} x {drawn_columns} of {rows} x {columns} cells",)
    cells = tuple(
        tuple(cell(row, column) for column in range(drawn_columns)) for row in range(drawn_rows)
    )
    ends = _ends(domain[0], drawn_rows), _ends(domain[1], drawn_columns)
    return Panel(title, notes, cells, *ends, shape, at)


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


def blocks_of(swizzle: Swizzle) -> ComposedLayout:
    """The offsets that `swizzle` permutes, as a table shows them: rows count the bits that it
    reads, columns those that it changes.

    >>> print(blocks_of(Swizzle(1, 0, 1)))
    S<1,0,1> o 0 o (2,2):(2,1)
    """
    columns, rows = 1 << abs(swizzle.shift), 1 << swizzle.bits
    domain = Layout((rows, columns), (columns << swizzle.base, 1 << swizzle.base))
    return ComposedLayout(swizzle, 0, domain)


def check_drawable(layout: Any) -> None:
    """Raises `LayoutError` unless `layout` is a layout."""
    if isinstance(layout, Drawn):
        raise LayoutError(f"table of {layout.heading}: print(atom) draws it")
    if not isinstance(layout, (Layout, ComposedLayout)):
        raise LayoutError(f"table of {brief(layout)}: it must be a Layout or a ComposedLayout")


def check_integer_extents(layout: Layout | ComposedLayout) -> None:
    """Raises `LayoutError` if an extent of `layout` is a symbol."""
    symbols = [extent for extent in leaves(layout.shape) if not is_int(extent)]
    if symbols:
        raise LayoutError(f"table of {layout}: the extent {symbols[0]} is a symbol; {GIVE_VALUES}")
