"""Whether a layout is injective, decided without enumerating its indices."""

from __future__ import annotations

from math import gcd, prod

from ..errors import Undecided
from ..values.layout import Layout
from ..values.modes import Mode, assembled, flat_modes
from ..values.offsets import all_offsets
from ..values.steps import Steps
from ..values.tuples import crd2idx, idx2crd, unflatten

__all__ = ["collision"]


def collision(layout: Layout) -> tuple[int, int] | None:
    """Two indices with the same offset, or None if `layout` is injective; exact.

    Two coordinates have one offset if their difference x, which is not 0, has each ``|x_k| < s_k``
    and ``sum of x_k * d_k == 0``.  The search goes from the largest stride down: x_k must bring the
    sum within reach of the remaining modes, and to a multiple of the divisor of their strides.  In
    practice that leaves one choice or two.

    Raises `Undecided` if the search takes more steps than `budget` allows.

    >>> collision(Layout((4, 2), (1, 2))), collision(Layout((4, 8), (9, 1)))
    ((2, 4), None)
    """
    modes = flat_modes(layout)
    falling = sorted(range(len(modes)), key=lambda k: modes[k][1], reverse=True)
    sorted_modes = [modes[k] for k in falling]
    try:
        found = _vanishing(_searched(sorted_modes), Steps(f"whether {layout} is injective"))
    except Undecided:
        found = _repeated(sorted_modes)
        if found is None:
            raise
    if found is None:
        return None
    entry_of = dict(zip(falling, found, strict=True))
    x = [entry_of[k] for k in range(len(modes))]
    first, second = sorted((_index(x, layout), _index([-entry for entry in x], layout)))
    return first, second


def _index(x: list[int], layout: Layout) -> int:
    """The index of the coordinate with the positive entries of `x`, and 0 elsewhere."""
    coord = unflatten([max(entry, 0) for entry in x], layout.shape)
    return int(crd2idx(coord, layout.shape))


#: How many offsets are compared if the search is given up.
_COMPARED = 1 << 16


def _repeated(modes: list[Mode]) -> list[int] | None:
    """A difference of offset 0 between coordinates of the last modes, those of the smallest
    strides, or None: among so many offsets below their cosize, two are often the same."""
    first = len(modes)
    while first and prod(extent for extent, _ in modes[first - 1 :]) <= _COMPARED:
        first -= 1
    part = assembled(modes[first:])
    index_of: dict[int, int] = {}
    for index, offset in enumerate(all_offsets(part)):
        other = index_of.setdefault(offset, index)
        if other != index:
            extents = tuple(extent for extent, _ in modes[first:])
            pair = zip(idx2crd(index, extents), idx2crd(other, extents), strict=True)
            return [0] * first + [x - y for x, y in pair]
    return None


class _Mode:
    """A mode of the search, with what the modes after it can add."""

    __slots__ = ("common", "extent", "inverse", "reach", "step", "stride")

    def __init__(self, extent: int, stride: int, reach: int, divisor: int) -> None:
        self.extent, self.stride, self.reach = extent, stride, reach
        # x * stride + total is a multiple of divisor: x is known modulo step
        self.common = gcd(stride, divisor) or 1
        self.step = divisor // self.common or 1
        self.inverse = pow(stride // self.common, -1, self.step)

    def entries(self, total: int, moved: bool) -> range:
        """The entries, from the largest down, from which the modes after this may reach 0.

        Before an entry that is not 0, a negative one only changes the sign of the difference.
        """
        if self.stride == 0:
            return range(self.extent - 1, -1, -1)
        if total % self.common:
            return range(0)
        low = max(1 - self.extent, -((total + self.reach) // self.stride)) if moved else 0
        high = min(self.extent - 1, (self.reach - total) // self.stride)
        if self.step > 1:
            high -= (high + total // self.common * self.inverse) % self.step
        return range(high, low - 1, -self.step)


def _searched(modes: list[Mode]) -> list[_Mode]:
    """`modes`, each with the largest sum of those after it, and the divisor of their strides."""
    found, reach, divisor = [], 0, 0
    for extent, stride in reversed(modes):
        found.append(_Mode(extent, stride, reach, divisor))
        reach, divisor = reach + (extent - 1) * stride, gcd(divisor, stride)
    return found[::-1]


#: A candidate takes as long as six indices: its entries are computed, and its sum is kept.
_CANDIDATE = 6


def _vanishing(modes: list[_Mode], steps: Steps) -> list[int] | None:
    """The entries of a difference that is not 0 and whose offset is 0, or None.

    A sum from which the remaining modes do not reach 0 is tried once.
    """
    if not modes:
        return None
    failed: list[set[int]] = [set() for _ in modes]
    entries: list[int] = []
    # for each mode that is begun: its candidates, the sum before it, whether an entry is not 0
    begun = [(iter(modes[0].entries(0, False)), 0, False)]
    while begun:
        candidates, total, moved = begun[-1]
        k = len(begun) - 1
        for x in candidates:
            steps.take(_CANDIDATE)
            here, moves = total + x * modes[k].stride, moved or x != 0
            if k + 1 == len(modes):
                if moves and here == 0:
                    return [*entries, x]
            elif here not in failed[k + 1]:
                entries.append(x)
                begun.append((iter(modes[k + 1].entries(here, moves)), here, moves))
                break
        else:  # no entry of mode k leads to 0
            begun.pop()
            if moved:
                failed[k].add(total)
            if entries:
                entries.pop()
    return None
