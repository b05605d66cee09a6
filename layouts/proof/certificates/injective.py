"""The claims that a chain is injective or a bijection, and the witnesses that establish them.

Each witness is a class of its own:

    Growing       in some order, each stride exceeds the largest sum of the modes before it
    Chain         in some order, each stride is the product of the extents before it
    FullRank      the columns of a chain that is linear in the bits are linearly independent
    NoDifference  no difference of two coordinates but 0 has the offset 0
    Weighted      a weighted sum of the coordinates is injective
    Swizzled      a swizzle over a chain that is injective, or a bijection
    AsOne         the same function as one layout, which is injective, or a bijection
    Exhaustive    every value is computed
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...values.layout import Layout
from ...values.swizzle import Swizzle
from ...values.tuples import unflatten
from ...values.value import Value
from .bits import affine, rank
from .claims import Claim
from .definition import (
    Stages,
    check_chain,
    coordinate,
    evaluate,
    gives_coordinates,
    index_count,
    is_still,
    modes_of,
    steps,
    swizzled_bits,
)
from .numbers import is_multiple, is_zero, least, never_negative, whole
from .same import TRIED_AT_MOST, Exhaustive, SameFunction

__all__ = [
    "AsOne",
    "Bijection",
    "Chain",
    "FullRank",
    "Growing",
    "Injection",
    "NoDifference",
    "Permutation",
    "Swizzled",
    "Weighted",
]


class Injection(Claim):
    """`stages` takes different values at different indices of its last layout."""

    __slots__ = __match_args__ = ("stages",)
    stages: Stages

    def __init__(self, stages: Stages) -> None:
        self._set(stages)

    def established_by(self, witness: Any) -> bool:
        check_chain(self.stages)
        return bool(_INJECTIVE[type(witness)](self.stages, witness))

    def counterexample(self, index: Any) -> tuple[Any, Any, Any, Any] | None:
        """Two indices, in rising order, with one value."""
        return _collision(self.stages, index)


class Bijection(Claim):
    """`stages` takes the n indices of its last layout to ``start ... start + n - 1``, each once."""

    __slots__ = __match_args__ = ("stages", "start")
    stages: Stages
    start: Any

    def __init__(self, stages: Stages, start: Any) -> None:
        self._set(stages, start)

    def established_by(self, witness: Any) -> bool:
        check_chain(self.stages)
        least(self.start, 0)
        if isinstance(self.stages[0], Layout) and gives_coordinates(self.stages[0]):
            return False
        return bool(_BIJECTIVE[type(witness)](self, witness))

    def counterexample(self, index: Any) -> tuple[Any, Any, Any, Any] | None:
        """Two indices with one value; or one index with a value outside the range, and the last
        offset of the range."""
        least(self.start, 0)
        if isinstance(index, tuple):
            return _collision(self.stages, index)
        check_chain(self.stages)
        count = index_count(self.stages[-1])
        value = _value_at(self.stages, index, count)
        if type(value) is int and self.start <= value < self.start + count:
            return None
        return index, coordinate(index, self.stages[-1].shape), value, self.start + count - 1


class Permutation(Claim):
    """`swizzle` is its own inverse, and permutes the `count` offsets from `start` on."""

    __slots__ = __match_args__ = ("swizzle", "start", "count")
    swizzle: Swizzle
    start: Any
    count: Any

    def __init__(self, swizzle: Swizzle, start: Any, count: Any) -> None:
        self._set(swizzle, start, count)

    def established_by(self, witness: Any) -> bool:
        """It needs no witness."""
        check_chain((self.swizzle, Layout(1, 0)))
        return witness is None and _permutes(self.swizzle, self.start, self.count)


def _collision(stages: Stages, pair: Any) -> tuple[Any, Any, Any, Any] | None:
    """The counterexample of two indices with one value; None if theirs are different."""
    first, second = pair
    check_chain(stages)
    count, shape = index_count(stages[-1]), stages[-1].shape
    left, right = _value_at(stages, first, count), _value_at(stages, second, count)
    if not first < second or left != right:
        return None
    return (first, second), (coordinate(first, shape), coordinate(second, shape)), left, right


def _value_at(stages: Stages, index: Any, count: int) -> Any:
    """The value at an index, which must be below `count`."""
    if type(index) is not int or not 0 <= index < count:
        raise ValueError(f"{index!r} is no index below {count}")
    return evaluate(stages, index)


# ---------------------------------------------------------------------------- orders of the modes


class Growing(Value):
    """The numbers of the modes in an order in which each stride exceeds the largest sum of those
    before it; modes of extent 1 may be missing.  An offset then determines its coordinate."""

    __slots__ = __match_args__ = ("order",)
    order: tuple[int, ...]

    def __init__(self, order: tuple[int, ...]) -> None:
        self._set(order)


class Chain(Growing):
    """An order in which each stride exceeds the largest sum before it by exactly 1.  The modes then
    fill the offsets from 0 on without a gap."""

    __slots__ = ()


def _grows(stages: Stages, witness: Growing) -> bool:
    return _in_order(stages, witness.order, never_negative)


def _chains(claim: Bijection, witness: Chain) -> bool:
    return is_zero(claim.start) and _in_order(claim.stages, witness.order, is_zero)


def _in_order(stages: Stages, order: Sequence[Any], allows: Callable[[Any], bool]) -> bool:
    """Whether `allows` every gap: a stride less the largest sum of the modes before it, less 1."""
    (layout,) = stages
    modes = modes_of(layout)
    used = {k for k in order if type(k) is int and 0 <= k < len(modes)}
    if len(used) != len(order) or not all(
        is_zero(extent - 1) for k, (extent, _) in enumerate(modes) if k not in used
    ):
        return False
    highest: Any = 0
    for k in order:
        extent, stride = modes[k]
        if not allows(whole(stride) - highest - 1):
            return False
        highest = whole(highest + (extent - 1) * stride)
    return True


# ---------------------------------------------------------------------------- bits, differences


class FullRank(Value):
    """The columns of the bits of the index are linearly independent over GF(2)."""

    __slots__ = ()


def _has_full_rank(stages: Stages, _: FullRank) -> bool:
    count = index_count(stages[-1])
    bits = count.bit_length() - 1
    found = affine(stages, bits)
    return count == 1 << bits and found is not None and rank(found[1]) == bits


class NoDifference(Value):
    """The check follows all sums of differences, mode by mode, that can still come back to 0."""

    __slots__ = ()


def _has_no_difference(stages: Stages, _: NoDifference) -> bool:
    (layout,) = stages
    modes = [mode for mode in modes_of(layout) if mode[0] != 1]
    falling = sorted(modes, key=lambda mode: -whole(mode[1]))
    sums = {0: False}  # |sum of differences times strides|: whether one of them is not 0
    for k, (extent, stride) in enumerate(falling):
        if stride == 0:
            return False
        reach = sum((s - 1) * d for s, d in falling[k + 1 :])
        after: dict[int, bool] = {}
        for total, moved in sums.items():
            low = max(1 - extent, -((total + reach) // stride))
            high = min(extent - 1, (reach - total) // stride)
            if len(after) + high - low > TRIED_AT_MOST:
                return False
            for x in range(low, high + 1):
                here = abs(total + x * stride)  # with x also -x is a difference
                after[here] = after.get(here, False) or moved or x != 0
        sums = after
    return not sums[0]


# ------------------------------------------------------------------------------------ coordinates


class Weighted(Value):
    """A layout of coordinates is injective if a weighted sum of them is: a weight for each path,
    and the witness for the layout of these sums."""

    __slots__ = __match_args__ = ("weights", "inside")
    weights: tuple[tuple[Any, Any], ...]
    inside: Any

    def __init__(self, weights: tuple[tuple[Any, Any], ...], inside: Any) -> None:
        self._set(weights, inside)

    def of(self, layout: Layout) -> Layout:
        """The layout of the weighted sums."""
        steps = [{} if is_still(d) else dict(d.terms) for _, d in modes_of(layout)]
        strides = [
            whole(sum(weight * step.get(path, 0) for path, weight in self.weights))
            for step in steps
        ]
        return Layout(layout.shape, unflatten(strides, layout.shape))


def _weighted_injection(stages: Stages, witness: Weighted) -> bool:
    (layout,) = stages
    return Injection((witness.of(layout),)).established_by(witness.inside)


# -------------------------------------------------------------------------------------- swizzles


class Swizzled(Value):
    """The chain is a swizzle, perhaps an offset, and then a chain for which `inside` is the
    witness."""

    __slots__ = __match_args__ = ("inside",)
    inside: Any

    def __init__(self, inside: Any) -> None:
        self._set(inside)


def _swizzled_injection(stages: Stages, witness: Swizzled) -> bool:
    """A swizzle is its own inverse, and adding an offset is injective."""
    _, inside = _under_swizzle(stages)
    return Injection(inside).established_by(witness.inside)


def _swizzled_bijection(claim: Bijection, witness: Swizzled) -> bool:
    """The offset moves the range to where it starts; there the swizzle permutes it."""
    offset, inside = _under_swizzle(claim.stages)
    return (
        is_zero(claim.start - offset)
        and _permutes(claim.stages[0], offset, whole(index_count(inside[-1])))
        and Bijection(inside, 0).established_by(witness.inside)
    )


def _under_swizzle(stages: Stages) -> tuple[Any, Stages]:
    """The offset and the chain under the swizzle with which `stages` begins."""
    swizzle, *rest = stages
    if type(swizzle) is not Swizzle:
        raise ValueError(f"{stages} does not begin with a swizzle")
    if type(rest[0]) in (Layout, Swizzle):
        return 0, tuple(rest)
    return whole(rest[0]), tuple(rest[1:])


def _permutes(swizzle: Swizzle, start: Any, count: Any) -> bool:
    """Whether `swizzle`, its own inverse, permutes the `count` offsets from `start` on.

    It adds bits that it does not change, so it is its own inverse.  It changes bits below a block,
    so it permutes each aligned block.  The offsets of blocks that are cut are tried.
    """
    added = swizzled_bits(swizzle)
    if set(added) & set(added.values()):
        return False
    block = 1 << max(added, default=-1) + 1
    if is_multiple(start, block) and is_multiple(count, block):
        return True
    low, end = least(start, 0), start + least(count, 1)
    if type(low) is not int or type(end) is not int:
        return False
    first_whole, last_whole = -(-low // block) * block, end // block * block
    cut = [range(low, min(first_whole, end)), range(max(last_whole, first_whole, low), end)]
    return sum(map(len, cut)) <= TRIED_AT_MOST and all(
        low <= evaluate((swizzle,), x) < end for part in cut for x in part
    )


# ----------------------------------------------------------------------------------- as one layout


class AsOne(Value):
    """The chain is the same function as the layout `one`: `same` is the witness of that, and
    `inside` the witness of the claim about `one`."""

    __slots__ = __match_args__ = ("one", "same", "inside")
    one: Layout
    same: Any
    inside: Any

    def __init__(self, one: Layout, same: Any, inside: Any) -> None:
        self._set(one, same, inside)


def _is_one(stages: Stages, witness: AsOne) -> bool:
    """Whether `one` has the indices of `stages`, and its values."""
    check_chain((witness.one,))
    count = whole(index_count(stages[-1]))
    return is_zero(index_count(witness.one) - count) and SameFunction(
        stages, (witness.one,), count
    ).established_by(witness.same)


def _injection_of_one(stages: Stages, witness: AsOne) -> bool:
    return _is_one(stages, witness) and Injection((witness.one,)).established_by(witness.inside)


def _bijection_of_one(claim: Bijection, witness: AsOne) -> bool:
    one = Bijection((witness.one,), claim.start)
    return _is_one(claim.stages, witness) and one.established_by(witness.inside)


# ----------------------------------------------------------------------- every value, one by one


def _values(stages: Stages) -> list[Any]:
    count = index_count(stages[-1])
    if count > TRIED_AT_MOST:
        raise ValueError(f"{count} indices are too many to try")
    return steps(stages, range(count))


def _no_value_twice(stages: Stages, _: Exhaustive) -> bool:
    values = _values(stages)
    return len(set(values)) == len(values)


def _each_value_once(claim: Bijection, _: Exhaustive) -> bool:
    values = _values(claim.stages)
    return sorted(values) == list(range(claim.start, claim.start + len(values)))


_INJECTIVE: dict[type, Any] = {
    AsOne: _injection_of_one,
    Exhaustive: _no_value_twice,
    FullRank: _has_full_rank,
    Growing: _grows,
    NoDifference: _has_no_difference,
    Swizzled: _swizzled_injection,
    Weighted: _weighted_injection,
}

_BIJECTIVE: dict[type, Any] = {
    AsOne: _bijection_of_one,
    Chain: _chains,
    Exhaustive: _each_value_once,
    Swizzled: _swizzled_bijection,
}
