"""gemm(a, b), and the plan that it carries out."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling

from cutedsl_gemm.call import Tile, call
from cutedsl_gemm.explanation import explain
from cutedsl_gemm.kernels.build import AnyPlan
from cutedsl_gemm.kernels.plan import UNIT
from cutedsl_gemm.problem import lines, pose
from cutedsl_gemm.rungs import named


def gemm(
    a: Tensor,
    b: Tensor,
    *,
    tile: Tile | None = None,
    out: Tensor | None = None,
    kernel: str | None = None,
    tune: bool = False,
) -> Tensor:
    """a (M, K) · b (K, N) as torch.mm gives it: bfloat16 or float16, summed in float32.

    CUDA tensors go, on torch's current stream, to the sm90 kernel that a model expects to end first
    (on a card before Hopper to an sm80 kernel); CPU tensors go through the same plan on the
    executor. Either dimension of a, b and out may be the contiguous one; the
    other stride and the address must be multiples of 16 bytes. `tile` is (BM, BN, BK), chosen where
    None; `out` takes the result. Without it the result's rows start at multiples of 16 bytes, so
    that of N % 8 != 0 columns it is not contiguous. Differentiable as torch.mm is.

    `kernel` names another rung of the ladder, one of `cutedsl_gemm.KERNELS`. Those of the sm80
    family take what the default takes; those of the simt family take float32, and all but the
    vectorised one take it wherever it lies.

    `tune=True` measures a dozen plans on the GPU when it first meets a shape there, and remembers
    on disk which was the fastest; calls with tune=True take it from then on, in any process. Other
    calls do not: they give the same bits on every machine. On CPU tensors it is a ValueError.

    Raises TypeError, ValueError, or its kind PlanError, with a sentence that names the argument,
    what it is, what it must be.

    >>> a, b = torch.ones(24, 16, dtype=torch.bfloat16), torch.ones(16, 8, dtype=torch.bfloat16)
    >>> gemm(a, b, tile=(128, 128, 64)).unique()
    tensor([16.], dtype=torch.bfloat16)
    """
    if is_dynamo_compiling():
        # A graph ends here: gemm is no operator of torch's. Imported here, since it takes 0.8 s.
        from cutedsl_gemm.uncompiled import gemm as uncompiled

        return uncompiled(a, b, tile=tile, out=out, kernel=kernel, tune=tune)
    known = call(a, b, tile, out, kernel, tune)
    if (
        a.requires_grad or b.requires_grad or (out is not None and out.requires_grad)
    ) and torch.is_grad_enabled():
        if out is not None:
            raise ValueError(
                "out: a result written into a tensor has no gradient; "
                "leave out away, or pass detached tensors"
            )
        return _Product.apply(a, b, tile, kernel, tune)
    return known(a, b, out)


gemm.explain = explain  # type: ignore[attr-defined]


def plan_for(
    a: Tensor, b: Tensor, *, tile: Tile | None = None, kernel: str | None = None
) -> AnyPlan:
    """The plan that gemm(a, b, tile=tile, kernel=kernel) carries out.

    >>> a, b = torch.ones(24, 16, dtype=torch.float16), torch.ones(16, 8, dtype=torch.float16)
    >>> plan_for(a, b, tile=(128, 128, 64)).stages
    6
    """
    rung = named(kernel, getattr(a, "device", None))
    return rung.plan(pose(a, b, rung.terms), tile)


class _Product(torch.autograd.Function):
    """dA = dC · Bᵀ and dB = Aᵀ · dC: the same kernel, with the other majors."""

    @staticmethod
    def forward(
        ctx: Any, a: Tensor, b: Tensor, tile: Tile | None, kernel: str | None, tune: bool
    ) -> Tensor:
        ctx.save_for_backward(a, b)
        ctx.how = {"kernel": kernel, "tune": tune}
        return gemm(a, b, tile=tile, **ctx.how)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None, None, None]:
        a, b = ctx.saved_tensors
        needs_a, needs_b, *_ = ctx.needs_input_grad
        grad = lines(grad, grad.shape, UNIT).copy_(grad)  # where and as TMA can take it
        return (
            gemm(grad, b.mT, **ctx.how) if needs_a else None,
            gemm(a.mT, grad, **ctx.how) if needs_b else None,
            None,
            None,
            None,
        )
