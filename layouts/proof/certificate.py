"""Certificates: what is left to check when a statement has been decided, and its check by sympy.

A certificate is a witness: the digits, quotients and remainders, the order of the modes, the
multipliers.  `verify` needs the witness alone.  It knows nothing of how it was found and shares no
code with that: identities of polynomials are expanded by sympy, matrices over GF(2) multiplied by
sympy's `DomainMatrix`, offsets computed bit by bit.  `claim` is what the certificate is for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from ..values.layout import Layout
from ..values.stride import F2
from ..values.swizzle import ComposedLayout, Swizzle
from ..values.value import Value
from .digits import Reading

__all__ = [
    "Cancels",
    "Chain",
    "Farkas",
    "FullRank",
    "Growing",
    "Looked",
    "NeverNegative",
    "NoDifference",
    "Permutes",
    "SameComponents",
    "SameDigits",
    "SameFloors",
    "SameMatrix",
    "SameStages",
    "evaluate",
    "stages_of",
]

#: Up to this size a layout's offsets are counted by its generating polynomial.
POLYNOMIAL_LIMIT = 1 << 12


# ----------------------------------------------------------------------------- layouts, again


def stages_of(layout: Any) -> tuple[Any, ...]:
    """A layout or composed layout as functions, the last first.

    >>> stages_of(ComposedLayout(Swizzle(1, 0, 2), 4, Layout(8)))
    (Swizzle(1, 0, 2), 4, Layout(8, 1))
    """
    if not isinstance(layout, ComposedLayout):
        return (layout,)
    offset = () if type(layout.offset) is int and layout.offset == 0 else (layout.offset,)
    return (*stages_of(layout.inner), *offset, *stages_of(layout.outer))


def evaluate(stages: Sequence[Any], index: int) -> Any:
    """The value of `stages` at an index, from the definitions: digit by digit, and bit by bit.

    >>> evaluate((Swizzle(1, 0, 2), 4, Layout(8)), 1)
    4
    """
    value: Any = index
    for stage in reversed(stages):
        if isinstance(stage, Layout):
            value = stage._evaluated(_offset(modes_of(stage), value))
        elif isinstance(stage, Swizzle):
            value = _bits(value, _swizzle_rows(stage))
        else:
            value = value + stage
    return value


def _offset(modes: Sequence[tuple[Any, Any]], index: int) -> Any:
    total: Any = 0
    for extent, stride in modes[:-1]:
        total, index = total + index % extent * stride, index // extent
    return total + index * modes[-1][1]


def _swizzle_rows(swizzle: Swizzle) -> dict[int, int]:
    """For each bit that changes, the bit that is added to it."""
    lowest = swizzle.base + max(0, -swizzle.shift)
    return {j: j + swizzle.shift for j in range(lowest, lowest + swizzle.bits)}


def _bits(value: int, added: dict[int, int]) -> int:
    for target, source in added.items():
        old, read = value >> target & 1, value >> source & 1
        value += ((old + read) % 2 - old) << target
    return value


def modes_of(layout: Layout) -> list[tuple[Any, Any]]:
    def pairs(shape: Any, stride: Any) -> Iterator[tuple[Any, Any]]:
        if not isinstance(shape, tuple):
            yield shape, stride
        else:
            for s, d in zip(shape, stride, strict=True):
                yield from pairs(s, d)

    return list(pairs(layout.shape, layout.stride)) or [(1, 0)]


# ------------------------------------------------------------------------------ sympy, asked


def _zero(x: Any) -> bool:
    """Whether sympy expands `x` to 0."""
    import sympy

    return bool(sympy.expand(x) == 0)


def _never_negative(x: Any) -> bool:
    """Whether `x` has no negative coefficient in symbols that start from 0."""
    import sympy

    x = sympy.sympify(x)
    symbols = sorted(x.free_symbols, key=str)
    if not all(symbol.is_integer and symbol.is_nonnegative for symbol in symbols):
        return False
    fresh = {s: sympy.Dummy(str(s)) for s in symbols}
    moved = sympy.expand(x.subs({s: fresh[s] + 1 if s.is_positive else fresh[s] for s in symbols}))
    return all(c >= 0 for c in moved.as_coefficients_dict().values())


def _floors(modes: Sequence[tuple[Any, Any]]) -> dict[Any, Any]:
    """The coefficients of floor(i/P) in the layout of `modes`, by P; without those that are 0.

    Digit k is ``floor(i/P) - s*floor(i/(P*s))``, and the last, which has no end, is floor(i/P).
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
    return {place: sympy.expand(c) for place, c in total.items() if not _zero(c)}


