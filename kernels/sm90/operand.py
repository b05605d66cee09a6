"""An operand, A or B: TMA writes its swizzled tiles to shared memory, and wgmma reads them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import gcd
from typing import Any, TypeAlias

from cutedsl_gemm.kernels.plan import tma
from cutedsl_gemm.kernels.plan.checks import BITS, PlanError
from layouts import (
    ComposedLayout,
    Layout,
    LayoutError,
    composition,
    cosize,
    make_layout,
    size,
    wgmma_descriptor,
)
from layouts.hardware.descriptor import Major

Tile: TypeAlias = tuple[int, int, int]  # (BM, BN, BK)

# Elements of a row → the 32-, 64- or 128-byte swizzle, on elements.
SWIZZLES = {row * 8 // BITS: on_bytes.recast(8, BITS) for row, on_bytes in tma.SWIZZLES.items()}
ROW, SHORTEST_ROW = max(SWIZZLES), min(SWIZZLES)
PERIOD = 8  # rows of shared memory after which a swizzle repeats


@dataclass(frozen=True)
class Operand:
    """The shared-memory tile of A or B, and how the blocks of a cluster load it.

    `smem` is the layout of one stage, (rows, BK) → element offset. `major` is the contiguous mode
    in PTX's terms: "K" or "MN". The other mode is divided into slices: the rows of a K-major
    operand, the columns of an MN-major one. The `sharers` are the blocks of a cluster that share
    the operand. Each loads some of the slices, and multicasts them to all. If the periods of the
    swizzle do not divide among the sharers, some load one slice more than others.

    If there are several `matrices`, such as gate and value, the tile has equally many rows of
    each, from the same place in it, one matrix after the other.
    """

    name: str
    major: Major
    smem: ComposedLayout
    sharers: int = 1
    matrices: int = 1

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns) of the tile: (BM, BK) of A, (BN, BK) of B."""
        return size(self.smem[0]), size(self.smem[1])

    @property
    def slices(self) -> int:
        """The fewest slices, at least one per sharer, of equally many whole swizzle periods each.

        Each sharer loads some of every k-tile. If they took turns, another block could arrive on a
        sharer's empty mbarrier a phase early (docs/performance/notebook.md).

        >>> [Operand("B", "K", swizzled(bn, 64, "K"), 4).slices for bn in (128, 120, 104)]
        [4, 5, 13]
        """
        of_each = self.matrices if self.major == "K" and self.sharers > 1 else 1
        periods = self.shape[1 - self.contiguous] // PERIOD
        wanted = (n for n in range(self.sharers, periods + 1) if periods % n == n % of_each == 0)
        return next(wanted, self.sharers)

    def slices_of(self, sharer: Any) -> list[Any]:
        """The slices that a sharer loads; the last exists only if its number is below `slices`.

        >>> b = Operand("B", "K", swizzled(72, 64, "K"), sharers=2)
        >>> b.slices, b.slices_of(0), b.slices_of(1)
        (3, [0, 2], [1, 3])
        """
        return [sharer + first for first in range(0, self.slices, self.sharers)]

    @property
    def slice_counts(self) -> tuple[int, int]:
        """Slices down and across a tile."""
        return (self.slices, 1) if self.major == "K" else (1, self.slices)

    @property
    def slice_shape(self) -> tuple[int, int]:
        """(rows, columns) of one slice."""
        (rows, columns), (down, across) = self.shape, self.slice_counts
        return rows // down, columns // across

    @property
    def slice_smem(self) -> ComposedLayout:
        """(rows, columns) of one slice of a stage → element offset.

        >>> print(Operand("B", "K", swizzled(256, 64, "K"), sharers=2).slice_smem)
        S<3,3,3> o 0 o (128,64):(64,1)
        """
        return composition(self.smem, tuple(map(Layout, self.slice_shape)))

    def slice_coord(self, index: Any) -> tuple[Any, Any]:
        """The coordinate of a slice among the `slice_counts` of a tile."""
        return (index, 0) if self.major == "K" else (0, index)

    @property
    def slice_matrices(self) -> int:
        """Matrices of which a slice has rows: all, or one if slices divide the rows.

        >>> from dataclasses import replace
        >>> b = Operand("B", "K", swizzled(256, 64, "K"), matrices=2)
        >>> [replace(b, sharers=sharers).slice_matrices for sharers in (1, 2, 4)]
        [2, 1, 1]
        """
        return max(self.matrices // self.slice_counts[0], 1)

    def row_of_each(self, row: Any) -> Any:
        """Row `row` of the tile, counted within its matrix's part of the tile."""
        return row if self.matrices == 1 else row % (self.shape[0] // self.matrices)

    @property
    def slices_of_each(self) -> int:
        """Slices down a tile of each matrix."""
        return self.slice_counts[0] * self.slice_matrices // self.matrices

    @property
    def slice_tiler(self) -> tuple[Any, int]:
        """The tiler of one slice in global memory: (rows, columns), or ((rows, matrices), columns).

        >>> from dataclasses import replace
        >>> b = Operand("B", "K", swizzled(256, 64, "K"))
        >>> b.slice_tiler, replace(b, matrices=2).slice_tiler
        ((256, 64), ((128, 2), 64))
        """
        rows, columns = self.slice_shape
        if self.matrices == 1:
            return rows, columns
        return (rows // self.slice_matrices, self.slice_matrices), columns

    def gmem_coord(self, tile: Any, k_tile: Any, index: Any) -> tuple[Any, Any]:
        """The coordinate in global memory, in units of `slice_tiler`, of a slice of a tile.

        >>> from dataclasses import replace
        >>> b = Operand("B", "K", swizzled(256, 64, "K"), sharers=4)
        >>> [b.gmem_coord(5, 7, index) for index in range(4)]
        [(20, 7), (21, 7), (22, 7), (23, 7)]
        >>> [replace(b, matrices=2).gmem_coord(5, 7, index) for index in range(4)]
        [((10, 0), 7), ((11, 0), 7), ((10, 1), 7), ((11, 1), 7)]
        """
        count, across = self.slices_of_each, self.slice_counts[1]
        row, column = self.slice_coord(index)
        k = k_tile * across + column
        if self.matrices == 1:
            return tile * count + row, k
        return (tile * count + row % count, row // count), k

    def gmem_rows(self, tiles: Any) -> Layout:
        """(row of a slice, slice, tile) → row of the matrices, one matrix after the other.

        Each matrix has the rows of `tiles` tiles. The layout is a bijection: every row of every
        matrix is loaded once. Slices of an MN-major operand divide K: all have the same rows.

        >>> print(Operand("B", "K", swizzled(256, 64, "K"), sharers=4, matrices=2).gmem_rows(10))
        ((64,1),(2,2),10):((1,1280),(64,1280),128)
        """
        matrices, count = self.slice_matrices, self.slices_of_each
        rows = self.slice_shape[0] // matrices
        of_each = tiles * (self.shape[0] // self.matrices)

        def first_row(tile: int, index: int) -> Any:
            coord, _ = self.gmem_coord(tile, 0, index)
            row, matrix = coord if self.matrices > 1 else (coord, 0)
            return row * rows + matrix * matrices * of_each

        shape = (rows, matrices), (count, self.matrices // matrices), tiles
        slices = first_row(0, 1), first_row(0, count)
        return Layout(shape, ((1, of_each), slices, first_row(1, 0)))

    @property
    def contiguous(self) -> int:
        """The contiguous mode: 0, the rows, or 1, the columns."""
        return 1 if self.major == "K" else 0

    @property
    def elements(self) -> int:
        """Elements of one stage."""
        return cosize(self.smem)

    @property
    def stage_bytes(self) -> int:
        """Bytes of one stage."""
        return self.elements * BITS // 8

    def problems(self) -> tuple[str, ...]:
        """Messages about what TMA or wgmma cannot do."""
        return _problems(self)


@cache
def _problems(operand: Operand) -> tuple[str, ...]:
    """What is wrong with an operand. Hundreds of plans share a few."""
    return tuple(_problem(operand))


def _problem(operand: Operand) -> Iterator[str]:
    contiguous, lines = operand.shape[operand.contiguous], operand.shape[1 - operand.contiguous]
    if contiguous % SHORTEST_ROW:
        yield (
            f"{operand.name} has {contiguous} contiguous elements; they must be a multiple of "
            f"{SHORTEST_ROW}, a row of TMA's 32-byte swizzle"
        )
        return
    if lines % PERIOD or lines < PERIOD * operand.sharers:
        yield (
            f"{operand.name} has {lines} {'rows' if operand.major == 'K' else 'columns'} for "
            f"{operand.sharers} blocks; each must load {PERIOD}, a period of the swizzle, or a "
            "multiple"
        )
        return
    try:
        tma.boxes(operand.slice_smem, operand.contiguous, operand.slice_matrices)
        wgmma_descriptor(operand.smem, operand.major)
    except LayoutError as error:
        yield f"shared memory of {operand.name}: {error}"
    if operand.stage_bytes % tma.ATOM_BYTES:
        yield (
            f"a stage of {operand.name} takes {operand.stage_bytes} bytes; it must be a multiple "
            f"of {tma.ATOM_BYTES}, the longest period of a swizzle; take a larger tile"
        )


def operands(
    tile: Tile,
    a_major: Major,
    b_major: Major,
    cluster: tuple[int, int] = (1, 1),
    swapped: bool = False,
    matrices: int = 1,
    parts: int = 1,
) -> tuple[Operand, Operand]:
    """A and B of a tile in swizzled shared memory; `a_major` and `b_major` are the caller's.

    In a cluster of (down, across) tiles, the blocks of a column share B and those of a row share A.
    The caller's B has this many `matrices`. Consumers divide the columns of the tile in `parts`.
    """
    (bm, bn, bk), (down, across) = tile, cluster
    a_matrices, b_matrices = (matrices, 1) if swapped else (1, matrices)
    if swapped:
        a_major, b_major = b_major, a_major
    a = Operand("A", a_major, swizzled(bm, bk, a_major, a_matrices), across, a_matrices)
    b = Operand("B", b_major, swizzled(bn, bk, b_major, b_matrices * parts), down, b_matrices)
    return a, b


def unswizzled(rows: int, columns: int) -> ComposedLayout:
    """(rows, columns) row after row, as TMA writes it without a swizzle.

    If a row has an odd number of 16-byte vectors, eight rows of one column of vectors are in
    different banks all the same.

    >>> print(unswizzled(64, 104))
    S<0,3,3> o 0 o (64,104):(104,1)
    """
    plain = Layout((rows, columns), (columns, 1))
    return ComposedLayout(tma.NO_SWIZZLE.recast(8, BITS), 0, plain, unit=BITS)


def swizzled(rows: int, columns: int, major: Major, parts: int = 1) -> ComposedLayout:
    """The shared-memory tile (rows, columns) under the widest swizzle that fits.

    Columns ("K") or rows ("MN") are contiguous. The tile is made of the tensor core's swizzle atoms
    (PTX ISA, wgmma shared memory layout): eight rows of 64, 32 or 16 elements, the most that divide
    the contiguous extent. The atoms in line along the other extent form a TMA box. If the rows have
    several parts, such as matrices, no row of an atom has elements of two.

    >>> print(swizzled(128, 64, "K"))
    S<3,3,3> o 0 o ((8,16),(64,1)):((64,512),(1,0))
    >>> print(swizzled(128, 64, "MN"))
    S<3,3,3> o 0 o ((64,2),(8,8)):((1,4096),(64,512))
    >>> print(swizzled(96, 64, "MN"))
    S<2,3,3> o 0 o ((32,3),(8,8)):((1,2048),(32,256))
    >>> print(swizzled(64, 64, "MN", parts=2))
    S<2,3,3> o 0 o ((32,2),(8,8)):((1,2048),(32,256))

    PlanError if the contiguous extent is not a multiple of 16, the shortest row of a swizzle.
    """
    outer, inner = (rows, columns) if major == "K" else (columns, rows)
    run = columns if major == "K" else rows // parts  # contiguous elements of one part
    if run % SHORTEST_ROW:
        raise PlanError(
            f"an operand of {rows} × {columns} elements, {major}-major, has {run} contiguous "
            f"elements in a tile{f', a part of {parts}' * (parts > 1)}; they must be a multiple of "
            f"{SHORTEST_ROW}, a row of TMA's 32-byte swizzle; take another tile, or an operand "
            "that is contiguous along the other mode"
        )
    row = max(gcd(run, ROW), SHORTEST_ROW)
    across = Layout((PERIOD, outer // PERIOD), (row, PERIOD * row))
    along = Layout((row, inner // row), (1, outer * row if inner > row else 0))
    plain = make_layout(across, along) if major == "K" else make_layout(along, across)
    return ComposedLayout(SWIZZLES[row], 0, plain, unit=BITS)
