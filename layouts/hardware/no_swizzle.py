"""The statement that no swizzle frees given accesses of bank conflicts, and its certificate.

Few bits of a swizzle affect the banks of a tile: the bits that it reads below the top of the tile's
offsets, and the bits that it changes below 128 bytes.  It must also keep the bits inside the widest
access.  So finitely many swizzles differ, and trying all of them is a proof.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..proof.certificates import Claim, Holds
from ..proof.prove import Counterexample, Proof
from ..values.layout import Layout, cosize
from ..values.swizzle import ComposedLayout, Swizzle
from ..values.value import Value
from .banks import Access
from .conflict_free import evaluated_addresses
from .facts import WAVEFRONT_BYTES
from .wavefronts import Wavefronts, conflict, wavefronts

__all__ = ["EachCollides", "NoSwizzle", "candidates", "wavefronts_under"]


def candidates(layout: Layout, accesses: tuple[Access, ...], unit: int) -> Iterator[Swizzle]:
    """Every swizzle of `layout` that can matter, smallest first; any other acts as one of these.

    Offsets have no bits from their top up, so reading there adds nothing.  Bits from 128 bytes up
    belong to no bank.  The bits of the widest access must stay.

    >>> print(*candidates(Layout(4, 32), (Access("ldmatrix.x1"),), 8))
    S<0,4,3> S<1,4,1> S<1,4,-1> S<1,5,1> S<1,5,-1> S<1,4,2> S<1,4,-2>
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


def wavefronts_under(swizzle: Swizzle, addresses: Any, access: Access, unit: int) -> Wavefronts:
    """The wavefronts of `access` if `swizzle` acts on the offsets that `addresses` gives."""
    return wavefronts(_swizzled(swizzle, addresses), access.instruction, unit)


def _swizzled(swizzle: Swizzle, addresses: Any) -> ComposedLayout:
    if isinstance(addresses, Layout):
        return ComposedLayout(swizzle, 0, addresses)
    return ComposedLayout(ComposedLayout(swizzle, 0, addresses.inner), 0, addresses.outer)


class NoSwizzle(Value):
    """No swizzle of `layout` keeps all `accesses` aligned and frees them of bank conflicts."""

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
        """Decided by trying every candidate: two lanes conflict under each."""
        collisions, addresses = [], self._addresses()
        for swizzle in self.candidates():
            found = self._collision(swizzle, addresses)
            if found is None:
                where = Counterexample(swizzle, (), 0, 0)
                return Proof(self, False, (f"{swizzle} frees them",), where)
            collisions.append((swizzle, *found))
        _, number, first, second = collisions[0]
        reason = (
            f"only {len(collisions)} swizzles can matter: they keep the bits of the widest access, "
            f"read bits below the largest offset, and change bits of the banks; any other acts as "
            f"one of these",
            f"under each, two lanes access different words of one bank; without a swizzle, lanes "
            f"{first} and {second} of {self.accesses[number]}",
        )
        certificate = EachCollides(self, tuple(collisions))
        return Proof(self, True, reason, None, (certificate,))

    def candidates(self) -> Iterator[Swizzle]:
        """The swizzles that can matter."""
        return candidates(self.layout, self.accesses, self.unit)

    def follows_from(self) -> list[list[Claim]]:
        """The statement itself."""
        return [[Holds(self)]]

    def refuted_by(self, found: Counterexample) -> bool:
        """A candidate under which no access has conflicts."""
        swizzle = found.index
        return swizzle in self.candidates() and not self._collision(swizzle, self._addresses())

    def _addresses(self) -> list[Layout | ComposedLayout]:
        return [access.addresses(self.layout, self.unit) for access in self.accesses]

    def _collision(self, swizzle: Swizzle, addresses: list[Any]) -> tuple[int, int, int] | None:
        """The number of an access, and two of its lanes that conflict under `swizzle`; or None."""
        for number, access in enumerate(self.accesses):
            pair = wavefronts_under(swizzle, addresses[number], access, self.unit).collision
            if pair is not None:
                return (number, *pair)
        return None


class EachCollides(Value):
    """For each candidate: the number of an access, and two of its lanes that conflict under it."""

    __slots__ = __match_args__ = ("statement", "collisions")
    statement: NoSwizzle
    collisions: tuple[tuple[Swizzle, int, int, int], ...]

    def __init__(
        self, statement: NoSwizzle, collisions: tuple[tuple[Swizzle, int, int, int], ...]
    ) -> None:
        self._set(statement, collisions)

    @property
    def claim(self) -> Holds:
        """The statement holds."""
        return Holds(self.statement)

    def verify(self) -> bool:
        """The list is complete, and every pair has different words of one bank, bit by bit."""
        listed = {swizzle for swizzle, *_ in self.collisions}
        return listed == set(self.statement.candidates()) and all(
            self._collides(*collision) for collision in self.collisions
        )

    def _collides(self, swizzle: Swizzle, number: int, first: int, second: int) -> bool:
        layout, unit = self.statement.layout, self.statement.unit
        access = self.statement.accesses[number]
        addresses = evaluated_addresses(_swizzled(swizzle, access.addresses(layout, unit)), unit)
        return conflict(addresses, access.instruction, first, second)
