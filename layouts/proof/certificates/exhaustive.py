"""A claim checked at every index: the certificate of last resort."""

from __future__ import annotations

from typing import Any

from ...values.value import Value
from .claims import Bijection, Injection, SameFunction
from .definition import Stages, evaluate, index_count

__all__ = ["Exhaustive"]


class Exhaustive(Value):
    """`claim` holds at every index: `verify` computes all values again, from the definition."""

    __slots__ = __match_args__ = ("claim",)
    claim: SameFunction | Injection | Bijection

    def __init__(self, claim: SameFunction | Injection | Bijection) -> None:
        self._set(claim)

    def verify(self) -> bool:
        """Compute all values, and compare them as the claim says."""
        match self.claim:
            case SameFunction(left, right, count):
                return all(evaluate(left, i) == evaluate(right, i) for i in range(count))
            case Injection(stages):
                values = _values(stages)
                return len(set(values)) == len(values)
            case Bijection(stages, start):
                values = _values(stages)
                return sorted(values) == list(range(start, start + len(values)))
        return False


def _values(stages: Stages) -> list[Any]:
    return [evaluate(stages, i) for i in range(index_count(stages[-1]))]
