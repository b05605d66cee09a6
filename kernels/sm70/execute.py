"""The executor of the sm70 plans: sm80's steps over k-blocks whose first is the residue."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from cutedsl_gemm.kernels.on_cpu import on_cpu
from cutedsl_gemm.kernels.sm70.plan import Sm70Plan
from cutedsl_gemm.kernels.sm80.execute import steps


@on_cpu
def gemm(plan: Sm70Plan, a: Tensor, b: Tensor, out: Tensor) -> Iterator[float]:
    """out (M, N) = a (M, K) · b (K, N) on CPU tensors; K > 0. A step is a k-block."""
    depth = plan.tile[2]
    yield from steps(plan, residue_first(a, depth), residue_first(b.mT, depth).mT, out)


def residue_first(matrix: Tensor, depth: int) -> Tensor:
    """(rows, K) with zeros behind the residue of K, so that all k-blocks are whole.

    >>> residue_first(torch.tensor([[1, 2, 3, 4, 5]]), 4)
    tensor([[1, 0, 0, 0, 2, 3, 4, 5]])
    """
    rows, k = matrix.shape
    residue = (k - 1) % depth + 1
    head, rest = matrix[:, :residue], matrix[:, residue:]
    return torch.cat((head, head.new_zeros(rows, depth - residue), rest), dim=1)
