"""The executor of the SIMT plans: data goes where the plan's layouts send it, on the CPU.

    global ─ copies of A, B ▶ shared memory ─ rows that a thread multiplies by ▶ registers
           ─ copy of C ▶ global

The threads are the units that multiply.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from cutedsl_gemm.kernels.executor import executor, thread_values
from cutedsl_gemm.kernels.executor.blocks import Direct, Fragments, Staged, multiply
from cutedsl_gemm.kernels.plan.checks import refuse, shape_problem
from cutedsl_gemm.kernels.simt.plan import SimtPlan


@executor
def gemm(
    plan: SimtPlan,
    a: Tensor,
    b: Tensor,
    out: Tensor | tuple[Tensor, ...],
    operands: Sequence[Tensor | float] = (),
) -> Iterator[float]:
    """out (M, N) = the epilogue of a (M, K) · b (K, N) on CPU tensors; K > 0.

    Yields once per k-tile.
    """
    thread, value = torch.broadcast_tensors(*thread_values(plan.c.rows))
    rows = plan.thread_tile[0]  # of a thread; its values count them first
    held = thread, value % rows, value // rows
    loads = fragments(plan, "A"), fragments(plan, "B")
    yield from multiply(plan, a, b, out, operands, loads, held)


def fragments(plan: SimtPlan, name: str) -> Fragments:
    """An operand from global memory to the threads' registers, through shared memory if staged."""
    operand, bk, rows = plan.operands.get(name), plan.tile[2], plan.fragment(name)
    row, k = rows(*thread_values(rows))[..., None], torch.arange(bk)  # (thread, value, 1), (BK)
    if operand is None:
        return Direct(row * bk + k)
    shape = plan.tile["AB".index(name)], bk
    refuse(plan.name, shape_problem(name, operand.smem, shape))
    return Staged(operand.copy, operand.smem, [operand.smem(row, k)])
