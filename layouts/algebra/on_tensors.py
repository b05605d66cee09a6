"""Operations on a tensor: they change its layout, and its data stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import LayoutError

__all__ = ["on_tensor"]


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
