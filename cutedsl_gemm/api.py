"""gemm(a, b), and the plan that it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._C._functorch import (
    is_functorch_wrapped_tensor,
    is_legacy_batchedtensor,
    peek_interpreter_stack,
)
from torch._subclasses.fake_tensor import FakeTensor
from torch.autograd import forward_ad
from torch.compiler import is_dynamo_compiling

from cutedsl_gemm.calls.call import Tile, call, check_chosen, check_flag
from cutedsl_gemm.calls.fused import bound, compute
from cutedsl_gemm.calls.results import Results
from cutedsl_gemm.calls.signature import DEFAULTS, Options
from cutedsl_gemm.explanation import explain
from cutedsl_gemm.inputs.operands import Value, check_range
from cutedsl_gemm.inputs.problem import Problem
from cutedsl_gemm.inputs.request import Fixed, Function, check_names, epilogue_of, parts_of, request
from cutedsl_gemm.inputs.tensors import DENSE, aligned, device_of, is_sharded
from cutedsl_gemm.inputs.transforms import dispatch_modes, tracing, transformed
from cutedsl_gemm.kernels.plan.kernel_plan import KernelPlan
from cutedsl_gemm.ops.derivatives import NO_GRADIENT, Product, apply_product
from cutedsl_gemm.ops.fused_derivatives import FusedProduct, of_accumulators
from cutedsl_gemm.select.choose import checked_tile
from cutedsl_gemm.select.registry import named


def gemm(
    a: Tensor,
    b: Tensor,
    *,
    tile: Tile | None = None,
    out: Any = None,  # a Tensor; or a tuple of them, if the epilogue has several results
    kernel: str | None = None,
    tune: bool = False,
    invariant: bool = False,
    epilogue: Function | None = None,
    **operands: Value,
) -> Any:
    """a (M, K) · b (K, N) as torch.mm gives it: bfloat16 or float16, accumulated in float32.

    Of batches a (L, M, K) and b (L, K, N), the product of each pair of matrices, as torch.bmm.

    CUDA tensors run on torch's current stream, by the sm90 kernel that a model expects to be
    fastest (before Hopper, by an sm80 kernel). CPU tensors run through the same plan on the
    executor. Any strides and addresses are accepted. TMA reads a or b in place if one mode is
    contiguous, and the other stride and the address are multiples of 16 bytes; otherwise it reads a
    copy. TMA stores a result that meets the same conditions, and whose rows are multiples of 16
    bytes long. Threads store any other result whose rows or columns are contiguous. `out` receives
    the result. Without it, the result is a new contiguous tensor.

    `epilogue` is a function of the product (M, N) in float32 and of further `operands`, passed by
    name. The kernel computes it before it stores the result. It is written in torch, and equals the
    same function of torch's tensors:

        gemm(a, b, epilogue=lambda acc, bias, r: F.gelu(acc + bias) + r, bias=bias, r=residual)

    An operand broadcasts to (M, N), as torch's do: it is a row (N,), a column (M, 1), a matrix or a
    scalar of bfloat16, float16 or float32, or a Python number. A new number needs no compile. The
    function returns a value, or a tuple of them: gemm returns, and `out` takes, a tensor for each.
    A result has the dtype of a, unless the function casts it last (`.float()`). A sum, amax or amin
    over a mode (`.sum(dim=1)`) is in float32; it can only be a result. The function is traced
    once, so that it must depend on its arguments alone (`kernels.epilogue.trace`).

    If a is a matrix and b is (2, K, N), the function takes two products: a · b[0] and a · b[1], as
    the gate and the value of SwiGLU. Only strides tell a stacked weight w (2N, K),
    `w.view(2, N, K).mT`, from an interleaved one, `w.view(N, 2, K).permute(1, 2, 0)`.

    On Hopper, one kernel multiplies all matrices of a batch. Its epilogue is a function of the
    products (L, M, N). An operand broadcasts to that: with a first mode L, each matrix has its own.
    Two products take b (2, L, K, N). `kernel` and `tune` are for matrices alone.

    `tile` is (BM, BN, BK); None lets the model choose. A column-major out is computed as bᵀ · aᵀ,
    and the tile is one of that product. Without `out`, gemm supports autograd (reverse and forward
    mode), torch.func and vmap; torch.compile and torch.export trace it as one operator. Tensors on
    the meta device give the shape of the result.

    `kernel` names a rung of the ladder, one of `cutedsl_gemm.KERNELS`, and refuses tensors that it
    cannot read in place. The sm80 family reads what TMA reads, and by narrower copies also
    multiples of 8 or 4 bytes. The simt family takes float32; all its kernels except simt_block2d
    accept any alignment.

    `tune=True` measures a dozen plans on the GPU at the first call with a shape, and stores the
    fastest on disk. Later calls with tune=True use it, in any process. Other calls ignore it: their
    plan depends only on the tensors and the kind of GPU. On CPU tensors it is a ValueError.

    `invariant=True` makes the bits of C[m, n] depend on row m of a, column n of b, and K only: the
    order in which K is summed is that of the plan, and M and N do not change it. A row of a batch
    then has the same result, no matter what the other rows are or how many there are. The model
    chooses among the plans of sm90 that do not split K, so that few tiles of large K are slower.
    The gradients are computed in the same way; that of b is a sum over M. See docs/invariance.md
    for what is guaranteed between plans, versions and devices.

    Raises TypeError, ValueError or its subclass PlanError; the message names the argument, what it
    is and what it must be. Raises RuntimeError on a GPU that the kernel does not run on, inside
    torch.jit.trace, and during the capture of a CUDA graph if a kernel would have to be compiled,
    or tune=True would measure. Threads may call it: one compiles at a time, and calls with a known
    signature do not wait.

    >>> a, b = torch.ones(24, 16, dtype=torch.bfloat16), torch.ones(16, 8, dtype=torch.bfloat16)
    >>> gemm(a, b, tile=(128, 128, 64)).unique()
    tensor([16.], dtype=torch.bfloat16)
    >>> gemm(a, b, epilogue=lambda acc, bias: (acc - bias).relu(), bias=torch.arange(8) * 4.0)[0]
    tensor([16., 12.,  8.,  4.,  0.,  0.,  0.,  0.], dtype=torch.bfloat16)
    """
    if epilogue is not None or operands:
        return _fused(a, b, epilogue, operands, out, Options(tile, kernel, tune, invariant))
    if tune is not False or invariant is not False:  # at every call, since 0 has the hash of False
        check_flag("tune", tune)
        check_flag("invariant", invariant)
    if tile is not None and not is_dynamo_compiling():  # the operator checks a traced one
        tile = checked_tile(tile)  # at every call, since (128.0, …) has the hash of (128, …)
    if tracing() or dispatch_modes() or (type(a) not in DENSE and _is_fake_or_sharded(a)):
        return _traced(a, b, out, Options(tile, kernel, tune, invariant))
    try:
        multiply = call(a, b, tile, out, kernel, tune, invariant)
        if (
            (a.requires_grad or b.requires_grad or (out is not None and out.requires_grad))
            and torch.is_grad_enabled()
        ) or (forward_ad._current_level >= 0 and _any(_has_tangent, a, b, out)):
            return _differentiable(a, b, out, tile, kernel, tune, invariant)
        return multiply(a, b, out)
    except (TypeError, ValueError):
        if is_sharded(a, b, out) or (_on_meta(a, b) and (out is None or _on_meta(out))):
            return _traced(a, b, out, Options(tile, kernel, tune, invariant))
        raise
    except RuntimeError:
        # The tensors that vmap passes, and those that are made inside grad, have no memory.
        if peek_interpreter_stack() is not None:
            return _differentiable(a, b, out, tile, kernel, tune, invariant)
        if _any(is_legacy_batchedtensor, a, b):  # of `torch.autograd.grad(is_grads_batched=True)`
            return _traced(a, b, out, Options(tile, kernel, tune, invariant))
        raise


def _traced(a: Tensor, b: Tensor, out: Tensor | None, options: Options) -> Tensor:
    """The product as an operator of torch's, which knows the shapes of tensors without memory."""
    from cutedsl_gemm.ops import operator  # here: only traced calls need torch.library

    operator.register_sharding()
    if out is not None:
        _check_not_sharded(a, b, out)
    if tracing():
        by_torch = transformed()
    else:
        operator.check_given(a, b, options)
        if _any(_has_tangent, a, b, out):
            return _differentiable(a, b, out, *options)
        by_torch = _any(is_legacy_batchedtensor, a, b)
    if by_torch:
        return operator.by_torch(a, b, out, options)
    return operator.gemm(a, b, out, *options)


