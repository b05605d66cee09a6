"""The swizzle, or the padding, that frees given accesses of bank conflicts.

A swizzle acts on the banks of a tile by few of its bits: those that it reads below the top of the
tile's offsets, and those that it changes below 128 bytes; and it must leave alone the bits inside
the widest access.  So there are finitely many to try, and trying all of them is a proof.

Eight rows of s 16-byte pieces, s = 1, 2, 4 ... 32, are what one matrix of ldmatrix reads.  They
need ``S<min(log2 s, 3), 4, max(3, log2 s)>`` on bytes:

>>> for k in range(6):
...     print(2**k, swizzle_for(Layout(8, 16 * 2**k), ["ldmatrix.x1"]).swizzle)
1 S<0,4,3>
2 S<1,4,3>
4 S<2,4,3>
8 S<3,4,3>
16 S<3,4,4>
32 S<3,4,5>

The shift is at least 3 as there are eight pieces in a row of banks: with log2 s, which one reads
elsewhere, the bits of the last rows are not those that are read, and two of them collide:

>>> for s, shift in ((2, 1), (4, 2)):
...     print(wavefronts(ComposedLayout(Swizzle(shift, 4, shift), 0, Layout(8, 16 * s)), 16))
2 wavefronts where 1 would do, at every base: lanes 0 and 4 want different words of one bank
2 wavefronts where 1 would do, at every base: lanes 0 and 4 want different words of one bank
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..errors import LayoutError
from ..proof.certificate import evaluate, stages_of
from ..proof.prove import Counterexample, Proof
from ..values.layout import Layout, cosize
from ..values.swizzle import ComposedLayout, Swizzle
from ..values.tuples import is_int, leaves, map_leaves, size
from ..values.value import Value
from .banks import Access, BankReport, banks
from .instructions import Instruction
from .wavefronts import WAVEFRONT_BYTES, byte_unit, phases, wavefronts

__all__ = ["NoSwizzle", "Padding", "SwizzleChoice", "padding_for", "swizzle_for"]

#: An access, or an instruction of the lanes that the layout takes.
Accesses = Iterable[Access | str | int | Instruction]


class SwizzleChoice(Value):
    """The smallest swizzle that frees the accesses, or that there is none.

    `layout` is the tile under it.  `reports` are the accesses to that, and `proofs` that each is
    free of conflicts.  Without a swizzle `layout` is None, the proof that there is none stands
    alone, and `padding` says what padding does; a choice is true where there is a swizzle.
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
        instead = (
            "no padding after every so many offsets does either"
            if self.padding is None
            else f"instead {self.padding}"
        )
        return f"{self.proofs[0]}\n  {instead}"


def swizzle_for(layout: Any, accesses: Accesses, unit: int | None = None) -> SwizzleChoice:
    """The smallest swizzle of `layout` that makes all `accesses` free of bank conflicts.

    `layout` is a tile, whose own swizzle, if any, is forgotten; `accesses` are as in `banks`.  The
    swizzle counts in the units of `layout`.  It moves whole what the widest access takes, so that
    every aligned access stays aligned and contiguous.  Smallest is of fewest bits; then, of the
    smallest shift; a choice of none at all is of 0 bits.

    Raises `LayoutError` if an access cannot be, whatever the swizzle.

    >>> for columns in (32, 64, 128):               # rows of 64, 128 and 256 bytes, of 16 bits
    ...     tile = Layout((64, columns), (columns, 1))
    ...     lanes = Layout((16, 2), (1, 64 * 8))
    ...     print(swizzle_for(tile, [Access("ldmatrix.x4", lanes)], unit=16).layout)
    S<2,3,3> o 0 o (64,32):(32,1)
    S<3,3,3> o 0 o (64,64):(64,1)
    S<3,3,4> o 0 o (64,128):(128,1)
    >>> print(swizzle_for(Layout(32, 12), ["ld.shared.b32", "st.shared.v4.b32"]))
    Traceback (most recent call last):
    layouts.errors.LayoutError: lane 1 accesses 16 bytes at byte 12: an address must be a multiple \
of the bytes accessed
    """
    plain, unit, wanted = _asked(layout, accesses, unit)
    addresses = [access.addresses(plain, unit) for access in wanted]
    for candidate in _candidates(plain, wanted, unit):
        if all(
            _wavefronts(candidate, where, access, unit).conflict_free
            for access, where in zip(wanted, addresses, strict=True)
        ):
            swizzled = ComposedLayout(candidate, 0, plain, unit)
            reports = tuple(banks(swizzled, access) for access in wanted)
            proofs = tuple(report.proof() for report in reports)
            return SwizzleChoice(candidate, swizzled, reports, proofs)
    none = NoSwizzle(plain, wanted, unit).decide()
    return SwizzleChoice(None, None, (), (none,), padding_for(plain, wanted, unit))


