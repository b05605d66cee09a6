"""Proofs: statements about layouts, decided for all indices, with the reason or a counterexample.

>>> print(prove(Bijective(Layout((4, 8), (8, 1)))))
proved: (4,8):(8,1) is a bijection onto the offsets 0 to 31
  by rising stride its modes 8:1 4:8 are a chain: each stride is the number of offsets that
  the modes before it fill, 1 -> 8 -> 32, so that each offset is met once
>>> print(prove(Injective(Layout((4, 2), (1, 2)))))
refuted: (4,2):(1,2) takes no offset twice
  coordinates (2,0) and (0,1) both have the offset 2

A proof carries certificates, and a refutation its counterexample; `Proof.verify` checks either by
means other than those that found it.  With symbols a statement is one for all their values:

>>> from layouts import symbols
>>> m, n = symbols("m n")
>>> proof = prove(Bijective(Layout((m, n), (n, 1))))
>>> print(proof, proof.verify())
proved: (m,n):(n,1) is a bijection onto the offsets 0 to m*n - 1
  by rising stride its modes n:1 m:n are a chain: each stride is the number of offsets that
  the modes before it fill, 1 -> n -> m*n, so that each offset is met once True
"""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import wrap
from typing import Any, Protocol

from ..algebra import composition, gf2
from ..algebra.compose import ENUMERATION_LIMIT
from ..algebra.injectivity import collision
from ..errors import LayoutError
from ..values.arith import equal, less
from ..values.layout import Layout
from ..values.stride import F2, kind
from ..values.swizzle import ComposedLayout, Swizzle
from ..values.symbols import (
    at_least,
    free_symbols,
    plain,
    quotient,
    small_values,
    substitute,
)
from ..values.tuples import idx2crd, leaves, size, text
from ..values.value import Value
from .certificate import (
    Chain,
    FullRank,
    Growing,
    Looked,
    NoDifference,
    Permutes,
    evaluate,
    stages_of,
)
from .equivalence import Undecided, agree, written

__all__ = [
    "Bijective",
    "Counterexample",
    "Injective",
    "Proof",
    "Statement",
    "prove",
]

#: How many values of the symbols are tried before a statement is left undecided.
SMALL_VALUES = 60


class Counterexample(Value):
    """Where a statement fails: an index, its coordinate, and the two values there.

    Where two indices collide `index` and `coordinate` are pairs, and `left` and `right` their
    offsets.  `symbols` are the pairs (name, value) for which the statement fails.
    """

    __slots__ = __match_args__ = ("index", "coordinate", "left", "right", "symbols")
    index: Any
    coordinate: Any
    left: Any
    right: Any
    symbols: tuple[tuple[str, int], ...]

    def __init__(
        self,
        index: Any,
        coordinate: Any,
        left: Any,
        right: Any,
        symbols: tuple[tuple[str, int], ...] = (),
    ) -> None:
        self._set(index, coordinate, left, right, symbols)


class Proof(Value):
    """The answer to a statement: whether it holds, why, and where not.

    `reason` has one sentence a step.  A proof is true where its statement is; then `certificates`
    are what `verify` checks, and else `counterexample` is.
    """

    __slots__ = __match_args__ = ("statement", "holds", "reason", "counterexample", "certificates")
    statement: Statement
    holds: bool
    reason: tuple[str, ...]
    counterexample: Counterexample | None
    certificates: tuple[Any, ...]

    def __init__(
        self,
        statement: Statement,
        holds: bool,
        reason: tuple[str, ...],
        counterexample: Counterexample | None = None,
        certificates: tuple[Any, ...] = (),
    ) -> None:
        self._set(statement, holds, reason, counterexample, certificates)

    def __bool__(self) -> bool:
        return self.holds

    def verify(self) -> bool:
        """Whether the certificates hold, by sympy, and are enough for the statement; or whether
        the counterexample, computed digit by digit and bit by bit, is one.

        >>> prove(Bijective(Layout((4, 8), (8, 1)))).verify()
        True
        """
        if not self.holds:
            return self.counterexample is not None and _refutes(self)
        claims = {certificate.claim for certificate in self.certificates}
        enough = any(claims.issuperset(needed) for needed in self.statement.follows_from())
        return enough and all(certificate.verify() for certificate in self.certificates)

    def __str__(self) -> str:
        lines = [f"{'proved' if self.holds else 'refuted'}: {self.statement}"]
        for step in self.reason:
            lines += wrap(step, 94, initial_indent="  ", subsequent_indent="  ")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"prove({self.statement!r})"


