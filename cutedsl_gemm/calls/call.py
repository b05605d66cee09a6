"""What gemm does with tensors of one signature: worked out at the first call, then remembered.

signature → problem → plan → the executor, or the kernel compiled and bound to its device
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

from cutedsl_gemm.calls.copies import aligned_copies
from cutedsl_gemm.calls.on_device import on_device
from cutedsl_gemm.calls.run import Run, run_restrided, run_through_copy, run_transposed, runner
from cutedsl_gemm.inputs.aliasing import check_disjoint, span_bytes
from cutedsl_gemm.inputs.checks import (
    check_matrices_or_batches,
    check_memory,
    check_out,
    is_batch,
)
from cutedsl_gemm.inputs.problem import Problem, Requirements
from cutedsl_gemm.inputs.remember import remember
from cutedsl_gemm.inputs.tensors import (
    AlignmentError,
    aligned,
    allocator,
    check_call,
    column_major,
    device_of,
    empty_padded,
    fits,
    matrix_of,
    problem_of,
)
from cutedsl_gemm.inputs.transforms import check_not_jit_traced, untraced
from cutedsl_gemm.kernels.plan.kernel_plan import KernelPlan
from cutedsl_gemm.select.registry import DEFAULT, Kernel, named
from layouts.errors import brief

Tile: TypeAlias = tuple[int, int, int]
Call: TypeAlias = Callable[[Tensor, Tensor, Any], Tensor]  # (a, b, out or None) → out

_calls: dict[Any, Call] = {}


def call(
    a: Tensor,
    b: Tensor,
    tile: Tile | None,
    out: Tensor | None,
    kernel: str | None = None,
    tune: bool = False,
    invariant: bool = False,
    unaligned_out: bool = False,
) -> Call:
    """The call for these tensors, found in less than a microsecond if their signature is known.

    `tile` is one of `checked_tile`, since (128.0, …) has the hash of (128, …).

    It writes `out` in place. If `unaligned_out`, out may have any strides and any address: the
    kernel stores it in place if its rows or columns are contiguous, else in a padded copy of it.

    The signature holds what the plan depends on; each attribute costs 0.05 µs. The call itself
    refuses what the signature does not hold: tensors on another device of the same number (-1 is
    the CPU, and a tensor without memory), and an out of another shape. A negative view of 16-bit
    elements, the imaginary half of a conjugate, is refused for its address: never a multiple of
    4 bytes.
    """
    try:
        # fmt: off
        if out is None:
            signature: Any = (
                a.shape, a.stride(), b.shape, b.stride(), a.dtype, a.get_device(), tile, kernel,
                tune, invariant,
            )
        else:
            signature = (
                a.shape, a.stride(), b.shape, b.stride(), a.dtype, a.get_device(), tile, kernel,
                tune, invariant, out.stride(), unaligned_out,
            )
        # fmt: on
        return _calls[signature]
    except KeyError:
        pass
    except (AttributeError, TypeError, RuntimeError):
        signature = None  # an argument is not a dense tensor: `_make` raises with the reason
    check_not_jit_traced()
    on_copies = partial(_on_copies, tile, tune, invariant) if kernel is None else None
    check_chosen(a, kernel, tune)
    options = tune, invariant, unaligned_out
    made = _make(a, b, tile, out, named(kernel, device_of(a)), *options, on_copies)
    return made if signature is None else remember(_calls, signature, made)


@untraced
def _make(
    a: Tensor,
    b: Tensor,
    tile: Tile | None,
    out: Tensor | None,
    kernel: Kernel,
    tune: bool,
    invariant: bool,
    unaligned_out: bool,
    on_copies: Call | None,
) -> Call:
    check_matrices_or_batches(a, b, kernel.requirements)
    if out is not None:
        check_out(out, a, b)
    check_options(a, tile, kernel, tune, invariant)
    n = b.shape[-1]
    shape = *a.shape[:-1], n
    if prod(shape) * a.shape[-1] == 0:
        return partial(_empty, kernel.requirements)
    if one_by_one(a, kernel):
        return partial(_one_by_one, tile, invariant)
    tensors = (a, b) if out is None or unaligned_out else (a, b, out)
    requirements = kernel.requirements_for(*tensors)
    stored = _stored(out, n, requirements, unaligned_out)
    if requirements.stores_anywhere:
        requirements = replace(requirements, c_alignment=stored.alignment)
    needed = requirements, requirements, requirements.for_c
    if on_copies and not all(map(fits, tensors, needed)):
        return on_copies
    problem = problem_of(a, b, requirements, invariant)
    problem = replace(problem, c_alignment=stored.alignment)
    result = _result(a, shape, stored) if out is None or stored.through_copy else out
    matrices = problem.a, problem.b, matrix_of("out", result, requirements.for_c)
    pairs = zip(matrices, (a, b, result), strict=True)
    same_strides = all(matrix.stride == tensor.stride()[-2:] for matrix, tensor in pairs)

    def run(plan: KernelPlan) -> Run:
        run = runner(kernel, requirements, plan, a.device, invariant)
        if stored.transposed:
            run = run_transposed(run)
        if not same_strides:
            run = run_restrided(run, requirements, matrices)
        return run_through_copy(run, stored.transposed) if stored.through_copy else run

    problem = problem.transposed if stored.transposed else problem
    if tune:
        scratch = torch.empty_strided(shape, result.stride(), dtype=a.dtype, device=a.device)
        plan = tuned_plan(problem, a.device, lambda plan: partial(run(plan), a, b, scratch))
    else:
        plan = kernel.plan(problem, tile)
    if out is None:
        made = allocating(run(plan), requirements, allocator(a, *shape), on_copies)
    elif unaligned_out:
        made = writing(run(plan), replace(requirements, c_alignment=1), _spans(a, b, out))
    else:
        made = writing(run(plan), requirements, _spans(a, b, out), on_copies)
    return on_device(made, a.device)


def _spans(*tensors: Tensor) -> tuple[int, ...]:
    return tuple(map(span_bytes, tensors))


def one_by_one(a: Tensor, kernel: Kernel) -> bool:
    """Whether the products of a batch run one by one: there is one, or no kernel of batches."""
    return is_batch(a) and (a.shape[0] == 1 or kernel.name != DEFAULT)


def check_chosen(a: object, kernel: str | None, tune: bool) -> None:
    """ValueError if a is a batch, whose kernel is not left to the model."""
    if is_batch(a) and (kernel is not None or tune):
        option = f"kernel is {kernel!r}" if kernel is not None else "tune is True"
        raise ValueError(f"{option}, and a is a batch: the model chooses its plan; omit it")


def _one_by_one(
    tile: Tile | None, invariant: bool, a: Tensor, b: Tensor, out: Tensor | None
) -> Tensor:
    """The products of a batch, one launch or more for each."""
    if out is None:
        out = a.new_empty(*a.shape[:-1], b.shape[-1])
    else:
        check_out(out, a, b)  # the signature holds its strides, not its shape
        check_disjoint(out, a, b)
    for x, y, result in zip(a, b, out, strict=True):
        call(x, y, tile, result, None, False, invariant)(x, y, result)
    return out


class _Stored(NamedTuple):
    """How a kernel stores a result."""

    transposed: bool  # as Cᵀ = Bᵀ · Aᵀ: kernels write rows, and those of out are columns
    alignment: int  # of its row length, leading stride and address, in elements
    through_copy: bool  # in a padded tensor, which is then copied


def _stored(out: Tensor | None, n: int, requirements: Requirements, unaligned_out: bool) -> _Stored:
    """How a kernel with these requirements stores `out`, or a new result of n columns."""
    alignment, anywhere = requirements.alignment, requirements.stores_anywhere
    if out is None:
        whole = n % alignment == 0
        return _Stored(False, alignment if whole or not anywhere else 1, not (whole or anywhere))
    any_address = replace(requirements, alignment=1)
    aligned_rows = not unaligned_out and fits(out, requirements)
    contiguous = aligned_rows or fits(out, any_address)  # one mode of it
    transposed = column_major(out)
    if contiguous:
        needed = requirements if aligned_rows else any_address
        transposed = not matrix_of("out", out, needed).row_major
    if not anywhere:
        return _Stored(transposed, alignment, unaligned_out)
    if unaligned_out and not contiguous:
        return _Stored(transposed, alignment, True)
    whole = aligned_rows and out.shape[-2 if transposed else -1] % alignment == 0
    return _Stored(transposed, alignment if whole else 1, False)


def _result(like: Tensor, shape: tuple[int, ...], stored: _Stored) -> Tensor:
    """What the kernel writes, on meta: a new result, or the padded tensor before the copy."""
    meta = torch.empty(0, dtype=like.dtype, device="meta")
    new = partial(empty_padded, meta) if stored.through_copy else meta.new_empty
    *batch, m, n = shape
    return new((*batch, n, m)).mT if stored.transposed else new(shape)


def _on_copies(
    tile: Tile | None, tune: bool, invariant: bool, a: Tensor, b: Tensor, out: Tensor | None
) -> Tensor:
    """The product of tensors that no kernel accepts in place, by aligned copies of them.

    One launch copies a and b (docs/performance/notebook.md, "Any strides, by copies"). A result is
    copied only if the kernel cannot store it anywhere: before Hopper, or if no mode is contiguous.
    """
    requirements = named(None, a.device).requirements
    check_memory("a", a)
    check_memory("b", b)
    if out is not None:
        check_out(out, a, b)  # the signature holds its strides, not its shape
        check_disjoint(out, a, b)
    a, b = aligned_copies(a, b, requirements)
    unaligned_out = out is not None and not aligned(out, requirements)
    return call(a, b, tile, out, None, tune, invariant, unaligned_out)(a, b, out)


def tuned_plan(
    problem: Problem, device: torch.device, launch: Callable[[KernelPlan], Callable[[], object]]
) -> KernelPlan:
    """The fastest plan on the device; `launch(plan)` returns a launch of its kernel."""
    from cutedsl_gemm.select.tune import tuned

    with torch.cuda.device(device):
        return tuned(problem, torch.cuda.get_device_name(device), launch)


def check_flag(name: str, flag: object) -> None:
    """TypeError unless it is True or False."""
    if not isinstance(flag, bool):
        raise TypeError(f"{name} is {brief(flag)}: it must be True or False")


def check_options(
    a: Tensor, tile: Tile | None, kernel: Kernel, tune: object, invariant: object
) -> None:
    """TypeError unless flags are True or False; ValueError if there is nothing to measure."""
    check_flag("invariant", invariant)
    check_flag("tune", tune)
    if not tune:
        return
    if a.device.type != "cuda":
        raise ValueError(
            f"tune=True measures kernels on a GPU, and a is on {a.device}: omit tune, "
            "or pass CUDA tensors"
        )
    if tile is not None or kernel.name != DEFAULT:
        raise ValueError(
            f"tune=True chooses among the plans of sm90, and tile is {tile!r} and kernel "
            f"{kernel.name}: omit tile and kernel, or omit tune"
        )


def _empty(requirements: Requirements, a: Tensor, b: Tensor, out: Tensor | None) -> Tensor:
    """The product where an extent is 0: zeros, as torch's products are."""
    check_matrices_or_batches(a, b, requirements)
    if out is None:
        return a.new_zeros(*a.shape[:-1], b.shape[-1])
    check_out(out, a, b)
    return out.zero_()


