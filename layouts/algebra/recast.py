"""Layouts in another unit: n old elements to a new one (upcast), n new to an old one (downcast)."""

from __future__ import annotations

from math import gcd
from typing import Any

from ..errors import LayoutError
from ..values.arith import ceil_div, divided, divides, less
from ..values.layout import Layout
from ..values.modes import bit_modes, from_columns, has_xor_strides, merged, refined
from ..values.stride import F2, StepStride
from ..values.swizzle import AnyLayout, ComposedLayout, Swizzle, gives_coordinates, layout_for
from ..values.tuples import is_int, map_leaves
from .as_layout import as_layout

__all__ = ["downcast", "recast", "upcast"]


def recast(layout: AnyLayout, old_bits: int, new_bits: int) -> AnyLayout:
    """The same memory in units of `new_bits` instead of `old_bits` (C++ ``recast<Old, New>``).

    Neither unit need divide the other: the greatest common divisor is an intermediate unit.  A
    swizzle moves the same bytes as before.  The unit of a composed layout, if it has one, must be
    `old_bits`.

    >>> print(recast(Layout((4, 8), (8, 1)), 16, 32), recast(Layout((4, 8), (8, 1)), 16, 8))
    (4,4):(4,1) (4,16):(16,1)
    >>> print(recast(ComposedLayout(Swizzle(3, 3, 3), 0, Layout((8, 64), (64, 1)), 16), 16, 8))
    S<3,4,3> o 0 o (8,128):(128,1)
    """
    old, new = _whole_number("recast", old_bits), _whole_number("recast", new_bits)
    if isinstance(layout, ComposedLayout) and layout.unit not in (None, old):
        raise LayoutError(f"recast of {layout!r} from {old} bits: its unit is {layout.unit} bits")
    common = gcd(old, new)
    return upcast(downcast(layout, old // common), new // common)


def upcast(layout: AnyLayout, n: int) -> AnyLayout:
    """The layout of units that hold n elements of `layout` each (C++ ``upcast<n>``).

    If d is a multiple of n, a mode s:d becomes s:d/n.  If d divides n, a unit holds k = n/d
    elements of the mode, which becomes s/k:1, or 1:1 if all are in one unit.  With k = 1 for the
    other modes, ``L(c) == n * R(c // k) + L(c % k)`` leaf by leaf, and ``L(c % k) < n``.

    Raises `LayoutError` if an element of a mode is across the boundary of two units.

    >>> print(upcast(Layout((4, 8), (8, 1)), 2), upcast(Layout((2, 8), (2, 4)), 4))
    (4,4):(4,1) (1,8):(1,1)
    """
    n = _whole_number("upcast", n)
    if n == 1:
        return layout_for("upcast", layout)  # type: ignore[no-any-return]
    if isinstance(layout, ComposedLayout):
        return _recast_composed(layout, n, up=True)
    layout = _in_bits_of("upcast", layout, n)
    if has_xor_strides(layout):
        return _upcast_xor(layout, n)
    inside: Any = 0
    modes = []
    for extent, stride in layout.modes:
        mode, held = _upcast_mode(layout, extent, stride, n)
        modes.append(mode)
        inside += (held - 1) * stride
    if not less(inside, n):
        raise LayoutError(
            f"upcast of {layout} by {n}: the elements of one unit reach offset {inside} in it, "
            f"which must be below {n}: the layout is not injective"
        )
    return refined(layout.shape, [[mode] for mode in modes])


def _upcast_mode(layout: Layout, extent: Any, stride: Any, n: int) -> tuple[tuple[Any, Any], Any]:
    """The mode of units, and the number of elements of the mode in one unit."""
    if isinstance(stride, StepStride):
        raise LayoutError(f"upcast of {layout}: its values are coordinates, not offsets")
    if divides(n, stride):
        return (extent, divided(stride, n)[0]), 1
    if extent == 1:
        return (1, ceil_div(stride, n)), 1
    if less((extent - 1) * stride, n):
        return (1, 1), extent
    if divides(stride, n):
        held = divided(n, stride)[0]
        if divides(held, extent):
            return (divided(extent, held)[0], 1), held
    raise LayoutError(
        f"upcast of {layout} by {n}: the mode {extent}:{stride} does not divide into units: its "
        f"stride must be a multiple of {n}, or divide {n} with an extent that {n}/stride divides; "
        + _misaligned(extent, stride, n)
    )


def _misaligned(extent: Any, stride: Any, n: int) -> str:
    """The first element of a mode that is not at its place in a unit; with symbols, why none is
    known."""
    if type(stride) is not int or type(extent) is not int:
        return f"with symbols, {extent}:{stride} is not known to be so"
    first = extent - 1 if n % stride == 0 else max(1, n // stride)
    return f"its element {first} is misaligned"


def downcast(layout: AnyLayout, n: int) -> AnyLayout:
    """The layout of the n parts of each element of `layout` (C++ ``downcast<n>``).

    The first mode of stride 1 with more than one element, or else the first of stride 1, becomes n
    times as long, and every other stride is multiplied by n: ``R(n * c + r) == n * L(c) + r`` for
    the coordinate c of that mode.  Raises `LayoutError` if no mode has stride 1.

    >>> print(downcast(Layout((4, 8), (8, 1)), 2))
    (4,16):(16,1)
    """
    n = _whole_number("downcast", n)
    if n == 1:
        return layout_for("downcast", layout)  # type: ignore[no-any-return]
    if isinstance(layout, ComposedLayout):
        return _recast_composed(layout, n, up=False)
    layout = _in_bits_of("downcast", layout, n)
    unit = F2(1) if has_xor_strides(layout) else 1
    ones = [k for k, (_, stride) in enumerate(layout.modes) if stride == unit]
    if not ones:
        raise LayoutError(
            f"downcast of {layout} by {n}: no mode has stride 1, to which the parts of an element "
            f"could be added; give it a mode 1:1"
        )
    own = next((k for k in ones if layout.modes[k][0] != 1), ones[0])
    modes = [
        (extent * n, stride) if k == own else (extent, stride * n)
        for k, (extent, stride) in enumerate(layout.modes)
    ]
    return refined(layout.shape, [[mode] for mode in modes])


# ------------------------------------------------------------------------------------ parts


def _whole_number(name: str, n: int) -> int:
    """`n` as an int; `name` is the operation in the error."""
    if not is_int(n) or n < 1:
        raise LayoutError(f"{name} by {n!r}: it must be an integer of at least 1")
    return int(n)


def _recast_composed(layout: ComposedLayout, n: int, up: bool) -> ComposedLayout:
    """A swizzled layout with its swizzle, offset and outer layout in the new unit.

    A swizzle without an equivalent in the new unit may still be a layout on the offsets that occur.
    """
    if not up and layout.unit is not None and layout.unit % n:
        raise LayoutError(
            f"downcast of {layout!r} by {n}: its unit of {layout.unit} bits must be a multiple of "
            f"{n}; downcast by a divisor of {layout.unit}, or leave out the unit"
        )
    try:
        inner = _recast_swizzle(layout, n, up)
        return _in_new_unit(layout, inner, layout.offset, layout.outer, n, up)
    except LayoutError:
        found = as_layout(layout)
        if found is None or gives_coordinates(layout):
            raise
        try:
            return _in_new_unit(layout, Swizzle(0, 0, 0), *found, n, up)
        except LayoutError:
            pass
        raise


def _recast_swizzle(layout: ComposedLayout, n: int, up: bool) -> Swizzle:
    """The swizzle of `layout` in the new unit; errors are in bits if the layout has a unit."""
    swizzle, unit = layout.inner, layout.unit
    if not isinstance(swizzle, Swizzle):
        raise LayoutError(f"recast of {layout}: only a swizzled layout can change its unit")
    if unit is not None:
        return swizzle.recast(unit, unit * n if up else unit // n)
    if n & (n - 1):
        name = "upcast" if up else "downcast"
        raise LayoutError(f"{name} of {layout} by {n}: a swizzle needs a power of two")
    if up and swizzle.bits and n >> swizzle.base > 1:
        raise LayoutError(
            f"upcast of {layout} by {n}: its swizzle changes bits inside one unit; the widest "
            f"unit that it moves whole has {1 << swizzle.base} elements"
        )
    return swizzle.recast(1, n) if up else swizzle.recast(n, 1)


def _in_new_unit(
    layout: ComposedLayout, inner: Swizzle, offset: Any, outer: Layout, n: int, up: bool
) -> ComposedLayout:
    """`inner` after `offset` and `outer`, these two converted; `layout` is their composition."""
    if up and not divides(n, offset):
        raise LayoutError(f"upcast of {layout} by {n}: its offset must be a multiple of {n}")
    offset = divided(offset, n)[0] if up else offset * n
    outer = upcast(outer, n) if up else downcast(outer, n)
    unit = layout.unit
    if unit is not None:
        unit = unit * n if up else unit // n
    return ComposedLayout(inner, offset, outer, unit)


def _in_bits_of(name: str, layout: Any, n: int) -> Layout:
    """`layout`, with integer strides for XOR strides unless `n` is a power of two."""
    layout_for(name, layout)
    if not has_xor_strides(layout) or n & (n - 1) == 0:
        return layout  # type: ignore[no-any-return]
    columns = [int(stride) for _, stride in bit_modes(layout.modes) if stride]
    if has_xor_strides(from_columns(columns)):
        raise LayoutError(
            f"{name} of {layout} by {n}: it must be a power of two, since XOR strides share bits"
        )
    return Layout(layout.shape, map_leaves(int, layout.stride))


def _upcast_xor(layout: Layout, n: int) -> Layout:
    """Bit by bit: columns that are multiples of n are divided, those below n are in the unit."""
    parts = []
    for mode in layout.modes:
        if not mode[1]:
            parts.append([mode])
            continue
        columns = [int(d) for _, d in bit_modes([mode])]
        high = [column for column in columns if column % n == 0]
        low = columns[: len(columns) - len(high)]
        if any(column >= n for column in low):
            raise LayoutError(
                f"upcast of {layout} by {n}: the mode {mode[0]}:{mode[1]} changes bits inside a "
                f"unit together with bits above it"
            )
        units = merged([(2, F2(column // n)) for column in high])
        parts.append(units if high or not low else [(1, F2(1))])
    return refined(layout.shape, parts)
