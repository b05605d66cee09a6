"""The laws of the operations as statements: what `prove` decides for given layouts.

>>> from layouts import prove
>>> print(prove(CompositionLaw(Layout((6, 2), (8, 2)), Layout((4, 3), (3, 1)))))
proved: ((2,2),3):((24,2),8) is (6,2):(8,2) o (4,3):(3,1)
  an index is x0 + 2*x1 + 4*x2 with x0 < 2, x1 < 2, x2 < 3
  (4,3):(3,1) maps x0 + 2*x1 + 4*x2 to 3*x0 + 6*x1 + x2: division by 4 gives the quotient x2
  and the remainder x0 + 2*x1 <= 3
  (6,2):(8,2) maps 3*x0 + 6*x1 + x2 to 24*x0 + 2*x1 + 8*x2: division by 6 gives the quotient
  x1 and the remainder 3*x0 + x2 <= 5
  ((2,2),3):((24,2),8) maps x0 + 2*x1 + 4*x2 to 24*x0 + 2*x1 + 8*x2: division by 2 gives the
  quotient x1 + 2*x2 and the remainder x0 <= 1; division by 2 gives the quotient x2 and the
  remainder x1 <= 1
  both sides are 24*x0 + 2*x1 + 8*x2

A law checks the result that it is given, or else the result of the operation.  If the operation
has no result, the law is refuted, for the reason that the operation gives.
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
from ..algebra.by_mode import tiler_layout
from ..errors import LayoutError
from ..values.arith import equal, less
from ..values.layout import Layout, cosize, make_layout
from ..values.modes import assembled
from ..values.stride import kind
from ..values.swizzle import ComposedLayout, layout_for
from ..values.symbols import free_symbols, plain
from ..values.tuples import idx2crd, leaves, size, text
from ..values.value import Value
from .bijective import Bijective
from .certificates import (
    Claim,
    Holds,
    NeverNegative,
    NotLess,
    SameFunction,
    Stages,
    evaluate,
    stages_of,
)
from .equivalence import Undecided, agree, floors, written
from .prove import Counterexample, Proof, Statement, prove

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
    """Whether `a` and `b` are the same function of the index, whatever their shapes; a `Proof`.

    >>> bool(equivalent(Layout((4, 2)), Layout(8))), Layout((4, 2)) == Layout(8)
    (True, False)
    >>> print(equivalent(Layout((4, 1), (1, 0)), Layout(4)))
    proved: (4,1):(1,0) and 4:1 are the same function of the index
      as sums of floor(i/P) with P below the size, (4,1):(1,0) and 4:1 are both i
      beyond the size they differ: at index 4 the first is 0, the second 4
    """
    return prove(Equivalent(a, b))


class _Law(Value):
    """Two chains of functions agree; what the laws below have in common."""

    __slots__ = ()

    def sides(self) -> tuple[Stages, Stages, Any]:
        """Left, right, and the number of indices; raises `LayoutError` if there is no result."""
        raise NotImplementedError

    def shape(self) -> Any:
        """The shape of the counterexample's coordinate."""
        raise NotImplementedError

    def decide(self) -> Proof:
        """Decided as in `equivalence`."""
        try:
            left, right, count = self.sides()
        except LayoutError as error:
            return _without_result(self, error)
        found = agree(left, right, count)
        if found.certificate is None:
            return _differs(self, left, right, found.index)
        return Proof(self, True, found.reason, None, (found.certificate,))

    def follows_from(self) -> list[list[Claim]]:
        """The two sides are the same function."""
        return [[SameFunction(*self.sides())]]

    def refuted_by(self, found: Counterexample) -> bool:
        """The two sides, computed again, differ."""
        left, right, count = self.sides()
        values = [evaluate(side, found.index) for side in (left, right)]
        return bool(
            found.index < count and values == [found.left, found.right] and values[0] != values[1]
        )


