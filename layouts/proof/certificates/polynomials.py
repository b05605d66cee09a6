"""What sympy decides about polynomials: identities, signs, divisibility, sums of floor(i/P)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["floor_coefficients", "is_multiple", "is_zero", "never_negative"]


def is_zero(x: Any) -> bool:
    """Whether sympy expands `x` to 0."""
    import sympy

    return bool(sympy.expand(x) == 0)


def never_negative(x: Any) -> bool:
    """Whether no coefficient of `x` is negative once m + 1 replaces each positive symbol m.

    The new symbols start from 0, so `x` is then never negative.
    """
    import sympy

    x = sympy.sympify(x)
    symbols = sorted(x.free_symbols, key=str)
    if not all(symbol.is_integer and symbol.is_nonnegative for symbol in symbols):
        return False
    fresh = {s: sympy.Dummy(str(s)) for s in symbols}
    moved = sympy.expand(x.subs({s: fresh[s] + 1 if s.is_positive else fresh[s] for s in symbols}))
    return all(c >= 0 for c in moved.as_coefficients_dict().values())


def is_multiple(x: Any, divisor: int) -> bool:
    """Whether `divisor` divides every coefficient of `x`."""
    import sympy

    coefficients = sympy.expand(x).as_coefficients_dict().values()
    return all(sympy.Integer(c) % divisor == 0 for c in coefficients)


def floor_coefficients(modes: Sequence[tuple[Any, Any]]) -> dict[Any, Any]:
    """The layout of `modes` as a sum of c * floor(i/P): the coefficients c by P, without zeros.

    Digit k of the index is ``floor(i/P) - s*floor(i/(P*s))``, where P is the product of the extents
    before it and s is its own.  The last digit is unbounded: it is floor(i/P).
    """
    import sympy

    total: dict[Any, Any] = {}
    place = sympy.Integer(1)
    for k, (extent, stride) in enumerate(modes):
        total[place] = total.get(place, 0) + stride
        if k < len(modes) - 1:
            after = sympy.expand(place * extent)
            total[after] = total.get(after, 0) - extent * stride
            place = after
    return {place: sympy.expand(c) for place, c in total.items() if not is_zero(c)}
