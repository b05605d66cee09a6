"""gemm as two torch operators, which torch.compile and torch.export trace without graph breaks."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch._C._functorch import peek_interpreter_stack
from torch.compiler import is_dynamo_compiling

from cutedsl_gemm.calls.call import Tile, call, check_chosen, check_flag
from cutedsl_gemm.calls.signature import Options
from cutedsl_gemm.inputs.checks import check_extents, check_matrices_or_batches
from cutedsl_gemm.inputs.tensors import device_of
from cutedsl_gemm.ops.derivatives import NO_GRADIENT, gradients, save
from cutedsl_gemm.ops.library import register_flops
from cutedsl_gemm.select.choose import checked_tile
from cutedsl_gemm.select.registry import named


@torch.compiler.assume_constant_result
def register_sharding() -> None:
    """Tell torch how the operators divide DTensors, in a program that has them."""
    if "torch.distributed.tensor" in sys.modules:
        from cutedsl_gemm.distributed import sharding  # noqa: F401


@torch.compiler.assume_constant_result
def in_torch_func() -> bool:
    """Whether torch.func transforms what is traced.

    Dynamo itself assumes that the stack is never None.
    """
    return peek_interpreter_stack() is not None


def gemm(
    a: Tensor,
    b: Tensor,
    out: Tensor | None,
    tile: Tile | None,
    kernel: str | None,
    tune: bool,
    invariant: bool,
) -> Tensor:
    """What `api.gemm` is inside a traced graph."""
    if out is None:
        product: Tensor = _allocating(a, b, tile, kernel, tune, invariant)
        return product
    if torch.is_grad_enabled() and (a.requires_grad or b.requires_grad or out.requires_grad):
        raise ValueError(NO_GRADIENT)
    _writing(a, b, out, tile, kernel, tune, invariant)
    return out


def by_torch(a: Tensor, b: Tensor, out: Tensor | None, options: Options) -> Tensor:
    """torch's product, where the operators have no rules for a transform.

    Inside a traced graph, they have no forward derivatives and no rules for vmap. They also
    have none for the batches of `torch.autograd.grad(is_grads_batched=True)`.
    """
    check_by_torch(a, b, options)
    with torch.autocast(a.device.type, enabled=False):
        return torch.matmul(a, b) if out is None else torch.matmul(a, b, out=out)


def check_given(a: Tensor, b: Tensor, options: Options) -> None:
    """TypeError or ValueError for flags and matrices that gemm refuses, as of tensors with memory.

    torch calls an operator of tensors without memory for the shape alone, which checks less.
    """
    check_flag("tune", options.tune)
    check_flag("invariant", options.invariant)
    _check_shapes(a, b, options.kernel, device_of(a), options.tune)


def _check_shapes(
    a: Tensor, b: Tensor, kernel: str | None, device: torch.device | None, tune: bool
) -> None:
    """TypeError or ValueError unless a · b are matrices, or batches, that the kernel takes."""
    check_matrices_or_batches(a, b, named(kernel, device).requirements.with_meta)
    check_chosen(a, kernel, tune)


def check_by_torch(a: Tensor, b: Tensor, options: Options) -> None:
    """TypeError or ValueError for what gemm refuses, and for an invariant product."""
    if options.invariant:
        raise ValueError(
            "invariant is True: inside torch.compile, and for batches of gradients, torch computes "
            "the products that are transformed, and their bits depend on M; omit invariant, or "
            "transform outside of the compiled function, one gradient at a time"
        )
    if is_dynamo_compiling():  # which cannot follow the checks themselves
        _check((a.dtype, b.dtype), a.device, options.tile, options.kernel)


@torch.compiler.assume_constant_result
def _check(
    dtypes: tuple[torch.dtype, torch.dtype],
    device: torch.device,
    tile: Tile | None,
    kernel: str | None,
) -> None:
    optional_tile(tile)
    a, b = (torch.empty(16, 16, dtype=dtype, device="meta") for dtype in dtypes)
    check_matrices_or_batches(a, b, named(kernel, device).requirements.with_meta)


@torch.library.custom_op("cutedsl_gemm::gemm", mutates_args=())
def _allocating(
    a: Tensor,
    b: Tensor,
    tile: list[int] | None,
    kernel: str | None,
    tune: bool,
    invariant: bool = False,
) -> Tensor:
    return call(a, b, optional_tile(tile), None, kernel, tune, invariant)(a, b, None)


@torch.library.custom_op("cutedsl_gemm::gemm_out", mutates_args=("out",))
def _writing(
    a: Tensor,
    b: Tensor,
    out: Tensor,
    tile: list[int] | None,
    kernel: str | None,
    tune: bool,
    invariant: bool = False,
) -> None:
    call(a, b, optional_tile(tile), out, kernel, tune, invariant)(a, b, out)


@_allocating.register_fake
def _fake(
    a: Tensor,
    b: Tensor,
    tile: list[int] | None,
    kernel: str | None,
    tune: bool,
    invariant: bool = False,
) -> Tensor:
    optional_tile(tile)
    _check_shapes(a, b, kernel, a.device, tune)
    return a.new_empty(*a.shape[:-1], b.shape[-1])


@_writing.register_fake
def _fake_writing(
    a: Tensor,
    b: Tensor,
    out: Tensor,
    tile: list[int] | None,
    kernel: str | None,
    tune: bool,
    invariant: bool = False,
) -> None:
    check_extents("out", out, _fake(a, b, tile, kernel, tune, invariant).shape)


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    a, b, _, kernel, tune, invariant = inputs
    save(ctx, a, b, kernel, tune, invariant)


def _backward(ctx: Any, grad: Tensor | None) -> tuple[Tensor | None, ...]:
    return *gradients(ctx, grad, _allocating), None, None, None, None


_allocating.register_autograd(_backward, setup_context=_setup_context)


def flops(a: torch.Size, b: torch.Size, *_: Any, **__: Any) -> int:
    """What torch's FlopCounterMode counts: the products of A (…, K) with all matrices of B.

    If both are batches, the products of each pair of matrices.

    >>> flops(torch.Size((4, 8)), torch.Size((2, 8, 16)))
    2048
    >>> flops(torch.Size((2, 4, 8)), torch.Size((2, 8, 16)))
    2048
    """
    rows = a[-2:-1] if len(b) > 2 else a[:-1]
    return 2 * rows.numel() * b.numel()


register_flops(flops, torch.ops.cutedsl_gemm.gemm, torch.ops.cutedsl_gemm.gemm_out)


def optional_tile(tile: Sequence[int] | None) -> Tile | None:
    """The tile of an operator's schema, which has lists; PlanError unless it is one."""
    return None if tile is None else checked_tile(tuple(tile))
