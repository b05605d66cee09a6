"""Rewrite a composed layout as an offset plus a Layout, where possible; C++ leaves it composed."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any

from ..errors import LayoutError
from ..values.layout import Layout, cosize, joined
from ..values.modes import extended, has_xor_strides
from ..values.stride import F2
from ..values.swizzle import ComposedLayout, Swizzle
from .composition import composition

__all__ = ["as_layout"]


def as_layout(layout: ComposedLayout) -> tuple[Any, Layout] | None:
    """A pair (o, L) with ``layout(c) == o + L(c)`` for every coordinate c, or None.

    The inner function may be a swizzle that changes no offset that occurs, a swizzle that is linear
    on the bits that occur, or a layout whose composition with the outer one is a layout.

    >>> print(*as_layout(ComposedLayout(Layout((4, 8), (8, 1)), 4, Layout(4, 4))))
    1 4:1
    >>> print(*as_layout(ComposedLayout(Swizzle(1, 0, 2), 0, Layout((2, 2), (4, 1)))))
    0 (2,2):(F5,F1)
    """
    inner, start = layout.inner, 0
    if isinstance(inner, Swizzle):
        if not _reads_bits_of(inner, layout.offset, layout.outer):
            return layout.offset, layout.outer
        inner = inner.layout
    if isinstance(inner, ComposedLayout):
        found = as_layout(inner.over(extended(inner.outer, layout.offset + cosize(layout.outer))))
        if found is None:
            return None
        start, inner = found
    if layout.offset == 0:
        one = _composed(inner, layout.outer)
        return None if one is None else (start, one)
    if has_xor_strides(inner) or has_xor_strides(layout.outer):
        return None  # what the offset changes is an XOR, and no sum
    shifted = _composed(inner, joined([Layout(2, layout.offset), layout.outer]))
    if shifted is None or shifted.shape[0] != 2:
        return None
    return start + shifted.stride[0], shifted[1]


def _reads_bits_of(swizzle: Swizzle, offset: Any, outer: Layout) -> bool:
    """Whether a bit that `swizzle` reads may be set in ``offset + outer(c)``.

    The bits that may be set are those from the lowest bit of a stride up to the largest offset.
    """
    steps = [int(x) if isinstance(x, F2) else x for x in (offset, *(d for _, d in outer.modes))]
    if swizzle.bits == 0 or any(type(x) is not int for x in (*steps, cosize(outer))):
        return swizzle.bits != 0
    union = reduce(or_, steps)
    highest = (offset + cosize(outer) - 1).bit_length()
    return bool(swizzle.source & ((1 << highest) - (union & -union)))


def _composed(a: Layout, b: Layout) -> Layout | None:
    """A(B(c)) as one layout, or None."""
    try:
        found = composition(a, b)
    except LayoutError:
        return None
    return found if isinstance(found, Layout) else None
