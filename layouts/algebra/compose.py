"""One layout read through another: the core of composition.

The offset B(c) is a linear form, a sum of digits times weights, one digit per leaf of B.  To send
it through a mode s:d of A is to divide it by s with remainder.  What s divides of a weight goes to
the quotient; a digit whose remainder overruns s is split where it does; and if all remainders
together stay below s, nothing carries, and division acts on each digit by itself.  So the extents
of the digits, and the strides they have collected, are the layout A(B(c)), and this is its proof.

Where something carries there may still be a layout, by coincidence.  It can be only one, and its
values tell it: along a leaf of B a mode ends just where they stop being linear, and the value at a
coordinate is the sum of those along its leaves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

from ..errors import LayoutError
from ..values.arith import ceil_div, divided, divides, less
from ..values.layout import Layout
from ..values.modes import Mode, merged
from ..values.tuples import IntTuple, idx2crd, size, text

__all__ = ["ENUMERATION_LIMIT", "compose", "compose_modes"]

#: What the theorems do not decide is decided by looking at every index, if there are no more.
ENUMERATION_LIMIT = 1 << 20


def compose(a: Layout, b: Layout) -> Layout:
    """The layout ``R(c) == A(B(c))`` for every coordinate c of `b`; its shape refines that of `b`.

    The strides of A may be of any kind, those of B are integers.  Raises `LayoutError` if there is
    no such layout, with the smallest index that shows it.

    >>> print(compose(Layout((6, 2), (8, 2)), Layout((4, 3), (3, 1))))
    ((2,2),3):((24,2),8)
    """
    found = compose_modes(_extended(a), b)
    return found if isinstance(found, Layout) else _decided(a, b, found)


def compose_modes(modes: Sequence[Mode], b: Layout) -> Layout | tuple[Any, Any]:
    """`b` read through `modes`, the last of which has no end; where digits carry, what they reach
    and the extent that this is to stay below."""
    form = [[_Digit(extent, stride)] for extent, stride in b.modes]
    carry = _read_through(modes, form)
    if carry is not None:
        return carry
    return _refined(b, [[(digit.extent, digit.stride) for digit in leaf] for leaf in form])


def _extended(layout: Layout) -> list[Mode]:
    """The merged modes of `layout` as a function on all integers: the last has no end, whatever its
    extent says, so that a last extent of 1 stays (C++ ``coalesce_x``)."""
    if not layout.modes:
        return [(2, 0)]
    *modes, (last, stride) = layout.modes
    kept = [mode for mode in modes if mode[0] != 1]
    kept.append((2 if last == 1 else last, stride))
    return merged(kept) if len(kept) > 1 else kept


def _refined(b: Layout, modes_of_leaves: Sequence[Sequence[Mode]]) -> Layout:
    """`b` with each leaf replaced by modes, a single one without parentheses."""
    filled = [modes or [(1, 0)] for modes in modes_of_leaves]
    shape, stride = _hung(iter(filled), b.shape)
    return Layout.of(shape, stride, tuple([mode for modes in filled for mode in modes]))


def _hung(parts: Iterator[Sequence[Mode]], profile: IntTuple) -> tuple[IntTuple, IntTuple]:
    """The shape and the stride of `parts`, one for each leaf of `profile`."""
    if isinstance(profile, tuple):
        pairs = [_hung(parts, branch) for branch in profile]
    else:
        pairs = list(next(parts))
        if len(pairs) == 1:
            return pairs[0]
    return tuple([shape for shape, _ in pairs]), tuple([stride for _, stride in pairs])


# ----------------------------------------------------------------------------------- digits


class _Digit:
    """A digit of the form: its extent, its weight in what is still to divide, its stride so far."""

    __slots__ = ("extent", "stride", "weight")

    def __init__(self, extent: Any, weight: Any, stride: Any = 0) -> None:
        self.extent, self.weight, self.stride = extent, weight, stride


#: The digits of each leaf of B, the lowest first.
Form: TypeAlias = "list[list[_Digit]]"


def _read_through(modes: Sequence[Mode], form: Form) -> tuple[Any, Any] | None:
    """Give the digits of `form` the strides that `modes` have for them.

    If one carries: what the remainders add up to, and the extent that this is to stay below.
    """
    for extent, stride in modes[:-1]:
        reach = 0
        for leaf in form:
            place = 0
            while place < len(leaf):
                digit = leaf[place]
                quotient, remainder = divided(digit.weight, extent)
                if remainder != 0 and digit.extent != 1:
                    at = _overrun(digit, remainder, extent)
                    if at is not None:
                        leaf.insert(place + 1, _high(digit, at))
                        digit.extent = at
                    reach += remainder * (digit.extent - 1)
                    digit.stride += remainder * stride
                elif digit.extent == 1:  # it reads nothing, and any stride would do: this is C++'s
                    quotient = ceil_div(digit.weight, extent)
                digit.weight = quotient
                place += 1
        if not less(reach, extent):
            return reach, extent
    last_stride = modes[-1][1]
    for leaf in form:
        for digit in leaf:
            if type(digit.weight) is not int or digit.weight != 0:
                digit.stride += digit.weight * last_stride
    return None


def _overrun(digit: _Digit, remainder: Any, extent: Any) -> Any:
    """Where to split `digit` if its remainder overruns `extent`, and it can be split there."""
    if less(remainder * (digit.extent - 1), extent) or not divides(remainder, extent):
        return None
    at, _ = divided(extent, remainder)
    return at if divides(at, digit.extent) else None


def _high(digit: _Digit, at: Any) -> _Digit:
    """The part of `digit` that counts in steps of `at`."""
    stride = digit.stride * at if digit.stride else 0  # no symbol times 0, which is no int
    return _Digit(divided(digit.extent, at)[0], digit.weight * at, stride)


# ---------------------------------------------------------------------------------- looking


class _Leaf:
    """A leaf of B whose modes are being read off its values: pairs (place, stride), where place is
    the index at which a mode begins; the last has no end yet."""

    def __init__(self, extent: int) -> None:
        self.extent: int = extent
        self.begun: list[tuple[int, Any]] = [(1, 0)]

    def __call__(self, x: int) -> Any:
        """The value that the modes so far give at index `x`."""
        value: Any = 0
        for place, stride in reversed(self.begun):
            digit, x = divmod(x, place)
            value += digit * stride
        return value

    def begin(self, x: int, value: Any) -> bool:
        """Begin a mode at `x`, where the modes so far do not give `value`; False if none can."""
        if self.extent % x or x % self.begun[-1][0]:
            return False
        self.begun.append((x, value))
        return True

    def modes(self) -> list[Mode]:
        """The modes that were begun, each to where the next begins."""
        places = [place for place, _ in self.begun] + [self.extent]
        extents = [end // place for place, end in pairwise(places)]
        strides = [stride for _, stride in self.begun]
        return [mode for mode in zip(extents, strides, strict=True) if mode[0] != 1]


def _decided(a: Layout, b: Layout, carry: tuple[Any, Any]) -> Layout:
    """The one layout equal to A(B(c)), found by looking at every index, or `LayoutError`."""
    if any(
        type(x) is not int for x in (*(s for s, _ in a.modes), *(x for m in b.modes for x in m))
    ):
        from ..values.symbols import (
            fails_at,  # loaded where the first symbol is met: it may need sympy
        )

        raise LayoutError(
            f"composition of A = {a} with B = {b} is not decided: digits of B carry from one mode "
            f"of A into the next unless {carry[0]} < {carry[1]}, and that is not proved; write the "
            f"divisibility into the expressions (M = 8*m), or give the symbols values."
            + fails_at(compose, a, b)
        )
    if size(b) > ENUMERATION_LIMIT:
        raise LayoutError(
            f"composition of {a} with {b} is not decided: digits carry from one mode of A into the "
            f"next, and {size(b)} indices are too many to look at; split B where the modes of A end"
        )
    leaves_of_b = [_Leaf(extent) for extent, _ in b.modes]
    shape = tuple(leaf.extent for leaf in leaves_of_b)
    for index in range(size(b)):
        value = a.value(b(index)) or 0
        moved = [(leaf, x) for leaf, x in zip(leaves_of_b, idx2crd(index, shape), strict=True) if x]
        forced = sum(leaf(x) for leaf, x in moved) or 0
        if value != forced and not (len(moved) == 1 and moved[0][0].begin(moved[0][1], value)):
            raise _refusal(a, b, index, forced)
    return _refined(b, [leaf.modes() for leaf in leaves_of_b])


def _refusal(a: Layout, b: Layout, index: int, forced: Any) -> LayoutError:
    error = LayoutError(
        f"composition of A = {a} with B = {b} has no layout: at index {index}, coordinate "
        f"{text(idx2crd(index, b.shape))} of B, A(B({index})) = A({b(index)}) = {a(b(index))}, but "
        f"every layout that agrees before has {forced} there; choose extents and strides of B that "
        f"divide, or are divided by, the extents of A"
    )
    error.counterexample = (index, idx2crd(index, b.shape), a(b(index)), forced)
    return error
