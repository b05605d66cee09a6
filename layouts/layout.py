"""Layout: a function from coordinates to offsets, written ``shape:stride``.

    (4,8):(8,1)   takes the coordinate (i, j) to the offset 8*i + j: four rows of eight, row-major

A layout is also a function of one integer, its index: the coordinates counted with the leftmost
mode fastest.  Index 5 of (4,8) is the coordinate (1, 1), so ``Layout((4, 8), (8, 1))(5) == 9``.
The last mode goes on beyond the size, as in C++ ``crd2idx``; there are no negative indices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .errors import LayoutError
from .tuples import (
    IntTuple,
    checked,
    compact_col_major,
    congruent,
    coordinate,
    inner_product,
    leaves,
    map_leaves,
    product,
    text,
    unflatten,
)
from .value import Value

__all__ = ["Composable", "Layout", "cosize", "flatten", "make_layout", "make_ordered_layout"]


class Composable(Value):
    """What ``@`` composes: layouts, swizzles, and composed layouts."""

    __slots__ = ()

    def __matmul__(self, other: Any) -> Any:
        """``A @ B`` is ``composition(A, B)``."""
        from .algebra import composition  # above this file: the algebra is made of layouts

        return composition(self, other)

    def _repr_html_(self) -> str | None:
        """The picture that a notebook shows, where there is one."""
        from .draw import notebook  # above this file: pictures are of layouts

        return notebook(self)


class Layout(Composable):
    """A shape and a congruent stride; calling it gives offsets (C++ ``Layout``).

    ``L(c) = sum of c_k * stride_k`` over the leaves.  Without a stride the layout is compact and
    column-major; an extent of 1 then gets stride 0.  Extents are at least 1, strides at least 0;
    symbols and kernel-time integers are taken as they are.  Raises `LayoutError` otherwise.

    >>> L = Layout((4, 8), (8, 1))
    >>> L(1, 5), L((1, 5)), L(21), L[0], len(L)
    (13, 13, 13, Layout(4, 8), 2)
    >>> print(Layout(((2, 4), 8)))
    ((2,4),8):((1,2),8)
    """

    __slots__ = __match_args__ = ("shape", "stride")
    shape: IntTuple
    stride: IntTuple

    def __init__(self, shape: IntTuple, stride: IntTuple = None) -> None:
        shape = checked(shape, "shape", 1)
        stride = compact_col_major(shape) if stride is None else checked(stride, "stride", 0)
        if not congruent(shape, stride):
            raise LayoutError(
                f"shape {text(shape)} and stride {text(stride)} must have the same nesting of "
                f"tuples: one stride per extent"
            )
        self._set(shape, stride)

    def __call__(self, *coord: IntTuple) -> Any:
        """The offset of an index or a coordinate, or of arrays of them, elementwise.

        Raises `LayoutError` on a negative integer or a coordinate that the shape does not take.
        """
        checked_coord = coordinate(coord[0] if len(coord) == 1 else coord)
        return inner_product(checked_coord, self.shape, self.stride)

    def __len__(self) -> int:
        return len(self.shape) if isinstance(self.shape, tuple) else 1

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Layout]:
        """The modes, from left to right."""
        if not isinstance(self.shape, tuple):
            return iter((self,))
        return map(Layout, self.shape, self.stride)

    def __getitem__(self, mode: int) -> Layout:
        """Mode `mode` (C++ ``layout<mode>(L)``); of an integer shape, mode 0 is the layout."""
        modes = tuple(self)
        if not isinstance(mode, int) or not -len(modes) <= mode < len(modes):
            raise LayoutError(f"mode {mode!r} of {self}: its modes are 0 to {len(modes) - 1}")
        return modes[mode]

    def __str__(self) -> str:
        return f"{text(self.shape)}:{text(self.stride)}"

    def _cosize(self) -> Any:
        last = map_leaves(lambda s, d: (s - 1) * d, self.shape, self.stride)
        return sum(leaves(last)) + 1


def make_layout(*parts: Any, stride: IntTuple = None) -> Layout:
    """A layout of a shape and a stride, or of layouts, one per mode (C++ ``make_layout``).

    ``make_layout(A, B)(a, b) == A(a) + B(b)``.  Raises `LayoutError` as `Layout` does.

    >>> print(make_layout(Layout(4, 2), Layout((2, 3))))
    (4,(2,3)):(2,(1,2))
    >>> print(make_layout((4, 8), (8, 1)), make_layout((4, 8), stride=(8, 1)))
    (4,8):(8,1) (4,8):(8,1)
    """
    given = parts if stride is None else (*parts, stride)
    layouts = [part for part in given if isinstance(part, Layout)]
    if len(layouts) == len(given):
        return Layout(tuple(mode.shape for mode in layouts), tuple(mode.stride for mode in layouts))
    if layouts or len(given) > 2:
        raise LayoutError(
            f"make_layout takes a shape and a stride, or layouts alone, not "
            f"({', '.join(map(repr, given))})"
        )
    return Layout(*given)


def make_ordered_layout(shape: IntTuple, order: IntTuple) -> Layout:
    """The compact layout whose strides grow in the order given (C++ ``make_ordered_layout``).

    The mode with the smallest order has stride 1.  An order that faces a tuple of extents holds for
    all of them, leftmost fastest.  Raises `LayoutError` if two orders are equal or one has no mode.

    >>> print(make_ordered_layout((4, 8), (1, 0)), make_ordered_layout((2, (3, 4)), (1, 0)))
    (4,8):(8,1) (2,(3,4)):(12,(1,3))
    """
    pairs = _ordered_modes(shape, order)
    orders = [place for place, _ in pairs]
    if len(set(orders)) != len(orders):
        raise LayoutError(f"order {text(order)}: every mode needs an order of its own")
    starts, start = {}, 1
    for place, mode in sorted(pairs, key=lambda pair: pair[0]):
        starts[place], start = start, start * product(mode)
    strides = [d for place, mode in pairs for d in leaves(compact_col_major(mode, starts[place]))]
    return Layout(shape, unflatten(strides, shape))


def _ordered_modes(shape: IntTuple, order: IntTuple) -> list[tuple[int, IntTuple]]:
    """The pairs (order, mode of shape), from left to right."""
    if not isinstance(order, tuple):
        return [(checked(order, "order", 0), shape)]
    if not isinstance(shape, tuple) or len(shape) != len(order):
        raise LayoutError(f"order {text(order)} must have one entry per mode of {text(shape)}")
    nested = map(_ordered_modes, shape, order)
    return [pair for pairs in nested for pair in pairs]


def flatten(x: Any) -> Any:
    """A layout, or a tuple, without its inner parentheses (C++ ``flatten``).

    The function of the index stays the same.

    >>> print(flatten(Layout(((2, 4), 8))), flatten(((2, 4), 8)), flatten(Layout(8)))
    (2,4,8):(1,2,8) (2, 4, 8) 8:1
    """
    if isinstance(x, Layout):
        return Layout(flatten(x.shape), flatten(x.stride))
    return leaves(x) if isinstance(x, tuple) else x


def cosize(layout: Any, mode: int | Iterable[int] | None = None) -> Any:
    """One more than the largest offset of a layout, or of one of its modes (C++ ``cosize``).

    For a composed layout it bounds every offset, so that it is what to allocate.

    >>> cosize(Layout((4, 8), (16, 1))), cosize(Layout((4, 8), (16, 1)), 1)
    (56, 8)
    """
    for step in () if mode is None else (mode,) if isinstance(mode, int) else mode:
        layout = layout[step]
    return layout._cosize()
