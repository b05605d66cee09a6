"""Whether two chains of functions agree at every index below a count.

A chain is a tuple of stages, the last one applied first: ``(A, B)`` is A(B(i)), and
``(Swizzle, 4, L)`` is Swizzle(4 + L(i)).  There are four methods, from the most general to the last
resort:

    floors      two layouts: sums of c * floor(i/P) are equal exactly if their coefficients are
    digits      layouts and offsets: both sides are linear in the same digits of the index
    bits        swizzles over strides that never carry: both sides are matrices over GF(2)
    exhaustive  any chain: every index is tried, if there are few enough
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import takewhile
from operator import or_
from typing import Any

from ..algebra.digits import extended_modes
from ..errors import LayoutError, Undecided
from ..values.arith import equal
from ..values.layout import Layout
from ..values.offsets import steps_of_a_value
from ..values.steps import HOW_TO_TRY_MORE, affordable
from ..values.stride import F2, ArithTuple, E, as_factor, kind, paths_of
from ..values.swizzle import Swizzle
from ..values.symbols import at_least, has_symbols, plain
from ..values.tuples import leaves, place_values, text
from ..values.value import Value
from .certificates import (
    Division,
    Exhaustive,
    SameBits,
    SameComponents,
    SameDigits,
    SameFloors,
    SameStages,
    Stages,
    component,
    is_still,
    modes_of,
    step,
    steps,
)
from .digits import Carry, Form, Reading, highest, index_form, read, spelled

__all__ = ["Agreement", "Undecided", "agree", "floors", "written"]


class Agreement(Value):
    """Why two chains agree, with the witness, or the smallest `index` at which they differ."""

    __slots__ = __match_args__ = ("witness", "reason", "index")
    witness: Any
    reason: tuple[str, ...]
    index: int | None

    def __init__(
        self,
        witness: Any,
        reason: tuple[str, ...] = (),
        index: int | None = None,
    ) -> None:
        self._set(witness, reason, index)


def _differ(index: int) -> Agreement:
    return Agreement(None, index=index)


def agree(left: Stages, right: Stages, count: Any) -> Agreement:
    """Whether ``left(i) == right(i)`` for every i below `count`.

    Raises `Undecided` if symbols leave it open, or if they agree at all indices that the `budget`
    allows and there are more.

    >>> agree((Layout((4, 2), (1, 4)),), (Layout(8),), 8).witness
    SameFloors()
    >>> agree((Layout((4, 2), (1, 5)),), (Layout(8),), 8).index
    4
    """
    _check_extents(left, right, count)
    pairs = zip(left[:-1], right[:-1], strict=False)
    shared = [stage for stage, other in takewhile(lambda pair: bool(pair[0] == pair[1]), pairs)]
    swizzles = len(list(takewhile(lambda stage: isinstance(stage, Swizzle), shared)))
    if len(shared) > swizzles:
        try:
            found = _agree_before(len(shared), left, right, count)
        except LayoutError:  # not decided
            found = None
        if found is not None and found.witness is not None:
            return found
    return _agree_before(swizzles, left, right, count)  # a swizzle is injective


def _check_extents(left: Stages, right: Stages, count: Any) -> None:
    """Raises `Undecided` unless all extents are at least 1, for all values of their symbols."""
    shapes = tuple([stage.shape for stage in left + right if isinstance(stage, Layout)])
    for extent in (*leaves(shapes), count):
        if type(extent) is not int and has_symbols(extent) and at_least(extent, 1) is not True:
            raise Undecided(f"the extent {text(extent)} is not shown to be at least 1")


def _agree_before(same: int, left: Stages, right: Stages, count: Any) -> Agreement:
    """Whether the two agree before their last `same` stages, which they share."""
    inside = _agree(left[same:], right[same:], count)
    if not same or inside.witness is None:
        return inside
    after = f"both sides then apply {written(left[:same])}"
    return Agreement(SameStages(same, inside.witness), (*inside.reason, after))


def _agree(left: Stages, right: Stages, count: Any) -> Agreement:
    inner = [stage for side in (left, right) for stage in side[1:]]
    if any(_gives_coordinates(stage) for stage in inner):
        return _by_enumeration(left, right, count)
    if _gives_coordinates(left[0]) or _gives_coordinates(right[0]):
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
    return _by_enumeration(left, right, count)


def _gives_coordinates(stage: Any) -> bool:
    return isinstance(stage, Layout) and kind(leaves(stage.stride)) is ArithTuple


def _is_xor(stage: Any) -> bool:
    """Whether `stage` is linear over XOR: a swizzle, or a layout with XOR strides."""
    if isinstance(stage, Layout):
        return kind(leaves(stage.stride)) is F2
    return isinstance(stage, Swizzle)


def written(stages: Stages) -> str:
    """`stages` as CuTe writes a composed layout.

    >>> written((Swizzle(3, 3, 3), 0, Layout(8)))
    'S<3,3,3> o 0 o 8:1'
    """
    return " o ".join(map(str, stages))


# ------------------------------------------------------------------------------ components


def _by_components(left: Stages, right: Stages, count: Any) -> Agreement:
    """Coordinates agree if each of their components does."""
    if not all(_has_components(side[0]) for side in (left, right)):
        return _by_enumeration(left, right, count)
    strides = [d for side in (left, right) for _, d in modes_of(side[0])]
    parts = []
    for path in sorted(paths_of(strides)):
        one, other = ((component(side[0], path), *side[1:]) for side in (left, right))
        parts.append((path, agree(one, other, count)))
    differing = [part.index for _, part in parts if part.index is not None]
    if differing:
        return _differ(min(differing))
    reason = tuple(f"{E(*path)}: {line}" for path, part in parts for line in part.reason)
    witness = SameComponents(tuple((path, part.witness) for path, part in parts))
    return Agreement(witness, reason)


def _has_components(stage: Any) -> bool:
    """Whether all strides of a layout are coordinates, or 0."""
    return isinstance(stage, Layout) and all(
        is_still(d) or isinstance(d, ArithTuple) for _, d in modes_of(stage)
    )


# --------------------------------------------------------------------------------- floors


def floors(layout: Layout) -> dict[Any, Any]:
    """`layout` as a sum of c * floor(i/P): the coefficients c by P, without zeros.

    Digit k of i is ``floor(i/P) - s*floor(i/(P*s))``, where P is the product of the extents before
    it.  So the coefficient at P is the stride there, less extent times stride of the mode before.
    Equal sums are equal functions, whatever the modes are.

    >>> floors(Layout((4, 2), (1, 5))), floors(Layout((4, 2), (1, 4)))
    ({1: 1, 4: 1}, {1: 1})
    """
    total: dict[Any, Any] = {}
    place, before = 1, 0
    for extent, stride in extended_modes(layout):
        change = stride if before == 0 else stride - before
        total[place] = plain(total[place] + change if place in total else change)
        if extent is not None:
            place, before = plain(place * extent), plain(extent * stride)
    return {place: c for place, c in total.items() if c != 0}


def _by_floors(left: Layout, right: Layout, count: Any) -> Agreement:
    one, other = floors(left), floors(right)
    differ = [p for p in {**one, **other} if plain(one.get(p, 0) - other.get(p, 0)) != 0]
    below = [place for place in differ if count is None or at_least(place, count) is not True]
    if not below:
        return Agreement(SameFloors(), (_floor_reason(left, right, differ),))
    if not has_symbols((left, right, count)):
        return _differ(min(below))
    place = below[0]
    raise Undecided(
        f"{left} has {text(one.get(place, 0))} * floor(i/{as_factor(place)}), and {right} has "
        f"{text(other.get(place, 0))} * floor(i/{as_factor(place)})"
    )


def _floor_reason(left: Layout, right: Layout, beyond: Sequence[Any]) -> str:
    terms = [_floor_term(c, place) for place, c in floors(left).items() if place not in beyond]
    up_to = " with P below the size" if beyond else ""
    both = " + ".join(terms).replace("+ -", "- ") or "0"
    return f"as sums of floor(i/P){up_to}, {left} and {right} are both {both}"


def _floor_term(c: Any, place: Any) -> str:
    whole = "i" if place == 1 else f"floor(i/{as_factor(place)})"
    return whole if type(c) is int and c == 1 else f"{as_factor(c)}*{whole}"


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
        witness = SameDigits(digits, _divisions(on_left), _divisions(on_right))
        return Agreement(witness, _digit_reason(digits, [*on_left, *on_right], values[0]))
    if has_symbols((left, right, count)):
        raise Undecided(
            f"{written(left)} is {spelled(values[0])}, and {written(right)} is "
            f"{spelled(values[1])}, on the index {spelled(index_form(digits))}"
        )
    return _differ(0 if differ[0] == 0 else place_values(digits)[differ[0] - 1])


def _divisions(readings: Iterable[Reading]) -> tuple[Division, ...]:
    """The readings of layouts as the checker wants them: with the last mode's extent as 1."""
    return tuple(
        Division(
            tuple((1 if extent is None else extent, stride) for extent, stride in reading.modes),
            tuple(step.quotient for step in reading.steps),
        )
        for reading in readings
        if isinstance(reading.stage, Layout)
    )


