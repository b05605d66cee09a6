"""The statement that a layout is a bijection onto a range of offsets, and how it is decided.

>>> from layouts import prove
>>> print(prove(Bijective(Layout((4, 8), (9, 1)))))
refuted: (4,8):(9,1) is a bijection onto the offsets 0 to 31
  no coordinate has the offset 8; coordinate (3,5), index 23, has the offset 32, outside 0 to
  31
"""

from __future__ import annotations

from typing import Any

from ..algebra.injectivity import collision
from ..errors import LayoutError, Undecided
from ..values.arith import equal
from ..values.layout import Layout
from ..values.steps import too_many
from ..values.stride import as_factor
from ..values.swizzle import ComposedLayout, Swizzle, layout_for
from ..values.symbols import free_symbols, plain, quotient
from ..values.tuples import checked, idx2crd, leaves, size, text
from .certificates import (
    Bijection,
    Certificate,
    Chain,
    Claim,
    Counterexample,
    Exhaustive,
    gives_coordinates,
    stages_of,
)
from .injective import (
    NumberedMode,
    all_compared,
    as_one_layout,
    collided,
    index_of_offsets,
    listed,
    moving_modes,
    of_integers,
)
from .law_bases import failed
from .prove import Proof, Statement

__all__ = ["Bijective"]


class Bijective(Statement):
    """`layout` takes each offset from `start` to ``start + size - 1`` exactly once."""

    __slots__ = __match_args__ = ("layout", "start")
    layout: Layout | ComposedLayout
    start: Any

    def __init__(self, layout: Layout | ComposedLayout, start: Any = 0) -> None:
        if isinstance(start, tuple):
            raise LayoutError(f"Bijective: start is {text(start)} and must be an integer")
        self._set(layout_for("Bijective", layout), checked(start, "start", 0))

    def sentence(self) -> str:
        """L is a bijection onto its range."""
        return f"{self.layout} is a bijection onto the offsets {self.start} to {self._last()}"

    def __repr__(self) -> str:
        start = "" if self.start == 0 else f", {self.start!r}"
        return f"Bijective({self.layout!r}{start})"

    def _last(self) -> Any:
        return plain(self.start + size(self.layout) - 1)

    def decide(self) -> Proof:
        """Decide whether the strides form a chain, and whether a swizzle permutes the range."""
        whole = as_one_layout(self.layout)
        layout, swizzle = whole.layout, whole.swizzle
        if self._gives_coordinates():
            return failed(self, self.claims()[0], 0, "its values are coordinates, not offsets")
        if layout is None or not of_integers(layout):
            return self._by_enumeration()
        if swizzle is None and self.start == 0:
            chain = self._chained(layout)
            if isinstance(chain, Proof):
                return chain
            return self._proved((*whole.reason, chain[0]), whole.witness(chain[1]))
        if swizzle is not None and self._starts_at_offset():
            chain = self._chained(layout)
            permutes = _permutes(swizzle, self.start, size(layout))
            if not isinstance(chain, Proof) and permutes:
                return self._proved((f"{layout}: {chain[0]}", permutes), whole.witness(chain[1]))
        return self._by_enumeration()

    def _proved(self, reason: tuple[str, ...], witness: Any) -> Proof:
        (claim,) = self.claims()
        return Proof(self, True, reason, None, (Certificate(claim, witness),))

    def _gives_coordinates(self) -> bool:
        first = stages_of(self.layout)[0]
        return isinstance(first, Layout) and gives_coordinates(first)

    def _starts_at_offset(self) -> bool:
        return isinstance(self.layout, ComposedLayout) and bool(self.layout.offset == self.start)

    def _chained(self, layout: Layout) -> Proof | tuple[str, Chain]:
        """Why the strides of `layout` form a chain, with the witness; or the refutation.

        A layout is a bijection onto 0 ... size - 1 exactly if they do.

        As long as the chain holds, the modes fill 0 ... reach - 1.  If the next stride is below
        `reach`, its offset is taken already, and two indices collide.  If it is above, `reach` is
        never taken.
        """
        modes, order, reach = moving_modes(layout), [], 1
        reaches = ["1"]
        while modes:
            mode = next((mode for mode in modes if equal(mode[2], reach)), None)
            if mode is None:
                return self._no_chain(layout, reach)
            modes.remove(mode)
            order.append(mode)
            reach = plain(reach * mode[1])
            reaches.append(str(reach))
        return _chain_reason(order, reaches), Chain(tuple(k for k, _, _ in order))

    def _no_chain(self, layout: Layout, reach: Any) -> Proof:
        if free_symbols(layout):
            raise Undecided(
                f"no stride of {layout} is shown to be {reach}, the next one of the chain"
            )
        pair = collision(layout)
        if pair is not None:
            return collided(self, self.layout, *pair)
        return self._missing(reach, _first_outside(layout))

    def _missing(self, offset: int, outside: int) -> Proof:
        """The refutation: nothing has the offset `offset`, and that of index `outside` is not in
        the range."""
        coord, value = idx2crd(outside, self.layout.shape), self.layout(outside)
        reason = (
            f"no coordinate has the offset {offset}; coordinate {text(coord)}, index {outside}, "
            f"has the offset {value}, outside {self.start} to {self._last()}"
        )
        found = Counterexample(outside, coord, value, self._last())
        return Proof(self, False, (reason,), found)

    def _by_enumeration(self) -> Proof:
        index_of = index_of_offsets(self, self.layout)
        if isinstance(index_of, Proof):
            return index_of
        wanted = range(self.start, self.start + len(index_of))
        missing = next((offset for offset in wanted if offset not in index_of), None)
        if missing is not None:
            outside = min(i for offset, i in index_of.items() if offset not in wanted)
            return self._missing(missing, outside)
        return self._proved((all_compared(len(index_of)),), Exhaustive())

    def claims(self) -> list[Claim]:
        """The chain of `layout` is a bijection onto this range."""
        return [Bijection(stages_of(self.layout), self.start)]


