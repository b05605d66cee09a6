"""Lanes to byte addresses: the unit of an offset, bytes as a bit matrix, alignment.

An offset counts units of 8 bits and more (`values.unit`); memory counts bytes.  If the lanes are a
bit matrix onto byte addresses, `wavefronts` and `sectors` count by rank, for every base at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..algebra import gf2
from ..errors import LayoutError, Undecided
from ..values.layout import Layout
from ..values.offsets import all_offsets, steps_of_a_value
from ..values.steps import too_many
from ..values.swizzle import ComposedLayout, layout_for
from ..values.symbols import GIVE_VALUES, free_symbols
from ..values.tuples import is_int, size
from ..values.unit import in_units, unit_of

__all__ = [
    "bit_columns",
    "byte_addresses",
    "byte_columns",
    "byte_unit",
    "check_aligned",
    "check_lanes",
]


def byte_unit(lanes: Any, unit: int | None = None) -> int:
    """The bits of one offset of `lanes`: its own unit, else `unit`, else 16.

    Raises `LayoutError` unless it is 8, 16, 32 ... bits, or if `unit` is not that of `lanes`.
    """
    bits = unit_of(lanes, unit)
    if bits < 8 or bits & (bits - 1):
        raise LayoutError(f"unit {bits} bits: an offset must count 1, 2, 4, 8 ... bytes")
    return bits


def check_lanes(lanes: Layout | ComposedLayout) -> None:
    """Raises `LayoutError` unless `lanes` has integer extents and gives integer offsets."""
    layout_for("the lanes of an access", lanes)
    if not is_int(size(lanes)):
        raise LayoutError(f"{lanes}: its extents must be integers; {GIVE_VALUES}")
    if free_symbols(lanes):
        raise LayoutError(f"{lanes}: its strides must be integers; {GIVE_VALUES}")
    if not is_int(lanes(0)):
        raise LayoutError(f"{lanes} gives coordinates: an access needs offsets in memory")


def byte_addresses(lanes: Layout | ComposedLayout, unit: int) -> list[int]:
    """The byte address of every lane, where one offset has `unit` bits.

    >>> byte_addresses(Layout(4, 8), 16)
    [0, 16, 32, 48]
    """
    if too_many(size(lanes) * (1 + steps_of_a_value(lanes))):
        raise Undecided(
            f"{lanes}: {size(lanes)} lanes are too many to compute their addresses one by one; "
            f"layouts.budget(steps) sets how many may be"
        )
    return [offset * unit // 8 for offset in all_offsets(lanes)]


def byte_columns(lanes: Layout | ComposedLayout, unit: int) -> list[int] | None:
    """The columns of `lanes` as a bit matrix onto byte addresses; None if it is not one.

    >>> byte_columns(Layout(4, 8), 16), byte_columns(Layout(6, 8), 16)
    ([16, 32], None)
    """
    columns = bit_columns(lanes)
    return None if columns is None else [column * unit // 8 for column in columns]


def bit_columns(layout: Layout | ComposedLayout) -> tuple[int, ...] | None:
    """The columns of `layout` as a bit matrix; None if it is not one."""
    try:
        return gf2.matrix(layout)
    except LayoutError:
        return None


def check_aligned(addresses: Iterable[tuple[int, int]], width: int, unit: int) -> None:
    """Raises `LayoutError` at the first (lane, byte address) that is not a multiple of `width`.

    `unit` is the bits of the offsets from which the addresses come, for the message.
    """
    for lane, address in addresses:
        if address % width:
            raise LayoutError(
                f"lane {lane} accesses {width} bytes at byte {address} ({in_units(unit)}): an "
                f"address must be a multiple of the bytes accessed"
            )
