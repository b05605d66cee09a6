"""The plan of the copy kernel: contiguous rows at any address, to rows at any other.

TMA reads rows that start at multiples of 16 bytes. `gemm` copies a matrix whose rows do not into
rows that do, and, before Hopper, a result back into rows that do not.

    source   … │ a b c d e f g h │ i j k l m n o p │ …      aligned words of 16 bytes
                         └───── shift 2 ────┐
    target                   │ c d e f g h i j │            an aligned word, from two of the source

A thread loads and stores aligned words, whatever the addresses of the rows are. The shift depends
on the row alone, since all words of a row are equally far from those of its source.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from cutedsl_gemm.kernels.plan.checks import (
    BITS,
    choice_problem,
    count_problem,
    extents_problem,
    refuse,
    threads_problem,
)
from cutedsl_gemm.kernels.plan.memory_report import request_sectors
from cutedsl_gemm.kernels.plan.tv_layout import TVLayout, load_layout, partition_problems
from layouts import Bijective, Injective, Layout, Proof, prove
from layouts.hardware.facts import WARP

if TYPE_CHECKING:
    from torch import Tensor

DTYPES = "bfloat16", "float16"
WIDTHS = 2, 4, 8  # elements of a word: 4, 8 or 16 bytes
# A warp's words are of one row, or of two. With tiles twice as large, products of odd strides take
# 3 % longer (docs/performance, "Any strides, by a copy kernel").
TILES = (16, 256), (32, 128)
THREADS, WIDTH = 256, 8


@dataclass(frozen=True)
class CopyPlan:
    """One launch copies `matrices` pairs (source, target) of matrices with contiguous rows.

    A block copies one tile. Column 0 of a tile of the target is the first element of an aligned
    word: if a row starts inside a word, the columns before its start do not exist.
    """

    dtype: str
    tile: tuple[int, int]  # (BM, BN)
    copy: TVLayout  # (thread, value) → row and column of the tile of the target
    matrices: int = 1
    overlap: bool = True  # by programmatic dependent launch, which sm_90 introduced

    @property
    def name(self) -> str:
        """The name of the kernel."""
        return "copy"

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.copy.threads

    @property
    def width(self) -> int:
        """Elements of a word."""
        return self.copy.width

    @property
    def word_bytes(self) -> int:
        """Bytes of a word."""
        return self.width * BITS // 8

    @property
    def window(self) -> Layout:
        """(element of a word of the target, shift) → element of two neighbouring source words.

        >>> print(copy_plan().window)
        (8,8):(1,1)
        """
        return Layout((self.width, self.width), (1, 1))

    @property
    def partition(self) -> Layout:
        """(thread, value) → row + BM * column of the tile."""
        return self.copy.offsets(1, self.tile[0])

    @property
    def sectors(self) -> int:
        """Sectors that a warp's first load, or store, takes where rows are far apart.

        >>> copy_plan().sectors * 32 == 32 * 16  # bytes
        True
        """
        return request_sectors(self.copy, "K", BITS // 8)

    def workspace(self, m: int, n: int) -> int:
        """A copy needs none."""
        return 0

    def proofs(self) -> tuple[Proof, ...]:
        """Each element of a tile has one thread; no shift takes an element twice."""
        return prove(Bijective(self.partition)), prove(Injective(self.window[0]))

    def explain(self) -> str:
        """The plan as text: what moves where, by which layout."""
        bm, bn = self.tile
        words = self.copy.lines * self.copy.vectors
        lines = (
            ("kernel", f"copy, {self.dtype}, tile {bm}×{bn}, {self.matrices} in a launch"),
            ("block", f"{self.threads} threads, {words} words of {self.word_bytes} bytes each"),
            ("rows", f"{self.copy.rows}   (thread, value) → row"),
            ("columns", f"{self.copy.columns}   (thread, value) → column"),
            ("window", f"{self.window}   (element, shift) → element of two words of the source"),
            ("requests", f"{self.sectors} sectors for the {WARP} words of a warp"),
        )
        return "\n".join(f"{name:<10} {text}" for name, text in lines)

    def device_code(self) -> Any:
        """The kernel object that `cute.compile` takes."""
        from cutedsl_gemm.kernels.copies.rows import CopyRows

        return CopyRows(self)

    def execute(self, *pairs: tuple[Tensor, Tensor]) -> None:
        """Copy each source to its target, CPU tensors, through the plan's layouts."""
        from cutedsl_gemm.kernels.copies.execute import copy

        copy(self, pairs)

    def check(self) -> CopyPlan:
        """The plan itself; PlanError with the first problem if the hardware cannot run it."""
        refuse(f"copy, tile {self.tile}", self.problems())
        return self

    def problems(self) -> Iterator[str]:
        """What the hardware cannot do, a message each."""
        yield from choice_problem("dtype", self.dtype, DTYPES)
        yield from extents_problem("tile", self.tile, 2)
        yield from count_problem("matrices", self.matrices, 1)
        yield from threads_problem(self.threads)
        yield from partition_problems("the copy", self.copy, self.tile, self.threads)
        yield from self._word_problems()

    def _word_problems(self) -> Iterator[str]:
        """A vector must be a word: neighbours along a row, from a multiple of its width on."""
        rows, columns = self.copy.rows[1][1][0], self.copy.columns[1][1][0]
        words = {(Layout(width, 0), Layout(width, 1)) for width in WIDTHS}
        if (rows, columns) not in words:
            yield (
                f"a thread moves rows {rows} and columns {columns} as one word; they must be "
                f"one of {WIDTHS} neighbours along a row"
            )
        elif any(start % self.width for start in _first_columns(self.copy)):
            yield (
                f"columns are {self.copy.columns}; each word must start at a multiple of its "
                f"width, {self.width} elements"
            )


def _first_columns(copy: TVLayout) -> Iterable[int]:
    """The first column of each word of each thread."""
    moves = ((line, (0, vector)) for line in range(copy.lines) for vector in range(copy.vectors))
    values = [*moves]
    return {copy.columns((thread, value)) for thread in range(copy.threads) for value in values}


def copy_plan(
    dtype: str = "bfloat16",
    matrices: int = 1,
    tile: tuple[int, int] = TILES[0],
    threads: int = THREADS,
    width: int = WIDTH,
    overlap: bool = True,
) -> CopyPlan:
    """The checked plan: neighbouring threads copy neighbouring words of `width` elements.

    >>> print(copy_plan(matrices=2).explain())
    kernel     copy, bfloat16, tile 16×256, 2 in a launch
    block      256 threads, 2 words of 16 bytes each
    rows       ((32,8),(2,(8,1))):((0,1),(8,(0,0)))   (thread, value) → row
    columns    ((32,8),(2,(8,1))):((8,0),(0,(1,0)))   (thread, value) → column
    window     (8,8):(1,1)   (element, shift) → element of two words of the source
    requests   16 sectors for the 32 words of a warp
    """
    copy = load_layout(*tile, "K", threads, width)
    return CopyPlan(dtype, tile, copy, matrices, overlap).check()


def copy_plans() -> list[CopyPlan]:
    """Every plan of a copy that gemm may choose on Hopper.

    >>> len(copy_plans())
    8
    """
    return [copy_plan(*each) for each in product(DTYPES, (1, 2), TILES)]
