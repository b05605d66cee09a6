"""The epilogue of a tile in device code: registers of accumulators to results in global memory.

    operands (M, N) ─ C's thread-value layout, projected ▶ registers ┐
    accumulators ────────────────────────────────────────────────────┴ program ▶ results (M, N)

All operands are loaded before the first result is stored. A vector is loaded once a thread.
"""

from collections.abc import Callable, Sequence
from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Float32

from cutedsl_gemm.kernels.device import lower
from cutedsl_gemm.kernels.device.tile import (
    Pair,
    guarded_copy,
    load_to_registers,
    remaining_extent,
    thread_partition,
)
from cutedsl_gemm.kernels.epilogue.device import evaluate
from cutedsl_gemm.kernels.epilogue.expression import PLAIN, Epilogue, Operand
from cutedsl_gemm.kernels.plan.tv_layout import TVLayout


def store_tile(
    accumulators: Sequence[cute.Tensor],
    outputs: tuple[Any, Any],
    epilogue: Epilogue,
    copy: TVLayout,
    tiler: Pair,
    coord: Pair,
    thread: cutlass.Int32,
    part: Callable[[Any], Any] = lambda matrix: matrix,
) -> None:
    """Compute this thread's part of a tile of each result, and store it.

    `accumulators` are (lines, (width, vectors)), the values of `copy`, the thread-value layout of a
    tile. `outputs` are the operands over C, or numbers, and the results (M, N). The tile is one of
    a `part` of these matrices.
    """
    operands, results = outputs
    loaded = [
        given if operand.by_value else _load(operand, part(given), copy, tiler, coord, thread)
        for operand, given in zip(epilogue.operands, operands, strict=True)
    ]
    dtypes = [result.element_type for result in results]
    values = _evaluate(epilogue, accumulators, loaded, copy, dtypes)
    for value, result in zip(values, results, strict=True):
        matrix = part(result)
        tile = thread_partition(cute.local_tile(matrix, tiler, coord), copy, thread)
        guarded_copy(value, tile, copy, thread, remaining_extent(matrix, tiler, coord))


def _load(
    operand: Operand,
    given: Any,
    copy: TVLayout,
    tiler: Pair,
    coord: Pair,
    thread: cutlass.Int32,
) -> Any:
    """An operand's values (lines, (width, vectors)) of this thread."""
    values = load_to_registers(given, copy.projection(operand.modes), tiler, coord, thread)
    shared = lower.layout(copy.projected_registers(operand.modes))
    return cute.make_tensor(values.iterator, shared)


def _evaluate(
    epilogue: Epilogue,
    accumulators: Sequence[cute.Tensor],
    operands: Sequence[Any],
    copy: TVLayout,
    dtypes: Sequence[Any],
) -> list[cute.Tensor]:
    """The values of each result, in its dtype.

    A line at a time: what lies between accumulators and results is then in few registers.
    """
    if epilogue == PLAIN and dtypes == [Float32]:
        return [*accumulators]
    results = [cute.make_rmem_tensor(lower.layout(copy.registers), dtype) for dtype in dtypes]
    if epilogue == PLAIN:
        results[0].store(accumulators[0].load().to(dtypes[0]))
        return results
    for line in range(copy.lines):
        of_line = [cute.make_rmem_tensor(results[0][line, None].shape, Float32) for _ in dtypes]
        for v in range(copy.values // copy.lines):
            values = evaluate(
                epilogue,
                [each[line, v] for each in accumulators],
                [each[line, v] if isinstance(each, cute.Tensor) else each for each in operands],
            )
            for fragment, value in zip(of_line, values, strict=True):
                fragment[v] = value
        for result, fragment in zip(results, of_line, strict=True):
            result[line, None].store(fragment.load().to(result.element_type))
    return results
