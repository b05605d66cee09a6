"""Whole numbers: ints, and polynomials with integer coefficients in symbols that are integers.

Every number of a statement or of a certificate passes through `whole`, which refuses fractions,
bools, floats and whatever else compares equal to an integer.  sympy expands the polynomials.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ...errors import LayoutError

__all__ = ["Malformed", "is_multiple", "is_zero", "least", "never_negative", "whole"]


class Malformed(LayoutError):
    """A statement or a certificate that means nothing."""


def whole(x: Any) -> Any:
    """`x` as an int, or as an expanded polynomial with integer coefficients in integer symbols.

    >>> from layouts import symbols
    >>> m = symbols("m")
    >>> whole(4), whole((m + 1) * m - m**2), whole(m - m)
    (4, m, 0)
    """
    if type(x) is int:
        return x
    import sympy

    if not isinstance(x, sympy.Expr):
        raise Malformed(f"{x!r} is no whole number")
    return _expanded(x)


@lru_cache(maxsize=4096)
def _expanded(x: Any) -> Any:
    import sympy

    symbols = sorted(x.free_symbols, key=str)
    if not all(symbol.is_integer and symbol.is_nonnegative for symbol in symbols):
        raise Malformed(f"{x}: its symbols must be integers from 0 up")
    try:
        polynomial = sympy.Poly(x, *symbols or [sympy.Dummy()], domain="ZZ").as_expr()
    except (sympy.PolynomialError, sympy.CoercionFailed):
        raise Malformed(f"{x} is no polynomial with integer coefficients") from None
    return int(polynomial) if polynomial.is_Integer else polynomial


def is_zero(x: Any) -> bool:
    """Whether `x` is 0 for all values of its symbols."""
    return bool(whole(x) == 0)


def never_negative(x: Any) -> bool:
    """Whether no coefficient of `x` is negative once m + 1 replaces each positive symbol m.

    The new symbols start from 0, so `x` is then never negative.
    """
    x = whole(x)
    return x >= 0 if type(x) is int else _no_negative_coefficient(x)


@lru_cache(maxsize=4096)
def _no_negative_coefficient(x: Any) -> bool:
    import sympy

    fresh = {s: sympy.Dummy(str(s)) for s in x.free_symbols}
    moved = sympy.expand(x.subs({s: fresh[s] + 1 if s.is_positive else fresh[s] for s in fresh}))
    return all(c >= 0 for c in moved.as_coefficients_dict().values())


def least(x: Any, lowest: int) -> Any:
    """`x`, a whole number that is never below `lowest`; raises `Malformed` if it may be."""
    x = whole(x)
    if not never_negative(x - lowest):
        raise Malformed(f"{x} is not shown to be at least {lowest}")
    return x


def is_multiple(x: Any, divisor: int) -> bool:
    """Whether `divisor` divides every coefficient of `x`.

    >>> from layouts import symbols
    >>> is_multiple(8 * symbols("m"), 4), is_multiple(6, 4)
    (True, False)
    """
    x = whole(x)
    if type(x) is int:
        return x % divisor == 0
    return all(int(c) % divisor == 0 for c in x.as_coefficients_dict().values())
