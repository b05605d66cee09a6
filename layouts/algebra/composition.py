"""Composition, ``R(c) == A(B(c))``: the operation on which all others stand.

This file decides what kind of composition A and B ask for.  Each kind has a file of its own, which
brings it back to one core:

    digits               the core: one layout read through another, digit by digit
    compose_integers     B has integer strides: the core, or else an exhaustive check
    compose_coordinates  B has coordinate strides: its coordinates become indices of A
    compose_xor          A or B has XOR strides: the core on modes of extent 2, one for each bit
    compose_swizzled     A or B is a swizzle or a composed layout

A tuple of tilers composes mode by mode (`by_mode`).  `explain(composition, A, B)` prints the steps
(layouts/explanation/composition.py).
"""

from __future__ import annotations

from typing import Any

from ..values.layout import Layout
from ..values.modes import has_xor_strides
from ..values.stride import ArithTuple, kind_of
from ..values.swizzle import ComposedLayout, Swizzle
from .by_mode import Tiler, by_mode, tiled_coordinates, tiler_layout
from .compose_coordinates import as_indices
from .compose_integers import compose
from .compose_swizzled import composed_after, layout_after_composed, swizzle_after
from .compose_xor import compose_xor
from .on_tensors import on_tensor

__all__ = ["composition"]


def composition(a: Any, b: Tiler) -> Any:
    """The layout that applies `b`, then `a` (C++ ``composition``; whitepaper 3.3).

    ``R(c) == A(B(c))`` for every coordinate c of B, and the shape of R refines that of B.  A tuple
    of tilers composes mode by mode and drops the modes of A beyond it; None keeps a mode whole.
    B may have coordinate strides; its values are then coordinates of A.  If A has them, R gives the
    same coordinates, except for trailing ones that it never steps.

    A swizzle after a layout is a composed layout.  Two swizzles are one swizzle, or a layout with
    XOR strides.  A layout after a swizzled one (or after a swizzle, which then has the shape of A)
    is a swizzled layout if the swizzle can be pushed through A, a layout with XOR strides if A is
    linear in the bits that change, and else a composed layout.

    Raises `LayoutError` if A(B(c)) is not a layout, with the smallest index that shows it.

    >>> print(composition(Layout((6, 2), (8, 2)), Layout((4, 3), (3, 1))))
    ((2,2),3):((24,2),8)
    >>> print(composition(Layout((8, 64), (64, 1)), (4, None)))
    (4,64):(64,1)
    >>> print(composition(Swizzle(3, 3, 3), Layout((8, 64), (64, 1))))
    S<3,3,3> o 0 o (8,64):(64,1)
    >>> print(composition(Layout((4, 2), (2, 1)), Swizzle(1, 0, 2)))
    S<1,0,-1> o 0 o (4,2):(2,1)
    """
    if type(a) is Layout and type(b) is Layout:
        return _of_layouts(a, b)
    if isinstance(a, Swizzle):
        return swizzle_after(a, b)
    if isinstance(a, ComposedLayout):
        return composed_after(a, composition(a.outer, b))
    if not isinstance(a, Layout):
        return on_tensor("composition", composition, a, b)
    if isinstance(b, Swizzle):
        b = ComposedLayout(b, 0, Layout(a.shape))
    if isinstance(b, ComposedLayout):
        return layout_after_composed(a, b)
    if b is None:
        return a
    if isinstance(b, tuple):
        if has_xor_strides(a):  # if one mode has to stay composed, all of them do
            return composition(a, composition(tiled_coordinates(a.shape, b), b))
        return by_mode("composition", a, b, composition, keep_others=False)
    return _of_layouts(a, tiler_layout(b))


def _of_layouts(a: Layout, b: Layout) -> Any:
    """A(B(c)) for strides of any kind."""
    own = kind_of(b.modes)
    if own is ArithTuple:
        a, b = as_indices(a, b)
        own = None
    if own is None and not has_xor_strides(a):
        return compose(a, b)
    found = compose_xor(a, b)
    return ComposedLayout(a, 0, b) if found is None else found