def _differs(law: _Law, left: Stages, right: Stages, index: Any) -> Proof:
    coord, values = idx2crd(index, law.shape()), [evaluate(side, index) for side in (left, right)]
    reason = (
        f"at index {index}, coordinate {text(coord)}, {written(left)} is {text(values[0])} and "
        f"{written(right)} is {text(values[1])}"
    )
    found = Counterexample(index, coord, *values)
    return Proof(law, False, (reason,), found)


def _without_result(law: Any, error: LayoutError) -> Proof:
    """The refutation of a law whose operation has no result; with symbols it is undecided."""
    if free_symbols(law) or isinstance(error, Undecided):
        raise Undecided(str(error)) from None
    found = None if error.counterexample is None else Counterexample(*error.counterexample)
    return Proof(law, False, (str(error),), found)


class Equivalent(_Law):
    """`a` and `b` have the same size, and the same value at every index."""

    __slots__ = __match_args__ = ("a", "b")
    a: Layout | ComposedLayout
    b: Layout | ComposedLayout

    def __init__(self, a: Layout | ComposedLayout, b: Layout | ComposedLayout) -> None:
        self._set(layout_for("Equivalent", a), layout_for("Equivalent", b))

    def __str__(self) -> str:
        return f"{self.a} and {self.b} are the same function of the index"

    def sides(self) -> tuple[Stages, Stages, Any]:
        """The two layouts."""
        return stages_of(self.a), stages_of(self.b), plain(size(self.a))

    def shape(self) -> Any:
        """The shape of the first."""
        return self.a.shape

    def decide(self) -> Proof:
        """Decided as every law; the reason adds where they differ beyond the size."""
        sizes = [plain(size(layout)) for layout in (self.a, self.b)]
        if not equal(*sizes):
            if free_symbols(self):
                raise Undecided(f"the sizes {sizes[0]} and {sizes[1]} are not shown to be equal")
            return _sizes_differ(self, *sizes)
        proof = super().decide()
        beyond = _beyond(self.a, self.b) if proof else ()
        return Proof(self, proof.holds, (*proof.reason, *beyond), *proof._fields()[3:])

    def refuted_by(self, found: Counterexample) -> bool:
        """They differ at the index, or only one of them has it."""
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
    """Where two layouts that agree below their size first differ beyond it."""
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
        f"beyond the size they differ: at index {at} the first is {text(a(at))}, the second "
        f"{text(b(at))}",
    )


class _OfResult(Value):
    """A statement about the result R of an operation on operands.

    The fields are the operands and then R, which is None for what the operation returns.
    """

    __slots__ = ()
    r: Any
    #: The operation whose result this is about.
    operation: Callable[..., Any]

    def result(self) -> Any:
        """R as given, or what the operation returns."""
        *operands, given = self._fields()
        return type(self).operation(*operands) if given is None else given

    def description(self) -> str:
        """What R is, in the operands."""
        raise NotImplementedError

    def __str__(self) -> str:
        try:
            return f"{self.result()} is {self.description()}"
        except LayoutError:
            return f"a layout is {self.description()}"

    def __repr__(self) -> str:
        given = list(self._fields())
        while given and given[-1] is None:
            given.pop()
        return f"{type(self).__name__}({', '.join(map(repr, given))})"


# ---------------------------------------------------------------------- composition, inverse


class CompositionLaw(_OfResult, _Law):
    """``R(c) == A(B(c))`` for every coordinate c of B, and the shape of R refines that of B.

    B is a layout; for a tuple of tilers, state the law of each mode.
    """

    __slots__ = __match_args__ = ("a", "b", "r")
    operation = composition
    a: Any
    b: Any

    def __init__(self, a: Any, b: Any, r: Any = None) -> None:
        self._set(a, Layout(b) if type(b) is int else b, r)

    def description(self) -> str:
        """A o B"""
        return f"{self.a} o {self.b}"

    def sides(self) -> tuple[Stages, Stages, Any]:
        """A after B, and R."""
        return stages_of(self.a) + stages_of(self.b), stages_of(self.result()), size(self.b)

    def shape(self) -> Any:
        """The shape of B."""
        return self.b.shape

    def decide(self) -> Proof:
        """Decided as every law, once the shape of R is seen to refine that of B."""
        try:
            shape = self.result().shape
        except LayoutError as error:
            return _without_result(self, error)
        if not _refines(self.b.shape, shape):
            why = f"the shape {text(shape)} does not refine that of B, {text(self.b.shape)}"
            return Proof(self, False, (why,))
        return super().decide()

    def refuted_by(self, found: Counterexample) -> bool:
        """The two sides differ; without R, A(B(i)) is not the value that a layout must have."""
        if self.r is None and found.index is not None:
            value = evaluate(stages_of(self.a) + stages_of(self.b), found.index)
            return bool(value == found.left and value != found.right)
        return super().refuted_by(found)


