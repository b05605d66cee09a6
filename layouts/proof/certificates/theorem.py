"""Certificates of theorems: constraints without a solution, identities over GF(2), inequalities."""

from __future__ import annotations

from typing import Any

from ...values.value import Value
from .claims import EqualModulo2, Infeasible, NotLess
from .polynomials import never_negative

__all__ = ["Cancels", "Farkas", "NeverNegative"]


class Farkas(Value):
    """No integers make all `constraints` at least 0: added with `multipliers`, they are negative.

    A constraint is a polynomial, written in the symbols of the theorem.
    """

    __slots__ = __match_args__ = ("name", "constraints", "multipliers")
    name: str
    constraints: tuple[str, ...]
    multipliers: tuple[int, ...]

    def __init__(
        self, name: str, constraints: tuple[str, ...], multipliers: tuple[int, ...]
    ) -> None:
        self._set(name, constraints, multipliers)

    @property
    def claim(self) -> Infeasible:
        """The constraints have no solution."""
        return Infeasible(self.name, self.constraints)

    def total(self) -> Any:
        """The combination, expanded: a negative number."""
        import sympy

        letters = {letter: sympy.Symbol(letter) for letter in "BMSUj"}  # S is no singleton here
        terms = [sympy.sympify(text, locals=letters) for text in self.constraints]
        pairs = zip(self.multipliers, terms, strict=True)
        return sympy.expand(sum(multiplier * term for multiplier, term in pairs))

    def verify(self) -> bool:
        """The multipliers are not negative, and the combination expands to a negative number."""
        total = self.total()
        return min(self.multipliers) >= 0 and bool(total.is_Integer and total < 0)


class Cancels(Value):
    """Over GF(2) `expression` equals `result`, where each product in `vanishing` is 0."""

    __slots__ = __match_args__ = ("expression", "result", "vanishing")
    expression: str
    result: str
    vanishing: tuple[str, ...]

    def __init__(self, expression: str, result: str, vanishing: tuple[str, ...]) -> None:
        self._set(expression, result, vanishing)

    @property
    def claim(self) -> EqualModulo2:
        """The two expressions are equal modulo 2."""
        return EqualModulo2(self.expression, self.result, self.vanishing)

    def verify(self) -> bool:
        """Reduce the difference by the products that vanish, modulo 2: the remainder is 0."""
        import sympy

        difference = sympy.sympify(f"({self.expression}) - ({self.result})")
        zero = [sympy.sympify(product) for product in self.vanishing]
        _, remainder = sympy.reduced(sympy.expand(difference), zero, modulus=2)
        return bool(remainder == 0)


class NeverNegative(Value):
    """``a - b`` is never negative."""

    __slots__ = __match_args__ = ("a", "b")
    a: Any
    b: Any

    def __init__(self, a: Any, b: Any) -> None:
        self._set(a, b)

    @property
    def claim(self) -> NotLess:
        """a is at least b."""
        return NotLess(self.a, self.b)

    def verify(self) -> bool:
        """No coefficient of the difference is negative, in symbols that start from 0."""
        return never_negative(self.a - self.b)