def _digit_reason(digits: Form, readings: Iterable[Reading], value: Form) -> tuple[str, ...]:
    index = spelled(index_form(digits))
    bounds = ", ".join(f"x{k} < {extent}" for k, extent in enumerate(digits))
    lines = [f"an index is {index} with {bounds}"]
    lines += [_description(reading, digits) for reading in readings]
    return (*lines, f"both sides are {spelled(value)}")


def _description(reading: Reading, digits: Sequence[Any]) -> str:
    """What the stage does to its form, and each division with a bound of the remainder."""
    divisions = [
        f"division by {step.extent} gives the quotient {spelled(step.quotient)} and the remainder "
        f"{spelled(step.remainder)} <= {highest(step.remainder, digits)}"
        for step in reading.steps
        if any(weight != 0 for weight in step.remainder)
    ]
    line = f"{reading.stage} maps {spelled(reading.before)} to {spelled(reading.after)}"
    return f"{line}: {'; '.join(divisions)}" if divisions else line


# ----------------------------------------------------------------------------------- bits


def _by_bits(left: Stages, right: Stages, count: int) -> Agreement | None:
    """The answer if both sides are bit matrices, or None."""
    bits = (count - 1).bit_length()
    if not (_is_bit_matrix(left, count) and _is_bit_matrix(right, count)):
        return None
    for index in (0, *(1 << bit for bit in range(bits))):
        if step(left, index) != step(right, index):
            return _differ(index)
    columns = ", ".join(str(step(left, 1 << bit)) for bit in range(bits))
    reason = (
        f"swizzles, and strides that never carry, are linear over GF(2): both sides are the matrix "
        f"with the columns {columns}"
    )
    return Agreement(SameBits(), (reason,))


