"""torch's linear, by gemm where the choice expects that to be faster, and by torch elsewhere.

signature of (x, weight, bias) → the product, remembered; or None: torch computes it
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch._C._functorch import peek_interpreter_stack
from torch._subclasses.fake_tensor import FakeTensor
from torch.autograd import forward_ad
from torch.compiler import is_dynamo_compiling
from torch.nn import functional as F

from cutedsl_gemm.activations import LINEAR
from cutedsl_gemm.call import REMEMBERED, call
from cutedsl_gemm.compiled import operator
from cutedsl_gemm.fused import compute, fused
from cutedsl_gemm.operator import register_sharding
from cutedsl_gemm.problem import MAX_EXTENT, TMA
from cutedsl_gemm.select.preference import beats_torch
from cutedsl_gemm.tensors import DENSE, is_sharded, rows_of

Run: TypeAlias = Callable[[Tensor, Tensor, Any], Tensor]  # (x, weight, bias or None) → result

DEVICES = ("cuda",)  # tests add the CPU, whose executor is exact, and slow
VECTOR = 32  # bytes: no plan needs a wider alignment
AUTOCAST = torch.float32, torch.bfloat16, torch.float16  # what autocast converts
BIAS = LINEAR[None][1]

_runs: dict[Any, Run | None] = {}


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """torch.nn.functional.linear of the same arguments: x (…, K), weight (N, K), bias (N,)."""
    result = by_gemm(x, weight, bias)
    return F.linear(x, weight, bias) if result is None else result


def by_gemm(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor | None:
    """x (…, K) · weightᵀ + bias by gemm; None if torch is to compute it.

    torch computes what is not on a Hopper GPU, not bfloat16 or float16, a subclass of Tensor,
    inside torch.func or forward-mode derivatives, malformed, or expected to be slower by gemm.
    """
    if torch._C._is_any_autocast_enabled():
        tensors = autocast(x, weight, bias)
        if tensors is None:
            return None
        x, weight, bias = tensors
    if is_dynamo_compiling():
        return _traced(x, weight, bias) if suits(x, weight, bias) else None
    if not (type(x) in DENSE and type(weight) in DENSE and (bias is None or type(bias) in DENSE)):
        return _of_subclasses(x, weight, bias)
    if forward_ad._current_level >= 0 or peek_interpreter_stack() is not None:
        return None
    run = _run_for(x, weight, bias)
    if run is None:
        return None
    if torch._C._len_torch_dispatch_stack():  # a mode sees operators, not launches
        return _traced(x, weight, bias)
    if torch.is_grad_enabled() and (
        x.requires_grad or weight.requires_grad or (bias is not None and bias.requires_grad)
    ):
        made: Tensor = _apply(run, x, weight, bias)
        return made
    return run(x, weight, bias)


def _of_subclasses(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor | None:
    """The product of fake tensors, or of DTensors; None for those of any other type."""
    if isinstance(x, FakeTensor) and isinstance(weight, FakeTensor):
        return _traced(x, weight, bias) if suits(x, weight, bias) else None
    if not (is_sharded(x) and is_sharded(weight) and (bias is None or is_sharded(bias))):
        return None
    if forward_ad._current_level >= 0 or torch._C._len_torch_dispatch_stack():
        return None
    if peek_interpreter_stack() is not None or not suits(x, weight, bias):
        return None
    from cutedsl_gemm.sharded_linear import sharded_linear  # here: it imports DTensor

    return sharded_linear(linear, _gradients, x, weight, bias)


def autocast(x: Tensor, *others: Tensor | None) -> tuple[Any, ...] | None:
    """The tensors as torch.autocast passes them to linear; None if it does not convert them."""
    device, given = x.device.type, (x, *others)
    if device not in DEVICES or not torch.is_autocast_enabled(device):
        return given
    dtype = torch.get_autocast_dtype(device)
    known = [each for each in given if each is not None]
    if any(each.dtype not in AUTOCAST or each.device.type != device for each in known):
        return None
    return tuple(None if each is None else each.to(dtype) for each in given)


def _run_for(x: Tensor, weight: Tensor, bias: Tensor | None) -> Run | None:
    """The product of tensors of one signature, found in two microseconds if it is known.

    Device -1 is the CPU, since a tensor without memory has no address.
    """
    try:
        x_start, weight_start = x.data_ptr(), weight.data_ptr()
        bias_start = VECTOR if bias is None else bias.data_ptr()
        if not (x_start and weight_start and bias_start):
            return None  # without memory, or empty
        offset = (x_start | weight_start | bias_start) % VECTOR
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
        return _runs[signature]
    except KeyError:
        pass
    except (RuntimeError, TypeError):  # sparse, nested, or of symbolic shape
        return None
    run = _make(x, weight, bias, offset == 0) if suits(x, weight, bias) else None
    if len(_runs) >= REMEMBERED:
        _runs.clear()
    _runs[signature] = run
    return run


def suits(x: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
    """Whether gemm has a kernel for tensors like these; their shapes may be symbolic."""
    if x.device.type not in DEVICES or x.dtype not in TMA.dtypes or x.ndim == 0:
        return False
    if weight.device != x.device or weight.dtype != x.dtype or weight.ndim != 2:
        return False
    if x.layout != torch.strided or weight.layout != torch.strided:
        return False
    if bias is None:
        return bool(x.shape[-1] == weight.shape[1])
    same = bias.device == x.device and bias.dtype == x.dtype and bias.layout == torch.strided
    return same and x.shape[-1] == weight.shape[1] and bias.shape == weight.shape[:1]


def _make(x: Tensor, weight: Tensor, bias: Tensor | None, aligned: bool) -> Run | None:
    (n, k), shape = weight.shape, (*x.shape[:-1], weight.shape[0])
    m = prod(x.shape[:-1])
    if m * n * k == 0 or max(m, n, k) > MAX_EXTENT:
        return None
    if not on_hopper(x.device) or not beats_torch(m, n, k):
        return None
    multiply = _matrices(x.detach().reshape(m, k), weight.detach(), bias, aligned)
    if x.ndim == 2:
        return multiply
    if x.is_contiguous():
        return lambda x, weight, bias: multiply(x.view(m, k), weight, bias).view(shape)
    return lambda x, weight, bias: multiply(x.reshape(m, k), weight, bias).view(shape)


def _matrices(x: Tensor, weight: Tensor, bias: Tensor | None, aligned: bool) -> Run:
    """The product of a matrix x; the call is remembered where the signature has all it needs."""
    if bias is None:
        multiply = call(x, weight.mT, None, None)
        return lambda x, weight, bias: multiply(x, weight.mT, None)
    if not aligned:
        return lambda x, weight, bias: compute(x, weight.mT, BIAS, {"bias": bias})[0]
    run = fused(x, weight.mT, BIAS, {"bias": bias.detach()}).run
    return lambda x, weight, bias: run(x, weight.mT, {"bias": bias}, None)[0]


def on_hopper(device: torch.device) -> bool:
    """Whether a device has the kernels that the choice is between: an H100, or the executor."""
    if device.type != "cuda":
        return True  # the executor
    return torch.version.cuda is not None and torch.cuda.get_device_capability(device) == (9, 0)


class _Linear(torch.autograd.Function):
    """x · weightᵀ + bias with its backward derivatives."""

    @staticmethod
    def forward(ctx: Any, run: Run, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return run(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return None, *_gradients(ctx.saved_tensors, ctx.needs_input_grad[1:], grad, linear)


# Function.apply first looks for torch.func's transforms, which `by_gemm` has done: 2 µs less.
_apply = super(torch.autograd.Function, _Linear).apply


def _gradients(
    saved: tuple[Tensor, Tensor], needs: tuple[bool, ...], grad: Tensor, multiply: Run
) -> tuple[Tensor | None, ...]:
    """The gradients of x, weight and bias; each product is by whichever is faster."""
    x, weight = saved
    needs_x, needs_weight, needs_bias = needs
    rows = rows_of(grad)  # (M, N)
    return (
        multiply(rows, weight.mT, None).view(x.shape) if needs_x else None,
        multiply(rows.mT, rows_of(x).mT, None) if needs_weight else None,
        rows.sum(0) if needs_bias else None,
    )


def _traced(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """The product as one operator, which decides when it runs: shapes may be symbolic till then."""
    register_sharding()
    rows = rows_of(x)
    given = [x, weight] if bias is None else [x, weight, bias]
    differentiated = torch.is_grad_enabled() and any(each.requires_grad for each in given)
    made: Tensor = (_Traced.apply if differentiated else _operator)(rows, weight, bias)
    return made.view(*x.shape[:-1], weight.shape[0])


def _fake(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return x.new_empty(x.shape[0], weight.shape[0])


def multiply(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`linear` of tensors with memory, below autograd."""
    run = _run_for(x, weight, bias)
    return (run or F.linear)(x, weight, bias)


_operator = operator("linear", _fake)(multiply)


class _Traced(torch.autograd.Function):
    """The operator, of a matrix x, with its backward derivatives."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        made: Tensor = _operator(x, weight, bias)
        return made

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        again = torch.is_grad_enabled() and not is_dynamo_compiling()
        multiply = _traced if again else _operator
        return _gradients(ctx.saved_tensors, ctx.needs_input_grad, grad, multiply)
