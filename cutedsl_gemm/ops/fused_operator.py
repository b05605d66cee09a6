"""gemm with an epilogue as two torch operators, which torch.compile and torch.export trace.

The epilogue is traced while the graph is, and its text is an argument of the operator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

import torch
from torch import Tensor

from cutedsl_gemm.calls.fused import check_epilogue, composed, compute
from cutedsl_gemm.calls.results import Results, empty
from cutedsl_gemm.calls.signature import Options
from cutedsl_gemm.inputs.checks import check_matrices_or_batches
from cutedsl_gemm.inputs.operands import Value, check_operand
from cutedsl_gemm.inputs.problem import dtype_name
from cutedsl_gemm.inputs.request import Fixed, Function, in_parts, parts_of
from cutedsl_gemm.inputs.tensors import is_one, is_sharded
from cutedsl_gemm.inputs.transforms import tracing
from cutedsl_gemm.kernels.epilogue.derivative import Stored, with_stored
from cutedsl_gemm.kernels.epilogue.expression import Epilogue, EpilogueOperand, Mode, ShapeError
from cutedsl_gemm.kernels.epilogue.text import from_text, to_text
from cutedsl_gemm.kernels.epilogue.traced import traced
from cutedsl_gemm.ops.derivatives import NO_GRADIENT
from cutedsl_gemm.ops.fused_derivatives import Backward, save, saved
from cutedsl_gemm.ops.library import register_flops
from cutedsl_gemm.ops.operator import check_by_torch, check_given, flops, optional_tile
from cutedsl_gemm.select.registry import named

# What tracing needs to know of an operand: its name; for each extent, whether it is not 1;
# whether an extent is 1 and the shape is still that of C; its dtype.
Kind = tuple[Any, ...]
Counts = tuple[int, int]  # accumulators, and dimensions of C


def fused_product(
    a: Tensor,
    b: Tensor,
    function: Function,
    operands: Mapping[str, Value],
    out: Results | None,
    options: Options,
) -> Results:
    """What `api.fused_product` is inside a traced graph, and for tensors without memory."""
    if isinstance(function, Fixed):
        function = function.function
    if not (tracing() or is_sharded(a, b)):
        _check(a, b, function, operands, out, options)
    tensors = [each for each in operands.values() if isinstance(each, Tensor)]
    numbers = [float(each) for each in operands.values() if not isinstance(each, Tensor)]
    kinds = _kinds(a, b, operands)
    counts = _counts(a, b)
    differentiable = torch.is_grad_enabled() and True in [
        each.requires_grad for each in (a, b, *tensors, *(out or ()))
    ]
    text = _text(function, kinds, counts, differentiable and out is None)
    if out is not None:
        if differentiable:
            raise ValueError(NO_GRADIENT)
        _writing(a, b, tensors, numbers, list(out), text, *options)
        return out
    results = _allocating(a, b, tensors, numbers, text, *options)
    return tuple(results[: _result_count(function, kinds, counts)])


def _check(
    a: Tensor,
    b: Tensor,
    function: Any,
    operands: Mapping[str, Value],
    out: Results | None,
    options: Options,
) -> None:
    """TypeError or ValueError as `compute` raises them for tensors with memory."""
    first, *_ = parts_of(a, b)
    check_given(a, first, options)
    shape = *a.shape[:-1], b.shape[-1]
    for name, value in operands.items():
        check_operand(name, value, shape, a.device)
    epilogue = _epilogue(function, _kinds(a, b, operands), _counts(a, b))
    check_epilogue(epilogue, shape, a, out, options)


def by_torch(
    a: Tensor,
    b: Tensor,
    function: Function,
    operands: Mapping[str, Value],
    out: Results | None,
    options: Options,
) -> Results:
    """The function of torch's products in fp32: see `operator.by_torch`."""
    if isinstance(function, Fixed):
        function = function.function
    parts, shape = parts_of(a, b), (*a.shape[:-1], b.shape[-1])
    check_by_torch(a, parts[0], options)
    dtypes = _dtypes(function, _kinds(a, b, operands), _counts(a, b))
    values = {name: _as_operand(each, shape) for name, each in operands.items()}
    with torch.autocast(a.device.type, enabled=False):
        accumulators = tuple([a.float() @ part.float() for part in parts])
        if isinstance(function, Epilogue):
            given = [values[each.name] for each in function.operands]
            results = composed(function, accumulators, given, a.dtype)
        else:
            made = function(*accumulators, **values)
            made = made if isinstance(made, (tuple, list)) else (made,)
            pairs = zip(made, dtypes, strict=True)
            results = tuple([each.to(dtype or a.dtype) for each, dtype in pairs])
    if out is None:
        return results
    return tuple([into.copy_(each) for into, each in zip(out, results, strict=True)])


