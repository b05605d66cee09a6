"""What gemm does with tensors of one signature: worked out when first met, then remembered.

signature → problem → plan → the executor, or the kernel compiled and bound to its device
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor

from cutedsl_gemm.kernels.compile import build
from cutedsl_gemm.kernels.compile.progress import bar
from cutedsl_gemm.kernels.plan.kernel_plan import KernelPlan
from cutedsl_gemm.problem import (
    TMA,
    Matrix,
    Problem,
    Terms,
    agree,
    check,
    check_apart,
    check_out,
    device_of,
    lines,
    matrix,
    pose,
    reach,
)
from cutedsl_gemm.select.choose import checked_tile
from cutedsl_gemm.select.registry import DEFAULT, Kernel, named

Tile: TypeAlias = tuple[int, int, int]
Run: TypeAlias = Callable[[Tensor, Tensor, Tensor], None]  # (a, b, out)
Call: TypeAlias = Callable[[Tensor, Tensor, Any], Tensor]  # (a, b, out or None) → out

REMEMBERED = 4096  # signatures; where there are more, shapes change with every call
_met: dict[Any, Call] = {}


def call(
    a: Tensor,
    b: Tensor,
    tile: Tile | None,
    out: Tensor | None,
    kernel: str | None = None,
    tune: bool = False,
) -> Call:
    """The call for these tensors, found in less than a microsecond if their like was met before.

    The signature has what the choice depends on; every attribute costs a twentieth of a
    microsecond. What it leaves open is refused in the call: the device is a number, of which -1 is
    a CPU's, and that of a tensor without memory; the shape of out follows from those of a and b;
    half of a conjugate, which stands for its negative, starts at no multiple of 4 bytes.
    """
    if tile is not None:
        checked_tile(tile)  # each time: (128.0, …) would be found as (128, …)
    try:
        # fmt: off
        if out is None:
            signature: Any = (
                a.shape, a.stride(), b.shape, b.stride(), a.dtype, a.get_device(), tile, kernel,
                tune,
            )
        else:
            signature = (
                a.shape, a.stride(), b.shape, b.stride(), a.dtype, a.get_device(), tile, kernel,
                tune, out.stride(),
            )
        # fmt: on
        return _met[signature]
    except KeyError:
        pass
    except (AttributeError, TypeError, RuntimeError):
        signature = None  # not dense tensors, and the like: `_make` says what it is
    made = _make(a, b, tile, out, named(kernel, device_of(a)), tune)
    if len(_met) >= REMEMBERED:
        _met.clear()
    _met[signature] = made
    return made


def _make(
    a: Tensor, b: Tensor, tile: Tile | None, out: Tensor | None, kernel: Kernel, tune: bool
) -> Call:
    terms = kernel.terms
    agree(a, b, terms)
    (m, k), n = a.shape, b.shape[1]
    if out is not None:
        check_out(out, a, b, terms)
    _check_tune(tune, a, tile, kernel)
    terms = kernel.terms_for(a, b, *(() if out is None else (out,)))
    if m * n * k == 0:
        return partial(_empty, terms)
    problem = pose(a, b, terms)
    given = out is not None
    if out is None:
        out = lines(torch.empty(0, dtype=a.dtype, device="meta"), (m, n), terms.unit)
    written = matrix("out", out, terms)
    walked = (problem.a, problem.b, written)
    turned = not written.row_major  # out is column-major: outᵀ is row-major, and outᵀ = bᵀ · aᵀ
    if turned:
        problem = problem.turned
    as_they_are = all(
        seen.stride == tensor.stride() for seen, tensor in zip(walked, (a, b, out), strict=True)
    )

    def runner(plan: KernelPlan) -> Run:
        run = _runner(kernel, terms, plan, a.device)
        if turned:
            run = _turned(run)
        if given and (m if turned else n) % terms.piece:
            run = _in_lines_of_its_own(run)
        return run if as_they_are else _as_walked(run, terms, walked)

    if tune:
        own = torch.empty_strided((m, n), out.stride(), dtype=a.dtype, device=a.device)
        plan = _tuned(problem, a.device, lambda plan: partial(runner(plan), a, b, own))
    else:
        plan = kernel.plan(problem, tile)
    if given:
        return _into(runner(plan), terms, (reach(a), reach(b), reach(out)))
    return _anew(runner(plan), terms, (m, n))


def _tuned(
    problem: Problem, device: torch.device, launch: Callable[[KernelPlan], Callable[[], None]]
) -> KernelPlan:
    from cutedsl_gemm.select.tune import tuned

    with torch.cuda.device(device):
        return tuned(problem, torch.cuda.get_device_name(device), launch)


def _check_tune(tune: object, a: Tensor, tile: Tile | None, kernel: Kernel) -> None:
    """TypeError unless it is True or False; ValueError where there is nothing to measure."""
    if tune not in (False, True):
        raise TypeError(f"tune is {tune!r}: it must be True or False")
    if not tune:
        return
    if a.device.type != "cuda":
        raise ValueError(
            f"tune=True measures kernels on a GPU, and a is on {a.device}: leave tune away, "
            "or pass CUDA tensors"
        )
    if tile is not None or kernel.name != DEFAULT:
        raise ValueError(
            f"tune=True chooses among the plans of sm90, and tile is {tile!r} and the kernel "
            f"{kernel.name}: leave tile and kernel away, or tune"
        )


def _empty(terms: Terms, a: Tensor, b: Tensor, out: Tensor | None) -> Tensor:
    """No product to sum, or none to write: zeros, as torch.mm gives."""
    agree(a, b, terms)
    if out is None:
        return lines(a, (a.shape[0], b.shape[1]), terms.unit).zero_()
    check_out(out, a, b, terms)
    return out.zero_()


def _anew(run: Run, terms: Terms, shape: tuple[int, int]) -> Call:
    """`run` into a result of its own.

    What the signature leaves open (the dtype of b, say) the kernel's own checks refuse in no time;
    they are asked first, and a sentence is looked for when they have refused.
    """
    (m, n), unit = shape, terms.unit

    def anew(a: Tensor, b: Tensor, out: None) -> Tensor:
        result = lines(a, shape, unit) if n % unit else a.new_empty(m, n)
        if not (a.data_ptr() and b.data_ptr()):
            check(a, b, result, terms)  # a fake tensor, which the kernel would take for real
        try:
            run(a, b, result)
        except Exception as refused:
            raise _sentence(refused, a, b, result, terms) from None
        return result

    return anew


def _into(run: Run, terms: Terms, bytes_of: tuple[int, int, int]) -> Call:
    """`run` into `out`, whose memory nothing else reads; checked as `_anew` is."""
    a_bytes, b_bytes, out_bytes = bytes_of

    def into(a: Tensor, b: Tensor, out: Tensor) -> Tensor:
        at, bt, to = a.data_ptr(), b.data_ptr(), out.data_ptr()
        if not (at and bt and to):
            check(a, b, out, terms)
        end = to + out_bytes
        if (to < at + a_bytes and at < end) or (to < bt + b_bytes and bt < end):
            check_apart(out, a, b)
        try:
            run(a, b, out)
        except Exception as refused:
            raise _sentence(refused, a, b, out, terms) from None
        torch.autograd.graph.increment_version(out)
        return out

    return into


def _sentence(refused: Exception, a: Tensor, b: Tensor, out: Tensor, terms: Terms) -> Exception:
    """What `check` says of tensors that a run has refused; `refused` where it says nothing."""
    try:
        check(a, b, out, terms)
    except (TypeError, ValueError) as sentence:
        return sentence
    return refused


def _as_walked(run: Run, terms: Terms, walked: tuple[Matrix, ...]) -> Run:
    """`run` with the strides that TMA is told; a tensor's own differ where an extent is 1."""

    def as_walked(a: Tensor, b: Tensor, out: Tensor) -> None:
        check(a, b, out, terms)  # an out of another shape would be walked as if it had this one
        pairs = zip((a, b, out), walked, strict=True)
        run(*(tensor.as_strided(seen.shape, seen.stride) for tensor, seen in pairs))

    return as_walked


