"""Products that overlap with collectives: all-gather → product, and product → reduce-scatter.

    all_gather_gemm(a, b)       this rank's rows of A are sent while the product of them runs; a
                                tile of other rows starts when the rows that it needs have come
    gemm_reduce_scatter(a, b)   the product of another rank's rows is stored to that rank as it is
                                computed; that of this rank's own rows adds what has come

all_gather_gemm, on each rank r:

    stream        barrier │ product: own rows │ rows of r + 1 │ … │ rows of r - 1
    copy engines          │ own rows → r - 1 │ flag │ own rows → r - 2 │ flag │ …

    A tile's producer warp waits for the flag of its rows. The copies, and the flags behind them,
    need no multiprocessor: a kernel that fills the GPU and waits does not hinder them. They are
    enqueued before the kernel, so that it never waits for what is queued behind it, and after a
    barrier: each rank's stream has come this far, and no rank waits for one that does other work.
    A rank's buffer is written after the barrier only. Its last reader, the product of the call
    before, is in front of the barrier in that rank's stream. Hence one buffer suffices.

gemm_reduce_scatter, on each rank r:

    stream        barrier │ product: rows of r + 1 │ … │ rows of r - 1 │ own rows, with what came
    copy engines                   │ pieces → r + 1 │ … │ pieces → r - 1

    A consumer counts the elements of a tile when they are stored. The copy engines wait for the
    count of a piece, the rows of a group of the raster; they send it, and then its flag. Tiles of a
    rank's own rows are the last, and wait for the flags of their piece. Each adds the other ranks'
    parts of it in the order r + 1, r + 2, …: the sums have a fixed order. The rank's own part is in
    fp32, the others are rounded to the dtype of a. A rank's buffer of parts is written after the
    barrier only, as above. The kernel's own stores stay on its GPU: consumers that stored tiles to
    another GPU held up the loads of those that multiply.

Without symmetric memory, and while a CUDA graph is captured, the group's own collectives move the
data before or after the product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import gcd
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling
from torch.distributed import ProcessGroup

from cutedsl_gemm import operator
from cutedsl_gemm.api import gemm
from cutedsl_gemm.distributed.symmetric import (
    FLAGS,
    SymmetricBuffer,
    known_buffer,
    resolve,
    symmetric_buffer,
    wait_for_count,
    write_flag,
)
from cutedsl_gemm.kernels.plan.checks import UNIT, PlanError
from cutedsl_gemm.kernels.plan.raster import Raster
from cutedsl_gemm.kernels.sm90.plan import Sm90Plan
from cutedsl_gemm.kernels.sm90.rungs import cooperative, pingpong
from cutedsl_gemm.on_device import on_device
from cutedsl_gemm.problem import TMA, Problem
from cutedsl_gemm.run import kernel_on
from cutedsl_gemm.select.candidate import CANDIDATES, Maker
from cutedsl_gemm.select.choose import first_plan
from cutedsl_gemm.select.model import ranking
from cutedsl_gemm.select.registry import DEFAULT, best, named
from cutedsl_gemm.tensors import DENSE, aligned, aligned_copy, check_operands, problem_of
from layouts.hardware.atoms import WGMMA_M


def all_gather_gemm(a: Tensor, b: Tensor, group: ProcessGroup | str | None = None) -> Tensor:
    """A · b (K, N) of the rows A (ranks * M, K) of all ranks, of which this rank has a (M, K).

    torch.mm(all_gather_tensor(a, 0, group), b) in one kernel, which multiplies this rank's rows
    while the others' come. `group` is a process group or its name, by default that of all ranks;
    every rank of it must call the function, with an a of one shape. b is any rank's own.

    Supports autograd and torch.compile: the gradient of a is `gemm_reduce_scatter`. If b needs one,
    the rows of all ranks are kept for it. Raises as gemm does.

    >>> import torch.distributed as dist
    >>> store = dist.HashStore()
    >>> dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    >>> a, b = torch.ones(24, 16, dtype=torch.bfloat16), torch.ones(16, 8, dtype=torch.bfloat16)
    >>> all_gather_gemm(a, b).shape, gemm_reduce_scatter(a, b).shape
    (torch.Size([24, 8]), torch.Size([24, 8]))
    >>> dist.destroy_process_group()
    """
    if not _needs_operator(a, b):
        return _gather(a, b, resolve(group))
    name = resolve(group).group_name
    if torch.is_grad_enabled() and b.requires_grad:
        product: Tensor = _all_gather_gemm_and_rows(a, b, name)[0]
        return product
    return _all_gather_gemm(a, b, name)


def gemm_reduce_scatter(a: Tensor, b: Tensor, group: ProcessGroup | str | None = None) -> Tensor:
    """This rank's rows (M / ranks, N) of the sum over the ranks of a (M, K) · b (K, N).

    torch's reduce_scatter_tensor(torch.mm(a, b), "sum", 0, group), in which the product of another
    rank's rows goes there as it is computed. `group` is as in `all_gather_gemm`; every rank of it
    must call the function with an a and a b of one M and one N. Partial sums of other ranks are
    rounded to the dtype of a before they are added, as torch's are; this rank's own are not.

    Supports autograd and torch.compile: the gradient of a is `all_gather_gemm`. Raises as gemm
    does, and ValueError if the ranks do not divide M.
    """
    if _needs_operator(a, b):
        return _gemm_reduce_scatter(a, b, resolve(group).group_name)
    return _scatter(a, b, resolve(group))


def _needs_operator(a: Tensor, b: Tensor) -> bool:
    """Whether torch traces the call, or differentiates it."""
    if not isinstance(a, Tensor) or not isinstance(b, Tensor):
        check_operands(a, b)  # which says what they must be
    if is_dynamo_compiling() or type(a) not in DENSE:
        return True
    return torch.is_grad_enabled() and (a.requires_grad or b.requires_grad)


# --- all-gather → product


class _Gather(NamedTuple):
    """What a call of `all_gather_gemm` keeps for tensors of its signature."""

    launch: Callable[..., None]
    gathered: Tensor  # (ranks * M, K), this rank's
    arrived: Tensor  # (ranks,), this rank's flags
    targets: tuple[tuple[Tensor, Tensor], ...]  # of other ranks: our rows there, their flags
    copies: tuple[bool, bool]  # whether it reads a copy of a, of b


def _gather(a: Tensor, b: Tensor, group: ProcessGroup) -> Tensor:
    return _gather_with(a, b, group, rows=False)[0]


def _gather_with(a: Tensor, b: Tensor, group: ProcessGroup, rows: bool) -> tuple[Tensor, Tensor]:
    """The product, and the rows of all ranks if `rows`; else what is at hand."""
    signature = _signature(a, b)
    buffer = known_buffer(group, a.device, "gather")
    call = None if buffer is None else buffer.prepared.get(signature)
    if buffer is None or call is None or _captured(a):
        check_operands(a, b)
        if group.size() == 1:
            return gemm(a, b), a
        buffer = _gather_buffer(a, b, group)
        if buffer is None:
            whole = _all_gathered(a, group)
            return gemm(whole, b), whole
        call = buffer.prepared[signature] = _prepare(buffer, a, b)
    product = _gather_and_multiply(buffer, call, a, b)
    return product, _rows(buffer, call, a) if rows else a


def _rows(buffer: SymmetricBuffer, call: _Gather, a: Tensor) -> Tensor:
    """A copy of what has come from the other ranks, and of this rank's rows, which are not there.

    The next call overwrites the buffer.
    """
    whole = call.gathered.clone()
    whole.unflatten(0, (buffer.ranks, -1))[buffer.rank] = a
    return whole


def _signature(a: Tensor, b: Tensor) -> Any:
    """What a call depends on; only strides and addresses may differ from rank to rank."""
    multiple = TMA.alignment_bytes
    addresses = a.data_ptr() % multiple, b.data_ptr() % multiple
    return a.shape, a.stride(), a.dtype, b.shape, b.stride(), b.dtype, b.device, addresses


def _gather_buffer(a: Tensor, b: Tensor, group: ProcessGroup) -> SymmetricBuffer | None:
    """The memory of all ranks' rows, if they can come while the product runs.

    All ranks find the same: it depends on what is alike on all of them.
    """
    (rows, k), n, ranks = a.shape, b.shape[1], group.size()
    if not (rows and k and n and overlaps(a)) or rows % WGMMA_M or k % UNIT:
        return None
    return symmetric_buffer(group, a.device, "gather", ranks * rows * k * a.element_size())


def _captured(a: Tensor) -> bool:
    """Whether a CUDA graph is captured, which would replay the epoch of its capture."""
    return a.is_cuda and torch.cuda.is_current_stream_capturing()


def overlaps(a: Tensor) -> bool:
    """Whether ranks may write each other's memory: on Hopper, and in no graph."""
    return a.is_cuda and best(a.device).name == DEFAULT and not _captured(a)