def _as_operand(value: Value, shape: tuple[int, ...]) -> Value:
    """What a kernel computes with: fp32, over C."""
    return value.float().expand(shape) if isinstance(value, Tensor) else value


def _counts(a: Tensor, b: Tensor) -> Counts:
    return 2 if in_parts(a, b) else 1, a.ndim


def _kinds(a: Tensor, b: Tensor, operands: Mapping[str, Value]) -> tuple[Kind, ...]:
    shape = *a.shape[:-1], b.shape[-1]
    return tuple([_kind(name, each, shape) for name, each in operands.items()])


def _kind(name: str, value: Value, shape: tuple[int, ...]) -> Kind:
    if isinstance(value, Tensor):
        # decisions, since a symbolic comparison is no constant of the graph
        wide = tuple([False if is_one(extent) else True for extent in value.shape])  # noqa: SIM211
        whole = True if False in wide and value.shape == shape else False  # noqa: SIM210
        return name, wide, whole, value.dtype
    return name, None, False, None


@torch.compiler.assume_constant_result
def _text(function: Any, kinds: tuple[Kind, ...], counts: Counts, differentiable: bool) -> str:
    """The text of the epilogue, which stores the accumulators if a derivative may need them."""
    epilogue = _epilogue(function, kinds, counts)
    return to_text(_stored(epilogue).epilogue if differentiable else epilogue)


@torch.compiler.assume_constant_result
def _dtypes(function: Any, kinds: tuple[Kind, ...], counts: Counts) -> list[torch.dtype | None]:
    """The dtypes of what the function returns; None is that of a."""
    for name, _, _, dtype in kinds:
        if dtype is not None:
            check_operand(name, torch.empty((), dtype=dtype), (1, 1), torch.device("cpu"))
    names = [
        "float32" if each.reduction else each.dtype
        for each in _epilogue(function, kinds, counts).results
    ]
    return [None if name is None else getattr(torch, name) for name in names]


@torch.compiler.assume_constant_result
def _result_count(function: Any, kinds: tuple[Kind, ...], counts: Counts) -> int:
    """The number of results that the function returns."""
    return len(_epilogue(function, kinds, counts).results)


def _epilogue(function: Any, kinds: tuple[Kind, ...], counts: Counts) -> Epilogue:
    if isinstance(function, Epilogue):
        return function
    try:
        return traced(function, tuple([_operand(kind) for kind in kinds]), *counts)
    except ShapeError:  # as in `request`
        whole = tuple([_operand(kind, as_whole=True) for kind in kinds])
        return traced(function, whole, *counts)


def _operand(kind: Kind, as_whole: bool = False) -> EpilogueOperand:
    """An operand as far as its epilogue depends on it; `fused` finds the rest in the tensor."""
    name, shape, whole, dtype = kind
    if shape is None:
        return EpilogueOperand(name, by_value=True)
    batched, *wide = (False, False, False, *shape)[-3:]
    if whole and as_whole:
        wide = [True, True]
    modes = tuple(mode for mode, kept in zip(get_args(Mode), wide, strict=True) if kept)
    return EpilogueOperand(name, modes, dtype_name(dtype), batched=batched)


def _stored(epilogue: Epilogue) -> Stored:
    """The epilogue that stores what the derivative of any operand may need."""
    tensors = (i for i, operand in enumerate(epilogue.operands) if not operand.by_value)
    return with_stored(epilogue, tuple(tensors))


def _values(epilogue: Epilogue, tensors: Sequence[Any], numbers: Sequence[float]) -> list[Any]:
    """Tensors and numbers in the order of the operands."""
    queues = {False: iter(tensors), True: iter(numbers)}
    return [next(queues[operand.by_value]) for operand in epilogue.operands]


