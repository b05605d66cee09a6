"""The results of an epilogue: the tensors that the caller gets, and what the kernel stores.

result       the caller's     the kernel's
whole        (M, N)           the same; or a padded tensor, which is then copied
over N       (M,)             (parts, M): partial results, which torch then reduces
over M       (N,)             (parts, N)

Of a batch, all have a first mode L.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

from cutedsl_gemm.calls.copies import copy
from cutedsl_gemm.inputs.checks import check_result
from cutedsl_gemm.inputs.problem import Requirements
from cutedsl_gemm.inputs.tensors import allocator, column_major, empty_padded, fits, matrix_of
from cutedsl_gemm.kernels.epilogue.evaluate import REDUCTIONS
from cutedsl_gemm.kernels.epilogue.expression import Epilogue, Result

Results: TypeAlias = tuple[Tensor, ...]
Shape: TypeAlias = tuple[int, ...]  # of C, (M, N) or (L, M, N)


class Slot(NamedTuple):
    """Where one result goes."""

    new: Callable[[Tensor], Callable[[Tensor], Tensor]]  # see `empty`
    stored: Callable[[Tensor], Tensor] | None  # the caller's tensor → what the kernel writes
    finish: Callable[[Tensor, Tensor], object] | None  # of both, after the kernel


def extents(result: Result, shape: Shape) -> tuple[int, ...]:
    """The shape of a result where that of C is `shape`.

    >>> extents(Result(0), (3, 4)), extents(Result(0, reduction="sum", over="N"), (3, 4))
    ((3, 4), (3,))
    """
    *batch, m, n = shape
    return shape if result.reduction is None else (*batch, m if result.over == "N" else n)


def dtype_of(result: Result, dtype: torch.dtype) -> torch.dtype:
    """The dtype of a result where that of A and B is `dtype`.

    >>> dtype_of(Result(0), torch.float16), dtype_of(Result(0, "float32"), torch.float16)
    (torch.float16, torch.float32)
    """
    if result.reduction is not None:
        return torch.float32
    return getattr(torch, result.dtype) if result.dtype else dtype


def empty(result: Result, shape: Shape, like: Tensor) -> Callable[[Tensor], Tensor]:
    """A function a → a new tensor for a result, where a has the dtype and device of `like`."""
    found, kept = dtype_of(result, like.dtype), extents(result, shape)
    if found == like.dtype and len(kept) == len(shape):
        return allocator(like, *kept)
    return lambda a: a.new_empty(kept, dtype=found)


def check_results(out: Results, epilogue: Epilogue, shape: Shape, a: Tensor) -> None:
    """TypeError or ValueError unless the tensors of `out` can hold the results."""
    if len(out) != len(epilogue.results):
        raise ValueError(
            f"out has {len(out)} tensors: it must have one for each result of the epilogue, "
            f"{len(epilogue.results)}"
        )
    for name, tensor, result in zip(epilogue.result_names, out, epilogue.results, strict=True):
        check_result(name, tensor, extents(result, shape), dtype_of(result, a.dtype), a)


def in_columns(epilogue: Epilogue, out: Results) -> bool:
    """Whether the whole results are column-major: Cᵀ = Bᵀ · Aᵀ then stores rows.

    The two parts of B have no such product.
    """
    pairs = zip(out, epilogue.results, strict=True)
    whole = [tensor for tensor, result in pairs if result.reduction is None]
    return epilogue.accumulators == 1 and bool(whole) and all(map(column_major, whole))


def c_alignment(
    epilogue: Epilogue, out: Results | None, shape: Shape, requirements: Requirements
) -> int:
    """The alignment of the rows of all whole results: 1 if threads must store one of them."""
    if not requirements.stores_anywhere:
        return requirements.alignment
    tensors = (None,) * len(epilogue.results) if out is None else out
    whole = (
        tensor
        for tensor, result in zip(tensors, epilogue.results, strict=True)
        if result.reduction is None
    )
    in_vectors = shape[-1] % requirements.alignment == 0 and all(
        tensor is None or _in_rows(tensor, requirements) for tensor in whole
    )
    return requirements.alignment if in_vectors else 1


def slot(
    result: Result,
    out: Tensor | None,
    shape: Shape,
    plan: Any,
    requirements: Requirements,
) -> Slot:
    """The slot of a result of a plan; `out` is the caller's tensor, if it has one.

    The alignment of `requirements` is that of the plan's results.
    """
    make = partial(empty, result, shape)
    if result.reduction is not None:
        return _reduced(result, out, plan.reduction_parts(result, *shape[-2:]), make)
    like = torch.empty(shape, device="meta") if out is None else out
    if not _in_rows(like, requirements) or (out is None and shape[-1] % requirements.alignment):
        return Slot(make, lambda tensor: empty_padded(tensor, shape), _copied)
    stride = matrix_of("out", like, requirements).stride
    if stride == like.stride()[-2:]:
        return Slot(make, None, None)
    return Slot(make, lambda tensor: tensor.as_strided(shape, stride), None)


def _reduced(result: Result, out: Tensor | None, parts: int, make: Callable[..., Any]) -> Slot:
    reduce = REDUCTIONS[str(result.reduction)]
    if parts == 1 and (out is None or out.stride(-1) == 1):
        return Slot(make, lambda tensor: tensor.unsqueeze(-2), None)

    def stored(tensor: Tensor) -> Tensor:
        *batch, extent = tensor.shape
        return tensor.new_empty(*batch, parts, extent)

    return Slot(make, stored, lambda tensor, partials: reduce(partials, -2, out=tensor))  # type: ignore[call-arg]


def _in_rows(tensor: Tensor, requirements: Requirements) -> bool:
    """Whether a kernel stores rows to a matrix, or a batch, in place."""
    if not fits(tensor, requirements) or tensor.data_ptr() % (
        requirements.alignment * tensor.element_size()
    ):
        return False
    return matrix_of("out", tensor, requirements).row_major


def _copied(tensor: Tensor, stored: Tensor) -> None:
    copy((stored, tensor))
