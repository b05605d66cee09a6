"""Certificates that two chains of layouts, offsets and swizzles are the same function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...values.layout import Layout
from ...values.swizzle import Swizzle
from ...values.value import Value
from ..digits import Reading
from .claims import Certificate, SameFunction
from .definition import Stages, evaluate, is_xor, modes_of
from .matrices import columns_of, identity, matrix_of_columns, swizzle_matrix
from .polynomials import floor_coefficients, is_zero, never_negative

__all__ = ["SameComponents", "SameDigits", "SameFloors", "SameMatrix", "SameStages"]


class SameStages(Value):
    """Two chains begin with the same stages `outer`, and `inside` certifies that the rest agree."""

    __slots__ = __match_args__ = ("outer", "inside")
    outer: Stages
    inside: Any  # a certificate that claims SameFunction

    def __init__(self, outer: Stages, inside: Any) -> None:
        self._set(outer, inside)

    @property
    def claim(self) -> SameFunction:
        """The claim of `inside`, with `outer` after both sides."""
        rest = self.inside.claim
        return SameFunction(self.outer + rest.left, self.outer + rest.right, rest.count)

    def verify(self) -> bool:
        """Verify `inside`: equal values stay equal under `outer`."""
        return bool(self.inside.verify())


class SameDigits(Value):
    """Two chains of layouts and offsets, read on the same digits of the index, have equal weights.

    `digits` are the extents of the digits, whose product is `count`.
    """

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
    def claim(self) -> SameFunction:
        """The stages of both sides are the same function below `count`."""
        left, right = (
            tuple(reading.stage for reading in reversed(side)) for side in (self.left, self.right)
        )
        return SameFunction(left, right, self.count)

    def verify(self) -> bool:
        """Expand every division with remainder, bound every remainder, compare the results."""
        import sympy

        if not is_zero(sympy.prod(self.digits) - self.count):
            return False
        x = [sympy.Dummy(f"x{k}", integer=True) for k in range(len(self.digits))]
        index: Any = sympy.Integer(0)
        for k, digit in enumerate(x):
            index += sympy.prod(self.digits[:k]) * digit
        values = [self._value(side, index, x) for side in (self.left, self.right)]
        return None not in values and is_zero(values[0] - values[1])

    def _value(self, side: Sequence[Reading], value: Any, x: Sequence[Any]) -> Any:
        """The value of `side` as a sympy expression in the digits `x`; None if a step is wrong."""
        for reading in side:
            if not isinstance(reading.stage, Layout):
                value = value + reading.stage
                continue
            extended = [(1 if s is None else s, d) for s, d in reading.modes]
            if floor_coefficients(extended) != floor_coefficients(modes_of(reading.stage)):
                return None
            total, rest = 0, value
            for (extent, stride), step in zip(reading.modes[:-1], reading.steps, strict=True):
                q, r = _expression(step.quotient, x), _expression(step.remainder, x)
                if not is_zero(rest - extent * q - r) or not self._within(step.remainder, extent):
                    return None
                total, rest = total + r * stride, q
            value = total + rest * reading.modes[-1][1]
        return value

    def _within(self, remainder: Sequence[Any], extent: Any) -> bool:
        """Whether ``0 <= remainder < extent`` for all digits."""
        highest = remainder[0]
        for weight, digit in zip(remainder[1:], self.digits, strict=True):
            highest = highest + weight * (digit - 1)
        return all(map(never_negative, remainder)) and never_negative(extent - 1 - highest)


def _expression(form: Sequence[Any], x: Sequence[Any]) -> Any:
    return form[0] + sum(w * digit for w, digit in zip(form[1:], x, strict=True))


class SameFloors(Value):
    """Two layouts are equal as sums of c * floor(i/P), as far as P is below `count`.

    Such a sum determines its coefficients, so layouts are the same function exactly if these agree.
    """

    __slots__ = __match_args__ = ("left", "right", "count")
    left: Layout
    right: Layout
    count: Any

    def __init__(self, left: Layout, right: Layout, count: Any) -> None:
        self._set(left, right, count)

    @property
    def claim(self) -> SameFunction:
        """The two layouts are the same function below `count`."""
        return SameFunction((self.left,), (self.right,), self.count)

    def verify(self) -> bool:
        """Expand the coefficients, and compare those with P below `count`."""
        left, right = (floor_coefficients(modes_of(layout)) for layout in (self.left, self.right))
        differing = [p for p in {*left, *right} if not is_zero(left.get(p, 0) - right.get(p, 0))]
        if self.count is None:
            return not differing
        return all(never_negative(place - self.count) for place in differing)


class SameComponents(Value):
    """Two chains that give coordinates agree in each component.

    `parts` are pairs (path, certificate): the path of a component, and why the sides agree in it.
    """

    __slots__ = __match_args__ = ("left", "right", "count", "parts")
    left: Stages
    right: Stages
    count: Any
    parts: tuple[tuple[Any, Certificate], ...]

    def __init__(
        self,
        left: Stages,
        right: Stages,
        count: Any,
        parts: tuple[tuple[Any, Certificate], ...],
    ) -> None:
        self._set(left, right, count, parts)

    @property
    def claim(self) -> SameFunction:
        """The two chains are the same function below `count`."""
        return SameFunction(self.left, self.right, self.count)

    def verify(self) -> bool:
        """Each component of a stride has its part, which is about this component and verifies."""
        sides = self.left, self.right
        paths = {path for side in sides for _, d in modes_of(side[0]) if d for path, _ in d.terms}
        if paths != {path for path, _ in self.parts}:
            return False
        for path, certificate in self.parts:
            same = certificate.claim
            if not isinstance(same, SameFunction) or same.count != self.count:
                return False
            for side, chain in zip(sides, (same.left, same.right), strict=True):
                strides = [dict(d.terms).get(path, 0) if d else 0 for _, d in modes_of(side[0])]
                own = [(s, d) for (s, _), d in zip(modes_of(side[0]), strides, strict=True)]
                if modes_of(chain[0]) != own or chain[1:] != side[1:]:
                    return False
            if not certificate.verify():
                return False
        return True


class SameMatrix(Value):
    """Two swizzled layouts are the same matrix over GF(2), on ``2**bits`` indices."""

    __slots__ = __match_args__ = ("left", "right", "bits")
    left: Stages
    right: Stages
    bits: int

    def __init__(self, left: Stages, right: Stages, bits: int) -> None:
        self._set(left, right, bits)

    @property
    def claim(self) -> SameFunction:
        """The two chains are the same function below ``2**bits``."""
        return SameFunction(self.left, self.right, 1 << self.bits)

    def verify(self) -> bool:
        """Multiply the matrices of the stages, over GF(2)."""
        left, right = (self._matrix(side) for side in (self.left, self.right))
        return left is not None and right is not None and bool(left == right)

    def _matrix(self, stages: Stages) -> list[int] | None:
        """The columns, then the value at index 0; None if the strides carry."""
        *after, layout = stages
        offset = after.pop() if after and type(after[-1]) is int else 0
        columns = [evaluate((layout,), 1 << j) for j in range(self.bits)]
        if offset or not is_xor(layout):
            seen = offset
            for column in columns:
                if seen & column:
                    return None
                seen |= column
        if any(extent & (extent - 1) for extent, _ in modes_of(layout)):
            return None
        matrix = matrix_of_columns([*columns, offset])
        for stage in reversed(after):
            matrix = _stage_matrix(stage, matrix.shape[0]) * matrix
        return columns_of(matrix)


def _stage_matrix(stage: Any, width: int) -> Any:
    """What a swizzle, or a layout with XOR strides, does to `width` bits."""
    if isinstance(stage, Swizzle):
        wide = max(width, (stage.source | stage.target).bit_length())
        return swizzle_matrix(stage, wide) * identity(wide, width)
    return matrix_of_columns([evaluate((stage,), 1 << j) for j in range(width)])
