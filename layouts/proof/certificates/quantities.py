"""Claims about numbers, shapes and sizes.  They need no witness: the check computes them."""

from __future__ import annotations

from math import prod
from typing import Any

from ...values.layout import Layout
from ...values.tuples import leaves
from .claims import Claim
from .definition import (
    Stages,
    check_chain,
    coordinate,
    evaluate,
    exact,
    index_count,
    is_xor,
    modes_of,
    shown,
    step,
)
from .numbers import is_zero, least, never_negative, whole
from .same import TRIED_AT_MOST

__all__ = ["Equal", "HasResult", "IsLayout", "NotLess", "Refines", "SameSize", "refines"]


class _Computed(Claim):
    """A claim about `a` and `b` that is computed."""

    __slots__ = __match_args__ = ("a", "b")
    a: Any
    b: Any

    def __init__(self, a: Any, b: Any) -> None:
        self._set(a, b)

    def holds(self) -> bool:
        """Whether it is shown, for all values of the symbols."""
        raise NotImplementedError

    def established_by(self, witness: Any) -> bool:
        return witness is None and self.holds()

    def counterexample(self, index: Any) -> tuple[Any, Any, Any, Any] | None:
        """Without an index or a coordinate: `a` and `b` themselves."""
        return None if index is not None or self.holds() else (None, None, self.a, self.b)


class NotLess(_Computed):
    """``a >= b`` for every value of the symbols."""

    __slots__ = ()

    def holds(self) -> bool:
        return never_negative(whole(self.a) - whole(self.b))


class Equal(_Computed):
    """`a` and `b` are the same value, such as two ranks, or two swizzles."""

    __slots__ = ()

    def holds(self) -> bool:
        return exact(self.a, self.b)


class Refines(_Computed):
    """The shape `b` refines the shape `a`: each extent of `a` is the size of its part of `b`."""

    __slots__ = ()

    def holds(self) -> bool:
        return refines(self.a, self.b)


def refines(shape: Any, finer: Any) -> bool:
    """Whether `finer` has a mode, of the same size, in the place of each extent of `shape`.

    >>> refines((4, 8), ((2, 2), 8)), refines((4, 8), (4, 2, 4))
    (True, False)
    """
    if not isinstance(shape, tuple):
        sizes = [least(extent, 1) for extent in leaves(finer)]
        return is_zero(least(shape, 1) - whole(prod(sizes)))
    return isinstance(finer, tuple) and len(shape) == len(finer) and all(map(refines, shape, finer))


class SameSize(_Computed):
    """The chains `a` and `b` have equally many indices."""

    __slots__ = ()

    def holds(self) -> bool:
        one, other = self._sizes()
        return is_zero(one - other)

    def _sizes(self) -> tuple[Any, Any]:
        for chain in (self.a, self.b):
            check_chain(chain)
        return whole(index_count(self.a[-1])), whole(index_count(self.b[-1]))

    def counterexample(self, index: Any) -> tuple[Any, Any, Any, Any] | None:
        """An index that only one of them has; the value of the other is None."""
        one, other = self._sizes()
        if type(index) is not int or not min(one, other) <= index < max(one, other):
            return None
        longer = self.a if one > other else self.b
        value = evaluate(longer, index)
        pair = (value, None) if one > other else (None, value)
        return index, coordinate(index, longer[-1].shape), *pair


class HasResult(Claim):
    """The operation of a law returns a result.  Nothing establishes it: with a result, the law is
    about that."""

    __slots__ = __match_args__ = ("law", "operands")
    law: str
    operands: tuple[Any, ...]

    def __init__(self, law: str, operands: tuple[Any, ...]) -> None:
        self._set(law, operands)

    def established_by(self, witness: Any) -> bool:
        return False


class IsLayout(Claim):
    """`stages` is a layout whose shape refines that of its last layout; values add as integers, or
    as coordinates.

    Nothing establishes this but such a layout, which is then the subject of `SameFunction`.
    """

    __slots__ = __match_args__ = ("stages",)
    stages: Stages

    def __init__(self, stages: Stages) -> None:
        self._set(stages)

    def established_by(self, witness: Any) -> bool:
        return False

    def counterexample(self, index: Any) -> tuple[Any, Any, Any, Any] | None:
        """An index whose value differs from that of every layout with the same values before it.

        A layout is the sum of its leaves.  Along a leaf it is linear up to where a mode ends, and
        it ends only at a divisor of the extent.
        """
        check_chain(self.stages)
        first, last = self.stages[0], self.stages[-1]
        if not isinstance(first, Layout) or is_xor(first):
            return None
        if type(index) is not int or not 0 <= index < index_count(last):
            return None
        value, needed = step(self.stages, index), self._needed(index)
        if needed is None or value == needed:
            return None
        values = evaluate(self.stages, index), shown(first, needed)
        return index, coordinate(index, last.shape), *values

    def _needed(self, index: int) -> Any:
        """The value at `index` of every layout with the values before it; None if it is free."""
        extents = [extent for extent, _ in modes_of(self.stages[-1])]
        places = [prod(extents[:k]) for k in range(len(extents))]
        at = zip(coordinate(index, tuple(extents)), places, extents, strict=True)
        moved = [(x, place, extent) for x, place, extent in at if x]
        if len(moved) == 1:
            return self._needed_along(*moved[0])
        return sum((step(self.stages, x * place) for x, place, _ in moved), start=0)

    def _needed_along(self, x: int, place: int, extent: int) -> Any:
        """The same at `x` along one leaf, whose steps are `place` indices long."""
        if x > TRIED_AT_MOST:
            return None
        begun: list[tuple[int, Any]] = []  # where each mode begins, and its stride
        for y in range(1, x + 1):
            rest, needed = y, 0
            for start, stride in reversed(begun):
                digit, rest = divmod(rest, start)
                needed = needed + digit * stride
            value = step(self.stages, y * place)
            if begun and value == needed:
                continue
            if extent % y or (begun and y % begun[-1][0]):
                return needed if y == x else None
            begun.append((y, value))
        return step(self.stages, x * place)