def _is_fake_or_sharded(tensor: object) -> bool:
    """Whether it is a FakeTensor or a DTensor, for which torch runs the operator."""
    return type(tensor) is FakeTensor or is_sharded(tensor)


def _check_not_sharded(*tensors: object) -> None:
    """ValueError for a DTensor, where `out` is given."""
    if not is_dynamo_compiling() and is_sharded(*tensors):
        raise ValueError("out: torch chooses how a product of DTensors is divided: omit out")


def _fused(
    a: Tensor,
    b: Tensor,
    epilogue: Function | None,
    operands: Mapping[str, Value],
    out: Tensor | Sequence[Tensor] | None,
    options: Options,
) -> Tensor | Results:
    """gemm with an epilogue: one result, or several."""
    try:
        function = epilogue_of(epilogue, operands, gemm)
        if options.tile is not None and not is_dynamo_compiling():
            tile = checked_tile(options.tile)
            options = options if tile is options.tile else options._replace(tile=tile)
        several = isinstance(out, (tuple, list))
        outs = None if out is None else tuple(out) if several else (out,)
        results = fused_product(a, b, function, operands, outs, options)
    except (TypeError, ValueError):
        check_names(epilogue, gemm)
        raise
    return results[0] if len(results) == 1 else results


def fused_product(
    a: Tensor,
    b: Tensor,
    epilogue: Function,
    operands: Mapping[str, Value],
    out: Results | None = None,
    options: Options = DEFAULTS,
) -> Results:
    """The results of the product with an epilogue; see `gemm`."""
    if tracing() or (type(a) not in DENSE and _is_fake_or_sharded(a)):
        return _traced_product(a, b, epilogue, operands, out, options)
    given = a, b, *operands.values(), *(out or ())
    try:
        if forward_ad._current_level < 0 or not _any(_has_tangent, *_tensors(given)):
            if torch.is_grad_enabled() and True in [each.requires_grad for each in _tensors(given)]:
                if out is not None:
                    raise ValueError(NO_GRADIENT)
                return _differentiable_results(a, b, epilogue, operands, options)
            return _compute(a, b, epilogue, operands, out, options)
    except OverflowError:
        check_range(operands)
        raise
    except (TypeError, ValueError, RuntimeError):
        tensors = _tensors(given)
        batched = _any(is_legacy_batchedtensor, *tensors)
        seen = batched or dispatch_modes()
        if seen or is_sharded(*given) or _on_meta(a, b, *tensors):
            return _traced_product(a, b, epilogue, operands, out, options)
        if peek_interpreter_stack() is None:
            raise
    return _transformed_product(a, b, epilogue, operands, out, options)


