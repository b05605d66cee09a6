"""The statement that no swizzle frees given accesses of bank conflicts, and its certificate.

The swizzles in question move every aligned vector of some bytes as a whole: their MBase is at least
the bits of an offset inside it.  Few of their bits affect the banks: the bits that they read below
the top of all offsets, and the bits that they change below 128 bytes.  So finitely many swizzles
differ, and trying all of them is a proof.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from ..algebra import composition
from ..errors import LayoutError
from ..proof.certificates import (
    Certificate,
    Claim,
    Counterexample,
    Stages,
    evaluate,
    index_count,
    stages_of,
)
from ..proof.prove import Proof, Statement
from ..values.layout import Layout, cosize
from ..values.swizzle import ComposedLayout, Swizzle
from ..values.tuples import is_int, size
from ..values.unit import in_units
from ..values.value import Value
from .banks import Access
from .byte_addresses import byte_unit, check_lanes
from .conflict_free import byte_addresses, conflicts_nowhere
from .facts import ACCESS_BYTES, WAVEFRONT_BYTES
from .wavefronts import conflict, wavefronts

__all__ = ["EachCollides", "NoSwizzle"]

AnyLayout: TypeAlias = Layout | ComposedLayout


class NoSwizzle(Statement, Claim):
    """No swizzle of `layout` that moves `vector_bytes` as a whole frees all `accesses` of bank
    conflicts.

    Such a swizzle keeps each aligned vector of so many bytes together, everywhere in the tile: its
    MBase is at least the bits of an offset inside the vector.  `vector_bytes` is by default the
    width of the widest access.  If it is less, a swizzle must also keep together the bytes that
    each lane accesses, at the addresses given here; elsewhere it may split as many bytes.

    `unit` is the bits of one offset (default 16).

    Raises `LayoutError` unless `accesses` is a tuple of `Access`, and `vector_bytes` 1, 2, 4, 8
    or 16.

    >>> from layouts import prove
    >>> lanes = Access(4, Layout(32)), Access(16, Layout((4, 2), (1, 128)))
    >>> print(prove(NoSwizzle(Layout((32, 8), (8, 1)), lanes, 32, vector_bytes=4)))
    refuted: no swizzle of (32,8):(8,1) (offsets in elements of 32 bits) that moves 4 bytes as a \