def _is_bit_matrix(stages: Stages, count: int) -> bool:
    """Whether every stage is linear over XOR on the bits that reach it: a swizzle, XOR strides, or
    integer strides of powers of two that never carry; an offset that shares no bit with them."""
    *after, layout = stages
    bits = (count - 1).bit_length()
    if not _is_linear(layout, bits):
        return False
    reached = _reached(layout, bits)
    for stage in reversed(after):
        if type(stage) is int:
            if stage & reached:
                return False
            reached |= stage
        elif _is_linear(stage, reached.bit_length()):
            reached = _reached(stage, reached.bit_length())
        else:
            return False
    return True


def _is_linear(stage: Any, bits: int) -> bool:
    """Whether `stage` is linear over XOR on the indices below ``2**bits``."""
    if _is_xor(stage) or not _counts_in_bits(stage):
        return _counts_in_bits(stage)
    return bool(sum(stage(1 << bit) for bit in range(bits)) == _reached(stage, bits))


def _reached(stage: Any, bits: int) -> int:
    """The bits that are set in a value of `stage` at some power of two below ``2**bits``."""
    return reduce(or_, (stage(1 << bit) for bit in range(bits)), 0)


def _counts_in_bits(stage: Any) -> bool:
    """Whether each mode of a layout but the last takes whole bits of the index; a swizzle does."""
    return isinstance(stage, Swizzle) or all(
        extent & (extent - 1) == 0 for extent, _ in modes_of(stage)[:-1]
    )


# ------------------------------------------------------------------------------ exhaustive


#: How many indices are tried before the two sides are compared.
TRIED_TOGETHER = 1 << 12


def _by_enumeration(left: Stages, right: Stages, count: Any) -> Agreement:
    if has_symbols((left, right, count)):
        raise Undecided(f"{written(left)}: symbols under a swizzle are beyond every method")
    tried = min(count, affordable(sum(map(steps_of_a_value, left + right))))
    for start in range(0, tried, TRIED_TOGETHER):
        indices = range(start, min(start + TRIED_TOGETHER, tried))
        pairs = zip(steps(left, indices), steps(right, indices), strict=True)
        differs = [one != other for one, other in pairs]
        if any(differs):
            return _differ(start + differs.index(True))
    if tried < count:
        raise Undecided(
            f"{written(left)} and {written(right)} agree at the first {tried} of {count} indices, "
            f"and the others were not tried; {HOW_TO_TRY_MORE}"
        )
    return Agreement(Exhaustive(), (f"all {count} values were computed and compared",))