def _refutes(proof: Proof) -> bool:
    found, statement = proof.counterexample, proof.statement
    if found is not None and found.symbols:
        by_name = {str(symbol): symbol for symbol in free_symbols(statement)}
        statement = substitute(statement, {by_name[name]: n for name, n in found.symbols})
    return statement.refuted_by(found)


class Statement(Protocol):
    """A claim about layouts that can be decided."""

    def decide(self) -> Proof:
        """The proof or the refutation; `Undecided` if symbols leave it open."""

    def follows_from(self) -> list[list[Any]]:
        """Lists of claims of certificates, each of which is enough for the statement."""

    def refuted_by(self, found: Any) -> bool:
        """Whether the counterexample `found` is one, by computing its values again."""


def prove(statement: Any) -> Proof:
    """Decide `statement`: a true `Proof` with its certificates, or a false one that shows where.

    With symbols the statement is about all their values.  What is not proved is tried with small
    values, and refuted by the first that fail.

    Raises `LayoutError` with what could not be shown, only where neither the theorems reach nor the
    indices can all be looked at.

    >>> bool(prove(Bijective(ComposedLayout(Swizzle(3, 3, 3), 0, Layout((8, 64), (64, 1))))))
    True
    """
    if not hasattr(statement, "decide"):
        raise LayoutError(
            f"prove: {statement!r} is no statement; make one, such as Injective(layout) or "
            f"Equivalent(A, B)"
        )
    names = free_symbols(statement)
    if not names:
        return statement.decide()  # type: ignore[no-any-return]
    try:
        return statement.decide()  # type: ignore[no-any-return]
    except LayoutError as error:
        return _tried(statement, names, error)


def _tried(statement: Any, names: tuple[Any, ...], open_: LayoutError) -> Proof:
    """The refutation by small values of the symbols, or `Undecided`."""
    tried = 0
    for values in small_values(names, SMALL_VALUES):
        try:
            proof = substitute(statement, values).decide()
        except LayoutError:
            continue
        tried += 1
        if not proof:
            return _refuted_at(statement, values, proof)
    raise Undecided(
        f"{statement}: not decided. {open_}. It holds for the {tried} small values of "
        f"{', '.join(map(str, names))} that were tried"
    )


def _refuted_at(statement: Any, values: dict[Any, int], proof: Proof) -> Proof:
    at = ", ".join(f"{name} = {value}" for name, value in values.items())
    found = proof.counterexample
    if found is not None:
        pairs = tuple((str(name), value) for name, value in values.items())
        found = Counterexample(found.index, found.coordinate, found.left, found.right, pairs)
    reason = (f"at {at} it says that {proof.statement}", *proof.reason)
    return Proof(statement, False, reason, found)


# -------------------------------------------------------------------------- injective, onto


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
        swizzle, layout, same = _one_layout(self.layout)
        if layout is None:
            return _looked_at(self, None)
        found = _injective(layout)
        if isinstance(found, tuple):
            return _collided(self, *found)
        if found is None:
            return _looked_at(self, None)
        reason, certificate = found.reason, found.certificate
        if swizzle is None:
            return Proof(
                self, True, (*same.reason, reason), None, (*same.certificates, certificate)
            )
        swizzled = "a swizzle is its own inverse, so that it takes no two offsets to one"
        block = Permutes(swizzle, 0, swizzle.block)
        return Proof(self, True, (f"{layout}: {reason}", swizzled), None, (certificate, block))

    def follows_from(self) -> list[list[Any]]:
        """The layout inside is injective, and the swizzle its own inverse."""
        swizzle, layout, same = _one_layout(self.layout)
        looked = ["looked", "injective", (stages_of(self.layout),), size(self.layout)]
        if layout is None:
            return [[tuple(looked)]]
        needed = [] if swizzle is None else [("permutes", swizzle, 0, swizzle.block)]
        needed += [certificate.claim for certificate in same.certificates]
        kinds = ("injective", "bijective")
        return [[tuple(looked)], *([*needed, (kind, layout)] for kind in kinds)]

    def refuted_by(self, found: Counterexample) -> bool:
        """Two indices, one offset."""
        return _collide(self.layout, found)


