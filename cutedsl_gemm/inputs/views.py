"""Views of tensors, made faster than by torch, or below its autograd."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from math import prod

import torch
from torch import Tensor

from cutedsl_gemm.inputs.remember import REMEMBERED, remember


def rows_of(x: Tensor) -> Tensor:
    """x (…, K) as a matrix."""
    if x.ndim == 2:
        return x
    # torch.autograd.grad(is_grads_batched=True) has no rule for flatten
    return x.reshape(prod(x.shape[:-1]), x.shape[-1])


def transposed(matrix: Tensor) -> Tensor:
    """The transpose of a matrix, or of each one of a stack: what `matrix.mT` is.

    In a region such as torch.cond's, dynamo turns an attribute of a captured tensor into another
    input, and refuses two inputs in the same memory. It traces a call of a method.
    """
    return matrix.transpose(-2, -1)


def at_address(
    start: int,
    device: torch.device,
    dtype: torch.dtype,
    shape: tuple[int, ...],
    stride: tuple[int, ...],
) -> Tensor:
    """A tensor at an address, of memory that others own: they keep it as long as it is used.

    >>> matrix = torch.arange(6.0).view(2, 3)
    >>> at_address(matrix.data_ptr(), matrix.device, matrix.dtype, (3, 2), (1, 3))[1]
    tensor([1., 4.])
    """
    pairs = zip(shape, stride, strict=True)
    extent = (1 + sum((size - 1) * step for size, step in pairs)) * dtype.itemsize
    memory = torch._C._construct_storage_from_data_pointer(start, device, extent)
    return torch.empty(0, dtype=dtype, device=device).set_(memory, 0, shape, stride)


class ByAddress(dict[int, Tensor]):
    """Tensors that differ in their address alone: a look-up takes a fifth of the time of a view.

    They do not own their memory: see `at_address`.
    """

    def __init__(self, like: Tensor) -> None:
        super().__init__()
        self.like = like.device, like.dtype, like.shape, like.stride()

    def __missing__(self, start: int) -> Tensor:
        return remember(self, start, at_address(start, *self.like))


@lru_cache(REMEMBERED)
def reshaper(shape: tuple[int, ...]) -> Callable[[Tensor], Tensor]:
    """A function of contiguous tensors → the same memory in this shape, as no view of torch's.

    Inductor's code reshapes by the same function, below dispatch and autograd. A view that is made
    below autograd must not be changed in place, as in x = linear(x); x += y.

    >>> reshaper((2, 3))(torch.arange(6))._base is None
    True
    """
    make = getattr(torch._C._dynamo.guards, "_reinterpret_tensor", None)
    if make is None:
        return partial(torch.ops.aten._unsafe_view.default, size=shape)
    stride = torch.empty(shape, device="meta").stride()
    return lambda tensor: make(tensor, shape, stride, 0)


def flattener(x: Tensor) -> Callable[[Tensor], Tensor]:
    """A function of tensors like x → `rows_of` them; if x is contiguous, as `reshaper`.

    >>> x = torch.arange(6).view(1, 2, 3)
    >>> flattener(x)(x).shape
    torch.Size([2, 3])
    """
    if x.ndim == 2 or not x.is_contiguous():
        return rows_of
    return reshaper((x.numel() // x.shape[-1], x.shape[-1]))


def unflattened(rows: Tensor, x: Tensor) -> Tensor:
    """`rows_of` undone: a new matrix, in the shape (…, N) of x (…, K).

    It is not a view: one made with gradients off could not be changed in place later.
    """
    if x.ndim == 2:
        return rows
    made: Tensor = torch.ops.aten._unsafe_view.default(rows, (*x.shape[:-1], rows.shape[1]))
    return made
