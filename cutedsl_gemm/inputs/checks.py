"""What a, b and out must be, whatever their strides, with a message for everything else."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from cutedsl_gemm.inputs.aliasing import check_written
from cutedsl_gemm.inputs.problem import MAX_EXTENT, TMA, Requirements


def check_operands(a: Tensor, b: Tensor, requirements: Requirements = TMA) -> None:
    """TypeError or ValueError unless a and b are matrices that can be multiplied."""
    _check_operands(a, b, requirements, 2)


def check_batches(a: Tensor, b: Tensor, requirements: Requirements = TMA) -> None:
    """TypeError or ValueError unless a (L, M, K) and b (L, K, N) can be multiplied."""
    _check_operands(a, b, requirements, 3)
    if a.shape[0] != b.shape[0]:  # len() would make a symbolic extent constant
        raise ValueError(
            f"a has shape {tuple(a.shape)} and b {tuple(b.shape)}: "
            "batches must have equally many matrices"
        )


def is_batch(a: object) -> bool:
    """Whether a is a batch (L, M, K)."""
    return isinstance(a, Tensor) and a.ndim == 3


def check_matrices_or_batches(a: Tensor, b: Tensor, requirements: Requirements = TMA) -> None:
    """`check_batches` if a is a batch, else `check_operands`."""
    (check_batches if is_batch(a) else check_operands)(a, b, requirements)


def _check_operands(a: Tensor, b: Tensor, requirements: Requirements, dimensions: int) -> None:
    for name, tensor in (("a", a), ("b", b)):
        _check_tensor(name, tensor, requirements, dimensions)
    check_pair("a", a, "b", b)
    if a.shape[-1] != b.shape[-2]:
        raise ValueError(
            f"a has shape {tuple(a.shape)} and b {tuple(b.shape)}: "
            "a must have as many columns as b has rows"
        )


def check_out(out: Tensor, a: Tensor, b: Tensor) -> None:
    """TypeError or ValueError unless `out` can hold the product of a and b."""
    check_result("out", out, (*a.shape[:-1], b.shape[-1]), a.dtype, a)


def check_result(
    name: str, tensor: Any, shape: tuple[int, ...], dtype: torch.dtype, a: Tensor
) -> None:
    """TypeError or ValueError unless a tensor can hold such a result on the device of a."""
    _check_is_tensor(name, tensor)
    check_dense(name, tensor)
    if tensor.dtype != dtype:
        raise TypeError(f"{name} is {tensor.dtype}: it must be {dtype} where a is {a.dtype}")
    _check_device(name, tensor, "a", a)
    check_extents(name, tensor, shape)
    check_not_negative(name, tensor, "memory of its own")
    check_written(name, tensor)


def check_extents(name: str, tensor: Tensor, shape: tuple[int, ...]) -> None:
    """ValueError unless a result has this shape."""
    if tensor.shape != shape:
        raise ValueError(f"{name} has shape {tuple(tensor.shape)}: it must be {tuple(shape)}")


def check_memory(name: str, tensor: Tensor) -> None:
    """ValueError unless a tensor has memory."""
    if not tensor.data_ptr():
        raise ValueError(
            f"{name} has no memory of its own (freed, fake, or the wrapper of another tensor): "
            "pass a tensor that holds its data"
        )


def _check_tensor(name: str, tensor: Any, requirements: Requirements, dimensions: int) -> None:
    _check_is_tensor(name, tensor)
    if tensor.dtype not in requirements.dtypes:
        raise TypeError(
            f"{name} is {tensor.dtype}: it must be {' or '.join(map(str, requirements.dtypes))}"
            f"; convert it with {name}.to({requirements.dtypes[0]})"
        )
    check_dense(name, tensor)
    if tensor.device.type not in requirements.devices:
        raise TypeError(
            f"{name} is on the device {tensor.device}: it must be on a CPU or a CUDA device"
            + ("; if all are on meta, gemm gives the shape" if tensor.is_meta else "")
        )
    if tensor.ndim != dimensions:
        need = "two dimensions" if dimensions == 2 else "three dimensions, as a has"
        raise ValueError(f"{name} has shape {tuple(tensor.shape)}: it must have {need}")
    if tensor.dtype != torch.float32:  # the simt family resolves the bit of a and b in float32
        check_not_negative(name, tensor, f"{name}.resolve_neg()")
    # An exported program checks symbolic extents when it runs.
    if any(isinstance(n, int) and n > MAX_EXTENT for n in tensor.shape):
        raise ValueError(
            f"{name} has shape {tuple(tensor.shape)}: an extent must be at most {MAX_EXTENT}"
        )


def _check_is_tensor(name: str, given: object) -> None:
    if not isinstance(given, Tensor):
        raise TypeError(f"{name} is {type(given).__name__}: it must be a torch.Tensor")


def check_not_negative(name: str, tensor: Tensor, remedy: str) -> None:
    """ValueError, which says to pass the remedy, for a view with the negative bit set."""
    if tensor.is_neg():
        raise ValueError(f"{name} is a view with the negative bit set: pass {remedy}")


def check_dense(name: str, tensor: Tensor) -> None:
    """TypeError for a sparse or a nested tensor."""
    if tensor.is_nested:
        raise TypeError(f"{name} is a nested tensor: it must be dense; pass its parts one by one")
    if tensor.layout != torch.strided:
        raise TypeError(f"{name} is {tensor.layout}: it must be dense; pass {name}.to_dense()")


def check_pair(one: str, first: Tensor, other: str, second: Tensor) -> None:
    """TypeError or ValueError unless two tensors have one dtype and are on one device."""
    if first.dtype != second.dtype:
        raise TypeError(
            f"{one} is {first.dtype} and {other} is {second.dtype}: they must share a dtype"
        )
    _check_device(one, first, other, second)


def _check_device(one: str, first: Tensor, other: str, second: Tensor) -> None:
    if first.device != second.device:
        raise ValueError(
            f"{one} is on {first.device} and {other} on {second.device}: they must share a device"
        )
