"""The tensors that a GEMM kernel takes: its compiled signature, and what its executor checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from cutedsl_gemm.kernels.epilogue.checks import problems
from cutedsl_gemm.kernels.epilogue.expression import EpilogueOperand, Result

if TYPE_CHECKING:
    from torch import Tensor

    from cutedsl_gemm.kernels.plan.kernel_plan import KernelPlan


class Argument(NamedTuple):
    """One tensor in global memory. A matrix has a leading stride, that of its other mode.

    A tensor of three modes is a stack of matrices. A mode named by a number has that extent.
    """

    modes: tuple[str, ...]  # of a matrix of M, N and K: its rows, its columns
    row_major: bool  # whether the rows of a matrix are contiguous; else its columns are
    alignment: int  # of the leading stride, that of a stack, and the address, in elements
    dtype: str

    @property
    def contiguous(self) -> int:
        """The contiguous mode, counted from the last: -1 or -2."""
        return -1 if self.row_major else -2

    def shape(self, extents: Mapping[str, Any]) -> list[Any]:
        """The extents of the tensor, from those of its modes."""
        return [int(mode) if mode.isdigit() else extents[mode] for mode in self.modes]


def arguments(plan: KernelPlan) -> dict[str, Argument]:
    """A (M, K), B (K, N), the operands of the epilogue, and its results, C (M, N), by name.

    B is (2, K, N) if the epilogue has two accumulators. A reduction over N is stored in parts,
    (parts, M), and one over M as (parts, N). If the plan is batched, A, B, the results and batched
    operands have a mode L before these: B is (2, L, K, N) for two accumulators. Operands that are
    passed by value are not tensors. `other_gpus` follow B. If C is scattered, the result is this
    GPU's rows.

    >>> from cutedsl_gemm.kernels.sm80.rungs import multistage
    >>> for name, argument in arguments(multistage(alignment=4)).items():
    ...     print(name, *argument)
    a ('M', 'K') True 4 bfloat16
    b ('K', 'N') True 4 bfloat16
    out ('M', 'N') True 4 bfloat16
    """
    epilogue = plan.epilogue
    tensors = (operand for operand in epilogue.operands if not operand.by_value)
    results = zip(epilogue.result_names, epilogue.results, strict=True)
    batch = ("L",) if plan.batched else ()
    stack = batch if epilogue.accumulators == 1 else (str(epilogue.accumulators), *batch)
    return {
        "a": Argument((*batch, "M", "K"), plan.a_major == "K", plan.alignment, plan.dtype),
        "b": Argument((*stack, "K", "N"), plan.b_major == "MN", plan.alignment, plan.dtype),
        **other_gpus(plan),
        **{operand.name: _operand(operand) for operand in tensors},
        **{name: _result(plan, each) for name, each in results},
    }


def epilogue_problems(plan: KernelPlan) -> Iterator[str]:
    """The epilogue must be valid. No operand may have the name of another argument of the kernel.

    >>> from cutedsl_gemm.kernels.epilogue.expression import Epilogue, Instruction
    >>> from cutedsl_gemm.kernels.sm80.rungs import multistage
    >>> multistage(epilogue=Epilogue((Instruction("sin", (0,)),)))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    cutedsl_gemm.kernels.plan.checks.PlanError: ...: instruction 0, sin: there is no...
    """
    for problem in problems(plan.epilogue):
        yield f"epilogue: {problem}"
    others = "a", "b", *other_gpus(plan), *plan.epilogue.result_names
    for operand in plan.epilogue.operands:
        if operand.name in others:
            yield f"epilogue: an operand is named {operand.name}, as another argument; rename it"


class GatheredRows(NamedTuple):
    """If A is gathered: this GPU's rows of it (rows, K), and this GPU's number.

    The executor reads these rows from `own`, not from a.
    """

    own: Tensor
    number: int


class ScatteredRows(NamedTuple):
    """If C is scattered: what GPUs send of this GPU's rows, and what this GPU sends.

    `parts` (GPUs, rows, N) comes from all GPUs; `partial` (M, N) receives the rows of the others.
    """

    parts: Tensor
    number: int
    partial: Tensor


Exchange: TypeAlias = GatheredRows | ScatteredRows


def other_gpus(plan: KernelPlan) -> dict[str, Argument]:
    """What a kernel takes to talk with other GPUs.

    If A is gathered: this GPU's rows of it, and the flags of all GPUs' rows. If C is scattered: the
    parts of this GPU's rows that come from all GPUs, and their flags; what the kernel stores of
    other GPUs' rows, and the counts of what is there. Flags and counts are of pieces of rows.
    """
    if plan.gathered:
        return {
            "own": Argument(("rows", "K"), plan.a_major == "K", plan.alignment, plan.dtype),
            "arrived": Argument(("GPUs",), True, 1, "int32"),
        }
    if not plan.scattered:
        return {}
    part = Argument(("M", "N"), True, plan.c_alignment, plan.dtype)
    flags = Argument(("GPUs", "pieces"), True, 1, "int32")
    return {
        "parts": part._replace(modes=("GPUs", "rows", "N")),
        "arrived": flags,
        "partial": part,
        "stored": flags,
    }


def _operand(operand: EpilogueOperand) -> Argument:
    modes = operand.tensor_modes or ("1",)
    return Argument(modes, operand.row_major, operand.alignment, operand.dtype)


def _result(plan: KernelPlan, result: Result) -> Argument:
    batch = ("L",) if plan.batched else ()
    if result.reduction is not None:
        return Argument((*batch, parts_mode(result), *result.modes), True, 1, "float32")
    rows = "rows" if plan.scattered else "M"
    return Argument((*batch, rows, "N"), True, plan.c_alignment, result.dtype or plan.dtype)


def parts_mode(result: Result) -> str:
    """The name of the first mode of a reduction's tensor (parts, …)."""
    return f"parts of {result.over}"
