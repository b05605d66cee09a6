"""A swizzle or a composed layout after a layout, and the other way round.

A swizzle after a layout is a composed layout.  A layout A after a swizzle S is one only where A
keeps the bits that S reads and changes together and apart from all others: then
``A(S(x)) == S'(A(x))``.  C++ CuTe pushes S through A without this check.  Elsewhere the composition
is a layout with XOR strides, or stays a chain of functions.
"""

from __future__ import annotations

from typing import Any

from ..errors import LayoutError
from ..values.layout import Layout, cosize, joined
from ..values.modes import Mode, extended, from_columns, has_xor_strides
from ..values.stride import ArithTuple, kind_of
from ..values.swizzle import ComposedLayout, Swizzle
from .compose_coordinates import as_indices
from .compose_integers import compose
from .compose_xor import compose_xor

__all__ = ["composed_after", "layout_after_composed", "swizzle_after"]


def swizzle_after(swizzle: Swizzle, b: Any) -> Any:
    """`swizzle` after a layout, a swizzle or a composed layout."""
    if isinstance(b, Swizzle):
        return _swizzle_after_swizzle(swizzle, b)
    if isinstance(b, ComposedLayout):
        inner = _chained(swizzle, 0, b.inner, _offset_bound(b))
        return ComposedLayout(inner, b.offset, b.outer, b.unit)
    if not isinstance(b, Layout):
        raise LayoutError(f"composition of {swizzle} with {b!r}: a swizzle goes after a Layout")
    if swizzle.bits == 0:
        return b
    if has_xor_strides(b):
        return compose_xor(swizzle.layout, b)
    return ComposedLayout(swizzle, 0, b)


def composed_after(a: ComposedLayout, b: Any) -> ComposedLayout:
    """`a` with `b` in place of its outer layout, where `b` is that layout after another."""
    if isinstance(b, Layout):
        return a.over(b)
    inner = _chained(a.inner, a.offset, b.inner, _offset_bound(b))
    return ComposedLayout(inner, b.offset, b.outer, a.unit)


def layout_after_composed(a: Layout, b: ComposedLayout) -> Any:
    """`a` after a composed layout: swizzled, with XOR strides, or composed.

    >>> a, swizzle = Layout((4, 2), (2, 1)), Swizzle(1, 0, 2)
    >>> print(layout_after_composed(a, ComposedLayout(swizzle, 0, Layout(8))))
    S<1,0,-1> o 0 o (4,2):(2,1)
    """
    if isinstance(b.inner, Swizzle):
        found = _layout_after_swizzled(a, b.inner, b)
        if found is not None:
            return found
    count, through = _offset_bound(b), b.inner
    if isinstance(through, Layout):
        if kind_of(through.modes) is ArithTuple:
            a, through = as_indices(a, extended(through, count))
        inner = _one_layout(a, through, count)
        if inner is not None:
            return ComposedLayout(inner, b.offset, b.outer)
    return ComposedLayout(_chained(a, 0, through, count), b.offset, b.outer)


def _one_layout(a: Layout, b: Layout, count: Any) -> Layout | None:
    """A(B(i)) for the indices i below `count` as one layout, or None; B goes on beyond its size."""
    try:
        b = extended(b, count)
        return compose_xor(a, b) if has_xor_strides(a) or has_xor_strides(b) else compose(a, b)
    except LayoutError:
        return None


def _offset_bound(b: ComposedLayout) -> Any:
    """The offsets that reach `b.inner` are below this."""
    return b.offset + cosize(b.outer)


def _chained(f: Any, offset: Any, g: Any, count: Any) -> Any:
    """The function ``f(offset + g(x))`` of the offsets x below `count`, g going on beyond its size.

    >>> from layouts import F2
    >>> swizzle = Swizzle(1, 3, 1)
    >>> print(_chained(swizzle, 0, Layout(2, F2(16)), 4), swizzle(Layout(2, F2(16))(3)))
    (2,2):(24,32) 56
    """
    if isinstance(g, ComposedLayout):
        g = g.over(extended(g.outer, count))
        return ComposedLayout(_chained(f, offset, g.inner, _offset_bound(g)), g.offset, g.outer)
    if isinstance(g, Swizzle) and isinstance(f, Swizzle) and offset == 0:
        return _swizzle_after_swizzle(f, g)
    if isinstance(g, Swizzle):
        g = g.layout
    if isinstance(f, Swizzle) and offset == 0 and has_xor_strides(g):
        return compose_xor(f.layout, extended(g, count))
    return ComposedLayout(f, offset, g)


