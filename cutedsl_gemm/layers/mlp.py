"""mlp: two layers whose derivatives are epilogues, too.

    forward     z = x · w1ᵀ + b1    h = activation(z)            one product, results h and z
                y = h · w2ᵀ + b2                                 one product
    backward    dz = (dy · w2) · activation′(z)    db1 = Σ dz    one product, results dz and db1
                dx = dz · w1    dw1 = dzᵀ · x    dw2 = dyᵀ · h   one product each

docs/fused-mlp.md builds such a block step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeAlias

import torch
from torch import Tensor

from cutedsl_gemm.api import fused_product
from cutedsl_gemm.calls.results import Results
from cutedsl_gemm.inputs.operands import check_operand
from cutedsl_gemm.inputs.pairs import as_parts
from cutedsl_gemm.inputs.request import Fixed
from cutedsl_gemm.inputs.tensors import DENSE
from cutedsl_gemm.inputs.transforms import dispatch_modes, tracing, transformed
from cutedsl_gemm.inputs.views import rows_of
from cutedsl_gemm.kernels.epilogue.derivative import Stored, in_product, with_stored
from cutedsl_gemm.kernels.epilogue.expression import EpilogueOperand
from cutedsl_gemm.kernels.epilogue.traced import traced
from cutedsl_gemm.layers.activations import ACTIVATIONS, GATED, GATES, LINEAR
from cutedsl_gemm.layers.functions import (
    REFUSALS,
    addmm,
    autocast,
    check_weight,
    gated,
    linear,
)
from cutedsl_gemm.layers.linear_calls import SAVED_BY_GEMM
from cutedsl_gemm.ops.fused_derivatives import leaf_gradients
from layouts.errors import brief, did_you_mean

Linear: TypeAlias = Callable[..., Tensor]  # (x, weight, bias), as torch.nn.functional.linear


def mlp(
    x: Tensor,
    w1: Tensor,
    b1: Tensor | None,
    w2: Tensor,
    b2: Tensor | None,
    activation: str = "gelu",
) -> Tensor:
    """linear(linear(x, w1, b1, activation), w2, b2) of x (…, K), w1 (H, K) and w2 (N, H): (…, N).

    In the backward pass, one epilogue multiplies dy · w2 by the derivative of the activation, and
    sums the gradient of b1 (H,). `activation` is the name of one of `linear`'s, or "swiglu",
    "geglu" or "geglu_tanh": w1 is then (2H, K), with the gate first, and b1 is None. b2 is (N,), or
    None. Raises as `linear` does; ValueError for a function as `activation`, and for a b1 beside a
    gate.

    >>> x, w1, w2 = (torch.ones(shape).bfloat16() for shape in ((3, 16), (32, 16), (8, 32)))
    >>> mlp(x, w1, torch.full((32,), -12.0).bfloat16(), w2, None, "relu")[0]
    tensor([128., 128., 128., 128., 128., 128., 128., 128.], dtype=torch.bfloat16)
    """
    known = (*ACTIVATIONS, *GATES)
    if not isinstance(activation, str) or activation not in known:
        nearest = did_you_mean(activation, known) if isinstance(activation, str) else ""
        raise ValueError(
            f"activation is {brief(activation)}: it must be one of {', '.join(known)}{nearest}"
        )
    if activation in GATES and b1 is not None:
        raise ValueError(f"b1 must be None if activation is {activation!r}: a gate has no bias")
    try:
        tensors = autocast(x, w1, b1, w2, b2)
        if not _fuses(tensors) or not (_is_row(b1, w1) and _is_row(b2, w2)):
            return _composed(activation, *tensors)
        check_weight("w1", *tensors[:2])
        rows, w1, *rest = rows_of(tensors[0]), *tensors[1:]
        made: Tensor = Mlp.apply(linear, activation, True, rows, *rest, w1)[0]
        return made.view(*x.shape[:-1], made.shape[1])
    except REFUSALS:
        _check(activation in GATES, x, w1, b1, w2, b2)
        raise


def _check(
    gate: bool, x: Tensor, w1: Tensor, b1: Tensor | None, w2: Tensor, b2: Tensor | None
) -> None:
    """TypeError or ValueError for the first argument of `mlp` that does not fit those before it."""
    x, w1, b1, w2, b2 = autocast(x, w1, b1, w2, b2)
    check_weight("w1", x, w1, gate)
    rows, hidden = x.shape[:-1].numel(), w1.shape[0] // (2 if gate else 1)
    if b1 is not None:
        check_operand("b1", b1, (rows, hidden), x.device)
    h = x.new_empty(()).expand(rows, hidden)
    check_weight("w2", h, w2, of="the hidden layer")
    if b2 is not None:
        check_operand("b2", b2, (rows, w2.shape[0]), x.device)


def _fuses(tensors: tuple[Tensor | None, ...]) -> bool:
    """Whether plain tensors need gradients, and no other transform of torch's is active."""
    given = [each for each in tensors if isinstance(each, Tensor)]
    if tracing() or not torch.is_grad_enabled():
        return False
    if transformed() or any(type(each) not in DENSE or each.is_meta for each in given):
        return False  # torch divides one product of DTensors at a time
    return any(each.requires_grad for each in given)