def allocating(
    run: Run,
    requirements: Requirements,
    new: Callable[[Tensor], Tensor],
    on_copies: Call | None = None,
) -> Call:
    """The call that writes into a new tensor.

    The kernel's own checks cost nothing and cover what the signature does not hold, such as the
    dtype of b. So the kernel is launched first, and a message is looked for when it refuses. If the
    reason is an address, the product is `on_copies`.
    """

    def allocate(a: Tensor, b: Tensor, out: None) -> Tensor:
        result = new(a)
        if not (a.data_ptr() and b.data_ptr()):
            check_call(a, b, result, requirements)  # a kernel would read a fake tensor's null
        try:
            run(a, b, result)
        except Exception as refused:
            reason = _reason(refused, a, b, result, requirements)
        else:
            return result
        if on_copies and isinstance(reason, AlignmentError):
            return on_copies(a, b, None)
        raise reason from None

    return allocate


def writing(
    run: Run,
    requirements: Requirements,
    spans: tuple[int, ...],
    on_copies: Call | None = None,
) -> Call:
    """The call that writes into `out`, which shares no memory with a or b; see `allocating`.

    `spans` are the `span_bytes` of a, b and out. If the kernel stores to any address, the address
    check does not refuse a negative view, so its negative bit is checked here.
    """
    a_bytes, b_bytes, out_bytes = spans
    any_address = requirements.for_c.alignment == 1

    def write(a: Tensor, b: Tensor, out: Tensor) -> Tensor:
        a_start, b_start, start = a.data_ptr(), b.data_ptr(), out.data_ptr()
        if not (a_start and b_start and start) or (any_address and out.is_neg()):
            check_call(a, b, out, requirements)
        end = start + out_bytes
        if (start < a_start + a_bytes and a_start < end) or (
            start < b_start + b_bytes and b_start < end
        ):
            check_disjoint(out, a, b)
        try:
            run(a, b, out)
        except Exception as refused:
            reason = _reason(refused, a, b, out, requirements)
        else:
            torch.autograd.graph.increment_version(out)
            return out
        if on_copies and isinstance(reason, AlignmentError):
            return on_copies(a, b, out)
        raise reason from None

    return write


def _reason(
    refused: Exception, a: Tensor, b: Tensor, out: Tensor, requirements: Requirements
) -> Exception:
    """The error that `check_call` raises for tensors that a run refused; else `refused` itself."""
    try:
        check_call(a, b, out, requirements)
    except (TypeError, ValueError) as reason:
        return reason
    return refused