def _gather_and_multiply(buffer: SymmetricBuffer, call: _Gather, a: Tensor, b: Tensor) -> Tensor:
    """The product of this rank's rows while those of the others come."""
    copies_a, copies_b = call.copies
    if copies_a:
        a = a.clone(memory_format=torch.contiguous_format)
    if copies_b:
        b = aligned_copy(b)
    out = a.new_empty(buffer.ranks * a.shape[0], b.shape[1])
    stream, epoch = buffer.begin(), buffer.next_epoch()
    buffer.barrier()
    buffer.copies_follow(stream)
    with buffer.copies():
        for rows, flags in call.targets:
            rows.copy_(a)
            write_flag(flags, buffer.rank, epoch)
    call.launch(call.gathered, b, a, call.arrived, out, buffer.rank, epoch)
    stream.wait_event(buffer.copied)  # then a may be overwritten
    buffer.end(stream)
    return out


def _prepare(buffer: SymmetricBuffer, a: Tensor, b: Tensor) -> _Gather:
    ranks, rank, device, (rows, k) = buffer.ranks, buffer.rank, a.device, a.shape
    copies = not (a.is_contiguous() and aligned(a, TMA)), not aligned(b, TMA)
    gathered = buffer.view(rank, (ranks * rows, k), a.dtype)
    plan = gathered_plan(ranks, problem_of(gathered, aligned_copy(b) if copies[1] else b))
    others = [(rank - step) % ranks for step in range(1, ranks)]  # in the order of their need
    targets = (
        (buffer.view(other, a.shape, a.dtype, rank), buffer.flags(other, torch.uint32))
        for other in others
    )
    arrived = buffer.flags(rank, torch.int32)
    return _Gather(_launcher(plan, device), gathered, arrived, tuple(targets), copies)


