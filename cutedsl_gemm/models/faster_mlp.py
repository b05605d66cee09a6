"""An MLP on gemm where the model expects that to be faster: two kernels instead of three or five.

    h = activation(x · upᵀ + bias)           one product; or, with a gate,
    h = activation(x · gateᵀ) * (x · upᵀ)    one product of two accumulators
    y = h · downᵀ + bias

The weights of gate and up are two tensors, or one of both. See `inputs.pairs` for how one kernel
reads two, and `layers.mlp` for the gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling

from cutedsl_gemm.calls.fused import compute, fused
from cutedsl_gemm.calls.results import Results
from cutedsl_gemm.inputs.pairs import in_reach, parts_at
from cutedsl_gemm.inputs.problem import MAX_EXTENT, WIDEST_ALIGNMENT
from cutedsl_gemm.inputs.remember import remember
from cutedsl_gemm.inputs.tensors import DENSE, is_sharded
from cutedsl_gemm.inputs.transforms import dispatch_modes, exporting, transformed
from cutedsl_gemm.inputs.views import flattener, reshaper, rows_of, unflattened
from cutedsl_gemm.kernels.epilogue.derivative import Stored
from cutedsl_gemm.layers.activations import GATES
from cutedsl_gemm.layers.linear_calls import extents
from cutedsl_gemm.layers.mlp import (
    Linear,
    Mlp,
    by_operations,
    differentiated_again,
    first_b,
    first_layer,
    first_products,
    hidden_gradient,
    input_gradient,
    keep,
    kept,
    of_derivative,
    stored_layer,
)
from cutedsl_gemm.models.faster import autocast, linear, multiply, on_hopper, suits
from cutedsl_gemm.ops.library import composite, operator
from cutedsl_gemm.select.preference import beats_torch

# M · N · K of the first layer, N the columns of gate and up. In eager mode, a step of a shorter MLP
# waits for the host, and it trains as its layers do. Without a gate, 1.9e10 takes 1,324 µs fused,
# 1,104 as layers; 3.4e10, 763 and 741; 1.4e11, 2,387 and 2,642 (notebook, "MLPs without a gate").
LEAST_TRAINED_FUSED = 50_000_000_000


def mlp(
    x: Tensor,
    w1: Sequence[Tensor],
    biases: Sequence[Tensor | None],
    w2: Tensor,
    b2: Tensor | None,
    activation: str,
    gate_first: bool,
) -> Tensor | None:
    """x (…, K) through an MLP: (…, N); None if torch is to compute it.

    If `activation` is a name in ACTIVATIONS, w1 holds a weight (H, K), and `biases` (H,) or None.
    If it is a name in GATES, w1 holds gate and up, each (H, K), or both in one (2H, K), the gate
    first or last. w2 is (N, H), b2 (N,) or None. None where `faster.by_gemm` gives None; if gate or
    up has a bias; if one kernel cannot read both weights as one tensor; and in eager training if
    the MLP is short.
    """
    if activation in GATES and any(each is not None for each in biases):
        return None
    tensors = x, biases[0], w2, b2, *w1
    if torch._C._is_any_autocast_enabled():
        cast = autocast(*tensors)
        if cast is None:
            return None
        tensors = cast
    if transformed():
        return None
    given = [each for each in tensors if each is not None]
    x, b1, w2, b2, *w1 = tensors
    if is_dynamo_compiling():
        # torch divides one product at a time, and an exported graph keeps no autograd.Function
        suited = _suit(x, w1, b1, w2, b2, activation) and not is_sharded(*given) and not exporting()
        return _traced(x, w1, b1, w2, b2, activation, gate_first) if suited else None
    if any(type(each) not in DENSE for each in given) or torch._C._is_tracing():
        return None
    if x.ndim == 0 or w2.is_neg() or (b2 is not None and b2.shape != w2.shape[:1]):
        return None
    trained = torch.is_grad_enabled() and True in [each.requires_grad for each in given]
    if trained and (x.numel() * _columns(w1) < LEAST_TRAINED_FUSED or not _is_matrix(w2)):
        return None
    if dispatch_modes():
        product: _Product | bool = _is_faster(x, w1, b1, activation)
    else:
        product = _product(x, w1, b1, activation, gate_first)
    if trained:
        if product is BY_TORCH:
            return None
        options = linear, activation, gate_first
        made = Mlp.apply(*options, rows_of(x), b1, w2, b2, *w1)
        return unflattened(made[0], x)
    if isinstance(product, bool):
        return None
    (h,) = product.call.run(product.call.as_matrix(x), product.b, product.operands, None)
    y = multiply(h, w2, b2)
    if x.ndim == 2 or not y.is_contiguous():  # torch's product with a sparse w2 is column-major
        return unflattened(y, x)
    return reshaper((*x.shape[:-1], y.shape[1]))(y)


def _is_matrix(weight: Tensor) -> bool:
    """Whether a weight is a dense matrix. torch also multiplies by a sparse one, or by a vector."""
    return weight.layout == torch.strided and weight.ndim == 2


def _suit(
    x: Tensor,
    w1: Sequence[Tensor],
    b1: Tensor | None,
    w2: Tensor,
    b2: Tensor | None,
    activation: str,
) -> bool:
    """Whether gemm has kernels for tensors like these; their shapes may be symbolic."""
    # three modes, so that b2 must be a row
    hidden = x.new_empty(()).expand(1, 1, _hidden_columns(w1, activation))
    return _fit(x, w1, b1, activation) and suits(hidden, w2, b2)


def _fit(x: Tensor, w1: Sequence[Tensor], b1: Tensor | None, activation: str) -> bool:
    """Whether x can be multiplied by the first layer; shapes may be symbolic."""
    if activation in GATES and _columns(w1) % 2:
        return False
    if not all(suits(x, each, None) for each in w1):
        return False
    row = x.new_empty(()).expand(1, 1, x.shape[-1])  # three modes, so that b1 must be a row
    return suits(row, w1[0], b1)


def _columns(w1: Sequence[Tensor]) -> int:
    """The columns of the first layer: of gate and up, if it has a gate."""
    return sum(each.shape[0] for each in w1)


def _hidden_columns(w1: Sequence[Tensor], activation: str) -> int:
    """The columns of the hidden layer."""
    return _columns(w1) // (2 if activation in GATES else 1)


def _is_faster(x: Tensor, w1: Sequence[Tensor], b1: Tensor | None, activation: str) -> bool:
    """Whether gemm is expected to be faster at these shapes, wherever in memory the tensors are.

    A checkpoint computes an MLP again, perhaps with its weights elsewhere, and must save the same.
    """
    given = (x, *w1) if b1 is None else (x, b1, *w1)
    if not _fit(x, w1, b1, activation) or any(each.is_neg() for each in given):
        return False  # gemm refuses negative views
    m, columns, k = prod(x.shape[:-1]), _columns(w1), x.shape[-1]
    # A remembered call has the strides of its first tensors, which may differ at an extent of 1.
    if w1[0].shape != w1[-1].shape or 1 in (_hidden_columns(w1, activation), k):
        return False
    if m * columns * k == 0 or max(m, columns, k) > MAX_EXTENT or not on_hopper(x.device):
        return False
    return beats_torch(m, columns, k)


class _Call(NamedTuple):
    """What multiplies x by the first layer, for tensors of one signature, wherever these are."""

    kept: Stored  # the layer, for its derivative
    as_matrix: Callable[[Tensor], Tensor]  # x (…, K) → (M, K)
    run: Callable[..., Results]
    part: tuple[Any, ...]  # with a gate: the device, dtype, shape and strides of gateᵀ, and of upᵀ


class _Product(NamedTuple):
    """A call, and what it reads."""

    call: _Call
    b: Tensor  # (K, H); or (2, K, H), without memory of its own
    operands: dict[str, Tensor]  # the bias
    order: int  # of the weights, as in `layers.mlp.memory_order`


# In place of a product: torch computes it, or gemm does so one weight at a time.
BY_TORCH, ONE_BY_ONE = False, True

_calls: dict[Any, _Call | bool] = {}


def _product(
    x: Tensor, w1: Sequence[Tensor], b1: Tensor | None, activation: str, gate_first: bool
) -> _Product | bool:
    """What multiplies x (…, K) by the first layer at once; else BY_TORCH or ONE_BY_ONE."""
    gated, operands = activation in GATES, {} if b1 is None else {"bias": b1}
    try:
        signature = tuple([_signature(each) for each in (x, *w1, *operands.values())])
        start, distance = _addresses(w1) if gated else (0, 1)  # one weight: in order, and in reach
    except RuntimeError:  # sparse or nested
        return BY_TORCH
    if not in_reach(abs(distance)):
        return _is_faster(x, w1, b1, activation)
    order = 1 if distance > 0 else -1
    gate_first = gate_first == (order == 1)
    try:
        known = _calls[activation, gate_first, signature]
    except TypeError:  # of symbolic shape
        return BY_TORCH
    except KeyError:
        made = _make(x, w1, b1, activation, gate_first)
        known = remember(_calls, (activation, gate_first, signature), made)
    if isinstance(known, bool):
        return known
    if not gated:
        return _Product(known, w1[0].mT, operands, order)
    b = parts_at(min(start, start + distance), abs(distance), *known.part)
    return _Product(known, b, operands, order)


def _addresses(w1: Sequence[Tensor]) -> tuple[int, int]:
    """Where the first of two parts is, and how many bytes behind it the second."""
    first = w1[0]
    if len(w1) == 2:
        return first.data_ptr(), w1[1].data_ptr() - first.data_ptr()
    return first.data_ptr(), first.shape[0] // 2 * first.stride(0) * first.element_size()


def _signature(tensor: Tensor) -> tuple[Any, ...]:
    """The properties of a tensor that decide a product.

    The last is the address modulo WIDEST_ALIGNMENT, and -1 for a tensor without memory, or whose
    memory has the other sign. RuntimeError if the tensor is sparse or nested.
    """
    start = 0 if tensor.is_neg() else tensor.data_ptr()
    # fmt: off
    return (
        tensor.shape, tensor.stride(), tensor.dtype, tensor.get_device(),
        start % WIDEST_ALIGNMENT if start else -1,
    )
    # fmt: on


def _make(
    x: Tensor, w1: Sequence[Tensor], b1: Tensor | None, activation: str, gate_first: bool
) -> _Call | bool:
    """What `_product` remembers of tensors of a signature; `gate_first` in memory."""
    if not _is_faster(x, w1, b1, activation):
        return BY_TORCH
    b = first_b(activation, sorted((each.detach() for each in w1), key=Tensor.data_ptr))
    if b is None:
        return ONE_BY_ONE
    operands = {} if b1 is None else {"bias": b1.detach()}
    layer = first_layer(activation, gate_first, b1 is not None)
    found = fused(rows_of(x.detach()), b, layer, operands)
    kept = stored_layer(activation, gate_first, b1 is not None)
    part = x.device, x.dtype, b.shape[1:], b.stride()[1:]
    return _Call(kept, flattener(x), found.run, part)


def _traced(
    x: Tensor,
    w1: Sequence[Tensor],
    b1: Tensor | None,
    w2: Tensor,
    b2: Tensor | None,
    activation: str,
    gate_first: bool,
) -> Tensor:
    """The MLP as one operator, which decides at run time: shapes may be symbolic until then."""
    rows = rows_of(x)
    given = [each for each in (x, b1, w2, b2, *w1) if each is not None]
    if torch.is_grad_enabled() and any(each.requires_grad for each in given):
        made: Tensor = _differentiable(rows, w1, b1, w2, b2, activation, gate_first)
    else:
        (made,) = _operator(rows, list(w1), b1, w2, b2, activation, gate_first, False)
    return made.view(*x.shape[:-1], made.shape[1])


def _fake(
    x: Tensor,
    w1: Sequence[Tensor],
    b1: Tensor | None,
    w2: Tensor,
    b2: Tensor | None,
    activation: str,
    gate_first: bool,
    kept: bool,
) -> list[Tensor]:
    results = stored_layer(activation, gate_first, b1 is not None).epilogue.results
    hidden = [x.new_empty(x.shape[0], w2.shape[1]) for _ in results] if kept else []
    return [x.new_empty(x.shape[0], w2.shape[0]), *hidden]


@operator("mlp", _fake)
def _operator(
    x: Tensor,
    w1: Sequence[Tensor],
    b1: Tensor | None,
    w2: Tensor,
    b2: Tensor | None,
    activation: str,
    gate_first: bool,
    kept: bool,
) -> list[Tensor]:
    """y (M, N); and, if `kept`, the hidden layer, and what else the first layer stores."""
    product = _product(x, w1, b1, activation, gate_first)
    if isinstance(product, bool):
        h, *others = first_products(multiply, x, w1, b1, activation, gate_first)
        if kept:  # outputs never share memory
            others = [each.clone(memory_format=torch.contiguous_format) for each in others]
    elif kept:
        h, *others = compute(x, product.b, product.call.kept.epilogue, product.operands)
        others = others[:: product.order]
    else:
        (h,) = product.call.run(x, product.b, product.operands, None)
    y = multiply(h, w2, b2)
    return [y, h, *others] if kept else [y]


class _Traced(Mlp):
    """An `Mlp` whose forward pass is the operator, and whose backward pass is another."""

    @staticmethod
    def forward(
        ctx: Any,
        linear: Linear,
        activation: str,
        gate_first: bool,
        x: Tensor,
        b1: Tensor | None,
        w2: Tensor,
        b2: Tensor | None,
        *w1: Tensor,
    ) -> tuple[Tensor, ...]:
        y, *results = _operator(x, list(w1), b1, w2, b2, activation, gate_first, True)
        keep(ctx, (linear, activation, gate_first), x, b1, w2, b2, w1, results)
        return y, *results

    @staticmethod
    def backward(ctx: Any, dy: Tensor | None, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        if dy is None or differentiated_again(grads):  # as in a graph that runs eagerly
            return Mlp.backward(ctx, dy, *grads)
        x, w2, w1, results = kept(ctx)
        needs_x, needs_b1, needs_w2, needs_b2, *needs_w1 = ctx.needs_input_grad[3:]
        _, activation, gate_first = ctx.layer
        stored = of_derivative(results) if ctx.needs_first else []
        of_x, of_w1, of_b1, of_w2 = _backward(
            dy,
            x,
            w1 if needs_x else [],
            w2,
            results[0] if needs_w2 else None,
            stored,
            activation,
            gate_first,
            needs_b1,
        )
        parts = of_w1.chunk(len(w1))
        return (
            *(None, None, None),  # linear, activation, gate_first
            of_x if needs_x else None,
            of_b1 if needs_b1 else None,
            of_w2 if needs_w2 else None,
            dy.sum(0, dtype=torch.float32).to(dy.dtype) if needs_b2 else None,
            *(part if n else None for part, n in zip(parts, needs_w1, strict=True)),
        )


@composite("differentiable_mlp")
def _differentiable(
    x: Tensor,
    w1: Sequence[Tensor],
    b1: Tensor | None,
    w2: Tensor,
    b2: Tensor | None,
    activation: str,
    gate_first: bool,
) -> Tensor:
    """y (M, N)."""
    made: Tensor = _Traced.apply(linear, activation, gate_first, x, b1, w2, b2, *w1)[0]
    return made


def _fake_backward(
    dy: Tensor,
    x: Tensor | None,
    w1: Sequence[Tensor],
    w2: Tensor | None,
    h: Tensor | None,
    stored: Sequence[Tensor],
    activation: str,
    gate_first: bool,
    needs_b1: bool,
) -> list[Tensor]:
    columns = 0 if w2 is None else w2.shape[1] * (2 if activation in GATES else 1)
    return [
        dy.new_empty((dy.shape[0], w1[0].shape[1]) if w1 else 0),
        dy.new_empty(0 if x is None else (columns, x.shape[1])),
        dy.new_empty(columns if needs_b1 else 0),
        dy.new_empty(0 if h is None else (dy.shape[1], h.shape[1])),
    ]


@operator("mlp_backward", _fake_backward)
def _backward(
    dy: Tensor,
    x: Tensor | None,
    w1: Sequence[Tensor],
    w2: Tensor | None,
    h: Tensor | None,
    stored: Sequence[Tensor],
    activation: str,
    gate_first: bool,
    needs_b1: bool,
) -> list[Tensor]:
    """The gradients of x, w1 (H, K) or (2H, K), b1 and w2; those that are not needed are empty.

    No w1: that of x is not needed; no x: that of w1; no h, the hidden layer: that of w2; no w2:
    none of the first layer. `stored` are the results of that layer that its derivative reads.
    """
    dz, *sums = dy.new_empty(0), dy.new_empty(0)
    if w2 is not None:
        dz, *sums = _hidden_gradient(dy, w2, stored, activation, gate_first, needs_b1)
    return [
        input_gradient(multiply, dz, w1) if w1 else dy.new_empty(0),
        dy.new_empty(0) if x is None else multiply(dz.mT, x.mT),
        sums[0].to(dy.dtype) if needs_b1 else dy.new_empty(0),
        dy.new_empty(0) if h is None else multiply(dy.mT, h.mT),
    ]


def _hidden_gradient(
    dy: Tensor,
    w2: Tensor,
    stored: Sequence[Tensor],
    activation: str,
    gate_first: bool,
    needs_b1: bool,
) -> Results:
    """As `layers.mlp.hidden_gradient`; by torch where it computes a first layer of this shape.

    dy stands for x, which is not there if the weights of the first layer are frozen.
    """
    layer = activation, gate_first, needs_b1
    columns = w2.shape[1] * (2 if activation in GATES else 1)
    if extents(dy, w2.mT) and on_hopper(dy.device) and beats_torch(len(dy), columns, len(w2)):
        return hidden_gradient(dy, w2, stored, *layer)
    return by_operations(multiply, (None,), dy, w2, stored, *layer)
