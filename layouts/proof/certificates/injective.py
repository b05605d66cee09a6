"""Certificates that a layout is injective or a bijection, and that a swizzle permutes a range."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...values.layout import Layout
from ...values.stride import F2
from ...values.swizzle import Swizzle
from ...values.value import Value
from .claims import Bijection, Claim, Injection, Permutation
from .definition import evaluate, index_count, modes_of
from .matrices import identity, matrix_of_columns, swizzle_matrix
from .polynomials import is_multiple, is_zero, never_negative

__all__ = ["Chain", "FullRank", "Growing", "NoDifference", "Permutes"]

#: Up to this size, the generating polynomial of a layout's offsets is multiplied out.
POLYNOMIAL_LIMIT = 1 << 12


class _Order(Value):
    """An order of the modes in which each stride is compared with what the modes before it reach.

    `order` are the numbers of the modes; those of extent 1 may be missing.
    """

    __slots__ = __match_args__ = ("layout", "order")
    layout: Layout
    order: tuple[int, ...]

    def __init__(self, layout: Layout, order: tuple[int, ...]) -> None:
        self._set(layout, order)

    @property
    def claim(self) -> Claim:
        """What the order shows of the layout."""
        raise NotImplementedError

    def verify(self) -> bool:
        """Check the gap at each mode: its stride, less 1, less the largest sum before it."""
        modes = modes_of(self.layout)
        if not _covers(self.order, modes):
            return False
        first_free: Any = 1
        for k in self.order:
            extent, stride = modes[k]
            if not self._allows(stride - first_free):
                return False
            first_free = first_free + (extent - 1) * stride
        return True

    def _allows(self, gap: Any) -> bool:
        """Whether a stride may exceed the largest sum before it by 1 + `gap`."""
        raise NotImplementedError


class Chain(_Order):
    """`layout` is a bijection: each stride is the first offset left free by the modes before it."""

    __slots__ = ()

    @property
    def claim(self) -> Bijection:
        """The layout is a bijection onto 0 to size - 1."""
        return Bijection((self.layout,), 0)

    def _allows(self, gap: Any) -> bool:
        return is_zero(gap)


class Growing(_Order):
    """`layout` is injective: each stride exceeds the largest sum of the modes before it."""

    __slots__ = ()

    @property
    def claim(self) -> Injection:
        """The layout is injective."""
        return Injection((self.layout,))

    def _allows(self, gap: Any) -> bool:
        return never_negative(gap)


def _covers(order: Sequence[int], modes: Sequence[tuple[Any, Any]]) -> bool:
    """Whether `order` has no mode twice, and every mode whose extent is not 1."""
    missing = [k for k in range(len(modes)) if k not in order]
    return len(set(order)) == len(order) and all(is_zero(modes[k][0] - 1) for k in missing)


class _OfOneLayout(Value):
    """A certificate that `layout` is injective, for which the layout is witness enough."""

    __slots__ = __match_args__ = ("layout",)
    layout: Layout

    def __init__(self, layout: Layout) -> None:
        self._set(layout)

    @property
    def claim(self) -> Injection:
        """The layout is injective."""
        return Injection((self.layout,))


class NoDifference(_OfOneLayout):
    """`layout`, of numbers, is injective: the offsets of no two coordinates differ by 0."""

    __slots__ = ()

    def verify(self) -> bool:
        """Multiply out the generating polynomial, the sum of z**offset, and look for a coefficient
        above 1.  For a large layout, follow all sums of differences that can still reach 0."""
        modes = [mode for mode in modes_of(self.layout) if mode[0] != 1]
        if index_count(self.layout) <= POLYNOMIAL_LIMIT:
            return _each_offset_once(modes)
        return _no_difference_is_zero(modes)


def _each_offset_once(modes: Sequence[tuple[int, int]]) -> bool:
    """Whether the generating polynomial of the offsets has no coefficient above 1."""
    import sympy

    z = sympy.Dummy("z")
    total = sympy.ring([z], sympy.ZZ)[0].one
    for extent, stride in modes:
        total *= total.ring.from_dict(
            {(x * stride,): 1 for x in range(extent)} if stride else {(0,): extent}
        )
    return all(c == 1 for c in total.coeffs())


def _no_difference_is_zero(modes: Sequence[tuple[int, int]]) -> bool:
    """Whether the differences x of two coordinates, not all 0, never give a sum x * stride of 0."""
    totals = {0: False}  # a partial sum: whether one of its differences is not 0
    falling = sorted(modes, key=lambda mode: -mode[1])
    for k, (extent, stride) in enumerate(falling):
        reach = sum((s - 1) * d for s, d in falling[k + 1 :])
        after: dict[int, bool] = {}
        for total, moved in totals.items():
            most = extent - 1
            if stride:
                most = min(most, (reach + abs(total)) // stride)
            for x in range(-most, most + 1):
                if abs(total + x * stride) <= reach:
                    here = total + x * stride
                    after[here] = after.get(here, False) or moved or x != 0
        totals = after
    return not totals.get(0, False)


class FullRank(_OfOneLayout):
    """`layout`, of XOR strides, is injective: its columns are linearly independent."""

    __slots__ = ()

    def verify(self) -> bool:
        """sympy's rank over GF(2) is the number of bits of the index."""
        count = index_count(self.layout)
        bits = count.bit_length() - 1
        columns = [evaluate((self.layout,), 1 << bit) for bit in range(bits)]
        xor = all(isinstance(d, F2) or d == 0 for _, d in modes_of(self.layout))
        return xor and count == 1 << bits and matrix_of_columns(columns).rank() == bits


class Permutes(Value):
    """`swizzle` permutes the `count` offsets from `start` on."""

    __slots__ = __match_args__ = ("swizzle", "start", "count")
    swizzle: Swizzle
    start: Any
    count: Any

    def __init__(self, swizzle: Swizzle, start: Any, count: Any) -> None:
        self._set(swizzle, start, count)

    @property
    def claim(self) -> Permutation:
        """The swizzle permutes this range."""
        return Permutation(self.swizzle, self.start, self.count)

    def verify(self) -> bool:
        """Square its matrix: it is its own inverse.  Check that it keeps the bits above a block, so
        that it permutes each aligned block.  Compute the offsets of blocks that are cut."""
        bits = self.swizzle.block.bit_length() - 1
        width = max(self.swizzle.source.bit_length(), bits, 1)
        matrix = swizzle_matrix(self.swizzle, width)
        if matrix * matrix != identity(width, width) or any(
            matrix.to_Matrix()[i, j] for i in range(bits, width) for j in range(width) if i != j
        ):
            return False
        if all(is_multiple(x, self.swizzle.block) for x in (self.start, self.count)):
            return True
        first, end = self.start, self.start + self.count
        if not isinstance(first, int) or not isinstance(end, int):
            return False
        cut = [x for x in range(first, end) if self._in_cut_block(x, first, end)]
        return all(first <= evaluate((self.swizzle,), x) < end for x in cut)

    def _in_cut_block(self, x: int, first: int, end: int) -> bool:
        low = x - x % self.swizzle.block
        return low < first or low + self.swizzle.block > end
