"""The unit of a layout: the bits that one offset counts, 8 for bytes, 16 for half elements.

The shape and the strides do not say it, and what an access costs depends on it.  One rule holds
wherever it matters:

    a layout that has a unit (`ComposedLayout.unit`) is in that unit
    else the argument `unit` says it
    else it is `DEFAULT_UNIT`

Every answer that depends on the unit names it, as `in_units` does.
"""

from __future__ import annotations

from typing import Any

from ..errors import LayoutError
from .tuples import is_int

__all__ = ["BYTE", "DEFAULT_UNIT", "checked_unit", "in_units", "unit_of"]

#: Bits of a byte, the unit of addresses.
BYTE = 8

#: Bits of one offset where nothing says them: 16-bit elements.
DEFAULT_UNIT = 16


def unit_of(layout: Any, given: int | None = None) -> int:
    """The bits of one offset of `layout`, where the argument `unit` is `given`.

    Raises `LayoutError` unless `given` is None, the layout's own unit, or a positive integer for a
    layout without one.

    >>> from layouts import ComposedLayout, Layout, Swizzle
    >>> tile = ComposedLayout(Swizzle(3, 4, 3), 0, Layout((8, 64), (64, 1)), unit=8)
    >>> unit_of(tile), unit_of(Layout(8)), unit_of(Layout(8), 32)
    (8, 16, 32)
    >>> unit_of(tile, 32)
    Traceback (most recent call last):
    layouts.errors.LayoutError: unit 32 bits: S<3,4,3> o 0 o (8,64):(64,1) has offsets in bytes: \
omit unit, or convert the layout with recast(layout, 8, 32)
    """
    own = getattr(layout, "unit", None)
    if given is None:
        return DEFAULT_UNIT if own is None else own
    given = checked_unit(given)
    if own not in (None, given):
        raise LayoutError(
            f"unit {given} bits: {layout} has {in_units(own)}: omit unit, or convert the layout "
            f"with recast(layout, {own}, {given})"
        )
    return given


def checked_unit(unit: Any) -> int:
    """`unit`, if it is a positive number of bits; raises `LayoutError` if not.

    >>> checked_unit(16)
    16
    """
    if type(unit) is int and unit >= 1:
        return unit
    if not is_int(unit) or unit < 1:
        raise LayoutError(f"unit {unit!r}: it must be the bits of one offset, at least 1")
    return int(unit)


def in_units(unit: int) -> str:
    """What an offset of `unit` bits counts, in words.

    >>> in_units(8), in_units(16)
    ('offsets in bytes', 'offsets in elements of 16 bits')
    """
    return "offsets in bytes" if unit == BYTE else f"offsets in elements of {unit} bits"
