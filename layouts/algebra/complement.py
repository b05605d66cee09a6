"""What a layout leaves out."""

from __future__ import annotations

from typing import Any

from ..errors import LayoutError
from ..values.arith import ascending, ceil_div, divided, divides
from ..values.elimination import eliminated
from ..values.layout import Layout, cosize
from ..values.modes import Mode, assembled, merged, moving, xors
from ..values.stride import kind_of
from ..values.swizzle import ComposedLayout, layout_for
from ..values.tuples import IntTuple, checked, product, size
from .coalesce import filter
from .compose_integers import ENUMERATION_LIMIT
from .gf2 import matrix
from .injectivity import collision

__all__ = ["complement"]


def complement(layout: Layout | ComposedLayout, cotarget: IntTuple | Layout = None) -> Layout:
    """The layout of the offsets where copies of `layout` go to fill what it leaves out.

    Every offset below ``size(filter(L)) * size(R)``, which is at least `cotarget`, is the sum of
    exactly one offset of L and one of R, and R grows with its index (C++ ``complement``; whitepaper
    3.4).  `cotarget` defaults to ``cosize(L)``; of a shape, its size counts.  Modes of stride 0
    take no part.  Where L is linear over XOR, as swizzled layouts of powers of two are, the sum is
    the XOR.

    Raises `LayoutError` unless the strides, in rising order, are each a multiple of the extent
    times the stride before: if not, two indices collide, or no copies fill the gaps.

    >>> print(complement(Layout((2, 2), (1, 6)), 24), complement(Layout(4, 2)))
    (3,2):(2,12) 2:1
    >>> from layouts import F2
    >>> print(complement(Layout((2, 2), (F2(1), F2(6))), 16))
    (2,2):(2,8)
    """
    target = _target(layout_for("complement", layout), cotarget)
    if isinstance(layout, ComposedLayout) or xors(layout):
        return _xor_complement(layout, target)
    if not isinstance(layout, Layout) or kind_of(layout.modes) is not None:
        raise LayoutError(
            f"complement of {layout}: only a layout that gives integers has one, such as "
            f"composition(A, L) with the layout A in which the coordinates lie"
        )
    gaps: list[Mode] = []
    reach: Any = 1
    for extent, stride in _rising(layout):
        if not divides(reach, stride):
            raise _no_complement(layout, stride, reach)
        gaps.append((divided(stride, reach)[0], reach))
        reach = extent * stride
    gaps.append((ceil_div(target, reach), reach))
    return assembled(merged([gap for gap in gaps if gap[0] != 1]))


def _target(layout: Layout | ComposedLayout, cotarget: Any) -> Any:
    if type(cotarget) is int and cotarget >= 1:
        return cotarget
    if cotarget is None:
        return cosize(layout)
    target = size(cotarget) if isinstance(cotarget, Layout) else cotarget
    return product(checked(target, "cotarget", 1))


def _rising(layout: Layout) -> list[Mode]:
    """The merged modes that move the offset, by rising stride (C++ ``filter``, sorted)."""
    modes = merged([mode for mode in moving(layout) if mode[1] != 0])
    if len(modes) < 2:
        return modes
    if all(type(x) is int for mode in modes for x in mode):
        return sorted(modes, key=lambda mode: (mode[1], mode[0]))
    return ascending(modes, lambda mode: mode[1])


def _no_complement(layout: Layout, stride: Any, reach: Any) -> LayoutError:
    why = "it is not proved that copies of it fill its gaps"
    modes = _rising(layout)
    if all(type(x) is int for mode in modes for x in mode):
        moving = assembled(modes)
        pair = collision(moving)
        why = "no copies of it fill its gaps"
        if pair is not None:
            why = f"it has the offset {moving(pair[0])} more than once"
    return LayoutError(
        f"complement of {layout}: {why}, since the stride {stride} is no multiple of {reach}; by "
        f"rising stride, each stride must be a multiple of the extent times the stride before it"
    )


# --------------------------------------------------------------------------------------- XOR


def _xor_complement(layout: Layout | ComposedLayout, target: int) -> Layout:
    """By elimination: the bits that lead no offset of L are free."""
    try:
        columns = matrix(layout)
    except LayoutError:
        return _checked_complement(layout, target)
    if isinstance(layout, ComposedLayout) and layout.offset:
        raise LayoutError(
            f"complement of {layout}: it does not take the offset 0, so that nothing fills up what "
            f"lies below; take the complement of the layout without its offset"
        )
    columns = tuple(column for column in columns if column)
    pivots = [value for _, value in eliminated(columns)]
    if not all(pivots):
        raise LayoutError(f"complement of {layout}: it has an offset more than once")
    led = {value.bit_length() - 1 for value in pivots}
    count = max([(target - 1).bit_length(), *(bit + 1 for bit in led)])
    return assembled(merged([(2, 1 << bit) for bit in range(count) if bit not in led]))


def _checked_complement(layout: Layout | ComposedLayout, target: int) -> Layout:
    """The complement of what is swizzled, if it fills up what is left out after it too."""
    if isinstance(layout, ComposedLayout) and layout.offset == 0:
        rest = complement(layout.outer, target)
        own = (
            [layout(i) for i in range(size(filter(layout.outer)))]
            if size(layout.outer) == size(filter(layout.outer))
            else sorted({layout(i) for i in range(size(layout))})
        )
        total = len(own) * size(rest)
        if total > ENUMERATION_LIMIT:
            raise LayoutError(f"complement of {layout}: not decided, {total} sums are too many")
        if {a + rest(i) for a in own for i in range(size(rest))} == set(range(total)):
            return rest
    raise LayoutError(
        f"complement of {layout}: its swizzle mixes its offsets with those that it leaves out; "
        f"take the complement before swizzling, or a layout of powers of two"
    )
