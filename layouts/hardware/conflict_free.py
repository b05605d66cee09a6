"""The statement that an access to shared memory has no bank conflict, and its certificate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..proof.certificates import (
    Claim,
    Holds,
    evaluate,
    index_count,
    matrix_of_columns,
    stages_of,
)
from ..proof.prove import Counterexample, Proof
from ..values.elimination import image
from ..values.layout import Layout
from ..values.swizzle import ComposedLayout
from ..values.tuples import idx2crd, size
from ..values.value import Value
from .byte_addresses import byte_unit
from .instructions import Instruction, instruction
from .wavefronts import conflict, phases, wavefronts

__all__ = ["ConflictFree", "Ranks", "evaluated_addresses"]


class ConflictFree(Value):
    """Every phase of an access by the lanes of `layout` takes one wavefront.

    `layout` takes a lane to its offset in shared memory, `access` is the bytes per lane or the name
    of an instruction, and `unit` the bits of one offset, all as in `wavefronts`.
    """

    __slots__ = __match_args__ = ("layout", "access", "unit")
    layout: Layout | ComposedLayout
    access: int | str
    unit: int | None

    def __init__(
        self, layout: Layout | ComposedLayout, access: int | str = 16, unit: int | None = None
    ) -> None:
        self._set(layout, access, unit)

    def __str__(self) -> str:
        how = "access {} bytes each" if type(self.access) is int else "execute {}"
        lanes = f"{size(self.layout)} lanes that {how.format(self.access)}"
        return f"{lanes} at {self.layout} are free of bank conflicts"

    def decide(self) -> Proof:
        """Decided by `wavefronts`: for every base if the layout is a bit matrix."""
        found = wavefronts(self.layout, self.access, self.unit)
        if found.collision is None:
            certificate = Ranks(*self._resolved(), found.ranks is not None)
            return Proof(self, True, (str(found),), None, (certificate,))
        lanes = found.collision
        coords = tuple(idx2crd(lane, self.layout.shape) for lane in lanes)
        left, right = (self.layout(lane) for lane in lanes)
        return Proof(self, False, (str(found),), Counterexample(lanes, coords, left, right))

    def _resolved(self) -> tuple[Layout | ComposedLayout, int | str, int]:
        return self.layout, self.access, byte_unit(self.layout, self.unit)

    def follows_from(self) -> list[list[Claim]]:
        """The statement itself, with its unit."""
        return [[Holds(ConflictFree(*self._resolved()))]]

    def refuted_by(self, found: Counterexample) -> bool:
        """Two lanes of one phase access different words of one bank."""
        layout, access, unit = self._resolved()
        first, second = found.index
        return conflict(evaluated_addresses(layout, unit), instruction(access), first, second)


class Ranks(Value):
    """Every phase of an access by the lanes of `layout` takes one wavefront.

    The witness is a check of every lane.  With `by_rank` two matrices over GF(2) have equal rank
    besides: a phase reaches as many banks as words, at every base.
    """

    __slots__ = __match_args__ = ("layout", "access", "unit", "by_rank")
    layout: Any
    access: int | str
    unit: int
    by_rank: bool

    def __init__(self, layout: Any, access: int | str, unit: int, by_rank: bool) -> None:
        self._set(layout, access, unit, by_rank)

    @property
    def claim(self) -> Holds:
        """The access is free of bank conflicts."""
        return Holds(ConflictFree(self.layout, self.access, self.unit))

    def verify(self) -> bool:
        """Computes every lane's bank, and by sympy the ranks of the words and of the banks."""
        addresses, how = evaluated_addresses(self.layout, self.unit), instruction(self.access)
        together = phases(addresses, how)
        for phase in together:
            words = {addresses[lane] // how.word_bytes for lane in phase}
            if len(words) != len({word % how.words for word in words}):
                return False
        return not self.by_rank or _equal_ranks(addresses, how, len(together[0]))


def evaluated_addresses(layout: Any, unit: int) -> list[int]:
    """The byte address of every lane, from the definitions alone."""
    stages = stages_of(layout)
    return [evaluate(stages, lane) * unit // 8 for lane in range(index_count(stages[-1]))]


def _equal_ranks(addresses: Sequence[int], how: Instruction, lanes: int) -> bool:
    """Whether the first `lanes` addresses are a bit matrix with as many banks as words."""
    bits = (lanes - 1).bit_length()
    columns = [addresses[1 << bit] ^ addresses[0] for bit in range(bits)]
    if any(addresses[lane] != addresses[0] ^ image(lane, columns) for lane in range(lanes)):
        return False
    words = [column // how.word_bytes for column in columns]
    banks = [word % how.words for word in words]
    ranks = [matrix_of_columns(columns).rank() for columns in (words, banks)]
    return bool(ranks[0] == ranks[1])
