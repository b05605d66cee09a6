"""Proofs: statements about layouts, decided for all indices, with the reason or a counterexample.

>>> print(prove(Bijective(Layout((4, 8), (8, 1)))))
proved: (4,8):(8,1) is a bijection onto the offsets 0 to 31
  by rising stride its modes 8:1 4:8 are a chain: each stride is the number of offsets that
  the modes before it fill, 1 -> 8 -> 32, so that each offset is met once
>>> print(prove(Injective(Layout((4, 2), (1, 2)))))
refuted: (4,2):(1,2) takes no offset twice
  coordinates (2,0) and (0,1) both have the offset 2
"""

from __future__ import annotations

from textwrap import wrap
from typing import Any, Protocol

from .algebra import composition
from .banks import wavefronts
from .collision import collision
from .compose import ENUMERATION_LIMIT
from .errors import LayoutError
from .layout import Layout
from .modes import Mode, flat_modes
from .swizzle import ComposedLayout, Swizzle
from .tuples import idx2crd, size, text
from .value import Value

__all__ = ["Bijective", "ConflictFree", "Injective", "Proof", "prove"]


class Proof(Value):
    """The answer to a statement: whether it holds, why, and where not.

    `reason` has one sentence a step.  `counterexample` is what a false statement fails on: two
    coordinates of one offset, an offset that none has, or two lanes; None if the statement holds.
    A proof is true where its statement is.
    """

    __slots__ = __match_args__ = ("statement", "holds", "reason", "counterexample")
    statement: Statement
    holds: bool
    reason: tuple[str, ...]
    counterexample: Any

    def __init__(
        self,
        statement: Statement,
        holds: bool,
        reason: tuple[str, ...],
        counterexample: Any = None,
    ) -> None:
        self._set(statement, holds, reason, counterexample)

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        lines = [f"{'proved' if self.holds else 'refuted'}: {self.statement}"]
        for step in self.reason:
            lines += wrap(step, 94, initial_indent="  ", subsequent_indent="  ")
        return "\n".join(lines)


class Statement(Protocol):
    """A claim about a layout that can be decided."""

    def decide(self) -> Proof:
        """The proof or the refutation."""


def prove(statement: Statement) -> Proof:
    """Decide `statement`: a true `Proof` with its certificate, or a false one that shows where.

    Raises `LayoutError` only where neither the theorems reach nor the indices can all be looked at.

    >>> bool(prove(Bijective(ComposedLayout(Swizzle(3, 3, 3), 0, Layout((8, 64), (64, 1))))))
    True
    """
    return statement.decide()


class Injective(Value):
    """No two coordinates of `layout` have the same offset."""

    __slots__ = __match_args__ = ("layout",)
    layout: Layout | ComposedLayout

    def __init__(self, layout: Layout | ComposedLayout) -> None:
        self._set(layout)

    def __str__(self) -> str:
        return f"{self.layout} takes no offset twice"

    def decide(self) -> Proof:
        """Decided by differences of coordinates; a swizzle changes nothing."""
        layout = _without_inner_layout(self.layout)
        if layout is None:
            return _looked_at(self, onto=False)
        outer = layout.outer if isinstance(layout, ComposedLayout) else layout
        pair = collision(outer)
        if pair is not None:
            return _collided(self, *pair)
        if layout is outer:
            return Proof(self, True, (_differences(outer),))
        swizzled = "a swizzle is its own inverse, so that it takes no two offsets to one"
        return Proof(self, True, (f"{outer}: {_differences(outer)}", swizzled))


class Bijective(Value):
    """`layout` takes each offset from 0 to its size - 1 exactly once."""

    __slots__ = __match_args__ = ("layout",)
    layout: Layout | ComposedLayout

    def __init__(self, layout: Layout | ComposedLayout) -> None:
        self._set(layout)

    def __str__(self) -> str:
        last = size(self.layout) - 1
        return f"{self.layout} is a bijection onto the offsets 0 to {last}"

    def decide(self) -> Proof:
        """Decided by the chain of strides; a swizzle must permute the offsets below the size."""
        layout = _without_inner_layout(self.layout)
        if isinstance(layout, Layout):
            return _chained(self, layout)
        if layout is not None and layout.offset == 0 and isinstance(layout.inner, Swizzle):
            outer = _chained(self, layout.outer)
            permutes = _permutes(layout.inner, size(layout))
            if outer and permutes:
                return Proof(self, True, (f"{layout.outer}: {outer.reason[0]}", permutes))
        return _looked_at(self, onto=True)