class Bijective(Value):
    """`layout` takes each offset from `start` to ``start + size - 1`` exactly once."""

    __slots__ = __match_args__ = ("layout", "start")
    layout: Layout | ComposedLayout
    start: Any

    def __init__(self, layout: Layout | ComposedLayout, start: Any = 0) -> None:
        self._set(layout, start)

    def __str__(self) -> str:
        last = plain(self.start + size(self.layout) - 1)
        return f"{self.layout} is a bijection onto the offsets {self.start} to {last}"

    def __repr__(self) -> str:
        start = "" if self.start == 0 else f", {self.start!r}"
        return f"Bijective({self.layout!r}{start})"

    def decide(self) -> Proof:
        """Decided by the chain of strides; a swizzle must permute the offsets below the size."""
        swizzle, layout, same = _one_layout(self.layout)
        if layout is None or not _of_integers(layout):
            return _looked_at(self, self.start)
        if swizzle is None and self.start == 0:
            chain = _chained(self, layout)
            certificates = (*same.certificates, *chain.certificates)
            reason = (*same.reason, *chain.reason)
            return Proof(self, chain.holds, reason, chain.counterexample, certificates)
        if swizzle is not None and self.layout.offset == self.start:  # type: ignore[union-attr]
            outer = _chained(self, layout, swizzled=True)
            permutes = _permutes(swizzle, self.start, size(layout))
            if outer and permutes:
                certificate = Permutes(swizzle, self.start, size(layout))
                reason = (f"{layout}: {outer.reason[0]}", permutes)
                return Proof(self, True, reason, None, (*outer.certificates, certificate))
        return _looked_at(self, self.start)

    def follows_from(self) -> list[list[Any]]:
        """The layout inside is a chain, and the swizzle permutes its offsets."""
        swizzle, layout, same = _one_layout(self.layout)
        looked = ("looked", self.start, (stages_of(self.layout),), size(self.layout))
        if layout is None:
            return [[looked]]
        needed = [("bijective", layout), *(certificate.claim for certificate in same.certificates)]
        if swizzle is not None:
            needed.append(("permutes", swizzle, self.start, size(layout)))
        return [[looked], needed]

    def refuted_by(self, found: Counterexample) -> bool:
        """Two indices with one offset, or an index whose offset is outside."""
        if isinstance(found.index, tuple):
            return _collide(self.layout, found)
        value = evaluate(stages_of(self.layout), found.index)
        outside = not self.start <= value < self.start + size(self.layout)
        return bool(value == found.left and outside)


class _Same(Value):
    """That a layout is another: the reason and the certificates."""

    __slots__ = __match_args__ = ("reason", "certificates")
    reason: tuple[str, ...]
    certificates: tuple[Any, ...]

    def __init__(self, reason: tuple[str, ...] = (), certificates: tuple[Any, ...] = ()) -> None:
        self._set(reason, certificates)


def _one_layout(layout: Any) -> tuple[Swizzle | None, Layout | None, _Same]:
    """The swizzle and the one layout that `layout` is, and why; no layout if it is not so."""
    if isinstance(layout, Layout):
        return None, layout, _Same()
    if isinstance(layout.inner, Swizzle):
        return layout.inner, layout.outer, _Same()
    try:
        one = composition(layout.inner, layout.outer) if layout.offset == 0 else None
        if not isinstance(one, Layout):
            return None, None, _Same()
        found = agree(stages_of(layout), (one,), size(layout))
    except LayoutError:
        return None, None, _Same()
    if found.certificate is None:
        return None, None, _Same()
    return None, one, _Same(found.reason, (found.certificate,))


class _Found(Value):
    """A reason and its certificate."""

    __slots__ = __match_args__ = ("reason", "certificate")
    reason: str
    certificate: Any

    def __init__(self, reason: str, certificate: Any) -> None:
        self._set(reason, certificate)