def _gf2(entry: Any, rows: int, columns: int) -> Any:
    """The matrix over GF(2) with ``entry(row, column)``."""
    from sympy import GF
    from sympy.polys.matrices import DomainMatrix

    field = GF(2)
    table = [[field(entry(i, j) & 1) for j in range(columns)] for i in range(rows)]
    return DomainMatrix(table, (rows, columns), field)


def columns_matrix(columns: Sequence[int], rows: int) -> Any:
    return _gf2(lambda i, j: columns[j] >> i, rows, len(columns))


# ------------------------------------------------------------------------------ same functions


class SameStages(Value):
    """`outer` after `left` is `outer` after `right`, where left and right are the same function."""

    __slots__ = __match_args__ = ("outer", "inside")
    outer: tuple[Any, ...]
    inside: Any

    def __init__(self, outer: tuple[Any, ...], inside: Any) -> None:
        self._set(outer, inside)

    @property
    def claim(self) -> tuple[Any, ...]:
        """("same", left, right, count)"""
        _, left, right, count = self.inside.claim
        return "same", self.outer + left, self.outer + right, count

    def verify(self) -> bool:
        """The same function of equal values has equal values."""
        return bool(self.inside.verify())


class SameDigits(Value):
    """Two chains of layouts and offsets take the same value at every index below `count`."""

    __slots__ = __match_args__ = ("count", "digits", "left", "right")
    count: Any
    digits: tuple[Any, ...]
    left: tuple[Reading, ...]
    right: tuple[Reading, ...]

    def __init__(
        self,
        count: Any,
        digits: tuple[Any, ...],
        left: tuple[Reading, ...],
        right: tuple[Reading, ...],
    ) -> None:
        self._set(count, digits, left, right)

    @property
    def claim(self) -> tuple[Any, ...]:
        """("same", left, right, count)"""
        left, right = (
            tuple(reading.stage for reading in reversed(side)) for side in (self.left, self.right)
        )
        return "same", left, right, self.count

    def verify(self) -> bool:
        """Expand every division with remainder, bound every remainder, compare what comes out."""
        import sympy

        if not _zero(sympy.prod(self.digits) - self.count):
            return False
        x = [sympy.Dummy(f"x{k}", integer=True) for k in range(len(self.digits))]
        index: Any = sympy.Integer(0)
        for k, digit in enumerate(x):
            index += sympy.prod(self.digits[:k]) * digit
        values = [self._value(side, index, x) for side in (self.left, self.right)]
        return None not in values and _zero(values[0] - values[1])

    def _value(self, side: Sequence[Reading], value: Any, x: Sequence[Any]) -> Any:
        """What comes out of `side` as a sympy expression in the digits, or None."""
        for reading in side:
            if not isinstance(reading.stage, Layout):
                value = value + reading.stage
                continue
            extended = [(1 if s is None else s, d) for s, d in reading.modes]
            if _floors(extended) != _floors(modes_of(reading.stage)):
                return None
            total, rest = 0, value
            for (extent, stride), step in zip(reading.modes[:-1], reading.steps, strict=True):
                q, r = _expression(step.quotient, x), _expression(step.remainder, x)
                if not _zero(rest - extent * q - r) or not self._within(step.remainder, extent):
                    return None
                total, rest = total + r * stride, q
            value = total + rest * reading.modes[-1][1]
        return value

    def _within(self, remainder: Sequence[Any], extent: Any) -> bool:
        """Whether ``0 <= remainder < extent`` for all digits."""
        highest = remainder[0]
        for weight, digit in zip(remainder[1:], self.digits, strict=True):
            highest = highest + weight * (digit - 1)
        return all(map(_never_negative, remainder)) and _never_negative(extent - 1 - highest)


def _expression(form: Sequence[Any], x: Sequence[Any]) -> Any:
    return form[0] + sum(w * digit for w, digit in zip(form[1:], x, strict=True))


class SameFloors(Value):
    """Two layouts are the same function at every index below `count`, or at all if it is None.

    A layout is a sum of floor(i/P) with coefficients; no two such sums with distinct P are equal.
    """

    __slots__ = __match_args__ = ("left", "right", "count")
    left: Layout
    right: Layout
    count: Any

    def __init__(self, left: Layout, right: Layout, count: Any) -> None:
        self._set(left, right, count)

    @property
    def claim(self) -> tuple[Any, ...]:
        """("same", left, right, count)"""
        return "same", (self.left,), (self.right,), self.count

    def verify(self) -> bool:
        """Expand the coefficients, and compare those with P below `count`."""
        left, right = (_floors(modes_of(layout)) for layout in (self.left, self.right))
        differing = [p for p in {*left, *right} if not _zero(left.get(p, 0) - right.get(p, 0))]
        if self.count is None:
            return not differing
        return all(_never_negative(place - self.count) for place in differing)


