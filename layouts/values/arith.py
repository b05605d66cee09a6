"""Arithmetic on extents and strides: of ints at once, of symbols by proof.

The algebra needs five functions: quotient and remainder, divisibility, order, equality, and
division rounded up.  Where both sides are ints, Python answers; anything else goes to the functions
of the same names in `layouts.values.symbols`.  There True means proved for all values of the
symbols, and False means not proved, so an operation that goes on only after True is right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cmp_to_key
from typing import Any, TypeVar

from ..errors import LayoutError
from .stride import StepStride
from .symbols import ceil_div as symbolic_ceil_div
from .symbols import divided as symbolic_divided
from .symbols import divides as symbolic_divides
from .symbols import equal as symbolic_equal
from .symbols import less as symbolic_less

__all__ = ["ascending", "ceil_div", "divided", "divides", "equal", "less"]

T = TypeVar("T")


def divided(n: Any, d: Any) -> tuple[Any, Any]:
    """(q, r) with ``n == q * d + r``, both at least 0.

    Of ints, ``0 <= r < d``.  Of symbols, r is the remainder of polynomials; whether it is below d
    is a question for `less`.

    >>> divided(14, 4)
    (3, 2)
    """
    if type(n) is int and type(d) is int:
        return divmod(n, d)
    return symbolic_divided(n, d)


def divides(d: Any, n: Any) -> bool:
    """Whether `n` is a multiple of `d`; 0 is a multiple of everything.

    >>> divides(4, 12), divides(4, 14)
    (True, False)
    """
    if type(n) is int and type(d) is int:
        return n % d == 0 if d else n == 0
    return symbolic_divides(d, n)


def less(a: Any, b: Any) -> bool:
    """Whether ``a < b``.

    >>> less(3, 4), less(4, 4)
    (True, False)
    """
    if type(a) is int and type(b) is int:
        return a < b
    return symbolic_less(a, b)


def equal(a: Any, b: Any) -> bool:
    """Whether ``a == b``.

    >>> equal(4, 4)
    True
    """
    if (type(a) is int and type(b) is int) or isinstance(a, StepStride):
        return bool(a == b)
    return False if isinstance(b, StepStride) else bool(symbolic_equal(a, b))


def ceil_div(n: Any, d: Any) -> Any:
    """`n` divided by `d`, rounded up.

    >>> ceil_div(10, 4)
    3
    """
    if type(n) is int and type(d) is int:
        return -(-n // d)
    return symbolic_ceil_div(n, d)


def ascending(items: Iterable[T], key: Callable[[T], Any]) -> list[T]:
    """`items` sorted by `key`; items with equal keys keep their order.

    Raises `LayoutError` if the order of two keys is not proved.

    >>> ascending(["ccc", "a", "bb"], len)
    ['a', 'bb', 'ccc']
    """

    def order(a: T, b: T) -> int:
        x, y = key(a), key(b)
        if less(x, y):
            return -1
        if less(y, x):
            return 1
        if equal(x, y):
            return 0
        if less(x, y + 1):  # x <= y, and equal for some values of the symbols
            return -1
        if less(y, x + 1):
            return 1
        raise LayoutError(
            f"{x} and {y} cannot be put in order: neither {x} <= {y} nor {y} <= {x} is proved for "
            f"all values of the symbols; write more into the expressions, as M = 8*m does"
        )

    given = list(items)
    keys = [key(item) for item in given]
    if all(type(each) is int for each in keys):
        return sorted(given, key=key)
    return sorted(given, key=cmp_to_key(order))