def _run(
    a: Tensor,
    b: Tensor,
    tensors: Sequence[Tensor],
    numbers: Sequence[float],
    epilogue: str,
    out: Results | None,
    tile: Sequence[int] | None,
    *options: Any,
) -> Results:
    found = from_text(epilogue)
    pairs = zip(found.operands, _values(found, tensors, numbers), strict=True)
    values = {operand.name: each for operand, each in pairs}
    asked = Options(optional_tile(tile), *options)
    return compute(a, b, found, values, out, asked)


@torch.library.custom_op("cutedsl_gemm::fused", mutates_args=())
def _allocating(
    a: Tensor,
    b: Tensor,
    operands: Sequence[Tensor],
    numbers: Sequence[float],
    epilogue: str,
    tile: Sequence[int] | None,
    kernel: str | None,
    tune: bool,
    invariant: bool,
) -> list[Tensor]:
    return [*_run(a, b, operands, numbers, epilogue, None, tile, kernel, tune, invariant)]


@torch.library.custom_op("cutedsl_gemm::fused_out", mutates_args=("out",))
def _writing(
    a: Tensor,
    b: Tensor,
    operands: Sequence[Tensor],
    numbers: Sequence[float],
    out: Sequence[Tensor],
    epilogue: str,
    tile: Sequence[int] | None,
    kernel: str | None,
    tune: bool,
    invariant: bool,
) -> None:
    _run(a, b, operands, numbers, epilogue, tuple(out), tile, kernel, tune, invariant)


@_allocating.register_fake
def _fake(
    a: Tensor,
    b: Tensor,
    operands: Sequence[Tensor],
    numbers: Sequence[float],
    epilogue: str,
    tile: Sequence[int] | None,
    kernel: str | None,
    tune: bool,
    invariant: bool,
) -> list[Tensor]:
    optional_tile(tile)
    first, *_ = parts_of(a, b)
    check_matrices_or_batches(a, first, named(kernel, a.device).requirements.with_meta)
    shape = *a.shape[:-1], b.shape[-1]
    for each in operands:
        each.expand(shape)
    return [empty(each, shape, a)(a) for each in from_text(epilogue).results]


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: Sequence[Tensor]) -> None:
    a, b, tensors, numbers, epilogue, tile, *options = inputs
    ctx.kept = _stored(from_text(epilogue))
    ctx.options = Options(None, *options)
    if len(output) < len(ctx.kept.epilogue.results):  # of a graph that was traced under no_grad
        with torch.no_grad():
            text = to_text(ctx.kept.epilogue)
            output = _allocating(a, b, tensors, numbers, text, tile, *options)
    values = _values(ctx.kept.epilogue, tensors, numbers)
    save(ctx, a, b, values, output, ctx.needs_input_grad[1])


def _backward(ctx: Any, grads: Sequence[Tensor | None]) -> tuple[Any, ...]:
    a, b, values, stored = saved(ctx)
    epilogue = ctx.kept.epilogue
    needs_a, needs_b, needs_tensors, *_ = ctx.needs_input_grad
    needs = _values(epilogue, needs_tensors or (), [False] * len(values))
    backward = Backward(ctx.kept, ctx.c, _plain, ctx.options, (needs_a, needs_b, *needs))
    of_a, of_b, *of_values = backward(a, b, values, stored, grads)
    pairs = zip(epilogue.operands, of_values, strict=True)
    of_tensors = [gradient for operand, gradient in pairs if not operand.by_value]
    # as torch flattens these lists
    of_numbers: list[None] | None = None if len(of_tensors) < len(of_values) else []
    return of_a, of_b, of_tensors, of_numbers, *[None] * 5


def _plain(a: Tensor, b: Tensor, kernel: str | None, tune: bool, invariant: bool) -> Tensor:
    product: Tensor = torch.ops.cutedsl_gemm.gemm(a, b, None, kernel, tune, invariant)
    return product


_allocating.register_autograd(_backward, setup_context=_setup_context)
register_flops(flops, torch.ops.cutedsl_gemm.fused, torch.ops.cutedsl_gemm.fused_out)
