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
    gf2,
    left_inverse,
    logical_divide,
    logical_product,
    right_inverse,
)
from ..algebra.by_mode import tiler_layout
from ..algebra.complement import by_coordinate, copies_of, covers, moving, one_layout, period
from ..algebra.divide import extent_of
from ..errors import LayoutError, Undecided
from ..values.layout import Layout, cosize, make_layout
from ..values.modes import as_xor_strides, from_columns, has_xor_strides
from ..values.offsets import each_offset
from ..values.steps import too_many
from ..values.stride import ArithTuple, kind, kind_of
from ..values.swizzle import ComposedLayout, Swizzle, layout_for
from ..values.symbols import free_symbols, plain, plain_if_symbolic
from ..values.tuples import checked, is_int, product, shallow, size, text
from .agreement import written
from .bijective import Bijective
from .certificates import (
    Certificate,
    Claim,
    Equal,
    IsLayout,
    NotLess,
    Refines,
    Stages,
    is_still,
    stages_of,
)
from .copies import with_copies
from .equivalence import Equivalent
from .injective import Injective
from .law_bases import ChainsAgree, EveryPart, OfResult, failed
from .prove import Proof, Statement

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
        b = Layout(b) if is_int(b) else b
        if isinstance(b, Swizzle) and isinstance(a, Layout):
            b = ComposedLayout(b, 0, Layout(a.shape))  # it takes the coordinates of A
        if not isinstance(a, Swizzle):
            layout_for("CompositionLaw", a)
        r = None if r is None else layout_for("CompositionLaw", r)
        self._set(a, layout_for("CompositionLaw", b), r)

    def description(self) -> str:
        """A o B"""
        return f"{self.a} o {self.b}"

    def sides(self) -> tuple[Stages, Stages, Any]:
        """A after B, and R."""
        return self._after(), stages_of(self.result()), size(self.b)

    def conditions(self) -> list[tuple[Claim, Any, str]]:
        """The shape of R refines that of B."""
        wanted, shape = self.b.shape, self.result().shape
        why = f"the shape {text(shape)} does not refine that of B, {text(wanted)}"
        return [(Refines(wanted, shape), None, why)]

    def needed(self) -> list[Statement]:
        """A after B is a layout."""
        return [IsOneLayout(self._after())]

    def _after(self) -> Stages:
        return stages_of(self.a) + stages_of(self.b)


class IsOneLayout(Statement):
    """A chain is a layout, whose shape refines that of the last stage."""

    __slots__ = __match_args__ = ("stages",)
    stages: Stages

    def __init__(self, stages: Stages) -> None:
        self._set(stages)

    def sentence(self) -> str:
        """The chain is a layout."""
        return f"{written(self.stages)} is a layout"

    def claims(self) -> list[Claim]:
        """That it is one."""
        return [IsLayout(self.stages)]

    def decide(self) -> Proof:
        """Only refuted, at the index that composition names; a layout would be its result."""
        error = None
        if len(self.stages) == 2:
            try:
                composition(*self.stages)
            except LayoutError as refusal:
                error = refusal
        if error is None or error.counterexample is None:
            raise Undecided(f"{self.sentence()}: not decided")
        return failed(self, IsLayout(self.stages), error.counterexample[0])


class _InverseLaw(OfResult, ChainsAgree):
    """A layout and its inverse R, one after the other, map each index to itself."""

    __slots__ = __match_args__ = ("layout", "r")
    layout: Any

    def __init__(self, layout: Any, r: Any = None) -> None:
        name = type(self).__name__
        self._set(layout_for(name, layout), None if r is None else layout_for(name, r))


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

    def needed(self) -> list[Statement]:
        """L is injective."""
        return [Injective(self.layout)]


# ----------------------------------------------------------- divide, product, complement