def _in_lines_of_its_own(run: Run) -> Run:
    """`run` into new memory, and from there into `out`: what lies beside it is another's."""

    def copied(a: Tensor, b: Tensor, out: Tensor) -> None:
        row_major = out.stride(1) == 1
        own = lines(out, (out if row_major else out.mT).shape, TMA.unit)
        run(a, b, own if row_major else own.mT)
        out.copy_(own if row_major else own.mT)

    return copied


def _turned(run: Run) -> Run:
    def turned(a: Tensor, b: Tensor, out: Tensor) -> None:
        run(b.mT, a.mT, out.mT)

    return turned


def _runner(kernel: Kernel, terms: Terms, plan: KernelPlan, device: torch.device) -> Run:
    if device.type == "cpu":
        return partial(_execute, terms, plan)
    return _launcher(kernel, plan, device)


def _execute(terms: Terms, plan: KernelPlan, a: Tensor, b: Tensor, out: Tensor) -> None:
    check(a, b, out, terms)
    with bar("executor") as tell:
        plan.execute(a, b, out, tell)


def _launcher(kernel: Kernel, plan: KernelPlan, device: torch.device) -> Run:
    """The compiled kernel on its device and on torch's current stream there."""
    capability = torch.cuda.get_device_capability(device)
    arch = kernel.arch(capability)
    if arch is None:
        major, minor = capability
        needs = "Hopper, 9.0 (H100, H200)" if kernel.family == "sm90" else "8.0 and later"
        raise RuntimeError(
            f"a and b are on {torch.cuda.get_device_name(device)}, compute capability "
            f"{major}.{minor}: {kernel.name} runs on {needs}; "
            "elsewhere pass CPU tensors, or use torch.mm"
        )
    compiled = build.load(plan, arch)
    sms = torch.cuda.get_device_properties(device).multi_processor_count

    def launch(a: Tensor, b: Tensor, out: Tensor) -> None:
        compiled(a, b, out, sms)

    def launch_there(a: Tensor, b: Tensor, out: Tensor) -> None:
        if not a.device == b.device == out.device:
            raise ValueError("a, b and out must be on one device")
        with torch.cuda.device(device):
            compiled(a, b, out, sms)

    def launch_resolved(a: Tensor, b: Tensor, out: Tensor) -> None:
        check_out(out, a, b, kernel.terms)  # which may not stand for its negative
        launch_there(a.resolve_neg(), b.resolve_neg(), out)

    if kernel.family == "simt":  # whose float32 may be half of a conjugate
        return launch_resolved
    return launch if torch.cuda.device_count() == 1 else launch_there
