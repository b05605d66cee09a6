"""Complement: the layout of the offsets that a layout leaves free."""

from __future__ import annotations

from math import prod
from typing import Any

from ..errors import LayoutError, Undecided
from ..values.arith import ascending, ceil_div, divided, divides, equal, less
from ..values.elimination import eliminated
from ..values.layout import Layout, cosize, trusted
from ..values.modes import Mode, assembled, merged, without_ones
from ..values.offsets import all_offsets
from ..values.steps import too_many
from ..values.stride import F2, ArithTuple, Path, kind_of
from ..values.swizzle import ComposedLayout, layout_for, outer_layout
from ..values.symbols import GIVE_VALUES, has_symbols
from ..values.tuples import IntTuple, checked, product, size
from .as_layout import as_layout
from .gf2 import placed_columns
from .injectivity import collision

__all__ = ["by_coordinate", "complement", "copies_of", "covers", "moving", "one_layout", "period"]


def complement(layout: Layout | ComposedLayout, cotarget: IntTuple | Layout = None) -> Layout:
    """The layout R of the offsets at which copies of `layout` fit between and beyond its own.

    No offset is the sum of an offset of L and one of R in two ways, and R grows with its index (C++
    ``complement``; whitepaper 3.4).  So L and R have only the offset 0 in common.  The next copy
    would start at `cotarget` or beyond.  `cotarget` is an integer, or a shape or layout whose size
    counts; it defaults to ``cosize(L)``.  Modes of stride 0 do not matter.

    L and R cover every offset below ``size(filter(L)) * size(R)``, which is at least `cotarget`, if
    each stride of L, in rising order, is a multiple of the extent times the stride before it.  For
    other layouts, such as padded ones, no layout R covers every offset.

    If L is linear over XOR, as swizzled layouts of powers of two are, the sum is the XOR.  If L
    gives coordinates, mode k of R is the complement of the steps of coordinate k, up to entry k of
    `cotarget`, as in the DSL.

    Raises `LayoutError` if L is not injective, or if one of its strides steps two coordinates.

    >>> print(complement(Layout((2, 2), (1, 6)), 24), complement(Layout(4, 2)))
    (3,2):(2,12) 2:1
    >>> print(complement(Layout((64, 64), (72, 1)), 4 * 4608))
    4:4608
    >>> from layouts import E, F2
    >>> print(complement(Layout((2, 2), (F2(1), F2(6))), 16))
    (2,2):(2,8)
    >>> print(complement(Layout((4, 8), (E(0), E(1))), (8, 32)))
    (2,4):(4@0,8@1)
    """
    if not isinstance(layout, Layout):
        return _xor_complement(layout_for("complement", layout), _target(layout, cotarget))
    own = kind_of(layout.modes)
    if own is F2:
        return _xor_complement(layout, _target(layout, cotarget))
    if own is ArithTuple:
        return _complement_by_coordinate(layout, cotarget)
    between, beyond = _free_modes(layout)
    return _assembled(between, ceil_div(_target(layout, cotarget), beyond), beyond)


