"""What gemm does with tensors of one signature: worked out when first met, then remembered.

signature → problem → plan → the executor, or the kernel compiled and bound to its device
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor

from cutedsl_gemm.choose import choose
from cutedsl_gemm.kernels import build
from cutedsl_gemm.kernels.plan import Plan
from cutedsl_gemm.kernels.progress import bar
from cutedsl_gemm.problem import Matrix, check_memory, check_out, matrix, pose, product

Tile: TypeAlias = tuple[int, int, int]
Run: TypeAlias = Callable[[Tensor, Tensor, Tensor], None]  # (a, b, out)

MOST = 4096  # signatures remembered; where there are more, shapes change with every call
_met: dict[Any, Call] = {}


def call(a: Tensor, b: Tensor, tile: Tile | None, out: Tensor | None) -> Call:
    """The call for these tensors, found in about a microsecond if their like was met before."""
    try:
        signature = (
            (a.shape, a.stride(), a.dtype, a.device),
            (b.shape, b.stride(), b.dtype, b.device),
            None if out is None else (out.shape, out.stride(), out.dtype, out.device),
            tile,
        )
        return _met[signature]
    except (KeyError, AttributeError, TypeError, RuntimeError):
        made = _make(a, b, tile, out)  # new, or not dense tensors: then `_make` says so
    if len(_met) >= MOST:
        _met.clear()
    _met[signature] = made
    return made


@dataclass(frozen=True, slots=True)
class Call:
    """What is known before the addresses are: run `run` on a, b and out as TMA walks them.

    `turned`: out is column-major, which is outᵀ row-major, and outᵀ = bᵀ · aᵀ.
    """

    shape: tuple[int, int]
    walked: tuple[Matrix, Matrix, Matrix] | None  # of a, b, out, where their strides are not these
    reach: tuple[int, int, int]  # bytes from the first to behind the last element of a, b, out
    turned: bool
    run: Run

    def __call__(self, a: Tensor, b: Tensor, out: Tensor | None) -> Tensor:
        result = a.new_empty(self.shape) if out is None else out
        check_memory(a, b, result, self.reach)
        if self.walked is None and not self.turned:
            self.run(a, b, result)
        else:
            self._run_as_walked(a, b, result)
        return result

    def _run_as_walked(self, a: Tensor, b: Tensor, out: Tensor) -> None:
        if self.walked is not None:
            pairs = zip((a, b, out), self.walked, strict=True)
            a, b, out = (tensor.as_strided(seen.shape, seen.stride) for tensor, seen in pairs)
        self.run(*((b.mT, a.mT, out.mT) if self.turned else (a, b, out)))


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
    as_they_are = all(
        seen.stride == tensor.stride() for seen, tensor in zip(walked, (a, b, out), strict=True)
    )
    turned = not written.row_major
    if turned:
        problem = problem.turned
        tile = tile if tile is None else (tile[1], tile[0], tile[2])
    run = _runner(choose(problem, tile), (m, n, k), a.device)
    reach = (_reach(a), _reach(b), _reach(out))
    return Call((m, n), None if as_they_are else walked, reach, turned, run)


def _reach(tensor: Tensor) -> int:
    if tensor.numel() == 0:
        return 0
    modes = zip(tensor.shape, tensor.stride(), strict=True)
    return (sum((extent - 1) * stride for extent, stride in modes) + 1) * tensor.element_size()


def _runner(plan: Plan, mnk: tuple[int, int, int], device: torch.device) -> Run:
    m, n, k = mnk
    if k == 0:
        return _zero
    if m == 0 or n == 0:
        return _nothing
    if device.type == "cpu":
        return partial(_execute, plan)
    return _launcher(plan, device)


def _zero(a: Tensor, b: Tensor, out: Tensor) -> None:
    out.zero_()


def _nothing(a: Tensor, b: Tensor, out: Tensor) -> None:
    pass


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
        with torch.cuda.device(device):
            kernel(a, b, out, sms)

    return launch if torch.cuda.device_count() == 1 else launch_there
