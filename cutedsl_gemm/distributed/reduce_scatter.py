"""product → reduce-scatter: a product whose sums over the ranks leave as they are computed.

On each rank r:

    stream        barrier │ product: rows of r + 1 │ … │ rows of r - 1 │ own rows, with what came
    copy engines                   │ pieces → r + 1 │ … │ pieces → r - 1

A consumer counts the elements of a tile when they are stored. The copy engines wait for the count
of a piece, the rows of a group of the raster; they send it, and then its flag. Tiles of a rank's
own rows are the last, and wait for the flags of their piece. Each adds the other ranks' parts of it
in the order r + 1, r + 2, …: the sums have a fixed order. The rank's own part is in fp32, the
others are rounded to the dtype of a. A rank's buffer of parts is written after the barrier only, as
in all_gather.py. The kernel's own stores stay on its GPU: consumers that stored tiles to another
GPU held up the loads of those that multiply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor
from torch.distributed import ProcessGroup

from cutedsl_gemm.api import gemm
from cutedsl_gemm.calls.on_device import on_device
from cutedsl_gemm.distributed.overlap import (
    known,
    launcher,
    may_overlap,
    plan_of_rows,
    signature,
    waited,
)
from cutedsl_gemm.distributed.symmetric import (
    FLAGS,
    SymmetricBuffer,
    copy,
    symmetric_buffer,
    wait_for_count,
    write_flag,
)
from cutedsl_gemm.inputs.checks import check_operands
from cutedsl_gemm.inputs.problem import TMA, Problem
from cutedsl_gemm.inputs.tensors import aligned, aligned_copy, allocator, problem_of
from cutedsl_gemm.kernels.plan.checks import PER_VECTOR
from cutedsl_gemm.kernels.plan.raster import Raster
from cutedsl_gemm.kernels.sm90.plan import Sm90Plan
from layouts.hardware.atoms import WGMMA_M

# Rows of C that have one flag. It is the same for all plans, since ranks may have different ones.
PIECE_ROWS = 1024
# Multiply-adds of a copy, at least: 50 µs on an H200. Smaller copies were not tried.
COPY_MACS = 2**34
# Adding the received parts takes time. In pingpong, one consumer adds while the other multiplies.
# On two H200s, at five shapes, 15 cooperative plans took 1.05 times as long as the model expects of
# the product alone, and 15 pingpong plans 1.00 times (geometric means).
COOPERATIVE_SLOWDOWN = 1.05


def scatter(a: Tensor, b: Tensor, group: ProcessGroup) -> Tensor:
    """This rank's rows (M / ranks, N) of the sum; see `gemm_reduce_scatter`."""
    buffer, call = known(group, "scatter", a, b)
    if call is None:
        check_operands(a, b)
        ranks = group.size()
        rows = rows_of_each(a, ranks)
        if ranks == 1:
            return gemm(a, b)
        k, n = b.shape
        if k == 0:  # other ranks may have more of K, and wait for this one
            a, b = a.new_zeros(a.shape[0], PER_VECTOR), b.new_zeros(PER_VECTOR, n)
        buffer = _scatter_buffer(a, rows, n, group)
        if buffer is None:
            reduce_scatter = torch.ops._c10d_functional.reduce_scatter_tensor
            return waited(reduce_scatter(gemm(a, b), "sum", ranks, group.group_name))
        key = signature(a, b)
        call = buffer.prepared.get(key)  # that of an empty K
        if call is None:
            call = buffer.prepared[key] = _prepare(buffer, a, b)
    return on_device(_multiply_and_scatter, a.device)(buffer, call, a, b)


def _scatter_buffer(a: Tensor, rows: int, n: int, group: ProcessGroup) -> SymmetricBuffer | None:
    """The buffer for received parts of a rank's rows; None if they cannot overlap the product."""
    ranks = group.size()
    fits = rows % WGMMA_M == 0 and n % PER_VECTOR == 0 and PIECE_ROWS * n < 2**31
    if not (rows and n and fits and ranks * _pieces_of(rows) <= FLAGS and may_overlap(a)):
        return None
    return symmetric_buffer(group, a.device, "scatter", ranks * rows * n * a.element_size())


def rows_of_each(a: Tensor, ranks: int) -> int:
    """M / ranks. ValueError unless the ranks divide M."""
    if a.shape[0] % ranks:
        raise ValueError(
            f"a has shape {tuple(a.shape)}, and the group has {ranks} ranks: each gets an equal "
            f"share of the rows, so M must be a multiple of {ranks}; pad a on every rank"
        )
    return a.shape[0] // ranks


class _Piece(NamedTuple):
    """Rows of a partial sum that a rank sends, and then a flag."""

    stored: int  # the address of how many of its elements are stored
    elements: int
    flag: int  # its address on the rank that has these rows


class _Copy(NamedTuple):
    """Pieces that a rank sends at once."""

    first: int  # bytes before them in the product
    bytes: int
    there: int  # their address on the rank that has these rows
    pieces: tuple[_Piece, ...]


