"""Functions of an offset, one after the other: what composition does around a swizzle.

``A(S(x))`` with a swizzle S is again a swizzled layout, ``S'(A(x))``, only where A keeps the bits
that S reads and changes together and apart from all others; C++ CuTe pushes S through without
asking.  Elsewhere the composition stays what it is, a chain of functions.
"""

from __future__ import annotations

from typing import Any

from ..errors import LayoutError
from ..values.layout import Layout, cosize, joined
from ..values.modes import Mode, from_columns, xors
from ..values.swizzle import ComposedLayout, Swizzle
from ..values.tuples import leaves, product, size, unflatten
from .compose import compose
from .through import compose_xor

__all__ = ["after", "after_layout", "chained", "pushed_through", "reaching"]


def after(swizzle: Swizzle, b: Any) -> Any:
    """`swizzle` after a layout, a swizzle or a composed layout."""
    if isinstance(b, Swizzle):
        return _after_swizzle(swizzle, b)
    if isinstance(b, ComposedLayout):
        return ComposedLayout(_function(swizzle, 0, b.inner, _reach(b)), b.offset, b.outer, b.unit)
    if not isinstance(b, Layout):
        raise LayoutError(f"composition of {swizzle} with {b!r}: a swizzle goes after a Layout")
    if swizzle.bits == 0:
        return b
    if xors(b):
        return compose_xor(swizzle.layout, b)
    return ComposedLayout(swizzle, 0, b)


def _after_swizzle(first: Swizzle, second: Swizzle) -> Swizzle | Layout:
    """Both swizzles: one swizzle if their bits make one, else a layout with XOR strides."""
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


def chained(a: ComposedLayout, b: Any) -> ComposedLayout:
    """`a.inner` after its offset and `b`, which has taken the place of `a.outer`."""
    if isinstance(b, Layout):
        return a.over(b)
    inner = _function(a.inner, a.offset, b.inner, _reach(b))
    return ComposedLayout(inner, b.offset, b.outer, a.unit)


def _reach(b: ComposedLayout) -> Any:
    """What the offsets that reach `b.inner` are below."""
    return b.offset + cosize(b.outer)


def _function(f: Any, offset: Any, g: Any, count: Any) -> Any:
    """The function ``f(offset + g(x))`` of the offsets x below `count`, g going on beyond its size.

    >>> from layouts import F2
    >>> swizzle = Swizzle(1, 3, 1)
    >>> print(_function(swizzle, 0, Layout(2, F2(16)), 4), swizzle(Layout(2, F2(16))(3)))
    (2,2):(24,32) 56
    """
    if isinstance(g, ComposedLayout):
        g = g.over(reaching(g.outer, count))
        return ComposedLayout(_function(f, offset, g.inner, _reach(g)), g.offset, g.outer)
    if isinstance(g, Swizzle) and isinstance(f, Swizzle) and offset == 0:
        return _after_swizzle(f, g)
    if isinstance(g, Swizzle):
        g = g.layout
    if isinstance(f, Swizzle) and offset == 0 and xors(g):
        return compose_xor(f.layout, reaching(g, count))
    return ComposedLayout(f, offset, g)


# ------------------------------------------------------------------- a layout after a swizzle


def pushed_through(a: Layout, b: ComposedLayout) -> ComposedLayout | Layout | None:
    """``A(S(o + L(c)))`` as ``S'(o' + (A o L)(c))``, or as a layout with XOR strides; None if
    neither is right.

    >>> swizzled = ComposedLayout(Swizzle(1, 0, 1), 0, Layout(8))
    >>> print(pushed_through(Layout((4, 2), (1, 5)), swizzled))
    None
    """
    if (
        not isinstance(b.inner, Swizzle)
        or xors(b.outer)
        or not all(type(x) is int for mode in (*a.modes, *b.outer.modes) for x in mode)
    ):
        return None
    swizzle = _image_swizzle(a, b.inner, b.offset + cosize(b.outer))
    if swizzle is not None:
        try:
            shifted = compose(a, joined([Layout(2, b.offset), b.outer]))
        except LayoutError:
            shifted = None
        if shifted is not None and shifted.shape[0] == 2:
            return ComposedLayout(swizzle, shifted.stride[0], shifted[1])
    if b.offset:
        return None
    linear = _as_xor(b)
    return None if linear is None else compose_xor(a, linear)


def _as_xor(b: ComposedLayout) -> Layout | None:
    """A swizzled layout without an offset as a layout with XOR strides, or None."""
    return compose_xor(b.inner.layout, b.outer) if isinstance(b.inner, Swizzle) else None


def _image_swizzle(a: Layout, swizzle: Swizzle, count: int) -> Swizzle | None:
    """The swizzle S' with ``S'(A(x)) == A(S(x))`` for every x below `count`, or None."""
    if swizzle.bits == 0 or count <= swizzle.source & -swizzle.source:
        return Swizzle(0, swizzle.base, swizzle.shift)
    low, high = sorted((_lowest(swizzle.source), _lowest(swizzle.target)))
    field = 1 << swizzle.bits
    above = max(1, -(-count >> high + swizzle.bits))
    cuts = [1 << low, field, 1 << high - low - swizzle.bits, field, above]
    try:
        pieces = compose(a, Layout(tuple(cuts)))
    except LayoutError:
        return None
    fields = [pieces[1].modes, pieces[3].modes]
    if any(len(modes) != 1 or _log2(modes[0][1]) is None for modes in fields):
        return None
    first, second = (modes[0][1].bit_length() - 1 for modes in fields)
    source, target = (second, first) if swizzle.shift > 0 else (first, second)
    ends = [first, first + swizzle.bits, second, second + swizzle.bits]
    if abs(source - target) < swizzle.bits or not all(_ends_at(bit, pieces.modes) for bit in ends):
        return None
    return Swizzle(swizzle.bits, min(source, target), source - target)


def _ends_at(bit: int, modes: tuple[Mode, ...]) -> bool:
    """Whether nothing carries into `bit`: the modes below it stay below, and the others above."""
    return bool(sum((s - 1) * d for s, d in modes if d % (1 << bit)) < 1 << bit)


def _lowest(mask: int) -> int:
    return (mask & -mask).bit_length() - 1


def _log2(n: int) -> int | None:
    return n.bit_length() - 1 if n > 0 and n & (n - 1) == 0 else None


def after_layout(a: Layout, b: ComposedLayout) -> ComposedLayout:
    """`a` after the inner function of `b`, as one layout where that is one."""
    inner = b.inner
    if isinstance(inner, Layout):
        reach = _reach(b)
        try:
            through = reaching(inner, reach)
            found = compose_xor(a, through) if xors(a) or xors(through) else compose(a, through)
            if found is not None:
                return ComposedLayout(found, b.offset, b.outer)
        except LayoutError:
            pass
    return ComposedLayout(_function(a, 0, inner, _reach(b)), b.offset, b.outer)


def reaching(layout: Layout, count: int) -> Layout:
    """`layout` with its last extent enlarged so that it has `count` indices: the same function."""
    extents = leaves(layout.shape)
    before = product(extents[:-1])
    if not extents or type(count) is not int or count <= size(layout):
        return layout
    last = -(-count // before)
    if xors(layout):
        last = 1 << (last - 1).bit_length()
    return Layout(unflatten((*extents[:-1], last), layout.shape), layout.stride)
