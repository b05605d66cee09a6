"""Claims: what a certificate establishes, and what a statement follows from.

>>> from layouts import Bijective, Layout, prove
>>> proof = prove(Bijective(Layout(8)))
>>> proof.certificates[0].claim, proof.statement.follows_from()[0]
(Bijection((Layout(8, 1),), 0), [Bijection((Layout(8, 1),), 0)])
"""

from __future__ import annotations

from typing import Any, Protocol

from ...values.swizzle import Swizzle
from ...values.value import Value
from .definition import Stages

__all__ = [
    "Bijection",
    "Certificate",
    "Claim",
    "EqualModulo2",
    "Holds",
    "Infeasible",
    "Injection",
    "NotLess",
    "Permutation",
    "SameFunction",
]


class Claim(Value):
    """What a certificate establishes."""

    __slots__ = ()


class Certificate(Protocol):
    """A witness that can be checked by itself."""

    @property
    def claim(self) -> Claim:
        """What holds if `verify` returns True."""

    def verify(self) -> bool:
        """Whether the witness is right."""


class SameFunction(Claim):
    """``left(i) == right(i)`` for every index i below `count`, or for every i if it is None."""

    __slots__ = __match_args__ = ("left", "right", "count")
    left: Stages
    right: Stages
    count: Any

    def __init__(self, left: Stages, right: Stages, count: Any) -> None:
        self._set(left, right, count)


class Injection(Claim):
    """`stages` takes different values at different indices of its last layout."""

    __slots__ = __match_args__ = ("stages",)
    stages: Stages

    def __init__(self, stages: Stages) -> None:
        self._set(stages)


class Bijection(Claim):
    """`stages` takes the n indices of its last layout to ``start ... start + n - 1``, each once."""

    __slots__ = __match_args__ = ("stages", "start")
    stages: Stages
    start: Any

    def __init__(self, stages: Stages, start: Any) -> None:
        self._set(stages, start)


class Permutation(Claim):
    """`swizzle` is injective, and permutes the `count` offsets from `start` on."""

    __slots__ = __match_args__ = ("swizzle", "start", "count")
    swizzle: Swizzle
    start: Any
    count: Any

    def __init__(self, swizzle: Swizzle, start: Any, count: Any) -> None:
        self._set(swizzle, start, count)


class Infeasible(Claim):
    """No integers make all `constraints` at least 0; `name` says what that means."""

    __slots__ = __match_args__ = ("name", "constraints")
    name: str
    constraints: tuple[str, ...]

    def __init__(self, name: str, constraints: tuple[str, ...]) -> None:
        self._set(name, constraints)


class EqualModulo2(Claim):
    """Over GF(2) `expression` equals `result`, where each product in `vanishing` is 0."""

    __slots__ = __match_args__ = ("expression", "result", "vanishing")
    expression: str
    result: str
    vanishing: tuple[str, ...]

    def __init__(self, expression: str, result: str, vanishing: tuple[str, ...]) -> None:
        self._set(expression, result, vanishing)


class NotLess(Claim):
    """``a >= b`` for every value of the symbols."""

    __slots__ = __match_args__ = ("a", "b")
    a: Any
    b: Any

    def __init__(self, a: Any, b: Any) -> None:
        self._set(a, b)


class Holds(Claim):
    """The whole `statement` holds."""

    __slots__ = __match_args__ = ("statement",)
    statement: Any

    def __init__(self, statement: Any) -> None:
        self._set(statement)
