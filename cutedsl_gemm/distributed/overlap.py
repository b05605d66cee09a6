"""What products that overlap with a collective share: when they can, and what calls keep.

By the signature of its tensors, a call finds in the group's buffer what an earlier one prepared.
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from typing import Any

import torch
from torch import Tensor
from torch.distributed import ProcessGroup

from cutedsl_gemm.calls.run import kernel_on
from cutedsl_gemm.distributed.symmetric import SymmetricBuffer, known_buffer
from cutedsl_gemm.inputs.problem import TMA, Problem
from cutedsl_gemm.kernels.plan.checks import PlanError
from cutedsl_gemm.kernels.sm90.plan import Sm90Plan
from cutedsl_gemm.kernels.sm90.rungs import cooperative, pingpong
from cutedsl_gemm.select.candidate import CANDIDATES, Maker
from cutedsl_gemm.select.model import ranking
from cutedsl_gemm.select.registry import DEFAULT, default_kernel, named
from layouts.hardware.atoms import WGMMA_M


def known(
    group: ProcessGroup, use: str, a: Tensor, b: Tensor
) -> tuple[SymmetricBuffer | None, Any]:
    """The group's buffer for a use, and what calls keep for tensors of this signature; or None."""
    buffer = known_buffer(group, a.device, use)
    if buffer is None or _captured(a):
        return None, None
    try:
        return buffer, buffer.prepared.get(signature(a, b))
    except RuntimeError:  # sparse, or nested: the caller says so
        return buffer, None


def signature(a: Tensor, b: Tensor) -> Any:
    """The properties of a and b on which a prepared call depends."""
    multiple = TMA.alignment_bytes
    addresses = a.data_ptr() % multiple, b.data_ptr() % multiple
    return a.shape, a.stride(), a.dtype, b.shape, b.stride(), b.dtype, b.device, addresses


def _captured(a: Tensor) -> bool:
    """Whether a CUDA graph is captured, which would replay the epoch of its capture."""
    return a.is_cuda and torch.cuda.is_current_stream_capturing()


def may_overlap(a: Tensor) -> bool:
    """Whether ranks may write each other's memory: on Hopper, while no CUDA graph is captured."""
    return a.is_cuda and default_kernel(a.device).name == DEFAULT and not _captured(a)


def plan_of_rows(
    ranks: int, problem: Problem, piece_rows: int = 0, cooperative_takes: float = 1.0
) -> Sm90Plan:
    """The fastest plan of tiles with rows of one rank, and of one piece if given.

    Cooperative plans count as `cooperative_takes` times as long as the model expects. PlanError if
    no tile fits.
    """
    rows = problem.mnk[0] // ranks
    height = gcd(rows, piece_rows)
    takes: dict[Maker, float] = {pingpong: 1.0, cooperative: cooperative_takes}
    able = (each for each in CANDIDATES if each.maker in takes and not each.swapped)
    fitting = [each for each in able if height % (each.tile[0] * each.cluster[0]) == 0]
    if not fitting:
        raise PlanError(
            f"each of {ranks} ranks has {rows} rows: it must have a multiple of {WGMMA_M}, since a "
            "tile has rows of one rank"
        )
    first = {found.candidate.maker: found for found in reversed(ranking(problem, fitting))}
    fastest = min(first.values(), key=lambda found: takes[found.candidate.maker] * found.seconds)
    return fastest.candidate.plan(problem)


def launcher(plan: Sm90Plan, device: torch.device) -> Callable[..., None]:
    """The launch of the plan's kernel on torch's current device, which is this one."""
    compiled, sms = kernel_on(named(None, device), plan, device)
    return lambda *arguments: compiled(*arguments, sms)


def all_gathered(a: Tensor, group: ProcessGroup) -> Tensor:
    """The rows of all ranks."""
    gather = torch.ops._c10d_functional.all_gather_into_tensor
    return waited(gather(a.contiguous(), group.size(), group.group_name))


def waited(begun: Tensor) -> Tensor:
    """The result of a collective, for which torch's current stream waits."""
    result: Tensor = torch.ops._c10d_functional.wait_tensor(begun)
    return result
