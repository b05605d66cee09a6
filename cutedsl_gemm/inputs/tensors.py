"""Tensors as the matrices of a problem, with a message for strides that no plan accepts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling

from cutedsl_gemm.inputs.checks import check_matrices_or_batches, check_memory, check_out
from cutedsl_gemm.inputs.problem import TMA, Matrix, Problem, Requirements, dtype_name, round_up
from cutedsl_gemm.kernels.device import allocation
from cutedsl_gemm.kernels.plan.checks import PER_VECTOR

LINE = 64  # elements of 16 bits in a line of L2, 128 bytes
# Types of tensors that gemm multiplies as they are. One of any other type may have no memory, or
# products of its own.
DENSE = {Tensor, torch.nn.Parameter}


def is_sharded(*tensors: object) -> bool:
    """Whether one is a DTensor, of which each rank has a part."""
    module = sys.modules.get("torch.distributed.tensor")  # an import would take two seconds
    if module is None:
        return False
    return True in [isinstance(each, module.DTensor) for each in tensors]


def is_one(extent: Any) -> bool:
    """Whether an extent is statically 1. A data-dependent one counts as not 1, as in torch."""
    if type(extent) is int and not is_dynamo_compiling():
        return extent == 1
    from torch.fx.experimental.symbolic_shapes import guard_or_false  # here: it imports sympy

    return bool(guard_or_false(extent == 1))


class AlignmentError(ValueError):
    """A kernel cannot read or write a tensor in place: its strides or its address do not fit."""


def problem_of(
    a: Tensor,
    b: Tensor,
    requirements: Requirements = TMA,
    invariant: bool = False,
    on_copies: bool = False,
) -> Problem:
    """The problem a · b; TypeError or ValueError if a kernel with these requirements refuses it.

    If `on_copies`, an operand that the kernel cannot read in place counts as its aligned copy. C is
    a new contiguous tensor. Both are matrices, or batches.
    """
    check_matrices_or_batches(a, b, requirements)
    dtype, batch = dtype_name(a.dtype), a.shape[0] if a.ndim == 3 else 1
    if on_copies:
        a, b = _readable_copy(a, requirements), _readable_copy(b, requirements)
    matrices = matrix_of("a", a, requirements), matrix_of("b", b, requirements)
    whole = not requirements.stores_anywhere or b.shape[-1] % PER_VECTOR == 0
    c_alignment = PER_VECTOR if whole else 1
    return Problem(*matrices, dtype, requirements.alignment, invariant, c_alignment, batch=batch)


def aligned_starts(a: Tensor, b: Tensor, requirements: Requirements = TMA) -> bool:
    """Whether the addresses of two tensors are multiples that a kernel takes."""
    return (a.data_ptr() | b.data_ptr()) % requirements.alignment_bytes == 0


def _batch_fits(batch: Tensor, requirements: Requirements) -> bool:
    """`fits` of a batch (L, rows, columns).

    All matrices are contiguous along one mode. The other strides are multiples of the alignment,
    those of modes of one element, too. All matrices may be the same one, with a stride of 0.

    >>> import torch
    >>> batch = torch.empty(3, 40, 64)
    >>> [_batch_fits(each, TMA) for each in (batch, batch.mT, batch[..., :63], batch[:, :, ::2])]
    [True, True, True, False]
    """
    (_, rows, columns), (step, down, across) = batch.shape, batch.stride()
    lead, inner = (down, columns) if across == 1 else (across, rows)
    contiguous = across == 1 or down == 1
    aligned_strides = lead % requirements.alignment == step % requirements.alignment == 0
    return contiguous and aligned_strides and lead >= inner


def matrix_of(name: str, tensor: Tensor, requirements: Requirements = TMA) -> Matrix:
    """The extents and strides of a tensor: one stride is 1, the other a multiple of the alignment.

    A mode of extent 1 is never stepped along, so its stride may be anything: the matrix gets one
    that the kernel accepts. Of a batch, it is the first matrix. AlignmentError if the strides do
    not fit.
    """
    if tensor.ndim == 3:
        return _matrix_of_batch(name, tensor, requirements)
    (rows, columns), stride = tensor.shape, tensor.stride()
    alignment = requirements.alignment
    contiguous = _contiguous_mode(tensor, alignment)
    if contiguous == 1:
        leading = stride[0] if rows > 1 else round_up(columns, alignment)
        return Matrix((rows, columns), (leading, 1))
    if contiguous == 0:
        leading = stride[1] if columns > 1 else round_up(rows, alignment)
        return Matrix((rows, columns), (1, leading))
    raise AlignmentError(
        f"{name}: shape {rows, columns} with strides {stride} in elements: "
        f"{requirements.owner} needs one stride of 1, and the other a multiple of {alignment} "
        f"elements ({requirements.alignment_bytes} bytes) that is at least the extent of the "
        f"contiguous mode; {_remedy(name, tensor, alignment)}"
    )


def _matrix_of_batch(name: str, batch: Tensor, requirements: Requirements) -> Matrix:
    if 0 in batch.shape or _batch_fits(batch, requirements):
        _, rows, columns = batch.shape
        _, down, across = batch.stride()
        return Matrix((rows, columns), (down, across))
    raise AlignmentError(
        f"{name}: shape {tuple(batch.shape)} with strides {batch.stride()} in elements: "
        f"{requirements.owner} needs one stride of 1 in the last two modes, and the others "
        f"multiples of {requirements.alignment}; pass {name}.contiguous()"
    )


def fits(tensor: Tensor, requirements: Requirements) -> bool:
    """Whether the strides of a matrix, or of a batch, meet the requirements."""
    if tensor.ndim == 3:
        return _batch_fits(tensor, requirements)
    return _contiguous_mode(tensor, requirements.alignment) is not None


def allocator(like: Tensor, *shape: int) -> Callable[[Tensor], Tensor]:
    """A function a → a new tensor of a's dtype and device, which are those of `like`."""
    if type(like) not in DENSE:
        return lambda a: a.new_empty(shape)
    return allocation.allocator(like.device, shape, like.dtype)


