"""A layout after one with integer strides: by digits, or else by an exhaustive check.

`digits` reads B through A.  Where no digit carries, that gives the layout A(B(c)) and its proof.

Where a digit carries there may still be a layout, by coincidence.  There is at most one, and its
values determine it: along a leaf of B, a mode ends exactly where the values stop being linear, and
the value at a coordinate is the sum of those along its leaves.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..errors import LayoutError
from ..values.layout import Layout, cosize, trusted
from ..values.modes import Mode, refined
from ..values.offsets import sums_at
from ..values.steps import Steps
from ..values.stride import ArithTuple, Path
from ..values.symbols import GIVE_VALUES, coefficients, fails_at
from ..values.tuples import idx2crd, size, text, unflatten
from .digits import extended_modes, form_of, modes_of_leaves, read_through

__all__ = ["compose"]


def compose(a: Layout, b: Layout) -> Layout:
    """The layout ``R(c) == A(B(c))`` for every coordinate c of `b`; its shape refines that of `b`.

    The strides of A may be of any kind, those of B are integers.  Raises `LayoutError` if there is
    no such layout, with the smallest index that shows it.

    >>> print(compose(Layout((6, 2), (8, 2)), Layout((4, 3), (3, 1))))
    ((2,2),3):((24,2),8)
    """
    form = form_of(b.modes)
    carry = read_through(extended_modes(a), form)
    if carry is not None:
        return _checked_at_every_index(a, b, carry)
    return refined(b.shape, modes_of_leaves(form, len(b.modes)))


# -------------------------------------------------------------------------- exhaustive check

#: How many values are computed at once, so that a refusal by one of the first is quick.
_BLOCK = 4096


def _checked_at_every_index(a: Layout, b: Layout, carry: tuple[Any, Any]) -> Layout:
    """The only layout that can equal A(B(c)), compared with it at every index, or `LayoutError`.

    Leaf by leaf: `offsets` are those of the leaves of B so far, and `values` those of A there.
    """
    _check_integers(a, b, carry)
    steps = Steps(f"composition of {a} with {b}")
    as_integers = _AsIntegers(a, b)
    offsets, values = [0], [0]
    modes_of_b = []
    for extent, stride in b.modes:
        line, modes, end, forced = _line(as_integers.layout, extent, stride, steps)
        for x in range(1, end, many := max(1, _BLOCK // len(offsets))):
            block = range(x, min(x + many, end))
            steps.take(len(block) * (len(offsets) - 1))
            indices = [y * stride + offset for y in block for offset in offsets]
            actual = sums_at(as_integers.layout, indices)
            sums = [line[y] + value for y in block for value in values]
            if actual != sums:
                k = [one == other for one, other in zip(actual, sums, strict=True)].index(False)
                raise _refusal(a, b, x * len(offsets) + k, as_integers.value(sums[k]))
        if end < extent:
            raise _refusal(a, b, end * len(offsets), as_integers.value(forced))
        modes_of_b.append([(extent, as_integers.value(stride)) for extent, stride in modes])
        offsets = [x * stride + offset for x in range(extent) for offset in offsets]
        values = [own + value for own in line for value in values]
    return refined(b.shape, modes_of_b)


class _AsIntegers:
    """`layout` is A on the offsets of B, with coordinates and symbols as digits of an integer.

    Integers are added a hundred times as fast.  A digit is the coefficient of one monomial in one
    coordinate.  It has room for every sum of values, and for every linear continuation of them, so
    none carries.
    """

    def __init__(self, a: Layout, b: Layout) -> None:
        self.layout = a
        self.units: list[tuple[Path, Any]] = []  # the coordinate of each digit, and the monomial
        if all(type(stride) is int for _, stride in a.modes):
            return
        steps = [dict(_coefficients(stride)) for _, stride in a.modes]
        self.units = [*dict.fromkeys(unit for step in steps for unit in step)]
        highest = cosize(b) * sum(abs(n) for step in steps for n in step.values())
        self.width = (highest * (size(b) + 1) * (len(b.modes) + 1)).bit_length() + 1
        places = {unit: self.width * k for k, unit in enumerate(self.units)}
        strides = [sum(n << places[unit] for unit, n in step.items()) for step in steps]
        self.layout = trusted(a.shape, unflatten(strides, a.shape))

    def value(self, number: int) -> Any:
        """The sum of strides of A that `number` is."""
        if not self.units:
            return number
        total: Any = 0
        half = 1 << self.width - 1
        for path, monomial in self.units:
            digit = (number + half) % (2 * half) - half  # digits may be negative: m - 1
            number = (number - digit) // (2 * half)
            if digit:
                term = digit * monomial
                total = total + (ArithTuple([(path, term)]) if path else term)
        return total


def _coefficients(stride: Any) -> Iterator[tuple[tuple[Path, Any], int]]:
    """The units (coordinate, monomial) of `stride`, and the coefficient of each."""
    terms = stride.terms if isinstance(stride, ArithTuple) else [((), stride)]
    for path, number in terms:
        for monomial, coefficient in coefficients(number).items():
            yield (path, monomial), coefficient


def _line(
    a: Layout, extent: int, stride: int, steps: Steps
) -> tuple[list[Any], list[Mode], int, Any]:
    """The values of A along a leaf of B, its modes, and where they end: at `extent`, or at the
    first value that no mode can have; the last is the value that is forced there."""
    known, count = 1, min(extent, _BLOCK)
    while True:
        steps.take(count - known)
        line = sums_at(a, [x * stride for x in range(count)])
        modes, end, forced = _modes_of_line(line, extent)
        if end < count or count == extent:
            return line, modes, end, forced
        known, count = count, min(extent, count * 16)


def _modes_of_line(line: list[Any], extent: int) -> tuple[list[Mode], int, Any]:
    """The modes of a leaf of `extent` whose values begin with `line`, as in `_line`.

    A mode ends where the values stop being linear.
    """
    modes: list[Mode] = []
    place, count = 1, len(line)
    while place < count:
        stride = line[place]
        end = _linear_until(line, place)
        if end < count and (extent % end or end % place):
            return modes, end, line[end % place] + end // place * stride
        modes.append(((end if end < count else extent) // place, stride))
        place = end
    return modes, count, None


def _linear_until(line: list[int], place: int) -> int:
    """The first x with ``line[x] != line[x % place] + x // place * line[place]``, or the end."""
    period, stride, known = line[:place], line[place], place
    while known < len(line):  # twice as many at a time
        end = min(len(line), 2 * known)
        steps = range(known // place, -(-end // place))
        wanted = [value + step * stride for step in steps for value in period][: end - known]
        if wanted != line[known:end]:
            pairs = zip(wanted, line[known:end], strict=True)
            return known + [one == other for one, other in pairs].index(False)
        known = end
    return known


def _check_integers(a: Layout, b: Layout, carry: tuple[Any, Any]) -> None:
    """Raise `LayoutError` if A or B has symbols: their indices cannot be tried."""
    numbers = (*(extent for extent, _ in a.modes), *(x for mode in b.modes for x in mode))
    if any(type(x) is not int for x in numbers):
        raise LayoutError(
            f"composition of A = {a} with B = {b} is not decided: digits of B carry from one mode "
            f"of A into the next unless {carry[0]} < {carry[1]}, and that is not proved; write the "
            f"divisibility into the expressions (M = 8*m), or {GIVE_VALUES}."
            + fails_at(compose, a, b)
        )


def _refusal(a: Layout, b: Layout, index: int, forced: Any) -> LayoutError:
    error = LayoutError(
        f"composition of A = {a} with B = {b} has no layout: at index {index}, coordinate "
        f"{text(idx2crd(index, b.shape))} of B, A(B({index})) = A({b(index)}) = {a(b(index))}, but "
        f"every layout that agrees before has {forced} there; choose extents and strides of B that "
        f"divide, or are divided by, the extents of A"
    )
    error.counterexample = (index, idx2crd(index, b.shape), a(b(index)), forced)
    return error
