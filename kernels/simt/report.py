"""The memory report of the SIMT plans: why each rung is faster than the one before."""

from __future__ import annotations

from cutedsl_gemm.kernels.memory import WARP, Report, sectors
from cutedsl_gemm.kernels.share import Share
from cutedsl_gemm.kernels.simt.plan import BITS, SimtPlan
from layouts import Layout, size, wavefronts

FAR = 1 << 20  # elements between the lines of a matrix: no two share a sector
BYTES = BITS // 8


def report(plan: SimtPlan) -> Report:
    """What the accesses of the plan's first warp cost.

    >>> from cutedsl_gemm.kernels.simt.plan import RUNGS
    >>> print(*(report(rung()) for rung in RUNGS), sep="\\n")
    requests A 32, B 1, C 32; for each FMA of a warp 33 sectors, 0 wavefronts
    requests A 1, B 4, C 4; for each FMA of a warp 5 sectors, 0 wavefronts
    requests A 4, B 4, C 4; for each FMA of a warp 0.25 sectors, 2 wavefronts
    requests A 4, B 4, C 4; for each FMA of a warp 0.125 sectors, 1.12 wavefronts
    requests A 16, B 16, C 16; for each FMA of a warp 0.0625 sectors, 0.25 wavefronts
    """
    strides = {
        "A": (FAR, 1) if plan.a_major == "K" else (1, FAR),
        "B": (FAR, 1) if plan.b_major == "K" else (1, FAR),
        "C": (FAR, 1),
    }
    requests = {name: _sectors(share, strides[name]) for name, share in plan.shares.items()}
    moves = {name: share.lines * share.vectors for name, share in plan.shares.items()}
    brought = sum(requests[name] * moves[name] for name in ("A", "B"))  # a warp, each k-block
    outputs = size(plan.c.rows[1])
    return Report(requests, brought / (outputs * plan.tile[2]), _wavefronts(plan) / outputs)


def _sectors(share: Share, strides: tuple[int, int]) -> int:
    """Of a warp's first request."""
    at = share.at(*strides)
    return sectors((at(lane, 0) * BYTES for lane in range(WARP)), share.width * BYTES)


def _wavefronts(plan: SimtPlan) -> int:
    """To read what a warp multiplies at one k."""
    stages = (("A", plan.a), ("B", plan.b))
    return sum(
        _read(stage.smem, plan.operand(name), plan.c.width)
        for name, stage in stages
        if stage is not None
    )


def _read(smem: Layout, rows: Layout, width: int) -> int:
    values = range(0, size(rows[1]), width)
    reads = ([smem(rows(lane, v), 0) * BYTES for lane in range(WARP)] for v in values)
    return sum(wavefronts(read, width * BYTES).count for read in reads)
