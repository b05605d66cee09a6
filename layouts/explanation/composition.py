"""What `explain` writes of composition.

>>> from layouts import composition, explain
>>> print(explain(composition, Layout((6, 2), (8, 2)), Layout((4, 3), (3, 1))))
composition((6,2):(8,2), (4,3):(3,1)) = ((2,2),3):((24,2),8)
  B = (4,3):(3,1) has the digits x0 < 4, x1 < 3 and maps them to 3*x0 + x1
  A = (6,2):(8,2) divides this by the extent of each mode in turn, and passes on the quotient:
    6:8   3*x0 reaches 9, beyond the extent 6: split x0 at 6/3 = 2
          now B maps x0 < 2, x1 < 2, x2 < 3 to 3*x0 + 6*x1 + x2
          3*x0 + 6*x1 + x2 = 6*(x1) + (3*x0 + x2), and 3*x0 + x2 <= 5 < 6: no carry
          the remainder gets the stride 8: 24*x0 + 8*x2
    2:2   the last mode takes the quotient, x1: 2*x1
  the sum is 24*x0 + 2*x1 + 8*x2
  each digit becomes a mode with its weight as stride: 2:24 2:2 3:8
  nested like the shape of B, (4,3): ((2,2),3):((24,2),8)
  check R(i) == A(B(i)): 0 24 2 26 8 32 10 34 16 40 18 42 on both sides, for all 12 indices

The steps are those by which the law is proved.  The last line checks the law on what the operation
returned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import algebra
from ..algebra.by_mode import tiler_layout
from ..algebra.compose_coordinates import as_indices
from ..algebra.digits import Split
from ..proof.digits import Carry, Form, Reading, Step, highest, read, spelled
from ..proof.laws import CompositionLaw
from ..values.arith import divided, equal
from ..values.layout import Layout, make_identity_layout
from ..values.modes import has_xor_strides
from ..values.stride import ArithTuple, kind_of
from ..values.swizzle import ComposedLayout, Swizzle
from ..values.symbols import free_symbols, plain, plain_if_symbolic
from ..values.tuples import is_int, leaves, size, text
from .by_mode import each_mode
from .checks import SHOWN, check, check_values
from .steps import Lines, explains, substep
from .views import View, Views, by_element, column_of, drawable, shows, tied

#: What a composition with a swizzle or a composed layout is.
KINDS = {Swizzle: "a swizzle", Layout: "a layout", ComposedLayout: "a composed layout"}


@explains(algebra.composition)
def _composition(lines: Lines, result: Any, a: Any, b: Any) -> None:
    if isinstance(b, tuple) and isinstance(a, (Layout, ComposedLayout)):
        lines.append("a tuple of tilers composes mode by mode, and drops the modes beyond it")
        each_mode(lines, algebra.composition, list(a), b)
        return
    if isinstance(a, (Swizzle, ComposedLayout)) or isinstance(b, (Swizzle, ComposedLayout)):
        if result is not None:
            kind = KINDS[type(result)]
            lines.append(f"R(i) = A(B(i)) with A = {a} and B = {b} is {kind}")
        return
    if b is None:
        lines.append("None keeps A whole")
        return
    b = tiler_layout(b)
    if kind_of(b.modes) is ArithTuple:
        lines.append(f"the values of B = {b} are coordinates of A = {a}; as indices they are")
        lines.append("those of an integer layout, and A has modes as long as they reach:")
        substep(lines, algebra.composition, *as_indices(a, b))
        return
    if has_xor_strides(b):
        _bit_by_bit(lines, result, a, b)
        return
    if not leaves(a.shape):
        lines.append(f"A = {a} is 0 at every index")
        _nested_and_checked(lines, result, a, b)
        return
    splits: list[Split] = []
    digits = tuple(extent for extent in leaves(b.shape) if not equal(extent, 1))
    _, (before,) = read((b,), digits)
    lines.append(
        f"B = {b} has the digits {_bounds(digits)} and maps them to {spelled(before.after)}"
    )
    try:
        final, readings = read((a, b), digits, splits)
    except Carry as carry:
        _enumeration(lines, result, a, b, carry)
        return
    lines.append(
        f"A = {a} divides this by the extent of each mode in turn, and passes on the quotient:"
    )
    _divisions(lines, b, digits, splits, readings[-1], final)
    lines.append(f"the sum is {spelled(readings[-1].after)}")
    modes = [f"{s}:{text(d)}" for s, d in zip(final, readings[-1].after[1:], strict=True)]
    lines.append(f"each digit becomes a mode with its weight as stride: {' '.join(modes) or '1:0'}")
    _nested_and_checked(lines, result, a, b)


def _bit_by_bit(lines: Lines, result: Any, a: Any, b: Any) -> None:
    """What A makes of the values of B that combine by XOR to all others."""
    lines.append(f"the values of B = {b} combine by XOR")
    if free_symbols((a, b)):
        return
    bits = [1 << bit for bit in range(min(SHOWN, size(b).bit_length() - 1))]
    taken = ", ".join(f"{b(i)} -> {text(a(b(i)))}" for i in bits)
    if bits:
        lines.append(f"A takes those at the indices 1, 2, 4, ... so: {taken}")
    if result is not None:
        lines.append(f"the result is {result}")
        check_values(lines, "R(i) == A(B(i))", lambda i: a(b(i)), result, size(b))


def _bounds(digits: Sequence[Any]) -> str:
    return ", ".join(f"x{k} < {extent}" for k, extent in enumerate(digits)) or "none"


def _divisions(
    lines: Lines,
    b: Layout,
    digits: tuple[Any, ...],
    splits: Sequence[Split],
    reading: Reading,
    final: tuple[Any, ...],
) -> None:
    """Mode by mode of A: a line for each split that it needs, then the division."""
    modes = [("" if s is None else str(s), text(d)) for s, d in reading.modes]
    width = max(len(s) + len(d) for s, d in modes) + 3
    rest, todo = reading.before, list(splits)
    for (extent, stride), step in zip(reading.modes[:-1], reading.steps, strict=True):
        own: Lines = []
        while todo and equal(todo[0].extent, extent):
            split = todo.pop(0)
            own.append(_split(split, digits))
            digits = (
                *digits[: split.digit],
                split.at,
                divided(digits[split.digit], split.at)[0],
                *digits[split.digit + 1 :],
            )
        if own:
            _, (again,) = read((b,), digits)
            own.append(f"now B maps {_bounds(digits)} to {spelled(again.after)}")
        own += _division(step, rest, final)
        rest = step.quotient
        _beside(lines, f"{extent}:{text(stride)}", width, own)
    last = reading.modes[-1][1]
    name = f"{leaves(reading.stage.shape)[-1]}:{text(last)}"
    taken = f"the last mode takes the quotient, {spelled(rest)}: {spelled(_times(rest, last))}"
    _beside(lines, name, width, [taken])


def _beside(lines: Lines, name: str, width: int, own: Lines) -> None:
    for k, line in enumerate(own):
        lines.append(f"  {name if k == 0 else '':<{width}} {line}")


def _split(split: Split, digits: Sequence[Any]) -> str:
    reach = plain(split.weight * (digits[split.digit] - 1))
    term = spelled((0, *(0,) * split.digit, split.weight))
    return (
        f"{term} reaches {reach}, beyond the extent {split.extent}: split x{split.digit} at "
        f"{split.extent}/{split.weight} = {split.at}"
    )


def _division(step: Step, form: Form, digits: Sequence[Any]) -> Lines:
    quotient, remainder = spelled(step.quotient), spelled(step.remainder)
    if all(equal(weight, 0) for weight in step.remainder):
        return [f"{step.extent} divides {spelled(form)}: the quotient is {quotient}"]
    return [
        f"{spelled(form)} = {step.extent}*({quotient}) + ({remainder}), and "
        f"{remainder} <= {highest(step.remainder, digits)} < {step.extent}: no carry",
        f"the remainder gets the stride {text(step.stride)}: "
        f"{spelled(_times(step.remainder, step.stride))}",
    ]


def _times(form: Form, stride: Any) -> Form:
    return tuple(plain_if_symbolic(weight * stride) for weight in form)


def _enumeration(lines: Lines, result: Any, a: Any, b: Any, carry: Carry) -> None:
    lines.append(f"A = {a} divides this mode by mode, but there is a {carry}")
    if free_symbols((a, b)):
        return
    lines.append("so all values are computed: a mode of B is split where they stop being linear")
    values = " ".join(text(a(b(i))) for i in range(min(size(b), SHOWN)))
    lines.append(f"A(B(i)) = {values}{' ...' if size(b) > SHOWN else ''}")
    _nested_and_checked(lines, result, a, b)


def _nested_and_checked(lines: Lines, result: Any, a: Any, b: Any) -> None:
    if result is None:
        return
    lines.append(f"nested like the shape of B, {text(b.shape)}: {result}")
    if free_symbols((a, b)) or kind_of(a.modes) is ArithTuple:
        check(lines, CompositionLaw(a, b, result), "R(i) == A(B(i))")
    else:
        check_values(lines, "R(i) == A(B(i))", lambda i: a(b(i)), result, size(b))


@shows(algebra.composition)
def _places(result: Any, a: Any, b: Any) -> Views | None:
    """B, and the cells of A that it selects, which are those of R."""
    if not drawable(result):
        return None
    group, name = column_of(result)
    if isinstance(b, (Layout, ComposedLayout)) and isinstance(a, Swizzle):
        return Views([View("B", b), View("R", result)])
    if not drawable(a):
        return None
    if isinstance(b, tuple):
        taken = by_element(algebra.composition(make_identity_layout(a.shape), b), a.shape)
    elif isinstance(b, (Layout, ComposedLayout)) or is_int(b):
        b = Layout(b) if is_int(b) else b
        if free_symbols(b):
            return None
        taken = by_element(b, a.shape)
    else:
        return None
    places = tied((m, i) for i in range(size(result)) for m in taken(i))
    views = [View("A", a, places), View("R = A∘B", result)]
    if not isinstance(b, tuple):
        views.insert(1, View("B", b, counts="index {} of A"))
    return Views(views, group, name)
