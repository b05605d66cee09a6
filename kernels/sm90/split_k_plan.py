"""SplitKPlan: blocks split K; a second kernel adds their partial sums through global memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd
from typing import Any

from cutedsl_gemm.kernels.epilogue.expression import Result
from cutedsl_gemm.kernels.plan.checks import PER_VECTOR
from cutedsl_gemm.kernels.plan.epilogue import partial_proofs, reduction_parts
from cutedsl_gemm.kernels.plan.tv_layout import TVLayout, load_layout
from cutedsl_gemm.kernels.sm90.plan import Sm90Plan
from layouts import (
    Bijective,
    Layout,
    Proof,
    composition,
    logical_divide,
    make_layout,
    prove,
    sectors,
)
from layouts.hardware.facts import WARP

FP32 = 32  # bits of a partial sum
VECTOR = 4  # partial sums that a reduction thread loads at a time: 16 bytes
REDUCTION_THREADS = 256  # threads of a block of the reduction, at most
MAX_SPLITS = 32  # a reduction thread has one load of each split in flight


@dataclass(frozen=True)
class SplitKPlan(Sm90Plan):
    """A GEMM of few tiles and large K: `splits` blocks compute a tile, each over its range of K.

    Each block stores its partial sums in a workspace. A second kernel adds them, F rows of a tile a
    block, in the order of the splits: the result is the same from run to run. Its rows and columns
    are those of the caller's C, and so is the order of the partial sums.
    """

    partial_sums: Layout  # (BM, BN) → element of fp32, of one block in the workspace
    reduction: TVLayout  # (thread, value) → row and column of the F rows that a block reduces

    @property
    def kind(self) -> str:
        return "split"

    @property
    def reduction_rows(self) -> int:
        """F, the rows of a tile that one block of the second kernel reduces."""
        return reduction_rows(*self.c_tile)

    @property
    def c_partial_sums(self) -> Layout:
        """(row, column) of a tile of the caller's C → element of the partial sums.

        If B is two matrices, it is (row, column, matrix).
        """
        if self.matrices == 1:
            m, n = self.partial_sums
            return make_layout(*self.exchanged((m, n)))
        m, n = (
            logical_divide(mode, extent)
            for mode, extent in zip(self.partial_sums, self.output_tile, strict=True)
        )
        matrix = n[1] if self.b.matrices > 1 else m[1]
        return make_layout(*self.exchanged((m[0], n[0])), matrix)

    def workspace(self, m: int, n: int) -> int:
        """Elements of fp32 that the partial sums of an (M, N) product take, in whole clusters.

        >>> from cutedsl_gemm.kernels.sm90.rungs import split
        >>> split(splits=8).workspace(512, 500) == 8 * 512 * 512
        True
        >>> split(splits=8, cluster=(4, 1)).workspace(8, 500) == 8 * 512 * 512
        True
        """
        rows, columns = self.exchanged(self.cluster_tile)
        outputs = -(-m // rows) * -(-n // columns) * rows * columns
        return self.splits * self.matrices * outputs

    @property
    def reduction_tile(self) -> tuple[int, int]:
        """(rows, columns) of C that one block of the second kernel adds."""
        return self.reduction_rows, self.c_tile[1]

    def reduction_parts(self, result: Result, m: int, n: int) -> int:
        return reduction_parts(result, self.reduction_store, self.reduction_tile, (m, n))

    @property
    def reduction_store(self) -> TVLayout:
        """`reduction` as it stores C: element by element if rows of C may start anywhere."""
        return self.reduction if self.c_alignment == PER_VECTOR else self.reduction.elementwise

    @property
    def store_vector(self) -> int:
        """Partial sums that a lane stores at a time: two if they are neighbours, else one.

        >>> from cutedsl_gemm.kernels.sm90.rungs import split
        >>> split().store_vector, split(swapped=True).store_vector
        (2, 1)
        """
        first, second = (self.partial_sums(self.outputs(0, value)) for value in (0, 1))
        return 2 if second - first == 1 else 1

    @property
    def store_sectors(self) -> int:
        """Sectors of a warp's store to the workspace: `store_vector` partial sums of each lane.

        >>> from cutedsl_gemm.kernels.sm90.rungs import split
        >>> split().store_sectors * 32 == 32 * 2 * 4  # bytes
        True
        """
        lanes = composition(self.partial_sums, composition(self.outputs[0], Layout(WARP)))
        return sectors(lanes, width=self.store_vector * 4, unit=FP32).count

    @property
    def load_sectors(self) -> int:
        """Sectors of a reduction warp's load: four partial sums of each lane.

        >>> from cutedsl_gemm.kernels.sm90.rungs import split
        >>> split().load_sectors * 32 == 32 * 4 * 4  # bytes
        True
        """
        threads = composition(self.c_partial_sums, self.reduction.offsets(1, self.c_tile[0])[0])
        lanes = composition(threads, Layout(WARP))
        return sectors(lanes, width=VECTOR * 4, unit=FP32).count

    def proofs(self) -> tuple[Proof, ...]:
        parts = partial_proofs(self.epilogue, self.reduction_store, self.reduction_tile)
        return *super().proofs(), prove(Bijective(self.partial_sums)), *parts

    def device_code(self) -> Any:
        """The two kernels: one multiplies, one adds."""
        from cutedsl_gemm.kernels.sm90.split_k import SplitK

        return SplitK(self)

    def problems(self) -> Iterator[str]:
        yield from split_problems(self.splits)
        if all(result.over is not None for result in self.epilogue.results):
            yield (
                "its epilogue has only reductions; blocks that split K store a whole result too: "
                "take sm90_pingpong or sm90_cooperative"
            )
        yield from super().problems()

    def required(self) -> Iterator[tuple[str, object, str]]:
        bm, bn, _ = self.tile
        yield (
            "schedule",
            "cooperative",
            "since a block has one tile, and consumers cannot take turns",
        )
        yield from super().required()
        sums = partial_sums(bm, bn, self.swapped)
        yield "partial_sums", sums, "since 16 contiguous bytes are of one row of C"
        yield "reduction", reduction(*self.c_tile), "since a lane adds 16 bytes along a row of C"


def split_problems(splits: int) -> Iterator[str]:
    """Messages about a number of splits that the reduction cannot take."""
    if type(splits) is not int or not 2 <= splits <= MAX_SPLITS:
        yield (
            f"splits is {splits!r}; it must be 2 to {MAX_SPLITS}, since a reduction thread has one "
            "load of each split in flight"
        )


def partial_sums(bm: int, bn: int, swapped: bool = False) -> Layout:
    """A tile of partial sums, in the order of a row-major C.

    A warp of wgmma holds eight rows of the tile: along m, too, a store fills whole sectors.

    >>> print(partial_sums(128, 64), partial_sums(128, 64, swapped=True))
    (128,64):(64,1) (128,64):(1,128)
    """
    return Layout((bm, bn), (1, bm) if swapped else (bn, 1))


def reduction_rows(rows: int, columns: int) -> int:
    """Rows of a (rows, columns) tile of C that the threads of a block reduce at a time.

    The greatest power of two that divides the rows and for which there are enough threads.

    >>> reduction_rows(128, 64), reduction_rows(128, 128), reduction_rows(128, 176)
    (16, 8, 4)
    >>> reduction_rows(24, 64)  # if operands are swapped
    8
    """
    return gcd(rows, 1 << (REDUCTION_THREADS * VECTOR // columns).bit_length() - 1)


def reduction(rows: int, columns: int) -> TVLayout:
    """(thread, value) → row and column of the F rows that a block reduces, of a tile of C.

    >>> reduction(128, 128).threads, reduction(128, 176).threads  # 4 rows of 44 vectors
    (256, 176)
    """
    rows = reduction_rows(rows, columns)
    return load_layout(rows, columns, "K", rows * columns // VECTOR, VECTOR)