def gathered_plan(ranks: int, problem: Problem) -> Sm90Plan:
    """The plan that the model expects to be fastest of those whose tiles have rows of one rank.

    PlanError if there is none; there is one for rows that are a multiple of 64 on each rank.

    >>> gathered_plan(2, Problem.dense(8192, 8192, 8192)).cluster_tile
    (256, 192)
    """
    return replace(_plan_of_rows(ranks, problem, (pingpong, cooperative)), gathered=True).check()


def _plan_of_rows(
    ranks: int, problem: Problem, makers: tuple[Maker, ...], piece_rows: int = 0
) -> Sm90Plan:
    """The best plan of some makers, of tiles with rows of one rank, and of one piece if given."""
    rows = problem.mnk[0] // ranks
    height = gcd(rows, piece_rows)
    able = (each for each in CANDIDATES if each.maker in makers and not each.swapped)
    fitting = [each for each in able if height % (each.tile[0] * each.cluster[0]) == 0]
    if not fitting:
        raise PlanError(
            f"each of {ranks} ranks has {rows} rows: it must have a multiple of {WGMMA_M}, since a "
            "tile has rows of one rank"
        )
    return first_plan(problem, (found.candidate for found in ranking(problem, fitting)))


def _launcher(plan: Sm90Plan, device: torch.device) -> Callable[..., None]:
    """The launch of the plan's kernel on a device."""
    compiled, sms = kernel_on(named(None, device), plan, device)
    return on_device(lambda *arguments: compiled(*arguments, sms), device)


# --- product → reduce-scatter


def _scatter(a: Tensor, b: Tensor, group: ProcessGroup) -> Tensor:
    check_operands(a, b)
    ranks = group.size()
    rows = _rows_of_each(a, ranks)
    if ranks == 1:
        return gemm(a, b)
    k, n = b.shape
    if k == 0:  # other ranks may have more of K, and wait for this one
        a, b = a.new_zeros(a.shape[0], UNIT), b.new_zeros(UNIT, n)
    fits = rows % WGMMA_M == 0 and n % UNIT == 0 and PIECE_ROWS * n < 2**31
    if rows and n and fits and ranks * _pieces_of(rows) <= FLAGS and overlaps(a):
        buffer = symmetric_buffer(group, a.device, "scatter", ranks * rows * n * a.element_size())
        if buffer is not None:
            return _multiply_and_scatter(buffer, a, b)
    partial, scatter = gemm(a, b), torch.ops._c10d_functional.reduce_scatter_tensor
    return waited(scatter(partial, "sum", ranks, group.group_name))


def _rows_of_each(a: Tensor, ranks: int) -> int:
    if a.shape[0] % ranks:
        raise ValueError(
            f"a has shape {tuple(a.shape)}, and the group has {ranks} ranks: each gets an equal "
            f"share of the rows, so M must be a multiple of {ranks}; pad a on every rank"
        )
    return a.shape[0] // ranks


