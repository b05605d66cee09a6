"""linear of plain tensors as a remembered call: x · weightᵀ + bias, and its gradients.

x is (…, K), weight (N, K), and bias (N,). Beside a matrix x, bias may be a matrix (M, N).

signature of (x, weight, bias) → the kernel's launch, the executor; or None: not such tensors

`functions.linear` uses it where there is no activation, and `faster.linear` where gemm is expected
to be faster.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from math import prod
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

from cutedsl_gemm.calls.call import call
from cutedsl_gemm.calls.fused import compute, fused
from cutedsl_gemm.inputs.problem import MAX_EXTENT, TMA, WIDEST_ALIGNMENT
from cutedsl_gemm.inputs.remember import remember
from cutedsl_gemm.inputs.tensors import column_major, is_sharded
from cutedsl_gemm.inputs.transforms import check_not_jit_traced, dispatch_modes
from cutedsl_gemm.inputs.views import (
    ByAddress,
    flattener,
    reshaper,
    rows_of,
    transposed,
    unflattened,
)
from cutedsl_gemm.layers.activations import LINEAR
from cutedsl_gemm.ops.derivatives import applied

LinearCall: TypeAlias = Callable[[Tensor, Tensor, Any], Tensor]  # (x, weight, bias or None)

AUTOCAST = torch.float32, torch.bfloat16, torch.float16  # what autocast converts
BIAS = LINEAR[None][1]

# Every product of gemm saves this first, and torch's products save nothing of this dtype. So torch
# raises CheckpointError if gemm computes one pass of a checkpoint and torch the other.
with torch.inference_mode(False):
    SAVED_BY_GEMM = torch.ones(1, dtype=torch.int8, device="cpu")


class LinearProduct(NamedTuple):
    """The product of tensors of one signature, and what `gradients` must know of them."""

    run: LinearCall
    linear: LinearCall  # computes the products of the backward pass
    by_columns: tuple[bool, bool]  # whether x and weight, and so their gradients, are column-major
    adds_matrix: bool  # whether bias is a matrix (M, N)


def remembered_linear(
    known: dict[Any, LinearProduct | None],
    make: Callable[..., LinearProduct | None],
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
) -> LinearProduct | None:
    """The product of tensors of one signature, found in two microseconds if it is known.

    `make` prepares it, given (x, weight, bias, whether all are aligned). None for tensors without
    memory, and for views with the negative bit set. get_device() is -1 for CPU and meta tensors;
    only the latter have no address.
    """
    try:
        if x.is_neg() or weight.is_neg() or (bias is not None and bias.is_neg()):
            return None
        x_start, weight_start = x.data_ptr(), weight.data_ptr()
        bias_start = WIDEST_ALIGNMENT if bias is None else bias.data_ptr()
        if not (x_start and weight_start and bias_start):
            return None  # without memory, or empty
        offset = (x_start | weight_start | bias_start) % WIDEST_ALIGNMENT
        # fmt: off
        if bias is None:
            signature: Any = (
                x.shape, x.stride(), weight.shape, weight.stride(), x.dtype, weight.dtype,
                x.get_device(), weight.get_device(), offset,
            )
        else:
            signature = (
                x.shape, x.stride(), weight.shape, weight.stride(), x.dtype, weight.dtype,
                x.get_device(), weight.get_device(), offset,
                bias.shape, bias.stride(), bias.dtype, bias.get_device(),
            )
        # fmt: on
        return known[signature]
    except KeyError:
        pass
    except (RuntimeError, TypeError):  # sparse, nested, or of symbolic shape
        return None
    check_not_jit_traced()
    return remember(known, signature, make(x, weight, bias, offset == 0))


def suits(x: Tensor, weight: Tensor, bias: Tensor | None, devices: Collection[str]) -> bool:
    """Whether gemm has a kernel for tensors like these; their shapes may be symbolic."""
    if x.device.type not in devices or x.dtype not in TMA.dtypes or x.ndim == 0:
        return False
    if weight.device != x.device or weight.dtype != x.dtype or weight.ndim != 2:
        return False
    if x.layout != torch.strided or weight.layout != torch.strided:
        return False
    if bias is None:
        return bool(x.shape[-1] == weight.shape[1])
    same = bias.device == x.device and bias.dtype == x.dtype and bias.layout == torch.strided
    rows = x.shape[:1] if x.ndim == bias.ndim == 2 else ()
    return same and x.shape[-1] == weight.shape[1] and bias.shape == (*rows, weight.shape[0])


def of_shards(
    linear: LinearCall, devices: Collection[str], x: Tensor, weight: Tensor, bias: Tensor | None
) -> Tensor | None:
    """The product of DTensors by `linear` of what each rank has; None if that is not enough."""
    given = (x, weight) if bias is None else (x, weight, bias)
    if not all(is_sharded(each) for each in given) or not suits(x, weight, bias, devices):
        return None
    from cutedsl_gemm.distributed.sharded_linear import sharded_linear  # here: it imports DTensor

    return sharded_linear(linear, gradients, x, weight, bias)


def extents(x: Tensor, weight: Tensor) -> tuple[int, int, int] | None:
    """M, N and K of the product; None if it is empty, or too large."""
    m, (n, k) = prod(x.shape[:-1]), weight.shape
    return None if m * n * k == 0 or max(m, n, k) > MAX_EXTENT else (m, n, k)


def needs_gradients(x: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
    """Whether autograd records the product."""
    return torch.is_grad_enabled() and (
        x.requires_grad or weight.requires_grad or (bias is not None and bias.requires_grad)
    )


def product(
    linear: LinearCall, x: Tensor, weight: Tensor, bias: Tensor | None, aligned: bool
) -> LinearProduct | None:
    """The product by gemm of tensors that suit it; None as `extents`.

    `linear` computes the products of the backward pass.
    """
    if extents(x, weight) is None:
        return None
    as_matrix = flattener(x)  # of 2 modes: x itself, with its own stride of an extent of 1
    matrix = as_matrix(x.detach())
    multiply = _matrices(matrix, weight.detach(), bias, aligned)
    by_columns = column_major(matrix), column_major(weight)
    backward = linear, by_columns, bias is not None and bias.ndim == 2
    if x.ndim == 2:
        return LinearProduct(multiply, *backward)
    as_result = reshaper((*x.shape[:-1], weight.shape[0]))
    return LinearProduct(
        lambda x, weight, bias: as_result(multiply(as_matrix(x), weight, bias)), *backward
    )


def _matrices(x: Tensor, weight: Tensor, bias: Tensor | None, aligned: bool) -> LinearCall:
    """The product of a matrix x; the call is remembered where the signature has all it needs."""
    b = transposed(weight)
    if not aligned and bias is None:
        multiply = call(x, b, None, None)
        return lambda x, weight, bias: multiply(x, transposed(weight), None)
    if not aligned:
        return lambda x, weight, bias: compute(x, transposed(weight), BIAS, {"bias": bias})[0]
    as_b = ByAddress(b)
    if bias is None:
        multiply = call(x, b, None, None)
        return lambda x, weight, bias: multiply(x, as_b[weight.data_ptr()], None)
    run = fused(x, b, BIAS, {"bias": bias.detach()}).run
    return lambda x, weight, bias: run(x, as_b[weight.data_ptr()], {"bias": bias}, None)[0]


def computed(
    product: LinearProduct,
    operator: LinearCall,
    differentiable: bool,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
) -> Tensor:
    """The product of plain tensors outside torch.func.

    Inside a TorchDispatchMode, which sees operators and no launches, `operator` computes the same.
    What is saved does not depend on that: a mode may be around one pass of a checkpoint alone.
    """
    if dispatch_modes():
        product = product._replace(run=operator)
    if differentiable:
        made: Tensor = _apply(product, x, weight, bias)
        return made
    return product.run(x, weight, bias)


class _Linear(torch.autograd.Function):
    """x · weightᵀ + bias with its backward derivatives."""

    @staticmethod
    def forward(
        ctx: Any, product: LinearProduct, x: Tensor, weight: Tensor, bias: Tensor | None
    ) -> Tensor:
        ctx.product = product
        _, needs_x, needs_weight, _ = ctx.needs_input_grad
        ctx.save_for_backward(
            SAVED_BY_GEMM, x if needs_weight else None, weight if needs_x else None
        )
        return product.run(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        _, *layer = ctx.product
        return None, *gradients(ctx.saved_tensors[1:], ctx.needs_input_grad[1:], grad, *layer)


_apply = applied(_Linear)


def gradients(
    saved: tuple[Any, Any],
    needs: tuple[bool, ...],
    grad: Tensor,
    linear: LinearCall,
    by_columns: tuple[bool, bool] = (False, False),
    adds_matrix: bool = False,
) -> tuple[Tensor | None, ...]:
    """The gradients of x, weight and bias: two products, and the sum over M unless `adds_matrix`.

    `saved` are x and weight: that of x needs no x, and that of weight no weight. As torch's, the
    gradients of x and weight are column-major if these are.
    """
    x, weight = saved
    needs_x, needs_weight, needs_bias = needs
    rows = rows_of(grad)  # (M, N)
    of_x = of_weight = None
    if needs_x:
        of_rows = _product_in(by_columns[0], linear, rows, transposed(weight))
        of_x = unflattened(of_rows, grad)
    if needs_weight:
        columns = transposed(rows), transposed(rows_of(x))
        of_weight = _product_in(by_columns[1], linear, *columns)
    return of_x, of_weight, (rows if adds_matrix else rows.sum(0)) if needs_bias else None


def _product_in(by_columns: bool, linear: LinearCall, x: Tensor, weight: Tensor) -> Tensor:
    """x · weightᵀ, column-major if `by_columns`."""
    return transposed(linear(weight, x, None)) if by_columns else linear(x, weight, None)
