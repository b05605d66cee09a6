"""gemm with an epilogue: planned at the first call of a signature, then remembered.

signature → request → problem → plan → the executor, or the kernel; and around it

    operand ─ read ▶ what the kernel reads        result ◀ finish ─ what the kernel stores
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

from cutedsl_gemm.calls.call import check_chosen, check_options, one_by_one, tuned_plan
from cutedsl_gemm.calls.copies import aligned_copies
from cutedsl_gemm.calls.on_device import on_device
from cutedsl_gemm.calls.results import (
    Results,
    Slot,
    c_alignment,
    check_results,
    empty,
    in_columns,
    slot,
)
from cutedsl_gemm.calls.run import fused_runner
from cutedsl_gemm.calls.signature import DEFAULTS, Options, Values, remembered
from cutedsl_gemm.inputs.aliasing import check_disjoint, sharing
from cutedsl_gemm.inputs.checks import check_memory
from cutedsl_gemm.inputs.operands import Value
from cutedsl_gemm.inputs.problem import Matrix, Requirements
from cutedsl_gemm.inputs.remember import REMEMBERED
from cutedsl_gemm.inputs.request import (
    Function,
    Request,
    in_parts,
    parts_of,
    readable,
    readable_copy,
    request,
)
from cutedsl_gemm.inputs.tensors import aligned, aligned_copy, check_address, device_of
from cutedsl_gemm.inputs.transforms import untraced
from cutedsl_gemm.kernels.epilogue.evaluate import dimension, evaluate, finish
from cutedsl_gemm.kernels.epilogue.expression import Epilogue, EpilogueOperand, Instruction, Result
from cutedsl_gemm.kernels.plan.kernel_plan import KernelPlan
from cutedsl_gemm.select.registry import Kernel, named

FusedCall: TypeAlias = Callable[[Tensor, Tensor, Values, Results | None], Results]


class Fused(NamedTuple):
    """A remembered call: run(a, b, operands, out or None) → results."""

    epilogue: Epilogue
    run: FusedCall


_calls: dict[Any, Fused] = {}
_epilogues: dict[Any, Epilogue] = {}


def fused(
    a: Tensor,
    b: Tensor,
    function: Function,
    operands: Values,
    out: Results | None = None,
    options: Options = DEFAULTS,
) -> Fused:
    """The call for these arguments; `out`, if given, has a tensor for each result.

    The signature holds all that the call depends on, except which tensors share memory: each call
    checks that.
    """
    return remembered(_calls, _make, a, b, function, operands, out, options)


def compute(
    a: Tensor,
    b: Tensor,
    function: Function,
    operands: Values,
    out: Results | None = None,
    options: Options = DEFAULTS,
) -> Results:
    """The results for these arguments, written to `out` if it is given."""
    return fused(a, b, function, operands, out, options).run(a, b, operands, out)


def bound(a: Tensor, b: Tensor, function: Function, operands: Values, options: Options) -> Epilogue:
    """The epilogue of these operands. No plan is made for it."""
    return remembered(_epilogues, _bind, a, b, function, operands, None, options)


def composed(
    epilogue: Epilogue, accumulators: Results, values: Sequence[Value], dtype: torch.dtype
) -> Results:
    """The results by torch's own functions, of accumulators (M, N) or (L, M, N) in fp32.

    `dtype` is that of A and B.

    >>> composed(Epilogue(), (torch.ones(2, 3),), [], torch.float16)[0].sum()
    tensor(6., dtype=torch.float16)
    """
    made = evaluate(epilogue, accumulators, values)
    pairs = zip(epilogue.results, made, strict=True)
    return tuple(finish(result, value, dtype) for result, value in pairs)


def _bind(
    a: Tensor, b: Tensor, function: Function, operands: Values, out: None, options: Options
) -> Epilogue:
    _check_memory(operands.items())
    kernel = named(options.kernel, device_of(a))
    return request(a, b, function, operands, kernel.requirements).epilogue


@untraced
def _make(
    a: Tensor,
    b: Tensor,
    function: Function,
    operands: Values,
    out: Results | None,
    options: Options,
) -> Fused:
    kernel = named(options.kernel, device_of(a))
    _check_memory(operands.items())
    asked = request(a, b, function, operands, kernel.requirements)
    check_chosen(a, options.kernel, options.tune)
    check_options(a, options.tile, kernel, options.tune, options.invariant)
    epilogue, shape = asked.epilogue, asked.shape
    check_epilogue(epilogue, shape, a, out, options)
    _check_memory((("a", a), ("b", b), *zip(epilogue.result_names, out or (), strict=False)))
    if 0 in (*a.shape, *shape):
        return Fused(epilogue, partial(_empty, epilogue, shape))
    if one_by_one(a, kernel):
        return Fused(epilogue, partial(_one_by_one, epilogue, shape, options))
    if epilogue.accumulators > 1 and kernel.family != "sm90":
        return Fused(epilogue, partial(_one_after_the_other, epilogue, options))
    read = kernel.requirements
    if options.kernel is None and not (aligned(a, read) and readable(a, b, read)):
        return Fused(epilogue, partial(_on_copies, read, epilogue, options))
    if out is not None and in_columns(epilogue, out):
        run: FusedCall = partial(_transposed, epilogue, shape, options)
    else:
        run = _planned(a, b, asked, operands, out, kernel, options)
    return Fused(epilogue, run if out is None else partial(_writing, epilogue, options, run))


def _check_memory(tensors: Iterable[tuple[str, object]]) -> None:
    """ValueError unless the dense tensors among these have memory. A meta tensor need not."""
    for name, tensor in tensors:
        if not isinstance(tensor, Tensor) or tensor.layout != torch.strided:
            continue
        if tensor.numel() and tensor.device.type != "meta":
            check_memory(name, tensor)


def check_epilogue(
    epilogue: Epilogue, shape: tuple[int, ...], a: Tensor, out: Results | None, options: Options
) -> None:
    """TypeError or ValueError unless C has these results, and `out` can hold them."""
    _check_invariant(epilogue, options)
    if out is not None:
        check_results(out, epilogue, shape, a)
    _check_reductions(epilogue, shape)


def _check_invariant(epilogue: Epilogue, options: Options) -> None:
    """ValueError for an invariant sum over N: its order depends on the tile, and that on M."""
    for name, result in zip(epilogue.result_names, epilogue.results, strict=True):
        if options.invariant and result.reduction == "sum" and result.over == "N":
            raise ValueError(
                f"invariant=True, and {name} is a sum over N: its order depends on the tile, which "
                "M may change; return the value and sum it with torch, or omit invariant"
            )


def _check_reductions(epilogue: Epilogue, shape: tuple[int, ...]) -> None:
    """ValueError for the largest or smallest of no elements."""
    for name, result in zip(epilogue.result_names, epilogue.results, strict=True):
        extent = shape[dimension(result.over)] if result.over else 1
        if result.reduction in ("amax", "amin") and extent == 0:
            raise ValueError(
                f"{name} is {result.reduction} over {result.over}, and C has shape {shape}: "
                f"{result.over} must be at least 1"
            )


def _planned(
    a: Tensor,
    b: Tensor,
    asked: Request,
    operands: Values,
    out: Results | None,
    kernel: Kernel,
    options: Options,
) -> FusedCall:
    """The call of the plan for tensors that a kernel reads in place."""
    epilogue, shape = asked.epilogue, asked.shape
    requirements = kernel.requirements_for(a, *parts_of(a, b))
    for_c = replace(requirements, alignment=c_alignment(epilogue, out, shape, requirements))
    found = asked.problem(a, b, requirements, options.invariant)
    found = replace(found, c_alignment=for_c.alignment)
    for name, tensor in (("a", a), ("b", b)):
        check_address(name, tensor, requirements)

    def run(plan: KernelPlan) -> FusedCall:
        outs: Sequence[Tensor | None] = out or [None] * len(epilogue.results)
        pairs = zip(epilogue.results, outs, strict=True)
        slots = [slot(result, each, shape, plan, for_c) for result, each in pairs]
        launch = fused_runner(kernel, plan, epilogue, a.device, options.invariant)
        return _run(launch, asked, slots, a, _as_strided(a, found.a), _as_strided(b, found.b))

    if not options.tune:
        return run(kernel.plan(found, options.tile))
    new = on_device(lambda: tuple(empty(each, shape, a)(a) for each in epilogue.results), a.device)
    scratch = new() if out is None else tuple(torch.empty_like(each) for each in out)

    def launch(plan: KernelPlan) -> Callable[[], object]:
        return partial(run(plan), a, b, operands, scratch)

    return run(tuned_plan(found, a.device, launch))


def _run(
    launch: Callable[..., None],
    asked: Request,
    slots: list[Slot],
    a: Tensor,
    as_a: Callable[[Tensor], Tensor] | None,
    as_b: Callable[[Tensor], Tensor] | None,
) -> FusedCall:
    """The call of a launch: a, b and the operands as the kernel reads them, results in slots."""
    reads = [(each.operand.name, each.read) for each in asked.bound]
    news = [each.new(a) for each in slots]
    in_place = all(each.stored is None for each in slots)

    def call(a: Tensor, b: Tensor, values: Values, out: Results | None) -> Results:
        results = tuple([new(a) for new in news]) if out is None else out
        a = a if as_a is None else as_a(a)
        b = b if as_b is None else as_b(b)
        operands = tuple(
            [values[name] if read is None else read(values[name]) for name, read in reads]
        )
        if in_place:
            launch(a, b, operands, results)
        else:
            _store(partial(launch, a, b, operands), slots, results)
        return results

    return on_device(call, a.device)


def _store(launch: Callable[[Results], None], slots: list[Slot], results: Results) -> None:
    """Launch a kernel that stores to the slots of the results."""
    pairs = [*zip(slots, results, strict=True)]
    stored = tuple([of if each.stored is None else each.stored(of) for each, of in pairs])
    launch(stored)
    for (each, result), kept in zip(pairs, stored, strict=True):
        if each.finish is not None:
            each.finish(result, kept)


def _as_strided(tensor: Tensor, matrix: Matrix) -> Callable[[Tensor], Tensor] | None:
    """How a kernel reads a, or b; None: as it is.

    A mode of extent 1 has the stride of the matrix.
    """
    *before, _, _ = tensor.shape
    shape = (*before, *matrix.shape)
    stride = (*tensor.stride()[: len(before)], *matrix.stride)
    if stride == tensor.stride() and not tensor.is_neg():
        return None
    return lambda tensor: tensor.as_strided(shape, stride).resolve_neg()


def _empty(
    epilogue: Epilogue,
    shape: tuple[int, ...],
    a: Tensor,
    b: Tensor,
    values: Values,
    out: Results | None,
) -> Results:
    """The results where an extent is 0: the accumulators are zeros, if there are any."""
    zeros = (a.new_zeros(shape, dtype=torch.float32),) * epilogue.accumulators
    known = [values[each.name] for each in epilogue.operands]
    made = composed(epilogue, zeros, known, a.dtype)
    # a result may be an operand, or another result
    results = tuple([each.clone(memory_format=torch.contiguous_format) for each in made])
    if out is None:
        return results
    for tensor, result in zip(out, results, strict=True):
        tensor.copy_(result)
    return out


ACCUMULATOR = Epilogue(results=(Result(0, "float32"),))


def accumulator(a: Tensor, b: Tensor, options: Options) -> Tensor:
    """a · b in fp32, as an epilogue takes it."""
    (made,) = compute(a, b, ACCUMULATOR, {}, None, options)
    return made


def _one_after_the_other(
    epilogue: Epilogue,
    options: Options,
    a: Tensor,
    b: Tensor,
    values: Values,
    out: Results | None,
) -> Results:
    """The results of two accumulators by a kernel of one: the other is an operand, in fp32."""
    first, second = parts_of(a, b)
    other = accumulator(a, second, options)
    given = {**values, SECOND: other}
    one = _of_one_accumulator(epilogue)
    return compute(a, first, one, given, out, options)


SECOND = "acc 1"  # no name that a caller passes


@lru_cache(REMEMBERED)
def _of_one_accumulator(epilogue: Epilogue) -> Epilogue:
    """The epilogue with its second accumulator as an operand.

    >>> gate = Instruction("acc", value=0), Instruction("acc", value=1), Instruction("mul", (0, 1))
    >>> print(_of_one_accumulator(Epilogue(gate, (), (Result(2),), 2)))
    C      acc * acc 1
    acc 1  (M,N):(ld,1)  float32, matrix
    """
    operand = Instruction("operand", value=len(epilogue.operands))
    second = Instruction("acc", value=1)
    program = tuple(operand if each == second else each for each in epilogue.program)
    operands = *epilogue.operands, EpilogueOperand(SECOND, ("M", "N"))
    return Epilogue(program, operands, epilogue.results)


def _on_copies(
    requirements: Requirements,
    epilogue: Epilogue,
    options: Options,
    a: Tensor,
    b: Tensor,
    values: Values,
    out: Results | None,
) -> Results:
    """The results of tensors that no kernel reads in place, by aligned copies of them."""
    if in_parts(a, b):
        a = a if aligned(a, requirements) else aligned_copy(a)
        b = b if readable(a, b, requirements) else readable_copy(b)
    else:
        a, b = aligned_copies(a, b, requirements)
    return compute(a, b, epilogue, values, out, options)


def _one_by_one(
    epilogue: Epilogue,
    shape: tuple[int, ...],
    options: Options,
    a: Tensor,
    b: Tensor,
    values: Values,
    out: Results | None,
) -> Results:
    """The results of a batch, one launch or more for each of its products."""
    results = tuple(empty(each, shape, a)(a) for each in epilogue.results) if out is None else out
    for i, x in enumerate(a):
        of_each = {name: _of_matrix(value, i) for name, value in values.items()}
        outs = tuple([each[i] for each in results])
        compute(x, b[..., i, :, :], epilogue, of_each, outs, options)
    return results


def _of_matrix(value: Value, i: int) -> Value:
    """What an operand of a batch is for matrix i."""
    if isinstance(value, Tensor) and value.ndim == 3:
        return value[i if value.shape[0] > 1 else 0]
    return value


def _transposed(
    epilogue: Epilogue,
    shape: tuple[int, ...],
    options: Options,
    a: Tensor,
    b: Tensor,
    values: Values,
    out: Results,
) -> Results:
    """Column-major results, as the rows of Cᵀ = Bᵀ · Aᵀ."""
    turned = {
        name: each.expand(shape).mT if isinstance(each, Tensor) else each
        for name, each in values.items()
    }
    rows = tuple(each.mT if each.ndim == len(shape) else each for each in out)
    compute(b.mT, a.mT, epilogue.transposed, turned, rows, options)
    return out


def _writing(
    epilogue: Epilogue,
    options: Options,
    run: FusedCall,
    a: Tensor,
    b: Tensor,
    values: Values,
    out: Results,
) -> Results:
    """`run` into tensors that share no memory with each other, nor with a or b.

    An operand that shares memory with one is copied: gemm may add to a matrix in place.
    """
    tensors = {name: each for name, each in values.items() if isinstance(each, Tensor)}
    reads = a, *parts_of(a, b)
    for i, j in sharing(out, reads):
        check_disjoint(out[i], a, reads[j])
    for i, name in enumerate(epilogue.result_names):
        if [*sharing(out[i : i + 1], out[:i])]:
            raise ValueError(
                f"{name} shares memory with another result: give each memory of its own"
            )
    if shared := {j for _, j in sharing(out, [*tensors.values()])}:
        copies = {name: tensors[name].clone() for j, name in enumerate(tensors) if j in shared}
        return compute(a, b, epilogue, {**values, **copies}, out, options)
    run(a, b, values, out)
    for tensor in out:
        torch.autograd.graph.increment_version(tensor)
    return out
