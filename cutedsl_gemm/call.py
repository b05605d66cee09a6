"""What gemm does with tensors of one signature: worked out when first met, then remembered.

signature → problem → plan → the executor, or the kernel compiled and bound to its device
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor

from cutedsl_gemm.choose import choose
from cutedsl_gemm.kernels import build
from cutedsl_gemm.kernels.plan import Plan
from cutedsl_gemm.kernels.progress import bar
from cutedsl_gemm.problem import (
    Matrix,
    check,
    check_apart,
    check_out,
    matrix,
    pose,
    product,
)

Tile: TypeAlias = tuple[int, int, int]
Run: TypeAlias = Callable[[Tensor, Tensor, Tensor], None]  # (a, b, out)
Call: TypeAlias = Callable[[Tensor, Tensor, "Tensor | None"], Tensor]  # (a, b, out) → out

MOST = 4096  # signatures remembered; where there are more, shapes change with every call
_met: dict[Any, Call] = {}


def call(a: Tensor, b: Tensor, tile: Tile | None, out: Tensor | None) -> Call:
    """The call for these tensors, found in about a microsecond if their like was met before.

    The signature has what the choice depends on; every attribute costs a tenth of a microsecond.
    """
    try:
        written = None if out is None else (out.shape, out.stride())
        signature = (a.shape, a.stride(), b.shape, b.stride(), written, a.dtype, a.device, tile)
        return _met[signature]
    except (KeyError, AttributeError, TypeError, RuntimeError):
        made = _make(a, b, tile, out)  # new, or not dense tensors: then `_make` says so
    if len(_met) >= MOST:
        _met.clear()
    _met[signature] = made
    return made


def _make(a: Tensor, b: Tensor, tile: Tile | None, out: Tensor | None) -> Call:
    problem = pose(a, b)
    m, n, k = problem.mnk
    if out is None:
        out = torch.empty(m, n, dtype=a.dtype, device="meta")
        written = product(out)
    else:
        check_out(out, a, b)
        written = matrix("out", out)
    walked = (problem.a, problem.b, written)
    turned = not written.row_major  # out is column-major: outᵀ is row-major, and outᵀ = bᵀ · aᵀ
    if turned:
        problem = problem.turned
        tile = tile if tile is None else (tile[1], tile[0], tile[2])
    run = _runner(choose(problem, tile), (m, n, k), a.device)
    if turned:
        run = _turned(run)
    if any(
        seen.stride != tensor.stride() for seen, tensor in zip(walked, (a, b, out), strict=True)
    ):
        run = _as_walked(run, walked)
    return _checked(run, (m, n), (_reach(a), _reach(b), _reach(out)))


def _checked(run: Run, shape: tuple[int, int], reach: tuple[int, int, int]) -> Call:
    """`run` into a result of its own where out is None, else into memory that nothing else reads.

    What the signature leaves open (the dtype of b, say) the kernel's own checks refuse in no time;
    they are asked first, and a sentence is looked for when they have refused.
    """
    m, n = shape

    def checked(a: Tensor, b: Tensor, out: Tensor | None) -> Tensor:
        if out is None:
            result = a.new_empty(m, n)
        else:
            result = out
            check_apart(a.data_ptr(), b.data_ptr(), out.data_ptr(), reach)
        try:
            run(a, b, result)
        except Exception:
            check(a, b, result)
            raise
        return result

    return checked


def _as_walked(run: Run, walked: tuple[Matrix, ...]) -> Run:
    """`run` with the strides that TMA is told; a tensor's own differ where an extent is 1."""

    def as_walked(*tensors: Tensor) -> None:
        pairs = zip(tensors, walked, strict=True)
        run(*(tensor.as_strided(seen.shape, seen.stride) for tensor, seen in pairs))

    return as_walked


def _turned(run: Run) -> Run:
    def turned(a: Tensor, b: Tensor, out: Tensor) -> None:
        run(b.mT, a.mT, out.mT)

    return turned


def _reach(tensor: Tensor) -> int:
    if tensor.numel() == 0:
        return 0
    modes = zip(tensor.shape, tensor.stride(), strict=True)
    return (sum((extent - 1) * stride for extent, stride in modes) + 1) * tensor.element_size()


def _runner(plan: Plan, mnk: tuple[int, int, int], device: torch.device) -> Run:
    m, n, k = mnk
    if k == 0:
        return _first_checked(lambda a, b, out: out.zero_())
    if m == 0 or n == 0:
        return _first_checked(lambda a, b, out: None)
    if device.type == "cpu":
        return _first_checked(partial(_execute, plan))
    return _launcher(plan, device)


def _first_checked(run: Run) -> Run:
    def first_checked(a: Tensor, b: Tensor, out: Tensor) -> None:
        check(a, b, out)
        run(a, b, out)

    return first_checked


def _execute(plan: Plan, a: Tensor, b: Tensor, out: Tensor) -> None:
    from cutedsl_gemm.kernels import execute

    bar("executor", execute.steps(plan, a, b, out))


def _launcher(plan: Plan, device: torch.device) -> Run:
    """The compiled kernel on its device and on torch's current stream there."""
    capability = torch.cuda.get_device_capability(device)
    if capability != (9, 0):
        major, minor = capability
        raise RuntimeError(
            f"a and b are on {torch.cuda.get_device_name(device)}, compute capability "
            f"{major}.{minor}: the pingpong kernel runs on Hopper, 9.0 (H100, H200); "
            "elsewhere pass CPU tensors, or use torch.mm"
        )
    kernel = build.load(plan)
    sms = torch.cuda.get_device_properties(device).multi_processor_count

    def launch(a: Tensor, b: Tensor, out: Tensor) -> None:
        kernel(a, b, out, sms)

    def launch_there(a: Tensor, b: Tensor, out: Tensor) -> None:
        if not a.device == b.device == out.device:
            raise ValueError("a, b and out must be on one device")
        with torch.cuda.device(device):
            kernel(a, b, out, sms)

    return launch if torch.cuda.device_count() == 1 else launch_there
