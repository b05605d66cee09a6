"""The smallest swizzle that frees given accesses of bank conflicts, or a proof that there is none.

One matrix of ldmatrix is eight rows of 16 bytes.  In a tile whose rows hold s vectors of 16 bytes,
s = 1, 2, 4 ... 32, it needs ``S<min(log2 s, 3), 4, max(3, log2 s)>`` on bytes:

>>> from layouts import Layout, wavefronts
>>> for k in range(6):
...     print(2**k, swizzle_for(Layout(8, 16 * 2**k), ["ldmatrix.x1"], unit=8).swizzle)
1 S<0,4,3>
2 S<1,4,3>
4 S<2,4,3>
8 S<3,4,3>
16 S<3,4,4>
32 S<3,4,5>

The shift is at least 3 because a wavefront moves eight vectors of 16 bytes.  Some texts give the
shift log2 s; for s = 2 and 4 it then reads the wrong bits of the row, and two rows conflict:

>>> for s, shift in ((2, 1), (4, 2)):
...     swizzled = ComposedLayout(Swizzle(shift, 4, shift), 0, Layout(8, 16 * s), unit=8)
...     print(wavefronts(swizzled).counted())
2 wavefronts instead of 1
2 wavefronts instead of 1
"""

from __future__ import annotations

from typing import Any

from ..proof.prove import Proof
from ..values.swizzle import ComposedLayout, Swizzle
from ..values.value import Report
from .banks import BankReport, banks
from .no_swizzle import NoSwizzle
from .padding import Accesses, Padding, padding_for, tile_and_accesses

__all__ = ["SwizzleChoice", "swizzle_for"]


class SwizzleChoice(Report):
    """The smallest swizzle that frees the accesses, or the proof that there is none.

    If there is one, the choice is true: `layout` is the swizzled tile, `reports` are the accesses
    to it, and `proofs` that each is free of conflicts.  If there is none, the choice is false:
    `swizzle` and `layout` are None, `proofs` holds the proof of that, and `padding` is the best
    padding, or None.
    """

    __slots__ = __match_args__ = ("swizzle", "layout", "reports", "proofs", "padding")
    swizzle: Swizzle | None
    layout: ComposedLayout | None
    reports: tuple[BankReport, ...]
    proofs: tuple[Proof, ...]
    padding: Padding | None

    def __init__(
        self,
        swizzle: Swizzle | None,
        layout: ComposedLayout | None,
        reports: tuple[BankReport, ...],
        proofs: tuple[Proof, ...],
        padding: Padding | None = None,
    ) -> None:
        self._set(swizzle, layout, reports, proofs, padding)

    def __bool__(self) -> bool:
        return self.swizzle is not None

    def __str__(self) -> str:
        if self.swizzle is not None:
            return "\n".join((f"{self.layout}", *(f"  {report}" for report in self.reports)))
        instead = "no padding frees them" if self.padding is None else f"instead, {self.padding}"
        return f"{self.proofs[0]}\n  {instead}"


def swizzle_for(
    layout: Any, accesses: Accesses, unit: int | None = None, vector_bytes: int | None = None
) -> SwizzleChoice:
    """The smallest swizzle of `layout` that makes all `accesses` free of bank conflicts.

    `layout` is a tile; a swizzle that it already has is ignored.  `accesses` is one `Access`, or a
    list of accesses as in `banks`, and `unit` is the bits of one offset of a layout that has no
    unit of its own (default 16).  The swizzle counts in this unit, and moves `vector_bytes` as a
    whole, by default the widest access, so every aligned access of the tile stays aligned and
    contiguous.  The smallest swizzle has the fewest bits, then the smallest shift; one of 0 bits
    says that none is needed.

    With fewer `vector_bytes` more swizzles are tried: these keep together what each lane accesses
    at the addresses given, but may split as many bytes elsewhere in the tile.

    Raises `LayoutError` if an access cannot be made under any swizzle.

    >>> from layouts import Access, Layout
    >>> for columns in (32, 64, 128):               # rows of 64, 128 and 256 bytes, of 16 bits
    ...     tile = Layout((64, columns), (columns, 1))
    ...     lanes = Layout((16, 2), (1, 64 * 8))
    ...     print(swizzle_for(tile, [Access("ldmatrix.x4", lanes)]).layout)
    S<2,3,3> o 0 o (64,32):(32,1)
    S<3,3,3> o 0 o (64,64):(64,1)
    S<3,3,4> o 0 o (64,128):(128,1)
    >>> print(swizzle_for(Layout(32, 6), ["ld.shared.b32", "st.shared.v4.b32"]))
    Traceback (most recent call last):
    layouts.errors.LayoutError: lane 1 accesses 16 bytes at byte 12 (offsets in elements of 16 \
bits): an address must be a multiple of the bytes accessed
    """
    plain, unit, wanted = tile_and_accesses(layout, accesses, unit)
    answer = NoSwizzle(plain, wanted, unit, vector_bytes).decide()
    if answer.counterexample is None:
        return SwizzleChoice(None, None, (), (answer,), padding_for(plain, wanted, unit))
    swizzle = answer.counterexample.index
    swizzled = ComposedLayout(swizzle, 0, plain, unit)
    reports = tuple(banks(swizzled, access) for access in wanted)
    proofs = tuple(report.proof() for report in reports)
    return SwizzleChoice(swizzle, swizzled, reports, proofs)
