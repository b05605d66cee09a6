"""A panel in registers and in shared memory: stmatrix, ldmatrix and TMA by four warps."""

import cutlass.cute as cute

from cutedsl_gemm.kernels.device import lower
from layouts import size
from layouts.hardware.atoms import WGMMA_M


def tiled_copy(plan, op, dtype):
    """stmatrix or ldmatrix of 64 × S elements at a time, by the threads that hold them."""
    tiler = WGMMA_M, plan.stmatrix_columns
    atom = cute.make_copy_atom(op, dtype)
    return cute.make_tiled_copy(atom, lower.layout(plan.stmatrix_tv), tiler)


def lane_rows(plan, partitioned):
    """The addresses of a thread in partitioned panels: (S/2, R/64, P/S, staged_panels).

    A lane addresses eight elements. With x2 it holds only four, and cute.copy needs equal counts.
    """
    held = size(plan.fragment[0])
    return cute.logical_divide(partitioned, (held,))[(None, 0), None, None, None]


def issues_tma():
    """Whether this warp issues the TMA copies of its consumer: the first of four does."""
    return cute.arch.make_warp_uniform(cute.arch.warp_idx()) % 4 == 0
