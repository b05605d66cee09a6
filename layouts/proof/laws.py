"""The laws of the operations as statements: what `prove` decides for given layouts.

>>> from layouts.proof import prove
>>> print(prove(CompositionLaw(Layout((6, 2), (8, 2)), Layout((4, 3), (3, 1)))))
proved: ((2,2),3):((24,2),8) is (6,2):(8,2) o (4,3):(3,1)
  an index is x0 + 2*x1 + 4*x2 with x0 < 2, x1 < 2, x2 < 3
  (4,3):(3,1) takes x0 + 2*x1 + 4*x2 to 3*x0 + 6*x1 + x2: divided by 4 it leaves x0 + 2*x1 <=
  3 and gives x2
  (6,2):(8,2) takes 3*x0 + 6*x1 + x2 to 24*x0 + 2*x1 + 8*x2: divided by 6 it leaves 3*x0 + x2
  <= 5 and gives x1
  ((2,2),3):((24,2),8) takes x0 + 2*x1 + 4*x2 to 24*x0 + 2*x1 + 8*x2: divided by 2 it leaves
  x0 <= 1 and gives x1 + 2*x2; divided by 2 it leaves x1 <= 1 and gives x2
  both sides are 24*x0 + 2*x1 + 8*x2

Each law may be given the result to be checked; without one it is that of the operation.  A law
whose operation has no result is refuted, with the operation's own reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..algebra import (
    complement,
    composition,
    left_inverse,
    logical_divide,
    logical_product,
    right_inverse,
)
from ..algebra.composition import tiler_layout
from ..errors import LayoutError
from ..values.arith import equal, less
from ..values.layout import Layout, cosize, make_layout
from ..values.modes import assembled
from ..values.stride import kind
from ..values.swizzle import ComposedLayout, layout_for
from ..values.symbols import free_symbols, plain
from ..values.tuples import idx2crd, leaves, size, text
from ..values.value import Value
from .certificate import NeverNegative, evaluate, stages_of
from .equivalence import Undecided, agree, floors, written
from .prove import Bijective, Counterexample, Proof, Statement, prove

__all__ = [
    "ComplementLaws",
    "CompositionLaw",
    "DivideLaw",
    "Equivalent",
    "LeftInverseLaw",
    "ProductLaw",
    "RightInverseLaw",
    "equivalent",
]


# ---------------------------------------------------------------------------- equivalence


def equivalent(a: Layout | ComposedLayout, b: Layout | ComposedLayout) -> Proof:
    """Whether `a` and `b` are one function of the index, whatever their shapes; a `Proof`, which is
    true if they are.

    >>> bool(equivalent(Layout((4, 2)), Layout(8))), Layout((4, 2)) == Layout(8)
    (True, False)
    >>> print(equivalent(Layout((4, 1), (1, 0)), Layout(4)))
    proved: (4,1):(1,0) and 4:1 are the same function of the index
      (4,1):(1,0) and 4:1, written as sums of floor(i/P), are both i as far as P is below the size
      beyond the size they differ: at index 4 the first goes on with 0, the second with 4
    """
    return prove(Equivalent(a, b))


class _Law(Value):
    """Two chains of functions that agree; what the laws below have in common."""

    __slots__ = ()

    def sides(self) -> tuple[tuple[Any, ...], tuple[Any, ...], Any]:
        """Left, right, and the number of indices; `LayoutError` if there is no right side."""
        raise NotImplementedError

    def shape(self) -> Any:
        """The shape whose coordinates the counterexample is told in."""
        raise NotImplementedError

    def decide(self) -> Proof:
        """Decided by floors, digits, bits, or by looking."""
        try:
            left, right, count = self.sides()
        except LayoutError as error:
            return _without_result(self, error)
        found = agree(left, right, count)
        if found.index is not None:
            return _differs(self, left, right, found.index)
        return Proof(self, True, found.reason, None, (found.certificate,))

    def follows_from(self) -> list[list[Any]]:
        """The two sides are the same."""
        left, right, count = self.sides()
        return [[("same", left, right, count)]]

    def refuted_by(self, found: Counterexample) -> bool:
        """The two sides, computed again, differ."""
        left, right, count = self.sides()
        values = [evaluate(side, found.index) for side in (left, right)]
        return bool(
            found.index < count and values == [found.left, found.right] and values[0] != values[1]
        )


def _differs(law: _Law, left: Any, right: Any, index: int) -> Proof:
    coord, values = idx2crd(index, law.shape()), [evaluate(side, index) for side in (left, right)]
    reason = (
        f"at index {index}, coordinate {text(coord)}, {written(left)} is {text(values[0])} and "
        f"{written(right)} is {text(values[1])}"
    )
    found = Counterexample(index, coord, *values)
    return Proof(law, False, (reason,), found)


def _without_result(law: Any, error: LayoutError) -> Proof:
    """The refutation of a law that has no result; symbols leave it open."""
    if free_symbols(law) or isinstance(error, Undecided):
        raise Undecided(str(error)) from None
    found = None if error.counterexample is None else Counterexample(*error.counterexample)
    return Proof(law, False, (str(error),), found)


class Equivalent(_Law):
    """`a` and `b` have one size, and the same value at every index."""

    __slots__ = __match_args__ = ("a", "b")
    a: Layout | ComposedLayout
    b: Layout | ComposedLayout

    def __init__(self, a: Layout | ComposedLayout, b: Layout | ComposedLayout) -> None:
        self._set(layout_for("Equivalent", a), layout_for("Equivalent", b))

    def __str__(self) -> str:
        return f"{self.a} and {self.b} are the same function of the index"

    def sides(self) -> tuple[tuple[Any, ...], tuple[Any, ...], Any]:
        """The two layouts."""
        return stages_of(self.a), stages_of(self.b), plain(size(self.a))

    def shape(self) -> Any:
        """That of the first."""
        return self.a.shape

    def decide(self) -> Proof:
        """As every law, and what happens beyond the size is told."""
        sizes = [plain(size(layout)) for layout in (self.a, self.b)]
        if not equal(*sizes):
            if free_symbols(self):
                raise Undecided(f"the sizes {sizes[0]} and {sizes[1]} are not shown to be equal")
            return _sizes_differ(self, *sizes)
        proof = super().decide()
        beyond = _beyond(self.a, self.b) if proof else ()
        return Proof(self, proof.holds, (*proof.reason, *beyond), *proof._fields()[3:])

    def refuted_by(self, found: Counterexample) -> bool:
        """They differ, or only one has the index."""
        if found.left is None or found.right is None:
            sizes = sorted((size(self.a), size(self.b)))
            return bool(sizes[0] <= found.index < sizes[1])
        return super().refuted_by(found)


def _sizes_differ(law: Equivalent, a: int, b: int) -> Proof:
    index = min(a, b)
    longer = law.b if a < b else law.a
    coord, value = idx2crd(index, longer.shape), longer(index)
    reason = f"their sizes are {a} and {b}: only {longer} has the index {index}, with {text(value)}"
    pair = (None, value) if a < b else (value, None)
    return Proof(law, False, (reason,), Counterexample(index, coord, *pair))


def _beyond(a: Any, b: Any) -> tuple[str, ...]:
    """Where two layouts that agree up to their size part beyond it."""
    if not all(isinstance(x, Layout) and kind(leaves(x.stride)) is None for x in (a, b)):
        return ()
    if free_symbols((a, b)):
        return ()
    one, other = floors(a), floors(b)
    places = [p for p in {**one, **other} if one.get(p, 0) != other.get(p, 0)]
    if not places:
        return ()
    at = min(places)
    return (
        f"beyond the size they differ: at index {at} the first goes on with {text(a(at))}, the "
        f"second with {text(b(at))}",
    )


class _OfResult(Value):
    """A statement about the result R of an operation: R as given, or as the operation has it.

    R is the last field; the operands are those before it.
    """

    __slots__ = ()
    r: Any
    #: What gives the result.
    operation: Callable[..., Any]

    def result(self) -> Any:
        """R as given, or as the operation has it."""
        *operands, given = self._fields()
        return type(self).operation(*operands) if given is None else given

    def said(self) -> str:
        """What R is."""
        raise NotImplementedError

    def __str__(self) -> str:
        try:
            return f"{self.result()} is {self.said()}"
        except LayoutError:
            return f"a layout is {self.said()}"

    def __repr__(self) -> str:
        given = list(self._fields())
        while given and given[-1] is None:  # left out
            given.pop()
        return f"{type(self).__name__}({', '.join(map(repr, given))})"


# ---------------------------------------------------------------------- composition, inverse


class CompositionLaw(_OfResult, _Law):
    """``R(c) == A(B(c))`` for every coordinate c of B, and the shape of R refines that of B.

    B is a layout here; a tuple of tilers composes mode by mode, which is a law for each mode.
    """

    __slots__ = __match_args__ = ("a", "b", "r")
    operation = composition
    a: Any
    b: Any

    def __init__(self, a: Any, b: Any, r: Any = None) -> None:
        self._set(a, Layout(b) if type(b) is int else b, r)

    def said(self) -> str:
        """A o B"""
        return f"{self.a} o {self.b}"

    def sides(self) -> tuple[tuple[Any, ...], tuple[Any, ...], Any]:
        """A after B, and R."""
        return stages_of(self.a) + stages_of(self.b), stages_of(self.result()), size(self.b)

    def shape(self) -> Any:
        """That of B."""
        return self.b.shape

    def decide(self) -> Proof:
        """As every law, after a look at the shapes."""
        try:
            shape = self.result().shape
        except LayoutError as error:
            return _without_result(self, error)
        if not _refines(self.b.shape, shape):
            why = f"the shape {text(shape)} does not refine that of B, {text(self.b.shape)}"
            return Proof(self, False, (why,))
        return super().decide()

    def refuted_by(self, found: Counterexample) -> bool:
        """The two sides differ, or A(B(i)) is not what any layout would have there."""
        if self.r is None and found.index is not None:
            value = evaluate(stages_of(self.a) + stages_of(self.b), found.index)
            return bool(value == found.left and value != found.right)
        return super().refuted_by(found)


def _refines(shape: Any, finer: Any) -> bool:
    """`compatible`, where extents may be polynomials written differently."""
    if not isinstance(shape, tuple):
        return equal(plain(shape), plain(size(finer)))
    return (
        isinstance(finer, tuple) and len(shape) == len(finer) and all(map(_refines, shape, finer))
    )


class _InverseLaw(_OfResult, _Law):
    """One after the other, a layout and its inverse R take each index to itself."""

    __slots__ = __match_args__ = ("layout", "r")
    layout: Any

    def __init__(self, layout: Any, r: Any = None) -> None:
        self._set(layout, r)


class RightInverseLaw(_InverseLaw):
    """``L(R(i)) == i`` for every i below the size of R."""

    __slots__ = ()
    operation = right_inverse

    def said(self) -> str:
        """A right inverse of L"""
        return f"a right inverse of {self.layout}"

    def sides(self) -> tuple[tuple[Any, ...], tuple[Any, ...], Any]:
        """L after R, and the identity."""
        r = self.result()
        count = plain(size(r))
        return stages_of(self.layout) + stages_of(r), (Layout(count, 1),), count

    def shape(self) -> Any:
        """That of R."""
        return self.result().shape


class LeftInverseLaw(_InverseLaw):
    """``R(L(i)) == i`` for every index i of L."""

    __slots__ = ()
    operation = left_inverse

    def said(self) -> str:
        """A left inverse of L"""
        return f"a left inverse of {self.layout}"

    def sides(self) -> tuple[tuple[Any, ...], tuple[Any, ...], Any]:
        """R after L, and the identity."""
        count = plain(size(self.layout))
        return stages_of(self.result()) + stages_of(self.layout), (Layout(count, 1),), count

    def shape(self) -> Any:
        """That of L."""
        return self.layout.shape


# ------------------------------------------------------------------------------- by parts


class _ByParts(Value):
    """A statement that holds just if each of its parts does."""

    __slots__ = ()

    def parts(self) -> list[Statement]:
        """The statements; raises `LayoutError` if there is no result."""
        raise NotImplementedError

    def decide(self) -> Proof:
        """The parts, one after the other; the first that fails refutes."""
        try:
            parts = self.parts()
        except LayoutError as error:
            return _without_result(self, error)
        proofs = [part.decide() for part in parts]
        for proof in proofs:
            if not proof:
                return Proof(self, False, (f"not so: {proof.statement}", *proof.reason), _at(proof))
        reason = tuple(
            line for proof in proofs for line in (f"{proof.statement}, since", *proof.reason)
        )
        return Proof(self, True, reason, None, tuple(map(Part, proofs)))

    def follows_from(self) -> list[list[Any]]:
        """Every part."""
        return [[("proved", part) for part in self.parts()]]

    def refuted_by(self, found: Any) -> bool:
        """One part is refuted by it."""
        return any(part.refuted_by(found) for part in self.parts())


def _at(proof: Proof) -> Counterexample | None:
    return proof.counterexample


class Part(Value):
    """A certificate that is a whole proof of another statement."""

    __slots__ = __match_args__ = ("proof",)
    proof: Proof

    def __init__(self, proof: Proof) -> None:
        self._set(proof)

    @property
    def claim(self) -> tuple[Any, ...]:
        """("proved", statement)"""
        return "proved", self.proof.statement

    def verify(self) -> bool:
        """The proof verifies, and proves."""
        return self.proof.holds and self.proof.verify()


class _TilerLaw(_OfResult, _ByParts):
    """A statement about a layout and a tiler, which for a tuple is one about each mode."""

    __slots__ = __match_args__ = ("layout", "tiler", "r")
    layout: Any
    tiler: Any

    def __init__(self, layout: Any, tiler: Any, r: Any = None) -> None:
        self._set(layout, tiler, r)

    def parts(self) -> list[Statement]:
        """The statements for each tiler; what has none stays as it is."""
        layout, result = self.layout, self.result()
        if self.tiler is None:
            return [Equivalent(layout, result)]
        if not isinstance(self.tiler, tuple):
            return self.of_one(tiler_layout(self.tiler), result)
        tilers = self.tiler + (None,) * (len(layout) - len(self.tiler))
        return [type(self)(layout[k], tiler, result[k]) for k, tiler in enumerate(tilers)]

    def of_one(self, tiler: Layout, result: Any) -> list[Statement]:
        """The statements for one tiler."""
        raise NotImplementedError


class DivideLaw(_TilerLaw):
    """``R((t, r)) == A(T(t) + complement(T, size(A))(r))`` for a tiler T, by mode for a tuple."""

    __slots__ = ()
    operation = logical_divide

    def said(self) -> str:
        """A divided by T"""
        return f"{self.layout} divided by {_tiler_text(self.tiler)}"

    def of_one(self, tiler: Layout, result: Any) -> list[Statement]:
        """A composition with the tile and the rest."""
        rest = complement(tiler, plain(size(self.layout)))
        return [CompositionLaw(self.layout, make_layout(tiler, rest), result)]


class ProductLaw(_TilerLaw):
    """``R((a, b)) == A(a) + A*(B(b))`` with A* the complement of A up to size(A) * cosize(B); by
    mode for a tuple."""

    __slots__ = ()
    operation = logical_product

    def said(self) -> str:
        """A times B"""
        return f"{self.layout} times {_tiler_text(self.tiler)}"

    def of_one(self, tiler: Layout, result: Any) -> list[Statement]:
        """The block, the places for its copies, and where the tiler puts them."""
        room = plain(size(self.layout) * cosize(tiler))
        places = complement(self.layout, room)
        return [
            Equivalent(self.layout, result[0]),
            ComplementLaws(self.layout, room, places),
            CompositionLaw(places, tiler, result[1]),
        ]


class ComplementLaws(_OfResult, _ByParts):
    """Each offset below ``size(filter(L)) * size(R)``, which is at least `cotarget`, is the sum of
    one offset of L and one of R, and of no others; and R grows with its index: each stride is above
    what those before it add up to.

    R is the complement; filter(L) is L without its modes of stride 0.
    """

    __slots__ = __match_args__ = ("layout", "cotarget", "r")
    operation = complement
    layout: Layout
    cotarget: Any

    def __init__(self, layout: Layout, cotarget: Any = None, r: Any = None) -> None:
        self._set(layout, cotarget, r)

    def said(self) -> str:
        """The complement of L"""
        up_to = "" if self.cotarget is None else f" up to {self.cotarget}"
        return f"the complement of {self.layout}{up_to}"

    def parts(self) -> list[Statement]:
        """Bijective, large enough, ordered."""
        result = self.result()
        pairs = zip(leaves(self.layout.shape), leaves(self.layout.stride), strict=True)
        moving = [mode for mode in pairs if not (type(mode[1]) is int and mode[1] == 0)]
        both = make_layout(assembled(moving), result)
        parts: list[Statement] = [Bijective(both)]
        if self.cotarget is not None:
            parts.append(AtLeast(plain(size(both)), self.cotarget))
        reach: Any = 0
        for extent, stride in zip(leaves(result.shape), leaves(result.stride), strict=True):
            if not (type(extent) is int and extent == 1):
                parts.append(AtLeast(stride, plain(reach + 1)))
                reach = plain(reach + (extent - 1) * stride)
        return parts


class AtLeast(Value):
    """``a >= b`` for every value of the symbols."""

    __slots__ = __match_args__ = ("a", "b")
    a: Any
    b: Any

    def __init__(self, a: Any, b: Any) -> None:
        self._set(a, b)

    def __str__(self) -> str:
        return f"{self.a} >= {self.b}"

    @property
    def claim(self) -> tuple[Any, ...]:
        """("at least", a, b)"""
        return "at least", self.a, self.b

    def decide(self) -> Proof:
        """By sign, every positive symbol m put as m + 1."""
        if less(plain(self.b - 1), self.a):
            written_ = f"{plain(self.a - self.b)} has no negative coefficient in symbols less 1"
            reason = written_ if free_symbols(self) else "by arithmetic"
            return Proof(self, True, (reason,), None, (NeverNegative(self.a, self.b),))
        if free_symbols(self):
            raise Undecided(f"{self} is not shown")
        return Proof(self, False, ("by arithmetic",), Counterexample(None, None, self.a, self.b))

    def follows_from(self) -> list[list[Any]]:
        """Itself."""
        return [[self.claim]]

    def refuted_by(self, found: Counterexample) -> bool:
        """The numbers."""
        return bool((found.left, found.right) == (self.a, self.b) and self.a < self.b)


# ------------------------------------------------------------------------------- printing


def _tiler_text(tiler: Any) -> str:
    if isinstance(tiler, tuple):
        return f"<{','.join(map(_tiler_text, tiler))}>"
    return "_" if tiler is None else str(tiler)
