"""One layout read through another, digit by digit: the core of composition, and of its proofs.

The offset B(c) is a form: a sum of digits times weights, one digit for each leaf of B.  To read the
form through a mode s:d of A, divide it by s with remainder.  The remainder gets the stride d, and
the quotient goes on to the next mode of A.

Each weight is divided by itself.  This divides the whole form if all remainders together stay below
s, so that no digit carries into the next mode: that is the one thing to prove.  A digit whose own
remainder reaches s is first split in two, where it does.

    A = (6,2):(8,2), B = (4,3):(3,1)       3*x0 + x1                   x0 < 4, x1 < 3
    3*x0 reaches 9, and 6 is the limit     3*x0 + 6*x1 + x2            x0 < 2, x1 < 2, x2 < 3
    divided by 6                           6*(x1) + (3*x0 + x2)        3*x0 + x2 <= 3 + 2 < 6
    the strides 8 and 2                    8*(3*x0 + x2) + 2*(x1)

The digits are the modes of A(B(c)), and the strides that they have collected are its strides:
((2,2),3):((24,2),8).  With symbols for numbers the steps are the same, each of them proved.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..values.arith import ceil_div, divided, divides, less
from ..values.layout import Layout
from ..values.modes import Mode, merged
from ..values.value import Value

__all__ = ["Digit", "Split", "extended_modes", "form_of", "modes_of_leaves", "read_through"]


class Digit:
    """A digit of a form: its extent, its weight in what is still to divide, the stride that it has
    collected, and the number of the leaf of B that it is a part of."""

    __slots__ = ("extent", "leaf", "stride", "weight")

    def __init__(self, extent: Any, weight: Any, leaf: int, stride: Any = 0) -> None:
        self.extent, self.weight, self.leaf, self.stride = extent, weight, leaf, stride

    def split_at(self, remainder: Any, extent: Any) -> Any:
        """Where to split this digit: where `remainder` times its value reaches `extent`.

        None if it does not reach `extent`, or if it cannot be split there.
        """
        if less(remainder * (self.extent - 1), extent) or not divides(remainder, extent):
            return None
        at, _ = divided(extent, remainder)
        return at if divides(at, self.extent) else None

    def split(self, at: Any) -> Digit:
        """Keep the values below `at`; return the new digit that counts in steps of `at`."""
        stride = self.stride * at if self.stride else 0  # no symbol times 0, which is no int
        high = Digit(divided(self.extent, at)[0], self.weight * at, self.leaf, stride)
        self.extent = at
        return high


class Split(Value):
    """Digit number `digit` was split at `at`, since its remainder `weight` reached `extent`."""

    __slots__ = __match_args__ = ("digit", "at", "weight", "extent")
    digit: int
    at: Any
    weight: Any
    extent: Any

    def __init__(self, digit: int, at: Any, weight: Any, extent: Any) -> None:
        self._set(digit, at, weight, extent)


def extended_modes(layout: Layout) -> list[Mode]:
    """The modes of `layout` as a function on all integers, merged (C++ ``coalesce_x``).

    The last mode has no end, whatever its extent says; its extent here is None.

    >>> extended_modes(Layout((2, 4, 1, 3), (1, 2, 7, 8))), extended_modes(Layout((4, 2), (2, 1)))
    ([(None, 1)], [(4, 2), (None, 1)])
    """
    if not layout.modes:
        return [(None, 0)]
    *modes, (_, stride) = layout.modes
    kept = [mode for mode in modes if mode[0] != 1]
    kept.append((1, stride))
    if len(kept) > 1:
        kept = merged(kept)
    kept[-1] = (None, kept[-1][1])
    return kept


def form_of(modes: Iterable[Mode]) -> list[Digit]:
    """The offsets of a layout with these modes: a digit for each, its stride as the weight."""
    return [Digit(extent, stride, leaf) for leaf, (extent, stride) in enumerate(modes)]


def modes_of_leaves(form: Iterable[Digit], count: int) -> list[list[Mode]]:
    """The digits of each of `count` leaves as modes: extents, and the strides collected."""
    modes: list[list[Mode]] = [[] for _ in range(count)]
    for digit in form:
        modes[digit.leaf].append((digit.extent, digit.stride))
    return modes


def read_through(
    modes: Sequence[Mode], form: list[Digit], splits: list[Split] | None = None
) -> tuple[Any, Any] | None:
    """Give the digits of `form` the strides that `modes` have for them; the last mode has no end.

    Digits are split in place, and `splits` collects how.  Returns None, or else the first carry:
    the largest sum of the remainders, and the extent that it must stay below.

    >>> form = form_of([(4, 3), (3, 1)])
    >>> read_through([(6, 8), (None, 2)], form), [(x.extent, x.stride) for x in form]
    (None, [(2, 24), (2, 2), (3, 8)])
    """
    for extent, stride in modes[:-1]:
        reach = 0
        for place, digit in enumerate(form):  # the upper part of a split digit comes next
            quotient, remainder = divided(digit.weight, extent)
            if remainder != 0 and digit.extent != 1:
                at = digit.split_at(remainder, extent)
                if at is not None:
                    form.insert(place + 1, digit.split(at))
                    if splits is not None:
                        splits.append(Split(place, at, remainder, extent))
                reach += remainder * (digit.extent - 1)
                digit.stride += remainder * stride
            elif digit.extent == 1:  # its value is 0, and any stride would do: this is C++'s
                quotient = ceil_div(digit.weight, extent)
            digit.weight = quotient
        if not less(reach, extent):
            return reach, extent
    last_stride = modes[-1][1]
    for digit in form:
        if type(digit.weight) is not int or digit.weight != 0:
            digit.stride += digit.weight * last_stride
    return None