whole frees 4 bytes per lane, 16 bytes per lane of bank conflicts
      S<3,0,5> frees them
    """

    __slots__ = __match_args__ = ("layout", "accesses", "unit", "vector_bytes")
    layout: Layout
    accesses: tuple[Access, ...]
    unit: int
    vector_bytes: int

    def __init__(
        self,
        layout: Layout,
        accesses: tuple[Access, ...],
        unit: int | None = None,
        vector_bytes: int | None = None,
    ) -> None:
        if not isinstance(layout, Layout) or not _all_accesses(accesses):
            raise LayoutError(
                f"NoSwizzle: {layout!r} must be a Layout, and {accesses!r} a tuple of Access"
            )
        check_lanes(layout)
        if vector_bytes is None:
            vector_bytes = max(access.instruction.width for access in accesses)
        if not is_int(vector_bytes) or vector_bytes not in ACCESS_BYTES:
            raise LayoutError(f"vector_bytes {vector_bytes!r}: it must be 1, 2, 4, 8 or 16")
        self._set(layout, accesses, byte_unit(layout, unit), int(vector_bytes))

    def sentence(self) -> str:
        """No swizzle of L frees the accesses of bank conflicts."""
        named = ", ".join(map(str, self.accesses))
        return (
            f"no swizzle of {self.layout} ({in_units(self.unit)}) that moves {self.vector_bytes} "
            f"bytes as a whole frees {named} of bank conflicts"
        )

    def decide(self) -> Proof:
        """Decided by trying every candidate: each splits a lane's bytes, or two lanes conflict."""
        found, addresses = [], self._addresses()
        for swizzle in self.candidates():
            obstacle = self._obstacle(swizzle, addresses)
            if obstacle is None:
                where = Counterexample(swizzle, (), 0, 0)
                return Proof(self, False, (f"{swizzle} frees them",), where)
            found.append((swizzle, *obstacle))
        _, number, lanes = found[0]
        reason = (
            f"only {len(found)} swizzles can matter: they keep the bits inside "
            f"{self.vector_bytes} bytes, read bits below the largest offset, and change bits of "
            f"the banks; any other that moves {self.vector_bytes} bytes as a whole acts as one of "
            f"these",
            f"under each, {self._failure()}; without a swizzle, lanes {lanes[0]} and {lanes[1]} of "
            f"{self.accesses[number]}",
        )
        certificate = Certificate(self, EachCollides(tuple(found)))
        return Proof(self, True, reason, None, (certificate,))

    def _failure(self) -> str:
        conflict = "two lanes access different words of one bank"
        whole = all(access.instruction.width <= self.vector_bytes for access in self.accesses)
        return conflict if whole else f"a lane's bytes do not stay together, or {conflict}"

    def candidates(self) -> list[Swizzle]:
        """Every swizzle that can matter, smallest first; any other acts as one of these.

        A swizzle XORs a run of bits onto a run of lower or higher ones.  Offsets have no bits from
        their top up, so reading there adds nothing.  Bits from 128 bytes up belong to no bank.  The
        bits inside a vector must stay, and those of an aligned address are 0.

        >>> print(*NoSwizzle(Layout(4, 32), (Access(16),), 8).candidates())
        S<0,4,3> S<1,4,1> S<1,4,-1> S<1,5,1> S<1,5,-1> S<1,4,2> S<1,4,-2>
        """
        base = _log2(self.vector_bytes * 8 // self.unit)
        row = _log2(WAVEFRONT_BYTES * 8 // self.unit)
        top = max((cosize(x) - 1).bit_length() for x in (self.layout, *self._addresses()))
        runs = [
            Swizzle(bits, min(target, source), source - target)
            for target in range(base, row)
            for source in range(base, top)
            for bits in range(1, min(abs(source - target), row - target, top - source) + 1)
        ]
        runs.sort(key=lambda s: (s.bits, abs(s.shift), s.base, s.shift < 0))
        return [Swizzle(0, base, 3), *runs]

    def claims(self) -> list[Claim]:
        """The statement itself."""
        return [self]

    def established_by(self, witness: Any) -> bool:
        """Each candidate has its obstacle: two lanes with different words of one bank, bit by bit,
        or a single lane whose bytes are misaligned or not contiguous."""
        obstacle_of = {swizzle: obstacle for swizzle, *obstacle in witness.obstacles}
        chains = [stages_of(where) for where in self._addresses()]
        return type(witness) is EachCollides and all(
            self._fails(swizzle, chains, *obstacle_of[swizzle]) for swizzle in self.candidates()
        )

    def _fails(
        self, swizzle: Swizzle, chains: list[Stages], number: int, lanes: tuple[int, ...]
    ) -> bool:
        access, stages = self.accesses[number], chains[number]
        if len(lanes) == 1:
            return self._splits(swizzle, access, stages, *lanes)
        addresses = byte_addresses((swizzle, *stages), self.unit)
        return conflict(addresses, access.instruction, *lanes)

    def counterexample(self, index: Any) -> tuple[Any, Any, Any, Any] | None:
        """A candidate that splits no lane's bytes, and under which no access has conflicts."""
        if type(index) is not Swizzle or index not in self.candidates():
            return None
        for access, where in zip(self.accesses, self._addresses(), strict=True):
            stages = stages_of(where)
            lanes = range(index_count(stages[-1]))
            if any(self._splits(index, access, stages, lane) for lane in lanes):
                return None
            addresses = byte_addresses((index, *stages), self.unit)
            if not conflicts_nowhere(addresses, access.instruction):
                return None
        return index, (), 0, 0

    def _splits(self, swizzle: Swizzle, access: Access, stages: Stages, lane: int) -> bool:
        if lane not in range(index_count(stages[-1])):
            return False
        units = access.instruction.width * 8 // self.unit
        return splits(swizzle, evaluate(stages, lane), units)

    def _addresses(self) -> list[AnyLayout]:
        return [access.addresses(self.layout, self.unit) for access in self.accesses]

    def _obstacle(
        self, swizzle: Swizzle, addresses: list[AnyLayout]
    ) -> tuple[int, tuple[int, ...]] | None:
        """The number of an access, with the lane whose bytes `swizzle` splits or with two lanes
        that conflict under it; or None."""
        for number, (access, where) in enumerate(zip(self.accesses, addresses, strict=True)):
            units = access.instruction.width * 8 // self.unit
            if swizzle.base < _log2(units):  # wider than what it moves as a whole
                for lane in range(size(where)):
                    if splits(swizzle, where(lane), units):
                        return number, (lane,)
            swizzled = composition(swizzle, where)
            pair = wavefronts(swizzled, access.instruction, self.unit).collision
            if pair is not None:
                return number, pair
        return None


def _all_accesses(accesses: Any) -> bool:
    """Whether `accesses` is a tuple of at least one Access."""
    of_access = isinstance(accesses, tuple) and all(isinstance(a, Access) for a in accesses)
    return of_access and bool(accesses)


def splits(swizzle: Swizzle, offset: int, units: int) -> bool:
    """Whether `swizzle` leaves the `units` from `offset` on misaligned, or not contiguous.

    >>> splits(Swizzle(3, 0, 5), 8, 4), splits(Swizzle(3, 0, 5), 32, 4)
    (False, True)
    """
    start = swizzle(offset)
    return start % units != 0 or any(swizzle(offset + k) != start + k for k in range(units))


def _log2(n: int) -> int:
    return max(n.bit_length() - 1, 0)


class EachCollides(Value):
    """For each candidate: the number of an access, and two of its lanes that conflict under it, or
    one whose bytes it splits."""

    __slots__ = __match_args__ = ("obstacles",)
    obstacles: tuple[tuple[Swizzle, int, tuple[int, ...]], ...]

    def __init__(self, obstacles: tuple[tuple[Swizzle, int, tuple[int, ...]], ...]) -> None:
        self._set(obstacles)
