"""What names and signs mean in an expression: constructors, and exact arithmetic."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ..errors import LayoutError
from ..values.layout import Layout
from ..values.stride import F2, E
from ..values.swizzle import ComposedLayout, Swizzle
from ..values.symbols import remainder

__all__ = ["CONSTRUCTORS", "PRODUCTS", "SUMS", "power"]

#: The largest exponent that is computed.
LARGEST_EXPONENT = 64


def _quotient(a: Any, b: Any) -> Any:
    """``a / b``, exact: a rounding function makes an integer of a fraction."""
    if b == 0:
        raise LayoutError(f"{a} / 0 is not a number")
    if type(a) is int and type(b) is int and a % b == 0:
        return a // b
    from sympy import S

    return _integer_or_symbolic(S(a) / b)


def _rounding(name: str) -> Callable[..., Any]:
    """sympy's function `name`; sympy is imported when the function is called."""

    def function(*values: Any) -> Any:
        import sympy

        return _integer_or_symbolic(getattr(sympy, name)(*values))

    return function


def _modulo(n: Any, d: Any) -> Any:
    """The remainder of `n` divided by `d`, as an int if it is one."""
    import sympy

    return _integer_or_symbolic(remainder(sympy.sympify(n), d))


def _integer_or_symbolic(value: Any) -> Any:
    """A sympy expression, as an int if it is one."""
    return int(value) if value.is_Integer else value


def power(base: Any, exponent: Any) -> Any:
    """A power of a symbol or of an integer."""
    if type(exponent) is not int or exponent > LARGEST_EXPONENT:
        raise LayoutError(f"an exponent must be an integer of at most {LARGEST_EXPONENT}")
    return base**exponent


def _arith_tuple(*coordinate: Any) -> Any:
    """C++ ``ArithTuple(0,0)``: the coordinate at which a tensor of coordinates starts."""
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
    "ArithTuple": _arith_tuple,
    "floor": _rounding("floor"),
    "ceiling": _rounding("ceiling"),
    "Mod": _modulo,
    "None": None,
    "_": None,
}