class _TilerLaw(OfResult, EveryPart):
    """A statement about a layout and a tiler; a tuple of tilers makes one for each mode."""

    __slots__ = __match_args__ = ("layout", "tiler", "r")
    layout: Any
    tiler: Any

    def __init__(self, layout: Any, tiler: Any, r: Any = None) -> None:
        name = type(self).__name__
        r = None if r is None else layout_for(name, r)
        if isinstance(tiler, tuple) and len(tiler) > len(layout_for(name, layout)):
            raise LayoutError(
                f"{name}: {_tiler_text(shallow(tiler))} has more tilers than {layout} has modes"
            )
        self._set(layout_for(name, layout), _checked_tiler(tiler), r)

    def parts(self) -> list[Statement]:
        """The statements for each tiler; a mode without one stays as it is."""
        return self._parts(self.result())

    def needed(self) -> list[Statement]:
        """The laws of each tiler, about what their own operations return."""
        return self._parts(None)

    def _parts(self, result: Any) -> list[Statement]:
        """The statements, about `result`, or about what the operations return."""
        layout, tiler = self.layout, self.tiler
        if tiler is None:
            return [] if result is None else [Equivalent(layout, result)]
        if not isinstance(tiler, tuple):
            return self.of_one(tiler_layout(tiler), result)
        law, modes = type(self), list(layout)
        tilers = tiler + (None,) * (len(modes) - len(tiler))
        if result is None:
            return [law(*pair) for pair in zip(modes, tilers, strict=True)]
        results = [result[k] for k in range(min(len(tilers), len(result)))]
        same_rank = Same("rank", len(tilers), len(result))
        return [same_rank, *map(law, modes, tilers, results)]

    def of_one(self, tiler: Layout, result: Any) -> list[Statement]:
        """The statements for one tiler, about `result`, or about what the operations return."""
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
        extent = plain_if_symbolic(extent_of(self.layout, tiler))
        try:
            rest = complement(tiler, extent)
        except LayoutError:
            return [ComplementLaws(tiler, extent)]
        if has_xor_strides(tiler):  # the sum of a tile and the rest is an XOR
            rest = as_xor_strides(rest)
        return [CompositionLaw(self.layout, make_layout(tiler, rest), result)]


class ProductLaw(_TilerLaw):
    """``R((a, b)) == A(a) + A*(B(b))`` with A* the complement of A up to size(A) * cosize(B); by
    mode for a tuple.  The product of a composed layout is that of its outer layout."""

    __slots__ = ()
    operation = logical_product

    def description(self) -> str:
        """A times B"""
        return f"{self.layout} times {_tiler_text(self.tiler)}"

    def _parts(self, result: Any) -> list[Statement]:
        layout = self.layout
        if not isinstance(layout, ComposedLayout):
            return super()._parts(result)
        own, outer = (layout.inner, layout.offset), getattr(result, "outer", None)
        given = (getattr(result, "inner", None), getattr(result, "offset", None))
        same_inner = [] if result is None else [Same("swizzle and offset", own, given)]
        return [*same_inner, ProductLaw(layout.outer, self.tiler, outer)]

    def of_one(self, tiler: Layout, result: Any) -> list[Statement]:
        """Mode 0 is the block, and mode 1 the composition of its complement with B."""
        count = cosize(tiler)
        try:
            copies = copies_of(self.layout, count)
        except LayoutError:
            return [ComplementLaws(self.layout)]
        complements: list[Statement] = [ComplementLaws(self.layout, None, copies)]
        if kind_of(copies.modes) is not ArithTuple:  # coordinates go on beyond their last mode
            complements.append(AtLeast(plain(size(copies)), plain(count)))
        if result is None:
            return [*complements, CompositionLaw(copies, tiler)]
        if len(result) != 2:
            return [Same("rank", 2, len(result))]
        return [
            Equivalent(self.layout, result[0]),
            *complements,
            CompositionLaw(copies, tiler, result[1]),
        ]