class ConflictFree(Value):
    """Lanes that access `width` bytes each at `layout` take one wavefront a phase.

    `layout` and `unit` as in `wavefronts`.
    """

    __slots__ = __match_args__ = ("layout", "width", "unit")
    layout: Layout | ComposedLayout
    width: int
    unit: int | None

    def __init__(
        self, layout: Layout | ComposedLayout, width: int = 16, unit: int | None = None
    ) -> None:
        self._set(layout, width, unit)

    def __str__(self) -> str:
        lanes = f"{size(self.layout)} lanes that access {self.width} bytes each"
        return f"{lanes} at {self.layout} are free of bank conflicts"

    def decide(self) -> Proof:
        """Decided by the bank model, for every base where the layout is a bit matrix."""
        found = wavefronts(self.layout, self.width, self.unit)
        return Proof(self, found.conflict_free, (str(found),), found.collision)


# --------------------------------------------------------------------------- certificates


def _without_inner_layout(layout: Layout | ComposedLayout) -> Layout | ComposedLayout | None:
    """`layout` with a swizzle at most on its inside; None if it has no such form."""
    if isinstance(layout, Layout) or isinstance(layout.inner, Swizzle):
        return layout
    try:
        return composition(layout.inner, layout.outer) if layout.offset == 0 else None
    except LayoutError:
        return None


def _by_stride(layout: Layout) -> list[Mode]:
    """The modes that have more than one entry, by rising stride."""
    modes = [mode for mode in flat_modes(layout) if mode[0] != 1]
    return sorted(modes, key=lambda mode: mode[1])


def _chained(statement: Bijective, layout: Layout) -> Proof:
    """A layout is a bijection onto 0 ... size - 1 just if its strides are a chain.

    Up to where the chain holds, the modes fill 0 ... reach - 1.  A next stride below `reach` is an
    offset they have already, so that two indices collide; one above leaves `reach` out.
    """
    pair = collision(layout)
    if pair is not None:
        return _collided(statement, *pair)
    reach, chain = 1, ["1"]
    for extent, stride in _by_stride(layout):
        if stride != reach:
            return _missing(statement, reach)
        reach *= extent
        chain.append(str(reach))
    reason = (
        f"by rising stride its modes {_listed(layout)} are a chain: each stride is the number of "
        f"offsets that the modes before it fill, {' -> '.join(chain)}, so that each offset is met "
        f"once"
    )
    return Proof(statement, True, (reason,))


def _listed(layout: Layout) -> str:
    return " ".join(f"{extent}:{stride}" for extent, stride in _by_stride(layout)) or "1:0"


def _differences(layout: Layout) -> str:
    reach, grows = 0, True
    for extent, stride in _by_stride(layout):
        grows = grows and stride > reach
        reach += (extent - 1) * stride
    if grows:
        return (
            f"by rising stride, each stride of its modes {_listed(layout)} is larger than all that "
            f"the modes before it can add up to, so that an offset tells its coordinate"
        )
    return (
        f"no difference of two coordinates, other than 0, adds up to 0 over the modes "
        f"{_listed(layout)}: all that could were tried"
    )


def _permutes(swizzle: Swizzle, count: int) -> str | None:
    """Why `swizzle` permutes the offsets below `count`, or None."""
    own = f"{swizzle} is its own inverse"
    if count % swizzle.block == 0:
        return (
            f"{own}, and permutes each aligned block of {swizzle.block} offsets in itself; "
            f"{count} = {count // swizzle.block} * {swizzle.block}"
        )
    if count <= swizzle.source & -swizzle.source:
        return f"{swizzle} reads no bit of an offset below {count}, so that it changes none"
    tail = range(count - count % swizzle.block, count)
    if len(tail) <= ENUMERATION_LIMIT and all(swizzle(offset) < count for offset in tail):
        return (
            f"{own}, permutes each aligned block of {swizzle.block} offsets in itself, and keeps "
            f"the last {len(tail)} of {count} offsets together"
        )
    return None


# ------------------------------------------------------------------------- counterexamples


def _collided(statement: Injective | Bijective, first: int, second: int) -> Proof:
    layout = statement.layout
    a, b = idx2crd(first, layout.shape), idx2crd(second, layout.shape)
    reason = f"coordinates {text(a)} and {text(b)} both have the offset {layout(first)}"
    return Proof(statement, False, (reason,), (a, b))


def _missing(statement: Injective | Bijective, offset: int) -> Proof:
    return Proof(statement, False, (f"no coordinate has the offset {offset}",), offset)


def _looked_at(statement: Injective | Bijective, onto: bool) -> Proof:
    """The answer by computing every offset."""
    layout, count = statement.layout, size(statement.layout)
    if count > ENUMERATION_LIMIT:
        raise LayoutError(f"{statement}: not decided, and {count} indices are too many to look at")
    index_of: dict[int, int] = {}
    for index in range(count):
        other = index_of.setdefault(layout(index), index)
        if other != index:
            return _collided(statement, other, index)
    missing = next((offset for offset in range(count) if offset not in index_of), None)
    if onto and missing is not None:
        return _missing(statement, missing)
    return Proof(statement, True, (f"all {count} offsets were computed and compared",))
