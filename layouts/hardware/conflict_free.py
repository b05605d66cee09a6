"""The statement that an access to shared memory has no bank conflict, and its certificate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..proof.certificates import (
    Certificate,
    Claim,
    Counterexample,
    Stages,
    coordinate,
    evaluate,
    index_count,
    rank,
    stages_of,
)
from ..proof.prove import Proof, Statement
from ..values.elimination import image
from ..values.layout import Layout
from ..values.swizzle import ComposedLayout, layout_for
from ..values.tuples import as_int, size
from ..values.unit import in_units
from ..values.value import Value
from .byte_addresses import byte_unit
from .instructions import Instruction, instruction
from .wavefronts import conflict, phases, wavefronts

__all__ = ["ConflictFree", "Ranks", "byte_addresses", "conflicts_nowhere"]


class ConflictFree(Statement, Claim):
    """Every phase of an access by the lanes of `layout` takes one wavefront.

    `layout` takes a lane to its offset in shared memory, `access` is the bytes per lane or the name
    of an instruction, and `unit` the bits of one offset, all as in `wavefronts`.

    Raises `LayoutError` unless `layout` is a layout, and for a unit as `wavefronts` does.
    """

    __slots__ = __match_args__ = ("layout", "access", "unit")
    layout: Layout | ComposedLayout
    access: int | str
    unit: int

    def __init__(
        self, layout: Layout | ComposedLayout, access: int | str = 16, unit: int | None = None
    ) -> None:
        self._set(layout_for("ConflictFree", layout), as_int(access), byte_unit(layout, unit))

    def sentence(self) -> str:
        """N lanes at L are free of bank conflicts."""
        how = "access {} bytes each" if type(self.access) is int else "execute {}"
        lanes = f"{size(self.layout)} lanes that {how.format(self.access)}"
        return f"{lanes} at {self.layout} ({in_units(self.unit)}) are free of bank conflicts"

    def decide(self) -> Proof:
        """Decided by `wavefronts`: for every base if the layout is a bit matrix."""
        found = wavefronts(self.layout, self.access, self.unit)
        if found.collision is None:
            certificate = Certificate(self, Ranks(found.ranks is not None))
            return Proof(self, True, (found.found(),), None, (certificate,))
        where = self.counterexample(found.collision)
        return Proof(self, False, (found.found(),), Counterexample(*where))  # type: ignore[misc]

    def claims(self) -> list[Claim]:
        """The statement itself."""
        return [self]

    def established_by(self, witness: Any) -> bool:
        """Every lane's bank is computed; with `Ranks.by_rank`, the ranks as well."""
        addresses, how = self._addresses(), instruction(self.access)
        return (
            type(witness) is Ranks
            and conflicts_nowhere(addresses, how)
            and (not witness.by_rank or _equal_ranks(addresses, how))
        )

    def counterexample(self, index: Any) -> tuple[Any, Any, Any, Any] | None:
        """Two lanes of one phase that access different words of one bank, with their offsets."""
        first, second = index
        if not conflict(self._addresses(), instruction(self.access), first, second):
            return None
        stages = stages_of(self.layout)
        coords = tuple(coordinate(lane, stages[-1].shape) for lane in index)
        return index, coords, evaluate(stages, first), evaluate(stages, second)

    def _addresses(self) -> list[int]:
        return byte_addresses(stages_of(self.layout), self.unit)


class Ranks(Value):
    """The witness that every phase takes one wavefront. Its check computes the bank of every lane.

    If `by_rank`, it also compares the ranks of two matrices over GF(2): if they are equal, a phase
    reaches as many banks as words, at every base.
    """

    __slots__ = __match_args__ = ("by_rank",)
    by_rank: bool

    def __init__(self, by_rank: bool) -> None:
        self._set(by_rank)


def byte_addresses(stages: Stages, unit: int) -> list[int]:
    """The byte address of every lane, from the definitions alone."""
    return [evaluate(stages, lane) * unit // 8 for lane in range(index_count(stages[-1]))]


def conflicts_nowhere(addresses: Sequence[int], how: Instruction) -> bool:
    """Whether no two lanes of a phase access different words of one bank."""
    for phase in phases(addresses, how):
        words = {addresses[lane] // how.word_bytes for lane in phase}
        if len(words) != len({word % how.words for word in words}):
            return False
    return True


def _equal_ranks(addresses: Sequence[int], how: Instruction) -> bool:
    """Whether the addresses of the first phase are a bit matrix with as many banks as words."""
    lanes = len(phases(addresses, how)[0])
    bits = (lanes - 1).bit_length()
    columns = [addresses[1 << bit] ^ addresses[0] for bit in range(bits)]
    if any(addresses[lane] != addresses[0] ^ image(lane, columns) for lane in range(lanes)):
        return False
    words = [column // how.word_bytes for column in columns]
    return rank(words) == rank([word % how.words for word in words])
