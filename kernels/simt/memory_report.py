"""The memory report of the SIMT plans: why each rung is faster than the one before."""

from __future__ import annotations

from cutedsl_gemm.kernels.plan.memory_report import MemoryReport, global_sectors
from cutedsl_gemm.kernels.simt.plan import BITS, SimtPlan
from layouts import Layout, size, wavefronts
from layouts.hardware.facts import WARP

BYTES = BITS // 8


def memory_report(plan: SimtPlan) -> MemoryReport:
    """What the accesses of the plan's first warp cost.

    >>> from cutedsl_gemm.kernels.simt.rungs import RUNGS
    >>> print(*(memory_report(rung()) for rung in RUNGS), sep="\\n")
    requests A 32, B 1, C 32; for each FMA of a warp 33 sectors, 0 wavefronts
    requests A 1, B 4, C 4; for each FMA of a warp 5 sectors, 0 wavefronts
    requests A 4, B 4, C 4; for each FMA of a warp 0.25 sectors, 2 wavefronts
    requests A 4, B 4, C 4; for each FMA of a warp 0.125 sectors, 1.12 wavefronts
    requests A 16, B 16, C 16; for each FMA of a warp 0.0625 sectors, 0.25 wavefronts
    """
    majors = plan.a_major, plan.b_major
    requests, sectors = global_sectors(plan.global_copies, majors, BYTES, plan.tile[2])
    loads = (
        _load_wavefronts(operand.smem, plan.fragment(name), plan.c.width)
        for name, operand in plan.operands.items()
    )
    return MemoryReport(requests, sectors, sum(loads) / plan.c.values)


def _load_wavefronts(smem: Layout, rows: Layout, width: int) -> int:
    """Wavefronts in which a warp reads what it multiplies by at one k."""
    values = range(0, size(rows[1]), width)
    loads = ([smem(rows(lane, value), 0) * BYTES for lane in range(WARP)] for value in values)
    return sum(wavefronts(load, width * BYTES).count for load in loads)
