"""A gated MLP by gemm where the choice expects that to be faster: two kernels in place of five.

    h = activation(x · gateᵀ) * (x · upᵀ)    one product of two accumulators
    y = h · downᵀ + bias

The weights of gate and up are two tensors, or one of both. See `pairs` for how one kernel reads
two, and `two_layers` for the gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch._C._functorch import peek_interpreter_stack
from torch.autograd import forward_ad
from torch.compiler import is_dynamo_compiling
from torch.nn import functional as F

from cutedsl_gemm.activations import ACTIVATIONS, GATED, GATES
from cutedsl_gemm.call import REMEMBERED
from cutedsl_gemm.faster import autocast, linear, on_hopper, suits
from cutedsl_gemm.fused import bound, compute
from cutedsl_gemm.kernels.epilogue.derivative import with_stored
from cutedsl_gemm.pairs import as_parts
from cutedsl_gemm.problem import MAX_EXTENT
from cutedsl_gemm.select.preference import beats_torch
from cutedsl_gemm.signature import DEFAULTS
from cutedsl_gemm.tensors import DENSE
from cutedsl_gemm.two_layers import Mlp, first_layer


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
    first or last; w2 (N, H), b2 (N,). torch computes what `faster.by_gemm` leaves to it; and two
    weights that no kernel reads as one tensor.
    """
    tensors = x, w2, b2, *w1
    if torch._C._is_any_autocast_enabled():
        cast = autocast(*tensors)
        if cast is None:
            return None
        tensors = cast
    given = [each for each in tensors if each is not None]
    if is_dynamo_compiling():
        return _traced(activation, gate_first, *tensors) if _suit(*tensors) else None
    if any(type(each) not in DENSE for each in given) or torch._C._len_torch_dispatch_stack():
        return None
    if forward_ad._current_level >= 0 or peek_interpreter_stack() is not None:
        return None
    if not _suit(*tensors):
        return None
    x, w2, b2, *w1 = tensors
    rows = x.reshape(-1, x.shape[-1])
    found = _in_order(rows, w1, gate_first)
    if found is None:
        return None
    gate_first, w1 = found
    if torch.is_grad_enabled() and True in [each.requires_grad for each in given]:
        made: Tensor = Mlp.apply(linear, activation, gate_first, rows, None, w2, b2, *w1)
    else:
        layer, b = first_layer(activation, gate_first, False, w1)
        (h,) = compute(rows, b, layer, {})
        made = linear(h, w2, b2)
    return made.view(*x.shape[:-1], made.shape[1])


def _suit(x: Tensor, w2: Tensor, b2: Tensor | None, *w1: Tensor) -> bool:
    """Whether gemm has kernels for tensors like these; their shapes may be symbolic."""
    columns = sum(each.shape[0] for each in w1)  # of gate and up
    if columns % 2 or not all(suits(x, each, None) for each in w1):
        return False
    return suits(x.new_empty(()).expand(1, columns // 2), w2, b2)


def _in_order(
    x: Tensor, w1: Sequence[Tensor], gate_first: bool
) -> tuple[bool, Sequence[Tensor]] | None:
    """The weights in the order of their addresses; None if torch is to multiply x (M, K) by them.

    And whether the gate is the first of them.
    """
    if not all(each.data_ptr() for each in (x, *w1)):
        return None  # without memory, or empty
    columns = sum(each.shape[0] for each in w1)
    if not _wins(*x.shape, columns, x.device):
        return None
    if len(w1) == 1:
        return gate_first, w1
    if w1[0].data_ptr() > w1[1].data_ptr():
        w1, gate_first = w1[::-1], not gate_first
    return None if as_parts(*w1) is None else (gate_first, w1)


@lru_cache(REMEMBERED)
def _wins(m: int, k: int, columns: int, device: torch.device) -> bool:
    if m * columns * k == 0 or max(m, columns, k) > MAX_EXTENT:
        return False
    return on_hopper(device) and beats_torch(m, columns, k)


def _traced(
    activation: str,
    gate_first: bool,
    x: Tensor,
    w2: Tensor,
    b2: Tensor | None,
    *w1: Tensor,
) -> Tensor:
    """The MLP of two operators, which decide when they run: shapes may be symbolic till then."""
    kept = torch.is_grad_enabled() and True in [each.requires_grad for each in (x, *w1)]
    rows = x.reshape(-1, x.shape[-1])
    h, *_ = _operator(rows, list(w1), activation, gate_first, kept)
    made = linear(h, w2, b2)
    return made.view(*x.shape[:-1], made.shape[1])


@torch.library.custom_op("cutedsl_gemm::gated", mutates_args=())
def _operator(
    x: Tensor, w1: Sequence[Tensor], activation: str, gate_first: bool, kept: bool
) -> list[Tensor]:
    """h (M, H); and, if `kept`, the products of x with gate and up, which its derivative needs."""
    found = _in_order(x, w1, gate_first)
    if found is None:
        halves = _halves([F.linear(x, each) for each in w1])
        gate, up = halves if gate_first else halves[::-1]
        return [ACTIVATIONS[GATED[activation]](gate) * up, *_whole(halves if kept else ())]
    layer, b = first_layer(activation, found[0], False, found[1])
    epilogue = bound(x, b, layer, {}, DEFAULTS)
    h, *stored = compute(x, b, with_stored(epilogue).epilogue if kept else epilogue, {})
    return [h, *(stored if found[0] == gate_first else stored[::-1])]


def _halves(tensors: Sequence[Tensor]) -> Sequence[Tensor]:
    """Two tensors, or both halves of the columns of one."""
    return tensors if len(tensors) == 2 else tensors[0].chunk(2, dim=1)


def _whole(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The tensors, none of which is a view: an operator returns memory of its own."""
    return [each.contiguous() for each in tensors]


@_operator.register_fake
def _fake(
    x: Tensor, w1: Sequence[Tensor], activation: str, gate_first: bool, kept: bool
) -> list[Tensor]:
    columns = sum(each.shape[0] for each in w1) // 2
    return [x.new_empty(x.shape[0], columns) for _ in range(3 if kept else 1)]


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: Sequence[Tensor]) -> None:
    x, w1, ctx.activation, ctx.gate_first, kept = inputs
    if not kept:
        raise ValueError("kept is False: the derivative needs the products of gate and up")
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(x, *output[1:], *w1)


def _backward(ctx: Any, grads: Sequence[Tensor | None]) -> tuple[Any, ...]:
    x, first, second, *w1 = ctx.saved_tensors
    grad, *others = grads
    slopes: Any = GATES[ctx.activation][0 if ctx.gate_first else 1].slopes
    of_z = slopes(torch.zeros_like(first) if grad is None else grad, first, second)
    of_z = [z if o is None else z + o for z, o in zip(of_z, others, strict=True)]
    if len(w1) == 1:
        of_z = [torch.cat(of_z, dim=1)]
    needs_x, needs_w1, *_ = ctx.needs_input_grad
    terms = [linear(dz, w.mT) for dz, w in zip(of_z, w1, strict=True)] if needs_x else []
    of_w1 = [linear(dz.mT, x.mT) if n else None for dz, n in zip(of_z, needs_w1, strict=True)]
    return sum(terms[1:], terms[0]) if terms else None, of_w1, None, None, None


_operator.register_autograd(_backward, setup_context=_setup_context)
