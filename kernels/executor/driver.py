"""The driver: an executor from a generator of its steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from cutedsl_gemm.kernels.executor.tensors import check_tensors, on_cpu, other_gpus_tensors
from cutedsl_gemm.kernels.plan.arguments import Exchange
from cutedsl_gemm.kernels.plan.checks import PlanError
from cutedsl_gemm.kernels.plan.kernel_plan import Report


def executor(steps: Callable[..., Iterator[float]]) -> Callable[..., None]:
    """An executor (plan, a, b, out, report=None, operands=()) from a generator of its steps.

    `steps` yields the fraction that is done; `report`, if given, is called with it. `operands` are
    those of the plan's epilogue, tensors and numbers; if it has several results, `out` is a tuple.
    A plan that gathers A or scatters C also needs `exchange`. Further keywords are passed on to
    `steps`. Every tensor is made on the CPU, whatever torch's default device is, and nothing is
    cast, whatever autocast says.

    The executor takes the tensors that the compiled kernel takes (`check_tensors`). PlanError if
    the plan sends data to where there is no memory.
    """

    @wraps(steps)
    def gemm(
        plan: Any,
        a: Tensor,
        b: Tensor,
        out: Tensor | tuple[Tensor, ...],
        report: Report | None = None,
        operands: tuple[Tensor | float, ...] = (),
        exchange: Exchange | None = None,
        **options: Any,
    ) -> None:
        tensors = (each for each in operands if isinstance(each, Tensor))
        sent = () if exchange is None else other_gpus_tensors(plan, a, exchange)
        check_tensors(plan, a, b, *sent, *tensors, *(out if isinstance(out, tuple) else (out,)))
        if operands:
            options["operands"] = operands
        if exchange is not None:
            options["exchange"] = exchange
        with on_cpu(), torch.autocast("cpu", enabled=False):
            try:
                for done in steps(plan, a, b, out, **options):
                    if report is not None:
                        report(done)
            except IndexError as error:
                raise PlanError(
                    f"{plan.name}: an address is outside its buffer: {error}"
                ) from error

    return gemm