#: A mode, with its place in the layout: (place, extent, stride).
Placed = tuple[int, Any, Any]


def _moving(layout: Layout) -> list[Placed]:
    """The modes that have more than one entry."""
    pairs = zip(leaves(layout.shape), leaves(layout.stride), strict=True)
    return [(k, s, d) for k, (s, d) in enumerate(pairs) if s != 1]


def _of_integers(layout: Layout) -> bool:
    return all(type(d) is int or hasattr(d, "free_symbols") for d in leaves(layout.stride))


def _injective(layout: Layout) -> _Found | tuple[int, int] | None:
    """Why `layout` is injective, or two indices that collide; None if only looking tells."""
    if kind(leaves(layout.stride)) is F2:
        return _by_rank(layout)
    if not _of_integers(layout):
        return None
    if not free_symbols(layout):
        pair = collision(layout)
        if pair is not None:
            return pair
    order = _growing(layout)
    if order is not None:
        reason = (
            f"by rising stride, each stride of its modes {_listed(order)} is larger than all that "
            f"the modes before it can add up to, so that an offset tells its coordinate"
        )
        return _Found(reason, Growing(layout, tuple(k for k, _, _ in order)))
    if free_symbols(layout):
        raise Undecided(
            f"the strides of {layout} are not shown to grow: some stride must be larger than all "
            f"that the modes of smaller stride add up to"
        )
    modes = sorted(_moving(layout), key=lambda mode: mode[2])
    reason = (
        f"no difference of two coordinates, other than 0, adds up to 0 over the modes "
        f"{_listed(modes)}: all that could were tried"
    )
    return _Found(reason, NoDifference(layout))


def _by_rank(layout: Layout) -> _Found | tuple[int, int]:
    """XOR strides: two indices collide just if their XOR goes to 0."""
    columns = gf2.matrix(layout)
    null = gf2.kernel(columns)
    if null:
        return 0, min(null)
    reason = (
        f"its columns {', '.join(map(str, columns))} are linearly independent over GF(2), so that "
        f"no XOR of them is 0"
    )
    return _Found(reason, FullRank(layout))


def _growing(layout: Layout) -> list[Placed] | None:
    """The modes in an order in which each stride is above what those before it add up to."""
    modes = _moving(layout)
    if not free_symbols(layout):
        modes.sort(key=lambda mode: mode[2])
    return _grown(modes, 0)


def _grown(left: list[Placed], reach: Any) -> list[Placed] | None:
    """`left` in such an order, that goes on from `reach`."""
    if not left:
        return []
    for k, (_, extent, stride) in enumerate(left):
        if less(reach, stride):
            after = _grown(left[:k] + left[k + 1 :], plain(reach + (extent - 1) * stride))
            if after is not None:
                return [left[k], *after]
        elif at_least(reach, stride):
            return None  # the reach only grows
    return None


def _chained(statement: Bijective, layout: Layout, swizzled: bool = False) -> Proof:
    """A layout is a bijection onto 0 ... size - 1 just if its strides are a chain.

    Up to where the chain holds, the modes fill 0 ... reach - 1.  A next stride below `reach` is an
    offset they have already, so that two indices collide; one above leaves `reach` out.
    """
    left, order, reach = _moving(layout), [], 1
    reaches = ["1"]
    while left:
        here = next((mode for mode in left if equal(mode[2], reach)), None)
        if here is None:
            return _no_chain(statement, layout, reach)
        left.remove(here)
        order.append(here)
        reach = plain(reach * here[1])
        reaches.append(str(reach))
    reason = (
        f"by rising stride its modes {_listed(order)} are a chain: each stride is the number of "
        f"offsets that the modes before it fill, {' -> '.join(reaches)}, so that each offset is "
        f"met once"
    )
    certificate = Chain(layout, tuple(k for k, _, _ in order))
    return Proof(statement, True, (reason,), None, (certificate,))


def _no_chain(statement: Bijective, layout: Layout, reach: Any) -> Proof:
    if free_symbols(layout):
        raise Undecided(f"no stride of {layout} is shown to be {reach}, which the chain needs next")
    pair = collision(layout)
    if pair is not None:
        return _collided(statement, *pair)
    return _missing(statement, reach, _first_outside(layout))


