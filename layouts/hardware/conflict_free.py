"""The statement that an access to shared memory has no bank conflict, and its certificate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..proof.certificate import columns_matrix, evaluate, modes_of, stages_of
from ..proof.prove import Counterexample, Proof
from ..values.elimination import image
from ..values.layout import Layout
from ..values.swizzle import ComposedLayout
from ..values.tuples import idx2crd, size
from ..values.value import Value
from .instructions import instruction
from .wavefronts import WAVEFRONT_BYTES, phases, wavefronts

__all__ = ["ConflictFree", "Ranks"]


class ConflictFree(Value):
    """Lanes that access shared memory at `layout` take one wavefront a phase.

    `access` is the bytes of a lane or the name of an instruction; all as in `wavefronts`.
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
        """Decided by the bank model, for every base where the layout is a bit matrix."""
        found = wavefronts(self.layout, self.access, self.unit)
        if found.collision is None:
            by_rank = found.ranks is not None
            certificate = Ranks(self.layout, self.access, self._unit(), by_rank)
            return Proof(self, True, (str(found),), None, (certificate,))
        lanes = found.collision
        coords = tuple(idx2crd(lane, self.layout.shape) for lane in lanes)
        left, right = (self.layout(lane) for lane in lanes)
        return Proof(self, False, (str(found),), Counterexample(lanes, coords, left, right))

    def _unit(self) -> int:
        return self.unit or getattr(self.layout, "unit", None) or 8

    def follows_from(self) -> list[list[Any]]:
        """Ranks, or all lanes."""
        claim = "conflict-free", self.layout, self.access, self._unit()
        return [[(*claim, True)], [(*claim, False)]]

    def refuted_by(self, found: Counterexample) -> bool:
        """Two lanes of one phase want different words of one bank."""
        stages, how = stages_of(self.layout), instruction(self.access)
        count, word = size(self.layout), max(how.width, 4)
        addresses = [evaluate(stages, lane) * self._unit() // 8 for lane in range(count)]
        words = [addresses[lane] // word for lane in found.index]
        slots = WAVEFRONT_BYTES // word
        together = any(set(found.index) <= set(phase) for phase in phases(addresses, how))
        return bool(together and words[0] != words[1] and words[0] % slots == words[1] % slots)


class Ranks(Value):
    """Lanes of `layout` take one wavefront a phase: lane by lane, or, with `by_rank`, because
    they go to as many banks as words, counted by two matrices over GF(2)."""

    __slots__ = __match_args__ = ("layout", "access", "unit", "by_rank")
    layout: Any
    access: int | str
    unit: int
    by_rank: bool

    def __init__(self, layout: Any, access: int | str, unit: int, by_rank: bool) -> None:
        self._set(layout, access, unit, by_rank)

    @property
    def claim(self) -> tuple[Any, ...]:
        """("conflict-free", layout, access, unit, by_rank)"""
        return "conflict-free", self.layout, self.access, self.unit, self.by_rank

    def verify(self) -> bool:
        """Every lane's bank, computed; and sympy's ranks of the matrices of words and banks."""
        addresses, how = self._addresses(), instruction(self.access)
        word, together = max(how.width, 4), phases(addresses, how)
        for phase in together:
            words = {addresses[lane] // word for lane in phase}
            if len(words) != len({at % (WAVEFRONT_BYTES // word) for at in words}):
                return False
        return not self.by_rank or self._of_one_rank(addresses, word, len(together[0]))

    def _addresses(self) -> list[int]:
        count, stages = 1, stages_of(self.layout)
        for extent, _ in modes_of(stages[-1]):
            count *= extent
        return [evaluate(stages, lane) * self.unit // 8 for lane in range(count)]

    def _of_one_rank(self, addresses: Sequence[int], word: int, lanes: int) -> bool:
        bits = (lanes - 1).bit_length()
        columns = [addresses[1 << bit] ^ addresses[0] for bit in range(bits)]
        for lane in range(lanes):
            if addresses[lane] != addresses[0] ^ image(lane, columns):
                return False
        words = [column // word for column in columns]
        banks = [at % (WAVEFRONT_BYTES // word) for at in words]
        rows = max([at.bit_length() for at in words] + [1])
        ranks = [columns_matrix(columns, rows).rank() for columns in (words, banks)]
        return bool(ranks[0] == ranks[1])
