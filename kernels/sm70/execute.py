"""The executor of the sm70 plans: as sm80's, with LDS.128 for ldmatrix, and the residue of K first.

A thread loads eight contiguous elements at a time, the operands of two mma.m8n8k4. The quad pairs
are the units that multiply.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from cutedsl_gemm.kernels.executor import executor, thread_values
from cutedsl_gemm.kernels.executor.blocks import multiply
from cutedsl_gemm.kernels.plan.checks import PlanError
from cutedsl_gemm.kernels.sm70.plan import Sm70Plan
from cutedsl_gemm.kernels.sm80.execute import accumulators, operand_rows, staged
from cutedsl_gemm.kernels.sm80.fragments import Name
from layouts import QUAD_PAIRS, Layout, cosize, make_layout, right_inverse, size, volta_mma
from layouts.hardware.facts import WARP

MMA = volta_mma("col", "row")


@executor
def gemm(
    plan: Sm70Plan,
    a: Tensor,
    b: Tensor,
    out: Tensor | tuple[Tensor, ...],
    operands: Sequence[Tensor | float] = (),
) -> Iterator[float]:
    """out (M, N) = the epilogue of a (M, K) · b (K, N) on CPU tensors; K > 0.

    Yields once per k-tile. PlanError if the kernel cannot compute the residue of K first.
    """
    plan.check_k(a.shape[1])
    bk, units = plan.tile[2], right_inverse(quad_pairs(plan))
    loads = staged(plan, "A", vector_reads(plan, "A")), staged(plan, "B", vector_reads(plan, "B"))
    held = accumulators(plan, MMA, units, loads[0].shape[1])
    a, b = residue_first(a, bk), residue_first(b.mT, bk).mT
    yield from multiply(plan, a, b, out, operands, loads, held)


def quad_pairs(plan: Sm70Plan) -> Layout:
    """(thread of a quad pair, quad pair) → thread of the block.

    >>> from cutedsl_gemm.kernels.sm70.plan import volta884
    >>> print(quad_pairs(volta884()))
    ((4,2),(4,2)):((1,16),(4,32))
    """
    threads, pairs = QUAD_PAIRS
    return make_layout(threads, make_layout(pairs, Layout(plan.threads // WARP, WARP)))


def vector_reads(plan: Sm70Plan, name: Name) -> Tensor:
    """(step, quad pair, row of it, k) → element of a stage that mma takes there.

    A thread's vector begins where the plan says, and is contiguous in memory.
    """
    mode = "AB".index(name)
    smem, copy = (plan.a, plan.b)[mode].mma_smem, plan.fragment_copies[name]
    if cosize(copy.rows) != plan.step[mode]:
        raise PlanError(
            f"{plan.name}: step is {plan.step}, and the vectors of {name} in a step have "
            f"{cosize(copy.rows)} rows"
        )
    thread, vector = torch.arange(copy.threads)[:, None], copy.width * torch.arange(copy.vectors)
    step = torch.arange(plan.steps)[:, None, None]
    k = copy.columns(thread, vector) + plan.step[2] * step
    address = smem(copy.rows(thread, vector), k)  # (step, thread, vector)
    loaded = (address[..., None] + torch.arange(copy.width)).flatten(2)  # (step, thread, value)
    held = loaded[:, quad_pairs(plan)(*thread_values(quad_pairs(plan)))]
    held = held.unflatten(3, (-1, size(MMA.a[1])))  # (step, thread of 8, quad pair, mma, value)
    return operand_rows(held.permute(0, 2, 3, 1, 4), (MMA.a, MMA.b)[mode], MMA.shape[2])


def residue_first(matrix: Tensor, bk: int) -> Tensor:
    """(rows, K) with zeros after the residue of K, so that every k-tile is whole.

    >>> residue_first(torch.tensor([[1, 2, 3, 4, 5]]), 4)
    tensor([[1, 0, 0, 0, 2, 3, 4, 5]])
    """
    rows, k = matrix.shape
    residue = (k - 1) % bk + 1
    head, rest = matrix[:, :residue], matrix[:, residue:]
    return torch.cat((head, head.new_zeros(rows, bk - residue), rest), dim=1)
