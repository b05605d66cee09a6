"""The statement that a layout is injective, and how it is decided.

>>> from layouts import prove
>>> print(prove(Injective(Layout((4, 8), (1, 5)))))
proved: (4,8):(1,5) is injective
  in the order 4:1 8:5 each stride exceeds the largest sum of the modes before it, so an
  offset determines its coordinate
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

from ..algebra import composition, gf2
from ..algebra.injectivity import collision
from ..errors import LayoutError, Undecided
from ..values.arith import less
from ..values.layout import Layout, cosize
from ..values.offsets import each_offset, steps_of_a_value
from ..values.steps import HOW_TO_TRY_MORE, affordable
from ..values.stride import F2, ArithTuple, as_factor, kind_of, paths_of
from ..values.swizzle import ComposedLayout, Swizzle, layout_for
from ..values.symbols import at_least, free_symbols, plain
from ..values.tuples import idx2crd, leaves, size, text
from ..values.value import Value
from .agreement import agree, written
from .certificates import (
    AsOne,
    Certificate,
    Claim,
    Counterexample,
    Exhaustive,
    FullRank,
    Growing,
    Injection,
    NoDifference,
    Swizzled,
    Weighted,
    component,
    stages_of,
)
from .prove import Proof, Statement

__all__ = ["Injective"]


class Injective(Statement):
    """No two coordinates of `layout` have the same offset."""

    __slots__ = __match_args__ = ("layout",)
    layout: Layout | ComposedLayout

    def __init__(self, layout: Layout | ComposedLayout) -> None:
        self._set(layout_for("Injective", layout))

    def sentence(self) -> str:
        """L is injective."""
        return f"{self.layout} is injective"

    def decide(self) -> Proof:
        """Decide it for the layout under the swizzle, which is injective itself."""
        whole = as_one_layout(self.layout)
        found = None if whole.layout is None else _injective(whole.layout)
        if found is None:
            return self._by_enumeration()
        if isinstance(found, tuple):
            return collided(self, self.layout, *found)
        reason: tuple[str, ...] = (*whole.reason, found.reason)
        if whole.swizzle is not None:
            swizzled = "a swizzle is its own inverse, so it is injective"
            reason = (f"{whole.layout}: {found.reason}", swizzled)
        return self._proved(reason, whole.witness(found.witness))

    def _by_enumeration(self) -> Proof:
        found = index_of_offsets(self, self.layout)
        if isinstance(found, Proof):
            return found
        return self._proved((all_compared(len(found)),), Exhaustive())

    def _proved(self, reason: tuple[str, ...], witness: Any) -> Proof:
        (claim,) = self.claims()
        return Proof(self, True, reason, None, (Certificate(claim, witness),))

    def claims(self) -> list[Claim]:
        """The chain of `layout` is injective."""
        return [Injection(stages_of(self.layout))]


# ------------------------------------------------------------------- a swizzle over one layout


class OneLayout(Value):
    """What a layout is as a swizzle, or None, over one layout; why it is that, and the witness that
    it is the same function, if it is written in another way.

    `layout` is None if it is not of this form.
    """

    __slots__ = __match_args__ = ("swizzle", "layout", "reason", "same")
    swizzle: Swizzle | None
    layout: Layout | None
    reason: tuple[str, ...]
    same: Any

    def __init__(
        self,
        swizzle: Swizzle | None,
        layout: Layout | None,
        reason: tuple[str, ...] = (),
        same: Any = None,
    ) -> None:
        self._set(swizzle, layout, reason, same)

    def witness(self, inside: Any) -> Any:
        """The witness for the whole, from that for the one layout."""
        if self.swizzle is not None:
            return Swizzled(inside)
        return inside if self.same is None else AsOne(self.layout, self.same, inside)  # type: ignore[arg-type]


def as_one_layout(layout: Layout | ComposedLayout) -> OneLayout:
    """`layout` as a swizzle over one layout; a layout over a layout is composed into one.

    >>> as_one_layout(ComposedLayout(Swizzle(1, 0, 2), 0, Layout(8)))
    OneLayout(Swizzle(1, 0, 2), Layout(8, 1), (), None)
    """
    if isinstance(layout, Layout):
        return OneLayout(None, layout)
    if isinstance(layout.inner, Swizzle):
        return OneLayout(layout.inner, layout.outer)
    try:
        one = composition(layout.inner, layout.outer) if layout.offset == 0 else None
        if not isinstance(one, Layout):
            return OneLayout(None, None)
        found = agree(stages_of(layout), (one,), size(layout))
    except LayoutError:
        return OneLayout(None, None)
    if found.witness is None:
        return OneLayout(None, None)
    return OneLayout(None, one, found.reason, found.witness)


# ------------------------------------------------------------------------------- the methods


class _Found(Value):
    """A reason and its witness."""

    __slots__ = __match_args__ = ("reason", "witness")
    reason: str
    witness: Any

    def __init__(self, reason: str, witness: Any) -> None:
        self._set(reason, witness)


def _injective(layout: Layout) -> _Found | tuple[int, int] | None:
    """Why `layout` is injective, or two indices that collide; None if only enumeration tells."""
    still = _still(layout)
    if still is not None:
        return 0, still
    if kind_of(layout.modes) is F2:
        return _by_rank(layout)
    if kind_of(layout.modes) is ArithTuple:
        return _by_weights(layout)
    if not free_symbols(layout):
        pair = collision(layout)
        if pair is not None:
            return pair
    order = _growing(layout)
    if order is not None:
        reason = (
            f"in the order {listed(order)} each stride exceeds the largest sum of the modes before "
            f"it, so an offset determines its coordinate"
        )
        return _Found(reason, Growing(tuple(k for k, _, _ in order)))
    if free_symbols(layout):
        raise Undecided(
            f"the strides of {layout} are not shown to grow: in some order, each stride must "
            f"exceed the largest sum of the modes before it"
        )
    modes = sorted(moving_modes(layout), key=lambda mode: mode[2])
    reason = (
        f"over the modes {listed(modes)}, no nonzero difference of two coordinates has the offset "
        f"0: every candidate was tried"
    )
    return _Found(reason, NoDifference())


def _still(layout: Layout) -> int | None:
    """The index of the second coordinate of a mode of stride 0, if all numbers are known."""
    place = 1
    for extent, stride in layout.modes:
        if type(extent) is not int:
            return None
        if extent > 1 and type(stride) is int and stride == 0:
            return place
        place *= extent
    return None


def _by_weights(layout: Layout) -> _Found | tuple[int, int] | None:
    """Coordinates as one integer: each counts in steps beyond the largest sum of those before it,
    so two indices collide exactly if their integers are the same."""
    weights: list[tuple[Any, Any]] = []
    weight: Any = 1
    for path in sorted(paths_of(stride for _, stride in layout.modes)):
        weights.append((path, weight))
        weight = plain(weight * cosize(component(layout, path)))
    witness = Weighted(tuple(weights), None)
    found = _injective(witness.of(layout))
    if not isinstance(found, _Found):
        return found
    terms = [f"{as_factor(weight)}·x@{'@'.join(map(str, path[::-1]))}" for path, weight in weights]
    reason = f"reading the coordinates as one integer, {' + '.join(terms)}, {found.reason}"
    return _Found(reason, Weighted(tuple(weights), found.witness))


def _by_rank(layout: Layout) -> _Found | tuple[int, int]:
    """With XOR strides, two indices collide exactly if their XOR has the offset 0."""
    columns = gf2.matrix(layout)
    null = gf2.kernel(columns)
    if null:
        return 0, min(null)
    reason = (
        f"its columns {', '.join(map(str, columns))} are linearly independent over GF(2), so no "
        f"XOR of them is 0"
    )
    return _Found(reason, FullRank())


#: A mode, with its number in the layout: (number, extent, stride).
NumberedMode = tuple[int, Any, Any]


def moving_modes(layout: Layout) -> list[NumberedMode]:
    """The modes of `layout` whose extent is not 1.

    >>> moving_modes(Layout((4, 1, 8), (8, 0, 1)))
    [(0, 4, 8), (2, 8, 1)]
    """
    pairs = zip(leaves(layout.shape), leaves(layout.stride), strict=True)
    return [(k, s, d) for k, (s, d) in enumerate(pairs) if s != 1]


def of_integers(layout: Layout) -> bool:
    """Whether the strides are integers or symbols, neither coordinates nor XOR strides."""
    return all(type(d) is int or hasattr(d, "free_symbols") for d in leaves(layout.stride))


def listed(modes: Iterable[NumberedMode]) -> str:
    """`modes` as CuTe writes them.

    >>> listed([(2, 8, 1), (0, 4, 8)])
    '8:1 4:8'
    """
    return " ".join(f"{as_factor(extent)}:{stride}" for _, extent, stride in modes) or "1:0"


def _growing(layout: Layout) -> list[NumberedMode] | None:
    """The modes in an order in which each stride exceeds the largest sum of those before it."""
    modes = moving_modes(layout)
    if not free_symbols(layout):
        modes.sort(key=lambda mode: mode[2])
    return _grown(modes, 0)


def _grown(modes: list[NumberedMode], reach: Any) -> list[NumberedMode] | None:
    """`modes` in such an order, after modes whose largest sum is `reach`."""
    if not modes:
        return []
    for k, (_, extent, stride) in enumerate(modes):
        if less(reach, stride):
            after = _grown(modes[:k] + modes[k + 1 :], plain(reach + (extent - 1) * stride))
            if after is not None:
                return [modes[k], *after]
        elif at_least(reach, stride):
            return None  # the reach only grows
    return None


# ----------------------------------------------------------------- collisions and enumeration


def collided(statement: Any, layout: Layout | ComposedLayout, first: int, second: int) -> Proof:
    """The refutation of `statement`: the indices `first` and `second` of `layout` collide."""
    a, b = idx2crd(first, layout.shape), idx2crd(second, layout.shape)
    offset = layout(first)
    reason = f"coordinates {text(a)} and {text(b)} both have the offset {offset}"
    found = Counterexample((first, second), (a, b), offset, layout(second))
    return Proof(statement, False, (reason,), found)


def index_of_offsets(statement: Any, layout: Layout | ComposedLayout) -> dict[Any, int] | Proof:
    """The index of every offset of `layout`, or the refutation of `statement` if two collide.

    Raises `Undecided` if there are symbols, or if no two of the indices that the `budget` allows
    collide and there are more.
    """
    count = size(layout)
    if free_symbols(statement):
        raise Undecided(f"{written(stages_of(layout))}: symbols in it are beyond every method")
    tried = min(count, affordable(steps_of_a_value(layout)))
    index_of: dict[Any, int] = {}
    for index, offset in enumerate(islice(each_offset(layout), tried)):
        other = index_of.setdefault(offset, index)
        if other != index:
            return collided(statement, layout, other, index)
    if tried < count:
        raise Undecided(
            f"{statement.sentence()}: not decided. The first {tried} of {count} indices have "
            f"distinct offsets, and the others were not tried; {HOW_TO_TRY_MORE}"
        )
    return index_of


def all_compared(count: int) -> str:
    """The reason of an exhaustive proof."""
    return f"all {count} offsets were computed and compared"
