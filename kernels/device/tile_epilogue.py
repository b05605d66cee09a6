"""The epilogue of a tile in device code: registers of accumulators to results in global memory.

    operands over C (M, N) ─ C's thread-value layout ▶ registers ┐
    accumulators ────────────────────────────────────────────────┴ program ▶ results

All operands are loaded before the first result is stored. A thread loads each element once.
"""

from collections.abc import Callable, Sequence
from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Float32

from cutedsl_gemm.kernels.device import lower
from cutedsl_gemm.kernels.device.epilogue import evaluate_all, load_values
from cutedsl_gemm.kernels.device.tile import (
    Pair,
    guarded_copy,
    in_bounds,
    remaining_extent,
    thread_coordinates,
    thread_partition,
    transposed,
)
from cutedsl_gemm.kernels.epilogue.expression import PLAIN, Epilogue, EpilogueOperand, Result
from cutedsl_gemm.kernels.epilogue.operations import IDENTITIES
from cutedsl_gemm.kernels.epilogue.registers import combine
from cutedsl_gemm.kernels.plan.epilogue import read_width, stored_as
from cutedsl_gemm.kernels.plan.tv_layout import TVLayout


def store_tile(
    accumulators: Sequence[cute.Tensor],
    outputs: tuple[Any, Any, Any],
    epilogue: Epilogue,
    copy: TVLayout,
    tiler: Pair,
    coord: Pair,
    thread: cutlass.Int32,
    part: Callable[[Any], Any] = lambda matrix: matrix,
    of_c: Pair | None = None,
) -> None:
    """Compute this thread's part of a tile of each result, and store it.

    `accumulators` are (lines, (width, vectors)), the values of `copy`, the thread-value layout of a
    tile. `outputs` are the operands over C, or numbers; the results; and what has C's shape. The
    tile is number `coord` of a `part` of these, and number `of_c` of C, by default the same.
    """
    operands, results, c = outputs
    coordinates = thread_coordinates(copy, thread)
    first = tuple(
        i * step + at for i, step, at in zip(coord, tiler, coordinates((0, (0, 0))), strict=True)
    )
    loaded = [
        given if operand.by_value else _load(operand, part(given), copy, first)
        for operand, given in zip(epilogue.operands, operands, strict=True)
    ]

    def is_inside(line: int, v: int) -> Any:
        return in_bounds(coordinates((line, v)), remaining_extent(part(c), tiler, coord))

    values = _evaluate(epilogue, accumulators, loaded, copy, results, is_inside)
    for each, value, result in zip(epilogue.results, values, results, strict=True):
        stored, extents = stored_as(each, copy, tiler)
        matrix, at = (part(result), coord) if each.over is None else (result, of_c or coord)
        if each.over == "N":
            matrix = transposed(matrix)  # (M, parts)
        tile = thread_partition(cute.local_tile(matrix, extents, at), stored, thread)
        guarded_copy(value, tile, stored, thread, remaining_extent(matrix, extents, at))


def _load(operand: EpilogueOperand, view: cute.Tensor, copy: TVLayout, first: Pair) -> cute.Tensor:
    """An operand's values (lines, (width, vectors)) of a thread whose first one is at `first`."""
    lines, of_line = range(copy.lines), range(copy.values // copy.lines)
    offsets = [
        (copy.rows((0, (line, v))), copy.columns((0, (line, v)))) for line in lines for v in of_line
    ]
    values = load_values(view, first, offsets, (copy.values,), read_width(operand, copy))
    return cute.make_tensor(values.iterator, lower.layout(copy.registers))


def _evaluate(
    epilogue: Epilogue,
    accumulators: Sequence[cute.Tensor],
    operands: Sequence[Any],
    copy: TVLayout,
    results: Sequence[cute.Tensor],
    is_inside: Callable[[int, int], Any],
) -> list[cute.Tensor]:
    """What a thread stores of each result, in its dtype.

    A line at a time: what lies between accumulators and results is then in few registers.
    """
    dtypes = [result.element_type for result in results]
    if epilogue == PLAIN and dtypes == [Float32]:
        return [*accumulators]
    if epilogue == PLAIN:
        values = cute.make_rmem_tensor(lower.layout(copy.registers), dtypes[0])
        values.store(accumulators[0].load().to(dtypes[0]))
        return [values]
    parts = [
        Whole(copy, dtype) if result.over is None else Reduced(copy, result, is_inside)
        for result, dtype in zip(epilogue.results, dtypes, strict=True)
    ]
    for line in range(copy.lines):
        of_line = [each[line, None] for each in accumulators]
        read = [x[line, None] if isinstance(x, cute.Tensor) else x for x in operands]
        for part, values in zip(parts, evaluate_all(epilogue, of_line, read), strict=True):
            part.take(line, values)
    return [part.values for part in parts]


class Whole:
    """A result of a thread, converted a line at a time."""

    def __init__(self, copy: TVLayout, dtype: Any) -> None:
        self.values = cute.make_rmem_tensor(lower.layout(copy.registers), dtype)

    def take(self, line: int, values: cute.Tensor) -> None:
        """The values of a line."""
        of_line = self.values[line, None]
        of_line.store(values.load().to(of_line.element_type))


class Reduced:
    """A thread's parts of a reduction. A value that is not inside C changes nothing."""

    def __init__(
        self, copy: TVLayout, result: Result, is_inside: Callable[[int, int], Any]
    ) -> None:
        self.reduction, self.is_inside = str(result.reduction), is_inside
        registers = lower.layout(copy.projection(result.modes).registers)
        self.values = cute.make_rmem_tensor(registers, Float32)
        self.values.fill(IDENTITIES[self.reduction])
        shared = lower.layout(copy.projected_registers(result.modes))
        self.totals = cute.make_tensor(self.values.iterator, shared)

    def take(self, line: int, values: cute.Tensor) -> None:
        """The values of a line."""
        identity = Float32(IDENTITIES[self.reduction])
        for v in range(cute.size(values)):
            counted = Float32(cutlass.select_(self.is_inside(line, v), values[v], identity))
            self.totals[line, v] = combine(self.reduction, self.totals[line, v], counted)
