"""The tensors that a GEMM kernel takes: its compiled signature, and what its executor checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cutedsl_gemm.kernels.epilogue.expression import PLAIN, Epilogue, Operand, Result

if TYPE_CHECKING:
    from cutedsl_gemm.kernels.plan.kernel_plan import KernelPlan


class Argument(NamedTuple):
    """One tensor in global memory. A matrix has a leading stride, that of its other mode."""

    modes: tuple[str, ...]  # of a matrix of M, N and K: its rows, its columns
    row_major: bool  # whether the rows of a matrix are contiguous; else its columns are
    alignment: int  # of the leading stride and of the address, in elements
    dtype: str


def arguments(plan: KernelPlan) -> dict[str, Argument]:
    """A (M, K), B (K, N), the operands of the epilogue, and its results, C (M, N), by name.

    A reduction over N is stored in parts, (parts, M), and one over M as (parts, N). Operands that
    are passed by value are not tensors.

    >>> from cutedsl_gemm.kernels.sm80.rungs import multistage
    >>> for name, argument in arguments(multistage(alignment=4)).items():
    ...     print(name, *argument)
    a ('M', 'K') True 4 bfloat16
    b ('K', 'N') True 4 bfloat16
    out ('M', 'N') True 4 bfloat16
    """
    epilogue: Epilogue = getattr(plan, "epilogue", PLAIN)
    tensors = (operand for operand in epilogue.operands if not operand.by_value)
    results = epilogue.results
    names = ["out"] if len(results) == 1 else [f"out[{i}]" for i in range(len(results))]
    return {
        "a": Argument(("M", "K"), plan.a_major == "K", plan.alignment, plan.dtype),
        "b": Argument(("K", "N"), plan.b_major == "MN", plan.alignment, plan.dtype),
        **{operand.name: _operand(operand) for operand in tensors},
        **{name: _result(plan, each) for name, each in zip(names, results, strict=True)},
    }


def _operand(operand: Operand) -> Argument:
    modes = operand.modes or ("1",)
    return Argument(modes, operand.row_major, operand.alignment, operand.dtype)


def _result(plan: KernelPlan, result: Result) -> Argument:
    if result.reduction is not None:
        kept = "M" if result.over == "N" else "N"
        return Argument((f"parts of {result.over}", kept), True, 1, "float32")
    return Argument(("M", "N"), True, plan.c_alignment, result.dtype or plan.dtype)
