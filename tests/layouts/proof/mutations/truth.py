"""Whether a statement holds, and whether a counterexample is one, by brute force.

Everything is computed by the fuzzer's model from the shapes and the strides alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from itertools import product as cartesian
from operator import add, xor
from typing import Any

import layouts as L
from layouts import F2, ArithTuple, ComposedLayout, Layout, LayoutError, Swizzle
from layouts.algebra.complement import copies_of
from layouts.values.symbols import free_symbols, substitute
from tests.layouts.fuzz import model as m

#: The most indices that are tried.
TRIED = 1 << 12


class Unknown(Exception):
    """Too many indices to try, or a refusal that says nothing."""


class Nonsense(Exception):
    """The statement means nothing."""


def holds(statement: Any) -> bool | None:
    """Whether a statement holds, for small values of its symbols; None if it means nothing.

    Raises `Unknown` if there are too many indices.
    """
    symbols = free_symbols(statement)
    try:
        for values in cartesian((1, 2, 3), repeat=len(symbols)) if symbols else ((),):
            given = dict(zip(symbols, values, strict=True))
            try:
                at = substitute(statement, given) if given else statement
            except LayoutError:  # it has no such layout for these values
                continue
            if not _holds(at):
                return False
    except (Nonsense, LayoutError, TypeError, ValueError, AttributeError, IndexError):
        return None
    return True


def refuted_by(statement: Any, found: Any) -> bool:
    """Whether a statement is false, and `found` is a counterexample to it."""
    symbols = {str(symbol): symbol for symbol in free_symbols(statement)}
    if symbols:
        statement = substitute(statement, {symbols[name]: n for name, n in found.symbols})
    return holds(statement) is False and _fails_at(statement, found)


def _fails_at(statement: Any, found: Any) -> bool:
    """Whether a statement without symbols fails as `found` says; True for laws of several parts,
    whose parts have laws of their own."""
    match statement:
        case L.Injective(layout):
            return _collides(layout, found)
        case L.Bijective(layout, start):
            if isinstance(found.index, tuple):
                return _collides(layout, found)
            value = m.value(layout, found.index)
            inside = value in range(start, start + m.size(layout))
            return _at(layout, found) and not inside and m.as_value(found.left) == value
        case L.Equivalent(a, b):
            if found.left is None or found.right is None:
                one, other = sorted((m.size(a), m.size(b)))
                return one <= found.index < other
            return _at(a, found) and _two_values(
                m.value(a, found.index), m.value(b, found.index), found
            )
        case L.CompositionLaw(a, b, r) if r is not None and found.index is not None:
            left = _after(a, m.value(b, found.index))
            return _at(b, found) and _two_values(left, m.value(r, found.index), found)
        case L.RightInverseLaw(layout, r) if r is not None:
            left = _after(layout, m.value(r, found.index))
            return _at(r, found) and _two_values(left, found.index, found)
        case L.LeftInverseLaw(layout, r) if r is not None:
            left = _after(r, m.value(layout, found.index))
            return _at(layout, found) and _two_values(left, found.index, found)
    return True


def _collides(layout: Any, found: Any) -> bool:
    first, second = found.index
    values = [m.value(layout, index) for index in found.index]
    return 0 <= first < second < m.size(layout) and values[0] == values[1] == m.as_value(
        found.left
    ) == m.as_value(found.right)


def _at(layout: Any, found: Any) -> bool:
    shape = layout.shape
    return 0 <= found.index < m.size(layout) and m.index_of(found.coordinate, shape) == found.index


def _two_values(left: Any, right: Any, found: Any) -> bool:
    return (left or 0) != (right or 0) and (
        m.as_value(found.left) or 0,
        m.as_value(found.right) or 0,
    ) == (left or 0, right or 0)


# ------------------------------------------------------------------------------------ statements


def _holds(statement: Any) -> bool:
    """The statement, without symbols, by its definition."""
    for field in statement._fields():
        _check(field)
    match statement:
        case L.Injective(layout):
            values = _values(layout)
            return all(value not in values[:k] for k, value in enumerate(values))
        case L.Bijective(layout, start):
            _number(start, 0)
            offsets = range(start, start + m.size(layout))
            return not m.is_coordinates(layout) and sorted(_values(layout)) == list(offsets)
        case L.Equivalent(a, b):
            return _values(a) == _values(b)
        case L.CompositionLaw(a, b, r):
            return _composed(a, b, r)
        case L.RightInverseLaw(layout, r):
            r = _result(L.right_inverse, layout) if r is None else r
            _check(r)
            return [_after(layout, value) for value in _values(r)] == list(range(_size(r)))
        case L.LeftInverseLaw(layout, r):
            return _left_inverse(layout, r)
        case L.DivideLaw(layout, tiler, r):
            return _by_mode(_divided, L.logical_divide, layout, tiler, r)
        case L.ProductLaw(layout, tiler, r):
            return _multiplied(layout, tiler, r)
        case L.ComplementLaws(layout, cotarget, r):
            return _complement(layout, cotarget, r)
        case L.SwizzleInvolution() | L.SwizzleAlignment():
            return True
    raise Unknown(statement)


def _composed(a: Any, b: Any, r: Any) -> bool:
    if r is None:
        try:
            r = L.composition(a, b)
        except LayoutError:
            if isinstance(a, Layout) and isinstance(b, Layout) and not m.is_xor(a):
                extents = [extent for extent, _ in m.modes(b)]
                if not _is_layout([_after(a, x) for x in _values(b)], extents):
                    return False
            raise Unknown(a) from None
    _check(r)
    return _refines(b.shape, r.shape) and _values(r) == [_after(a, x) for x in _values(b)]


def _left_inverse(layout: Any, r: Any) -> bool:
    if r is None:
        values = _values(layout)
        if any(value in values[:k] for k, value in enumerate(values)):
            return False
        r = _result(L.left_inverse, layout)
    _check(r)
    return [_after(r, value) for value in _values(layout)] == list(range(_size(layout)))


def _by_mode(one: Any, operation: Any, layout: Any, tiler: Any, r: Any) -> bool:
    """A law of a tiler, or of each mode and its tiler."""
    _check(r)
    if tiler is None:
        return r is None or _values(layout) == _values(r)
    if not isinstance(tiler, tuple):
        tile = tiler if isinstance(tiler, Layout) else Layout(tiler)
        return one(layout, tile, r)
    if len(tiler) > m.rank(layout):
        return False
    r = _result(operation, layout, tiler) if r is None and one is None else r
    modes = [m.part(layout, k) for k in range(m.rank(layout))]
    tilers = (*tiler, *[None] * (len(modes) - len(tiler)))
    results = [None] * len(modes) if r is None else [m.part(r, k) for k in range(m.rank(r))]
    return len(results) == len(modes) and all(
        _by_mode(one, operation, *each) for each in zip(modes, tilers, results, strict=True)
    )


def _divided(layout: Any, tile: Layout, r: Any) -> bool:
    _needs_injective(tile)
    rest = _result(L.complement, tile, _size(layout))
    if m.is_xor(tile):  # the sum of a tile and the rest is an XOR
        modes = [(s, F2(d)) for s, d in m.modes(rest)]
        rest = Layout(tuple(s for s, _ in modes), tuple(d for _, d in modes))
    return _composed(layout, L.make_layout(tile, rest), r)


def _multiplied(layout: Any, tiler: Any, r: Any) -> bool:
    if isinstance(layout, ComposedLayout):
        if r is not None and (
            not isinstance(r, ComposedLayout)
            or (r.inner, r.offset) != (layout.inner, layout.offset)
        ):
            return False
        return _multiplied(layout.outer, tiler, None if r is None else r.outer)
    return _by_mode(_repeated, L.logical_product, layout, tiler, r)


def _repeated(layout: Any, tile: Layout, r: Any) -> bool:
    if _not_injective(layout):
        if r is None:
            return False
        raise Unknown(layout)
    places = _result(copies_of, layout, L.cosize(tile))
    if r is None and not m.is_xor(layout):
        return _composed(places, tile, None)
    r = _result(L.logical_product, layout, tile) if r is None else r
    _check(r)
    return (
        m.rank(r) == 2
        and _values(layout) == _values(m.part(r, 0))
        and _composed(places, tile, m.part(r, 1))
    )


def _complement(layout: Any, cotarget: Any, r: Any) -> bool:
    """False if two pairs of an offset of L and one of R have one sum, or if R does not rise.

    How far R must reach is another matter, which is left open.
    """
    r = _result(L.complement, layout, cotarget) if r is None else r
    _check(r)
    own, others = _moving_values(layout), _values(r)
    if len(own) * len(others) > TRIED:
        raise Unknown(layout)
    repeats = [_repeats(add(a, b) for a, b in cartesian(own, others)) for add in _sums(layout)]
    if all(repeats):
        return False
    if any(repeats):  # it depends on how the library writes the layout
        raise Unknown(layout)
    reach = 0
    for extent, stride in m.modes(r) if not m.is_coordinates(r) else []:
        if extent > 1 and stride <= reach:
            return False
        reach += (extent - 1) * stride
    raise Unknown(layout)


def _sums(layout: Any) -> list[Any]:
    """How an offset of L and one of R may be added: by XOR if L is linear over XOR."""
    if not isinstance(layout, ComposedLayout):
        return [xor] if m.is_xor(layout) else [lambda a, b: m.plus(a, b) or 0]
    if not _is_linear(layout):
        return [add]
    return [xor] if isinstance(layout.inner, Swizzle) else [add, xor]


def _is_linear(layout: ComposedLayout) -> bool:
    """Whether the offsets of the modes that move are the XORs of those of the bits, and of one."""
    extents = [s for s, d in m.modes(layout.outer) if m.moves(d)]
    start, *_ = values = _moving_values(layout)
    return all(s & (s - 1) == 0 for s in extents) and all(
        value ^ start
        == reduce(xor, (values[1 << k] ^ start for k in range(i.bit_length()) if i >> k & 1), 0)
        for i, value in enumerate(values)
    )


def _repeats(values: Iterable[Any]) -> bool:
    seen: list[Any] = []
    for value in values:
        if value in seen:
            return True
        seen.append(value)
    return False


def _moving_values(layout: Any) -> list[Any]:
    """The offsets of a layout without its modes of stride 0."""
    outer = layout.outer if isinstance(layout, ComposedLayout) else layout
    moving = [mode for mode in m.modes(outer) if m.moves(mode[1])]
    part = Layout(tuple(s for s, _ in moving), tuple(d for _, d in moving))
    if isinstance(layout, ComposedLayout):
        return _values(ComposedLayout(layout.inner, layout.offset, part))
    return _values(part)


def _needs_injective(layout: Any) -> None:
    if _not_injective(layout):
        raise Unknown(layout)


def _not_injective(layout: Any) -> bool:
    """Whether two coordinates of the modes that move have one offset."""
    if isinstance(layout, ComposedLayout):
        raise Unknown(layout)
    values = _moving_values(layout)
    return any(value in values[:k] for k, value in enumerate(values))


def _result(operation: Any, *operands: Any) -> Any:
    try:
        return operation(*operands)
    except LayoutError:
        raise Unknown(operation) from None


# ---------------------------------------------------------------------------------- definitions


def _size(x: Any) -> int:
    count = m.size(x)
    if count > TRIED:
        raise Unknown(x)
    return count


def _values(layout: Any) -> list[Any]:
    return [value or 0 for value in m.values(layout, _size(layout))]


def _after(a: Any, value: Any) -> Any:
    """`a` at an index, or at a coordinate."""
    found = m.value(a, value) if type(value) is int else m.at_steps(a, value)
    return found or 0


def _refines(shape: Any, finer: Any) -> bool:
    if not isinstance(shape, tuple):
        return m.size(finer) == shape
    return (
        isinstance(finer, tuple) and len(shape) == len(finer) and all(map(_refines, shape, finer))
    )


def _is_layout(values: list[Any], extents: list[int]) -> bool:
    """Whether `values` are those of a layout with these leaves, each perhaps of several modes."""
    places, place = [], 1
    for extent in extents:
        places.append(place)
        place *= extent
    leaves = [values[p : p * s : p] if s > 1 else [] for p, s in zip(places, extents, strict=True)]
    leaves = [[0, *leaf] for leaf in leaves]
    for index, value in enumerate(values):
        parts = [leaf[index // p % s] for leaf, p, s in zip(leaves, places, extents, strict=True)]
        if _sum(parts) != value:
            return False
    return all(_is_mode(leaf) for leaf in leaves)


def _is_mode(values: list[Any]) -> bool:
    """Whether `values`, from 0 on, are those of one leaf, which may be of several modes."""
    if len(values) == 1:
        return True
    for extent in (d for d in range(2, len(values) + 1) if len(values) % d == 0):
        linear = all(values[k] == _sum([values[1]] * k) for k in range(extent))
        splits = all(
            value == _sum([values[k % extent], values[k - k % extent]])
            for k, value in enumerate(values)
        )
        if linear and splits and _is_mode(values[::extent]):
            return True
    return False


def _sum(parts: list[Any]) -> Any:
    total: Any = 0
    for part in parts:
        total = m.plus(total, part)
    return total or 0


# ------------------------------------------------------------------------------------- nonsense


def _check(x: Any) -> None:
    """Raise `Nonsense` unless everything in `x` is a layout, a swizzle or a number, as it must."""
    if type(x) is tuple:
        for entry in x:
            _check(entry)
    elif isinstance(x, ComposedLayout):
        _number(x.offset, 0)
        _check(x.inner)
        _check(x.outer)
        if type(x.outer) is not Layout or m.is_coordinates(x.outer):
            raise Nonsense(x)
    elif isinstance(x, Swizzle):
        for number in (x.bits, x.base, x.shift):
            _number(number, None)
        if x.bits < 0 or x.base < 0 or (x.bits and abs(x.shift) < x.bits):
            raise Nonsense(x)
    elif isinstance(x, Layout):
        _check_nesting(x.shape, x.stride)
        kinds = {type(d) for _, d in m.modes(x)} - {int}
        for extent, stride in m.modes(x):
            _number(extent, 1)
            _check_stride(extent, stride)
            if kinds and type(stride) is int and stride:
                raise Nonsense(x)
        if len(kinds) > 1:
            raise Nonsense(x)
    elif x is not None and type(x) is not int:
        raise Nonsense(x)


def _check_nesting(shape: Any, stride: Any) -> None:
    if type(shape) is tuple or type(stride) is tuple:
        for s, d in zip(shape, stride, strict=True):
            _check_nesting(s, d)


def _check_stride(extent: int, stride: Any) -> None:
    if isinstance(stride, F2):
        _number(stride.value, 0)
        if extent & (extent - 1):
            raise Nonsense(stride)
    elif isinstance(stride, ArithTuple):
        for _, number in stride.terms:
            _number(number, 0)
    else:
        _number(stride, 0)


def _number(x: Any, lowest: int | None) -> None:
    if type(x) is not int or (lowest is not None and x < lowest):
        raise Nonsense(x)
