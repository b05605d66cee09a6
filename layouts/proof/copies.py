"""A layout and copies of it, as one function.

>>> from layouts import Swizzle
>>> swizzled = ComposedLayout(Swizzle(1, 0, 1), 0, Layout(3))
>>> both = with_copies(swizzled, Layout(2, 4))
>>> [both(i) for i in range(6)]
[0, 1, 3, 4, 5, 7]
"""

from __future__ import annotations

from typing import Any

from ..values.layout import Layout, cosize, joined
from ..values.modes import extended, has_xor_strides
from ..values.stride import F2
from ..values.swizzle import ComposedLayout, Swizzle
from ..values.tuples import size

__all__ = ["with_copies"]


def with_copies(layout: Layout | ComposedLayout, starts: Layout) -> Layout | ComposedLayout:
    """``(i, j) -> L(i) + starts(j)``, the sum of integers: copy j of L begins at ``starts(j)``.

    Each function f of L takes ``x + P*j`` to ``f(x) + Q*j``, where P is beyond every x that occurs
    and Q beyond every value of f.  The last one takes ``x + P*j`` to ``x + starts(j)``.
    """
    functions = _functions(layout)
    if has_xor_strides(functions[0][1]):  # its modes have whole bits, and (i, j) need not
        functions.insert(0, (0, Layout(functions[0][1].shape)))
    bounded: list[tuple[int, Layout]] = []
    end = size(layout)
    for offset, function in functions:
        bounded.append((offset, extended(function, offset + end)))
        end = cosize(ComposedLayout(function, offset, Layout(end)))
        if has_xor_strides(function):  # its Q is a bit, which the next P need not be
            bounded.append((0, Layout(_power_of_two(end))))
    found: Layout | ComposedLayout = joined([Layout(end), starts])
    after, beyond, count = 0, end, size(starts)
    for offset, function in reversed(bounded):
        copies = Layout(count, beyond)
        if has_xor_strides(function):
            copies = Layout(_power_of_two(count), F2(beyond))
        found = ComposedLayout(found, after, joined([function, copies]))
        after, beyond = offset, size(function)
    return found


def _functions(layout: Any) -> list[tuple[int, Layout]]:
    """The layouts of L, the first that is applied first, each with the offset added before it."""
    if isinstance(layout, Swizzle):
        return [(0, layout.layout)]
    if isinstance(layout, Layout):
        return [(0, layout)]
    (_, first), *others = _functions(layout.inner)
    return [*_functions(layout.outer), (layout.offset, first), *others]


def _power_of_two(least: int) -> int:
    return 1 << (least - 1).bit_length()