def _refines(shape: Any, finer: Any) -> bool:
    """Whether `finer` refines `shape`: `compatible`, with polynomials compared as such."""
    if not isinstance(shape, tuple):
        return equal(plain(shape), plain(size(finer)))
    return (
        isinstance(finer, tuple) and len(shape) == len(finer) and all(map(_refines, shape, finer))
    )


class _InverseLaw(_OfResult, _Law):
    """A layout and its inverse R, one after the other, map each index to itself."""

    __slots__ = __match_args__ = ("layout", "r")
    layout: Any

    def __init__(self, layout: Any, r: Any = None) -> None:
        self._set(layout, r)


class RightInverseLaw(_InverseLaw):
    """``L(R(i)) == i`` for every i below the size of R."""

    __slots__ = ()
    operation = right_inverse

    def description(self) -> str:
        """A right inverse of L"""
        return f"a right inverse of {self.layout}"

    def sides(self) -> tuple[Stages, Stages, Any]:
        """L after R, and the identity."""
        r = self.result()
        count = plain(size(r))
        return stages_of(self.layout) + stages_of(r), (Layout(count, 1),), count

    def shape(self) -> Any:
        """The shape of R."""
        return self.result().shape


class LeftInverseLaw(_InverseLaw):
    """``R(L(i)) == i`` for every index i of L."""

    __slots__ = ()
    operation = left_inverse

    def description(self) -> str:
        """A left inverse of L"""
        return f"a left inverse of {self.layout}"

    def sides(self) -> tuple[Stages, Stages, Any]:
        """R after L, and the identity."""
        count = plain(size(self.layout))
        return stages_of(self.result()) + stages_of(self.layout), (Layout(count, 1),), count

    def shape(self) -> Any:
        """The shape of L."""
        return self.layout.shape


# ------------------------------------------------------------------------------- by parts


class _ByParts(Value):
    """A statement that holds exactly if each of its parts does."""

    __slots__ = ()

    def parts(self) -> list[Statement]:
        """The statements; raises `LayoutError` if there is no result."""
        raise NotImplementedError

    def decide(self) -> Proof:
        """Decide the parts one after the other; the first that fails refutes it."""
        try:
            parts = self.parts()
        except LayoutError as error:
            return _without_result(self, error)
        proofs = [part.decide() for part in parts]
        for proof in proofs:
            if not proof:
                reason = (f"false: {proof.statement}", *proof.reason)
                return Proof(self, False, reason, proof.counterexample)
        reason = tuple(
            line for proof in proofs for line in (f"{proof.statement}, because", *proof.reason)
        )
        return Proof(self, True, reason, None, tuple(map(Part, proofs)))

    def follows_from(self) -> list[list[Claim]]:
        """Every part holds."""
        return [[Holds(part) for part in self.parts()]]

    def refuted_by(self, found: Any) -> bool:
        """It refutes a part."""
        return any(part.refuted_by(found) for part in self.parts())


class Part(Value):
    """A certificate that is the whole proof of another statement."""

    __slots__ = __match_args__ = ("proof",)
    proof: Proof

    def __init__(self, proof: Proof) -> None:
        self._set(proof)

    @property
    def claim(self) -> Holds:
        """The statement holds."""
        return Holds(self.proof.statement)

    def verify(self) -> bool:
        """It is a proof, not a refutation, and verifies."""
        return self.proof.holds and self.proof.verify()


