"""Tensors as the matrices of a problem, with a message for everything that no plan accepts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling

from cutedsl_gemm.aliasing import check_written
from cutedsl_gemm.kernels.device import allocation
from cutedsl_gemm.kernels.plan.checks import UNIT
from cutedsl_gemm.problem import (
    MAX_EXTENT,
    TMA,
    Matrix,
    Problem,
    Requirements,
    dtype_name,
    round_up,
)
from cutedsl_gemm.remember import REMEMBERED, remember

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
    """Whether an extent is 1. One that only the data decide is taken to be another, as by torch."""
    if type(extent) is int and not is_dynamo_compiling():
        return extent == 1
    from torch.fx.experimental.symbolic_shapes import guard_or_false  # here: it imports sympy

    return bool(guard_or_false(extent == 1))


def rows_of(x: Tensor) -> Tensor:
    """x (…, K) as a matrix."""
    return x if x.ndim == 2 else x[None] if x.ndim == 1 else x.flatten(0, -2)


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


def allocator(like: Tensor, m: int, n: int) -> Callable[[Tensor], Tensor]:
    """A function a → a new matrix (m, n) of a's dtype and device, which are those of `like`."""
    if type(like) not in DENSE:
        return lambda a: a.new_empty(m, n)
    return allocation.allocator(like.device, (m, n), like.dtype)


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
    a new contiguous matrix.
    """
    check_operands(a, b, requirements)
    dtype = dtype_name(a.dtype)
    if on_copies:
        a, b = _readable_copy(a, requirements), _readable_copy(b, requirements)
    matrices = matrix_of("a", a, requirements), matrix_of("b", b, requirements)
    whole = not requirements.stores_anywhere or b.shape[1] % UNIT == 0
    return Problem(*matrices, dtype, requirements.alignment, invariant, UNIT if whole else 1)


def matrix_of(name: str, tensor: Tensor, requirements: Requirements = TMA) -> Matrix:
    """The extents and strides of a tensor: one stride is 1, the other a multiple of the alignment.

    A mode of extent 1 is never stepped along, so its stride may be anything: the matrix gets one
    that the kernel accepts. ValueError if the strides do not fit.
    """
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


def fits(tensor: Tensor, requirements: Requirements) -> bool:
    """Whether the strides of a matrix meet the requirements."""
    return _contiguous_mode(tensor, requirements.alignment) is not None


def empty_padded(like: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A new matrix of the dtype and device of `like`, whose rows every kernel reads and writes.

    Rows start at multiples of 64 elements, since TMA asks L2 twice for one that starts inside a
    line of 128 bytes. Rows of at most 32 elements share a line: 8, 16 or 32 apart.

    >>> import torch
    >>> [empty_padded(torch.empty(0), (4, columns)).stride() for columns in (5, 23, 136)]
    [(8, 1), (32, 1), (192, 1)]
    """
    rows, columns = shape
    pitch = max(UNIT, min(LINE, 1 << (columns - 1).bit_length()))
    return like.new_empty(rows, round_up(columns, pitch))[:, :columns]


def empty_aligned(like: Tensor) -> Tensor:
    """A new matrix of this shape that every kernel accepts, contiguous along the same mode."""
    if column_major(like):
        return empty_padded(like, like.mT.shape).mT
    return empty_padded(like, like.shape)


def column_major(tensor: Tensor) -> bool:
    """Whether columns are contiguous, and rows are not."""
    return tensor.stride(0) == 1 and tensor.stride(1) != 1


def aligned_copy(tensor: Tensor) -> Tensor:
    """A copy of a matrix that every kernel accepts, contiguous along the same mode."""
    return empty_aligned(tensor).copy_(tensor)


def aligned(tensor: Tensor, requirements: Requirements) -> bool:
    """Whether a kernel accepts the strides and the address of a matrix."""
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


def check_operands(a: Tensor, b: Tensor, requirements: Requirements = TMA) -> None:
    """TypeError or ValueError unless a and b are matrices that can be multiplied."""
    for name, tensor in (("a", a), ("b", b)):
        _check_tensor(name, tensor, requirements)
    check_pair("a", a, "b", b)
    if a.shape[1] != b.shape[0]:
        raise ValueError(
            f"a has shape {tuple(a.shape)} and b {tuple(b.shape)}: "
            "a must have as many columns as b has rows"
        )


def check_out(out: Tensor, a: Tensor, b: Tensor, requirements: Requirements = TMA) -> None:
    """TypeError or ValueError unless `out` can hold the product of a and b."""
    _check_tensor("out", out, requirements)
    check_pair("out", out, "a", a)
    check_extents(out, (a.shape[0], b.shape[1]))
    check_written("out", out)


def check_extents(out: Tensor, shape: tuple[int, ...]) -> None:
    """ValueError unless `out` has the shape of the product."""
    if out.shape != shape:
        raise ValueError(
            f"out has shape {tuple(out.shape)}: it must be {tuple(shape)}, "
            "rows of a and columns of b"
        )


def check_call(a: Tensor, b: Tensor, out: Tensor, requirements: Requirements = TMA) -> None:
    """TypeError or ValueError unless a kernel can compute out = a · b in the tensors' memory."""
    problem_of(a, b, requirements)
    check_out(out, a, b, requirements)
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


def check_memory(name: str, tensor: Tensor) -> None:
    """ValueError unless a tensor has memory."""
    if not tensor.data_ptr():
        raise ValueError(
            f"{name} has no memory of its own (freed, fake, or the wrapper of another tensor): "
            "pass a tensor that holds its data"
        )


def _check_tensor(name: str, tensor: object, requirements: Requirements) -> None:
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{name} is {type(tensor).__name__}: it must be a torch.Tensor")
    if tensor.dtype not in requirements.dtypes:
        raise TypeError(
            f"{name} is {tensor.dtype}: it must be {' or '.join(map(str, requirements.dtypes))}"
            + (f"; convert it with {name}.to({requirements.dtypes[0]})" if name != "out" else "")
        )
    check_dense(name, tensor)
    if tensor.device.type not in requirements.devices:
        raise TypeError(
            f"{name} is on the device {tensor.device}: it must be on a CPU or a CUDA device"
            + ("; if all are on meta, gemm gives the shape" if tensor.is_meta else "")
        )
    if tensor.ndim != 2:
        raise ValueError(f"{name} has shape {tuple(tensor.shape)}: it must have two dimensions")
    if tensor.is_neg() and (name == "out" or tensor.dtype != torch.float32):
        # The launch of the simt family resolves the negative bit of a and b in float32.
        remedy = "memory of its own" if name == "out" else f"{name}.resolve_neg()"
        raise ValueError(f"{name} is a view with the negative bit set: pass {remedy}")
    # An exported program checks symbolic extents when it runs.
    if any(isinstance(n, int) and n > MAX_EXTENT for n in tensor.shape):
        raise ValueError(
            f"{name} has shape {tuple(tensor.shape)}: an extent must be at most {MAX_EXTENT}"
        )


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
    if first.device != second.device:
        raise ValueError(
            f"{one} is on {first.device} and {other} on {second.device}: they must share a device"
        )
