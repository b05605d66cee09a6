"""Claims of theorems: constraints without a solution, identities over GF(2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import needed
from ...values.value import Value
from .claims import Claim

__all__ = ["EqualModulo2", "Farkas", "Infeasible", "combination"]


class Infeasible(Claim):
    """No integers make all `constraints` at least 0; `name` says what that means.

    A constraint is a polynomial, written in the symbols of the theorem.
    """

    __slots__ = __match_args__ = ("name", "constraints")
    name: str
    constraints: tuple[str, ...]

    def __init__(self, name: str, constraints: tuple[str, ...]) -> None:
        self._set(name, constraints)

    def established_by(self, witness: Any) -> bool:
        """By multipliers from 0 up with which the constraints add to a negative number."""
        multipliers = witness.multipliers
        if type(witness) is not Farkas or not all(type(n) is int and n >= 0 for n in multipliers):
            return False
        total = combination(self.constraints, multipliers)
        return bool(total.is_Integer and total < 0)


class Farkas(Value):
    """What each constraint is multiplied with, so that their sum is negative."""

    __slots__ = __match_args__ = ("multipliers",)
    multipliers: tuple[int, ...]

    def __init__(self, multipliers: tuple[int, ...]) -> None:
        self._set(multipliers)


def combination(constraints: Sequence[str], multipliers: Sequence[int]) -> Any:
    """The sum of the constraints, each multiplied, expanded by sympy.

    >>> combination(("M-1-j", "j-M"), (1, 1))
    -1
    """
    sympy = needed("sympy", "a theorem about all swizzles")
    letters = {letter: sympy.Symbol(letter) for letter in "BMSUj"}  # S is no singleton here
    terms = [sympy.sympify(text, locals=letters) for text in constraints]
    return sympy.expand(sum(n * term for n, term in zip(multipliers, terms, strict=True)))


class EqualModulo2(Claim):
    """Over GF(2) `expression` equals `result`, where each product in `vanishing` is 0."""

    __slots__ = __match_args__ = ("expression", "result", "vanishing")
    expression: str
    result: str
    vanishing: tuple[str, ...]

    def __init__(self, expression: str, result: str, vanishing: tuple[str, ...]) -> None:
        self._set(expression, result, vanishing)

    def established_by(self, witness: Any) -> bool:
        """It needs no witness: reduced by the products that vanish, the difference is 0."""
        sympy = needed("sympy", "a theorem about all swizzles")
        difference = sympy.sympify(f"({self.expression}) - ({self.result})")
        zero = [sympy.sympify(product) for product in self.vanishing]
        _, remainder = sympy.reduced(sympy.expand(difference), zero, modulus=2)
        return witness is None and bool(remainder == 0)