class SameComponents(Value):
    """Two chains that end in coordinates agree, since each component of these does."""

    __slots__ = __match_args__ = ("left", "right", "count", "parts")
    left: tuple[Any, ...]
    right: tuple[Any, ...]
    count: Any
    parts: tuple[tuple[Any, Any], ...]

    def __init__(
        self,
        left: tuple[Any, ...],
        right: tuple[Any, ...],
        count: Any,
        parts: tuple[tuple[Any, Any], ...],
    ) -> None:
        self._set(left, right, count, parts)

    @property
    def claim(self) -> tuple[Any, ...]:
        """("same", left, right, count)"""
        return "same", self.left, self.right, self.count

    def verify(self) -> bool:
        """There is a part for each component that a stride has, of that component, and it holds."""
        sides = self.left, self.right
        paths = {path for side in sides for _, d in modes_of(side[0]) if d for path, _ in d.terms}
        if paths != {path for path, _ in self.parts}:
            return False
        for path, certificate in self.parts:
            _, *chains, count = certificate.claim
            for side, chain in zip(sides, chains, strict=True):
                strides = [dict(d.terms).get(path, 0) if d else 0 for _, d in modes_of(side[0])]
                own = [(s, d) for (s, _), d in zip(modes_of(side[0]), strides, strict=True)]
                if modes_of(chain[0]) != own or chain[1:] != side[1:]:
                    return False
            if count != self.count or not certificate.verify():
                return False
        return True


class SameMatrix(Value):
    """Two swizzled layouts are one bit matrix, on the 2**bits indices of each."""

    __slots__ = __match_args__ = ("left", "right", "bits")
    left: tuple[Any, ...]
    right: tuple[Any, ...]
    bits: int

    def __init__(self, left: tuple[Any, ...], right: tuple[Any, ...], bits: int) -> None:
        self._set(left, right, bits)

    @property
    def claim(self) -> tuple[Any, ...]:
        """("same", left, right, count)"""
        return "same", self.left, self.right, 1 << self.bits

    def verify(self) -> bool:
        """Multiply the matrices of the stages, over GF(2)."""
        left, right = (self._matrix(side) for side in (self.left, self.right))
        return left is not None and right is not None and bool(left == right)

    def _matrix(self, stages: Sequence[Any]) -> Any:
        """The columns and, as the last, what index 0 goes to; None if strides carry."""
        *after, layout = stages
        offset = after.pop() if after and type(after[-1]) is int else 0
        columns = [evaluate((layout,), 1 << j) for j in range(self.bits)]
        if offset or not _xor(layout):
            seen = offset
            for column in columns:
                if seen & column:
                    return None
                seen |= column
        if any(extent & (extent - 1) for extent, _ in modes_of(layout)):
            return None
        rows = max([column.bit_length() for column in (*columns, offset)] + [1])
        matrix = columns_matrix([*columns, offset], rows)
        for stage in reversed(after):
            matrix = _stage_matrix(stage, matrix.shape[0]) * matrix
        return [_int(matrix, j) for j in range(self.bits + 1)]


def _xor(layout: Layout) -> bool:
    return any(isinstance(d, F2) for _, d in modes_of(layout))


def _stage_matrix(stage: Any, width: int) -> Any:
    """What a swizzle, or a layout with XOR strides, does to `width` bits."""
    if isinstance(stage, Swizzle):
        wide = max(width, (stage.source | stage.target).bit_length())
        wide_in = _gf2(lambda i, j: int(i == j), wide, width)
        return _swizzle_matrix(stage, wide) * wide_in
    columns = [evaluate((stage,), 1 << j) for j in range(width)]
    return columns_matrix(columns, max([column.bit_length() for column in columns] + [1]))


def _int(matrix: Any, column: int) -> int:
    rows = matrix.to_Matrix()
    return sum(int(rows[i, column]) % 2 << i for i in range(matrix.shape[0]))


def _swizzle_matrix(swizzle: Swizzle, bits: int) -> Any:
    added = _swizzle_rows(swizzle)
    return _gf2(lambda i, j: int(i == j) ^ int(added.get(i) == j), bits, bits)


