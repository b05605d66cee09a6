"""The epilogue of kernels in which C's thread-value layout says who stores what.

operand     a layout over C: a thread loads it at the rows and columns of its own outputs
result      stored by the thread-value layout of C
reduction   each thread reduces its own outputs, and stores its parts: `TVLayout.partials`
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd
from typing import TypeAlias

from cutedsl_gemm.kernels.epilogue.cost import cost
from cutedsl_gemm.kernels.epilogue.expression import PLAIN, Epilogue, EpilogueOperand, Result
from cutedsl_gemm.kernels.plan.tv_layout import TVLayout
from layouts import Bijective, Proof, cosize, prove

Tiler: TypeAlias = tuple[int, int]  # (BM, BN)


def one_product_problems(epilogue: Epilogue) -> Iterator[str]:
    """What kernels that multiply by one B cannot do.

    >>> list(one_product_problems(Epilogue(accumulators=2)))
    ['its epilogue takes 2 accumulators; this kernel multiplies by one B: take one of sm90']
    """
    if epilogue.accumulators != 1:
        yield (
            f"its epilogue takes {epilogue.accumulators} accumulators; this kernel multiplies by "
            "one B: take one of sm90"
        )


def stored_as(result: Result, c: TVLayout, tiler: Tiler) -> tuple[TVLayout, Tiler]:
    """How the threads of a block store a result: a thread-value layout of a tile, and its extents.

    That of a whole result is C's. A reduction over N has (BM, parts) for a tile, and one over M has
    (parts, BN).
    """
    if result.over is None:
        return c, tiler
    parts = c.partials(result.over)
    return parts, (cosize(parts.rows), cosize(parts.columns))


def reduction_parts(result: Result, c: TVLayout, tiler: Tiler, shape: tuple[int, int]) -> int:
    """The parts of a reduction of C (M, N): the first extent of its tensor.

    The caller reduces them.

    >>> from cutedsl_gemm.kernels.sm80.rungs import wide
    >>> reduction_parts(Result(0, reduction="sum", over="N"), wide().c, (128, 256), (1000, 1000))
    64
    """
    over = "MN".index(result.over or "N")
    _, parts = stored_as(result, c, tiler)
    return -(-shape[over] // tiler[over]) * parts[over]


def partial_proofs(epilogue: Epilogue, c: TVLayout, tiler: Tiler) -> Iterator[Proof]:
    """Each part of a reduction has one thread."""
    for result in epilogue.results:
        if result.over is not None:
            parts, (rows, _) = stored_as(result, c, tiler)
            yield prove(Bijective(parts.offsets(1, rows)))


def read_width(operand: EpilogueOperand, c: TVLayout) -> int:
    """Elements of an operand that a thread loads at a time: neighbours of a vector along a row."""
    in_rows = operand.row_major and operand.modes == ("M", "N") and not c.vertical
    return gcd(c.width, operand.alignment) if in_rows else 1


def explain_lines(epilogue: Epilogue, c: TVLayout, tiler: Tiler) -> Iterator[tuple[str, str]]:
    """The results, the operands with what a thread loads of them, and the parts of reductions."""
    if epilogue == PLAIN:
        return
    yield from epilogue.listing()
    yield "cost", str(cost(epilogue))
    for operand in epilogue.operands:
        if not operand.by_value:
            width = read_width(operand, c)
            yield "", f"{operand.name}: vectors of {width}, at the rows and columns of a thread"
            yield from _coordinates(c.projection(operand.modes))
    for result in epilogue.results:
        if result.over is not None:
            parts, (rows, columns) = stored_as(result, c, tiler)
            yield "", f"{result.reduction} over {result.over}, {rows}×{columns} parts of a tile:"
            yield from _coordinates(parts)


def _coordinates(layout: TVLayout) -> Iterator[tuple[str, str]]:
    yield "", f"{layout.rows}   (thread, value) → row"
    yield "", f"{layout.columns}   (thread, value) → column"
