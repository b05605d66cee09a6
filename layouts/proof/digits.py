"""Layouts read digit by digit: what a chain of layouts does to an index that is a sum of digits.

An index below ``s*t`` is ``x0 + s*x1`` with ``x0 < s`` and ``x1 < t``.  A layout takes such a form
to another: to go through a mode s:d is to divide by s, to give the remainder the stride d, and to
go on with the quotient.  Each weight is divided by itself; that this divides the whole form is so
if the remainders together stay below s, which is the one thing to prove.  A digit that overruns s
is split in two first.

Both sides of a law, read on the same digits, are then equal if their weights are: a finite check
for all indices, and one that symbols pass as well as numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from ..errors import LayoutError
from ..values.arith import divided, equal, less
from ..values.layout import Layout
from ..values.stride import as_factor
from ..values.symbols import has_symbols, plain, plain_if_symbolic, quotient
from ..values.tuples import leaves, place_values, times
from ..values.value import Value

__all__ = [
    "Carry",
    "Form",
    "Reading",
    "Split",
    "Step",
    "extended_modes",
    "index_form",
    "read",
    "spelled",
]

#: A constant, then one weight per digit.
Form: TypeAlias = "tuple[Any, ...]"


class Carry(LayoutError):
    """The remainders may reach the extent: the digits do not divide each by itself."""


class Step(Value):
    """Division by the mode extent:stride: ``form == extent * quotient + remainder``."""

    __slots__ = __match_args__ = ("extent", "stride", "quotient", "remainder")
    extent: Any
    stride: Any
    quotient: Form
    remainder: Form

    def __init__(self, extent: Any, stride: Any, quotient: Form, remainder: Form) -> None:
        self._set(extent, stride, quotient, remainder)


class Split(Value):
    """Digit `digit`, of weight `weight`, split at `at`, since it overruns `extent`."""

    __slots__ = __match_args__ = ("digit", "at", "weight", "extent")
    digit: int
    at: Any
    weight: Any
    extent: Any

    def __init__(self, digit: int, at: Any, weight: Any, extent: Any) -> None:
        self._set(digit, at, weight, extent)


class Reading(Value):
    """One layout, or an offset, read on one form: the modes, a step for each but the last, and the
    form that comes out."""

    __slots__ = __match_args__ = ("stage", "before", "modes", "steps", "after")
    stage: Any
    before: Form
    modes: tuple[tuple[Any, Any], ...]
    steps: tuple[Step, ...]
    after: Form

    def __init__(
        self,
        stage: Any,
        before: Form,
        modes: tuple[tuple[Any, Any], ...],
        steps: tuple[Step, ...],
        after: Form,
    ) -> None:
        self._set(stage, before, modes, steps, after)


def extended_modes(layout: Layout) -> tuple[tuple[Any, Any], ...]:
    """The modes of `layout` as a function on all integers, merged; the last has no end.

    >>> extended_modes(Layout((2, (4, 1), 3), (1, (2, 7), 8)))
    ((None, 1),)
    """
    flat = list(zip(leaves(layout.shape), leaves(layout.stride), strict=True)) or [(1, 0)]
    *bounded, (_, last) = flat
    modes: list[tuple[Any, Any]] = []
    for extent, stride in [mode for mode in bounded if mode[0] != 1] + [(None, last)]:
        if modes and equal(stride, plain_if_symbolic(times(*modes[-1]))):
            before = modes.pop()
            stride, extent = before[1], extent and plain_if_symbolic(before[0] * extent)
        modes.append((extent, stride))
    return tuple(modes)


def read(
    stages: Sequence[Any], extents: Sequence[Any], splits: list[Split] | None = None
) -> tuple[tuple[Any, ...], list[Reading]]:
    """`stages`, layouts and offsets, the last first, read on the index below the product of
    `extents`; with the digits that it took, which refine `extents`.  `splits` collects how.

    Raises `Carry` where remainders may reach the extent of a mode.

    >>> digits, readings = read([Layout((6, 2), (8, 2)), Layout((4, 3), (3, 1))], (4, 3))
    >>> digits, readings[-1].after
    ((2, 2, 3), (0, 24, 2, 8))
    """
    digits = tuple(extents)
    while True:
        form: Form = index_form(digits)
        readings: list[Reading] = []
        for stage in reversed(stages):
            reading = _read_one(stage, form, digits)
            if not isinstance(reading, Reading):
                digits = _split(digits, reading.digit, reading.at)
                if splits is not None:
                    splits.append(reading)
                break
            readings.append(reading)
            form = reading.after
        else:
            return digits, readings


def index_form(digits: Sequence[Any]) -> Form:
    """The index itself, as a form in its digits.

    >>> index_form((4, 8, 2))
    (0, 1, 4, 32)
    """
    return (0, *map(plain_if_symbolic, place_values(digits)))


def _split(digits: tuple[Any, ...], k: int, at: Any) -> tuple[Any, ...]:
    return (*digits[:k], at, quotient(digits[k], at), *digits[k + 1 :])


def _read_one(stage: Any, form: Form, digits: tuple[Any, ...]) -> Reading | Split:
    """The reading, or else the digit to split first."""
    if not isinstance(stage, Layout):
        return Reading(stage, form, (), (), (plain(form[0] + stage), *form[1:]))
    modes = extended_modes(stage)
    steps: list[Step] = []
    rest, after = form, (0,) * len(form)
    for extent, stride in modes[:-1]:
        pairs = [divided(weight, extent) for weight in rest]
        remainder = tuple(r for _, r in pairs)
        split = _place_to_split(remainder, digits, extent)
        if split is not None:
            return split
        _check_no_carry(stage, rest, remainder, digits, extent)
        rest = tuple(q for q, _ in pairs)
        after = _add(after, remainder, stride)
        steps.append(Step(extent, stride, rest, remainder))
    return Reading(stage, form, modes, tuple(steps), _add(after, rest, modes[-1][1]))


def _place_to_split(remainder: Form, digits: tuple[Any, ...], extent: Any) -> Split | None:
    for k, (weight, digit) in enumerate(zip(remainder[1:], digits, strict=True)):
        if equal(weight, 0) or less(plain(weight * (digit - 1)), extent):
            continue
        at = quotient(extent, weight)
        if at is None or equal(at, 1) or equal(at, digit) or quotient(digit, at) is None:
            continue
        return Split(k, at, weight, extent)
    return None


def _check_no_carry(
    stage: Layout, form: Form, remainder: Form, digits: tuple[Any, ...], extent: Any
) -> None:
    highest = remainder[0]
    for weight, digit in zip(remainder[1:], digits, strict=True):
        highest = plain(highest + weight * (digit - 1))
    if not less(highest, extent):
        places = spelled(remainder)
        raise Carry(
            f"carry: {highest} >= {extent}"
            + (" is not ruled out" if has_symbols((highest, extent)) else "")
            + f", where {stage} divides {spelled(form)} by {extent}: the remainder {places} must "
            f"stay below {extent}"
        )


def _add(after: Form, form: Form, stride: Any) -> Form:
    """``after + form * stride``, weight by weight."""
    pairs = zip(after, form, strict=True)
    return tuple(plain_if_symbolic(total + times(weight, stride)) for total, weight in pairs)


# ----------------------------------------------------------------------------- printing


def spelled(form: Form, names: str = "x") -> str:
    """`form` as a person writes it.

    >>> spelled((0, 1, 8, 0)), spelled((5, 0, 3))
    ('x0 + 8*x1', '5 + 3*x1')
    """
    terms = [] if _is(form[0], 0) else [str(form[0])]
    for k, weight in enumerate(form[1:]):
        if not _is(weight, 0):
            terms.append(f"{names}{k}" if _is(weight, 1) else f"{as_factor(weight)}*{names}{k}")
    return " + ".join(terms) or "0"


def _is(x: Any, n: int) -> bool:
    return type(x) is int and x == n