class ComplementLaws(OfResult, EveryPart):
    """The complement R of L has the offsets at which copies of L fit, in rising order.

    No offset is the sum of an offset of L and one of R in two ways, the next copy would start at
    `cotarget` or beyond, and each stride of R exceeds the largest sum of the modes before it.  If
    L and some layout have every offset of a range (`covers`), L and R have: each offset below
    ``size(filter(L)) * size(R)``.  filter(L) is L without its modes of stride 0.  For a layout that
    is linear over XOR, the sum is the XOR; for a layout of coordinates, the laws hold for each.  Of
    a composed layout that is neither linear nor one layout, R need not fill a range.
    """

    __slots__ = __match_args__ = ("layout", "cotarget", "r")
    operation = complement
    layout: Any
    cotarget: Any

    def __init__(self, layout: Any, cotarget: Any = None, r: Any = None) -> None:
        if cotarget is not None and not isinstance(cotarget, Layout):
            cotarget = checked(cotarget, "cotarget", 1)
        self._set(layout_for("ComplementLaws", layout), cotarget, r)
        if r is not None:
            self._check_result(layout, r)

    def _check_result(self, layout: Any, r: Any) -> None:
        """Raise `LayoutError` unless R is a layout with strides as those of a complement."""
        coordinates = isinstance(layout, Layout) and kind_of(layout.modes) is ArithTuple
        wanted, named = (ArithTuple, "coordinates") if coordinates else (None, "integers")
        fits = isinstance(r, Layout) and all(
            is_still(stride) or kind([stride]) is wanted for _, stride in r.modes
        )
        if not fits:
            raise LayoutError(
                f"ComplementLaws: R is {r} and must be a Layout whose strides are {named}, as "
                f"those of the complement of {layout} are"
            )

    def description(self) -> str:
        """The complement of L"""
        up_to = "" if self.cotarget is None else f" up to {text(self.cotarget)}"
        return f"the complement of {self.layout}{up_to}"

    def parts(self) -> list[Statement]:
        """L and R together are bijective, or injective and far-reaching; the strides of R grow."""
        result = self.result()
        if isinstance(self.layout, Layout) and kind_of(self.layout.modes) is ArithTuple:
            return self._each_coordinate(result)
        if isinstance(self.layout, ComposedLayout) and not _is_bit_matrix(self.layout):
            own, one = _moving(self.layout), one_layout(self.layout)
            if isinstance(one, Layout):
                return [Equivalent(own, one), ComplementLaws(one, self.cotarget, result)]
        both, whole = _with_copies(self.layout, result)
        parts: list[Statement] = [Bijective(both) if whole else Injective(both)]
        if self.cotarget is not None:
            reach = size(both) if whole else _next_copy(both, result)
            parts.append(AtLeast(plain(reach), _count(self.cotarget)))
        return parts + _rising(result)

    def needed(self) -> list[Statement]:
        """L is injective apart from its modes of stride 0."""
        return [Injective(_moving(self.layout))]

    def _each_coordinate(self, result: Any) -> list[Statement]:
        """The laws of the steps of each coordinate."""
        steps, free = by_coordinate(self.layout), by_coordinate(result)
        none = Layout(1, 0)
        laws = (
            ComplementLaws(steps.get(path, none), _entry(self.cotarget, path), free.get(path, none))
            for path in sorted({*steps, *free})
        )
        return [Injective(result), *laws]

    def decide(self) -> Proof:
        """Decided part by part; the reason adds whether L and R have every offset."""
        proof = super().decide()
        plain_layout = isinstance(self.layout, Layout) and kind_of(self.layout.modes) is None
        if not proof or not plain_layout or free_symbols(self) or covers(self.layout):
            return proof
        note = f"no layout has, together with {self.layout}, every offset of a range"
        return Proof(self, True, (*proof.reason, note), None, proof.certificates)


def _rising(result: Layout) -> list[Statement]:
    """Each stride exceeds the largest sum of the modes before it."""
    parts: list[Statement] = []
    reach: Any = 0
    for extent, stride in result.modes:
        if not (type(extent) is int and extent == 1):
            parts.append(AtLeast(stride, plain(reach + 1)))
            reach = plain(reach + (extent - 1) * stride)
    return parts


def _with_copies(layout: Any, result: Layout) -> tuple[Any, bool]:
    """The sums of an offset of L and one of R, as a layout, without the modes of L of stride 0; and
    whether they are to be a range of offsets."""
    if isinstance(layout, Layout) and not has_xor_strides(layout):
        return make_layout(_moving(layout), result), covers(layout)
    if not _is_bit_matrix(layout):
        return with_copies(_moving(layout), result), False
    columns = [column for each in (layout, result) for _, column in gf2.placed_columns(each)]
    return from_columns(columns), True


