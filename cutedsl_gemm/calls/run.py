"""How a plan runs on tensors: the executor on a CPU, the compiled kernel on a GPU; and adapters.

An adapter makes a run for tensors that the plan itself does not take as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor

from cutedsl_gemm.calls.copies import copy
from cutedsl_gemm.inputs.checks import check_out
from cutedsl_gemm.inputs.operands import Value
from cutedsl_gemm.inputs.problem import Matrix, Requirements
from cutedsl_gemm.inputs.tensors import check_call, empty_padded
from cutedsl_gemm.inputs.transforms import untraced
from cutedsl_gemm.kernels.compile import build
from cutedsl_gemm.kernels.compile.progress import bar
from cutedsl_gemm.kernels.device.occupancy import multiprocessors
from cutedsl_gemm.kernels.epilogue.expression import Epilogue
from cutedsl_gemm.kernels.plan.kernel_plan import KernelPlan
from cutedsl_gemm.select.registry import Kernel

Run: TypeAlias = Callable[[Tensor, Tensor, Tensor], None]  # (a, b, out)
FusedRun: TypeAlias = Callable[..., None]  # (a, b, operands, results)


def runner(
    kernel: Kernel,
    requirements: Requirements,
    plan: KernelPlan,
    device: torch.device,
    invariant: bool = False,
) -> Run:
    """The plan on a device: its executor, or its kernel, which is compiled if necessary.

    Kernels sum in the order of the plan. For an `invariant` problem, which only plans of sm90
    serve, so does the executor: torch's products of another tile may sum in another order.
    """
    if device.type == "cpu":
        execute: Callable[..., None] = plan.execute
        if invariant:
            execute = partial(execute, one_by_one=True)
        return partial(_execute, requirements, execute)
    return _launcher(kernel, plan, device)


@untraced
def _execute(
    requirements: Requirements, execute: Callable[..., None], a: Tensor, b: Tensor, out: Tensor
) -> None:
    check_call(a, b, out, requirements)
    with bar("gemm on the CPU (executor)") as report:
        execute(a, b, out, report)


def fused_runner(
    kernel: Kernel,
    plan: KernelPlan,
    epilogue: Epilogue,
    device: torch.device,
    invariant: bool = False,
) -> FusedRun:
    """`runner` of a plan with this epilogue, on tensors that are checked."""
    if device.type == "cpu":
        return partial(_execute_fused, plan, {"one_by_one": True} if invariant else {})
    compiled, sms = kernel_on(kernel, plan, device)
    numbers = [i for i, each in enumerate(epilogue.operands) if each.by_value]
    tensors = [i for i, each in enumerate(epilogue.operands) if not each.by_value]

    def launch(a: Tensor, b: Tensor, operands: Sequence[Value], results: Sequence[Tensor]) -> None:
        if not numbers:
            compiled(a, b, *operands, *results, sms)
            return
        by_value = [operands[i] for i in numbers]
        compiled(a, b, *[operands[i] for i in tensors], *results, *by_value, sms)

    return launch


@untraced
def _execute_fused(
    plan: Any,
    options: dict[str, Any],
    a: Tensor,
    b: Tensor,
    operands: tuple[Value, ...],
    results: tuple[Tensor, ...],
) -> None:
    out = results[0] if len(results) == 1 else results
    with bar("gemm on the CPU (executor)") as report:
        plan.execute(a, b, out, report, operands=operands, **options)


def kernel_on(
    kernel: Kernel, plan: KernelPlan, device: torch.device
) -> tuple[Callable[..., None], int]:
    """The compiled kernel, and the multiprocessors of its device."""
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
    return build.load(plan, arch), multiprocessors(device, plan)


def _launcher(kernel: Kernel, plan: KernelPlan, device: torch.device) -> Run:
    """The compiled kernel, on the current stream of its device, which is torch's current one."""
    compiled, sms = kernel_on(kernel, plan, device)
    index = device.index

    def launch(a: Tensor, b: Tensor, out: Tensor) -> None:
        compiled(a, b, out, sms)

    def launch_checked(a: Tensor, b: Tensor, out: Tensor) -> None:
        if not index == b.get_device() == out.get_device():  # that of a is in the signature
            raise ValueError("a, b and out must share a device")
        compiled(a, b, out, sms)

    def launch_resolved(a: Tensor, b: Tensor, out: Tensor) -> None:
        check_out(out, a, b)  # refuses an out whose negative bit is set
        launch_checked(a.resolve_neg(), b.resolve_neg(), out)

    if kernel.family == "simt":  # float32 operands may be the imaginary half of a conjugate
        return launch_resolved
    return launch if torch.cuda.device_count() == 1 else launch_checked


def run_transposed(run: Run) -> Run:
    """Cᵀ = Bᵀ · Aᵀ."""

    def transposed(a: Tensor, b: Tensor, out: Tensor) -> None:
        run(b.mT, a.mT, out.mT)

    return transposed


def run_through_copy(run: Run, column_major: bool) -> Run:
    """`run` into a padded tensor, then copied to `out`, whose rows the kernel cannot store."""

    def copied(a: Tensor, b: Tensor, out: Tensor) -> None:
        padded = empty_padded(out, (out.mT if column_major else out).shape)
        padded = padded.mT if column_major else padded
        run(a, b, padded)
        copy((padded, out))

    return copied


def run_restrided(run: Run, requirements: Requirements, matrices: tuple[Matrix, ...]) -> Run:
    """`run` with the strides of `matrices`; those of a tensor differ where an extent is 1."""

    def restrided(a: Tensor, b: Tensor, out: Tensor) -> None:
        check_call(a, b, out, requirements)  # as_strided would hide an out of another shape
        pairs = zip((a, b, out), matrices, strict=True)
        run(*(tensor.as_strided(matrix.shape, matrix.stride) for tensor, matrix in pairs))

    return restrided
