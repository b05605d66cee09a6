"""The operands of an epilogue: what broadcasts against C (M, N), as a kernel reads it.

    shape of the tensor       operand              what the kernel reads
    (), (1,), (1, 1)          scalar               (1,)
    (N,), (1, N)              row vector           (N,)
    (M, 1)                    column vector        (M,)
    (M, N)                    matrix               (M, N), rows or columns contiguous
    a Python number           scalar by value      an argument of the launch

If C is a batch, these operands are shared by all of its matrices. With a first mode L, each matrix
has its own: a row vector is (L, 1, N), and the kernel reads (L, N).

An operand lacks its modes of extent 1, and those of stride 0, as `expand` makes them, unless a
result needs all of its modes (`whole`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, NamedTuple, TypeAlias, get_args

import torch
from torch import Tensor

from cutedsl_gemm.inputs.checks import check_dense
from cutedsl_gemm.inputs.problem import dtype_name
from cutedsl_gemm.inputs.tensors import empty_padded
from cutedsl_gemm.kernels.epilogue.expression import EpilogueOperand, Mode

Value: TypeAlias = Tensor | float  # what the caller passes for an operand; any real number

DTYPES = torch.bfloat16, torch.float16, torch.float32
LARGEST = int(sys.float_info.max)
VECTOR_BYTES = 16  # of the widest load


class Bound(NamedTuple):
    """An operand, and what the kernel reads of what is passed for it."""

    operand: EpilogueOperand
    read: Callable[[Any], Value] | None  # None: as it is


def bind(
    name: str, value: object, shape: tuple[int, ...], device: torch.device, whole: bool = False
) -> Bound:
    """The operand that a value is for C of this shape, (M, N) or (L, M, N), on a device.

    If `whole`, a tensor of C's own shape is a matrix, even if an extent is 1 or it is expanded.

    TypeError or ValueError unless it is a number, or a tensor of bf16, fp16 or fp32 on the device
    that broadcasts to the shape.

    >>> bias, residual = torch.ones(24), torch.ones(24, 16).mT
    >>> for value in (bias, bias.expand(16, 24), residual, torch.ones(16, 1), 0.5):
    ...     operand = bind("r", value, (16, 24), bias.device).operand
    ...     print(operand.modes, operand.row_major, operand.alignment, operand.by_value)
    ('N',) True 4 False
    ('N',) True 4 False
    ('M', 'N') False 4 False
    ('M',) True 4 False
    () True 1 True
    """
    check_operand(name, value, shape, device)
    if isinstance(value, Tensor):
        return _bound(name, value, shape, whole and value.shape == shape)
    return Bound(EpilogueOperand(name, by_value=True), float)


def _bound(name: str, tensor: Tensor, shape: tuple[int, ...], whole: bool) -> Bound:
    names = ("L", *get_args(Mode))[-len(shape) :]
    found = zip(names, shape, tensor.expand(shape).stride(), strict=True)
    kept = [
        (mode, extent, stride)
        for mode, extent, stride in found
        if (whole and mode != "L") or (extent != 1 and stride != 0)
    ]
    modes, extents, strides = zip(*kept, strict=True) if kept else ((), (1,), (1,))
    batched, modes = "L" in modes, tuple(mode for mode in modes if mode != "L")
    operand = EpilogueOperand(name, modes, dtype_name(tensor.dtype), batched=batched)
    view: Callable[..., Tensor] | None = None
    if (extents, strides) != (tensor.shape, tensor.stride()) or tensor.is_neg():
        view = partial(_view, extents, strides)
    if len(modes) == 2:
        return _bound_matrix(operand, view, view(tensor) if view else tensor)
    in_place, wide = strides[-1] == 1, VECTOR_BYTES // tensor.element_size()
    # From the vector of a matrix to the next one; those of a copy follow each other.
    of_each = strides[0] if in_place and batched else extents[-1]
    vectors = modes and extents[-1] % wide == of_each % wide == 0
    if vectors and (not in_place or _aligned(tensor)):
        operand = replace(operand, alignment=wide)
    return Bound(operand, view if in_place else partial(_contiguous, view))


def _bound_matrix(
    operand: EpilogueOperand, view: Callable[..., Tensor] | None, matrix: Tensor
) -> Bound:
    """A matrix whose rows or columns are contiguous is read in place, any other as its copy."""
    wide = VECTOR_BYTES // matrix.element_size()
    for row_major, lines in ((True, matrix), (False, matrix.mT)):
        *of_each, leading, one = lines.stride()
        if one == 1 and leading >= lines.shape[-1]:
            steps = leading, *of_each
            vectors = not any(step % wide for step in steps) and _aligned(matrix)
            operand = replace(operand, row_major=row_major, alignment=wide if vectors else 1)
            return Bound(operand, view)
    return Bound(replace(operand, alignment=wide), partial(_padded, view))


def _aligned(tensor: Tensor) -> bool:
    """Whether a vector may start where the tensor does."""
    try:
        return tensor.data_ptr() % VECTOR_BYTES == 0
    except RuntimeError:  # a wrapper of torch.func's, which no kernel reads
        return True


def _view(extents: tuple[int, ...], strides: tuple[int, ...], tensor: Tensor) -> Tensor:
    return tensor.as_strided(extents, strides).resolve_neg()


def _contiguous(view: Callable[..., Tensor] | None, tensor: Tensor) -> Tensor:
    return (view(tensor) if view else tensor).contiguous()


def _padded(view: Callable[..., Tensor] | None, tensor: Tensor) -> Tensor:
    matrix = view(tensor) if view else tensor
    return empty_padded(matrix, matrix.shape).copy_(matrix)


def check_operand(name: str, value: object, shape: tuple[int, ...], device: torch.device) -> None:
    """TypeError or ValueError unless a value can be an operand for C of this shape; see `bind`."""
    if isinstance(value, Tensor):
        _check(name, value, shape, device)
    elif not isinstance(value, Real):
        raise TypeError(
            f"{name} is {type(value).__name__}: an operand of the epilogue must be a torch.Tensor, "
            "or a real number"
        )


def check_range(operands: Mapping[str, object]) -> None:
    """ValueError for an integer that no float holds."""
    for name, value in operands.items():
        if isinstance(value, Integral) and abs(int(value)) > LARGEST:
            raise ValueError(
                f"{name} is an integer of {int(value).bit_length()} bits: a kernel takes numbers "
                "as floats; pass float('inf'), or a smaller one"
            )


def _check(name: str, tensor: Tensor, shape: tuple[int, ...], device: torch.device) -> None:
    if tensor.dtype not in DTYPES:
        raise TypeError(
            f"{name} is {tensor.dtype}: an operand of the epilogue must be "
            f"{', '.join(map(str, DTYPES))}, or a number; convert it with {name}.float()"
        )
    check_dense(name, tensor)
    if tensor.device != device:
        raise ValueError(
            f"{name} is on {tensor.device} and a on {device}: they must share a device; "
            "a scalar may be a Python number"
        )
    given = with_leading_ones(tensor.shape, len(shape))
    fits = all(one in (1, of) for one, of in zip(given, shape, strict=True))
    if tensor.ndim > len(shape) or not fits:
        each = "; with a first mode L, each matrix has its own" * (len(shape) > 2)
        raise ValueError(
            f"{name} has shape {tuple(tensor.shape)}: it must broadcast to the shape {shape} of "
            f"the result, as a scalar, a row (N,), a column (M, 1), or a matrix{each}"
        )


def with_leading_ones(shape: Sequence[int], count: int) -> tuple[int, ...]:
    """The last `count` extents of a shape as it broadcasts to `count` modes.

    >>> with_leading_ones((16,), 3)
    (1, 1, 16)
    """
    return (*(1,) * count, *shape)[-count:]
