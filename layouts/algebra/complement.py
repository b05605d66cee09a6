"""Complement: the layout of the offsets that a layout leaves free."""

from __future__ import annotations

from typing import Any

from ..errors import LayoutError
from ..values.arith import ascending, ceil_div, divided, divides
from ..values.elimination import eliminated
from ..values.layout import Layout, cosize
from ..values.modes import Mode, assembled, has_xor_strides, merged, without_ones
from ..values.stride import kind_of
from ..values.swizzle import ComposedLayout, layout_for
from ..values.tuples import IntTuple, checked, product, size
from .coalesce import filter
from .compose_integers import ENUMERATION_LIMIT
from .gf2 import placed_columns
from .injectivity import collision

__all__ = ["complement"]


def complement(layout: Layout | ComposedLayout, cotarget: IntTuple | Layout = None) -> Layout:
    """The layout R of the offsets at which copies of `layout` fill the offsets it leaves free.

    Every offset below ``size(filter(L)) * size(R)``, which is at least `cotarget`, is the sum of
    exactly one offset of L and one of R, and R grows with its index (C++ ``complement``; whitepaper
    3.4).  `cotarget` is an integer, or a shape or layout whose size counts; it defaults to
    ``cosize(L)``.  Modes of stride 0 do not matter.  If L is linear over XOR, as swizzled layouts
    of powers of two are, the sum is the XOR.

    Raises `LayoutError` unless each stride, in rising order, is a multiple of the extent times the
    stride before it.  Otherwise L is not injective, or no copies of it fill the free offsets.

    >>> print(complement(Layout((2, 2), (1, 6)), 24), complement(Layout(4, 2)))
    (3,2):(2,12) 2:1
    >>> from layouts import F2
    >>> print(complement(Layout((2, 2), (F2(1), F2(6))), 16))
    (2,2):(2,8)
    """
    target = _target(layout_for("complement", layout), cotarget)
    if isinstance(layout, ComposedLayout) or has_xor_strides(layout):
        return _xor_complement(layout, target)
    if not isinstance(layout, Layout) or kind_of(layout.modes) is not None:
        raise LayoutError(
            f"complement of {layout}: its values must be integers; take that of composition(A, L), "
            f"where A is the layout of the coordinates"
        )
    found: list[Mode] = []
    reach: Any = 1
    for extent, stride in _rising(layout):
        if not divides(reach, stride):
            raise _no_complement(layout, stride, reach)
        found.append((divided(stride, reach)[0], reach))
        reach = extent * stride
    found.append((ceil_div(target, reach), reach))
    return assembled(merged([mode for mode in found if mode[0] != 1]))


def _target(layout: Layout | ComposedLayout, cotarget: Any) -> Any:
    """`cotarget` as an integer."""
    if type(cotarget) is int and cotarget >= 1:
        return cotarget
    if cotarget is None:
        return cosize(layout)
    target = size(cotarget) if isinstance(cotarget, Layout) else cotarget
    return product(checked(target, "cotarget", 1))


def _rising(layout: Layout) -> list[Mode]:
    """The modes of ``filter(layout)`` by rising stride."""
    modes = merged([mode for mode in without_ones(layout) if mode[1] != 0])
    if len(modes) < 2:
        return modes
    if all(type(x) is int for mode in modes for x in mode):
        return sorted(modes, key=lambda mode: (mode[1], mode[0]))
    return ascending(modes, lambda mode: mode[1])


def _no_complement(layout: Layout, stride: Any, reach: Any) -> LayoutError:
    why = "it is not proved that copies of it fill the offsets between its own"
    modes = _rising(layout)
    if all(type(x) is int for mode in modes for x in mode):
        filtered = assembled(modes)
        pair = collision(filtered)
        why = "no copies of it fill the offsets between its own"
        if pair is not None:
            why = f"it is not injective (the offset {filtered(pair[0])} occurs more than once)"
    return LayoutError(
        f"complement of {layout}: {why}, since the stride {stride} is not a multiple of {reach}; "
        f"each stride, in rising order, must be a multiple of the extent times the stride before it"
    )


# --------------------------------------------------------------------------------------- XOR


def _xor_complement(layout: Layout | ComposedLayout, target: int) -> Layout:
    """By elimination over GF(2): a bit is free if no pivot has it as its top bit."""
    try:
        columns = [column for _, column in placed_columns(layout) if column]
    except LayoutError:
        return _checked_complement(layout, target)
    if isinstance(layout, ComposedLayout) and layout.offset:
        raise LayoutError(
            f"complement of {layout}: 0 is not one of its offsets, so no copies fill those below "
            f"its first; take the complement of the layout without its offset"
        )
    pivots = [value for _, value in eliminated(columns)]
    if not all(pivots):
        raise LayoutError(f"complement of {layout}: it is not injective")
    taken = {value.bit_length() - 1 for value in pivots}
    count = max([(target - 1).bit_length(), *(bit + 1 for bit in taken)])
    return assembled(merged([(2, 1 << bit) for bit in range(count) if bit not in taken]))


def _checked_complement(layout: Layout | ComposedLayout, target: int) -> Layout:
    """The complement of the layout under the swizzle, if it is one of the swizzled layout too."""
    if isinstance(layout, ComposedLayout) and layout.offset == 0:
        rest = complement(layout.outer, target)
        own = (
            [layout(i) for i in range(size(filter(layout.outer)))]
            if size(layout.outer) == size(filter(layout.outer))
            else sorted({layout(i) for i in range(size(layout))})
        )
        total = len(own) * size(rest)
        if total > ENUMERATION_LIMIT:
            raise LayoutError(f"complement of {layout}: {total} sums are too many to check")
        if {a + rest(i) for a in own for i in range(size(rest))} == set(range(total)):
            return rest
    raise LayoutError(
        f"complement of {layout}: its swizzle mixes its offsets with the free ones; take the "
        f"complement before the swizzle, or of a layout of powers of two"
    )
