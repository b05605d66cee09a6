"""The claim that two chains are the same function, and the witnesses that establish it.

Each witness is a class of its own:

    SameStages      both begin with the same stages; the rest agrees
    SameComponents  both give coordinates; each component agrees
    SameFloors      both are one layout, and the same sum of c * floor(i/P)
    SameDigits      both are linear in the same digits of the index, with the same weights
    SameBits        both are linear in the bits of the index, with the same columns
    Exhaustive      both have the same value at every index
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from ...values.layout import Layout
from ...values.value import Value
from .bits import affine
from .claims import Claim
from .definition import (
    Stages,
    check_chain,
    component,
    coordinate,
    evaluate,
    exact,
    is_still,
    modes_of,
    step,
    steps,
)
from .numbers import is_zero, least, never_negative, whole

__all__ = [
    "TRIED_AT_MOST",
    "Division",
    "Exhaustive",
    "SameBits",
    "SameComponents",
    "SameDigits",
    "SameFloors",
    "SameFunction",
    "SameStages",
]

#: The most indices that are tried one by one.
TRIED_AT_MOST = 1 << 20


class SameFunction(Claim):
    """``left(i) == right(i)`` for every index i below `count`."""

    __slots__ = __match_args__ = ("left", "right", "count")
    left: Stages
    right: Stages
    count: Any

    def __init__(self, left: Stages, right: Stages, count: Any) -> None:
        self._set(left, right, count)

    def established_by(self, witness: Any) -> bool:
        check_chain(self.left)
        check_chain(self.right)
        least(self.count, 1)
        return bool(_RULES[type(witness)](self, witness))

    def counterexample(self, index: Any) -> tuple[Any, Any, Any, Any] | None:
        if type(index) is not int or not 0 <= index < self.count:
            return None
        check_chain(self.left)
        check_chain(self.right)
        if step(self.left, index) == step(self.right, index):
            return None
        values = evaluate(self.left, index), evaluate(self.right, index)
        return index, coordinate(index, self.left[-1].shape), *values


# ----------------------------------------------------------------------- every index, one by one


class Exhaustive(Value):
    """The check computes the value at every index from the definition."""

    __slots__ = ()


def _at_every_index(claim: SameFunction, _: Exhaustive) -> bool:
    return claim.count <= TRIED_AT_MOST and (
        steps(claim.left, range(claim.count)) == steps(claim.right, range(claim.count))
    )


# ------------------------------------------------------------------------------ the same stages


class SameStages(Value):
    """The last `count` stages to be applied are the same on both sides; `inside` is the witness
    that the others agree."""

    __slots__ = __match_args__ = ("count", "inside")
    count: int
    inside: Any

    def __init__(self, count: int, inside: Any) -> None:
        self._set(count, inside)


def _after_the_same_stages(claim: SameFunction, witness: SameStages) -> bool:
    n = witness.count
    if type(n) is not int or n < 1 or not exact(claim.left[:n], claim.right[:n]):
        return False
    rest = SameFunction(claim.left[n:], claim.right[n:], claim.count)
    return rest.established_by(witness.inside)


# ---------------------------------------------------------------------------------- components


class SameComponents(Value):
    """For each component of the coordinates its path, and the witness that both sides agree."""

    __slots__ = __match_args__ = ("parts",)
    parts: tuple[tuple[Any, Any], ...]

    def __init__(self, parts: tuple[tuple[Any, Any], ...]) -> None:
        self._set(parts)


def _in_each_component(claim: SameFunction, witness: SameComponents) -> bool:
    paths = {path for side in (claim.left, claim.right) for path in _paths(side[0])}
    return paths == {path for path, _ in witness.parts} and all(
        SameFunction(
            _component(claim.left, path), _component(claim.right, path), claim.count
        ).established_by(part)
        for path, part in witness.parts
    )


def _component(stages: Stages, path: Any) -> Stages:
    return component(stages[0], path), *stages[1:]


def _paths(layout: Layout) -> list[Any]:
    strides = [stride for _, stride in modes_of(layout) if not is_still(stride)]
    return [path for stride in strides for path, _ in stride.terms]


# -------------------------------------------------------------------------- sums of floor(i / P)


class SameFloors(Value):
    """Both sides are one layout, and equal as sums of c * floor(i/P), as far as P is below the
    count."""

    __slots__ = ()


def _as_floors(claim: SameFunction, _: SameFloors) -> bool:
    (left,), (right,) = claim.left, claim.right
    one, other = floor_coefficients(modes_of(left)), floor_coefficients(modes_of(right))
    differing = [p for p in {*one, *other} if not is_zero(one.get(p, 0) - other.get(p, 0))]
    return all(never_negative(place - claim.count) for place in differing)


def floor_coefficients(modes: Sequence[tuple[Any, Any]]) -> dict[Any, Any]:
    """The layout of `modes` as a sum of c * floor(i/P): the coefficients c by P, without zeros.

    Digit k of the index is ``floor(i/P) - s*floor(i/(P*s))``, where P is the product of the extents
    before it and s is its own.  The last digit is unbounded: it is floor(i/P).

    >>> floor_coefficients([(4, 1), (2, 5)]), floor_coefficients([(4, 1), (2, 4)])
    ({1: 1, 4: 1}, {1: 1})
    """
    total: dict[Any, Any] = {}
    place: Any = 1
    for k, (extent, stride) in enumerate(modes):
        total[place] = whole(total.get(place, 0) + whole(stride))
        if k < len(modes) - 1:
            after = whole(place * least(extent, 1))
            total[after] = whole(total.get(after, 0) - extent * stride)
            place = after
    return {place: c for place, c in total.items() if c != 0}


# ------------------------------------------------------------------------------------- digits

#: A linear form in the digits of the index: a constant, then one weight for each digit.
Form: TypeAlias = "Sequence[Any]"


class SameDigits(Value):
    """The extents of the digits of an index; and for each side how its layouts divide, from the
    first that is applied to the last."""

    __slots__ = __match_args__ = ("digits", "left", "right")
    digits: tuple[Any, ...]
    left: tuple[Division, ...]
    right: tuple[Division, ...]

    def __init__(
        self, digits: tuple[Any, ...], left: tuple[Division, ...], right: tuple[Division, ...]
    ) -> None:
        self._set(digits, left, right)


class Division(Value):
    """How a layout divides the form that it takes: its modes, perhaps merged, and the quotient by
    each extent but the last."""

    __slots__ = __match_args__ = ("modes", "quotients")
    modes: tuple[tuple[Any, Any], ...]
    quotients: tuple[Form, ...]

    def __init__(self, modes: tuple[tuple[Any, Any], ...], quotients: tuple[Form, ...]) -> None:
        self._set(modes, quotients)


def _on_digits(claim: SameFunction, witness: SameDigits) -> bool:
    digits, index, place = witness.digits, [0], whole(1)
    for extent in digits:
        index.append(place)
        place = whole(place * least(extent, 1))
    left = _through(claim.left, witness.left, index, digits)
    right = _through(claim.right, witness.right, index, digits)
    return is_zero(place - claim.count) and all(
        is_zero(a - b) for a, b in zip(left, right, strict=True)
    )


def _through(stages: Stages, divisions: Sequence[Division], form: Form, digits: Form) -> Form:
    """The form that `stages` make of `form`."""
    remaining = list(divisions)
    for stage in reversed(stages):
        if type(stage) is Layout:
            form = _divided(stage, remaining.pop(0), form, digits)
        else:
            form = [form[0] + whole(stage), *form[1:]]
    if remaining:
        raise ValueError(f"{len(remaining)} divisions without a layout")
    return form


def _divided(layout: Layout, division: Division, form: Form, digits: Form) -> Form:
    """The form that `layout` makes of `form`: remainder times stride, summed over its modes.

    Each remainder is in ``0 ... extent - 1``, so that it and the quotient are those of an index.
    """
    *modes, (_, last) = division.modes
    if floor_coefficients(division.modes) != floor_coefficients(modes_of(layout)):
        raise ValueError(f"{division.modes} is not the function {layout}")
    total: Form = [0] * len(form)
    for (extent, stride), quotient in zip(modes, division.quotients, strict=True):
        pairs = zip(form, quotient, strict=True)
        remainder = [least(whole(a) - extent * whole(q), 0) for a, q in pairs]
        highest = _highest(remainder, digits)
        least(extent - 1 - highest, 0)
        total = [whole(t + r * stride) for t, r in zip(total, remainder, strict=True)]
        form = quotient
    return [whole(t + q * last) for t, q in zip(total, form, strict=True)]


def _highest(form: Form, digits: Form) -> Any:
    """The largest value of a form whose weights are not negative."""
    return form[0] + sum(w * (extent - 1) for w, extent in zip(form[1:], digits, strict=True))


# --------------------------------------------------------------------------------------- bits


class SameBits(Value):
    """Both sides are linear in the bits of the index, over GF(2), and have the same columns."""

    __slots__ = ()


def _on_bits(claim: SameFunction, _: SameBits) -> bool:
    bits = (claim.count - 1).bit_length()
    left, right = affine(claim.left, bits), affine(claim.right, bits)
    return left is not None and left == right


_RULES: dict[type, Any] = {
    Exhaustive: _at_every_index,
    SameBits: _on_bits,
    SameComponents: _in_each_component,
    SameDigits: _on_digits,
    SameFloors: _as_floors,
    SameStages: _after_the_same_stages,
}
