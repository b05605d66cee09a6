"""torch's linear, by gemm where it is expected to be at least as fast, and by torch elsewhere.

signature of (x, weight, bias) → the product, remembered; or None: torch computes it
"""

from __future__ import annotations

from math import prod
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.compiler import is_dynamo_compiling
from torch.nn import functional as F

from cutedsl_gemm.inputs.tensors import DENSE, column_major, is_sharded
from cutedsl_gemm.inputs.transforms import dispatch_modes, exporting, in_make_fx, transformed
from cutedsl_gemm.inputs.views import rows_of, unflattened
from cutedsl_gemm.layers import linear_calls
from cutedsl_gemm.layers.linear_calls import (
    AUTOCAST,
    LinearProduct,
    computed,
    extents,
    gradients,
    needs_gradients,
    of_shards,
    product,
    remembered_linear,
)
from cutedsl_gemm.ops.library import composite, operator, register_flops, with_derivative
from cutedsl_gemm.ops.operator import flops, register_sharding
from cutedsl_gemm.select.preference import FEW_ROWS, beats_torch

DEVICES = ("cuda",)  # tests add the CPU, whose executor is exact, and slow

# M · N · K of a product with more than FEW_ROWS rows. A shorter training step waits for the host,
# and a torch.autograd.Function takes more of its time than torch's own functions: layers of 5e9 and
# 1e10 train at 0.86 and 0.81 × torch's speed, those of 2.7e10 to 7.7e10 at 1.02 to 1.04 (the
# notebook, "Short training steps").
LEAST_TRAINED = 15_000_000_000

_runs: dict[Any, LinearProduct | None] = {}
_trained: dict[Any, LinearProduct | None] = {}  # those of tensors that need gradients


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """torch.nn.functional.linear of the same arguments: x (…, K), weight (N, K), bias (N,).

    Beside a matrix x, bias may be a matrix (M, N), as that of torch.addmm.
    """
    result = by_gemm(x, weight, bias)
    return F.linear(x, weight, bias) if result is None else result


