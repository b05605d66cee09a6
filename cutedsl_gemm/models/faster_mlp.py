"""A gated MLP on gemm where the model expects that to be faster: two kernels instead of five.

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
from cutedsl_gemm.inputs.pairs import as_parts, in_reach, parts_at
from cutedsl_gemm.inputs.problem import MAX_EXTENT, WIDEST_ALIGNMENT
from cutedsl_gemm.inputs.remember import remember
from cutedsl_gemm.inputs.tensors import DENSE, is_sharded
from cutedsl_gemm.inputs.transforms import dispatch_modes, exporting, transformed
from cutedsl_gemm.inputs.views import flattener, reshaper, rows_of, unflattened
from cutedsl_gemm.kernels.epilogue.derivative import with_stored
from cutedsl_gemm.kernels.epilogue.expression import Epilogue
from cutedsl_gemm.layers.activations import GATES
from cutedsl_gemm.layers.mlp import Mlp, gated_products, hidden_gradient, input_gradient
from cutedsl_gemm.models.faster import autocast, linear, multiply, on_hopper, suits
from cutedsl_gemm.ops.library import operator
from cutedsl_gemm.select.preference import beats_torch


def gated_mlp(
    x: Tensor,
    activation: str,
    w1: Sequence[Tensor],
    gate_first: bool,
    w2: Tensor,
    b2: Tensor | None,
) -> Tensor | None:
    """x (…, K) through a gated MLP: (…, N); None if torch is to compute it.

    `activation` is a name in GATES; w1 is gate (H, K) and up (H, K), or both (2H, K), the gate
    first or last; w2 (N, H), b2 (N,). None where `faster.by_gemm` gives None, and for two weights
    that one kernel cannot read as one tensor.
    """
    tensors = x, w2, b2, *w1
    if torch._C._is_any_autocast_enabled():
        cast = autocast(*tensors)
        if cast is None:
            return None
        tensors = cast
    if transformed():
        return None
    given = [each for each in tensors if each is not None]
    if is_dynamo_compiling():
        # torch divides one product at a time, and an exported graph keeps no autograd.Function
        traced = _suit(*tensors) and not is_sharded(*given) and not exporting()
        return _traced(activation, gate_first, *tensors) if traced else None
    if any(type(each) not in DENSE for each in given) or torch._C._is_tracing():
        return None
    x, w2, b2, *w1 = tensors
    if x.ndim == 0 or w2.is_neg() or (b2 is not None and b2.shape != w2.shape[:1]):
        return None
    seen = dispatch_modes()
    product = _is_faster(x, w1) if seen else _product(x, w1, activation, gate_first)
    if torch.is_grad_enabled() and True in [each.requires_grad for each in given]:
        if product is BY_TORCH:
            return None
        options = linear, activation, gate_first
        return unflattened(Mlp.apply(*options, rows_of(x), None, w2, b2, *w1), x)
    if isinstance(product, bool):
        return None
    (h,) = product.call.run(product.call.as_matrix(x), product.b, {}, None)
    y = multiply(h, w2, b2)
    if x.ndim == 2 or not y.is_contiguous():  # torch's product with a sparse w2 is column-major
        return unflattened(y, x)
    return reshaper((*x.shape[:-1], y.shape[1]))(y)


def _suit(x: Tensor, w2: Tensor, b2: Tensor | None, *w1: Tensor) -> bool:
    """Whether gemm has kernels for tensors like these; their shapes may be symbolic."""
    hidden = x.new_empty(()).expand(1, 1, _columns(w1) // 2)  # of 3 modes: b2 is a row
    return _fit(x, w1) and suits(hidden, w2, b2)


def _fit(x: Tensor, w1: Sequence[Tensor]) -> bool:
    """Whether x can be multiplied by gate and up; shapes may be symbolic."""
    return _columns(w1) % 2 == 0 and all(suits(x, each, None) for each in w1)


def _columns(w1: Sequence[Tensor]) -> int:
    """The columns of gate and up."""
    return sum(each.shape[0] for each in w1)


def _is_faster(x: Tensor, w1: Sequence[Tensor]) -> bool:
    """Whether gemm is expected to be faster at these shapes, wherever in memory the tensors are.

    A checkpoint computes an MLP again, perhaps with its weights elsewhere, and must save the same.
    """
    if not _fit(x, w1) or any(each.is_neg() for each in (x, *w1)):  # gemm refuses negative views
        return False
    m, columns, k = prod(x.shape[:-1]), _columns(w1), x.shape[-1]
    # A remembered call has the strides of its first tensors, which may differ at an extent of 1.
    if w1[0].shape != w1[-1].shape or 1 in (columns // 2, k):
        return False
    if m * columns * k == 0 or max(m, columns, k) > MAX_EXTENT or not on_hopper(x.device):
        return False
    return beats_torch(m, columns, k)


class _Call(NamedTuple):
    """What multiplies x by gate and up, for tensors of one signature, wherever the weights are."""

    epilogue: Epilogue
    as_matrix: Callable[[Tensor], Tensor]  # x (…, K) → (M, K)
    run: Callable[..., Results]
    part: tuple[Any, ...]  # the device, dtype, shape and strides of gateᵀ, and of upᵀ


class _Product(NamedTuple):
    """A call, and the weights that it reads."""

    call: _Call
    b: Tensor  # (2, K, H), without memory of its own
    order: int  # of the weights, as in `layers.mlp.memory_order`


# In place of a product of both weights: torch computes it, or gemm does so one weight at a time.
BY_TORCH, ONE_BY_ONE = False, True

_calls: dict[Any, _Call | bool] = {}


def _product(x: Tensor, w1: Sequence[Tensor], activation: str, gate_first: bool) -> _Product | bool:
    """What multiplies x (…, K) by both weights at once; else BY_TORCH or ONE_BY_ONE."""
    try:
        signature = tuple([_signature(each) for each in (x, *w1)])
        start, first = w1[0].data_ptr(), w1[0]
        if len(w1) == 2:
            distance = w1[1].data_ptr() - start
        else:
            distance = first.shape[0] // 2 * first.stride(0) * first.element_size()
    except RuntimeError:  # sparse or nested
        return BY_TORCH
    if not in_reach(abs(distance)):
        return _is_faster(x, w1)
    order = 1 if distance > 0 else -1
    gate_first = gate_first == (order == 1)
    try:
        known = _calls[activation, gate_first, signature]
    except TypeError:  # of symbolic shape
        return BY_TORCH
    except KeyError:
        made = _make(x, w1, activation, gate_first)
        known = remember(_calls, (activation, gate_first, signature), made)
    if isinstance(known, bool):
        return known
    b = parts_at(min(start, start + distance), abs(distance), *known.part)
    return _Product(known, b, order)


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


def _make(x: Tensor, w1: Sequence[Tensor], activation: str, gate_first: bool) -> _Call | bool:
    """What `_product` remembers of tensors of a signature; `gate_first` in memory."""
    if not _is_faster(x, w1):
        return BY_TORCH
    halves = [each.detach() for each in w1] if len(w1) == 2 else [*w1[0].detach().chunk(2)]
    halves.sort(key=Tensor.data_ptr)
    parts = as_parts(*halves)
    if parts is None:
        return ONE_BY_ONE
    layer, b = GATES[activation][0 if gate_first else 1], parts.mT
    found = fused(rows_of(x.detach()), b, layer, {})
    part = x.device, x.dtype, b.shape[1:], b.stride()[1:]
    return _Call(found.epilogue, flattener(x), found.run, part)


def _traced(
    activation: str,
    gate_first: bool,
    x: Tensor,
    w2: Tensor,
    b2: Tensor | None,
    *w1: Tensor,
) -> Tensor:
    """The MLP as one operator, which decides at run time: shapes may be symbolic until then."""
    rows = rows_of(x)
    given = [x, w2, *w1] if b2 is None else [x, w2, b2, *w1]
    if torch.is_grad_enabled() and any(each.requires_grad for each in given):
        made: Tensor = _Traced.apply(activation, gate_first, rows, w2, b2, *w1)
    else:
        (made,) = _operator(rows, list(w1), w2, b2, activation, gate_first, False)
    return made.view(*x.shape[:-1], made.shape[1])


def _fake(
    x: Tensor,
    w1: Sequence[Tensor],
    w2: Tensor,
    b2: Tensor | None,
    activation: str,
    gate_first: bool,
    kept: bool,
) -> list[Tensor]:
    hidden = [x.new_empty(x.shape[0], w2.shape[1]) for _ in range(3 if kept else 0)]
    return [x.new_empty(x.shape[0], w2.shape[0]), *hidden]


@operator("gated_mlp", _fake)
def _operator(
    x: Tensor,
    w1: Sequence[Tensor],
    w2: Tensor,
    b2: Tensor | None,
    activation: str,
    gate_first: bool,
    kept: bool,
) -> list[Tensor]:
    """y (M, N); and, if `kept`, what the derivative needs: h, and x · w1ᵀ of both halves."""
    product, stored = _product(x, w1, activation, gate_first), []
    if isinstance(product, bool):
        h, *halves = gated_products(multiply, x, w1, activation, gate_first)
        if kept:  # outputs never share memory
            stored = [each.clone(memory_format=torch.contiguous_format) for each in halves]
    elif kept:
        h, *stored = compute(x, product.b, with_stored(product.call.epilogue).epilogue, {})
        stored = stored[:: product.order]
    else:
        (h,) = product.call.run(x, product.b, {}, None)
    y = multiply(h, w2, b2)
    return [y, h, *stored] if kept else [y]


class _Traced(torch.autograd.Function):
    """The operator, of a matrix x, with its backward derivatives: another operator."""

    @staticmethod
    def forward(
        ctx: Any,
        activation: str,
        gate_first: bool,
        x: Tensor,
        w2: Tensor,
        b2: Tensor | None,
        *w1: Tensor,
    ) -> Tensor:
        y, *kept = _operator(x, list(w1), w2, b2, activation, gate_first, True)
        ctx.save_for_backward(x, w2, *kept, *w1)
        ctx.layer = activation, gate_first
        made: Tensor = y
        return made

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        x, w2, h, first, second, *w1 = ctx.saved_tensors
        needs_x, needs_w2, needs_b2, *needs_w1 = ctx.needs_input_grad[2:]
        needs = [needs_x, any(needs_w1), needs_w2]
        given = dy, x, w1, w2, [h, first, second], *ctx.layer, needs
        of_x, of_w1, of_w2 = _backward(*given)
        parts = of_w1.chunk(len(w1))
        return (
            None,  # activation
            None,  # gate_first
            of_x if needs_x else None,
            of_w2 if needs_w2 else None,
            dy.sum(0, dtype=torch.float32).to(dy.dtype) if needs_b2 else None,
            *(part if n else None for part, n in zip(parts, needs_w1, strict=True)),
        )


def _fake_backward(
    dy: Tensor,
    x: Tensor,
    w1: Sequence[Tensor],
    w2: Tensor,
    kept: Sequence[Tensor],
    activation: str,
    gate_first: bool,
    needs: Sequence[bool],
) -> list[Tensor]:
    shapes = x.shape, (2 * w2.shape[1], x.shape[1]), w2.shape
    return [x.new_empty(shape if n else 0) for shape, n in zip(shapes, needs, strict=True)]


@operator("gated_mlp_backward", _fake_backward)
def _backward(
    dy: Tensor,
    x: Tensor,
    w1: Sequence[Tensor],
    w2: Tensor,
    kept: Sequence[Tensor],
    activation: str,
    gate_first: bool,
    needs: Sequence[bool],
) -> list[Tensor]:
    """The gradients of x, w1 (2H, K) and w2; those that are not needed are empty."""
    needs_x, needs_w1, needs_w2 = needs
    h, *stored = kept
    needs_dz = needs_x or needs_w1
    dz = dy.new_empty(dy.shape[0], 2 * w2.shape[1] if needs_dz else 0)  # of both halves
    if needs_dz:
        product, halves = _product(x, w1, activation, gate_first), dz.chunk(2, dim=1)
        if isinstance(product, bool):
            backward: Any = GATES[activation][0 if gate_first else 1].backward
            torch.cat(backward(multiply(dy, w2.mT), *stored), dim=1, out=dz)
        else:
            kept_sums, out = stored[:: product.order], halves[:: product.order]
            hidden_gradient(with_stored(product.call.epilogue), dy, w2, kept_sums, out=out)
    return [
        input_gradient(multiply, dz, w1) if needs_x else x.new_empty(0),
        multiply(dz.mT, x.mT) if needs_w1 else x.new_empty(0),
        multiply(dy.mT, h.mT) if needs_w2 else x.new_empty(0),
    ]
