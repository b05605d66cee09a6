"""gemm(a, b), and the plan that it carries out."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch._C._functorch import is_functorch_wrapped_tensor
from torch.autograd import forward_ad
from torch.compiler import is_dynamo_compiling, is_exporting

from cutedsl_gemm.call import Tile, call
from cutedsl_gemm.derivatives import NO_GRADIENT, Product
from cutedsl_gemm.kernels.plan.kernel_plan import KernelPlan
from cutedsl_gemm.operands import check_operands, device_of, problem_of
from cutedsl_gemm.select.explain import explain
from cutedsl_gemm.select.registry import named


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
    executor. Either dimension of a, b and out may be the contiguous one; the other stride and the
    address must be multiples of 16 bytes. `out` takes the result; without it the result's rows
    start at multiples of 16 bytes, so that of N % 8 != 0 columns it is not contiguous.

    `tile` is (BM, BN, BK), chosen where None; a column-major out is made as bᵀ · aᵀ, and the tile
    is one of that product. Without `out`, torch knows its derivatives (backward, jvp, torch.func)
    and vmap; torch.compile and torch.export take it as an operator.

    `kernel` names another rung of the ladder, one of `cutedsl_gemm.KERNELS`. Those of the sm80
    family take what the default takes, and lines of multiples of 4 bytes by narrower copies; those
    of the simt family take float32, and all but the vectorised one take it wherever it lies.

    `tune=True` measures a dozen plans on the GPU when it first meets a shape there, and remembers
    on disk which was the fastest; calls with tune=True take it from then on, in any process. Other
    calls do not: they give the same bits on every machine. On CPU tensors it is a ValueError.

    Raises TypeError, ValueError, or its kind PlanError, with a sentence that names the argument,
    what it is, what it must be; RuntimeError on a card that the kernel does not run on, and where
    tune=True would measure while a CUDA graph is captured.

    >>> a, b = torch.ones(24, 16, dtype=torch.bfloat16), torch.ones(16, 8, dtype=torch.bfloat16)
    >>> gemm(a, b, tile=(128, 128, 64)).unique()
    tensor([16.], dtype=torch.bfloat16)
    """
    if is_dynamo_compiling() or is_exporting():
        from cutedsl_gemm import operator  # here, since it loads what few need

        return operator.gemm(a, b, out, tile, kernel, tune)
    known = call(a, b, tile, out, kernel, tune)
    if (
        (a.requires_grad or b.requires_grad or (out is not None and out.requires_grad))
        and torch.is_grad_enabled()
    ) or (forward_ad._current_level >= 0 and _any(_has_tangent, a, b, out)):
        return _differentiable(a, b, out, tile, kernel, tune)
    try:
        return known(a, b, out)
    except RuntimeError:
        if _any(is_functorch_wrapped_tensor, a, b, out):  # of vmap, say
            return _differentiable(a, b, out, tile, kernel, tune)
        raise


gemm.explain = explain  # type: ignore[attr-defined]


def plan_for(
    a: Tensor, b: Tensor, *, tile: Tile | None = None, kernel: str | None = None
) -> KernelPlan:
    """The plan that gemm(a, b, tile=tile, kernel=kernel) carries out.

    >>> a, b = torch.ones(24, 16, dtype=torch.float16), torch.ones(16, 8, dtype=torch.float16)
    >>> plan_for(a, b, tile=(128, 128, 64)).stages
    6
    """
    rung = named(kernel, device_of(a))
    check_operands(a, b, rung.requirements)
    problem = problem_of(a, b, rung.requirements_for(a, b))
    if 0 in problem.mnk:
        raise ValueError(f"M, N, K = {problem.mnk}: an empty product needs no kernel, and no plan")
    return rung.plan(problem, tile)


def _differentiable(
    a: Tensor, b: Tensor, out: Tensor | None, *options: Tile | str | bool | None
) -> Tensor:
    """The product as a function that torch's transforms know: grad, jvp, vmap."""
    if out is not None:
        raise ValueError(NO_GRADIENT)
    product: Tensor = Product.apply(a, b, gemm, *options)
    return product


def _any(holds: Callable[[Tensor], bool], *tensors: Tensor | None) -> bool:
    return any(tensor is not None and holds(tensor) for tensor in tensors)


def _has_tangent(tensor: Tensor) -> bool:
    return is_functorch_wrapped_tensor(tensor) or forward_ad.unpack_dual(tensor).tangent is not None
