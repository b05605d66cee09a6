"""The same layout in fewer modes: coalesce, and filter, which also drops the modes of stride 0."""

from __future__ import annotations

from ..errors import LayoutError, brief
from ..values.layout import Layout
from ..values.modes import assembled, merged, without_ones
from ..values.swizzle import AnyLayout, ComposedLayout
from ..values.tuples import IntTuple
from .by_mode import by_mode
from .on_tensors import on_tensor

__all__ = ["coalesce", "filter"]


def coalesce(layout: AnyLayout, profile: IntTuple = None) -> AnyLayout:
    """The same function of the index with the fewest modes (C++ ``coalesce``; whitepaper 3.2).

    ``R(i) == L(i)`` for every i below ``size(L) == size(R)``.  With a `profile`, each mode that
    faces a leaf of it is coalesced by itself.  The values of the leaves do not matter, except that
    None leaves a mode as it is.  Modes beyond the profile stay.  Of a tensor, the layout is
    coalesced.

    >>> print(coalesce(Layout((2, (1, 6)), (1, (6, 2)))))
    12:1
    >>> print(coalesce(Layout((2, (1, 6)), (1, (6, 2))), (1, 1)))
    (2,6):(1,2)
    """
    if isinstance(layout, ComposedLayout):
        return layout.over(coalesce(layout.outer, profile))
    if not isinstance(layout, Layout):
        return on_tensor("coalesce", coalesce, layout, profile)
    if isinstance(profile, tuple):
        return by_mode("coalesce", layout, profile, _coalesce_unless_none, keep_others=True)
    return assembled(merged(without_ones(layout)))


def _coalesce_unless_none(layout: Layout, profile: IntTuple) -> Layout:
    return layout if profile is None else coalesce(layout, profile)


def filter(layout: AnyLayout, profile: IntTuple = None) -> AnyLayout:
    """`layout` without its modes of stride 0 and of extent 1, coalesced (C++ ``filter``).

    R has the offsets of L, each as often as the modes that are kept have it.  `profile` as in
    `coalesce`: each mode that faces a leaf is filtered by itself.  Of a composed layout, the outer
    layout is filtered; of a tensor, the layout.

    >>> print(filter(Layout((2, 4, 4), (1, 0, 2))), filter(Layout((2, 4), (0, 1)), (1, 1)))
    8:1 (1,4):(0,1)
    >>> from layouts import Swizzle
    >>> print(filter(ComposedLayout(Swizzle(1, 0, 2), 0, Layout((4, 2), (0, 4)))))
    S<1,0,2> o 0 o 2:4
    """
    if isinstance(layout, ComposedLayout):
        return layout.over(filter(layout.outer, profile))
    if not isinstance(layout, Layout):
        if not hasattr(layout, "with_layout"):
            raise LayoutError(
                f"filter of {brief(layout)}: it takes a Layout, a ComposedLayout or a Tensor; "
                f"Python's own is builtins.filter"
            )
        return on_tensor("filter", filter, layout, profile)
    if isinstance(profile, tuple):
        return by_mode("filter", layout, profile, _filter_unless_none, keep_others=True)
    return assembled(merged([mode for mode in without_ones(layout) if mode[1] != 0]))


def _filter_unless_none(layout: Layout, profile: IntTuple) -> Layout:
    return layout if profile is None else filter(layout, profile)
