"""CUTLASS's DSL as far as tract uses it, made of this library."""

from collections.abc import Iterable
from typing import Any, TypeVar

T = TypeVar("T")


class Constexpr:
    """An argument known when a kernel is traced: here, any value."""

    def __class_getitem__(cls, _: Any) -> type:
        return object


def const_expr(value: T) -> T:
    """The value itself."""
    return value


def range_constexpr(*bounds: int) -> Iterable[int]:
    """Python's range."""
    return range(*bounds)
