"""A chain of layouts read digit by digit, with every step written down for a certificate.

An index below ``s*t`` is ``x0 + s*x1`` with ``x0 < s`` and ``x1 < t``.  Each layout of the chain
takes such a form to another, as `layouts.algebra.digits` says; that module also finds the digits.
What is left to do here is to record, on these digits, the quotient and the remainder of each
division, and that the remainder stays below the divisor.

Both sides of a law, read on the same digits, are equal if their weights are.  This finite check
holds for all indices, and symbols pass it as well as numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from ..algebra.digits import Split, extended_modes, form_of, read_through
from ..errors import LayoutError
from ..values.arith import divided, less
from ..values.layout import Layout
from ..values.stride import as_factor
from ..values.symbols import has_symbols, plain, plain_if_symbolic
from ..values.tuples import place_values, times
from ..values.value import Value

__all__ = [
    "Carry",
    "Form",
    "Reading",
    "Step",
    "highest",
    "index_form",
    "read",
    "spelled",
]

#: A constant, then one weight per digit.
Form: TypeAlias = "tuple[Any, ...]"


class Carry(LayoutError):
    """The remainders may reach the extent, so the weights cannot be divided one by one."""


class Step(Value):
    """Division by the mode extent:stride: ``form == extent * quotient + remainder``."""

    __slots__ = __match_args__ = ("extent", "stride", "quotient", "remainder")
    extent: Any
    stride: Any
    quotient: Form
    remainder: Form

    def __init__(self, extent: Any, stride: Any, quotient: Form, remainder: Form) -> None:
        self._set(extent, stride, quotient, remainder)


class Reading(Value):
    """One layout or offset read on a form: its modes, a step for each but the last, and the form
    after it."""

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


def read(
    stages: Sequence[Any], extents: Sequence[Any], splits: list[Split] | None = None
) -> tuple[tuple[Any, ...], list[Reading]]:
    """The digits on which a chain is linear, and its readings on them, the last stage first.

    `stages` are layouts and offsets, the last one applied first.  The index is below the product of
    `extents`, and the digits refine these.  `splits` collects each split that is made.

    Raises `Carry` if the remainders may reach the extent of a mode.

    >>> digits, readings = read([Layout((6, 2), (8, 2)), Layout((4, 3), (3, 1))], (4, 3))
    >>> digits, readings[-1].after
    ((2, 2, 3), (0, 24, 2, 8))
    """
    digits = _split_digits(stages, extents, splits)
    form = index_form(digits)
    readings: list[Reading] = []
    for stage in reversed(stages):
        readings.append(_read_one(stage, form, digits))
        form = readings[-1].after
    return digits, readings


def _split_digits(
    stages: Sequence[Any], extents: Sequence[Any], splits: list[Split] | None
) -> tuple[Any, ...]:
    """The digits into which `stages` split those of `extents`, as far as none carries.

    An offset is the weight of one more digit, of extent 2, which is always 1.  The weight of a
    digit of extent 1, which is always 0, does not matter.
    """
    pairs = zip(extents, place_values(extents), strict=True)
    form = form_of([*((extent, 0 if extent == 1 else place) for extent, place in pairs), (2, 0)])
    for stage in reversed(stages):
        if not isinstance(stage, Layout):
            form[-1].weight += stage
            continue
        if read_through(extended_modes(stage), form, splits) is not None:
            break
        for digit in form:
            digit.weight, digit.stride = digit.stride, 0
    return tuple(digit.extent for digit in form[:-1])


def index_form(digits: Sequence[Any]) -> Form:
    """The index itself, as a form in its digits.

    >>> index_form((4, 8, 2))
    (0, 1, 4, 32)
    """
    return (0, *map(plain_if_symbolic, place_values(digits)))


def _read_one(stage: Any, form: Form, digits: tuple[Any, ...]) -> Reading:
    """`stage` read on a form whose digits are split as far as `stage` needs."""
    if not isinstance(stage, Layout):
        return Reading(stage, form, (), (), (plain(form[0] + stage), *form[1:]))
    modes = tuple(extended_modes(stage))
    steps: list[Step] = []
    rest, after = form, (0,) * len(form)
    for extent, stride in modes[:-1]:
        pairs = [divided(weight, extent) for weight in rest]
        remainder = tuple(r for _, r in pairs)
        _check_no_carry(stage, rest, remainder, digits, extent)
        rest = tuple(q for q, _ in pairs)
        after = _add(after, remainder, stride)
        steps.append(Step(extent, stride, rest, remainder))
    return Reading(stage, form, modes, tuple(steps), _add(after, rest, modes[-1][1]))


def _check_no_carry(
    stage: Layout, form: Form, remainder: Form, digits: tuple[Any, ...], extent: Any
) -> None:
    """Raise `Carry` unless the remainder stays below the extent that divides `form`."""
    reach = highest(remainder, digits)
    if not less(reach, extent):
        raise Carry(
            f"carry: {reach} >= {extent}"
            + (" is not ruled out" if has_symbols((reach, extent)) else "")
            + f", where {stage} divides {spelled(form)} by {extent}: the remainder "
            f"{spelled(remainder)} must stay below {extent}"
        )


def highest(form: Form, digits: Sequence[Any]) -> Any:
    """The largest value of `form`, whose weights are not negative.

    >>> highest((1, 2, 0), (4, 8))
    7
    """
    pairs = zip(form[1:], digits, strict=True)
    return plain(form[0] + sum(weight * (extent - 1) for weight, extent in pairs))


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
