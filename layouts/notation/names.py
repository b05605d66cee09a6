"""What names and signs mean in an expression: constructors, and exact arithmetic."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from numbers import Rational
from typing import Any

from ..errors import LayoutError, needed
from ..values.layout import Layout
from ..values.stride import F2, E
from ..values.swizzle import ComposedLayout, Swizzle
from ..values.symbols import has_symbols, remainder
from ..values.value import Value

__all__ = ["CONSTRUCTORS", "PRODUCTS", "SUMS", "power"]

#: The largest exponent that is computed.
LARGEST_EXPONENT = 64


def _quotient(a: Any, b: Any) -> Any:
    """``a / b``, exact: a rounding function makes an integer of a fraction."""
    if b == 0:
        raise LayoutError(f"{a} / 0 is not a number")
    if type(a) is int and type(b) is int and a % b == 0:
        return a // b
    if isinstance(a, Rational) and isinstance(b, Rational):
        from fractions import Fraction  # its import takes milliseconds

        return _integer_if_one(Fraction(a) / Fraction(b))
    return _integer_if_one(needed("sympy", "a symbol").S(a) / b)


def _rounding(name: str, of_number: Callable[[Any], int]) -> Callable[[Any], Any]:
    """sympy's function `name`, `of_number` of an integer or a fraction."""

    def function(value: Any) -> Any:
        if isinstance(value, Rational):
            return int(of_number(value))
        _check_symbolic(name, value)
        return _integer_if_one(getattr(needed("sympy", "a symbol"), name)(value))

    return function


def _check_symbolic(name: str, value: Any) -> None:
    """LayoutError unless a function's argument is an expression of symbols."""
    if isinstance(value, (Value, tuple)) or not has_symbols(value):
        raise LayoutError(f"{name} takes a number or an expression of symbols, not {value}")


def _modulo(n: Any, d: Any) -> Any:
    """The remainder of `n` divided by `d`, as an int if it is one."""
    if type(n) is int and type(d) is int:
        return n % d
    for each in (n, d):
        if not isinstance(each, Rational):
            _check_symbolic("Mod", each)
    return _integer_if_one(remainder(needed("sympy", "a symbol").sympify(n), d))


def _integer_if_one(value: Any) -> Any:
    """A fraction or a sympy expression, as an int if it is one."""
    whole = value.denominator == 1 if isinstance(value, Rational) else value.is_Integer
    return int(value) if whole else value


def power(base: Any, exponent: Any) -> Any:
    """A power of a symbol or of an integer."""
    if type(exponent) is not int or exponent > LARGEST_EXPONENT:
        raise LayoutError(f"an exponent must be an integer of at most {LARGEST_EXPONENT}")
    return base**exponent


def _start(*coordinate: Any) -> Any:
    """C++ ``ArithTuple(0,0)`` and ``counting_iter(0)``: where a tensor without data starts."""
    return tuple(coordinate)


SUMS = {"+": operator.add, "-": operator.sub}
PRODUCTS = {"*": operator.mul, "/": _quotient, "//": operator.floordiv, "%": remainder}

#: The names that `parse` knows.
CONSTRUCTORS: dict[str, Any] = {
    "Layout": Layout,
    "Swizzle": Swizzle,
    "ComposedLayout": ComposedLayout,
    "E": E,
    "F2": F2,
    "ArithTuple": _start,
    "counting_iter": _start,
    "floor": _rounding("floor", math.floor),
    "ceiling": _rounding("ceiling", math.ceil),
    "Mod": _modulo,
    "None": None,
    "_": None,
}