@dataclass
class _Scatter:
    """What calls of `gemm_reduce_scatter` keep for tensors of their signature."""

    launch: Callable[..., None]
    new: tuple[Callable[[Tensor], Tensor], ...]  # a → memory of this rank's rows, of the product
    parts: Tensor  # (ranks, M / ranks, N), received parts of this rank's rows
    arrived: Tensor  # (ranks, pieces), this rank's flags
    stored: Tensor  # (ranks, pieces), how many elements of each piece all calls have stored
    outgoing: tuple[_Copy, ...]  # in the order of the product
    copy_a_b: tuple[bool, bool]  # whether it reads a copy of a, of b
    calls: int = 0


def _multiply_and_scatter(buffer: SymmetricBuffer, call: _Scatter, a: Tensor, b: Tensor) -> Tensor:
    """This rank's rows plus the received parts; the rows of other ranks are sent meanwhile."""
    copy_a, copy_b = call.copy_a_b
    a, b = aligned_copy(a) if copy_a else a, aligned_copy(b) if copy_b else b
    mine, partial = (new(a) for new in call.new)
    stream, epoch = buffer.begin(), buffer.next_epoch()
    buffer.barrier()
    call.launch(a, b, call.parts, call.arrived, partial, call.stored, mine, buffer.rank, epoch)
    call.calls += 1
    first = partial.data_ptr()
    for each in call.outgoing:  # enqueued behind the kernel: it must run while the copies wait
        for piece in each.pieces:
            wait_for_count(buffer.copy_stream, piece.stored, call.calls * piece.elements)
        copy(buffer.copy_stream, each.there, first + each.first, each.bytes)
        for piece in each.pieces:
            write_flag(buffer.copy_stream, piece.flag, epoch)
    buffer.wait_for_copies(stream)  # then the memory of `partial` may be used again
    buffer.end(stream)
    return mine


def _prepare(buffer: SymmetricBuffer, a: Tensor, b: Tensor) -> _Scatter:
    ranks, rank, k = buffer.ranks, buffer.rank, a.shape[1]
    rows, n = shape = a.shape[0] // ranks, b.shape[1]
    copy_a_b = not aligned(a, TMA), not aligned(b, TMA)
    as_read = (aligned_copy(x) if copied else x for x, copied in zip((a, b), copy_a_b, strict=True))
    plan, pieces = scattered_plan(ranks, problem_of(*as_read)), _pieces_of(rows)
    stored = torch.zeros(ranks, pieces, dtype=torch.int32, device=a.device)
    # The zeros are there before a copy waits for others.
    buffer.copy_stream_waits_for(buffer.begin())
    height = PIECE_ROWS * -(-COPY_MACS // (PIECE_ROWS * n * k))
    return _Scatter(
        launcher(plan, a.device),
        (allocator(a, rows, n), allocator(a, ranks * rows, n)),
        buffer.view(rank, (ranks, *shape), a.dtype),
        buffer.flags(rank, pieces).view(ranks, pieces),
        stored,
        tuple(_copies(buffer, stored, shape, a.dtype, height)),
        copy_a_b,
    )


def _pieces_of(rows: int) -> int:
    """The pieces of the rows of a rank."""
    return -(-rows // PIECE_ROWS)


def _copies(
    buffer: SymmetricBuffer, stored: Tensor, shape: tuple[int, int], dtype: torch.dtype, height: int
) -> Iterator[_Copy]:
    """What a rank sends to the others, (M / ranks, N) each, `height` rows in a copy."""
    ranks, rank, (rows, n) = buffer.ranks, buffer.rank, shape
    pieces = stored.shape[1]
    for other in ((rank + step) % ranks for step in range(1, ranks)):
        whole = tuple(
            _Piece(
                stored[other, i].data_ptr(),
                n * min(PIECE_ROWS, rows - i * PIECE_ROWS),
                buffer.flag(other, rank * pieces + i),
            )
            for i in range(pieces)
        )
        for i, there in enumerate(buffer.view(other, shape, dtype, rank).split(height)):
            first, each = other * rows + i * height, height // PIECE_ROWS
            sent = whole[i * each : (i + 1) * each]
            yield _Copy(first * n * dtype.itemsize, there.nbytes, there.data_ptr(), sent)


def scattered_plan(ranks: int, problem: Problem) -> Sm90Plan:
    """The plan that the model expects to be fastest, of tiles with rows of one piece.

    Raises as `gathered_plan`.

    >>> plan = scattered_plan(2, Problem.dense(8192, 8192, 4096))
    >>> plan.tile, plan.piece_rows
    ((128, 192, 64), 1024)
    >>> scattered_plan(2, Problem.dense(16384, 4096, 8192)).schedule
    'cooperative'
    """
    plan = plan_of_rows(ranks, problem, PIECE_ROWS, COOPERATIVE_SLOWDOWN)
    raster = Raster(PIECE_ROWS // plan.cluster_tile[0])
    return replace(plan, raster=raster, scattered=True).check()
