"""New tensors on a GPU, as Inductor's code allocates them: in half the time of `new_empty`."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import torch
from torch import Tensor


def allocator(
    device: torch.device, shape: tuple[int, ...], dtype: torch.dtype
) -> Callable[[Tensor], Tensor]:
    """A function of a tensor on the device → a new contiguous tensor there.

    Inductor's function skips torch's dispatcher, and allocates on torch's current GPU.
    """

    def new_empty(like: Tensor) -> Tensor:
        return like.new_empty(shape, dtype=dtype)

    make = getattr(torch._C._dynamo.guards, "_empty_strided_cuda", None)
    if make is None or device.type != "cuda":
        return new_empty
    stride = tuple(prod(shape[i + 1 :]) for i in range(len(shape)))
    if torch.cuda.device_count() == 1:
        return lambda like: make(shape, stride, dtype)
    current, index = torch.cuda.current_device, device.index
    return lambda like: make(shape, stride, dtype) if current() == index else new_empty(like)
