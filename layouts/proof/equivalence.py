"""Whether two chains of functions take the same values, decided for every index below a count.

A chain is a tuple of stages, the last first: ``(A, B)`` is A(B(i)), and ``(Swizzle, 4, L)`` is
Swizzle(4 + L(i)).  Four ways, tried from the most general to the last resort:

    floors   two layouts are sums of floor(i/P) with coefficients, equal just if these are
    digits   layouts and offsets: both sides are read on the same digits of the index
    bits     swizzles over strides that never carry: both sides are matrices over GF(2)
    looking  every index, if there are few enough
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from ..algebra.compose import ENUMERATION_LIMIT
from ..errors import LayoutError
from ..values.arith import equal
from ..values.layout import Layout
from ..values.stride import F2, ArithTuple, E, kind, paths_of
from ..values.swizzle import Swizzle
from ..values.symbols import at_least, has_symbols, plain
from ..values.tuples import leaves, place_values, product, text, unflatten
from ..values.value import Value
from .certificate import (
    Looked,
    SameComponents,
    SameDigits,
    SameFloors,
    SameMatrix,
    SameStages,
)
from .digits import Carry, Form, Reading, extended_modes, index_form, read, spelled

__all__ = ["Agreement", "Undecided", "agree", "floors", "written"]

Stages = tuple[Any, ...]


class Undecided(LayoutError):
    """Neither proved nor refuted; the message says what could not be shown."""


class Agreement(Value):
    """The certificate and the reason that two chains agree, or the smallest index where not."""

    __slots__ = __match_args__ = ("certificate", "reason", "index")
    certificate: Any
    reason: tuple[str, ...]
    index: int | None

    def __init__(self, certificate: Any, reason: tuple[str, ...], index: int | None = None) -> None:
        self._set(certificate, reason, index)


def agree(left: Stages, right: Stages, count: Any) -> Agreement:
    """Whether ``left(i) == right(i)`` for every i below `count`.

    Raises `Undecided` where symbols leave it open, or where too many indices are left to look at.

    >>> agree((Layout((4, 2), (1, 4)),), (Layout(8),), 8).certificate.verify()
    True
    >>> agree((Layout((4, 2), (1, 5)),), (Layout(8),), 8).index
    4
    """
    same = len(list(takewhile(_same_swizzle, zip(left[:-1], right[:-1], strict=False))))
    inside = _agree(left[same:], right[same:], count)
    if not same or inside.index is not None:
        return inside
    after = f"and both go on through {written(left[:same])}"
    return Agreement(SameStages(left[:same], inside.certificate), (*inside.reason, after))


def component(layout: Layout, path: Any) -> Layout:
    """`layout`, of coordinate strides, as it steps the coordinate at `path`.

    >>> from layouts import E
    >>> print(component(Layout((4, 8), (E(0), 2 * E(1))), (1,)))
    (4,8):(0,2)
    """
    strides = [dict(d.terms).get(path, 0) if d else 0 for d in leaves(layout.stride)]
    return Layout(layout.shape, unflatten(strides, layout.shape))


def _by_components(left: Stages, right: Stages, count: Any) -> Agreement:
    """Coordinates agree where each of their components does."""
    strides = [d for side in (left, right) for d in leaves(side[0].stride)]
    parts = []
    for path in sorted(paths_of(strides)):
        one, other = ((component(side[0], path), *side[1:]) for side in (left, right))
        parts.append((path, agree(one, other, count)))
    differing = [part.index for _, part in parts if part.index is not None]
    if differing:
        return Agreement(None, (), min(differing))
    reason = tuple(f"{E(*path)}: {line}" for path, part in parts for line in part.reason)
    certificates = tuple((path, part.certificate) for path, part in parts)
    return Agreement(SameComponents(left, right, count, certificates), reason)


def _of_coordinates(stages: Stages) -> bool:
    return isinstance(stages[0], Layout) and kind(leaves(stages[0].stride)) is ArithTuple


def _is_xor(stage: Any) -> bool:
    """Whether `stage` adds over XOR: a swizzle, or a layout with XOR strides."""
    if isinstance(stage, Layout):
        return kind(leaves(stage.stride)) is F2
    return isinstance(stage, Swizzle)


def _same_swizzle(pair: tuple[Any, Any]) -> bool:
    """A swizzle takes no two offsets to one, so that nothing is lost by leaving it out."""
    return isinstance(pair[0], Swizzle) and bool(pair[0] == pair[1])


def _agree(left: Stages, right: Stages, count: Any) -> Agreement:
    if _of_coordinates(left) or _of_coordinates(right):
        return _by_components(left, right, count)
    if not any(map(_is_xor, left + right)):
        if len(left) == len(right) == 1:
            return _by_floors(left[0], right[0], count)
        try:
            return _by_digits(left, right, count)
        except Carry as carry:
            if has_symbols((left, right, count)):
                raise Undecided(str(carry)) from None
    elif not has_symbols((left, right, count)):
        found = _by_bits(left, right, count)
        if found is not None:
            return found
    return _by_looking(left, right, count)


def written(stages: Stages) -> str:
    """`stages` as CuTe writes a composed layout.

    >>> written((Swizzle(3, 3, 3), 0, Layout(8)))
    'S<3,3,3> o 0 o 8:1'
    """
    return " o ".join(map(str, stages))


# --------------------------------------------------------------------------------- floors


def floors(layout: Layout) -> dict[Any, Any]:
    """The coefficients by which `layout` is a sum of floor(i/P), by P, those of 0 left out.

    The digit k of i is ``floor(i/P) - s*floor(i/(P*s))``, where P is the product of the extents
    before; so the coefficient at P is the stride there, less the stride of one step of the mode
    before.  This is the layout as a function, whatever its modes are.

    >>> floors(Layout((4, 2), (1, 5))), floors(Layout((4, 2), (1, 4)))
    ({1: 1, 4: 1}, {1: 1})
    """
    total: dict[Any, Any] = {}
    place, step = 1, 0
    for extent, stride in extended_modes(layout):
        _gather(total, place, stride, step)
        if extent is not None:
            place, step = plain(place * extent), _times(extent, stride)
    return {place: c for place, c in total.items() if not _is_zero(c)}


def _gather(total: dict[Any, Any], place: Any, stride: Any, step: Any) -> None:
    change = stride if _is_zero(step) else stride - step
    total[place] = _plain(total[place] + change if place in total else change)


def _times(extent: Any, stride: Any) -> Any:
    return _plain(extent * stride)


def _plain(x: Any) -> Any:
    return plain(x) if hasattr(x, "free_symbols") else x


def _is_zero(x: Any) -> bool:
    return bool(x == 0)


def _by_floors(left: Layout, right: Layout, count: Any) -> Agreement:
    one, other = floors(left), floors(right)
    differ = [p for p in {**one, **other} if not _is_zero(_plain(one.get(p, 0) - other.get(p, 0)))]
    inside = [place for place in differ if count is None or at_least(place, count) is not True]
    if not inside:
        return Agreement(SameFloors(left, right, count), (_floor_reason(left, right, differ),))
    if not has_symbols((left, right, count)):
        return Agreement(None, (), min(inside))
    place = inside[0]
    raise Undecided(
        f"{left} has {text(one.get(place, 0))} * floor(i/{_factor(place)}), and {right} has "
        f"{text(other.get(place, 0))} * floor(i/{_factor(place)})"
    )


def _floor_reason(left: Layout, right: Layout, beyond: Sequence[Any]) -> str:
    own = floors(left).items()
    terms = [f"{_times_floor(c, place)}" for place, c in own if place not in beyond]
    up_to = " as far as P is below the size" if beyond else ""
    both = " + ".join(terms) or "0"
    return f"{left} and {right}, written as sums of floor(i/P), are both {both}{up_to}"


def _times_floor(c: Any, place: Any) -> str:
    whole = "i" if _is_zero(place - 1) else f"floor(i/{_factor(place)})"
    return whole if type(c) is int and c == 1 else f"{_factor(c)}*{whole}"


def _factor(x: Any) -> str:
    return f"({x})" if " " in str(x) else str(x)


# --------------------------------------------------------------------------------- digits


def _by_digits(left: Stages, right: Stages, count: Any) -> Agreement:
    digits: tuple[Any, ...] = () if equal(count, 1) else (count,)
    while True:
        finer, on_left = read(left, digits)
        digits, on_right = read(right, finer)
        if len(digits) == len(finer):
            break
    values = on_left[-1].after, on_right[-1].after
    differ = [k for k, pair in enumerate(zip(*values, strict=True)) if not equal(*pair)]
    if not differ:
        certificate = SameDigits(count, digits, tuple(on_left), tuple(on_right))
        return Agreement(certificate, _digit_reason(certificate, values[0]))
    if has_symbols((left, right, count)):
        raise Undecided(
            f"{written(left)} is {spelled(values[0])}, and {written(right)} is "
            f"{spelled(values[1])}, on the index {spelled(index_form(digits))}"
        )
    return Agreement(None, (), 0 if differ[0] == 0 else place_values(digits)[differ[0] - 1])


def _digit_reason(certificate: SameDigits, value: Form) -> tuple[str, ...]:
    digits = certificate.digits
    index = spelled(index_form(digits))
    bounds = ", ".join(f"x{k} < {extent}" for k, extent in enumerate(digits))
    lines = [f"an index is {index} with {bounds}"]
    for side in (certificate.left, certificate.right):
        lines += [line for reading in side for line in _told(reading, digits)]
    return (*lines, f"both sides are {spelled(value)}")


def _told(reading: Reading, digits: Sequence[Any]) -> list[str]:
    """A line for the reading, with each remainder and how large it gets."""
    parts = [
        f"divided by {step.extent} it leaves {spelled(step.remainder)} <= "
        f"{highest(step.remainder, digits)} and gives {spelled(step.quotient)}"
        for step in reading.steps
        if any(not _is_zero(weight) for weight in step.remainder)
    ]
    told = f"{reading.stage} takes {spelled(reading.before)} to {spelled(reading.after)}"
    return [": ".join([told, "; ".join(parts)]) if parts else told]


def highest(form: Form, digits: Sequence[Any]) -> Any:
    """The largest value of `form`.

    >>> highest((1, 2, 0), (4, 8))
    7
    """
    return plain(
        form[0] + sum(weight * (digit - 1) for weight, digit in zip(form[1:], digits, strict=True))
    )


# ----------------------------------------------------------------------------------- bits


def _by_bits(left: Stages, right: Stages, count: int) -> Agreement | None:
    """The answer if both sides are bit matrices, or None."""
    bits = count.bit_length() - 1
    if not (_is_bit_matrix(left, count) and _is_bit_matrix(right, count)):
        return None
    for index in (0, *(1 << bit for bit in range(bits))):
        if _value(left, index) != _value(right, index):
            return Agreement(None, (), index)
    reason = (
        f"strides that never carry, and swizzles, add bit by bit: both sides are the bit matrix "
        f"with the columns {', '.join(str(_value(left, 1 << bit)) for bit in range(bits))}"
    )
    return Agreement(SameMatrix(left, right, bits), (reason,))


def _is_bit_matrix(stages: Stages, count: int) -> bool:
    """Stages that add over XOR, after, perhaps, an offset and a layout of powers of two that share
    no bit."""
    *after, layout = stages
    if not isinstance(layout, Layout) or product(layout.shape) != count:
        return False
    seen = after.pop() if after and type(after[-1]) is int else 0
    if not all(map(_is_xor, after)):
        return False
    if _is_xor(layout):
        return seen == 0
    for extent, stride in zip(leaves(layout.shape), leaves(layout.stride), strict=True):
        if type(stride) is not int or extent & (extent - 1):
            return False
        for bit in range(extent.bit_length() - 1):
            if seen & stride << bit:
                return False
            seen |= stride << bit
    return True


def _value(stages: Stages, index: int) -> Any:
    value: Any = index
    for stage in reversed(stages):
        value = stage + value if type(stage) is int else stage(value)
    return value


# -------------------------------------------------------------------------------- looking


def _by_looking(left: Stages, right: Stages, count: Any) -> Agreement:
    if has_symbols((left, right, count)):
        raise Undecided(f"no method reaches {written(left)} with symbols under a swizzle")
    if count > ENUMERATION_LIMIT:
        raise Undecided(f"{count} indices are too many to look at")
    for index in range(count):
        if _value(left, index) != _value(right, index):
            return Agreement(None, (), index)
    certificate = Looked("same", (left, right), count)
    return Agreement(certificate, (f"all {count} values were computed and compared",))
