"""New tensors on a GPU, as Inductor's code allocates them: in half the time of `new_empty`."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def allocator(
    device: torch.device, shape: tuple[int, ...], dtype: torch.dtype
) -> Callable[[Tensor], Tensor]:
    """A function of a tensor on the device → a new contiguous tensor there.

    A GPU must be torch's current one, since Inductor's function, which skips torch's dispatcher,
    allocates there.
    """

    def new_empty(like: Tensor) -> Tensor:
        return like.new_empty(shape, dtype=dtype)

    make = getattr(torch._C._dynamo.guards, "_empty_strided_cuda", None)
    if make is None or device.type != "cuda":
        return new_empty
    stride = torch.empty(shape, device="meta").stride()
    return lambda like: make(shape, stride, dtype)