def _compute(*arguments: Any) -> Results:
    """The results without derivatives; by the operator inside a mode, which sees no launches."""
    return (_traced_product if dispatch_modes() else compute)(*arguments)


def _transformed_product(
    a: Tensor,
    b: Tensor,
    epilogue: Function,
    operands: Mapping[str, Value],
    out: Results | None,
    options: Options,
) -> Results:
    """The results, computed from the accumulators by functions that torch's transforms know."""
    if out is not None:
        raise ValueError(NO_GRADIENT)
    asked = request(a, b, epilogue, operands, named(options.kernel, device_of(a)).requirements)
    values = [operands[each.name] for each in asked.epilogue.operands]
    return of_accumulators(asked.epilogue, a, b, values, gemm, options._asdict())


def _on_meta(*values: object) -> bool:
    """Whether all are tensors without memory, of which torch computes shapes."""
    return all(isinstance(each, Tensor) and each.is_meta for each in values)


def _tensors(values: Iterable[object]) -> list[Tensor]:
    return [each for each in values if isinstance(each, Tensor)]


def _differentiable_results(
    a: Tensor, b: Tensor, function: Function, operands: Mapping[str, Value], options: Options
) -> Results:
    """The results as a function that autograd knows."""
    epilogue = bound(a, b, function, operands, options)
    values = [operands[each.name] for each in epilogue.operands]
    backward = function.backward if isinstance(function, Fixed) else None
    results = FusedProduct.apply(epilogue, backward, gemm, _compute, options, a, b, *values)
    return results[: len(epilogue.results)]


