"""The CuTe DSL as far as tract uses it, made of this library."""

from collections.abc import Callable
from typing import Any

import layouts
from layouts import Layout, complement, composition, logical_divide, logical_product, rank, size

__all__ = [
    "Layout",
    "coalesce",
    "complement",
    "composition",
    "flatten_to_tuple",
    "jit",
    "logical_divide",
    "logical_product",
    "make_layout",
    "rank",
    "size",
]


def jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself: nothing is traced."""
    return function


def make_layout(shape: Any, stride: Any = None) -> Layout:
    """The layout of a shape and a stride; the DSL's strides of extents of 1 are as given."""
    return Layout(shape, stride)


def coalesce(layout: Layout, target_profile: Any = None) -> Any:
    """Coalesced by the profile."""
    return layouts.coalesce(layout, target_profile)


def flatten_to_tuple(x: Any) -> tuple[Any, ...]:
    """The leaves, always as a tuple."""
    flat = layouts.flatten(x)
    return flat if isinstance(flat, tuple) else (flat,)
