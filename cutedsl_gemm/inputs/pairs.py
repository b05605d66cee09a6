"""Two matrices as the two parts of one tensor, wherever in memory each of them lies.

    first (N, K)    second (N, K)    →    (2, N, K) with the strides (distance, *first.stride())

So a kernel of two accumulators multiplies by two weights without a copy: B is a layout, and the
distance between the weights is a stride of it, along which TMA steps as along any other.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from cutedsl_gemm.inputs.remember import REMEMBERED
from cutedsl_gemm.inputs.views import at_address

REACH = 1 << 40  # bytes: strides of a tensor map are below this (cuTensorMapEncodeTiled)


def as_parts(first: Tensor, second: Tensor) -> Tensor | None:
    """Both matrices as one tensor (2, N, K) without a copy, if their memory allows it; else None.

    `first` must be before `second` in memory. None, too, if they differ in shape, strides, dtype or
    device, are too far apart, or have no memory. The tensor does not own the memory: keep both
    matrices as long as it is used.

    >>> both = torch.arange(24.0).view(4, 6)
    >>> as_parts(both[0:2, :2], both[2:4, :2])[1]
    tensor([[12., 13.],
            [18., 19.]])
    >>> as_parts(both[2:], both[:2])
    """
    shape, stride = first.shape, first.stride()
    if shape != second.shape or stride != second.stride() or first.device != second.device:
        return None
    if first.dtype != second.dtype or first.is_neg() or second.is_neg():
        return None
    start, distance = first.data_ptr(), second.data_ptr() - first.data_ptr()
    if not start or not in_reach(distance) or distance % first.element_size():
        return None
    return parts_at(start, distance, first.device, first.dtype, shape, stride)


def in_reach(distance: int) -> bool:
    """Whether TMA steps this many bytes from one part to the other."""
    return 0 < distance < REACH


@lru_cache(REMEMBERED)
def parts_at(
    start: int,
    distance: int,
    device: torch.device,
    dtype: torch.dtype,
    shape: torch.Size,
    stride: tuple[int, ...],
) -> Tensor:
    """Two matrices of this shape, by the address of the first and the distance in bytes.

    The result owns no memory. The arguments determine it, so it may be cached.
    """
    return at_address(start, device, dtype, (2, *shape), (distance // dtype.itemsize, *stride))
