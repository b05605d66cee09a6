"""Slices of a layout: None in a coordinate, CuTe's underscore, stands for a whole mode."""

from __future__ import annotations

from typing import Any

from ..errors import LayoutError
from ..values.layout import Layout, trusted
from ..values.modes import bit_modes, from_columns, has_xor_strides
from ..values.swizzle import ComposedLayout, layout_for
from ..values.symbols import plain
from ..values.tuples import IntTuple, coordinate, shallow, text

__all__ = ["dice", "slice_", "slice_and_offset"]


def slice_(coord: IntTuple, x: Any) -> Any:
    """The modes of a layout, or the entries of a tuple, where `coord` is None (C++ ``slice``).

    ``L(c) == offset + slice_(coord, L)(kept entries of c)``, where the offset is that of the other
    entries (`slice_and_offset`).  A composed layout holds it before its inner function.

    >>> print(slice_((None, 3), Layout((4, 8))), slice_((None, 3), (4, 8)))
    (4):(1) (4,)
    >>> from layouts import Swizzle
    >>> swizzled = ComposedLayout(Swizzle(3, 3, 3), 0, Layout((8, 64), (64, 1)))
    >>> print(slice_((3, None), swizzled))
    S<3,3,3> o 192 o (64):(1)
    """
    return slice_and_offset(coord, x)[0] if isinstance(x, ComposedLayout) else _part(coord, x, True)


def dice(coord: IntTuple, x: Any) -> Any:
    """The modes of a layout, or the entries of a tuple, where `coord` is not None (C++ ``dice``).

    >>> print(dice((None, 3), Layout((4, 8))), dice((1, None, 1), (32, 8, 16)))
    (8):(4) (32, 16)
    """
    return x.over(dice(coord, x.outer)) if isinstance(x, ComposedLayout) else _part(coord, x, False)


def slice_and_offset(coord: IntTuple, layout: Any) -> tuple[Any, Any]:
    """(sublayout, offset): the modes that `slice_` keeps, and the offset of the others (C++).

    ``L(c) == offset + sublayout(kept entries of c)``; the sum is an XOR if L has XOR strides.  A
    composed layout holds the offset itself, and the second is 0.

    >>> part, offset = slice_and_offset((2, None), Layout((4, 8), (8, 1)))
    >>> print(part, offset)
    (8):(1) 16
    """
    if isinstance(layout, ComposedLayout):
        part, offset = slice_and_offset(coord, layout.outer)
        if has_xor_strides(layout.outer):
            return _xored(layout, part, offset), 0
        return ComposedLayout(layout.inner, layout.offset + offset, part, layout.unit), 0
    part = slice_(coord, layout_for("slice_and_offset", layout))
    return part, layout(_fixed(coord))


def _xored(layout: ComposedLayout, part: Layout, fixed: Any) -> ComposedLayout:
    """``inner(offset + (fixed ^ part(c)))``.

    If `fixed` and `part` share no bit, the XOR is a sum.  Else the offset sets one more bit, whose
    column is `fixed`.
    """
    columns = [int(stride) for _, stride in bit_modes(part.modes) if stride]
    fixed = plain(fixed)
    if not columns or fixed == 0:
        return ComposedLayout(layout.inner, layout.offset + fixed, part, layout.unit)
    if type(fixed) is not int:
        raise LayoutError(
            f"slice of {layout}: the fixed coordinates add {fixed} to XOR strides, which needs the "
            f"bits of an integer known now"
        )
    if not any(fixed & column for column in columns):
        return ComposedLayout(layout.inner, layout.offset + fixed, part, layout.unit)
    top = max(*columns, fixed).bit_length()
    added = from_columns([*(1 << k for k in range(top)), fixed])
    inner = ComposedLayout(layout.inner, layout.offset, added)
    return ComposedLayout(inner, 1 << top, part, layout.unit)


def _part(coord: IntTuple, x: Any, kept: bool) -> Any:
    if isinstance(coord, (Layout, ComposedLayout)):
        raise LayoutError("the coordinate comes first, as in C++: slice_((None, 3), layout)")
    if hasattr(x, "with_layout"):
        raise LayoutError(f"{x!r} is a tensor: slice it as tensor[None, 3], or give its layout")
    _fixed(shallow(coord))  # checks the entries other than None, which are not used here
    if not isinstance(x, Layout):
        return _entries(coord, x, kept)
    shape, stride = _entries(coord, x.shape, kept), _entries(coord, x.stride, kept)
    return trusted(shape, stride)


def _entries(coord: IntTuple, t: IntTuple, kept: bool) -> IntTuple:
    """The entries of `t` where `coord` is None (`kept`), or where it is not; tuples are spliced."""
    if isinstance(coord, tuple):
        if not isinstance(t, tuple) or len(t) != len(coord):
            raise LayoutError(
                f"coordinate {shown(coord)} must have one entry for each mode of {text(t)}"
            )
        return tuple(x for pair in zip(coord, t, strict=True) for x in _lifted(*pair, kept))
    return t if (coord is None) is kept else ()


def _lifted(coord: IntTuple, t: IntTuple, kept: bool) -> tuple[Any, ...]:
    if isinstance(coord, tuple):
        entries: tuple[Any, ...] = _entries(coord, t, kept)
        return entries
    return (t,) if (coord is None) is kept else ()


def _fixed(coord: IntTuple) -> IntTuple:
    """`coord` with 0 for None."""
    if isinstance(coord, tuple):
        return tuple(_fixed(entry) for entry in coord)
    return 0 if coord is None else coordinate(coord)


def shown(coord: IntTuple) -> str:
    """A coordinate as CuTe prints it, None as the underscore."""
    if isinstance(coord, tuple):
        return f"({','.join(map(shown, coord))})"
    return "_" if coord is None else str(coord)