class _TilerLaw(_OfResult, _ByParts):
    """A statement about a layout and a tiler; a tuple of tilers makes one for each mode."""

    __slots__ = __match_args__ = ("layout", "tiler", "r")
    layout: Any
    tiler: Any

    def __init__(self, layout: Any, tiler: Any, r: Any = None) -> None:
        self._set(layout, tiler, r)

    def parts(self) -> list[Statement]:
        """The statements for each tiler; a mode without one stays as it is."""
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

    def description(self) -> str:
        """A divided by T"""
        return f"{self.layout} divided by {_tiler_text(self.tiler)}"

    def of_one(self, tiler: Layout, result: Any) -> list[Statement]:
        """R is the composition of A with the tile and its complement."""
        rest = complement(tiler, plain(size(self.layout)))
        return [CompositionLaw(self.layout, make_layout(tiler, rest), result)]


class ProductLaw(_TilerLaw):
    """``R((a, b)) == A(a) + A*(B(b))`` with A* the complement of A up to size(A) * cosize(B); by
    mode for a tuple."""

    __slots__ = ()
    operation = logical_product

    def description(self) -> str:
        """A times B"""
        return f"{self.layout} times {_tiler_text(self.tiler)}"

    def of_one(self, tiler: Layout, result: Any) -> list[Statement]:
        """Mode 0 is the block, and mode 1 the composition of its complement with B."""
        cotarget = plain(size(self.layout) * cosize(tiler))
        copies = complement(self.layout, cotarget)
        return [
            Equivalent(self.layout, result[0]),
            ComplementLaws(self.layout, cotarget, copies),
            CompositionLaw(copies, tiler, result[1]),
        ]


class ComplementLaws(_OfResult, _ByParts):
    """The complement R of L fills the offsets that L leaves free, in rising order.

    Each offset below ``size(filter(L)) * size(R)`` is the sum of exactly one offset of L and one of
    R, and there are at least `cotarget` of them.  Each stride of R exceeds the largest sum of the
    modes before it.  filter(L) is L without its modes of stride 0.
    """

    __slots__ = __match_args__ = ("layout", "cotarget", "r")
    operation = complement
    layout: Layout
    cotarget: Any

    def __init__(self, layout: Layout, cotarget: Any = None, r: Any = None) -> None:
        self._set(layout, cotarget, r)

    def description(self) -> str:
        """The complement of L"""
        up_to = "" if self.cotarget is None else f" up to {self.cotarget}"
        return f"the complement of {self.layout}{up_to}"

    def parts(self) -> list[Statement]:
        """L and R together are bijective, large enough, and the strides of R grow."""
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

    def decide(self) -> Proof:
        """By the signs of the coefficients, where m + 1 replaces each positive symbol m."""
        if less(plain(self.b - 1), self.a):
            reason = "by arithmetic"
            if free_symbols(self):
                reason = (
                    f"{plain(self.a - self.b)} has no negative coefficient once m + 1 replaces "
                    f"each symbol m"
                )
            return Proof(self, True, (reason,), None, (NeverNegative(self.a, self.b),))
        if free_symbols(self):
            raise Undecided(f"{self} is not shown for all values of the symbols")
        return Proof(self, False, ("by arithmetic",), Counterexample(None, None, self.a, self.b))

    def follows_from(self) -> list[list[Claim]]:
        """The inequality."""
        return [[NotLess(self.a, self.b)]]

    def refuted_by(self, found: Counterexample) -> bool:
        """The two numbers are in the other order."""
        return bool((found.left, found.right) == (self.a, self.b) and self.a < self.b)


# ------------------------------------------------------------------------------- printing


def _tiler_text(tiler: Any) -> str:
    if isinstance(tiler, tuple):
        return f"<{','.join(map(_tiler_text, tiler))}>"
    return "_" if tiler is None else str(tiler)
