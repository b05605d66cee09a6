"""The matrices that a GEMM kernel takes: its compiled signature, and what its executor checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from cutedsl_gemm.kernels.plan.kernel_plan import KernelPlan


class Argument(NamedTuple):
    """One matrix in global memory. Its leading stride is the stride of the other mode."""

    modes: tuple[str, str]  # of M, N and K: its rows, its columns
    row_major: bool  # whether its rows are contiguous; else its columns are
    alignment: int  # of the leading stride and of the address, in elements


def arguments(plan: KernelPlan) -> dict[str, Argument]:
    """A (M, K), B (K, N) and C (M, N), by the names of the tensors.

    >>> from cutedsl_gemm.kernels.sm80.rungs import multistage
    >>> for name, argument in arguments(multistage(alignment=4)).items():
    ...     print(name, *argument)
    a ('M', 'K') True 4
    b ('K', 'N') True 4
    out ('M', 'N') True 4
    """
    return {
        "a": Argument(("M", "K"), plan.a_major == "K", plan.alignment),
        "b": Argument(("K", "N"), plan.b_major == "MN", plan.alignment),
        "out": Argument(("M", "N"), True, plan.c_alignment),
    }