def _first_outside(layout: Layout) -> int:
    """The smallest index whose offset is not below the size: the highest digit as low as it can
    be while the others, at their highest, still reach."""
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


def _listed(modes: Iterable[Placed]) -> str:
    return " ".join(f"{_factor(extent)}:{stride}" for _, extent, stride in modes) or "1:0"


def _factor(x: Any) -> str:
    return f"({x})" if " " in str(x) else str(x)


def _permutes(swizzle: Swizzle, start: Any, count: Any) -> str | None:
    """Why `swizzle` permutes the `count` offsets from `start` on, or None."""
    own = f"{swizzle} is its own inverse"
    blocks = [quotient(x, swizzle.block) for x in (start, count)]
    if None not in blocks:
        return (
            f"{own}, and permutes each aligned block of {swizzle.block} offsets in itself; "
            f"{count} = {_factor(blocks[1])} * {swizzle.block}"
        )
    if type(start) is not int or type(count) is not int:
        return None
    if start + count <= swizzle.source & -swizzle.source:
        return f"{swizzle} reads no bit of an offset below {start + count}, so that it changes none"
    end = start + count
    head = range(start, min(end, -(-start // swizzle.block) * swizzle.block))
    tail = range(max(head.stop, end - end % swizzle.block), end)
    cut = len(head) + len(tail)
    if cut <= ENUMERATION_LIMIT and all(
        start <= swizzle(offset) < end for part in (head, tail) for offset in part
    ):
        which = "last" if not head else "first and last"
        return (
            f"{own}, permutes each aligned block of {swizzle.block} offsets in itself, and keeps "
            f"the {which} {cut} of {count} offsets together"
        )
    return None


# ------------------------------------------------------------------------- counterexamples


def _collide(layout: Any, found: Counterexample) -> bool:
    first, second = found.index
    values = [evaluate(stages_of(layout), index) for index in found.index]
    return bool(first != second and values == [found.left] * 2 and found.left == found.right)


def _collided(statement: Injective | Bijective, first: int, second: int) -> Proof:
    layout = statement.layout
    a, b = idx2crd(first, layout.shape), idx2crd(second, layout.shape)
    offset = layout(first)
    reason = f"coordinates {text(a)} and {text(b)} both have the offset {offset}"
    found = Counterexample((first, second), (a, b), offset, layout(second))
    return Proof(statement, False, (reason,), found)


def _missing(statement: Bijective, offset: int, outside: int) -> Proof:
    """`offset` is left out, and so index `outside` has one that is too large or too small."""
    layout, last = statement.layout, statement.start + size(statement.layout) - 1
    coord, value = idx2crd(outside, layout.shape), layout(outside)
    reason = (
        f"no coordinate has the offset {offset}; the coordinate {text(coord)}, index {outside}, "
        f"has the offset {value}, outside of {statement.start} to {last}"
    )
    found = Counterexample(outside, coord, value, last)
    return Proof(statement, False, (reason,), found)


def _looked_at(statement: Injective | Bijective, start: Any) -> Proof:
    """The answer by computing every offset; onto those from `start` on, unless it is None."""
    layout, count = statement.layout, size(statement.layout)
    if free_symbols(statement):
        raise Undecided(f"no method reaches {written(stages_of(layout))} with symbols")
    if count > ENUMERATION_LIMIT:
        raise Undecided(f"{statement}: not decided, and {count} indices are too many to look at")
    index_of: dict[Any, int] = {}
    for index in range(count):
        other = index_of.setdefault(layout(index), index)
        if other != index:
            return _collided(statement, other, index)
    kind = "injective" if start is None else start
    certificate = Looked(kind, (stages_of(layout),), count)
    wanted = () if start is None else range(start, start + count)
    missing = next((offset for offset in wanted if offset not in index_of), None)
    if missing is not None and isinstance(statement, Bijective):
        outside = min(i for offset, i in index_of.items() if offset not in wanted)
        return _missing(statement, missing, outside)
    reason = f"all {count} offsets were computed and compared"
    return Proof(statement, True, (reason,), None, (certificate,))
