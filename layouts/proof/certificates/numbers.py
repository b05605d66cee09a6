"""Whole numbers: ints, and polynomials with integer coefficients in symbols that are integers.

A ceiling, such as ``ceiling(m/128)``, counts as one more symbol.  What is shown of it holds for any
integer of its sign, and so for the ceiling.

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

    symbols = _symbols(x)
    if not all(symbol.is_integer and symbol.is_nonnegative for symbol in symbols):
        raise Malformed(f"{x}: its symbols must be integers from 0 up")
    try:
        polynomial = sympy.Poly(x, *symbols or [sympy.Dummy()], domain="ZZ").as_expr()
    except (sympy.PolynomialError, sympy.CoercionFailed):
        raise Malformed(f"{x} is no polynomial with integer coefficients") from None
    return int(polynomial) if polynomial.is_Integer else polynomial


def _symbols(x: Any) -> list[Any]:
    """The symbols of `x`, and its ceilings in place of the symbols inside them."""
    import sympy

    ceilings = {each: sympy.Dummy(str(each)) for each in x.atoms(sympy.ceiling)}
    outside = x.xreplace(ceilings).free_symbols
    kept = [each for each, dummy in ceilings.items() if dummy in outside]
    return sorted([*kept, *(outside - set(ceilings.values()))], key=str)


def is_zero(x: Any) -> bool:
    """Whether `x` is 0 for all values of its symbols."""
    return bool(whole(x) == 0)


def never_negative(x: Any) -> bool:
    """Whether no coefficient of `x` is negative once m + 1 replaces each positive symbol m.

    The new symbols start from 0, so `x` is then never negative.  If `x` has ceilings, it is also
    enough that this holds for something smaller: ``k*d*ceiling(n/d)`` is at least ``k*n`` for
    k >= 0, and at least ``k*(n + d - 1)`` for k <= 0.
    """
    x = whole(x)
    if type(x) is int:
        return bool(x >= 0)
    return _no_negative_coefficient(x) or any(map(never_negative, _smaller(x)))


@lru_cache(maxsize=4096)
def _no_negative_coefficient(x: Any) -> bool:
    import sympy

    fresh = {s: sympy.Dummy(str(s)) for s in _symbols(x)}
    shifted = {s: fresh[s] + 1 if s.is_positive else fresh[s] for s in fresh}
    moved = sympy.expand(x.xreplace(shifted))
    return all(c >= 0 for c in moved.as_coefficients_dict().values())


def _smaller(x: Any) -> list[Any]:
    """For each ceiling whose coefficient is a number: `x` with a bound in place of the ceiling."""
    import sympy

    found = []
    for ceiling in (symbol for symbol in _symbols(x) if isinstance(symbol, sympy.ceiling)):
        n, d = ceiling.args[0].as_numer_denom()
        coefficient = x.coeff(ceiling, 1)
        rest, times = sympy.expand(x - coefficient * ceiling), coefficient / d
        if times.is_Integer and d.is_Integer and not rest.has(ceiling):
            found.append(whole(rest + times * (n if times > 0 else n + d - 1)))
    return found


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
