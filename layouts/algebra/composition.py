"""The operations on which all others stand: coalesce, filter, composition.

A tiler is what the right operand of a by-mode operation may be: a Layout, an integer n (for n:1),
or a tuple of tilers, one per mode; None leaves a mode whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from ..errors import LayoutError
from ..values.layout import Layout, joined, make_identity_layout
from ..values.modes import assembled, merged, moving, xors
from ..values.stride import ArithTuple, kind_of
from ..values.swizzle import ComposedLayout, Swizzle
from ..values.tuples import IntTuple, is_int, shallow
from .compose import compose
from .composed import after, after_layout, chained, pushed_through
from .through import as_indices, compose_xor

#: A Layout, an integer, None, or a tuple of tilers.
Tiler: TypeAlias = Any
AnyLayout = TypeVar("AnyLayout", Layout, ComposedLayout)

__all__ = ["Tiler", "by_mode", "coalesce", "composition", "filter", "tiler_layout"]


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
        return by_mode("coalesce", layout, profile, _coalesce_unless_none, keep_rest=True)
    if type(layout) is not Layout:
        raise LayoutError(f"coalesce of {layout!r}: it takes a Layout or a ComposedLayout")
    return assembled(merged(moving(layout)))


def _coalesce_unless_none(layout: Layout, profile: IntTuple) -> Layout:
    return layout if profile is None else coalesce(layout, profile)


def filter(layout: Layout, profile: IntTuple = None) -> Layout:
    """`layout` without its modes of stride 0 and of extent 1, coalesced (C++ ``filter``).

    R takes the same offsets, each as often as the modes that move take it.  `profile` as in
    `coalesce`: each mode that faces a leaf is filtered by itself.

    >>> print(filter(Layout((2, 4, 4), (1, 0, 2))), filter(Layout((2, 4), (0, 1)), (1, 1)))
    8:1 (1,4):(0,1)
    """
    if not isinstance(layout, Layout):
        raise LayoutError(f"filter of {layout}: only a Layout has modes of stride 0")
    if isinstance(profile, tuple):
        return by_mode("filter", layout, profile, _filter_unless_none, keep_rest=True)
    return assembled(merged([mode for mode in moving(layout) if mode[1] != 0]))


def _filter_unless_none(layout: Layout, profile: IntTuple) -> Layout:
    return layout if profile is None else filter(layout, profile)


# ------------------------------------------------------------------------------ composition


def composition(a: Any, b: Tiler) -> Any:
    """The layout that goes through `b`, then through `a` (C++ ``composition``; whitepaper 3.3).

    ``R(c) == A(B(c))`` for every coordinate c of B, and the shape of R refines that of B.  A tuple
    of tilers composes mode by mode and drops the modes of A beyond it; None passes a mode whole.
    B may have coordinate strides, which are coordinates of A.  If A has them, R gives the same
    coordinates, but for those at the end that it never steps.

    A swizzle after a layout is a composed layout; swizzles one after the other are a swizzle, or a
    layout with XOR strides.  A layout after a swizzled one (or after a swizzle, which then has the
    shape of A) is a swizzled layout where the swizzle can be pushed through, a layout with XOR
    strides where A is linear in the bits that change, and else composed.

    Raises `LayoutError` if no layout is A(B(c)), with the smallest index that shows it.

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
        return after(a, b)
    if isinstance(a, ComposedLayout):
        return chained(a, composition(a.outer, b))
    if not isinstance(a, Layout):
        raise LayoutError(f"composition: {a!r} is no Layout, Swizzle or ComposedLayout")
    if isinstance(b, Swizzle):
        b = ComposedLayout(b, 0, Layout(a.shape))
    if isinstance(b, ComposedLayout):
        return _after_composed(a, b)
    if b is None:
        return a
    if isinstance(b, tuple):
        if xors(a):  # a mode may have to stay composed, and it is all of them then
            return composition(a, composition(make_identity_layout(a.shape), b))
        return by_mode("composition", a, b, composition, keep_rest=False)
    return _of_layouts(a, tiler_layout(b))


def _of_layouts(a: Layout, b: Layout) -> Any:
    """A(B(c)), both layouts with strides of any kind."""
    own = kind_of(b.modes)
    if own is ArithTuple:
        a, b = as_indices(a, b)
        own = None
    if own is None and not xors(a):
        return compose(a, b)
    found = compose_xor(a, b)
    return ComposedLayout(a, 0, b) if found is None else found


def _after_composed(a: Layout, b: ComposedLayout) -> Any:
    """A after a composed layout: pushed through, linear, or composed."""
    if isinstance(b.inner, Swizzle):
        found = pushed_through(a, b)
        if found is not None:
            return found
    return after_layout(a, b)


def tiler_layout(tiler: Any) -> Layout:
    """The layout of a tiler that is no tuple and not None."""
    if isinstance(tiler, Layout):
        return tiler
    if is_int(tiler) or (hasattr(tiler, "free_symbols") and tiler.is_integer):
        return Layout(tiler)
    raise LayoutError(
        f"tiler {tiler!r}: it must be a Layout, an integer, None, or a tuple of these, one per mode"
    )


def by_mode(
    name: str,
    layout: Layout,
    tilers: tuple[Tiler, ...],
    operation: Callable[[Layout, Tiler], Layout],
    keep_rest: bool,
) -> Layout:
    """`operation` on each mode and its tiler; the modes beyond the tilers are kept or dropped."""
    modes = modes_for(name, layout, tilers)
    done = map(operation, modes, tilers)
    return joined((*done, *(modes[len(tilers) :] if keep_rest else ())))


def modes_for(name: str, layout: Layout, tilers: tuple[Tiler, ...]) -> list[Layout]:
    """The modes of `layout`, if there is one for each of `tilers`."""
    if not isinstance(layout, Layout):
        raise LayoutError(f"{name} of {layout!r}: it takes a Layout or a ComposedLayout")
    if len(shallow(tilers)) > len(layout):
        raise LayoutError(
            f"{name}: {len(tilers)} tilers for the {len(layout)} modes of {layout}; give at most "
            f"one per mode"
        )
    return list(layout)