def _traced_product(
    a: Tensor,
    b: Tensor,
    epilogue: Function,
    operands: Mapping[str, Value],
    out: Results | None,
    options: Options,
) -> Results:
    from cutedsl_gemm.ops import (  # here: only traced calls need torch.library
        fused_operator,
        operator,
    )

    operator.register_sharding()
    if out is not None:
        _check_not_sharded(a, b, *operands.values(), *out)
    if tracing():
        by_torch = transformed()
    else:
        tensors = _tensors((a, b, *operands.values(), *(out or ())))
        if _any(_has_tangent, *tensors):
            return _transformed_product(a, b, epilogue, operands, out, options)
        by_torch = _any(is_legacy_batchedtensor, *tensors)
    product = fused_operator.by_torch if by_torch else fused_operator.fused_product
    return product(a, b, epilogue, operands, out, options)


gemm.explain = explain  # type: ignore[attr-defined]


def plan_for(
    a: Tensor,
    b: Tensor,
    *,
    tile: Tile | None = None,
    kernel: str | None = None,
    invariant: bool = False,
    epilogue: Function | None = None,
    **operands: Value,
) -> KernelPlan:
    """The plan that gemm runs with the same arguments.

    The tensors may be on the meta device. Raises as gemm does, and ValueError for an empty product.

    >>> a, b = torch.ones(24, 16, dtype=torch.float16), torch.ones(16, 8, dtype=torch.float16)
    >>> plan_for(a, b, tile=(128, 128, 64)).stages
    6
    """
    if is_sharded(a, b):
        raise TypeError(
            "a and b are DTensors: each rank has a plan; pass a.to_local() and b.to_local()"
        )
    function = epilogue_of(epilogue, operands, plan_for)
    tile = None if tile is None else checked_tile(tile)
    check_flag("invariant", invariant)
    found = named(kernel, device_of(a))
    check_chosen(a, kernel, tune=False)
    asked = request(a, b, function, operands, found.requirements.with_meta)
    requirements = found.requirements_for(a, *parts_of(a, b)).with_meta
    on_copies = kernel is None and not all(
        aligned(each, requirements) for each in (a, *parts_of(a, b))
    )
    if on_copies:
        requirements = found.requirements.with_meta  # copies have the widest alignment
    problem = asked.problem(a, b, requirements, invariant, on_copies)
    return found.plan(_checked_not_empty(problem), tile)


def _checked_not_empty(problem: Problem) -> Problem:
    """The problem; ValueError if no kernel computes it."""
    if problem.batch == 0:
        raise ValueError("the batch is empty, and needs no kernel; call gemm")
    if 0 in problem.mnk:
        raise ValueError(f"M, N, K = {problem.mnk}: an empty product needs no kernel; call gemm")
    return problem


def _differentiable(
    a: Tensor, b: Tensor, out: Tensor | None, *options: Tile | str | bool | None
) -> Tensor:
    """The product as a function that torch's transforms know: grad, jvp, vmap."""
    if out is not None:
        raise ValueError(NO_GRADIENT)
    plain = peek_interpreter_stack() is None and not _any(is_functorch_wrapped_tensor, a, b)
    product: Tensor = (apply_product if plain else Product.apply)(a, b, gemm, *options)
    return product


def _any(holds: Callable[[Tensor], bool], *tensors: Tensor | None) -> bool:
    return any(tensor is not None and holds(tensor) for tensor in tensors)


def _has_tangent(tensor: Tensor) -> bool:
    if is_functorch_wrapped_tensor(tensor):
        return True
    if is_legacy_batchedtensor(tensor):
        return False
    try:
        return forward_ad.unpack_dual(tensor).tangent is not None
    except RuntimeError:  # a batch of tangents: torch has no rule for it
        return True
