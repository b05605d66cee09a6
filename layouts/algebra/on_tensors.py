"""Operations on a tensor: they change its layout, and its data stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import LayoutError

__all__ = ["layout_of", "on_tensor"]


def on_tensor(name: str, operation: Callable[..., Any], x: Any, *arguments: Any) -> Any:
    """The tensor with the data of `x` and the layout ``operation(x.layout, *arguments)``.

    A tensor is any object with a method `with_layout`, such as `layouts.tiled.tensor.Tensor`, which
    the algebra does not import.  Raises `LayoutError`, which names the operation, for another `x`.

    >>> from layouts import Layout, make_counting_tensor, zipped_divide
    >>> counting = make_counting_tensor(Layout((4, 8)))
    >>> print(on_tensor("zipped_divide", zipped_divide, counting, (2, 4)).layout)
    ((2,4),(2,2)):((1,4),(2,16))
    """
    with_layout = getattr(x, "with_layout", None)
    if with_layout is None:
        raise LayoutError(f"{name}: {x!r} must be a Layout, a ComposedLayout or a Tensor")
    return with_layout(operation, *arguments)


def layout_of(x: Any) -> Any:
    """The layout of a tensor; anything else as it is.

    >>> from layouts import Layout, make_counting_tensor
    >>> print(layout_of(make_counting_tensor(Layout(4))), layout_of(Layout(4)))
    4:1 4:1
    """
    return x.layout if hasattr(x, "with_layout") else x
