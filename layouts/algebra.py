"""The algebra: operations that make layouts from layouts.

Each gives a result only if it provably satisfies the law in its docstring; otherwise it raises
`LayoutError` with the condition that fails and the smallest index that shows it.  Where C++ CuTe
and the CuTe DSL are right, the result is structurally theirs.

A tiler is what the right operand of a by-mode operation may be: a Layout, an integer n (for n:1),
or a tuple of tilers, one per mode; None leaves a mode whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

from .collision import collision
from .errors import LayoutError
from .layout import Layout, Mode, cosize, flat_modes, make_layout
from .swizzle import ComposedLayout, Swizzle
from .tuples import IntTuple, idx2crd, size, text, unflatten

#: A Layout, an integer, None, or a tuple of tilers.
Tiler: TypeAlias = Any
AnyLayout = TypeVar("AnyLayout", Layout, ComposedLayout)

#: Where the sufficient test fails, a composition of up to this many indices is decided by looking.
ENUMERATION_LIMIT = 1 << 22

__all__ = [
    "coalesce",
    "complement",
    "composition",
    "logical_divide",
    "right_inverse",
    "zipped_divide",
]


# --------------------------------------------------------------------------------- coalesce


def coalesce(layout: AnyLayout, profile: IntTuple = None) -> AnyLayout:
    """The same function of the index with the fewest modes (C++ ``coalesce``; whitepaper 3.2).

    ``R(i) == L(i)`` for every i below ``size(L) == size(R)``.  With a `profile`, each mode that
    faces a leaf of it is coalesced by itself; what the leaves are does not matter, except that None
    leaves a mode as it is.  Modes beyond the profile stay.

    >>> print(coalesce(Layout((2, (1, 6)), (1, (6, 2)))))
    12:1
    >>> print(coalesce(Layout((2, (1, 6)), (1, (6, 2))), (1, 1)))
    (2,6):(1,2)
    """
    if isinstance(layout, ComposedLayout):
        return layout.over(coalesce(layout.outer, profile))
    if isinstance(profile, tuple):
        return _by_mode("coalesce", layout, profile, _coalesce_unless_none, keep_rest=True)
    modes = [mode for mode in flat_modes(layout) if mode[0] != 1]
    return _assemble(_merged(modes))


def _coalesce_unless_none(layout: Layout, profile: IntTuple) -> Layout:
    return layout if profile is None else coalesce(layout, profile)


def _merged(modes: Sequence[Mode]) -> list[Mode]:
    """`modes` with each neighbour that only continues the mode before it merged into that."""
    merged: list[Mode] = []
    for extent, stride in modes:
        if merged and stride == merged[-1][0] * merged[-1][1]:
            merged[-1] = (merged[-1][0] * extent, merged[-1][1])
        else:
            merged.append((extent, stride))
    return merged


def _assemble(modes: Sequence[Mode]) -> Layout:
    """The flat layout of `modes`; one mode has integer shape, and none is 1:0."""
    if len(modes) <= 1:
        return Layout(*(modes[0] if modes else (1, 0)))
    return Layout(tuple(s for s, _ in modes), tuple(d for _, d in modes))


def _extended(layout: Layout) -> list[Mode]:
    """`layout` on all integers from 0: merged modes, of which the last has no end (its extent is
    not meant), so that a last extent of 1 is not dropped (C++ ``coalesce_x``)."""
    *modes, (last, stride) = flat_modes(layout) or [(1, 0)]
    return _merged([mode for mode in modes if mode[0] != 1] + [(max(last, 2), stride)])


# ------------------------------------------------------------------------------ composition


def composition(a: Any, b: Tiler) -> Any:
    """The layout that goes through `b`, then through `a` (C++ ``composition``; whitepaper 3.3).

    ``R(c) == A(B(c))`` for every coordinate c of B, and the shape of R refines that of B.  A tuple
    of tilers composes mode by mode and drops the modes of A beyond it; None passes a mode whole.
    A swizzle, or a composed layout, after a layout gives a composed layout.

    Raises `LayoutError`, with the smallest index that shows it, if no layout is equal to A(B(c)).

    >>> print(composition(Layout((6, 2), (8, 2)), Layout((4, 3), (3, 1))))
    ((2,2),3):((24,2),8)
    >>> print(composition(Layout((8, 64), (64, 1)), (4, None)))
    (4,64):(64,1)
    >>> print(composition(Swizzle(3, 3, 3), Layout((8, 64), (64, 1))))
    S<3,3,3> o 0 o (8,64):(64,1)
    """
    if isinstance(a, Swizzle):
        return _swizzled(a, b)
    if isinstance(a, ComposedLayout):
        return a.over(_composed_layout(a.outer, b))
    if isinstance(b, ComposedLayout):
        return _after_composed(a, b)
    return _composed_layout(a, b)


def _swizzled(a: Swizzle, b: Any) -> Any:
    if not isinstance(b, Layout):
        raise LayoutError(f"composition of {a} with {b!r}: a swizzle goes after a Layout")
    return ComposedLayout(a, 0, b) if a.bits else b


def _after_composed(a: Layout, b: ComposedLayout) -> ComposedLayout:
    if isinstance(b.inner, Swizzle):
        raise LayoutError(
            f"composition of {a} with {b}: a layout after a swizzle is neither a layout nor a "
            f"composed layout; compose the layouts first, and swizzle last"
        )
    return ComposedLayout(_composed_layout(a, b.inner), b.offset, b.outer)


def _composed_layout(a: Layout, b: Tiler) -> Layout:
    if not isinstance(a, Layout):
        raise LayoutError(f"composition: {a!r} is no Layout, Swizzle or ComposedLayout")
    if isinstance(b, tuple):
        return _by_mode("composition", a, b, _composed_layout, keep_rest=False)
    if b is None:
        return a
    b = _as_layout(b)
    modes, form = _extended(a), _linear_form(b)
    read = _read_through(modes, form)
    return _from_digits(read, b) if read is not None else _decided(a, b)


def _as_layout(tiler: Any) -> Layout:
    if isinstance(tiler, Layout):
        return tiler
    if type(tiler) is int:
        return Layout(tiler)
    raise LayoutError(
        f"tiler {tiler!r}: it must be a Layout, an integer, None, or a tuple of these, one per mode"
    )


def _by_mode(
    name: str,
    layout: Layout,
    tilers: tuple[Tiler, ...],
    operation: Callable[[Layout, Tiler], Layout],
    keep_rest: bool,
) -> Layout:
    """`operation` on each mode and its tiler; the modes beyond the tilers are kept or dropped."""
    modes = _modes_for(name, layout, tilers)
    done = map(operation, modes, tilers)
    return make_layout(*done, *(modes[len(tilers) :] if keep_rest else ()))


def _modes_for(name: str, layout: Layout, tilers: tuple[Tiler, ...]) -> list[Layout]:
    if len(tilers) > len(layout):
        raise LayoutError(
            f"{name}: {len(tilers)} tilers for the {len(layout)} modes of {layout}; give at most "
            f"one per mode"
        )
    return list(layout)


# How composition works.  The offset B(c) is a linear form: a sum of digits times weights, one digit
# per leaf of B.  To send it through a mode s:d of A is to divide it by s with remainder.  What s
# divides of a weight goes to the quotient; a digit whose remainder overruns s is split where it
# does; and if the remainders together stay below s, nothing carries, and division acts digit by
# digit.  So the digits' extents and the strides they have collected are the answer, and the proof.


class _Digit:
    """A digit of the form: its extent, its weight in what is still to divide, its stride so far."""

    __slots__ = ("extent", "stride", "weight")

    def __init__(self, extent: int, weight: int, stride: int = 0) -> None:
        self.extent, self.weight, self.stride = extent, weight, stride

    def split(self, at: int) -> list[_Digit]:
        """Two digits for one: below `at`, and in steps of `at`."""
        high = _Digit(self.extent // at, self.weight * at, self.stride * at)
        return [_Digit(at, self.weight, self.stride), high]


#: The digits of each leaf of B, the lowest first.
Form: TypeAlias = "list[list[_Digit]]"


def _linear_form(b: Layout) -> Form:
    return [[_Digit(extent, stride)] for extent, stride in flat_modes(b)]


def _read_through(modes: Sequence[Mode], form: Form) -> Form | None:
    """The digits of `form` with the strides that `modes` give them, or None where one carries."""
    *bounded, (_, last_stride) = modes
    for extent, stride in bounded:
        form = [[part for digit in leaf for part in _cut(digit, extent)] for leaf in form]
        digits = [digit for leaf in form for digit in leaf]
        if sum((digit.weight % extent) * (digit.extent - 1) for digit in digits) >= extent:
            return None
        for digit in digits:
            if digit.extent == 1:  # reads nothing: keep C++'s stride
                digit.weight = -(-digit.weight // extent)
            else:
                digit.weight, remainder = divmod(digit.weight, extent)
                digit.stride += remainder * stride
    for leaf in form:
        for digit in leaf:
            digit.stride += digit.weight * last_stride
    return form


def _cut(digit: _Digit, extent: int) -> list[_Digit]:
    """`digit`, split if its part below `extent` overruns that at a place where it can be split."""
    remainder = digit.weight % extent
    if not remainder or remainder * (digit.extent - 1) < extent or extent % remainder:
        return [digit]
    at = extent // remainder
    return digit.split(at) if digit.extent % at == 0 else [digit]


def _from_digits(form: Form, b: Layout) -> Layout:
    """The layout of `form`: each leaf of `b` becomes its digits."""
    return _refined(b, [[(digit.extent, digit.stride) for digit in leaf] for leaf in form])


def _refined(b: Layout, modes_of_leaves: Sequence[Sequence[Mode]]) -> Layout:
    """`b` with each leaf replaced by modes, a single one without parentheses."""
    parts = [_assemble(modes) for modes in modes_of_leaves]
    shape = unflatten([part.shape for part in parts], b.shape)
    return Layout(shape, unflatten([part.stride for part in parts], b.shape))


# Where a digit carries there may still be a layout, by coincidence.  It can only be one: along each
# leaf of B the values decide it, since the first extent must end where they stop being linear.


def _decided(a: Layout, b: Layout) -> Layout:
    """The one layout equal to A(B(c)), found by looking at every index, or `LayoutError`."""
    if size(b) > ENUMERATION_LIMIT:
        raise LayoutError(
            f"composition of {a} with {b} is not decided: digits carry from one mode of A into the "
            f"next, and {size(b)} indices are too many to look at; split B where the modes of A end"
        )
    step, modes_of_leaves = 1, []
    for extent, stride in flat_modes(b):
        values = [a(i * stride) for i in range(extent)]
        modes_of_leaves.append(_modes_of(values, a, b, step))
        step *= extent
    result = _refined(b, modes_of_leaves)
    for i in range(size(b)):
        if a(b(i)) != result(i):
            raise _refusal(a, b, i, result(i), "the strides that the values before it fix would give")
    return result


def _modes_of(values: Sequence[int], a: Layout, b: Layout, step: int) -> list[Mode]:
    """The coalesced modes that `values`, a leaf of B read through A, must have; its index in B
    advances by `step` from one to the next."""
    if len(values) == 1:
        return []
    stride = values[1]
    run = next((i for i, value in enumerate(values) if value != i * stride), len(values))
    if len(values) % run:
        reason = f"{run} entries do not divide {len(values)}, and going on evenly would give"
        raise _refusal(a, b, run * step, run * stride, reason)
    return [(run, stride), *_modes_of(values[::run], a, b, step * run)]


def _refusal(a: Layout, b: Layout, index: int, other: int, reason: str) -> LayoutError:
    return LayoutError(
        f"composition of A = {a} with B = {b} has no layout: at index {index}, coordinate "
        f"{text(idx2crd(index, b.shape))} of B, A(B({index})) = A({b(index)}) = {a(b(index))}, but "
        f"{reason} {other}; choose extents and strides of B that divide, or are divided by, the "
        f"extents of A"
    )


# ------------------------------------------------------------------------------- complement


def complement(layout: Layout, cotarget: int | None = None) -> Layout:
    """The layout of the offsets where copies of `layout` go to fill what it leaves out.

    Every offset below ``size(filter(L)) * size(R)``, which is at least `cotarget`, is the sum of
    exactly one offset of L and one of R, and R grows with its index (C++ ``complement``; whitepaper
    3.4).  `cotarget` defaults to ``cosize(L)``.  Modes of stride 0 take no part.

    Raises `LayoutError` unless the strides, in rising order, are each a multiple of the extent
    times the stride before: if not, two indices collide, or no copies fill the gaps.

    >>> print(complement(Layout((2, 2), (1, 6)), 24), complement(Layout(4, 2)))
    (3,2):(2,12) 2:1
    """
    if not isinstance(layout, Layout):
        raise LayoutError(f"complement of {layout}: only a Layout has one")
    target = cosize(layout) if cotarget is None else cotarget
    if type(target) is not int or target < 1:
        raise LayoutError(f"complement: cotarget {target!r} must be an integer of at least 1")
    gaps, reach = [], 1
    for extent, stride in _filtered(layout):
        if stride % reach:
            raise _no_complement(layout, stride, reach)
        gaps.append((stride // reach, reach))
        reach = extent * stride
    gaps.append((-(-target // reach), reach))
    return _assemble(_merged([gap for gap in gaps if gap[0] != 1]))


def _filtered(layout: Layout) -> list[Mode]:
    """The merged modes that move the offset, by rising stride (C++ ``filter``, sorted)."""
    modes = _merged([mode for mode in flat_modes(layout) if mode[0] != 1 and mode[1] != 0])
    return sorted(modes, key=lambda mode: (mode[1], mode[0]))


def _no_complement(layout: Layout, stride: int, reach: int) -> LayoutError:
    pair = collision(_assemble(_filtered(layout)))
    if pair is None:
        why = f"no copies of it fill its gaps, since {stride} is no multiple of {reach}"
    else:
        offset = _assemble(_filtered(layout))(pair[0])
        why = f"it has the offset {offset} more than once, and {stride} is no multiple of {reach}"
    return LayoutError(
        f"complement of {layout}: {why}; by rising stride, each stride must be a multiple of the "
        f"extent times the stride before it"
    )


# ----------------------------------------------------------------------------------- divide


def logical_divide(layout: AnyLayout, tiler: Tiler) -> AnyLayout:
    """`layout` with each tiled mode as (tile, rest): inside a tile, and from tile to tile.

    For a Layout B, ``R((t, r)) == A(B(t) + complement(B, size(A))(r))`` (C++ ``logical_divide``).
    A tuple of tilers divides mode by mode; None, and modes beyond the tuple, stay as they are.

    >>> print(logical_divide(Layout((4, 2, 3), (2, 1, 8)), Layout(4, 2)))
    ((2,2),(2,3)):((4,1),(2,8))
    >>> print(logical_divide(Layout((8, 64), (64, 1)), (4, None)))
    ((4,2),64):((64,256),1)
    """
    if isinstance(layout, ComposedLayout):
        return layout.over(logical_divide(layout.outer, tiler))
    if tiler is None:
        return layout
    if isinstance(tiler, tuple):
        return _by_mode("logical_divide", layout, tiler, logical_divide, keep_rest=True)
    tile = _as_layout(tiler)
    return _composed_layout(layout, make_layout(tile, complement(tile, size(layout))))


def zipped_divide(layout: AnyLayout, tiler: Tiler) -> AnyLayout:
    """`layout` as ((tile modes), (rest modes)): `logical_divide` with the halves gathered.

    ``R[0] == composition(A, tiler)``, and ``R(0, r)`` is where tile r starts (C++
    ``zipped_divide``).  Modes beyond a tuple of tilers join the rest; None takes the whole mode
    into the tile.

    >>> print(zipped_divide(Layout((8, 64), (64, 1)), (4, 16)))
    ((4,16),(2,4)):((64,1),(256,16))
    """
    if isinstance(layout, ComposedLayout):
        return layout.over(zipped_divide(layout.outer, tiler))
    return make_layout(*_tile_and_rest(layout, tiler))


def _tile_and_rest(layout: Layout, tiler: Tiler) -> tuple[Layout, Layout]:
    if tiler is None:
        return layout, Layout(1, 0)
    if not isinstance(tiler, tuple):
        tile, rest = logical_divide(layout, tiler)
        return tile, rest
    modes = _modes_for("zipped_divide", layout, tiler)
    pairs = [_tile_and_rest(*pair) for pair in zip(modes, tiler, strict=False)]
    tiles, rests = [tile for tile, _ in pairs], [rest for _, rest in pairs]
    return make_layout(*tiles), make_layout(*rests, *modes[len(tiler) :])


# ---------------------------------------------------------------------------------- inverse


def right_inverse(layout: Layout) -> Layout:
    """The layout that finds the index of an offset: ``L(R(i)) == i`` for every i below ``size(R)``.

    R reaches as far as whole modes of ``coalesce(L)`` follow on from stride 1; if L is injective no
    right inverse reaches further (C++ ``right_inverse``).

    >>> print(right_inverse(Layout((4, 8), (8, 1))), right_inverse(Layout((2, 4), (0, 1))))
    (8,4):(4,1) 4:2
    """
    if not isinstance(layout, Layout):
        raise LayoutError(f"right_inverse of {layout}: only a Layout has one here")
    place, indexed = 1, []
    for extent, stride in flat_modes(coalesce(layout)):
        indexed.append((stride, extent, place))
        place *= extent
    reach, chain = 1, []
    for stride, extent, place in sorted(indexed, key=lambda mode: mode[0]):
        if stride == reach and extent != 1:
            chain.append((extent, place))
            reach *= extent
    return _assemble(_merged(chain))
