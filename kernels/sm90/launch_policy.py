"""How a launch meets its neighbours: whether it starts early, and which operands stay in L2.

Both are rules from measurements, of an H100 SXM. Extents are ints, or a kernel's integers.
"""

from __future__ import annotations

from typing import Any

from cutedsl_gemm.kernels.plan.checks import BITS
from cutedsl_gemm.kernels.sm90.plan import Sm90Plan

# A launch with a K of at most SHORTEST_K overlaps the previous one, whatever M and N are. With a K
# of at most SHORT_K, or of SHORT_K_OF_A_WAVE if all tiles fit into one wave, it does if A, B and C
# take at most SMALL_BYTES.
SHORTEST_K = 256
SHORT_K = 512
SHORT_K_OF_A_WAVE = 1024
SMALL_BYTES = 30_000_000
TOO_LARGE_FOR_L2 = 45_000_000  # bytes of an operand; an H100's L2 has 50 MB
LARGE_C = 25_000_000  # bytes: half of that L2
# Bytes of an operand that stays in L2 only if each half of L2 serves the same rows again.
LEAST_OF_BOTH_HALVES, MOST_OF_BOTH_HALVES = 34_000_000, 42_000_000
LINE = 64  # elements of a line of L2, 128 bytes


def uses_pdl(plan: Sm90Plan, m: Any, n: Any, k: Any, sms: Any) -> Any:
    """Whether a launch for A (M, K) and B (N, K) starts before the previous one has ended.

    M and N are `operand_rows`.

    This saves 0.3 to 0.9 µs (programmatic dependent launch). But the blocks then start wherever
    a multiprocessor falls free, and the neighbours of a GPC no longer ask L2 for the same tile
    at the same time: 595 TFLOP/s, not 776, at 8448×9216×1024. Where K is split, the previous
    launch is often a small reduction. Few blocks have little to share. If K is short, more is
    saved than lost, most of all if all tiles fit into one wave, but not if A, B and C are large
    (docs/performance).

    A cluster is in one GPC anyway. But if one tile reads each row of an operand of 34 to 42 MB, L2
    seems to keep it only if each half serves the same rows in each launch. If its rows are not
    aligned to 128 bytes, such launches do not overlap: 12.0 µs, not 14.1, at 6296×64×3016. K stands
    for the pitch of the rows.

    >>> from cutedsl_gemm.kernels.sm90.rungs import pingpong, split
    >>> [uses_pdl(pingpong(), 8192, 8192, k, 132) for k in (256, 512)]
    [True, False]
    >>> [uses_pdl(pingpong(), m, 2048, 1024, 132) for m in (1024, 2048)]
    [True, False]
    >>> [uses_pdl(pingpong(), 1280, 1280, k, 132) for k in (1024, 1280)]
    [True, False]
    >>> [uses_pdl(each, 8192, 8192, 8192, 132) for each in (pingpong(cluster=(2, 1)), split())]
    [True, True]
    >>> tall = pingpong((64, 72, 64), cluster=(8, 1))
    >>> [uses_pdl(tall, 6296, n, k, 132) for n, k in ((64, 3016), (64, 3008), (80, 3016))]
    [False, True, True]
    >>> wide = pingpong((64, 72, 64), cluster=(1, 8))  # operands of 31.9, 35.9, 39.9 and 43.9 MB
    >>> [uses_pdl(wide, 64, n, 1992, 132) for n in (8000, 9000, 10000, 11000)]
    [True, False, False, True]
    """
    if plan.splits > 1:
        return True
    if plan.cluster_size > 1:
        return _clusters_overlap(plan, m, n, k)
    bm, bn, _ = plan.tile
    tiles = ((m + bm - 1) // bm) * ((n + bn - 1) // bn)
    short = (k <= SHORT_K) | ((tiles <= sms) & (k <= SHORT_K_OF_A_WAVE))
    small = BITS // 8 * (m * k + n * k + m * n // plan.matrices) <= SMALL_BYTES
    return (2 * tiles <= sms) | (k <= SHORTEST_K) | (short & small)


def _clusters_overlap(plan: Sm90Plan, m: Any, n: Any, k: Any) -> Any:
    """Whether a launch of clusters overlaps the previous one: see `uses_pdl`."""
    bm, bn, _ = plan.tile
    return (k % LINE == 0) | (_in_any_order(m * k, n > bn) & _in_any_order(n * k, m > bm))


def _in_any_order(elements: Any, shared: Any) -> Any:
    """Whether L2 serves an operand as well if other multiprocessors read its rows in each launch.

    `shared` says whether several tiles read each row.
    """
    size = BITS // 8 * elements
    return shared | (size < LEAST_OF_BOTH_HALVES) | (size > MOST_OF_BOTH_HALVES)


def pass_through_l2(plan: Sm90Plan, m: Any, n: Any, k: Any) -> tuple[Any, Any]:
    """Whether A (M, K) and B (N, K) pass through L2, which then evicts them first.

    An operand does if it is too large to stay there, and at most two clusters of tiles read it,
    at about the same time. Other data then stay: the small operand, and the partial sums if K
    is split. No operand does if C is large: C is stored with evict-first, too. It would stay in
    L2 longer, and be written to DRAM while the next launch reads (docs/performance). C counts
    as one result of 16 bits. M and N are `operand_rows`.

    >>> from cutedsl_gemm.kernels.sm90.rungs import pingpong
    >>> plan = pingpong()  # 8192 × 8192 elements have 134 MB, 4096 × 4096 have 34 MB
    >>> pass_through_l2(plan, 256, 8192, 8192), pass_through_l2(plan, 256, 4096, 4096)
    ((False, True), (False, False))
    >>> pass_through_l2(plan, 264, 8192, 8192)
    (False, False)
    >>> for rows in 28672, 57344:  # C has 15 and 29 MB
    ...     print(pass_through_l2(plan, 256, rows, 8192), pass_through_l2(plan, rows, 256, 8192))
    (False, True) (True, False)
    (False, False) (False, False)
    """
    (bm, bn, _), (down, across) = plan.tile, plan.cluster
    small_c = BITS // 8 * (m * n // plan.matrices) < LARGE_C
    of_a = (n <= 2 * bn * across) & (BITS // 8 * m * k >= TOO_LARGE_FOR_L2) & small_c
    of_b = (m <= 2 * bm * down) & (BITS // 8 * n * k >= TOO_LARGE_FOR_L2) & small_c
    return of_a, of_b