def _asked(layout: Any, accesses: Accesses, unit: int | None) -> tuple[Layout, int, Any]:
    """The layout without its swizzle, its unit, and the accesses as such."""
    unit = byte_unit(layout, unit)
    if isinstance(layout, ComposedLayout):
        if not isinstance(layout.inner, Swizzle) or layout.offset != 0:
            raise LayoutError(f"{layout}: give the Layout of a tile, which is to be swizzled")
        layout = layout.outer
    if not isinstance(layout, Layout) or not all(map(is_int, leaves(layout.stride))):
        raise LayoutError(f"{layout!r}: give the Layout of a tile, of integers")
    wanted = tuple(a if isinstance(a, Access) else Access(a) for a in accesses)
    if not wanted:
        raise LayoutError(f"{layout}: name at least one access that is to be free of conflicts")
    for access in wanted:  # what no swizzle mends is refused at once
        wavefronts(access.addresses(layout, unit), access.instruction, unit)
    return layout, unit, wanted


def _wavefronts(swizzle: Swizzle, addresses: Any, access: Access, unit: int) -> Any:
    return wavefronts(_swizzled(swizzle, addresses), access.instruction, unit)


def _swizzled(swizzle: Swizzle, addresses: Any) -> ComposedLayout:
    if isinstance(addresses, Layout):
        return ComposedLayout(swizzle, 0, addresses)
    return ComposedLayout(ComposedLayout(swizzle, 0, addresses.inner), 0, addresses.outer)


