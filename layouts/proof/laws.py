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
from ..values.symbols import free_symbols, plain
from ..values.tuples import leaves, size, text
from ..values.value import Value
from .agreement import Undecided
from .bijective import Bijective
from .certificates import (
    Claim,
    NeverNegative,
    NotLess,
    Stages,
    evaluate,
    stages_of,
)
from .equivalence import Equivalent
from .law_bases import ChainsAgree, EveryPart, OfResult, without_result
from .prove import Counterexample, Proof, Statement

__all__ = [
    "ComplementLaws",
    "CompositionLaw",
    "DivideLaw",
    "LeftInverseLaw",
    "ProductLaw",
    "RightInverseLaw",
]


# ---------------------------------------------------------------------- composition, inverse


class CompositionLaw(OfResult, ChainsAgree):
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
            return without_result(self, error)
        if not _refines(self.b.shape, shape):
            why = f"the shape {text(shape)} does not refine that of B, {text(self.b.shape)}"
            return Proof(self, False, (why,))
        return super().decide()

    def follows_from(self) -> list[list[Claim]]:
        """The two sides are the same function, and the shape of R refines that of B."""
        return super().follows_from() if _refines(self.b.shape, self.result().shape) else []

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


class _InverseLaw(OfResult, ChainsAgree):
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


# ----------------------------------------------------------- divide, product, complement


class _TilerLaw(OfResult, EveryPart):
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


class ComplementLaws(OfResult, EveryPart):
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
            return Proof(self, True, self._signs(), None, (NeverNegative(self.a, self.b),))
        if free_symbols(self):
            raise Undecided(f"{self} is not shown for all values of the symbols")
        return Proof(self, False, (), Counterexample(None, None, self.a, self.b))

    def _signs(self) -> tuple[str, ...]:
        """Why a difference with symbols is not negative; numbers need no reason."""
        difference = plain(self.a - self.b)
        if not free_symbols(difference):
            return ()
        return (f"{difference} has no negative coefficient once m + 1 replaces each symbol m",)

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
