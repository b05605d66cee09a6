"""CUTLASS's `pycute`, made of this library.

`shape_div`, `inner_product` and `prefix_product` are steps of pycute's own algorithms.  They are
written here, since this library has no use for the first, and the others as parts of `crd2idx`.
"""

from typing import Any

import layouts
from layouts import *  # noqa: F403
from layouts.values.tuples import inner_product as offset
from layouts.values.tuples import is_int, leaves, place_values


class _OfInts(type):
    """What `is_int` accepts, as a class."""

    def __instancecheck__(cls, x: Any) -> bool:
        return is_int(x)

    def __subclasscheck__(cls, kind: type) -> bool:
        return is_int(kind(1)) if kind in (int, bool, float) else False


class Integer(metaclass=_OfInts):
    """pycute's abstract class of integers."""


def inner_product(coord: Any, stride: Any) -> Any:
    """The offset of a coordinate: the sum of its leaves times those of the stride."""
    return offset(coord, stride, stride)


def prefix_product(shape: Any) -> Any:
    """What a step of each digit adds to the index, also where the extent is 1."""
    return layouts.unflatten(place_values(leaves(shape)), shape)


def shape_div(shape: Any, divisor: Any) -> Any:
    """The shape of what is left of each mode when `divisor` elements are one, leftmost first."""
    if isinstance(divisor, tuple):
        if isinstance(shape, tuple):
            return tuple(map(shape_div, shape, divisor))
        divisor = layouts.product(divisor)
    if not isinstance(shape, tuple):
        return -(-shape // divisor)
    left = []
    for mode in shape:
        left.append(shape_div(mode, divisor))
        divisor = -(-divisor // layouts.product(mode))
    return tuple(left)