def _candidates(layout: Layout, accesses: tuple[Access, ...], unit: int) -> Iterator[Swizzle]:
    """Every swizzle that can matter, the smallest first; any other does what one of them does.

    Bits from the top of the offsets up are 0 and add nothing where they are read; bits from 128
    bytes up are of no bank, and those of the widest access must stay.
    """
    base = _log2(max(access.instruction.width for access in accesses) * 8 // unit)
    row = _log2(WAVEFRONT_BYTES * 8 // unit)
    top = (cosize(layout) - 1).bit_length()
    yield Swizzle(0, base, 3)
    found = []
    for bits in range(1, row - base + 1):
        for shift in range(bits, max(top - base, bits)):
            for low in range(base, row - bits + 1):
                if low + shift + bits <= top:
                    found.append(Swizzle(bits, low, shift))
            for low in range(base, row - shift - bits + 1):
                found.append(Swizzle(bits, low, -shift))
    yield from sorted(found, key=lambda s: (s.bits, abs(s.shift), s.base, s.shift < 0))


def _log2(n: int) -> int:
    return max(n.bit_length() - 1, 0)


# -------------------------------------------------------------------------- that there is none


class NoSwizzle(Value):
    """No swizzle makes all `accesses` to `layout` free of bank conflicts and keeps them aligned."""

    __slots__ = __match_args__ = ("layout", "accesses", "unit")
    layout: Layout
    accesses: tuple[Access, ...]
    unit: int

    def __init__(self, layout: Layout, accesses: tuple[Access, ...], unit: int) -> None:
        self._set(layout, accesses, unit)

    def __str__(self) -> str:
        named = ", ".join(map(str, self.accesses))
        return f"no swizzle of {self.layout} frees {named} of bank conflicts"

    def decide(self) -> Proof:
        """By trying all that matter; two lanes collide under each."""
        addresses = [access.addresses(self.layout, self.unit) for access in self.accesses]
        collisions = []
        for swizzle in _candidates(self.layout, self.accesses, self.unit):
            found = _collision(swizzle, self.accesses, addresses, self.unit)
            if found is None:
                where = Counterexample(swizzle, (), 0, 0)
                return Proof(self, False, (f"{swizzle} frees them",), where)
            collisions.append((swizzle, *found))
        count = len(collisions)
        reason = (
            f"only {count} swizzles can matter: they move whole what the widest access takes, read "
            f"bits below the largest offset and change bits of the banks; any other does what one "
            f"of these does",
            "under each two lanes want different words of one bank; under none at all, lanes "
            f"{collisions[0][2]} and {collisions[0][3]} of {self.accesses[collisions[0][1]]}",
        )
        certificate = EachCollides(self, tuple(collisions))
        return Proof(self, True, reason, None, (certificate,))

    def follows_from(self) -> list[list[Any]]:
        """The list of collisions."""
        return [[("each collides", self)]]

    def refuted_by(self, found: Counterexample) -> bool:
        """A swizzle of the list under which no access has conflicts."""
        addresses = [access.addresses(self.layout, self.unit) for access in self.accesses]
        return any(
            swizzle == found.index
            and _collision(swizzle, self.accesses, addresses, self.unit) is None
            for swizzle in _candidates(self.layout, self.accesses, self.unit)
        )


def _collision(
    swizzle: Swizzle, accesses: tuple[Access, ...], addresses: list[Any], unit: int
) -> tuple[int, int, int] | None:
    """Which access has which two lanes that collide under `swizzle`, or None."""
    for k, (access, where) in enumerate(zip(accesses, addresses, strict=True)):
        pair = _wavefronts(swizzle, where, access, unit).collision
        if pair is not None:
            return (k, *pair)
    return None


class EachCollides(Value):
    """For every swizzle that can matter, an access and two of its lanes that collide under it."""

    __slots__ = __match_args__ = ("statement", "collisions")
    statement: NoSwizzle
    collisions: tuple[tuple[Swizzle, int, int, int], ...]

    def __init__(
        self, statement: NoSwizzle, collisions: tuple[tuple[Swizzle, int, int, int], ...]
    ) -> None:
        self._set(statement, collisions)

    @property
    def claim(self) -> tuple[Any, ...]:
        """("each collides", statement)"""
        return "each collides", self.statement

    def verify(self) -> bool:
        """The list is whole, and every pair has two words of one bank, computed bit by bit."""
        asked = self.statement
        wanted = set(_candidates(asked.layout, asked.accesses, asked.unit))
        return wanted == {swizzle for swizzle, *_ in self.collisions} and all(
            self._collides(*collision) for collision in self.collisions
        )

    def _collides(self, swizzle: Swizzle, number: int, first: int, second: int) -> bool:
        """Whether they are lanes of one phase and want different words of one bank."""
        asked = self.statement
        access = asked.accesses[number]
        plain = access.addresses(asked.layout, asked.unit)
        stages, how = stages_of(_swizzled(swizzle, plain)), access.instruction
        at = [evaluate(stages, lane) * asked.unit // 8 for lane in range(size(plain))]
        if not any(first in phase and second in phase for phase in phases(at, how)):
            return False
        word = max(how.width, 4)
        a, b = at[first] // word, at[second] // word
        return bool(a != b and (a - b) % (WAVEFRONT_BYTES // word) == 0)


# ------------------------------------------------------------------------------------- padding


class Padding(Value):
    """A layout with `by` units left free after every `pitch`: what it is, and what it costs."""

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
        """Bytes of shared memory that the padded tile takes."""
        return int(cosize(self.layout)) * self.unit // 8

    def __str__(self) -> str:
        if self.by == 0:
            return f"{self.layout} as it is, {self.bytes} bytes"
        return (
            f"pad every {self.pitch} units by {self.by}: {self.layout}, {self.bytes} bytes of "
            f"shared memory"
        )


def padding_for(layout: Any, accesses: Accesses, unit: int | None = None) -> Padding | None:
    """The padding of `layout` that frees all `accesses` and takes the least memory; or None.

    After every `pitch` offsets, one of the strides, some are left free, in steps of the widest
    access and less than 128 bytes, beyond which banks repeat.

    >>> print(padding_for(Layout((64, 64), (64, 1)), [Access(16, Layout(8))], unit=16))
    pad every 64 units by 8: (64,64):(72,1), 9200 bytes of shared memory
    """
    plain, unit, wanted = _asked(layout, accesses, unit)
    widest = max(access.instruction.width for access in wanted)
    step = max(widest * 8 // unit, 1)
    found: list[Padding] = []
    for pitch in sorted({d for _, d in plain.modes if d >= step and d % step == 0}):
        for by in range(0, WAVEFRONT_BYTES * 8 // unit, step):
            padded = _padded(plain, pitch, by)
            reports = None if padded is None else _free(padded, wanted, unit)
            if padded is not None and reports is not None:
                found.append(Padding(padded, pitch, by, unit, reports))
                break
    return min(found, key=lambda padding: padding.bytes, default=None)


def _padded(layout: Layout, pitch: int, by: int) -> Layout | None:
    """`layout` with `by` more offsets after every `pitch`; None if a stride straddles a pitch."""
    if any(d % pitch for _, d in layout.modes if d >= pitch):
        return None
    if sum((s - 1) * d for s, d in layout.modes if d < pitch) >= pitch:
        return None
    stride = map_leaves(lambda d: d + d // pitch * by, layout.stride)
    return Layout(layout.shape, stride)


def _free(layout: Layout, accesses: tuple[Access, ...], unit: int) -> tuple[BankReport, ...] | None:
    """The accesses to `layout`, if all are free of conflicts."""
    reports = []
    for access in accesses:
        reports.append(banks(layout, access, unit=unit))
        if not reports[-1].conflict_free:
            return None
    return tuple(reports)