# Rows of C that have one flag. It is the same for all plans, since ranks may have different ones.
PIECE_ROWS = 1024
# Products of a copy, at least; 50 µs on an H200. A copy takes about as long on the host.
COPY_PRODUCTS = 2**34


class _Piece(NamedTuple):
    """Rows of a partial sum that a rank sends, and then a flag."""

    stored: Tensor  # how many of its elements are stored
    elements: int
    number: int  # of its flag


class _Copy(NamedTuple):
    """Pieces that a rank sends at once."""

    rows: slice  # of the product
    there: Tensor  # on the rank that has these rows
    flags: Tensor  # of that rank
    pieces: tuple[_Piece, ...]


@dataclass
class _Scatter:
    """What calls of `gemm_reduce_scatter` keep for tensors of their signature."""

    launch: Callable[..., None]
    parts: Tensor  # (ranks, M / ranks, N), what comes of this rank's rows
    arrived: Tensor  # (ranks, pieces), this rank's flags
    stored: Tensor  # (ranks, pieces), how many elements of each piece all calls have stored
    copies: tuple[_Copy, ...]  # in the order of the product
    calls: int = 0


def _multiply_and_scatter(buffer: SymmetricBuffer, a: Tensor, b: Tensor) -> Tensor:
    """The product of this rank's rows, with what comes, while those of the others are sent."""
    a, b = _readable(a), _readable(b)
    signature = a.shape, a.stride(), b.shape, b.stride(), a.dtype
    call = buffer.prepared.get(signature)
    if call is None:
        call = buffer.prepared[signature] = _prepare_scatter(buffer, a, b)
    mine, partial = (a.new_empty(rows, b.shape[1]) for rows in (call.parts.shape[1], a.shape[0]))
    stream, epoch = buffer.begin(), buffer.next_epoch()
    buffer.barrier()
    call.launch(a, b, call.parts, call.arrived, partial, call.stored, mine, buffer.rank, epoch)
    call.calls += 1
    with buffer.copies():  # enqueued behind the kernel: it must run while they wait
        for rows, there, flags, pieces in call.copies:
            for piece in pieces:
                wait_for_count(piece.stored, call.calls * piece.elements)
            there.copy_(partial[rows])
            for piece in pieces:
                write_flag(flags, piece.number, epoch)
    stream.wait_event(buffer.copied)  # then the memory of `partial` may be used again
    buffer.end(stream)
    return mine