def _swizzle_after_swizzle(first: Swizzle, second: Swizzle) -> Swizzle | Layout:
    """``first(second(x))``: one swizzle if its bits make one, else a layout with XOR strides."""
    top = max((s.source | s.target).bit_length() for s in (first, second))
    columns = [first(second(1 << bit)) for bit in range(top + 1)]
    changed = [bit for bit in range(top) if columns[bit] != 1 << bit]
    if not changed:
        return Swizzle(0, first.base, first.shift)
    low, count = changed[0], len(changed)
    target = (columns[low] ^ 1 << low).bit_length() - 1
    if abs(low - target) >= count:
        one = Swizzle(count, min(low, target), low - target)
        if [one(1 << bit) for bit in range(top + 1)] == columns:
            return one
    return from_columns(columns)


# ------------------------------------------------------------------- a layout after a swizzle


def _layout_after_swizzled(
    a: Layout, swizzle: Swizzle, b: ComposedLayout
) -> ComposedLayout | Layout | None:
    """``A(S(o + L(c)))`` as ``S'(o' + (A o L)(c))``, or as a layout with XOR strides; None if
    neither is right.

    >>> swizzle = Swizzle(1, 0, 1)
    >>> swizzled = ComposedLayout(swizzle, 0, Layout(8))
    >>> print(_layout_after_swizzled(Layout((4, 2), (1, 5)), swizzle, swizzled))
    None
    """
    if has_xor_strides(b.outer) or not all(
        type(x) is int for mode in (*a.modes, *b.outer.modes, (b.offset,)) for x in mode
    ):
        return None
    image = _image_swizzle(a, swizzle, _offset_bound(b))
    if image is not None:
        try:
            shifted = compose(a, joined([Layout(2, b.offset), b.outer]))
        except LayoutError:
            shifted = None
        if shifted is not None and shifted.shape[0] == 2:
            return ComposedLayout(image, shifted.stride[0], shifted[1])
    if b.offset:
        return None
    linear = compose_xor(swizzle.layout, b.outer)
    return None if linear is None else compose_xor(a, linear)


def _image_swizzle(a: Layout, swizzle: Swizzle, count: int) -> Swizzle | None:
    """The swizzle S' with ``S'(A(x)) == A(S(x))`` for every x below `count`, or None."""
    if swizzle.bits == 0 or count <= swizzle.source & -swizzle.source:
        return Swizzle(0, swizzle.base, swizzle.shift)
    low, high = sorted((_lowest_bit(swizzle.source), _lowest_bit(swizzle.target)))
    field = 1 << swizzle.bits
    above = max(1, -(-count >> high + swizzle.bits))
    cuts = [1 << low, field, 1 << high - low - swizzle.bits, field, above]
    try:
        pieces = compose(a, Layout(tuple(cuts)))
    except LayoutError:
        return None
    fields = [pieces[1].modes, pieces[3].modes]
    if any(len(modes) != 1 or not _is_power_of_two(modes[0][1]) for modes in fields):
        return None
    first, second = (_lowest_bit(modes[0][1]) for modes in fields)
    source, target = (second, first) if swizzle.shift > 0 else (first, second)
    ends = [first, first + swizzle.bits, second, second + swizzle.bits]
    if abs(source - target) < swizzle.bits or not all(_ends_at(bit, pieces.modes) for bit in ends):
        return None
    return Swizzle(swizzle.bits, min(source, target), source - target)


def _ends_at(bit: int, modes: tuple[Mode, ...]) -> bool:
    """Whether nothing carries into `bit`: the modes below it stay below, and the others above."""
    return bool(sum((s - 1) * d for s, d in modes if d % (1 << bit)) < 1 << bit)


def _lowest_bit(mask: int) -> int:
    """The place of the lowest bit of `mask` that is set."""
    return (mask & -mask).bit_length() - 1


def _is_power_of_two(n: int) -> bool:
    return n > 0 and n & (n - 1) == 0
