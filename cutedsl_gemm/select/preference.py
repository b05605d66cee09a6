"""Whether gemm is expected to be at least as fast as torch.mm (cuBLAS) on Hopper."""

from __future__ import annotations

from functools import lru_cache

from cutedsl_gemm.inputs.problem import Problem
from cutedsl_gemm.inputs.remember import REMEMBERED
from cutedsl_gemm.select.model import best, estimate

FEW_ROWS = 256  # decoding: gemm streams the weights as fast as torch.mm does
LONG_K = 3000
LEAST_SIDE_OF_BATCH, LEAST_SIDE_AT_SHORT_K, SHORT_K_OF_BATCH = 128, 33, 512  # side: M or N
LEAST_SIDE_OF_ODD_BATCH, LEAST_K_OF_ODD_BATCH = 65, 48


@lru_cache(REMEMBERED)
def beats_torch(m: int, n: int, k: int) -> bool:
    """Whether gemm is expected to be at least as fast as torch.mm on an H100.

    It is on average, except where M and N exceed 256, K is 3,000 or more, and a single wave of
    blocks computes C without splitting K: blocks fall out of step, and read again what they share
    (docs/performance/notebook.md, "Weights of language models, at any number of rows").

    >>> beats_torch(8192, 4096, 4096), beats_torch(16, 8192, 8192), beats_torch(1024, 4096, 14336)
    (True, True, False)
    """
    if k < LONG_K or min(m, n) <= FEW_ROWS:
        return True
    problem = Problem.dense(m, n, k)
    found = estimate(problem, best(problem))
    return found.waves > 1 or found.candidate.splits > 1


def batch_beats_torch(m: int, n: int, k: int, in_place: bool = True) -> bool:
    """Whether gemm is expected to be at least as fast as torch.bmm on Hopper, at these extents.

    It is on average where M and N are 128 or more; and where they exceed 32, if K is at most 512.
    If TMA does not read and store all matrices `in_place`, torch needs longer, too, and gemm is
    faster where M and N exceed 64 and K is 48 or more. The bounds were drawn by eye, from 98 and
    108 batches on H200s (docs/performance/notebook.md, "Batches" and "Batches of any strides").

    >>> [batch_beats_torch(*mnk) for mnk in ((1024, 1024, 1024), (64, 4096, 128), (64, 5760, 2880))]
    [True, True, False]
    >>> [batch_beats_torch(1023, n, 1023, in_place=False) for n in (64, 128)]
    [False, True]
    """
    side = min(m, n)
    if not in_place:
        return side >= LEAST_SIDE_OF_ODD_BATCH and k >= LEAST_K_OF_ODD_BATCH
    return side >= LEAST_SIDE_OF_BATCH or (side >= LEAST_SIDE_AT_SHORT_K and k <= SHORT_K_OF_BATCH)
