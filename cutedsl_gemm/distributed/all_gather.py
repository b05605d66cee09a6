"""all-gather → product: a product of the rows of all ranks, which come while it runs.

On each rank r:

    stream        barrier │ product: own rows │ rows of r + 1 │ … │ rows of r - 1
    copy engines          │ own rows → r - 1 │ flag │ own rows → r - 2 │ flag │ …

A tile's producer warp waits for the flag of its rows. The copies, and the flags behind them, need
no multiprocessor: a kernel that fills the GPU and waits does not hinder them. They are enqueued
before the kernel, so the kernel never waits for work that is queued behind it. They are enqueued
after a barrier, so no kernel waits for a rank that still does other work.

One buffer suffices. A rank's buffer is written only after the barrier; its last readers, the
product of the call before and the copy of its rows, are ahead of the barrier in that rank's stream.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor
from torch.distributed import ProcessGroup

from cutedsl_gemm.api import gemm
from cutedsl_gemm.calls.on_device import on_device
from cutedsl_gemm.distributed.overlap import (
    all_gathered,
    known,
    launcher,
    may_overlap,
    plan_of_rows,
    signature,
)
from cutedsl_gemm.distributed.symmetric import SymmetricBuffer, copy, symmetric_buffer, write_flag
from cutedsl_gemm.inputs.checks import check_operands
from cutedsl_gemm.inputs.problem import TMA, Problem
from cutedsl_gemm.inputs.tensors import aligned, aligned_copy, allocator, problem_of
from cutedsl_gemm.kernels.plan.checks import PER_VECTOR
from cutedsl_gemm.kernels.sm90.plan import Sm90Plan
from layouts.hardware.atoms import WGMMA_M


class _Gather(NamedTuple):
    """What calls of `all_gather_gemm` keep for tensors of their signature."""

    launch: Callable[..., None]
    new: Callable[[Tensor], Tensor]  # a → the product's memory
    gathered: Tensor  # (ranks * M, K), this rank's
    arrived: Tensor  # (ranks,), this rank's flags
    targets: tuple[tuple[int, int], ...]  # addresses on other ranks: of our rows, of our flag
    copy_a_b: tuple[bool, bool]  # whether it reads a copy of a, of b


def gather(a: Tensor, b: Tensor, group: ProcessGroup, rows: bool) -> tuple[Tensor, Tensor]:
    """The product (ranks * M, N), and the rows of all ranks (ranks * M, K).

    Unless `rows`, the second is any tensor, which the caller ignores.
    """
    buffer, call = known(group, "gather", a, b)
    if call is None:
        check_operands(a, b)
        if group.size() == 1:
            return gemm(a, b), a
        if b.shape[1] == 0:  # other ranks may have columns, and wait for these rows
            product, every = gather(a, b.new_zeros(b.shape[0], PER_VECTOR), group, rows)
            return product[:, :0].contiguous(), every
        buffer = _gather_buffer(a, group)
        if buffer is None:
            whole = all_gathered(a, group)
            return gemm(whole, b), whole
        call = buffer.prepared[signature(a, b)] = _prepare(buffer, a, b)
    return on_device(_gather_and_multiply, a.device)(buffer, call, a, b, rows)


def _gather_buffer(a: Tensor, group: ProcessGroup) -> SymmetricBuffer | None:
    """The buffer for the rows of all ranks; None if they cannot come while the product runs.

    All ranks must find the same, or they wait for each other forever: it depends on the shape and
    the dtype of a alone, and on whether a CUDA graph is captured.
    """
    (rows, k), ranks = a.shape, group.size()
    if not (rows and k and may_overlap(a)) or rows % WGMMA_M or k % PER_VECTOR:
        return None
    return symmetric_buffer(group, a.device, "gather", ranks * rows * k * a.element_size())


def _gather_and_multiply(
    buffer: SymmetricBuffer, call: _Gather, a: Tensor, b: Tensor, rows: bool
) -> tuple[Tensor, Tensor]:
    """The product of this rank's rows while those of the others come; all rows, or a."""
    copy_a, copy_b = call.copy_a_b
    if copy_a:
        a = a.clone(memory_format=torch.contiguous_format)
    if copy_b:
        b = aligned_copy(b)
    out = call.new(a)
    stream, epoch = buffer.begin(), buffer.next_epoch()
    buffer.barrier()
    buffer.copy_stream_waits_for(stream)
    for there, flag in call.targets:
        copy(buffer.copy_stream, there, a.data_ptr(), a.nbytes)
        write_flag(buffer.copy_stream, flag, epoch)
    call.launch(call.gathered, b, a, call.arrived, out, buffer.rank, epoch)
    buffer.wait_for_copies(stream)  # then a may be overwritten
    every = _rows(buffer, call, a, stream) if rows else a
    buffer.end(stream)
    return out, every


def _rows(buffer: SymmetricBuffer, call: _Gather, a: Tensor, stream: torch.cuda.Stream) -> Tensor:
    """A copy of what has come from the other ranks, and of this rank's rows, which are not there.

    The next call overwrites the buffer.
    """
    whole = torch.empty_like(call.gathered)
    target, source, each = whole.data_ptr(), call.gathered.data_ptr(), a.nbytes
    first = buffer.rank * each
    copy(stream, target + first, a.data_ptr(), each)
    for start, stop in ((0, first), (first + each, buffer.ranks * each)):
        if start < stop:
            copy(stream, target + start, source + start, stop - start)
    return whole


def _prepare(buffer: SymmetricBuffer, a: Tensor, b: Tensor) -> _Gather:
    ranks, rank, device, (rows, k) = buffer.ranks, buffer.rank, a.device, a.shape
    copy_a_b = not (a.is_contiguous() and aligned(a, TMA)), not aligned(b, TMA)
    gathered = buffer.view(rank, (ranks * rows, k), a.dtype)
    plan = gathered_plan(ranks, problem_of(gathered, aligned_copy(b) if copy_a_b[1] else b))
    others = [(rank - step) % ranks for step in range(1, ranks)]  # in the order of their need
    targets = (
        (buffer.view(other, a.shape, a.dtype, rank).data_ptr(), buffer.flag(other, rank))
        for other in others
    )
    arrived = buffer.flags(rank)
    new = allocator(a, ranks * rows, b.shape[1])
    return _Gather(launcher(plan, device), new, gathered, arrived, tuple(targets), copy_a_b)


def gathered_plan(ranks: int, problem: Problem) -> Sm90Plan:
    """The plan that the model expects to be fastest of those whose tiles have rows of one rank.

    PlanError if there is none; there is one for rows that are a multiple of 64 on each rank.

    >>> gathered_plan(2, Problem.dense(8192, 8192, 8192)).cluster_tile
    (128, 192)
    """
    return replace(plan_of_rows(ranks, problem), gathered=True).check()
