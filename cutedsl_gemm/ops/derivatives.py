"""The derivatives of C = A · B, two more products, and its vmap rule: one product, or a batch.

dA = dC · Bᵀ and dB = Aᵀ · dC, each by the same kernels with the other majors. The
caller passes the product that computes them: `gemm` itself, so that derivatives have derivatives.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor

from cutedsl_gemm.calls.call import Tile, call
from cutedsl_gemm.inputs.tensors import aligned_copy, column_major
from cutedsl_gemm.inputs.transforms import dispatch_modes
from cutedsl_gemm.select.registry import named

Multiply: TypeAlias = Callable[..., Tensor]  # (a, b, tile=, kernel=, …), as gemm

NO_GRADIENT = (
    "out: a result written into a tensor has no gradient and cannot be transformed; "
    "omit out, or pass detached tensors"
)


class Product(torch.autograd.Function):
    """A · B with its backward and forward derivatives and its rule for vmap."""

    @staticmethod
    def forward(
        a: Tensor,
        b: Tensor,
        multiply: Multiply,
        tile: Tile | None,
        kernel: str | None,
        tune: bool,
        invariant: bool,
    ) -> Tensor:
        if dispatch_modes():
            from cutedsl_gemm.ops import operator  # here: it imports this module

            return operator.gemm(a, b, None, tile, kernel, tune, invariant)
        return call(a, b, tile, None, kernel, tune, invariant)(a, b, None)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        a, b, ctx.multiply, _, kernel, tune, invariant = inputs
        save(ctx, a, b, kernel, tune, invariant)

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None) -> tuple[Tensor | None, ...]:
        return *gradients(ctx, grad, ctx.multiply), None, None, None, None, None

    @staticmethod
    def jvp(ctx: Any, a_tangent: Tensor | None, b_tangent: Tensor | None, *_: None) -> Tensor:
        return tangent(ctx, ctx.multiply, a_tangent, b_tangent)

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], a: Tensor, b: Tensor, *options: Any
    ) -> tuple[Tensor, int]:
        return mapped(Product.apply, info, in_dims, a, b, *options)


def applied(function: type[torch.autograd.Function]) -> Callable[..., Any]:
    """`function.apply` for tensors that torch.func does not wrap; positional arguments only.

    It saves what `apply` itself does first: it looks for torch.func, 2 µs, and binds the arguments
    of a function that has a setup_context, 25 µs.
    """
    found: Callable[..., Any] = super(torch.autograd.Function, function).apply
    return found


apply_product = applied(Product)


def tangent(
    ctx: Any, multiply: Multiply, a_tangent: Tensor | None, b_tangent: Tensor | None
) -> Tensor:
    """The tangent of the product of which `save` kept the operands."""
    a, b = ctx.saved_tensors
    terms = []
    if a_tangent is not None:
        terms.append(multiply(_readable(a_tangent, ctx), b, **ctx.options))
    if b_tangent is not None:
        terms.append(multiply(a, _readable(b_tangent, ctx), **ctx.options))
    return terms[0] if len(terms) == 1 else terms[0] + terms[1]


def mapped(
    apply: Callable[..., Tensor],
    info: Any,
    in_dims: tuple[int | None, ...],
    a: Tensor,
    b: Tensor,
    *options: Any,
) -> tuple[Tensor, int]:
    """The product of each sample: what a rule for vmap returns. They are one product, or a batch.

    If a kernel is named, or tuned, they follow each other.
    """
    (of_a, of_b, *_), (_, _, kernel, tune, _) = in_dims, options
    if info.batch_size == 0:
        return _no_products(apply, in_dims, a, b, *options), 0
    if kernel is not None or tune:
        return _one_by_one(apply, info, in_dims, a, b, *options), 0
    if of_b is None:  # the rows of all samples
        rows = a.movedim(of_a, -3)
        made = apply(rows.flatten(-3, -2), b, *options).unflatten(-2, rows.shape[-3:-1])
        return made, made.ndim - 3
    if of_a is None:  # the columns of all samples
        columns = b.movedim(of_b, -2)
        made = apply(a, columns.flatten(-2, -1), *options).unflatten(-1, columns.shape[-2:])
        return made, made.ndim - 2
    a, b = a.movedim(of_a, 0), b.movedim(of_b, 0)
    if a.ndim == 3:
        return apply(a, b, *options), 0
    batches = a.shape[:2]  # of batches
    return apply(a.flatten(0, 1), b.flatten(0, 1), *options).unflatten(0, batches), 0


def _one_by_one(
    apply: Callable[..., Tensor],
    info: Any,
    in_dims: tuple[int | None, ...],
    a: Tensor,
    b: Tensor,
    *options: Any,
) -> Tensor:
    samples = zip(
        *(
            [matrix] * info.batch_size if dim is None else matrix.unbind(dim)
            for matrix, dim in zip((a, b), in_dims[:2], strict=True)
        ),
        strict=True,
    )
    return torch.stack([apply(x, y, *options) for x, y in samples])


def _no_products(
    apply: Callable[..., Tensor],
    in_dims: tuple[int | None, ...],
    a: Tensor,
    b: Tensor,
    *options: Any,
) -> Tensor:
    """The products of no samples: (0, M, N), or (0, L, M, N)."""
    pairs = zip((a, b), in_dims[:2], strict=True)
    zeros = (x if dim is None else x.sum(dim) for x, dim in pairs)  # which keep the graph
    made = apply(*zeros, *options)
    return made.expand(0, *made.shape)


def save(ctx: Any, a: Tensor, b: Tensor, kernel: str | None, tune: bool, invariant: bool) -> None:
    """Keep in `ctx` what `gradients` and `jvp` need."""
    ctx.set_materialize_grads(False)  # else jvp multiplies zeros
    ctx.options = backward_options(kernel, tune, invariant)
    ctx.by_columns = column_major(a), column_major(b)
    needs_a, needs_b, *_ = ctx.needs_input_grad
    ctx.save_for_backward(a if needs_b else None, b if needs_a else None)
    ctx.save_for_forward(a, b)


def backward_options(kernel: str | None, tune: bool, invariant: bool) -> dict[str, Any]:
    """How gemm is called for the derivatives of a product that was computed so."""
    # sm70 requires an aligned K. That of a derivative is M or N, which need not be aligned.
    kernel = None if named(kernel).family == "sm70" else kernel
    return {"kernel": kernel, "tune": tune, "invariant": invariant}


def gradients(
    ctx: Any, grad: Tensor | None, multiply: Multiply
) -> tuple[Tensor | None, Tensor | None]:
    """The gradients of a and b, given that of their product; None where none is needed."""
    if grad is None:  # as of a function whose backward gives None
        return None, None
    a, b = ctx.saved_tensors
    needs_a, needs_b, *_ = ctx.needs_input_grad
    grad = _readable(grad, ctx)
    multiply = partial(multiply, tile=None, **ctx.options)
    return (
        product_in(ctx.by_columns[0], multiply, grad, b.mT) if needs_a else None,
        product_in(ctx.by_columns[1], multiply, a.mT, grad) if needs_b else None,
    )


def product_like(like: Tensor, multiply: Multiply, a: Tensor, b: Tensor) -> Tensor:
    """a · b in the memory order of `like`, of which it is the gradient.

    torch copies the gradient of a parameter that has another order.
    """
    return product_in(column_major(like), multiply, a, b)


def product_in(by_columns: bool, multiply: Multiply, a: Tensor, b: Tensor) -> Tensor:
    """a · b, column-major if `by_columns`."""
    return multiply(b.mT, a.mT).mT if by_columns else multiply(a, b)


def _readable(derivative: Tensor, ctx: Any) -> Tensor:
    """A derivative, which may have any strides; an aligned copy if a named kernel is to read it."""
    return derivative if ctx.options["kernel"] is None else aligned_copy(derivative)