def _prepare_scatter(buffer: SymmetricBuffer, a: Tensor, b: Tensor) -> _Scatter:
    ranks, rank, k = buffer.ranks, buffer.rank, a.shape[1]
    rows, n = shape = a.shape[0] // ranks, b.shape[1]
    plan, pieces = scattered_plan(ranks, problem_of(a, b)), _pieces_of(rows)
    stored = torch.zeros(ranks, pieces, dtype=torch.int32, device=a.device)
    buffer.copies_follow(buffer.begin())  # the zeros are there before a copy waits for others
    height = PIECE_ROWS * -(-COPY_PRODUCTS // (PIECE_ROWS * n * k))
    return _Scatter(
        _launcher(plan, a.device),
        buffer.view(rank, (ranks, *shape), a.dtype),
        buffer.flags(rank, torch.int32, pieces).view(ranks, pieces),
        stored,
        tuple(_copies(buffer, stored, shape, a.dtype, height)),
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
        flags = buffer.flags(other, torch.uint32, pieces)
        whole = tuple(
            _Piece(stored[other, i], n * min(PIECE_ROWS, rows - i * PIECE_ROWS), rank * pieces + i)
            for i in range(pieces)
        )
        for i, there in enumerate(buffer.view(other, shape, dtype, rank).split(height)):
            first, each = other * rows + i * height, height // PIECE_ROWS
            sent = slice(first, first + len(there))
            yield _Copy(sent, there, flags, whole[i * each : (i + 1) * each])


def scattered_plan(ranks: int, problem: Problem) -> Sm90Plan:
    """The pingpong plan that the model expects to be fastest, of tiles with rows of one piece.

    Adding what has come takes time: one consumer does so while the other multiplies. Raises as
    `gathered_plan`.

    >>> plan = scattered_plan(2, Problem.dense(8192, 8192, 4096))
    >>> plan.tile, plan.piece_rows
    ((128, 192, 64), 1024)
    """
    plan = _plan_of_rows(ranks, problem, (pingpong,), PIECE_ROWS)
    raster = Raster(PIECE_ROWS // plan.cluster_tile[0])
    return replace(plan, raster=raster, scattered=True).check()


def _readable(matrix: Tensor) -> Tensor:
    """The matrix, or a copy of it, as kernels read it in place."""
    return matrix if aligned(matrix, TMA) else aligned_copy(matrix)


# --- the group's own collectives, as operators that torch traces


def _all_gathered(a: Tensor, group: ProcessGroup) -> Tensor:
    """The rows of all ranks."""
    gather = torch.ops._c10d_functional.all_gather_into_tensor
    return waited(gather(a.contiguous(), group.size(), group.group_name))


def waited(begun: Tensor) -> Tensor:
    """The result of a collective, for which torch's current stream waits."""
    result: Tensor = torch.ops._c10d_functional.wait_tensor(begun)
    return result


# --- the operators, which torch.compile traces and autograd differentiates


@torch.library.custom_op("cutedsl_gemm::all_gather_gemm", mutates_args=())
def _all_gather_gemm(a: Tensor, b: Tensor, group: str) -> Tensor:
    return _gather(a, b, resolve(group))


@_all_gather_gemm.register_fake
def _(a: Tensor, b: Tensor, group: str) -> Tensor:
    check_operands(a, b, TMA.anywhere)
    return a.new_empty(resolve(group).size() * a.shape[0], b.shape[1])


@torch.library.custom_op("cutedsl_gemm::gemm_reduce_scatter", mutates_args=())
def _gemm_reduce_scatter(a: Tensor, b: Tensor, group: str) -> Tensor:
    return _scatter(a, b, resolve(group))


@_gemm_reduce_scatter.register_fake
def _(a: Tensor, b: Tensor, group: str) -> Tensor:
    check_operands(a, b, TMA.anywhere)
    return a.new_empty(_rows_of_each(a, resolve(group).size()), b.shape[1])


@torch.library.custom_op("cutedsl_gemm::all_gather_gemm_and_rows", mutates_args=())
def _all_gather_gemm_and_rows(a: Tensor, b: Tensor, group: str) -> tuple[Tensor, Tensor]:
    product, rows = _gather_with(a, b, resolve(group), rows=True)
    return product, a.clone() if rows is a else rows


@_all_gather_gemm_and_rows.register_fake
def _(a: Tensor, b: Tensor, group: str) -> tuple[Tensor, Tensor]:
    check_operands(a, b, TMA.anywhere)
    rows = resolve(group).size() * a.shape[0]
    return a.new_empty(rows, b.shape[1]), a.new_empty(rows, a.shape[1])


def _save_rows(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    _, b, ctx.group = inputs
    ctx.save_for_backward(output[1], b)


def _rows_backward(ctx: Any, grad: Tensor, _: Tensor | None) -> tuple[Tensor | None, ...]:
    rows, b = ctx.saved_tensors
    needs_a, needs_b, _ = ctx.needs_input_grad
    of_a = _gemm_reduce_scatter(grad, b.mT, ctx.group) if needs_a else None
    return of_a, _product(rows.mT, grad) if needs_b else None, None


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    a, b, ctx.group = inputs
    ctx.save_for_backward(a, b)


def _gather_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    a, b = ctx.saved_tensors
    needs_a, needs_b, _ = ctx.needs_input_grad
    of_a = _gemm_reduce_scatter(grad, b.mT, ctx.group) if needs_a else None
    of_b = _product(_all_gathered(a, resolve(ctx.group)).mT, grad) if needs_b else None
    return of_a, of_b, None


def _scatter_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    a, b = ctx.saved_tensors
    needs_a, needs_b, _ = ctx.needs_input_grad
    if not needs_b:
        return _all_gather_gemm(grad, b.mT, ctx.group), None, None
    if needs_a:
        of_a, rows = _all_gather_gemm_and_rows(grad, b.mT, ctx.group)
    else:
        of_a, rows = None, _all_gathered(grad, resolve(ctx.group))
    return of_a, _product(a.mT, rows), None


def _product(a: Tensor, b: Tensor) -> Tensor:
    """gemm as an operator, since torch may trace a backward pass."""
    product: Tensor = operator.gemm(a, b, None, None, None, False, False)
    return product


_all_gather_gemm.register_autograd(_gather_backward, setup_context=_save)
_all_gather_gemm_and_rows.register_autograd(_rows_backward, setup_context=_save_rows)
_gemm_reduce_scatter.register_autograd(_scatter_backward, setup_context=_save)