def copies_of(layout: Layout, count: Any) -> Layout:
    """The complement of `layout` with at least `count` offsets: where `count` copies start.

    It is ``complement(layout, size(layout) * count)`` if that has so many.

    >>> print(copies_of(Layout((2, 2), (1, 6)), 5), copies_of(Layout((4, 8), (1, 5)), 3))
    (3,2):(2,12) 3:40
    """
    if kind_of(layout.modes) is not None:
        return complement(layout, size(layout) * count)
    between, beyond = _free_modes(layout)
    inner, target = prod(copies for copies, _ in between), size(layout) * count
    if type(target) is type(beyond) is int:
        return _assembled(between, max(-(-count // inner), -(-target // beyond)), beyond)
    copies = ceil_div(target, beyond) if covers(layout) else ceil_div(count, inner)
    return _assembled(between, copies, beyond)


def covers(layout: Layout) -> bool:
    """Whether `layout` and its complement together have every offset of a range.

    They do if each stride, in rising order, is a multiple of the extent times the stride before it;
    with symbols, if that is proved.  If they do not, no other layout in its place would: where two
    layouts have every offset of a range once, their strides form such a chain (de Bruijn, *On
    number systems*, 1956).

    >>> covers(Layout((2, 2), (1, 6))), covers(Layout((4, 8), (1, 5)))
    (True, False)
    """
    reach: Any = 1
    for extent, stride in _rising(layout):
        if not divides(reach, stride):
            return False
        reach = extent * stride
    return True


def period(layout: Layout) -> Any:
    """Where the next copy of `layout` may start: beyond its offsets, and where its mode of the
    largest stride would go on.

    >>> period(Layout((4, 8), (1, 5))), period(Layout((2, 2), (2, 3)))
    (40, 6)
    """
    modes = _rising(layout)
    ends = [extent * stride for extent, stride in modes] or [1]
    return max(*ends, cosize(layout)) if _of_ints(modes) else ends[-1]


def moving(layout: Layout) -> Layout:
    """`layout` without its modes of stride 0.

    >>> print(moving(Layout((4, 3, 2), (1, 0, 4))))
    (4,2):(1,4)
    """
    return assembled([mode for mode in layout.modes if mode[1] != 0])


def one_layout(composed: ComposedLayout) -> Layout | ComposedLayout:
    """`composed` without its modes of stride 0, as the layout that it is, if it is one in which
    every mode moves.

    >>> print(one_layout(ComposedLayout(Layout((3, 4), (2, 6)), 0, Layout((12, 5), (1, 0)))))
    12:2
    """
    own = composed.over(moving(composed.outer))
    found = as_layout(own)
    whole = found is not None and size(moving(found[1])) == size(own)
    return found[1] if found is not None and whole else own


def _target(layout: Layout | ComposedLayout, cotarget: Any) -> Any:
    """`cotarget` as an integer."""
    if type(cotarget) is int and cotarget >= 1:
        return cotarget
    if cotarget is None:
        return cosize(layout)
    target = size(cotarget) if isinstance(cotarget, Layout) else cotarget
    return product(checked(target, "cotarget", 1))


# ------------------------------------------------------------------------------------ integers


def _free_modes(layout: Layout) -> tuple[list[Mode], Any]:
    """The modes of the copies that fit between the offsets of `layout`, and the offset beyond all
    of these at which the next copy starts."""
    modes, between = _rising(layout), []
    reach: Any = 1
    for extent, stride in modes:
        if type(stride) is type(reach) is int:
            copies = stride // reach
            if not copies:
                return [], _interleaved(layout, modes, stride, reach)
        else:
            copies, rest = divided(stride, reach)
            if not (less(0, copies) and (equal(rest, 0) or less(rest, reach))):
                raise _not_proved(layout, stride, reach)
        between.append((copies, reach))
        reach = extent * stride
    return between, reach


def _assembled(between: list[Mode], copies: Any, beyond: Any) -> Layout:
    """The layout of the copies between the offsets of L, and of those beyond them."""
    modes = [*between, (copies, beyond)]
    return assembled(merged([mode for mode in modes if type(mode[0]) is not int or mode[0] != 1]))


def _rising(layout: Layout) -> list[Mode]:
    """The modes of ``filter(layout)`` by rising stride."""
    modes = merged([mode for mode in without_ones(layout) if mode[1] != 0])
    if len(modes) < 2:
        return modes
    if _of_ints(modes):
        return sorted(modes, key=lambda mode: (mode[1], mode[0]))
    return ascending(modes, lambda mode: mode[1])


def _of_ints(modes: list[Mode]) -> bool:
    return all(type(x) is int for mode in modes for x in mode)


def _interleaved(layout: Layout, modes: list[Mode], stride: Any, reach: Any) -> int:
    """The period of a layout whose modes interleave: copies fit beyond it only.

    The mode with `stride` begins before those of smaller strides end, at `reach`.
    """
    if not _of_ints(modes):
        raise _not_proved(layout, stride, reach)
    filtered = assembled(modes)
    pair = collision(filtered)
    if pair is not None:
        raise LayoutError(
            f"complement of {layout}: it is not injective (the offset {filtered(pair[0])} occurs "
            f"more than once, at the indices {pair[0]} and {pair[1]} of {filtered}), so no copy of "
            f"it has offsets of its own; give the modes that repeat an offset the stride 0"
        )
    return int(period(filtered))


def _not_proved(layout: Layout, stride: Any, reach: Any) -> LayoutError:
    return LayoutError(
        f"complement of {layout}: the number of copies that fit below the stride {stride} is "
        f"{stride} divided by {reach}, rounded down, and it is not proved to be one polynomial "
        f"greater than 0; write {stride} as a multiple of {reach}, or {GIVE_VALUES}"
    )


# --------------------------------------------------------------------------------- coordinates


def by_coordinate(layout: Layout) -> dict[Path, Layout]:
    """For each coordinate that `layout` steps, the layout of its steps.

    Raises `LayoutError` if one stride steps two coordinates.

    >>> from layouts import E
    >>> for path, steps in by_coordinate(Layout((4, 8, 2), (E(0), E(1), 4 * E(0)))).items():
    ...     print(path, steps)
    (0,) (4,2):(1,4)
    (1,) 8:1
    """
    found: dict[Path, list[Mode]] = {}
    for extent, stride in layout.modes:
        if not stride:
            continue
        if len(stride.terms) != 1:
            raise LayoutError(
                f"complement of {layout}: the stride {stride} steps several coordinates at once; "
                f"each stride must step one"
            )
        path, step = stride.terms[0]
        found.setdefault(path, []).append((extent, step))
    return {path: assembled(modes) for path, modes in found.items()}


def _complement_by_coordinate(layout: Layout, cotarget: Any) -> Layout:
    bound = cosize(layout) if cotarget is None else cotarget
    bound = bound.shape if isinstance(bound, Layout) else checked(bound, "cotarget", 1)
    whole = bound if isinstance(bound, tuple) else (bound,)
    return trusted(*_rest(by_coordinate(layout), whole, ()))


def _rest(steps: dict[Path, Layout], bound: IntTuple, at: Path) -> tuple[IntTuple, IntTuple]:
    """Shape and stride of the complement in the coordinates at path `at`, which are below `bound`.

    A coordinate that the layout does not step is free as a whole.
    """
    if at in steps:
        between, beyond = _free_modes(steps[at])
        found = _assembled(between, ceil_div(product(bound), beyond), beyond)
        if found.shape == 1:
            return 1, ArithTuple([(at, beyond)])
        strides = tuple(ArithTuple([(at, stride)]) for _, stride in found.modes)
        return found.shape, strides if isinstance(found.shape, tuple) else strides[0]
    below = [path[len(at)] for path in steps if path[: len(at)] == at]
    if not below and not isinstance(bound, tuple):
        return bound, ArithTuple([(at, 1)])
    bounds = bound if isinstance(bound, tuple) else (bound,)
    bounds += (1,) * (max(below, default=-1) + 1 - len(bounds))
    parts = [_rest(steps, each, (*at, k)) for k, each in enumerate(bounds)]
    return tuple(shape for shape, _ in parts), tuple(stride for _, stride in parts)


# --------------------------------------------------------------------------------------- XOR


def _xor_complement(layout: Layout | ComposedLayout, target: Any) -> Layout:
    """By elimination over GF(2): the bits that are the leading bit of no pivot."""
    if type(target) is not int or has_symbols(layout):
        raise LayoutError(
            f"complement of {layout} up to {target}: XOR strides and swizzles take integers known "
            f"now; {GIVE_VALUES}"
        )
    if isinstance(layout, ComposedLayout) and layout(0) != 0:
        raise LayoutError(
            f"complement of {layout}: index 0 has the offset {layout(0)}, and the complement "
            f"starts from 0; take the complement of the layout without its offset"
        )
    try:
        columns = [column for _, column in placed_columns(layout)]
    except LayoutError:
        return _composed_complement(layout, target)
    pivots = [value for _, value in eliminated(columns)]
    if not all(pivots):
        raise LayoutError(f"complement of {layout}: it is not injective")
    taken = {value.bit_length() - 1 for value in pivots}
    count = max([(target - 1).bit_length(), *(bit + 1 for bit in taken)])
    return assembled(merged([(2, 1 << bit) for bit in range(count) if bit not in taken]))


def _composed_complement(composed: Any, target: int) -> Layout:
    """The complement of the one layout that `composed` is; else that of the layout under the
    swizzle, if it is one of the swizzled layout too; else copies fit beyond the last offset only.
    """
    layout = one_layout(composed)
    if isinstance(layout, Layout):
        return complement(layout, target)
    count = size(layout)
    if too_many(count):
        raise Undecided(f"complement of {layout}: {count} offsets are too many to compare")
    own = {*all_offsets(layout)}
    if len(own) < count:
        raise LayoutError(f"complement of {layout}: it is not injective")
    outer = outer_layout(layout)
    if kind_of(outer.modes) is None and covers(outer):
        rest = complement(outer, target)
        total = count * size(rest)
        few = not too_many(total)
        if few and {a + b for a in own for b in all_offsets(rest)} == set(range(total)):
            return rest
    beyond = max(own) + 1
    return _assembled([], ceil_div(target, beyond), beyond)
