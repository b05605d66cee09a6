"""linear of DTensors by what each rank has, where that needs no communication.

Along each dimension of the mesh, x (…, K), weight (N, K) and bias (N,) are placed as in one row:

    x           weight      bias        result      gradients of x, of weight and bias
    Replicate   Replicate   Replicate   Replicate   Replicate   Replicate
    Shard(i)    Replicate   Replicate   Shard(i)    Shard(i)    Partial
    Replicate   Shard(0)    Shard(0)    Shard(-1)   Partial     Shard(0)
    Shard(-1)   Shard(1)    none        Partial     Shard(-1)   Shard(1)

torch gives the same placements, but takes twice the host time, since it looks up each operator's
rule in Python. torch computes the products of all other placements, with the communication that
they need.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from operator import mul
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor
from torch.distributed._functional_collectives import AsyncCollectiveTensor
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from torch.distributed.tensor.placement_types import Placement
from torch.nn import functional as F

from cutedsl_gemm.inputs.remember import remember
from cutedsl_gemm.ops.derivatives import applied

Placements: TypeAlias = tuple[Placement, ...]
Linear: TypeAlias = Callable[..., Tensor]  # (x, weight, bias) of what a rank has

_layouts: dict[Any, _Layout | None] = {}


class _Layout(NamedTuple):
    """The specs of a result and of its gradients."""

    result: DTensorSpec
    grad: Placements  # of the result
    grads: tuple[DTensorSpec, DTensorSpec, DTensorSpec | None]  # of x, weight and bias


def sharded_linear(
    linear: Linear, gradients: Callable[..., Any], x: DTensor, weight: DTensor, bias: DTensor | None
) -> Tensor | None:
    """x · weightᵀ + bias of DTensors; None if it needs communication, which is torch's.

    `linear` multiplies what a rank has, and `gradients` are those of linear_calls.py.
    """
    layout = _layout(x, weight, bias)
    if layout is None:
        return None
    given = x, weight, bias
    if torch.is_grad_enabled() and True in [e.requires_grad for e in given if e is not None]:
        made: Tensor = _apply(linear, gradients, layout, *given)
        return made
    return _whole(linear(_local(x), _local(weight), _local(bias)), layout.result)


def _layout(x: DTensor, weight: DTensor, bias: DTensor | None) -> _Layout | None:
    """The layout of a result, remembered."""
    specs = x._spec, weight._spec, None if bias is None else bias._spec
    try:
        return _layouts[specs]
    except KeyError:
        return remember(_layouts, specs, _made(*specs))


def _made(x: DTensorSpec, weight: DTensorSpec, bias: DTensorSpec | None) -> _Layout | None:
    given = [each for each in (x, weight, bias) if each is not None]
    if any(each.mesh != x.mesh or not _in_default_order(each) for each in given):
        return None
    if x.mesh.get_coordinate() is None:  # this rank has no part
        return None
    shape = *x.shape[:-1], weight.shape[0]
    if weight.ndim != 2 or x.ndim == 0 or x.shape[-1] != weight.shape[1]:
        return None
    if bias is not None and bias.shape != weight.shape[:1]:
        return None
    biases = weight.placements if bias is None else bias.placements
    rows = [
        _row(x.ndim - 1, *each, bias is not None)
        for each in zip(x.placements, weight.placements, biases, strict=True)
    ]
    known = [each for each in rows if each is not None]
    if len(known) < len(rows):
        return None
    result, grad, of_x, of_weight = zip(*known, strict=True)
    grads = (
        _new(x, of_x, x.shape),
        _new(x, of_weight, weight.shape),
        None if bias is None else _new(x, of_weight, bias.shape),
    )
    return _Layout(_new(x, result, shape), grad, grads)


def _row(
    last: int, x: Placement, weight: Placement, bias: Placement, has_bias: bool
) -> tuple[Placement, Placement, Placement, Placement] | None:
    """A row of the table: of the result, its gradient, and the gradients of x and weight."""
    kinds, replica = (type(x), type(weight)), Replicate()
    if has_bias and bias != (weight if kinds[1] is Shard else replica):
        return None
    if kinds == (Replicate, Replicate):
        return replica, replica, replica, replica
    if kinds == (Shard, Replicate) and x != Shard(last):
        return x, x, x, Partial()
    if kinds == (Replicate, Shard) and weight == Shard(0):
        return Shard(last), Shard(last), Partial(), weight
    if kinds == (Shard, Shard) and (x, weight) == (Shard(last), Shard(1)) and not has_bias:
        return Partial(), replica, x, weight
    return None


def _new(like: DTensorSpec, placements: Placements, shape: Sequence[int]) -> DTensorSpec:
    """The spec of a new contiguous tensor, of the mesh and the dtype of another."""
    strides = [*accumulate((1, *reversed(shape[1:])), mul)][::-1]
    meta = TensorMeta(torch.Size(shape), tuple(strides), like.tensor_meta.dtype)
    return DTensorSpec(like.mesh, placements, meta)


def _in_default_order(spec: DTensorSpec) -> bool:
    """Whether dimensions of the mesh that shard one mode do so one after the other."""
    return spec.tensor_meta is not None and spec == DTensorSpec(
        spec.mesh, spec.placements, spec.tensor_meta
    )


class _ShardedLinear(torch.autograd.Function):
    """x · weightᵀ + bias with its backward derivatives, both of what a rank has."""

    @staticmethod
    def forward(
        ctx: Any,
        linear: Linear,
        gradients: Callable[..., Any],
        layout: _Layout,
        x: DTensor,
        weight: DTensor,
        bias: DTensor | None,
    ) -> Tensor:
        ctx.linear, ctx.gradients, ctx.layout = linear, gradients, layout
        needs_x, needs_weight, _ = ctx.needs_input_grad[3:]
        ctx.save_for_backward(x if needs_weight else None, weight if needs_x else None)
        return _whole(linear(_local(x), _local(weight), _local(bias)), layout.result)

    @staticmethod
    def backward(ctx: Any, grad: DTensor) -> tuple[Tensor | None, ...]:
        needs, (x, weight), layout = ctx.needs_input_grad[3:], ctx.saved_tensors, ctx.layout
        if torch.is_grad_enabled():  # the derivatives themselves are to have derivatives
            return None, None, None, *ctx.gradients((x, weight), needs, grad, F.linear)
        if grad.placements != layout.grad:
            grad = grad.redistribute(placements=layout.grad)
        parts = _local(x), _local(weight)
        found = ctx.gradients(parts, needs, _local(grad), ctx.linear)
        pairs = zip(found, layout.grads, strict=True)
        return None, None, None, *[None if g is None else _whole(g, spec) for g, spec in pairs]


_apply = applied(_ShardedLinear)


def _local(tensor: Any) -> Any:
    """What this rank has of a tensor, once it is there."""
    if tensor is None:
        return None
    local = tensor._local_tensor
    return local.wait() if isinstance(local, AsyncCollectiveTensor) else local


def _whole(local: Tensor, spec: DTensorSpec) -> Tensor:
    """The DTensor of which this rank has a part."""
    made: Tensor = DTensor(local, spec, requires_grad=False)
    return made
