"""The padding that frees given accesses of bank conflicts and takes the least memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from ..algebra.injectivity import collision
from ..errors import LayoutError
from ..values.layout import Layout, cosize
from ..values.swizzle import ComposedLayout, Swizzle
from ..values.tuples import is_int, leaves, map_leaves
from ..values.unit import in_units
from ..values.value import Report
from .banks import Access, BankReport, banks
from .byte_addresses import byte_unit
from .facts import WAVEFRONT_BYTES
from .instructions import Instruction
from .wavefronts import wavefronts

__all__ = ["Accesses", "Padding", "padding_for", "tile_and_accesses"]

#: One access to a tile, or several; of an instruction, the tile's layout itself takes the lanes to
#: offsets.
Accesses: TypeAlias = Access | Iterable[Access | str | int | Instruction]


class Padding(Report):
    """A layout with `by` units left unused after every `pitch` units, and the accesses to it."""

    __slots__ = __match_args__ = ("layout", "pitch", "by", "unit", "reports")
    layout: Layout
    pitch: int
    by: int
    unit: int
    reports: tuple[BankReport, ...]

    def __init__(
        self, layout: Layout, pitch: int, by: int, unit: int, reports: tuple[BankReport, ...]
    ) -> None:
        self._set(layout, pitch, by, unit, reports)

    @property
    def bytes(self) -> int:
        """Bytes of shared memory of the padded tile."""
        return int(cosize(self.layout)) * self.unit // 8

    def __str__(self) -> str:
        pad = f"pad every {self.pitch} by {self.by}" if self.by else "no padding needed"
        taken = f"{self.bytes} bytes of shared memory"
        return f"{pad}: {self.layout}, {taken} ({in_units(self.unit)})"


def padding_for(layout: Any, accesses: Accesses, unit: int | None = None) -> Padding | None:
    """The padding of `layout` that frees all `accesses` and takes the least memory, or None.

    `layout`, `accesses` and `unit` are as in `swizzle_for`.  A candidate leaves some units unused
    after every `pitch` units, where `pitch` is a stride.  They come in steps of the widest access,
    and are fewer than 128 bytes, after which the banks repeat.

    Raises `LayoutError` if an access cannot be made.

    >>> print(padding_for(Layout((64, 64), (64, 1)), [Access(16, Layout(8))]))
    pad every 64 by 8: (64,64):(72,1), 9200 bytes of shared memory (offsets in elements of 16 bits)
    """
    plain, unit, wanted = tile_and_accesses(layout, accesses, unit)
    widest = max(access.instruction.width for access in wanted)
    step = max(widest * 8 // unit, 1)
    pitches = sorted({d for _, d in plain.modes if d >= step and d % step == 0})
    reports = _free(plain, wanted, unit)
    if reports is not None and collision(plain) is None:
        return Padding(plain, pitches[0] if pitches else int(cosize(plain)), 0, unit, reports)
    found: list[Padding] = []
    for pitch in pitches:
        for by in range(step, WAVEFRONT_BYTES * 8 // unit, step):
            padded = _padded(plain, pitch, by)
            reports = None if padded is None else _free(padded, wanted, unit)
            if padded is not None and reports is not None:
                found.append(Padding(padded, pitch, by, unit, reports))
                break
    return min(found, key=lambda padding: padding.bytes, default=None)


def tile_and_accesses(
    layout: Any, accesses: Accesses, unit: int | None
) -> tuple[Layout, int, tuple[Access, ...]]:
    """The tile without its swizzle, the bits of its unit, and the accesses, each an `Access`.

    Raises `LayoutError` if one of them is something else, or if an access cannot be made.
    """
    unit = byte_unit(layout, unit)
    if isinstance(layout, ComposedLayout):
        if not isinstance(layout.inner, Swizzle) or layout.offset != 0:
            raise LayoutError(f"{layout}: give the Layout of a tile, without an offset")
        layout = layout.outer
    numbers = leaves((layout.shape, layout.stride)) if isinstance(layout, Layout) else (layout,)
    if not all(map(is_int, numbers)):
        raise LayoutError(f"{layout!r}: give the Layout of a tile of integer extents and strides")
    if isinstance(accesses, Access):
        accesses = (accesses,)
    try:
        given = None if isinstance(accesses, str) else tuple(accesses)
    except TypeError:  # of an array of no modes, too, which is Iterable
        given = None
    if given is None:
        example = 'such as [Access("ldmatrix.x4", lanes)]'
        raise LayoutError(f"{layout}: accesses {accesses!r} must be a list, {example}")
    wanted = tuple(a if isinstance(a, Access) else Access(a) for a in given)
    if not wanted:
        raise LayoutError(f"{layout}: give at least one access that is to be free of conflicts")
    for access in wanted:  # what no swizzle or padding can mend raises at once
        wavefronts(access.addresses(layout, unit), access.instruction, unit)
    return layout, unit, wanted


def _padded(layout: Layout, pitch: int, by: int) -> Layout | None:
    """`layout` with `by` more units after every `pitch`; None if a mode crosses a pitch."""
    if any(d % pitch for _, d in layout.modes if d >= pitch):
        return None
    if sum((s - 1) * d for s, d in layout.modes if d < pitch) >= pitch:
        return None
    stride = map_leaves(lambda d: d + d // pitch * by, layout.stride)
    return Layout(layout.shape, stride)


def _free(layout: Layout, accesses: tuple[Access, ...], unit: int) -> tuple[BankReport, ...] | None:
    """The reports of `accesses` to `layout`, or None if one has conflicts."""
    reports = []
    for access in accesses:
        reports.append(banks(layout, access, unit=unit))
        if not reports[-1].conflict_free:
            return None
    return tuple(reports)
