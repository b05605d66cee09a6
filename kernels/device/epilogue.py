"""An epilogue in device code: its arguments, and its operands over C."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import cutlass.cute as cute

from cutedsl_gemm.kernels.device.tile import Pair
from cutedsl_gemm.kernels.epilogue.expression import Epilogue, Operand


class Arguments(NamedTuple):
    """What a kernel is given after A and B."""

    operands: list[Any]  # tensors, and numbers, in the order of the epilogue's operands
    results: list[cute.Tensor]
    others: list[Any]  # a workspace, sms, …


def split_arguments(epilogue: Epilogue, arguments: Sequence[Any]) -> Arguments:
    """The tensors of the operands, those of the results, and the numbers come in this order."""
    rest = iter(arguments)
    tensors = [None if operand.by_value else next(rest) for operand in epilogue.operands]
    results = [next(rest) for _ in epilogue.results]
    operands = [next(rest) if tensor is None else tensor for tensor in tensors]
    return Arguments(operands, results, [*rest])


def over_c(operand: Operand, tensor: cute.Tensor, shape: Pair) -> cute.Tensor:
    """An operand as a tensor over C (M, N): its stride is 0 along a mode that it lacks."""
    stride = dict(zip(operand.modes, tensor.stride, strict=False))
    layout = cute.make_layout(shape, stride=tuple(stride.get(mode, 0) for mode in ("M", "N")))
    return cute.make_tensor(tensor.iterator, layout)
