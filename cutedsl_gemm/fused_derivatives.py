"""The derivatives of a product with an epilogue.

    acc = A · B    results = epilogue(acc, operands)
    dacc = derivative(epilogue)(acc, operands, gradients)    dA = dacc · Bᵀ    dB = Aᵀ · dacc

The forward pass also stores acc, unless the epilogue is linear in it. The stored acc is a result
like others, so that derivatives have derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

from cutedsl_gemm.derivatives import backward_options
from cutedsl_gemm.fused import Options, composed, fused
from cutedsl_gemm.kernels.epilogue.derivative import derivative, with_accumulators
from cutedsl_gemm.kernels.epilogue.evaluate import evaluate
from cutedsl_gemm.kernels.epilogue.expression import Epilogue
from cutedsl_gemm.operands import Value
from cutedsl_gemm.request import parts_of
from cutedsl_gemm.results import Results
from cutedsl_gemm.tensors import aligned_copy

Multiply: TypeAlias = Callable[..., Tensor]  # (a, b, kernel=, …), as gemm


class Kept(NamedTuple):
    """An epilogue that stores what its derivative needs."""

    epilogue: Epilogue
    accumulators: tuple[int, ...]  # places among its results; none if they are not needed


def kept(epilogue: Epilogue, wanted: tuple[int, ...]) -> Kept:
    """The epilogue to run, if the derivatives of the operands at these places may be asked for."""
    return Kept(*with_accumulators(epilogue, wanted))


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
        multiply: Multiply,
        options: Options,
        a: Tensor,
        b: Tensor,
        *values: Value,
    ) -> Results:
        ctx.kept = kept(epilogue, _wanted(values))
        ctx.multiply, ctx.options = multiply, options
        given = named_values(epilogue, values)
        results = fused(a, b, ctx.kept.epilogue, given, None, options).run(a, b, given, None)
        save(ctx, a, b, values, results)
        return results

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        a, b, values, accumulators = saved(ctx)
        needs = ctx.needs_input_grad[3:]
        asked = Backward(ctx.kept.epilogue, ctx.multiply, ctx.options, needs)
        return None, None, None, *asked(a, b, values, accumulators, grads)


def save(
    ctx: Any, a: Tensor, b: Tensor, values: Sequence[Value], results: Sequence[Tensor]
) -> None:
    """Keep in `ctx`, which has `kept`, what the backward pass needs."""
    ctx.set_materialize_grads(False)
    ctx.numbers = [None if isinstance(each, Tensor) else each for each in values]
    tensors = [each for each in values if isinstance(each, Tensor)]
    accumulators = [results[i] for i in ctx.kept.accumulators]
    ctx.save_for_backward(a, b, *tensors, *accumulators)


def saved(ctx: Any) -> tuple[Tensor, Tensor, list[Value], list[Tensor]]:
    """a, b, the operands, and the accumulators that `save` kept."""
    a, b, *tensors = ctx.saved_tensors
    rest = iter(tensors)
    values = [next(rest) if number is None else number for number in ctx.numbers]
    return a, b, values, list(rest)


class Backward(NamedTuple):
    """The backward pass: (a, b, operands, accumulators, gradients) → the gradients of a, b, …"""

    epilogue: Epilogue
    multiply: Multiply
    options: Options
    needs: Sequence[bool]  # of a, b, and the operands

    def __call__(
        self,
        a: Tensor,
        b: Tensor,
        values: Sequence[Value],
        accumulators: Sequence[Tensor],
        grads: Sequence[Tensor | None],
    ) -> list[Tensor | None]:
        needs_values = self.needs[2:]
        shape = a.shape[0], b.shape[-1]
        if not accumulators:  # the derivative does not depend on them
            nothing = a.new_empty((), dtype=torch.float32).expand(shape)
            accumulators = [nothing] * self.epilogue.accumulators
        given = tuple(i for i, grad in enumerate(grads) if grad is not None)
        wanted = tuple(i for i, needed in enumerate(needs_values) if needed)
        slopes = derivative(self.epilogue, wanted, given)
        matrices = [self.broadcast(i, grads[i], accumulators, values) for i in given]
        found = evaluate(slopes, accumulators, [*values, *matrices])
        count = self.epilogue.accumulators
        of_values: list[Tensor | None] = [None] * len(values)
        for i, slope in zip(wanted, found[count:], strict=True):
            operand: Any = values[i]
            of_values[i] = slope.sum_to_size(operand.shape).to(operand.dtype)
        of_a, of_b = self.products(a, b, [each.to(a.dtype) for each in found[:count]])
        return [of_a, of_b, *of_values]

    def broadcast(
        self, i: int, grad: Tensor, accumulators: Sequence[Tensor], values: Sequence[Value]
    ) -> Tensor:
        """The gradient of result i as a tensor over C, of the value before it was reduced.

        That of an extremum is shared by the elements that equal it, as torch shares it.
        """
        result = self.epilogue.results[i]
        if result.reduction is None:
            return grad
        over = 0 if result.over == "M" else 1
        grad = grad.unsqueeze(over)
        if result.reduction == "sum":
            return grad
        value = evaluate(self.epilogue, accumulators, values)[i].detach()
        extremum = value.amax if result.reduction == "amax" else value.amin
        equal = value == extremum(over, keepdim=True)
        return grad * equal / equal.sum(over, keepdim=True)

    def products(
        self, a: Tensor, b: Tensor, slopes: list[Tensor]
    ) -> tuple[Tensor | None, Tensor | None]:
        """The gradients of a and b, given those of the accumulators, in the dtype of a."""
        needs_a, needs_b, *_ = self.needs
        options = backward_options(*self.options[1:])
        multiply = self.multiply
        if len(slopes) == 1:
            slope, rows = slopes[0], b.mT
        else:  # both parts in one product: side by side, as the rows of the weight are
            interleaved = b.stride(0) < b.stride(2)
            rows = (b.permute(2, 0, 1) if interleaved else b.mT).flatten(0, 1)
            slope = torch.stack(slopes, 2 if interleaved else 1).flatten(1)
        if options["kernel"] is not None:
            slope = aligned_copy(slope)
        of_a = multiply(slope, rows, **options) if needs_a else None
        if not needs_b:
            return of_a, None
        of_rows = multiply(slope.mT, a, **options)  # contiguous, as a weight (N, K) is
        if len(slopes) == 1:
            return of_a, of_rows.mT
        if interleaved:
            return of_a, of_rows.unflatten(0, (-1, 2)).permute(1, 2, 0)
        return of_a, of_rows.unflatten(0, (2, -1)).mT


def named_values(epilogue: Epilogue, values: Sequence[Value]) -> dict[str, Value]:
    """The operands by name."""
    return {operand.name: each for operand, each in zip(epilogue.operands, values, strict=True)}


def transformed(
    epilogue: Epilogue,
    a: Tensor,
    b: Tensor,
    values: Sequence[Value],
    multiply: Multiply,
    options: Mapping[str, Any],
) -> Results:
    """The results as torch's functions of plain products, which torch's transforms all know."""
    accumulators = tuple(multiply(a, part, **options).float() for part in parts_of(b))
    return composed(epilogue, accumulators, values, a.dtype)
