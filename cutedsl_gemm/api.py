"""gemm(a, b), and the plan that it carries out."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from cutedsl_gemm.call import Tile, call
from cutedsl_gemm.choose import choose
from cutedsl_gemm.kernels.plan import Plan
from cutedsl_gemm.problem import pose


def gemm(a: Tensor, b: Tensor, *, tile: Tile | None = None, out: Tensor | None = None) -> Tensor:
    """a (M, K) · b (K, N) as torch.mm gives it: bfloat16 or float16, summed in float32.

    CUDA tensors go to the sm90 pingpong kernel on torch's current stream; CPU tensors go through
    the same plan on the executor. Either dimension of a, b and out may be the contiguous one; the
    other stride and the address must be multiples of 16 bytes. `tile` is (BM, BN, BK), chosen where
    None; `out` takes the result. Differentiable as torch.mm is.

    Raises TypeError, ValueError, or its kind PlanError, with a sentence that names the argument,
    what it is, what it must be.

    >>> a, b = torch.ones(24, 16, dtype=torch.bfloat16), torch.ones(16, 8, dtype=torch.bfloat16)
    >>> gemm(a, b, tile=(128, 128, 64)).unique()
    tensor([16.], dtype=torch.bfloat16)
    """
    known = call(a, b, tile, out)
    if (a.requires_grad or b.requires_grad) and torch.is_grad_enabled():
        if out is not None:
            raise ValueError(
                "out: a result written into a tensor has no gradient; "
                "leave out away, or pass detached tensors"
            )
        return _Product.apply(a, b, tile)
    return known(a, b, out)


def plan_for(a: Tensor, b: Tensor, *, tile: Tile | None = None) -> Plan:
    """The plan that gemm(a, b, tile=tile) carries out.

    >>> a, b = torch.ones(24, 16, dtype=torch.float16), torch.ones(16, 8, dtype=torch.float16)
    >>> plan_for(a, b).stages
    6
    """
    return choose(pose(a, b), tile)


class _Product(torch.autograd.Function):
    """dA = dC · Bᵀ and dB = Aᵀ · dC: the same kernel, with the other majors."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, tile: Tile | None) -> Tensor:
        ctx.save_for_backward(a, b)
        return gemm(a, b, tile=tile)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        a, b = ctx.saved_tensors
        grad = grad.contiguous()
        needs_a, needs_b, _ = ctx.needs_input_grad
        return gemm(grad, b.mT) if needs_a else None, gemm(a.mT, grad) if needs_b else None, None
