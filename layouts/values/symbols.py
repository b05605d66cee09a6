"""Polynomials in positive integer symbols, and what can be decided about them.

A symbol is a positive integer.  An extent or a stride may be a polynomial in symbols with integer
coefficients.  A multiple of 8 is written as one: ``M = 8*m``.  The number of tiles of 8 that hold a
plain m is ``ceiling(m/8)``; polynomials take such a ceiling as one more positive integer.

>>> m, n = symbols("m n")
>>> quotient(8 * m * n, 4 * m), quotient(m, 4), at_least(m + n, 2), at_least(m, 4)
(2*n, None, True, None)

Division is exact division of polynomials.  To find a sign, ``m + 1`` is put for every symbol m: a
polynomial in symbols from 0 up without a negative coefficient is never negative.  This test is
sound and incomplete; where it does not decide, the answer is None.  Of a ceiling it also uses that
``n <= d*ceiling(n/d) <= n + d - 1``.  sympy is imported with the first symbol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import product as cartesian
from math import comb, prod
from numbers import Integral
from typing import Any

from ..errors import LayoutError, needed, type_of
from .value import Value

__all__ = [
    "GIVE_VALUES",
    "at_least",
    "ceil_div",
    "coefficients",
    "divided",
    "divides",
    "equal",
    "fails_at",
    "free_symbols",
    "has_symbols",
    "less",
    "plain",
    "plain_if_symbolic",
    "quotient",
    "remainder",
    "small_values",
    "substitute",
    "symbols",
]


#: The advice of a message where numbers must be known.
GIVE_VALUES = "give the symbols values first, as in substitute(layout, {m: 8})"


def symbols(names: str) -> Any:
    """Positive integer symbols for shapes and strides: one symbol, or a tuple of several.

    They are ``sympy.symbols(names, positive=True, integer=True)``.  Raises `LayoutError` without
    sympy, or if `names` is not a string with a name in it.

    >>> from layouts import Layout, symbols
    >>> m = symbols("m")
    >>> print(Layout((8 * m, 64), (64, 1)))
    (8*m,64):(64,1)
    """
    if not isinstance(names, str) or not names.strip(" ,"):
        raise LayoutError(f"symbols({names!r}): give their names, as in symbols('m n')")
    return needed("sympy", "a symbol").symbols(names, positive=True, integer=True)


def has_symbols(x: Any) -> bool:
    """Whether `x`, an expression, a tuple or a value, contains a symbol.

    >>> has_symbols(symbols("m") + 1), has_symbols((4, (8, 2)))
    (True, False)
    """
    return bool(free_symbols(x))


def free_symbols(x: Any) -> tuple[Any, ...]:
    """The symbols in an expression, a tuple or a value, ordered by name.

    >>> from layouts import Layout
    >>> free_symbols(Layout(symbols("n m"), (1, 8)))
    (m, n)
    """
    return tuple(sorted(set(_symbols_in(x)), key=str))


def _symbols_in(x: Any) -> Iterator[Any]:
    if isinstance(x, int):
        return
    if isinstance(x, Value):
        x = x._fields()
    if isinstance(x, (tuple, list)):
        for entry in x:
            yield from _symbols_in(entry)
    else:
        yield from getattr(x, "free_symbols", ())


def plain(x: Any) -> Any:
    """`x` in its canonical form: expanded, and an int if it is constant.

    Raises `LayoutError` unless `x` is a polynomial with integer coefficients in integer symbols.

    >>> m = symbols("m")
    >>> plain((m + 1) * m - m**2), plain(m - m + 4), type(plain(m - m + 4))
    (m, 4, <class 'int'>)
    """
    if isinstance(x, int):
        return x
    if not hasattr(x, "free_symbols"):
        raise LayoutError(
            f"{x!r} is {type_of(x)}: it must be an integer known now, or a sympy "
            f"expression in positive integer symbols"
        )
    return _plain(x)


def plain_if_symbolic(x: Any) -> Any:
    """`plain` of a sympy expression; anything else, such as a coordinate stride, as it is.

    >>> m = symbols("m")
    >>> plain_if_symbolic((m + 1) * m), plain_if_symbolic("x")
    (m**2 + m, 'x')
    """
    return plain(x) if type(x) is not int and hasattr(x, "free_symbols") else x


@lru_cache(maxsize=4096)
def _plain(x: Any) -> Any:
    import sympy

    x = sympy.expand(x)
    if x.is_Integer:
        return int(x)
    _poly(x)
    return x


@lru_cache(maxsize=4096)
def _poly(x: Any) -> Any:
    """`x`, which is expanded, as a polynomial over the integers in its symbols."""
    import sympy

    gens = generators(sympy.sympify(x))
    for symbol in gens:
        if not (symbol.is_integer and symbol.is_nonnegative):
            raise LayoutError(
                f"{x}: the symbol {symbol} is not known to be a positive integer; make it with "
                f"layouts.symbols({str(symbol)!r})"
            )
    try:
        return sympy.Poly(x, *gens or [sympy.Dummy()], domain="ZZ", expand=False)
    except (sympy.PolynomialError, sympy.CoercionFailed):
        raise LayoutError(
            f"{x}: it must be a polynomial with integer coefficients; write a multiple of 8 as a "
            f"product, 8*m"
        ) from None


def generators(x: Any) -> list[Any]:
    """What the sympy expression `x` is a polynomial in: its symbols and ceilings, ordered by name.

    >>> m = symbols("m")
    >>> generators(m * ceil_div(m, 128) + 1)
    [ceiling(m/128), m]
    """
    import sympy

    found, rest = set(), [x]
    while rest:
        part = rest.pop()
        if part.is_Symbol or isinstance(part, sympy.ceiling):
            found.add(part)
        else:
            rest += part.args
    return sorted(found, key=str)


# ------------------------------------------------------------------------------- division


def quotient(a: Any, b: Any) -> Any:
    """``a / b`` if `b` is proved to divide `a` for every value of the symbols, else None.

    >>> m = symbols("m")
    >>> quotient(12, 4), quotient(12, 5), quotient(8 * m**2 + 8 * m, m + 1)
    (3, None, 8*m)
    """
    q, r = divided(a, b)
    return q if type(r) is int and r == 0 else None


def divided(a: Any, b: Any) -> tuple[Any, Any]:
    """Polynomials q and r with ``a == q*b + r``; neither is ever negative if `a` is not.

    For ints this is ``divmod``.  With symbols, r is the remainder of polynomials, which may be `a`
    itself and need not be below `b`.

    >>> m = symbols("m")
    >>> divided(9, 4), divided(8 * m + 6, 4), divided(2 * m + 1, m), divided(m, 2 * m)
    ((2, 1), (2*m + 1, 2), (2, 1), (0, m))
    """
    a, b = plain(a), plain(b)
    if isinstance(a, int) and isinstance(b, int):
        return divmod(a, b)
    q, r = _divided(a, b)
    return (q, r) if at_least(q, 0) and at_least(r, 0) else (0, a)


@lru_cache(maxsize=4096)
def _divided(a: Any, b: Any) -> tuple[Any, Any]:
    import sympy

    gens = generators(sympy.Tuple(a, b))
    dividend = sympy.Poly(a, *gens, domain="ZZ", expand=False)
    divisor = sympy.Poly(b, *gens, domain="ZZ", expand=False)
    if len(divisor.terms()) == 1:
        q = sympy.Poly.from_dict(_term_by_term(dividend, *divisor.terms()[0]), *gens, domain="ZZ")
        r = dividend - q * divisor
    else:
        q, r = dividend.div(divisor, auto=False)
    return plain(q.as_expr()), plain(r.as_expr())


def _term_by_term(dividend: Any, by: tuple[int, ...], coefficient: Any) -> dict[Any, int]:
    """The terms of the quotient by one term; coefficients are divided as ints are."""
    terms: dict[Any, int] = {}
    for powers, c in dividend.terms():
        quotient_powers = tuple(power - other for power, other in zip(powers, by, strict=True))
        if min(quotient_powers) >= 0 and int(c) // int(coefficient):
            terms[quotient_powers] = int(c) // int(coefficient)
    return terms


def divides(d: Any, n: Any) -> bool:
    """Whether it is proved that `n` is a multiple of `d`; 0 is a multiple of everything.

    >>> m = symbols("m")
    >>> divides(4, 8 * m), divides(m, 8 * m), divides(8, m), divides(m, 0)
    (True, True, False, True)
    """
    if plain(n) == 0 or plain(d) == 0:
        return bool(plain(n) == 0)
    return quotient(n, d) is not None


def remainder(n: Any, d: Any) -> Any:
    """``n % d`` of integers, arrays and expressions.

    A ``Mod`` inside `n` is written with ``floor``: sympy 1.14 squares it, or takes d for a factor,
    in the Mod of a product.

    >>> from sympy import Mod
    >>> m = symbols("m")
    >>> Mod(2 * Mod(7, m), 3).subs(m, 5), remainder(2 * Mod(7, m), 3).subs(m, 5)
    (2, 1)
    """
    if type(n) is int or not hasattr(n, "free_symbols"):
        return n % d
    import sympy

    return n.replace(sympy.Mod, lambda a, b: a - b * sympy.floor(a / b)) % d


def ceil_div(n: Any, d: Any) -> Any:
    """`n` divided by `d`, rounded up: a polynomial if there is one, or a ceiling if d is a number.

    >>> m = symbols("m")
    >>> ceil_div(8 * m, 4), ceil_div(8 * m + 1, 4), ceil_div(3, 4 * m), ceil_div(m, 128)
    (2*m, 2*m + 1, 1, ceiling(m/128))

    Raises `LayoutError` otherwise.
    """
    q, r = divided(n, d)
    if type(r) is int and r == 0:
        return q
    if at_least(r, 1) and at_least(d, r):
        return plain(q + 1)
    rounded_up = _ceiling(plain(n), d) if isinstance(d, int) else None
    if rounded_up is None:
        raise LayoutError(
            f"{n} divided by {d}, rounded up, is not a polynomial: it is not proved that {d} "
            f"divides {n}; write {n} as a multiple of {d}, or divide by a number"
        )
    return rounded_up


@lru_cache(maxsize=4096)
def _ceiling(n: Any, d: int) -> Any:
    """The ceiling of ``n / d``, where n is a product or linear; otherwise None.

    sympy takes seconds for what it can assume of a sum of higher powers.
    """
    import sympy

    poly = _poly(n)
    if len(poly.terms()) > 1 and poly.total_degree() > 1:
        return None
    found = sympy.ceiling(n / sympy.Integer(d))
    return plain(found) if found.is_nonnegative else None


# ------------------------------------------------------------------------------ comparison


def less(a: Any, b: Any) -> bool:
    """Whether it is proved that ``a < b`` for every value of the symbols.

    >>> m = symbols("m")
    >>> less(m, 2 * m), less(3, m), less(m, m)
    (True, False, False)
    """
    return at_least(b - 1, a) is True


def at_least(a: Any, b: Any) -> bool | None:
    """Whether ``a >= b``: True if for every value of the symbols, False if for none, else None.

    >>> m, n = symbols("m n")
    >>> at_least(3, 4), at_least(m * n, m), at_least(0, m), at_least(9, m)
    (False, True, False, None)
    """
    if isinstance(a, int) and isinstance(b, int):
        return a >= b
    difference = plain(a - b)
    if never_negative(difference):
        return True
    return False if never_negative(plain(-difference - 1)) else None


@lru_cache(maxsize=4096)
def never_negative(x: Any) -> bool:
    """Whether `x` is proved to be at least 0, by putting 1 + m for every positive symbol m, or by
    the bounds of a ceiling."""
    if isinstance(x, int):
        return x >= 0
    poly = _poly(x)
    if all(c >= 0 for c in _from_zero(poly).values()):
        return True
    return any(never_negative(lower) for lower in _without_a_ceiling(poly))


def _without_a_ceiling(poly: Any) -> Iterator[Any]:
    """For each ceiling in `poly`: a polynomial without it that is never greater.

    A coefficient of ``ceiling(n/d)`` that is k times d gives k*n if k is never negative, and
    k*(n + d - 1) if k is never positive.
    """
    for ceiling in poly.gens:
        if ceiling.is_Symbol or poly.degree(ceiling) != 1:
            continue
        n, d = ceiling.args[0].as_numer_denom()
        coefficient = plain(poly.as_expr().coeff(ceiling, 1))
        rest = plain(poly.as_expr() - coefficient * ceiling)
        for sign, bound in ((1, n), (-1, n + d - 1)):
            times = quotient(sign * coefficient, d)
            if times is not None and at_least(times, 0):
                yield plain(rest + sign * times * bound)


def _from_zero(poly: Any) -> dict[tuple[int, ...], int]:
    """The coefficients of `poly` in symbols that start from 0, by binomials."""
    starts = [1 if symbol.is_positive else 0 for symbol in poly.gens]
    shifted: dict[tuple[int, ...], int] = {}
    for powers, c in poly.terms():
        lowest = (0 if start else power for start, power in zip(starts, powers, strict=True))
        ranges = (range(low, power + 1) for low, power in zip(lowest, powers, strict=True))
        for lower in cartesian(*ranges):
            times = prod(map(comb, powers, lower))
            shifted[lower] = shifted.get(lower, 0) + int(c) * times
    return shifted


def equal(a: Any, b: Any) -> bool | None:
    """Whether ``a == b``: True if for every value of the symbols, False if for none, else None.

    >>> m = symbols("m")
    >>> equal(m * (m + 1), m**2 + m), equal(m + 1, m), equal(m, 2)
    (True, False, None)
    """
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    difference = plain(a - b)
    if type(difference) is int:
        return difference == 0
    if never_negative(plain(difference - 1)) or never_negative(plain(-difference - 1)):
        return False
    return None


# ---------------------------------------------------------------------------------- values


def coefficients(x: Any) -> dict[Any, int]:
    """The polynomial `x` as its monomials, each with its coefficient; that of a number is 1.

    >>> m = symbols("m")
    >>> coefficients(4 * (m + 2)) == {m: 4, 1: 8}, coefficients(7)
    (True, {1: 7})
    """
    x = plain(x)
    if isinstance(x, int):
        return {1: x} if x else {}
    return {plain(monomial): int(c) for monomial, c in x.as_coefficients_dict().items()}


def substitute(x: Any, values: Mapping[Any, Any]) -> Any:
    """`x`, an expression, a tuple or a value such as a layout, with numbers for its symbols.

    `values` takes symbols to integers, or to expressions; the index of a thread may be 0.

    Raises `LayoutError` if it takes anything else, or to anything else.

    >>> from layouts import Layout
    >>> m = symbols("m")
    >>> print(substitute(Layout((8 * m, 4), (4, 1)), {m: 2}))
    (16,4):(4,1)
    """
    if not isinstance(values, Mapping):
        raise LayoutError(f"substitute: {values!r} must be values of symbols, such as {{m: 8}}")
    for symbol, value in values.items():
        if not getattr(symbol, "is_Symbol", False):
            raise LayoutError(f"substitute: {symbol!r} must be a symbol, as symbols('m') makes it")
        number = isinstance(value, Integral) and not isinstance(value, bool)
        if not has_symbols(value) and not (number and int(value) >= 0):
            raise LayoutError(f"substitute: {symbol} is {value!r} and must be an integer from 0 up")
    return _substituted(x, values)


def _substituted(x: Any, values: Mapping[Any, Any]) -> Any:
    if isinstance(x, tuple):
        entries = [_substituted(entry, values) for entry in x]
        return type(x)(*entries) if hasattr(x, "_fields") else tuple(entries)  # a named tuple
    if isinstance(x, Value):
        return type(x)(*(_substituted(field, values) for field in x._fields()))
    if isinstance(x, int) or not hasattr(x, "subs"):
        return x
    numbers = _numbers(x, values)
    return plain(x.subs(values, simultaneous=True)) if numbers is None else numbers


def _numbers(x: Any, values: Mapping[Any, Any]) -> int | None:
    """The polynomial `x` with a number for each of its generators; None if one has none.

    sympy's own `subs` takes a hundred times as long.
    """
    try:
        generators, terms = _terms(x)
    except LayoutError:
        return None
    points: Any = [_at(each, values) for each in generators]
    if None in points:
        return None
    return int(sum(c * prod(map(pow, points, powers)) for powers, c in terms))


def _at(generator: Any, values: Mapping[Any, Any]) -> int | None:
    """The number for a symbol, or that of a ceiling; None if there is none."""
    if generator.is_Symbol:
        n = values.get(generator)
        return n if type(n) is int else None
    over, d = generator.args[0].as_numer_denom()
    n = _numbers(over, values)
    return None if n is None else -(-n // int(d))


@lru_cache(maxsize=4096)
def _terms(x: Any) -> tuple[tuple[Any, ...], tuple[tuple[tuple[int, ...], int], ...]]:
    """The generators of the polynomial `x`, and its terms as (powers, coefficient)."""
    poly = _poly(plain(x))
    return poly.gens, tuple((powers, int(c)) for powers, c in poly.terms())


def fails_at(operation: Callable[..., Any], *args: Any) -> str:
    """A sentence for an error: the first small values of the symbols at which `operation` has no
    result, and why; empty if there are none.

    >>> from layouts import Layout, composition
    >>> m = symbols("m")
    >>> fails_at(composition, Layout((m, 3), (1, 100)), Layout(4, 3))[:41]
    ' For m = 4 there is none: composition of '
    """
    names = free_symbols(args)
    for values in small_values(names, 60) if names else ():
        try:
            operation(*(substitute(arg, values) for arg in args))
        except LayoutError as error:
            at = ", ".join(f"{name} = {value}" for name, value in values.items())
            return f" For {at} there is none: {error}"
    return ""


def small_values(names: Iterable[Any], most: int = 400) -> Iterator[dict[Any, int]]:
    """Values of the symbols from 1 up, small sums first: candidates for a counterexample.

    >>> [tuple(values.values()) for values in small_values(symbols("m n"), 5)]
    [(1, 1), (1, 2), (2, 1), (1, 3), (2, 2)]
    """
    names = tuple(names)
    highest = 1
    while highest ** len(names) < most and highest < most:
        highest += 1
    points = sorted(cartesian(range(1, highest + 1), repeat=len(names)), key=sum)
    for point in points[:most]:
        yield dict(zip(names, point, strict=True))
