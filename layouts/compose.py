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

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

from .errors import LayoutError
from .layout import Layout
from .modes import Mode, assembled, flat_modes, merged
from .tuples import idx2crd, size, text, unflatten

__all__ = ["ENUMERATION_LIMIT", "compose"]

#: What the theorems do not decide is decided by looking at every index, if there are no more.
ENUMERATION_LIMIT = 1 << 20


def compose(a: Layout, b: Layout) -> Layout:
    """The layout ``R(c) == A(B(c))`` for every coordinate c of `b`; its shape refines that of `b`.

    Raises `LayoutError` if there is none, with the smallest index that shows it.

    >>> print(compose(Layout((6, 2), (8, 2)), Layout((4, 3), (3, 1))))
    ((2,2),3):((24,2),8)
    """
    form = _read_through(_extended(a), [[_Digit(*mode)] for mode in flat_modes(b)])
    if form is None:
        return _decided(a, b)
    return _refined(b, [[(digit.extent, digit.stride) for digit in leaf] for leaf in form])


def _extended(layout: Layout) -> list[Mode]:
    """The merged modes of `layout` as a function on all integers: the last has no end, whatever its
    extent says, so that a last extent of 1 stays (C++ ``coalesce_x``)."""
    *modes, (last, stride) = flat_modes(layout) or [(1, 0)]
    return merged([mode for mode in modes if mode[0] != 1] + [(max(last, 2), stride)])


def _refined(b: Layout, modes_of_leaves: Sequence[Sequence[Mode]]) -> Layout:
    """`b` with each leaf replaced by modes, a single one without parentheses."""
    parts = [assembled(modes) for modes in modes_of_leaves]
    shape = unflatten([part.shape for part in parts], b.shape)
    return Layout(shape, unflatten([part.stride for part in parts], b.shape))


# ----------------------------------------------------------------------------------- digits


class _Digit:
    """A digit of the form: its extent, its weight in what is still to divide, its stride so far."""

    __slots__ = ("extent", "stride", "weight")

    def __init__(self, extent: int, weight: int, stride: int = 0) -> None:
        self.extent, self.weight, self.stride = extent, weight, stride

    def split(self, at: int) -> list[_Digit]:
        """Two digits for one: below `at`, and in steps of `at`."""
        high = _Digit(self.extent // at, self.weight * at, self.stride * at)
        return [_Digit(at, self.weight, self.stride), high]


#: The digits of each leaf of B, the lowest first.
Form: TypeAlias = "list[list[_Digit]]"


def _read_through(modes: Sequence[Mode], form: Form) -> Form | None:
    """The digits of `form` with the strides that `modes` give them, or None where one carries."""
    *bounded, (_, last_stride) = modes
    for extent, stride in bounded:
        form = [[part for digit in leaf for part in _cut(digit, extent)] for leaf in form]
        digits = [digit for leaf in form for digit in leaf]
        if sum((digit.weight % extent) * (digit.extent - 1) for digit in digits) >= extent:
            return None
        for digit in digits:
            _divide(digit, extent, stride)
    for leaf in form:
        for digit in leaf:
            digit.stride += digit.weight * last_stride
    return form


def _cut(digit: _Digit, extent: int) -> list[_Digit]:
    """`digit`, split if its remainder overruns `extent` at a place where it can be split."""
    remainder = digit.weight % extent
    if not remainder or remainder * (digit.extent - 1) < extent or extent % remainder:
        return [digit]
    at = extent // remainder
    return digit.split(at) if digit.extent % at == 0 else [digit]


def _divide(digit: _Digit, extent: int, stride: int) -> None:
    """Read the remainder of `digit` through the mode extent:stride, and leave the quotient."""
    if digit.extent == 1:  # it reads nothing, and any stride would do: this one is C++'s
        digit.weight = -(-digit.weight // extent)
    else:
        digit.weight, remainder = divmod(digit.weight, extent)
        digit.stride += remainder * stride


# ---------------------------------------------------------------------------------- looking


class _Leaf:
    """A leaf of B whose modes are being read off its values: pairs (place, stride), where place is
    the index at which a mode begins; the last has no end yet."""

    def __init__(self, extent: int) -> None:
        self.extent, self.begun = extent, [(1, 0)]

    def __call__(self, x: int) -> int:
        """The value that the modes so far give at index `x`."""
        value = 0
        for place, stride in reversed(self.begun):
            digit, x = divmod(x, place)
            value += digit * stride
        return value

    def begin(self, x: int, value: int) -> bool:
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


def _decided(a: Layout, b: Layout) -> Layout:
    """The one layout equal to A(B(c)), found by looking at every index, or `LayoutError`."""
    if size(b) > ENUMERATION_LIMIT:
        raise LayoutError(
            f"composition of {a} with {b} is not decided: digits carry from one mode of A into the "
            f"next, and {size(b)} indices are too many to look at; split B where the modes of A end"
        )
    leaves_of_b = [_Leaf(extent) for extent, _ in flat_modes(b)]
    shape = tuple(leaf.extent for leaf in leaves_of_b)
    for index in range(size(b)):
        value = a(b(index))
        moved = [(leaf, x) for leaf, x in zip(leaves_of_b, idx2crd(index, shape), strict=True) if x]
        forced = sum(leaf(x) for leaf, x in moved)
        if value != forced and not (len(moved) == 1 and moved[0][0].begin(moved[0][1], value)):
            raise _refusal(a, b, index, forced)
    return _refined(b, [leaf.modes() for leaf in leaves_of_b])


def _refusal(a: Layout, b: Layout, index: int, forced: int) -> LayoutError:
    return LayoutError(
        f"composition of A = {a} with B = {b} has no layout: at index {index}, coordinate "
        f"{text(idx2crd(index, b.shape))} of B, A(B({index})) = A({b(index)}) = {a(b(index))}, but "
        f"every layout that agrees before has {forced} there; choose extents and strides of B that "
        f"divide, or are divided by, the extents of A"
    )