def _is_row(bias: Tensor | None, weight: Tensor) -> bool:
    """Whether the gradient of a bias is a sum over M; it is another where a bias is (M, 1)."""
    if isinstance(bias, Tensor):
        return tuple((1, *bias.shape)[-2:]) == (1, len(weight))
    return bias is None


def _composed(
    activation: str, x: Tensor, w1: Tensor, b1: Tensor | None, w2: Tensor, b2: Tensor | None
) -> Tensor:
    if activation in GATES:
        return linear(gated(x, w1, activation), w2, b2)
    return linear(linear(x, w1, b1, activation), w2, b2)


class Mlp(torch.autograd.Function):
    """Both layers, of a matrix x: y, and the results of the first layer (`stored_layer`).

    Second derivatives pass through the latter. `linear` computes the products that have no
    epilogue. w1 is one weight; or those of gate and value, in the order that `gate_first` says.
    What is saved has this order, whatever the addresses: a checkpoint may save it again with the
    weights elsewhere.
    """

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
        order = memory_order(w1)
        # The b of two weights holds their addresses: constants of a graph that a mode may make.
        b = None if len(w1) == 2 and dispatch_modes() else first_b(activation, w1[::order])
        if b is None:
            h, *others = first_products(linear, x, w1, b1, activation, gate_first)
        else:
            layer = stored_layer(activation, gate_first == (order == 1), b1 is not None)
            given = {} if b1 is None else {"bias": b1}
            h, *others = fused_product(x, b, layer.epilogue, given)
            others = others[::order]
        keep(ctx, (linear, activation, gate_first), x, b1, w2, b2, w1, (h, *others))
        return linear(h, w2, b2), h, *others

    @staticmethod
    def backward(ctx: Any, dy: Tensor | None, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        needs_x, needs_b1, needs_w2, needs_b2, *needs_w1 = ctx.needs_input_grad[3:]
        x, w2, w1, results = kept(ctx)
        linear, activation, gate_first = ctx.layer
        layer = of_derivative(results), activation, gate_first, needs_b1
        of_x = of_b1 = of_w2 = of_b2 = None
        of_w1: list[Tensor | None] = [None] * len(w1)
        if ctx.needs_first and any(grad is not None for grad in (dy, *grads)):
            if dy is None or differentiated_again(grads):
                dz, *sums = by_operations(linear, grads, dy, w2, *layer)
            else:
                dz, *sums = hidden_gradient(dy, w2, *layer)
            of_x = input_gradient(linear, dz, w1) if needs_x else None
            of_b1 = _as_bias(sums[0], *ctx.biases[0]) if needs_b1 else None
            if any(needs_w1):
                whole = linear(dz.mT, x.mT)  # (H, K), or of both parts (2H, K)
                parts = zip(whole.chunk(len(w1)), needs_w1, strict=True)
                of_w1 = [part if needed else None for part, needed in parts]
        if dy is not None:
            of_w2 = linear(dy.mT, results[0].mT) if needs_w2 else None
            of_b2 = _as_bias(dy.sum(0, dtype=torch.float32), *ctx.biases[1]) if needs_b2 else None
        return None, None, None, of_x, of_b1, of_w2, of_b2, *of_w1


def keep(
    ctx: Any,
    layer: tuple[Linear, str, bool],
    x: Tensor,
    b1: Tensor | None,
    w2: Tensor,
    b2: Tensor | None,
    w1: Sequence[Tensor],
    results: Sequence[Tensor],
) -> None:
    """Keep in `ctx` what the gradients need of an `Mlp`: those of frozen weights need no x."""
    needs_x, needs_b1, needs_w2, _, *needs_w1 = ctx.needs_input_grad[3:]
    needs_first = needs_x or needs_b1 or any(needs_w1)  # else the results depend on nothing
    if not needs_first:
        ctx.mark_non_differentiable(*results)
    ctx.set_materialize_grads(False)
    ctx.layer, ctx.needs_first, ctx.count = layer, needs_first, len(w1)
    ctx.biases = [None if each is None else (each.shape, each.dtype) for each in (b1, b2)]
    h, *others = results
    ctx.save_for_backward(
        SAVED_BY_GEMM,
        x if any(needs_w1) else None,
        w2 if needs_first else None,
        *(each if needs_x else None for each in w1),
        h if needs_w2 or (needs_first and not others) else None,
        *(each if needs_first else None for each in others),
    )


def kept(ctx: Any) -> tuple[Any, Any, Sequence[Any], Sequence[Any]]:
    """x, w2, w1, and the results of the first layer; None for what `keep` left out."""
    _, x, w2, *rest = ctx.saved_tensors
    return x, w2, rest[: ctx.count], rest[ctx.count :]


def differentiated_again(grads: Sequence[Tensor | None]) -> bool:
    """Whether a backward pass of `Mlp` is recorded by autograd, or belongs to a second derivative.

    `by_operations` then computes the gradient of the first layer. `grads` are those of the layer's
    results: only second derivatives have any.
    """
    return torch.is_grad_enabled() or any(grad is not None for grad in grads)


def _as_bias(gradient: Tensor, shape: torch.Size, dtype: torch.dtype) -> Tensor:
    """The gradient of a bias, a sum over M, as that of a bias (N,) or (1, N)."""
    return gradient.to(dtype).view(shape)


def memory_order(w1: Sequence[Tensor]) -> int:
    """1 if one weight, or two, are in the order of their addresses, else -1.

    As a step of a slice, it puts what belongs to them in this order, or back.
    """
    return 1 if w1[0].data_ptr() <= w1[-1].data_ptr() else -1


def first_layer(activation: str, gate_first: bool, bias: bool) -> Fixed:
    """The epilogue of the first layer; `gate_first` in memory."""
    if activation in GATES:
        return GATES[activation][0 if gate_first else 1]
    return LINEAR[activation][int(bias)]


@cache
def stored_layer(activation: str, gate_first: bool, bias: bool) -> Stored:
    """The epilogue of the first layer, with what its derivative needs among its results."""
    operands = (EpilogueOperand("bias", ("N",)),) if bias else ()
    function = first_layer(activation, gate_first, bias).function
    epilogue = traced(function, operands, 2 if activation in GATES else 1)
    return with_stored(epilogue, (0,) if bias else ())


def of_derivative(results: Sequence[Any]) -> Sequence[Any]:
    """The results of `stored_layer` that its derivative reads: all but the hidden layer.

    If that is all there is, as for relu, tanh and sigmoid, the derivative reads it.
    """
    return results[1:] or results


def first_b(activation: str, w1: Sequence[Tensor]) -> Tensor | None:
    """The b of the first layer: (K, H), or (2, K, H) if it has a gate.

    w1 is in the order of addresses. None for two weights that are no parts of one tensor.
    """
    if activation not in GATES:
        return w1[0].mT
    if len(w1) == 1:
        return w1[0].view(2, w1[0].shape[0] // 2, w1[0].shape[1]).mT
    parts = as_parts(*w1)
    return None if parts is None else parts.mT


def first_products(
    linear: Linear,
    x: Tensor,
    w1: Sequence[Tensor],
    b1: Tensor | None,
    activation: str,
    gate_first: bool,
) -> list[Tensor]:
    """The results of `stored_layer`, in the order of w1: a kernel for each weight.

    w1 is one weight; or gate and up, as two weights, or in one, whose product is divided.
    """
    products = [linear(x, each, b1) for each in w1]
    if activation not in GATES:
        count = len(stored_layer(activation, gate_first, b1 is not None).epilogue.results)
        return [ACTIVATIONS[activation](products[0]), *products][:count]
    first, second = products if len(w1) == 2 else products[0].chunk(2, dim=1)
    gate, up = (first, second) if gate_first else (second, first)
    return [ACTIVATIONS[GATED[activation]](gate) * up, first, second]


def hidden_gradient(
    dy: Tensor,
    w2: Tensor,
    stored: Sequence[Tensor],
    activation: str,
    gate_first: bool,
    needs_b1: bool,
) -> Results:
    """dz, the gradient of the sums of the first layer: (M, H), or (M, 2H) with a gate.

    Then, if it is needed, the gradient of b1, a sum over M. One product, dy · w2, gives both.
    `stored` is what the layer stored, in the order of w1, with b1 added if there is one: without
    the gradient of b1, the derivative is that of a layer without b1.
    """
    kept = stored_layer(activation, gate_first, needs_b1)
    epilogue = in_product(kept, (0,) if needs_b1 else ())
    known = {f"value {n}": each for n, each in zip(kept.numbers, stored, strict=True)}
    given = {operand.name: known[operand.name] for operand in epilogue.operands}
    if activation not in GATES:
        return fused_product(dy, w2, epilogue, given)
    dz = dy.new_empty(dy.shape[0], 2 * w2.shape[1])  # side by side, as the rows of w1 are
    fused_product(dy, w2, epilogue, given, dz.chunk(2, dim=1))
    return (dz,)


def by_operations(
    linear: Linear,
    grads: Sequence[Tensor | None],
    dy: Tensor | None,
    w2: Tensor,
    stored: Sequence[Tensor],
    activation: str,
    gate_first: bool,
    needs_b1: bool,
) -> Results:
    """As `hidden_gradient`, by operations that have derivatives.

    `grads` are the gradients of the first layer's results, which a derivative may have read.
    """
    of_h, *others = grads
    if dy is not None:
        through_y = linear(dy, w2.mT)
        of_h = through_y if of_h is None else of_h + through_y
    kept = stored_layer(activation, gate_first, needs_b1)
    known_backward = first_layer(activation, gate_first, needs_b1).backward
    known = [0.0] * needs_b1 + [*stored]  # no derivative reads the bias
    parts = leaf_gradients(kept, stored[0].shape, (), known, (of_h, *others), known_backward)
    dz = torch.cat([each.to(stored[0].dtype) for each in parts], dim=1)
    return (dz, dz.sum(0, dtype=torch.float32)) if needs_b1 else (dz,)


def input_gradient(linear: Linear, dz: Tensor, w1: Sequence[Tensor]) -> Tensor:
    """The gradient of x: a product with one weight, or with two."""
    if len(w1) == 1:
        return linear(dz, w1[0].mT)
    first, second = dz.chunk(2, dim=1)
    return addmm(linear(first, w1[0].mT), second, w1[1])
