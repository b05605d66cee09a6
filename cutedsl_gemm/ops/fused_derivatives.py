"""The derivatives of a product with an epilogue.

    acc = A · B    results = epilogue(acc, operands)
    dacc = derivative(epilogue)(acc, operands, gradients)    dA = dacc · Bᵀ    dB = Aᵀ · dacc

The forward pass also stores what the derivative needs of acc, if it needs any. It is a result like
others, so that derivatives have derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor
from torch._C._functorch import is_legacy_batchedtensor

from cutedsl_gemm.calls.fused import ACCUMULATOR, accumulator, composed
from cutedsl_gemm.calls.results import Results
from cutedsl_gemm.calls.signature import Options
from cutedsl_gemm.inputs.operands import Value, with_leading_ones
from cutedsl_gemm.inputs.request import parts_of
from cutedsl_gemm.inputs.tensors import aligned_copy, is_one
from cutedsl_gemm.inputs.transforms import dispatch_modes
from cutedsl_gemm.kernels.epilogue.derivative import Stored, derivative, recomputed, with_stored
from cutedsl_gemm.kernels.epilogue.evaluate import dimension, evaluate
from cutedsl_gemm.kernels.epilogue.expression import Epilogue
from cutedsl_gemm.ops.derivatives import (
    Multiply,
    Product,
    backward_options,
    mapped,
    product_like,
    tangent,
)

KnownBackward: TypeAlias = Callable[..., tuple[Tensor, ...]]  # see `request.Fixed`


def _wanted(values: Sequence[Value]) -> tuple[int, ...]:
    """The places of the operands whose derivatives are asked for."""
    tensors = ((i, each) for i, each in enumerate(values) if isinstance(each, Tensor))
    return tuple(i for i, each in tensors if each.requires_grad)


class FusedProduct(torch.autograd.Function):
    """The results of a product with an epilogue, with their backward derivatives."""

    @staticmethod
    def forward(
        ctx: Any,
        epilogue: Epilogue,
        known_backward: KnownBackward | None,
        multiply: Multiply,
        compute: Callable[..., Results],
        options: Options,
        a: Tensor,
        b: Tensor,
        *values: Value,
    ) -> Results:
        ctx.kept = with_stored(epilogue, _wanted(values))
        ctx.multiply, ctx.options, ctx.known_backward = multiply, options, known_backward
        given = named_values(epilogue, values)
        results = compute(a, b, ctx.kept.epilogue, given, None, options)
        save(ctx, a, b, values, results, ctx.needs_input_grad[6])
        return results

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        needs = ctx.needs_input_grad[5:]
        known = ctx.known_backward
        backward = Backward(ctx.kept, ctx.c, ctx.multiply, ctx.options, needs, known)
        return None, None, None, None, None, *backward(*saved(ctx), grads)


class Like(NamedTuple):
    """The shape of the accumulators, (M, N) or (L, M, N), and the dtype of A and B."""

    shape: tuple[int, ...]
    dtype: torch.dtype


def save(
    ctx: Any,
    a: Tensor,
    b: Tensor,
    values: Sequence[Value],
    results: Sequence[Tensor],
    needs_b: bool,
) -> None:
    """Keep in `ctx`, which has `kept`, what the backward pass needs. A frozen b needs no a."""
    ctx.set_materialize_grads(False)
    ctx.c = Like((*a.shape[:-1], b.shape[-1]), a.dtype)
    ctx.numbers = [None if isinstance(each, Tensor) else each for each in values]
    tensors = [each for each in values if isinstance(each, Tensor)]
    stored = [results[i] for i in ctx.kept.places]
    ctx.save_for_backward(a if needs_b else None, b, *tensors, *stored)


def saved(ctx: Any) -> tuple[Tensor | None, Tensor, list[Value], list[Tensor]]:
    """a or None, b, the operands, and the stored values that `save` kept."""
    a, b, *tensors = ctx.saved_tensors
    rest = iter(tensors)
    values = [next(rest) if number is None else number for number in ctx.numbers]
    return a, b, values, list(rest)


class Backward(NamedTuple):
    """The backward pass: (a, b, operands, stored values, gradients) → the gradients of a, b, …"""

    kept: Stored
    c: Like
    multiply: Multiply
    options: Options
    needs: Sequence[bool]  # of a, b, and the operands
    known_backward: KnownBackward | None = None

    def __call__(
        self,
        a: Tensor | None,
        b: Tensor,
        values: Sequence[Value],
        stored: Sequence[Tensor],
        grads: Sequence[Tensor | None],
    ) -> list[Tensor | None]:
        if all(grad is None for grad in grads):  # as of a function whose backward gives None
            return [None] * len(self.needs)
        count = self.kept.epilogue.accumulators
        wanted = [i for i, needed in enumerate(self.needs[2:]) if needed]
        known = [*values, *stored]
        found = leaf_gradients(self.kept, self.c.shape, wanted, known, grads, self.known_backward)
        of_values: list[Tensor | None] = [None] * len(values)
        for i, gradient in zip(wanted, found[count:], strict=True):
            of_values[i] = _summed(gradient, values[i])
        of_a, of_b = self.products(a, b, [each.to(self.c.dtype) for each in found[:count]])
        return [of_a, of_b, *of_values]

    def products(
        self, a: Tensor | None, b: Tensor, grads: list[Tensor]
    ) -> tuple[Tensor | None, Tensor | None]:
        """The gradients of a and b, given those of the accumulators, in the dtype of a."""
        needs_a = self.needs[0]
        options = backward_options(*self.options[1:])
        multiply = self.multiply
        as_needed = aligned_copy if options["kernel"] is not None else lambda matrix: matrix
        *_, k, n = b.shape
        if len(grads) == 1:
            grad, rows = grads[0], b.mT
        else:  # both parts in one product: side by side, as the rows of the weight are
            interleaved = b.stride(0) < b.stride(-1)
            rows = b.movedim((-1, 0), (-3, -2)) if interleaved else b.mT.movedim(0, -3)
            # flatten has no rule for batches of gradients
            rows = as_needed(rows.reshape(*rows.shape[:-3], 2 * n, k))
            beside = torch.stack(grads, -1) if interleaved else torch.cat(grads, -1)
            grad = beside.reshape(*self.c.shape[:-1], 2 * n)
        grad = as_needed(grad)
        of_a = multiply(grad, rows, **options) if needs_a else None
        if a is None:  # b needs no gradient
            return of_a, None
        if len(grads) == 1:
            return of_a, product_like(b, partial(multiply, **options), a.mT, grad)
        of_rows = multiply(grad.mT, a, **options)  # contiguous, as a weight (2N, K) is
        batch = of_rows.shape[:-2]
        if interleaved:
            return of_a, of_rows.view(*batch, n, 2, k).movedim((-2, -3), (0, -1))
        return of_a, of_rows.view(*batch, 2, n, k).movedim(-3, 0).mT


def leaf_gradients(
    kept: Stored,
    shape: Sequence[int],
    wanted: Sequence[int],
    known: Sequence[Value],
    grads: Sequence[Tensor | None],
    known_backward: KnownBackward | None = None,
) -> Sequence[Tensor]:
    """The gradients of the accumulators, and of the wanted operands before they are summed.

    `shape` is that of C; `known` are the operands and the stored values; `grads` belong to
    the results, and not all of them are None.
    """
    epilogue, numbers, _ = kept
    given = tuple(i for i, grad in enumerate(grads) if grad is not None)
    if known_backward is not None and given == (0,):
        of_accumulators = known_backward(grads[0], *known[len(epilogue.operands) :])
        return [*of_accumulators, *[of_accumulators[0]] * len(wanted)]
    # the derivative reads stored values, and of the accumulators no more than their shape
    like: Any = next(grad for grad in grads if grad is not None)
    accumulators = [like.new_empty((), dtype=torch.float32).expand(shape)]
    accumulators *= epilogue.accumulators
    matrices = [_broadcast(kept, i, grads[i], accumulators, known) for i in given]
    everything = [*known, *matrices]
    asked = derivative(epilogue, tuple(wanted), given, numbers)
    leaves = [asked.program[each.value] for each in asked.results]
    if all(leaf.operation == "operand" for leaf in leaves):  # as those of acc + bias
        return [everything[int(leaf.value or 0)].expand(shape) for leaf in leaves]
    return evaluate(asked, accumulators, everything)


def _broadcast(
    kept: Stored, i: int, grad: Tensor, accumulators: Sequence[Tensor], known: Sequence[Value]
) -> Tensor:
    """The gradient of result i as a tensor over C, of the value before it was reduced.

    An extremum's is divided among the elements that equal it, as in torch.
    """
    epilogue, numbers, _ = kept
    result = epilogue.results[i]
    if result.reduction is None:
        return grad
    over = dimension(result.over)
    grad = grad.unsqueeze(over)
    if result.reduction == "sum":
        return grad
    value = evaluate(recomputed(epilogue, (i,), numbers), accumulators, known)[0].detach()
    extremum = value.amax if result.reduction == "amax" else value.amin
    equal = value == extremum(over, keepdim=True)
    return grad * equal / equal.sum(over, keepdim=True)


def _summed(gradient: Tensor, operand: Any) -> Tensor:
    """The gradient of an operand: that of its value at each (m, n), summed over modes it lacks."""
    shape = with_leading_ones(operand.shape, gradient.ndim)
    over = [mode for mode, extent in enumerate(shape) if is_one(extent)]
    total = gradient.sum(over, dtype=torch.float32) if over else gradient
    return total.reshape(operand.shape).to(operand.dtype)


def named_values(epilogue: Epilogue, values: Sequence[Value]) -> dict[str, Value]:
    """The operands by name."""
    return {operand.name: each for operand, each in zip(epilogue.operands, values, strict=True)}


class Accumulator(Product):
    """A · B in fp32, with the derivatives of a product."""

    @staticmethod
    def forward(a: Tensor, b: Tensor, multiply: Multiply, *options: Any) -> Tensor:
        if dispatch_modes():
            from cutedsl_gemm.ops import fused_operator  # here: it imports this module

            return fused_operator.fused_product(a, b, ACCUMULATOR, {}, None, Options(*options))[0]
        return accumulator(a, b, Options(*options))

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None) -> tuple[Tensor | None, ...]:
        a, b = ctx.saved_tensors  # one of them, or both
        grad = None if grad is None else grad.to((b if a is None else a).dtype)
        return Product.backward(ctx, grad)

    @staticmethod
    def jvp(ctx: Any, a_tangent: Tensor | None, b_tangent: Tensor | None, *_: None) -> Tensor:
        return tangent(ctx, partial(_accumulator, multiply=ctx.multiply), a_tangent, b_tangent)

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], a: Tensor, b: Tensor, *options: Any
    ) -> tuple[Tensor, int]:
        return mapped(Accumulator.apply, info, in_dims, a, b, *options)


def _accumulator(a: Tensor, b: Tensor, multiply: Multiply, **options: Any) -> Tensor:
    if is_legacy_batchedtensor(a) or is_legacy_batchedtensor(b):  # a batch of tangents
        from cutedsl_gemm.ops import operator  # here: only traced calls need torch.library

        operator.check_by_torch(a, b, Options(**options))
        return a.float() @ b.float()
    made: Tensor = Accumulator.apply(a, b, multiply, *Options(**options))
    return made


def of_accumulators(
    epilogue: Epilogue,
    a: Tensor,
    b: Tensor,
    values: Sequence[Value],
    multiply: Multiply,
    options: Mapping[str, Any],
) -> Results:
    """The results, computed from the accumulators by functions that torch's transforms know."""
    accumulators = tuple(_accumulator(a, part, multiply, **options) for part in parts_of(a, b))
    return composed(epilogue, accumulators, values, a.dtype)
