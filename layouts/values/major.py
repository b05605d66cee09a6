"""The two orders of a compact layout, as C++ CuTe names them: `LayoutLeft` and `LayoutRight`."""

from __future__ import annotations

from .tuples import IntTuple, checked, compact_col_major, leaves, unflatten
from .value import Value

__all__ = ["LayoutLeft", "LayoutRight"]


class Major(Value):
    """An order of the modes: which end of the shape has stride 1."""

    __slots__ = __match_args__ = ("name",)
    name: str

    def __init__(self, name: str) -> None:
        self._set(name)

    def __repr__(self) -> str:
        return self.name

    def strides(self, shape: IntTuple) -> IntTuple:
        """The strides of the compact layout of `shape` (C++ ``compact_major``).

        >>> LayoutRight.strides(((2, 3), 4)), LayoutLeft.strides(((2, 3), 4))
        (((12, 4), 1), ((1, 2), 6))
        """
        shape = checked(shape, "shape", 1)
        if self == LayoutLeft:
            return compact_col_major(shape)
        backwards = leaves(compact_col_major(leaves(shape)[::-1]))
        return unflatten(backwards[::-1], shape)


#: The leftmost mode has stride 1 (C++ ``LayoutLeft``): column-major.
LayoutLeft = Major("LayoutLeft")

#: The rightmost mode has stride 1 (C++ ``LayoutRight``): row-major.
LayoutRight = Major("LayoutRight")
