"""An epilogue in device code: its tensors over C, and what a thread reads, adds up and stores."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import cutlass
import cutlass.cute as cute
from cutlass import Float32

from cutedsl_gemm.kernels.device import lower
from cutedsl_gemm.kernels.device.tile import Pair
from cutedsl_gemm.kernels.epilogue.expression import Epilogue, EpilogueOperand
from cutedsl_gemm.kernels.epilogue.registers import evaluate


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


def over_c(epilogue: Epilogue, operands: Sequence[Any], shape: Sequence[Any]) -> tuple[Any, ...]:
    """The operands as tensors over C, with stride 0 along M or N if one lacks it; numbers.

    The shape is (M, N). If it is (L, M, N), batched operands have that, and the others (M, N).
    """
    return tuple(
        given if operand.by_value else _over_c(operand, given, shape)
        for operand, given in zip(epilogue.operands, operands, strict=True)
    )


def _over_c(operand: EpilogueOperand, tensor: cute.Tensor, shape: Sequence[Any]) -> cute.Tensor:
    stride = dict(zip(operand.tensor_modes, tensor.stride, strict=False))
    strides = tuple(stride.get(mode, 0) for mode in ("LMN" if operand.batched else "MN"))
    return lower.strided(tensor.iterator, tuple(shape[-len(strides) :]), strides)


def like_c(epilogue: Epilogue, results: Sequence[cute.Tensor], shape: Pair | None = None) -> Any:
    """What has the shape (M, N) of C: the first whole result, or else a layout of that shape."""
    whole = [x for x, each in zip(results, epilogue.results, strict=True) if each.over is None]
    return whole[0] if whole else cute.make_layout(shape)


def load_values(
    view: cute.Tensor, first: Pair, offsets: Sequence[tuple[int, int]], shape: Any, width: int = 1
) -> cute.Tensor:
    """The elements of an operand over C, in registers of a shape: those at `first` + each offset.

    `width` neighbours along a row are loaded as a vector, at a multiple of `width`. A coordinate
    out of bounds is clamped, to the last vector that begins in bounds: what a thread reads for an
    output that does not exist, it does not store.
    """
    values = cute.make_rmem_tensor(shape, view.element_type)
    (rows, columns), (down, across) = view.shape, (_varies(stride) for stride in view.stride)
    bytes, vector = width * view.element_type.width // 8, cute.make_layout(width)
    last = (columns - 1) // width * width  # an odd row ends inside a vector
    lines: dict[int, Any] = {}  # row → a pointer to its first element; column → its offset
    steps: dict[int, Any] = {}
    loaded: dict[tuple[int, int], int] = {}  # offset in memory → the first value there
    for i, (m, n) in enumerate(offsets):
        at = m if down else 0, n if across else 0
        if loaded.setdefault(at, i) != i:
            values[i] = values[loaded[at]]
        elif i % width == 0:
            if at[0] not in lines:
                row = cutlass.min(first[0] + m, rows - 1) if down else 0
                lines[at[0]] = view.iterator + cute.crd2idx((row, 0), view.layout)
            if at[1] not in steps:
                column = cutlass.min(first[1] + n, last) if across else 0
                steps[at[1]] = cute.crd2idx((0, column), view.layout)
            source = lower.aligned(lines[at[0]] + steps[at[1]], bytes)
            source, target = (cute.make_tensor(x, vector) for x in (source, values.iterator + i))
            cute.autovec_copy(source, target)
    return values


def evaluate_all(
    epilogue: Epilogue, accumulators: Sequence[cute.Tensor], operands: Sequence[Any]
) -> list[cute.Tensor]:
    """The results of the epilogue in fp32, in registers of the accumulators' shape.

    An operand is a number, or registers of that shape. A result that is the accumulator itself
    stays where it is.
    """
    (first, *_), program = accumulators, epilogue.program
    results, computed = [], {}
    for place, result in enumerate(epilogue.results):
        if program[result.value].operation == "acc":
            results.append(accumulators[int(program[result.value].value or 0)])
        else:
            computed[place] = cute.make_rmem_tensor(first.shape, Float32)
            results.append(computed[place])
    for i in range(cute.size(first.shape) if computed else 0):
        read = [each[i] if isinstance(each, cute.Tensor) else each for each in operands]
        found = evaluate(epilogue, [each[i] for each in accumulators], read)
        for place, values in computed.items():
            values[i] = found[place]
    return results


def _varies(stride: Any) -> bool:
    """Whether a mode of this stride has more than one element in memory."""
    return not (isinstance(stride, int) and stride == 0)
