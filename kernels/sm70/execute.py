"""The executor of the sm70 plans: sm80's steps over k-tiles, the residue of K first."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from cutedsl_gemm.kernels.executor import executor
from cutedsl_gemm.kernels.sm70.plan import Sm70Plan
from cutedsl_gemm.kernels.sm80.execute import steps
from layouts import (
    QUAD_PAIRS,
    Layout,
    composition,
    make_layout,
    right_inverse,
    volta_mma,
)


@executor
def gemm(plan: Sm70Plan, a: Tensor, b: Tensor, out: Tensor) -> Iterator[float]:
    """out (M, N) = a (M, K) · b (K, N) on CPU tensors; K > 0. Yields once per k-tile."""
    plan.check_k(a.shape[1])
    bk, registers = plan.tile[2], mma_registers(plan)
    yield from steps(plan, residue_first(a, bk), residue_first(b.mT, bk).mT, out, registers)


def mma_registers(plan: Sm70Plan) -> Layout:
    """(thread, register) → m + BM * n: the accumulators of sixteen mma by each quad pair.

    One half of the quad pair reads four of the eight rows, and four of the eight columns.

    >>> from cutedsl_gemm.kernels.sm70.plan import volta884
    >>> print(*mma_registers(volta884()), sep="\\n")
    (((2,2),(2,2),2),2):(((1,256),(32,4096),8),64)
    ((2,2,2),(2,2,2,2)):((128,2,1024),(4,16,512,2048))
    """
    bm, atom = plan.tile[0], volta_mma("col", "row")
    (_, m_pair, _, m_half, m_warp), (_, (m, m_load)) = plan.fragment_copies["A"].rows.stride
    (_, _, n_pair, n_half, _), (_, (n, n_load)) = plan.fragment_copies["B"].rows.stride
    rows, columns = (m, m_half), (n * bm, n_half * bm)
    threads, values = composition(Layout(((4, 2), (4, 2)), (rows, columns)), atom.c)
    pairs = make_layout(threads, Layout((2, 2), (m_pair, n_pair * bm)))  # (thread of 8, quad pair)
    lanes = composition(pairs, right_inverse(QUAD_PAIRS))
    mma = Layout((2, 2, 2, 2), (4 * m, m_load, 4 * n * bm, n_load * bm))  # a half, then a load
    return make_layout(make_layout(lanes, Layout(2, m_warp)), make_layout(values, mma))


def residue_first(matrix: Tensor, bk: int) -> Tensor:
    """(rows, K) with zeros after the residue of K, so that every k-tile is whole.

    >>> residue_first(torch.tensor([[1, 2, 3, 4, 5]]), 4)
    tensor([[1, 0, 0, 0, 2, 3, 4, 5]])
    """
    rows, k = matrix.shape
    residue = (k - 1) % bk + 1
    head, rest = matrix[:, :residue], matrix[:, residue:]
    return torch.cat((head, head.new_zeros(rows, bk - residue), rest), dim=1)