def _chain_reason(order: list[NumberedMode], reaches: list[str]) -> str:
    return (
        f"in the order {listed(order)} the modes form a chain: each stride is the product of the "
        f"extents before it, {' -> '.join(reaches)}, so each offset occurs exactly once"
    )


def _first_outside(layout: Layout) -> int:
    """The smallest index whose offset is not below the size.

    From the highest digit down, each is as low as it can be while those below it, at their highest,
    still reach the size.
    """
    short, coord = size(layout), []
    modes = list(zip(leaves(layout.shape), leaves(layout.stride), strict=True))
    for k in reversed(range(len(modes))):
        extent, stride = modes[k]
        others = sum((s - 1) * d for s, d in modes[:k])
        x = min(max(0, -(-(short - others) // stride)), extent - 1) if stride else 0
        coord.append(x)
        short -= x * stride
    index = 0
    for (extent, _), x in zip(reversed(modes), coord, strict=True):
        index = index * extent + x
    return index


def _permutes(swizzle: Swizzle, start: Any, count: Any) -> str | None:
    """Why `swizzle` permutes the `count` offsets from `start` on, or None if it is not shown."""
    own = f"{swizzle} is its own inverse"
    blocks = [quotient(x, swizzle.block) for x in (start, count)]
    if None not in blocks:
        return (
            f"{own} and permutes each aligned block of {swizzle.block} offsets; "
            f"{count} = {as_factor(blocks[1])} * {swizzle.block}"
        )
    if type(start) is not int or type(count) is not int:
        return None
    if start + count <= swizzle.source & -swizzle.source:
        return f"{swizzle} reads no bit of an offset below {start + count}, so it changes none"
    end = start + count
    head = range(start, min(end, -(-start // swizzle.block) * swizzle.block))
    tail = range(max(head.stop, end - end % swizzle.block), end)
    cut = len(head) + len(tail)
    if not too_many(cut) and all(
        start <= swizzle(offset) < end for part in (head, tail) for offset in part
    ):
        which = "last" if not head else "first and last"
        return (
            f"{own}, permutes each aligned block of {swizzle.block} offsets, and maps the {which} "
            f"{cut} of the {count} offsets into the range"
        )
    return None
