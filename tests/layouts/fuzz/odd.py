"""Calls with one argument that is out of place: an odd number, a huge one, or no number at all.

What such a call must give is not computed.  It must end, and raise nothing but `LayoutError`.
"""

from __future__ import annotations

import enum
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import sympy

from layouts import F2, ComposedLayout, E, Layout, Swizzle, symbols
from layouts.values.stride import ArithTuple
from layouts.values.value import Value

from .call import Law


class Four(enum.IntEnum):
    """An int that is not of the type int."""

    FOUR = 4


M = symbols("m")

#: What may stand where a number is expected.
ODD = (
    *(np.int64(4), np.uint8(3), np.float64(2), np.array([1, 2]), np.array(3)),
    *(True, False, 2.0, 2.5, float("nan"), float("inf"), 1j, Fraction(4), Fraction(1, 2)),
    *(Decimal(4), sympy.Integer(4), sympy.Rational(1, 2), sympy.oo, sympy.nan, sympy.Symbol("q")),
    *("4", b"4", None, [2, 2], {2: 2}, {2}, range(3), (), ((),), ((), 2), (2, (2, (2, (2,))))),
    *(Four.FOUR, -1, 0, M, -M, M - 1, M / 2, M**2, sympy.Mod(M, 4), sympy.floor(M / 2)),
    *(E(0), E(0, 1), F2(3), Swizzle(2, 0, 3), Layout(4), Layout((), ()), object(), Ellipsis),
    ComposedLayout(Swizzle(1, 0, 1), 0, Layout(4)),
)
HUGE = (1 << 16, 1 << 31, 1 << 62, (1 << 62) + 1, 999_983 * 1_000_003, 10**30, 1 << 200)


def odd_arguments(rng: Random, law: Law) -> tuple[Any, ...] | None:
    """Arguments of `law` with one to three numbers replaced; None if a constructor refuses them."""
    arguments: Any = law.arguments(rng)
    values = rng.choice((ODD, HUGE))
    try:
        for _ in range(rng.choice((1, 1, 2, 3))):
            arguments = _replaced(rng, arguments, rng.choice(values))
    except ValueError:  # a LayoutError is one
        return None
    return arguments  # type: ignore[no-any-return]


def _replaced(rng: Random, x: Any, value: Any) -> Any:
    """`x` with `value` in some place, but not inside coordinates, which users make with `E`."""
    inside = list(x._fields() if isinstance(x, Value) else x if type(x) is tuple else ())
    if not inside or isinstance(x, ArithTuple):
        return value
    k = rng.randrange(len(inside))
    inside[k] = _replaced(rng, inside[k], value)
    return type(x)(*inside) if isinstance(x, Value) else tuple(inside)


def unchecked(law: Law) -> Law:
    """The same calls, any result of which is right."""
    return law._replace(holds=lambda *_: None, exactly=None, exists=None, by_value=False)