def empty_padded(like: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A new tensor of the dtype and device of `like`, whose rows every kernel reads and writes.

    Rows start at multiples of 64 elements, since TMA asks L2 twice for one that starts inside a
    line of 128 bytes. Rows of at most 32 elements share a line: 8, 16 or 32 apart.

    >>> import torch
    >>> [empty_padded(torch.empty(0), (4, columns)).stride() for columns in (5, 23, 136)]
    [(8, 1), (32, 1), (192, 1)]
    """
    *rows, columns = shape
    pitch = max(PER_VECTOR, min(LINE, 1 << (columns - 1).bit_length()))
    return like.new_empty(*rows, round_up(columns, pitch))[..., :columns]


def empty_aligned(like: Tensor) -> Tensor:
    """A new tensor of this shape that every kernel accepts, contiguous along the same mode."""
    if column_major(like):
        return empty_padded(like, like.mT.shape).mT
    return empty_padded(like, like.shape)


def column_major(tensor: Tensor) -> bool:
    """Whether columns are contiguous, and rows are not; of a batch, those of its matrices."""
    return tensor.stride(-2) == 1 and tensor.stride(-1) != 1


def aligned_copy(tensor: Tensor) -> Tensor:
    """A copy of a tensor that every kernel accepts, contiguous along the same mode."""
    return empty_aligned(tensor).copy_(tensor)


def aligned(tensor: Tensor, requirements: Requirements) -> bool:
    """Whether a kernel accepts the strides and the address of a matrix, or of a batch."""
    return fits(tensor, requirements) and tensor.data_ptr() % requirements.alignment_bytes == 0


def _readable_copy(tensor: Tensor, requirements: Requirements) -> Tensor:
    """What a kernel reads: the matrix, or, on the meta device, the aligned copy of it."""
    if aligned(tensor, requirements):
        return tensor
    shape, stride = tensor.shape, tensor.stride()
    meta = torch.empty_strided(shape, stride, dtype=tensor.dtype, device="meta")
    return empty_aligned(meta)


def _contiguous_mode(tensor: Tensor, alignment: int) -> int | None:
    """The mode along which a kernel reads a matrix, 1 (columns) or else 0 (rows); or None."""
    (rows, columns), (down, across) = tensor.shape, tensor.stride()
    if _readable(columns, across, rows, down, alignment):
        return 1
    return 0 if _readable(rows, down, columns, across, alignment) else None


def _readable(inner: int, inner_stride: int, outer: int, outer_stride: int, alignment: int) -> bool:
    if inner == 0 or outer == 0:
        return True
    return (inner_stride == 1 or inner == 1) and (
        outer == 1 or (outer_stride % alignment == 0 and outer_stride >= inner)
    )


def _remedy(name: str, tensor: Tensor, alignment: int) -> str:
    """An expression that gives the kernel a tensor it accepts."""
    rows, columns = tensor.shape
    padded = round_up(columns, alignment)
    if name == "out":
        return f"pass the first {columns} columns of torch.empty({rows}, {padded}), or omit out"
    if tensor.mT.is_contiguous() and not tensor.is_contiguous():
        padded = round_up(rows, alignment)
        pad = f"F.pad({name}, (0, 0, 0, {padded - rows}))"
        return f"pass {pad}.mT.contiguous().mT[:{rows}], whose columns are padded to {padded}"
    if columns != padded:
        pad = f"F.pad({name}, (0, {padded - columns}))"
        return f"pass {pad}[:, :{columns}], whose rows are padded to {padded}"
    return f"pass {name}.contiguous()"


def device_of(a: object) -> torch.device | None:
    """The device of a tensor; None for anything else, which `check_operands` refuses."""
    return a.device if isinstance(a, Tensor) else None


def check_call(a: Tensor, b: Tensor, out: Tensor, requirements: Requirements = TMA) -> None:
    """TypeError or ValueError unless a kernel can compute out = a · b in the tensors' memory."""
    problem_of(a, b, requirements)
    check_out(out, a, b)
    for name, tensor in (("a", a), ("b", b), ("out", out)):
        check_memory(name, tensor)
        check_address(name, tensor, requirements.for_c if name == "out" else requirements)


def check_address(name: str, tensor: Tensor, requirements: Requirements) -> None:
    """AlignmentError unless a kernel with these requirements accepts the tensor's address."""
    if tensor.data_ptr() % requirements.alignment_bytes:
        remedy = f"{name}.clone(), or " if name != "out" else ""
        raise AlignmentError(
            f"{name} starts at address {tensor.data_ptr():#x}: {requirements.owner} needs a "
            f"multiple of {requirements.alignment_bytes} bytes; pass {remedy}a view that "
            f"starts at a multiple of {requirements.alignment} elements"
        )
