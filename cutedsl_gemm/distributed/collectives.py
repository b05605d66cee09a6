"""Products that overlap with collectives: all-gather → product, and product → reduce-scatter.

    all_gather_gemm(a, b)       this rank's rows of A are sent while the product of them runs; a
                                tile of other rows starts when the rows that it needs have come
    gemm_reduce_scatter(a, b)   the product of other ranks' rows is stored here, and copy engines
                                send it in pieces; that of this rank's own rows adds what has come

all_gather.py and reduce_scatter.py say how.

Without symmetric memory, and while a CUDA graph is captured, the group's own collectives move the
data before or after the product.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling
from torch.distributed import ProcessGroup

from cutedsl_gemm.api import gemm
from cutedsl_gemm.distributed.all_gather import gather
from cutedsl_gemm.distributed.overlap import all_gathered
from cutedsl_gemm.distributed.reduce_scatter import rows_of_each, scatter
from cutedsl_gemm.distributed.symmetric import resolve
from cutedsl_gemm.inputs.checks import check_operands
from cutedsl_gemm.inputs.problem import TMA
from cutedsl_gemm.inputs.tensors import DENSE
from cutedsl_gemm.ops import library
from cutedsl_gemm.ops.derivatives import product_like


def all_gather_gemm(a: Tensor, b: Tensor, group: ProcessGroup | str | None = None) -> Tensor:
    """The product of all ranks' rows, of which this one has a (M, K), and b (K, N): (ranks * M, N).

    torch.mm(all_gather_tensor(a, 0, group), b) in one kernel, which multiplies this rank's rows
    while the others' come. `group` is a process group or its name, by default that of all ranks.
    Every rank of it must call the function, with an a of the same shape and dtype; b may differ
    from rank to rank, and so may N.

    Supports autograd and torch.compile: the gradient of a is `gemm_reduce_scatter`. If b needs one,
    the rows of all ranks are kept for it. Gradients have no gradients. Raises as gemm does.

    >>> import torch.distributed as dist
    >>> store = dist.HashStore()
    >>> dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    >>> a, b = torch.ones(24, 16, dtype=torch.bfloat16), torch.ones(16, 8, dtype=torch.bfloat16)
    >>> all_gather_gemm(a, b).shape, gemm_reduce_scatter(a, b).shape
    (torch.Size([24, 8]), torch.Size([24, 8]))
    >>> dist.destroy_process_group()
    """
    if not isinstance(a, Tensor) or not isinstance(b, Tensor):
        check_operands(a, b)  # which says what they must be
    if torch.is_grad_enabled() and (a.requires_grad or b.requires_grad):
        apply = _differentiable_gather if is_dynamo_compiling() else _Gathered.apply
        gathered: Tensor = apply(a, b, _name(group), b.requires_grad)
        return gathered
    if _traced(a):
        return _all_gather_gemm(a, b, _name(group))
    return gather(a, b, resolve(group), rows=False)[0]


def gemm_reduce_scatter(a: Tensor, b: Tensor, group: ProcessGroup | str | None = None) -> Tensor:
    """This rank's rows (M / ranks, N) of the sum over the ranks of a (M, K) · b (K, N).

    torch's reduce_scatter_tensor(torch.mm(a, b), "sum", 0, group), in which copy engines send the
    product of other ranks' rows while the kernel runs. `group` is as in `all_gather_gemm`; every
    rank of it must call the function, with the same M, N and dtype. Partial sums of other ranks are
    rounded to the dtype of a before they are added, as torch's are; this rank's own are not.

    Supports autograd and torch.compile: the gradient of a is `all_gather_gemm`. Gradients have no
    gradients. Raises as gemm does, and ValueError if the ranks do not divide M.
    """
    if not isinstance(a, Tensor) or not isinstance(b, Tensor):
        check_operands(a, b)  # which says what they must be
    if torch.is_grad_enabled() and (a.requires_grad or b.requires_grad):
        apply = _differentiable_scatter if is_dynamo_compiling() else _Scattered.apply
        scattered: Tensor = apply(a, b, _name(group))
        return scattered
    if _traced(a):
        return _gemm_reduce_scatter(a, b, _name(group))
    return scatter(a, b, resolve(group))


def _name(group: ProcessGroup | str | None) -> str:
    """The name of a group, which is all that torch.compile can trace of it."""
    name: str = group if isinstance(group, str) else resolve(group).group_name
    return name


def _traced(a: Tensor) -> bool:
    """Whether torch traces the call, or a has no memory of its own."""
    return is_dynamo_compiling() or type(a) not in DENSE or a.is_meta


class _Gathered(torch.autograd.Function):
    """`all_gather_gemm`, which keeps the rows of all ranks if b needs a gradient."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, group: str, keep: bool) -> Tensor:
        ctx.group = group
        if not keep:
            ctx.save_for_backward(b)
            return _all_gather_gemm(a, b, group)
        product, rows = _all_gather_gemm_and_rows(a, b, group)
        ctx.save_for_backward(b, rows)
        return product

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        _check_once()
        b, *rows = ctx.saved_tensors
        of_a = _gemm_reduce_scatter(grad, b.mT, ctx.group) if ctx.needs_input_grad[0] else None
        of_b = product_like(b, _product, rows[0].mT, grad) if rows else None
        return of_a, of_b, None, None