def _is_bit_matrix(layout: Any) -> bool:
    try:
        gf2.placed_columns(layout)
    except LayoutError:
        return False
    return True


def _moving(layout: Any) -> Any:
    """`layout` without its modes of stride 0."""
    return moving(layout) if isinstance(layout, Layout) else layout.over(moving(layout.outer))


def _next_copy(both: Any, result: Layout) -> Any:
    """Where the next copy of L may start, beyond L and its copies and in the steps of R."""
    if isinstance(both, Layout):
        return period(both)
    if too_many(size(both)):
        raise Undecided(f"the largest of the {size(both)} offsets of {both} is not looked for")
    return max(max(each_offset(both)) + 1, *(s * d for s, d in result.modes))


def _entry(cotarget: Any, path: tuple[int, ...]) -> Any:
    """The entry of `cotarget` that bounds the coordinate at `path`."""
    bound = cotarget.shape if isinstance(cotarget, Layout) else cotarget
    if bound is None:
        return None
    for k in path:
        entries = bound if isinstance(bound, tuple) else (bound,)
        bound = entries[k] if k < len(entries) else 1
    return bound


def _count(cotarget: Any) -> Any:
    """A cotarget as a number of offsets."""
    return plain(size(cotarget) if isinstance(cotarget, Layout) else product(cotarget))


class _OfNumbers(Statement):
    """A statement that is one claim about `a` and `b`, which needs no witness."""

    __slots__ = ()

    def claims(self) -> list[Claim]:
        """The claim alone."""
        raise NotImplementedError

    def decide(self) -> Proof:
        """As the claim computes it."""
        (claim,) = self.claims()
        if claim.established_by(None):
            return Proof(self, True, self.why(), None, (Certificate(claim, None),))
        if free_symbols(self):
            raise Undecided(f"{self.sentence()} is not shown for all values of the symbols")
        return failed(self, claim, None)

    def why(self) -> tuple[str, ...]:
        """The reason; numbers need none."""
        return ()


class Same(_OfNumbers):
    """The `what` of two layouts, such as the rank, is the same."""

    __slots__ = __match_args__ = ("what", "a", "b")
    what: str
    a: Any
    b: Any

    def __init__(self, what: str, a: Any, b: Any) -> None:
        self._set(what, a, b)

    def sentence(self) -> str:
        """What it is, and what it must be."""
        return f"the {self.what} is {text(self.b)}, as it must be {text(self.a)}"

    def claims(self) -> list[Claim]:
        """The two are equal."""
        return [Equal(self.a, self.b)]


class AtLeast(_OfNumbers):
    """``a >= b`` for every value of the symbols."""

    __slots__ = __match_args__ = ("a", "b")
    a: Any
    b: Any

    def __init__(self, a: Any, b: Any) -> None:
        self._set(a, b)

    def sentence(self) -> str:
        """The inequality."""
        return f"{self.a} >= {self.b}"

    def claims(self) -> list[Claim]:
        """The inequality."""
        return [NotLess(self.a, self.b)]

    def why(self) -> tuple[str, ...]:
        """The signs of the coefficients, if there are symbols."""
        difference = plain(self.a - self.b)
        if not free_symbols(difference):
            return ()
        if "ceiling" in str(difference):
            return (f"{difference} is at least 0, since n <= d*ceiling(n/d) <= n + d - 1",)
        return (f"{difference} has no negative coefficient once m + 1 replaces each symbol m",)


# ------------------------------------------------------------------------------- printing


def _checked_tiler(tiler: Any) -> Any:
    """`tiler`, if it is one; raises `LayoutError` if not."""
    if isinstance(tiler, tuple):
        return tuple(map(_checked_tiler, tiler))
    if tiler is not None:
        tiler_layout(tiler)
    return tiler


def _tiler_text(tiler: Any) -> str:
    if isinstance(tiler, tuple):
        return f"<{','.join(map(_tiler_text, tiler))}>"
    return "_" if tiler is None else str(tiler)
