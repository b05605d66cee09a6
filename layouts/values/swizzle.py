"""Swizzle: an XOR on the bits of an offset; ComposedLayout: a swizzle after a layout.

``Swizzle(B, M, S)`` keeps the low M bits: runs of ``2**M`` units stay together.  It XORs the B bits
above them with the B bits that are S higher:

    offset   . . Y Y Y . . Z Z Z . . .      Z ^= Y        Swizzle(3, 3, 5)
                   |<-- S -->|   |<M>|

In rows and columns: the column (Z) of a 16-byte run is XORed with its row (Y).  So the runs of one
column of a row-major tile are in different banks.

A swizzle acts on offsets in one unit.  ``S<3,4,3>`` on bytes is ``S<3,3,3>`` on 16-bit elements:
`Swizzle.recast` converts, and `ComposedLayout.unit` records the unit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from ..errors import LayoutError
from .arith import ceil_div, less
from .elimination import largest
from .layout import Composable, Layout, cosize, has_none
from .modes import bit_modes, extended, flat_modes, from_columns, has_xor_strides, placed
from .stride import ArithTuple, kind_of
from .tuples import (
    IntTuple,
    as_int,
    check_array_bits,
    checked,
    coordinate,
    highest_entries,
    product,
)
from .unit import checked_unit

__all__ = ["AnyLayout", "ComposedLayout", "Swizzle", "gives_coordinates", "outer_layout"]


#: The most bits of an offset; far more than any memory has.
HIGHEST = 4096


class Swizzle(Composable):
    """The involution that XORs B bits from bit M up with the B bits S above (C++ ``Swizzle``).

    For S < 0 the upper B bits change instead.  ``T(T(x)) == x``.  The low M bits stay, and each
    aligned block of ``2**(M + B + max(0, -S))`` offsets is permuted within itself.

    Raises `LayoutError` unless B, M >= 0 and ``|S| >= B`` (or B = 0).

    >>> T = Swizzle(3, 4, 3)
    >>> T(0x80), T(T(0x80)), str(T), T
    (144, 128, 'S<3,4,3>', Swizzle(3, 4, 3))
    """

    __slots__ = ("base", "bits", "shift", "source", "target")
    __match_args__ = ("bits", "base", "shift")
    bits: int
    base: int
    shift: int
    #: Masks: the bits that are read (Y), and the bits that change (Z).
    source: int
    target: int

    def __init__(self, bits: int, base: int, shift: int) -> None:
        bits, base, shift = map(as_int, (bits, base, shift))
        self._set(bits, base, shift)
        for name, field in (("BBits", bits), ("MBase", base), ("SShift", shift)):
            if type(field) is not int:
                raise LayoutError(f"{self!r}: {name} is {field!r} and must be an int")
        if bits < 0 or base < 0:
            raise LayoutError(f"{self!r}: BBits and MBase must be at least 0")
        if bits + base + abs(shift) > HIGHEST:
            raise LayoutError(f"{self!r}: it uses bits above {HIGHEST}")
        if bits and abs(shift) < bits:
            wider = -bits if shift < 0 else bits
            raise LayoutError(
                f"{self!r}: |SShift| must be at least BBits = {bits}, or bits that change would "
                f"also be read; the nearest are Swizzle({bits}, {base}, {wider}) and "
                f"Swizzle({abs(shift)}, {base}, {shift})"
            )
        field = (1 << bits) - 1
        object.__setattr__(self, "source", field << base + max(0, shift))
        object.__setattr__(self, "target", field << base + max(0, -shift))

    @property
    def block(self) -> int:
        """The size of the aligned blocks of offsets that are permuted within themselves."""
        return self.target + (self.target & -self.target) if self.bits else 1

    def __call__(self, offset: Any) -> Any:
        """The swizzled offset of an int from 0 up, or of an array of offsets, elementwise."""
        if type(offset) is int and offset >= 0 <= self.shift:  # the usual case
            return offset ^ (offset & self.source) >> self.shift
        return self.permuted(coordinate(offset))

    def permuted(self, x: Any) -> Any:
        """The swizzled offset of an int, or of an array of 64-bit integers, that is at least 0."""
        if type(x) is not int:
            check_array_bits(x, lambda: self.source | self.target, self)
        try:
            y = x & self.source
            if self.shift >= 0:
                y >>= self.shift
            else:
                y <<= -self.shift
            y ^= x
        except TypeError:
            raise LayoutError(f"{self} takes an integer or an array, not {x!r}") from None
        return y

    @property
    def layout(self) -> Layout:
        """The swizzle as a layout with XOR strides; its last mode is unbounded.

        >>> print(Swizzle(1, 0, 2).layout)
        (4,2,2):(F1,F5,F8)
        """
        top = (self.source | self.target).bit_length()
        return from_columns([self(1 << bit) for bit in range(top + 1)])

    def recast(self, old_bits: int, new_bits: int) -> Swizzle:
        """The swizzle that moves the same bytes when an offset counts `new_bits`, not `old_bits`.

        Units are in bits: 8 for bytes, 16 for half elements.  Raises `LayoutError` if a bit that is
        read or changed is inside one new unit, or if the units are not a power of two apart.

        >>> Swizzle(3, 4, 3).recast(8, 16), Swizzle(3, 3, 3).recast(16, 8)
        (Swizzle(3, 3, 3), Swizzle(3, 4, 3))
        """
        base = self.base - _log2_ratio(old_bits, new_bits)
        if base < 0 and self.bits:
            raise LayoutError(
                f"{self} on {old_bits}-bit units has no equivalent on {new_bits}-bit units: it "
                f"changes bits inside one; the widest unit that it moves whole has "
                f"{old_bits << self.base} bits"
            )
        return Swizzle(self.bits, max(base, 0), self.shift)

    def __str__(self) -> str:
        return f"S<{self.bits},{self.base},{self.shift}>"


def _log2_ratio(old_bits: int, new_bits: int) -> int:
    """``log2(new_bits / old_bits)``, which must be a whole number."""
    small, large = sorted(map(checked_unit, (old_bits, new_bits)))
    ratio = large // small
    if ratio * small != large or ratio & (ratio - 1):
        raise LayoutError(f"units of {old_bits} and {new_bits} bits must be a power of two apart")
    return (ratio.bit_length() - 1) * (1 if new_bits >= old_bits else -1)


class ComposedLayout(Composable):
    """``R(c) = inner(offset + outer(c))``: a layout, then an offset, then a function of an offset:
    a swizzle, a layout or another composed layout.

    Its coordinates are those of `outer`.  `unit` is the width of an offset's unit in bits (16 for
    half elements, 8 for bytes), or None if it is not given; it is part of the value.  C++
    ``ComposedLayout``; the names are those of the DSL.

    >>> R = ComposedLayout(Swizzle(3, 3, 3), 0, Layout((8, 64), (64, 1)), unit=16)
    >>> print(R, R(1, 0), R[1])
    S<3,3,3> o 0 o (8,64):(64,1) 72 S<3,3,3> o 0 o 64:1
    """

    __slots__ = __match_args__ = ("inner", "offset", "outer", "unit")
    inner: Swizzle | Layout | ComposedLayout
    offset: Any
    outer: Layout
    unit: int | None

    def __init__(self, inner: Any, offset: Any, outer: Layout, unit: int | None = None) -> None:
        self._set(inner, offset, outer, unit)
        if not isinstance(inner, (Swizzle, Layout, ComposedLayout)):
            raise LayoutError(f"{self!r}: inner must be a Swizzle, a Layout or a ComposedLayout")
        if not isinstance(outer, Layout) or kind_of(outer.modes) is ArithTuple:
            raise LayoutError(f"{self!r}: outer must be a Layout that gives integers")
        if isinstance(offset, tuple):
            raise LayoutError(f"{self!r}: the offset must be one integer")
        if unit is not None:
            unit = checked_unit(unit)
        self._set(inner, checked(offset, "offset", 0), outer, unit)

    @property
    def shape(self) -> IntTuple:
        """The shape of `outer`."""
        return self.outer.shape

    def __call__(self, *coord: IntTuple) -> Any:
        """The offset of an index or a coordinate, or of arrays of them, elementwise.

        If an entry is None, the result is a composed layout of the modes with None.  It holds the
        offset of the other entries before its inner function, so nothing is lost.
        """
        at = coord[0] if len(coord) == 1 else coord
        if type(at) is int:
            return self.inner(self.offset + self.outer(at))
        if has_none(at):
            from ..algebra.slice import slice_  # it imports this file

            return slice_(at, self)
        offset = self.outer(at)
        if type(self.inner) is Swizzle and type(self.offset) is int and self.offset == 0:
            return self.inner.permuted(offset)
        if type(offset) is not int:
            self._check_array_bits(offset)
        return self.inner(self.offset + offset)

    def _check_array_bits(self, before: Any) -> None:
        """Before the offset is added to `before`, the values of `outer`."""
        highest = highest_entries(before)
        if hasattr(highest, "ndim"):  # its entries cannot be looked at
            highest = cosize(self.outer)
        check_array_bits(before, lambda: self.offset + highest, self)

    def __len__(self) -> int:
        return len(self.outer)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[ComposedLayout]:
        """The modes, from left to right, each with the same inner and offset."""
        return (self.over(mode) for mode in self.outer)

    def __getitem__(self, mode: int) -> ComposedLayout:
        """Mode `mode`: its coordinates with all others 0, so the offset stays."""
        return self.over(self.outer[mode])

    def over(self, outer: Layout) -> ComposedLayout:
        """The same inner, offset and unit over another outer layout."""
        return ComposedLayout(self.inner, self.offset, outer, self.unit)

    def __str__(self) -> str:
        inner = f"({self.inner})" if isinstance(self.inner, ComposedLayout) else self.inner
        return f"{inner} o {self.offset} o {self.outer}"

    def __repr__(self) -> str:
        unit = "" if self.unit is None else f", unit={self.unit}"
        return f"ComposedLayout({self.inner!r}, {self.offset!r}, {self.outer!r}{unit})"

    def _cosize(self) -> Any:
        return _bound(self.inner, self.offset + cosize(self.outer))


#: A layout, or a composed layout: an operation on either gives one of the same kind.
AnyLayout = TypeVar("AnyLayout", Layout, ComposedLayout)


def layout_for(name: str, x: Any) -> Any:
    """`x`, if it is a layout or a composed layout; `name` is the operation, for the error."""
    if isinstance(x, (Layout, ComposedLayout)):
        return x
    raise LayoutError(f"{name} of {x!r}: it takes a Layout or a ComposedLayout")


def outer_layout(layout: Layout | ComposedLayout) -> Layout:
    """The layout that takes the coordinates: the outer one of a composed layout, else `layout`.

    >>> print(outer_layout(ComposedLayout(Swizzle(1, 0, 2), 0, Layout(8))), outer_layout(Layout(8)))
    8:1 8:1
    """
    return layout.outer if isinstance(layout, ComposedLayout) else layout


def gives_coordinates(layout: Layout | ComposedLayout) -> bool:
    """Whether the values of a layout are coordinates.

    >>> from layouts import E
    >>> gives_coordinates(ComposedLayout(Layout(8, E(0)), 0, Layout(4)))
    True
    """
    function: Any = layout
    while isinstance(function, ComposedLayout):
        function = function.inner
    return isinstance(function, Layout) and kind_of(function.modes) is ArithTuple


def _bound(inner: Swizzle | Layout | ComposedLayout, before: Any) -> Any:
    """A bound: the values of `inner` on the offsets below `before` are below it."""
    if isinstance(inner, Swizzle):
        return _swizzled_bound(inner, before)
    if isinstance(inner, ComposedLayout):
        return _bound(inner.inner, inner.offset + _bound(inner.outer, before))
    return _xor_bound(inner, before) if has_xor_strides(inner) else _image_bound(inner, before)


def _swizzled_bound(swizzle: Swizzle, before: Any) -> Any:
    """`_bound` of a swizzle: whole blocks, unless no bit is read."""
    lowest_read = swizzle.source & -swizzle.source
    if swizzle.bits == 0 or (type(before) is int and before <= lowest_read):
        return before
    return -(-before // swizzle.block) * swizzle.block


def _image_bound(layout: Layout, before: Any) -> Any:
    """`_bound` of a layout with integer strides, its last mode extended."""
    last, bound = before - 1, 1
    *modes, (_, last_stride) = flat_modes(layout) or [(1, 0)]
    if type(before) is not int:
        bound += sum((extent - 1) * stride for extent, stride in modes)
        return bound + (ceil_div(before, product(tuple(s for s, _ in modes))) - 1) * last_stride
    for extent, stride in modes:
        bound += min(last, extent - 1) * stride
        last //= extent
    return bound + last * last_stride


def _xor_bound(layout: Layout, before: int) -> int:
    """`_bound` of a layout with XOR strides: the largest XOR of its columns, plus 1."""
    reached = placed(bit_modes(extended(layout, before).modes))
    return largest(int(stride) for _, stride, place in reached if not less(before, place + 1)) + 1
