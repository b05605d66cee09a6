"""A program on torch tensors: what the executor computes, and what a device form is tested by."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from cutedsl_gemm.kernels.epilogue.expression import Epilogue, Instruction, Mode, Result


def evaluate(
    epilogue: Epilogue, accumulators: Sequence[Tensor], operands: Sequence[Tensor | float] = ()
) -> tuple[Tensor, ...]:
    """The values of the results, before they are reduced, and before they are rounded.

    All tensors broadcast against each other, as torch's do: accumulators of shape (M, N), or any
    part of one; operands of shape (M, N), (1, N), (M, 1), (1, 1) for C, or of the same part. The
    values are fp32; they are fp64 if the accumulators are.

    >>> from cutedsl_gemm.kernels.epilogue.trace import trace
    >>> twice = trace(lambda acc: (acc * 2, acc.sum(dim=1)))
    >>> [each.tolist() for each in evaluate(twice, (torch.ones(1, 3),))]
    [[[2.0, 2.0, 2.0]], [[1.0, 1.0, 1.0]]]
    """
    dtype = torch.float64 if accumulators[0].dtype == torch.float64 else torch.float32
    device = accumulators[0].device

    def leaf(value: Tensor | float) -> Tensor:
        return torch.as_tensor(value, dtype=dtype, device=device)

    leaves = {"acc": accumulators, "operand": operands}
    values: list[Tensor] = []
    for instruction in epilogue.program:
        if instruction.operation in leaves:
            value = leaf(leaves[instruction.operation][int(instruction.value or 0)])
        elif instruction.operation == "constant":
            value = leaf(float(instruction.value or 0))
        elif bound := _bound(epilogue, instruction):
            x, number = bound
            value = CLAMPS[instruction.operation](values[x], number)
        else:
            value = _apply(instruction, [values[each] for each in instruction.arguments])
        values.append(value)
    shape = accumulators[0].shape
    return tuple(values[each.value].expand(shape) for each in epilogue.results)


def finish(result: Result, value: Tensor, dtype: torch.dtype) -> Tensor:
    """What is stored of a result's value, (M, N) or (L, M, N): rounded to its dtype, or reduced.

    `dtype` is that of A and B.
    """
    if result.reduction is None:
        return value.to(getattr(torch, result.dtype) if result.dtype else dtype)
    return REDUCTIONS[result.reduction](value, dimension(result.over))


def dimension(mode: Mode | None) -> int:
    """The dimension of a tensor (M, N) or (L, M, N) that a mode is: -2 for M, -1 for N."""
    return -2 if mode == "M" else -1


def _bound(epilogue: Epilogue, instruction: Instruction) -> tuple[int, float] | None:
    """The argument that a maximum or minimum clamps, and the bound, if that is a constant.

    torch.clamp and torch.maximum differ in the derivative at a tie. A constant means torch.clamp.
    """
    if instruction.operation not in CLAMPS:
        return None
    for x, bound in (instruction.arguments, instruction.arguments[::-1]):
        if epilogue.program[bound].operation == "constant":
            number = float(epilogue.program[bound].value or 0)
            beyond = abs(number) > torch.finfo(torch.float32).max  # torch.clamp_min refuses it
            return x, math.copysign(math.inf, number) if beyond else number
    return None


def _apply(instruction: Instruction, arguments: list[Tensor]) -> Tensor:
    if instruction.operation == "cast":
        (value,) = arguments
        return value.to(getattr(torch, str(instruction.value))).to(value.dtype)
    return TORCH[instruction.operation](*arguments)


REDUCTIONS: Mapping[str, Callable[[Tensor, int], Tensor]] = {
    "sum": torch.sum,
    "amax": torch.amax,
    "amin": torch.amin,
}

CLAMPS: Mapping[str, Callable[..., Tensor]] = {
    "maximum": torch.clamp_min,
    "minimum": torch.clamp_max,
}

TORCH: Mapping[str, Callable[..., Any]] = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "detach": torch.Tensor.detach,
    "neg": torch.neg,
    "abs": torch.abs,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "exp": torch.exp,
    "expm1": torch.expm1,
    "log": torch.log,
    "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "erf": torch.erf,
    "ndtr": torch.special.ndtr,
    "relu": torch.relu,
    "silu": torch.nn.functional.silu,
    "gelu": torch.nn.functional.gelu,
    "gelu_tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
    "softplus": torch.nn.functional.softplus,
    "lt": torch.lt,
    "le": torch.le,
    "gt": torch.gt,
    "ge": torch.ge,
    "eq": torch.eq,
    "ne": torch.ne,
    "and": torch.logical_and,
    "or": torch.logical_or,
    "xor": torch.logical_xor,
    "not": torch.logical_not,
    "where": torch.where,
}