def by_gemm(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor | None:
    """x (…, K) · weightᵀ + bias by gemm; None if torch is to compute it.

    None for tensors that are not on a Hopper GPU, or not of bfloat16 or float16; for subclasses of
    Tensor other than DTensor and FakeTensor; inside torch.func, forward-mode derivatives and
    torch.jit.trace; for malformed arguments; where gemm is expected to be slower; and in eager
    training if the product is short.
    """
    if torch._C._is_any_autocast_enabled():
        tensors = autocast(x, weight, bias)
        if tensors is None:
            return None
        x, weight, bias = tensors
    if transformed():  # of a traced graph, too, whose operators torch.func does not know
        return None
    if is_dynamo_compiling():
        return _traced(x, weight, bias) if suits(x, weight, bias) else None
    if not (type(x) in DENSE and type(weight) in DENSE and (bias is None or type(bias) in DENSE)):
        return _of_subclasses(x, weight, bias)
    if torch._C._is_tracing():
        return None
    differentiable = needs_gradients(x, weight, bias)
    known, make = (_trained, _make_trained) if differentiable else (_runs, _make)
    found = remembered_linear(known, make, x, weight, bias)
    return None if found is None else computed(found, _traced, differentiable, x, weight, bias)


def _of_subclasses(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor | None:
    """The product of fake tensors, or of DTensors; None for those of any other type."""
    if isinstance(x, FakeTensor) and isinstance(weight, FakeTensor):
        return _traced(x, weight, bias) if suits(x, weight, bias) else None
    if dispatch_modes():
        return None
    return of_shards(linear, DEVICES, x, weight, bias)


def is_known(tensor: object) -> bool:
    """Whether gemm may multiply tensors of this type. Others may lack views that it would take."""
    if is_dynamo_compiling():
        return isinstance(tensor, Tensor)
    return type(tensor) in DENSE or isinstance(tensor, FakeTensor) or is_sharded(tensor)


def autocast(x: Tensor, *others: Tensor | None) -> tuple[Any, ...] | None:
    """The tensors as torch.autocast passes them to linear; None if it does not convert them."""
    if not isinstance(x, Tensor):  # a Proxy of torch.fx, whose device is no string
        return None
    device, given = x.device.type, (x, *others)
    if device not in DEVICES or not torch.is_autocast_enabled(device):
        return given
    dtype = torch.get_autocast_dtype(device)
    known = [each for each in given if each is not None]
    if any(each.dtype not in AUTOCAST or each.device.type != device for each in known):
        return None
    return tuple(None if each is None else each.to(dtype) for each in given)


def _make(
    x: Tensor, weight: Tensor, bias: Tensor | None, aligned: bool, least: int = 0
) -> LinearProduct | None:
    """The product; None if torch computes it, as it does where M · N · K is less than `least`."""
    if not suits(x, weight, bias) or not on_hopper(x.device):
        return None
    mnk = extents(x, weight)
    if mnk is None or prod(mnk) < least or not beats_torch(*mnk):
        return None
    return product(linear, x, weight, bias, aligned)


def _make_trained(
    x: Tensor, weight: Tensor, bias: Tensor | None, aligned: bool
) -> LinearProduct | None:
    """The product; None if torch computes it, as it does where the training step is short.

    Products of few rows have no such bound: a model may decode outside of torch.no_grad. Compiled
    graphs have none, either: torch.compile may replace a graph for one number of rows by one for
    any number, and a checkpoint would then find tensors that the other product saved.
    """
    few = x.shape[:-1].numel() <= FEW_ROWS
    return _make(x, weight, bias, aligned, 0 if few else LEAST_TRAINED)


def suits(x: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
    """Whether gemm has a kernel for tensors like these; their shapes may be symbolic."""
    return linear_calls.suits(x, weight, bias, DEVICES)


def on_hopper(device: torch.device) -> bool:
    """Whether a device runs the sm90 kernels: a Hopper GPU, or a CPU through the executor."""
    if device.type != "cuda":
        return True  # the executor
    return torch.version.cuda is not None and torch.cuda.get_device_capability(device) == (9, 0)


def _traced(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """The product as one operator, which decides at run time: shapes may be symbolic until then."""
    register_sharding()
    if exporting() or in_make_fx():  # of x as it is: a graph of views takes no other strides
        made: Tensor = _exported(x, weight, bias)
        return made
    differentiable = needs_gradients(x, weight, bias)
    run = _differentiable if differentiable else _operator
    return unflattened(run(rows_of(x), weight, bias), x)


def _fake(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return x.new_empty(*x.shape[:-1], weight.shape[0])


def multiply(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`linear` of tensors with memory, below autograd."""
    found = remembered_linear(_runs, _make, x, weight, bias)
    return (F.linear if found is None else found.run)(x, weight, bias)


def _save(ctx: Any, inputs: tuple[Tensor | None, ...], output: Tensor | None = None) -> None:
    x, weight, *bias = inputs  # a graph leaves out a bias of None
    needs_x, needs_weight, *_ = ctx.needs_input_grad
    ctx.save_for_backward(x if needs_weight else None, weight if needs_x else None)
    # The strides of x may be symbolic. No graph depends on them: the gradient of x is by rows.
    by_columns = False, column_major(weight)
    ctx.layer = by_columns, any(each is not None and each.ndim == 2 for each in bias)


def _exported_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    needs = ctx.needs_input_grad
    of_three = (*needs, False)[:3]
    found = gradients(ctx.saved_tensors, of_three, grad, _exported, *ctx.layer)
    return found[: len(needs)]


_operator = operator("linear", _fake)(multiply)
_exported = with_derivative("exported_linear", _fake, _save, _exported_backward)(multiply)
register_flops(flops, torch.ops.cutedsl_gemm.linear, torch.ops.cutedsl_gemm.exported_linear)


class _Traced(torch.autograd.Function):
    """The operator, of a matrix x, with its backward derivatives."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        _save(ctx, (x, weight, bias))
        made: Tensor = _operator(x, weight, bias)
        return made

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        multiply = _traced if torch.is_grad_enabled() else _operator
        needs = ctx.needs_input_grad
        return gradients(ctx.saved_tensors, needs, grad, multiply, *ctx.layer)


@composite("differentiable_linear")
def _differentiable(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    made: Tensor = _Traced.apply(x, weight, bias)
    return made