# ------------------------------------------------------------------- injective and bijective


class _InOrder(Value):
    """What follows where, in this order of the modes, each stride follows on what those before it
    reach."""

    __slots__ = __match_args__ = ("layout", "order")
    layout: Layout
    order: tuple[int, ...]

    def __init__(self, layout: Layout, order: tuple[int, ...]) -> None:
        self._set(layout, order)

    def verify(self) -> bool:
        """Each stride, less the largest sum before it and 1, is as `_follows` says."""
        modes = modes_of(self.layout)
        if not _covers(self.order, modes):
            return False
        next_: Any = 1
        for k in self.order:
            extent, stride = modes[k]
            if not self._follows(stride - next_):
                return False
            next_ = next_ + (extent - 1) * stride
        return True

    def _follows(self, gap: Any) -> bool:
        """Whether a mode may begin so far behind the first offset that is free."""
        raise NotImplementedError


class Chain(_InOrder):
    """`layout` is a bijection onto 0 to size - 1: in this order of the modes each stride is the
    first offset that those before it leave free."""

    __slots__ = ()

    @property
    def claim(self) -> tuple[Any, ...]:
        """("bijective", layout)"""
        return "bijective", self.layout

    def _follows(self, gap: Any) -> bool:
        return _zero(gap)


class Growing(_InOrder):
    """`layout` is injective: in this order of the modes each stride is above all sums before it."""

    __slots__ = ()

    @property
    def claim(self) -> tuple[Any, ...]:
        """("injective", layout)"""
        return "injective", self.layout

    def _follows(self, gap: Any) -> bool:
        return _never_negative(gap)


def _covers(order: Sequence[int], modes: Sequence[tuple[Any, Any]]) -> bool:
    """Whether `order` has each mode once, but for modes of extent 1."""
    left = [k for k in range(len(modes)) if k not in order]
    return len(set(order)) == len(order) and all(_zero(modes[k][0] - 1) for k in left)


class NoDifference(Value):
    """`layout`, of numbers, is injective: no two coordinates differ by 0."""

    __slots__ = __match_args__ = ("layout",)
    layout: Layout

    def __init__(self, layout: Layout) -> None:
        self._set(layout)

    @property
    def claim(self) -> tuple[Any, ...]:
        """("injective", layout)"""
        return "injective", self.layout

    def verify(self) -> bool:
        """The generating polynomial has no coefficient above 1; a large one is not multiplied out:
        the sums of differences are gone through instead, those that can still come to 0."""
        modes = [mode for mode in modes_of(self.layout) if mode[0] != 1]
        count = 1
        for extent, _ in modes:
            count *= extent
        return _counted(modes) if count <= POLYNOMIAL_LIMIT else _no_sum(modes)


def _counted(modes: Sequence[tuple[int, int]]) -> bool:
    import sympy

    z = sympy.Dummy("z")
    total = sympy.ring([z], sympy.ZZ)[0].one
    for extent, stride in modes:
        total *= total.ring.from_dict(
            {(x * stride,): 1 for x in range(extent)} if stride else {(0,): extent}
        )
    return all(c == 1 for c in total.coeffs())


