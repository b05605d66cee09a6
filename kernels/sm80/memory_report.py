"""The memory report of the sm80 plans: wavefronts of ldmatrix, and what the blocks read of L2."""

from __future__ import annotations

from cutedsl_gemm.kernels.plan.checks import BITS
from cutedsl_gemm.kernels.plan.memory_report import MemoryReport, global_sectors
from cutedsl_gemm.kernels.sm80.fragments import ldmatrix_rows
from cutedsl_gemm.kernels.sm80.plan import Sm80Plan
from layouts import ComposedLayout, Layout, composition, wavefronts
from layouts.hardware.atoms import MATRIX_COLUMNS, MATRIX_ROWS
from layouts.hardware.facts import WARP


def memory_report(plan: Sm80Plan) -> MemoryReport:
    """What the accesses of the plan's first warp cost.

    >>> from cutedsl_gemm.kernels.sm80.rungs import large, mma, swizzled, wide
    >>> for rung in (mma, swizzled, large, wide):
    ...     print(memory_report(rung(b_major="K")))
    requests A 16, B 16, C 8; for each FMA of a warp 0.0312 sectors, 0.125 wavefronts
    requests A 16, B 16, C 8; for each FMA of a warp 0.0312 sectors, 0.0156 wavefronts
    requests A 16, B 16, C 8; for each FMA of a warp 0.0234 sectors, 0.0156 wavefronts
    requests A 16, B 16, C 16; for each FMA of a warp 0.0234 sectors, 0.0156 wavefronts
    """
    majors = plan.a_major, plan.b_major
    requests, sectors = global_sectors(plan.global_copies, majors, BITS // 8, plan.tile[2])
    (bm, bn, _), (down, along) = plan.tile, plan.warps
    rows, columns = bm // down, bn // along  # of a warp
    wave_a, wave_b = ldmatrix_wavefronts(plan)
    read = (rows * wave_a + columns * wave_b) / (8 * 8)  # per k: a matrix is 8 rows, 8 deep
    return MemoryReport(requests, sectors, read / (rows * columns / WARP))


def ldmatrix_wavefronts(plan: Sm80Plan) -> tuple[int, int]:
    """Wavefronts of one 8×8 matrix of A, and of B.

    >>> from cutedsl_gemm.kernels.sm80.rungs import mma, padded, swizzled
    >>> [ldmatrix_wavefronts(rung()) for rung in (mma, padded, swizzled)]
    [(8, 8), (1, 1), (1, 1)]
    """
    a, b = ldmatrix_rows(plan, "A")[0], ldmatrix_rows(plan, "B")[0]
    return _matrix(plan.a.mma_smem, a), _matrix(plan.b.mma_smem, b)


def _matrix(smem: ComposedLayout, lanes: Layout) -> int:
    """Wavefronts of the rows of a matrix, whose addresses its lanes give."""
    rows = composition(smem, composition(lanes, Layout(MATRIX_ROWS)))
    return wavefronts(rows, MATRIX_COLUMNS * BITS // 8, unit=BITS).count