class _Scattered(torch.autograd.Function):
    """`gemm_reduce_scatter`."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, group: str) -> Tensor:
        ctx.group = group
        _, needs_b, _ = ctx.needs_input_grad
        ctx.save_for_backward(a if needs_b else None, b)  # b's strides are those of its gradient
        return _gemm_reduce_scatter(a, b, group)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        _check_once()
        a, b = ctx.saved_tensors
        needs_a, needs_b, _ = ctx.needs_input_grad
        if not needs_b:
            return _all_gather_gemm(grad, b.mT, ctx.group), None, None
        if needs_a:
            of_a, rows = _all_gather_gemm_and_rows(grad, b.mT, ctx.group)
        else:
            of_a, rows = None, all_gathered(grad, resolve(ctx.group))
        return of_a, product_like(b, _product, a.mT, rows), None


def _check_once() -> None:
    """RuntimeError if a gradient is to have gradients; operators have none."""
    if torch.is_grad_enabled():
        raise RuntimeError(
            "gradients of all_gather_gemm and gemm_reduce_scatter have no gradients: "
            "omit create_graph, or multiply by gemm after torch's own collectives"
        )


# --- the operators, which torch.compile traces


def _fake_gathered(a: Tensor, b: Tensor, group: str) -> Tensor:
    check_operands(a, b, TMA.with_meta)
    return a.new_empty(resolve(group).size() * a.shape[0], b.shape[1])


def _fake_gathered_and_rows(a: Tensor, b: Tensor, group: str) -> tuple[Tensor, Tensor]:
    return _fake_gathered(a, b, group), a.new_empty(resolve(group).size() * a.shape[0], a.shape[1])


def _fake_scattered(a: Tensor, b: Tensor, group: str) -> Tensor:
    check_operands(a, b, TMA.with_meta)
    return a.new_empty(rows_of_each(a, resolve(group).size()), b.shape[1])


def _fake_product(a: Tensor, b: Tensor) -> Tensor:
    check_operands(a, b, TMA.with_meta)
    return a.new_empty(a.shape[0], b.shape[1])


@library.operator("product", _fake_product)
def _product(a: Tensor, b: Tensor) -> Tensor:
    return gemm(a, b)


@library.composite("differentiable_all_gather_gemm")
def _differentiable_gather(a: Tensor, b: Tensor, group: str, keep: bool) -> Tensor:
    made: Tensor = _Gathered.apply(a, b, group, keep)
    return made


@library.composite("differentiable_gemm_reduce_scatter")
def _differentiable_scatter(a: Tensor, b: Tensor, group: str) -> Tensor:
    made: Tensor = _Scattered.apply(a, b, group)
    return made


@library.operator("all_gather_gemm", _fake_gathered)
def _all_gather_gemm(a: Tensor, b: Tensor, group: str) -> Tensor:
    return gather(a, b, resolve(group), rows=False)[0]


@library.operator("all_gather_gemm_and_rows", _fake_gathered_and_rows)
def _all_gather_gemm_and_rows(a: Tensor, b: Tensor, group: str) -> tuple[Tensor, Tensor]:
    product, rows = gather(a, b, resolve(group), rows=True)
    return product, a.clone(memory_format=torch.contiguous_format) if rows is a else rows


@library.operator("gemm_reduce_scatter", _fake_scattered)
def _gemm_reduce_scatter(a: Tensor, b: Tensor, group: str) -> Tensor:
    return scatter(a, b, resolve(group))