def _no_sum(modes: Sequence[tuple[int, int]]) -> bool:
    totals = {0: False}  # a sum of differences so far: whether one of them is not 0
    falling = sorted(modes, key=lambda mode: -mode[1])
    for k, (extent, stride) in enumerate(falling):
        reach = sum((s - 1) * d for s, d in falling[k + 1 :])
        after: dict[int, bool] = {}
        for total, moved in totals.items():
            most = extent - 1
            if stride:
                most = min(most, (reach + abs(total)) // stride)
            for x in range(-most, most + 1):
                if abs(total + x * stride) <= reach:
                    here = total + x * stride
                    after[here] = after.get(here, False) or moved or x != 0
        totals = after
    return not totals.get(0, False)


class FullRank(Value):
    """`layout`, of XOR strides, is injective: its columns are linearly independent."""

    __slots__ = __match_args__ = ("layout",)
    layout: Layout

    def __init__(self, layout: Layout) -> None:
        self._set(layout)

    @property
    def claim(self) -> tuple[Any, ...]:
        """("injective", layout)"""
        return "injective", self.layout

    def verify(self) -> bool:
        """sympy's rank over GF(2) is the number of bits of the index."""
        count = 1
        for extent, _ in modes_of(self.layout):
            count *= extent
        bits = count.bit_length() - 1
        columns = [evaluate((self.layout,), 1 << bit) for bit in range(bits)]
        rows = max([column.bit_length() for column in columns] + [1])
        xor = all(isinstance(d, F2) or d == 0 for _, d in modes_of(self.layout))
        return xor and count == 1 << bits and columns_matrix(columns, rows).rank() == bits


class Permutes(Value):
    """`swizzle` permutes the `count` offsets from `start` on."""

    __slots__ = __match_args__ = ("swizzle", "start", "count")
    swizzle: Swizzle
    start: Any
    count: Any

    def __init__(self, swizzle: Swizzle, start: Any, count: Any) -> None:
        self._set(swizzle, start, count)

    @property
    def claim(self) -> tuple[Any, ...]:
        """("permutes", swizzle, start, count)"""
        return "permutes", self.swizzle, self.start, self.count

    def verify(self) -> bool:
        """Its matrix squared is 1, and moves whole blocks in themselves; offsets in a part of a
        block are computed."""
        bits = self.swizzle.block.bit_length() - 1
        width = max(self.swizzle.source.bit_length(), bits, 1)
        matrix = _swizzle_matrix(self.swizzle, width)
        one = _gf2(lambda i, j: int(i == j), width, width)
        if matrix * matrix != one or any(
            matrix.to_Matrix()[i, j] for i in range(bits, width) for j in range(width) if i != j
        ):
            return False
        whole = [_multiple(x, self.swizzle.block) for x in (self.start, self.count)]
        if all(whole):
            return True
        first, end = self.start, self.start + self.count
        if not isinstance(first, int) or not isinstance(end, int):
            return False
        cut = [x for x in range(first, end) if self._in_part_of_a_block(x, first, end)]
        return all(first <= evaluate((self.swizzle,), x) < end for x in cut)

    def _in_part_of_a_block(self, x: int, first: int, end: int) -> bool:
        low = x - x % self.swizzle.block
        return low < first or low + self.swizzle.block > end


def _multiple(x: Any, of: int) -> bool:
    import sympy

    coefficients = sympy.expand(x).as_coefficients_dict().values()
    return all(sympy.Integer(c) % of == 0 for c in coefficients)


# -------------------------------------------------------------------------------- the others


class Farkas(Value):
    """No integers satisfy `constraints`, each at least 0: with `multipliers` they add up to less.

    Constraints are polynomials written out, in the names of the theorem.
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
    def claim(self) -> tuple[Any, ...]:
        """("empty", name, constraints)"""
        return "empty", self.name, self.constraints

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
    """Over GF(2) `expression` is `result`, where each of the products `vanishing` is 0."""

    __slots__ = __match_args__ = ("expression", "result", "vanishing")
    expression: str
    result: str
    vanishing: tuple[str, ...]

    def __init__(self, expression: str, result: str, vanishing: tuple[str, ...]) -> None:
        self._set(expression, result, vanishing)

    @property
    def claim(self) -> tuple[Any, ...]:
        """("cancels", expression, result, vanishing)"""
        return "cancels", self.expression, self.result, self.vanishing

    def verify(self) -> bool:
        """The difference, modulo 2, is left with no remainder by the products that vanish."""
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
    def claim(self) -> tuple[Any, ...]:
        """("at least", a, b)"""
        return "at least", self.a, self.b

    def verify(self) -> bool:
        """No coefficient of the difference is negative in symbols that start from 0."""
        return _never_negative(self.a - self.b)


class Looked(Value):
    """Every index was looked at: `verify` computes all values again, bit by bit."""

    __slots__ = __match_args__ = ("kind", "stages", "count")
    kind: Any
    stages: tuple[tuple[Any, ...], ...]
    count: int

    def __init__(self, kind: Any, stages: tuple[tuple[Any, ...], ...], count: int) -> None:
        self._set(kind, stages, count)

    @property
    def claim(self) -> tuple[Any, ...]:
        """What the kind says of the stages."""
        if self.kind == "same":
            return ("same", *self.stages, self.count)
        return "looked", self.kind, self.stages, self.count

    def verify(self) -> bool:
        """All values again, and what the kind asks of them."""
        sides = [[evaluate(stages, i) for i in range(self.count)] for stages in self.stages]
        if self.kind == "same":
            return sides[0] == sides[1]
        values = sorted(sides[0])
        if self.kind == "injective":
            return all(a != b for a, b in pairwise(values))
        first = int(self.kind)  # a bijection onto the offsets from here on
        return values == list(range(first, first + self.count))
