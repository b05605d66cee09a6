"""A layout after one with integer strides: by digits, or else by an exhaustive check.

`digits` reads B through A.  Where no digit carries, that gives the layout A(B(c)) and its proof.

Where a digit carries there may still be a layout, by coincidence.  There is at most one, and its
values determine it: along a leaf of B, a mode ends exactly where the values stop being linear, and
the value at a coordinate is the sum of those along its leaves.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from ..errors import LayoutError
from ..values.layout import Layout
from ..values.modes import Mode, refined
from ..values.symbols import fails_at
from ..values.tuples import idx2crd, size, text
from .digits import extended_modes, form_of, modes_of_leaves, read_through

__all__ = ["ENUMERATION_LIMIT", "compose"]

#: What the theorems do not decide is checked at every index, if there are at most so many.
ENUMERATION_LIMIT = 1 << 20


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


class _Leaf:
    """A leaf of B whose modes are being found from its values.

    `begun` holds a pair (place, stride) for each mode so far, where place is the index at which the
    mode begins; the last mode has no end yet.
    """

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
        """The modes, each of which ends where the next begins."""
        places = [place for place, _ in self.begun] + [self.extent]
        extents = [end // place for place, end in pairwise(places)]
        strides = [stride for _, stride in self.begun]
        return [mode for mode in zip(extents, strides, strict=True) if mode[0] != 1]


def _checked_at_every_index(a: Layout, b: Layout, carry: tuple[Any, Any]) -> Layout:
    """The only layout that can equal A(B(c)), compared with it at every index, or `LayoutError`."""
    _check_enumerable(a, b, carry)
    leaves_of_b = [_Leaf(extent) for extent, _ in b.modes]
    shape = tuple(leaf.extent for leaf in leaves_of_b)
    for index in range(size(b)):
        value = a.value(b(index)) or 0
        moved = [(leaf, x) for leaf, x in zip(leaves_of_b, idx2crd(index, shape), strict=True) if x]
        forced = sum(leaf(x) for leaf, x in moved) or 0
        if value != forced and not (len(moved) == 1 and moved[0][0].begin(moved[0][1], value)):
            raise _refusal(a, b, index, forced)
    return refined(b.shape, [leaf.modes() for leaf in leaves_of_b])


def _check_enumerable(a: Layout, b: Layout, carry: tuple[Any, Any]) -> None:
    """Raise `LayoutError` if B has symbols or too many indices to check each."""
    numbers = (*(extent for extent, _ in a.modes), *(x for mode in b.modes for x in mode))
    if any(type(x) is not int for x in numbers):
        raise LayoutError(
            f"composition of A = {a} with B = {b} is not decided: digits of B carry from one mode "
            f"of A into the next unless {carry[0]} < {carry[1]}, and that is not proved; write the "
            f"divisibility into the expressions (M = 8*m), or give the symbols values."
            + fails_at(compose, a, b)
        )
    if size(b) > ENUMERATION_LIMIT:
        raise LayoutError(
            f"composition of {a} with {b} is not decided: digits carry from one mode of A into the "
            f"next, and {size(b)} indices are too many to check; split B where the modes of A end"
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
