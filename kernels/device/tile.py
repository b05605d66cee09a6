"""A block's tile in device code: its coordinate, a thread's partition of it, guarded copies."""

from collections.abc import Callable
from typing import Any, TypeAlias

import cutlass
import cutlass.cute as cute
from cutlass.experimental import primitives

from cutedsl_gemm.kernels.device import lower
from cutedsl_gemm.kernels.plan.tv_layout import TVLayout
from layouts import slice_and_offset

Pair: TypeAlias = tuple[Any, Any]  # (rows, columns), or a coordinate in them


def as_matrix(stack: cute.Tensor) -> cute.Tensor:
    """A stack (matrices, rows, columns) with its rows as one mode: ((rows, matrices), columns).

    A matrix stays as it is. A stack of batches (2, L, rows, columns) becomes ((rows, 2, L),
    columns).
    """
    if cutlass.const_expr(cute.rank(stack) == 2):
        return stack
    return _as_matrix(stack, rows=cute.rank(stack) - 2)


def transposed(matrix: cute.Tensor) -> cute.Tensor:
    """The same memory with rows and columns exchanged.

    The columns of a stack (matrices, rows, columns) become one mode: ((columns, matrices), rows).
    """
    if cutlass.const_expr(cute.rank(matrix) == 2):
        return cute.make_tensor(matrix.iterator, cute.select(matrix.layout, mode=[1, 0]))
    return _as_matrix(matrix, rows=cute.rank(matrix) - 1)


def _as_matrix(stack: cute.Tensor, rows: int) -> cute.Tensor:
    """A stack with mode `rows`, and those that count its matrices, as one."""
    rank = cute.rank(stack)
    (columns,) = {rank - 2, rank - 1} - {rows}
    modes = cute.select(stack.layout, mode=[rows, *range(rank - 2), columns])
    return cute.make_tensor(stack.iterator, cute.group_modes(modes, 0, rank - 1))


def matrix_of(batch: cute.Tensor, matrix: cutlass.Int32) -> cute.Tensor:
    """A matrix of a batch ((rows, …, L), columns): (rows, columns), or ((rows, …), columns).

    Of a batch in tiles (rows, columns, (tiles, …, L), tiles), the tiles of a matrix.
    """
    rank = cute.rank(batch)
    kept = cute.rank(batch, mode=[rank - 2]) - 1  # of the mode that counts the matrices, too
    found = batch[(*[None] * (rank - 2), (*[None] * kept, matrix), None)]  # which flattens it
    if cutlass.const_expr(kept == 1):
        return found
    return cute.group_modes(found, rank - 2, rank - 2 + kept)


def tile_counts(shape: Pair, tiler: Pair) -> Pair:
    """The tiles along M and along N of a C of this shape, those at the edges included."""
    return cute.ceil_div(shape[0], tiler[0]), cute.ceil_div(shape[1], tiler[1])


def tile_count(shape: Pair, tiler: Pair) -> cutlass.Int32:
    """The number of tiles of a C of this shape, those at the edges included."""
    tiles_m, tiles_n = tile_counts(shape, tiler)
    return tiles_m * tiles_n


def thread_partition(tile: cute.Tensor, copy: TVLayout, thread: cutlass.Int32) -> cute.Tensor:
    """(lines, (width, vectors)): the elements of a tile (rows, columns) that `thread` moves."""
    offsets = lower.layout(copy.offsets(1, cute.size(tile, mode=[0])))
    return cute.composition(tile, offsets)[thread, (None, None)]


def remaining_extent(matrix: cute.Tensor, tiler: Pair, coord: Pair) -> Pair:
    """The rows and columns of a matrix from the first element of a tile on."""
    (m, n), (rows, columns), (i, j) = matrix.shape, tiler, coord
    return m - rows * i, n - columns * j


def split_columns(matrix: cute.Tensor, column: cutlass.Int32) -> tuple[cute.Tensor, cute.Tensor]:
    """A matrix (rows, columns) as two: (rows, column) and (rows, columns - column)."""
    (rows, columns), stride = matrix.shape, matrix.stride
    rest = matrix.iterator + cute.crd2idx((0, column), matrix.layout)
    return (
        cute.make_tensor(matrix.iterator, cute.make_layout((rows, column), stride=stride)),
        cute.make_tensor(rest, cute.make_layout((rows, columns - column), stride=stride)),
    )


def thread_coordinates(copy: TVLayout, thread: cutlass.Int32) -> Callable[[Pair], Pair]:
    """value → (row, column), of one thread; what depends on the thread is computed once."""
    (rows, row), (columns, column) = (
        slice_and_offset((thread, None), layout) for layout in (copy.rows, copy.columns)
    )
    return lambda value: (row + rows((value,)), column + columns((value,)))


def in_bounds(coord: Pair, extent: Pair) -> cutlass.Boolean:
    """The predicate: whether a row and a column are below the remaining extent."""
    (row, column), (rows, columns) = coord, extent
    return (row < rows) & (column < columns)


@cute.jit
def guarded_copy(
    source: cute.Tensor,
    target: cute.Tensor,
    copy: cutlass.Constexpr,
    thread: cutlass.Int32,
    extent: Pair,
):
    """Copy a thread's values (lines, (width, vectors)) that are in bounds.

    A whole vector of `width` elements moves as one; one that an edge cuts, element by element.
    """
    coord_in_tile = thread_coordinates(copy, thread)
    for line in cutlass.range_constexpr(copy.lines):
        for vector in cutlass.range_constexpr(copy.vectors):
            if in_bounds(coord_in_tile((line, (copy.width - 1, vector))), extent):
                cute.autovec_copy(source[line, (None, vector)], target[line, (None, vector)])
            elif cutlass.const_expr(copy.width > 1):
                for v in cutlass.range_constexpr(copy.width):
                    if in_bounds(coord_in_tile((line, (v, vector))), extent):
                        target[line, (v, vector)] = source[line, (v, vector)]


def load_to_smem(
    matrix: cute.Tensor,
    smem: cute.Tensor,
    copy: TVLayout,
    tiler: Pair,
    coord: Pair,
    thread: cutlass.Int32,
) -> None:
    """Load this thread's part of a tile through registers into shared memory.

    Elements out of bounds are zero. `smem` has the shape of the tile.
    """
    store_to_smem(load_to_registers(matrix, copy, tiler, coord, thread), smem, copy, thread)


def load_to_registers(
    matrix: cute.Tensor, copy: TVLayout, tiler: Pair, coord: Pair, thread: cutlass.Int32
) -> cute.Tensor:
    """(lines, (width, vectors)): this thread's part of a tile; zero out of bounds."""
    values = cute.make_rmem_tensor(lower.layout(copy.registers), matrix.element_type)
    values.fill(0)
    tile = thread_partition(cute.local_tile(matrix, tiler, coord), copy, thread)
    guarded_copy(tile, values, copy, thread, remaining_extent(matrix, tiler, coord))
    return values


def store_to_smem(
    values: cute.Tensor, smem: cute.Tensor, copy: TVLayout, thread: cutlass.Int32
) -> None:
    """Store what `load_to_registers` returned into a tile of shared memory."""
    cute.autovec_copy(values, thread_partition(smem, copy, thread))


@cute.jit
def issue_cp_async(
    matrix: cute.Tensor,
    smem: cute.Tensor,
    operand: cutlass.Constexpr,
    tiler: cutlass.Constexpr,
    coord: Pair,
    stage: cutlass.Int32,
    thread: cutlass.Int32,
    whole: cutlass.Constexpr,
):
    """Issue cp.async for this thread's part of a tile; it writes zeros for what is out of bounds.

    The tile goes to one stage of `smem` (rows, columns, stages). If it is known to be in bounds,
    `whole`, no predicate is computed.
    """
    copy, layout, element = operand.copy, operand.smem, matrix.element_type.width // 8
    modifiers = primitives.LoadCacheModifier
    tile = thread_partition(cute.local_tile(matrix, tiler, coord), copy, thread)
    extent = remaining_extent(matrix, tiler, coord)
    coord_in_tile = thread_coordinates(copy, thread)
    stage_offset = cute.crd2idx((0, 0, stage), smem.layout)
    for move in cutlass.range_constexpr(copy.lines * copy.vectors):
        line, vector = move // copy.vectors, move % copy.vectors
        row, column = coord_in_tile((line, (0, vector)))
        target = lower.swizzled_pointer(smem.iterator + layout.outer(row, column), layout)
        present = copy.width
        if cutlass.const_expr(not whole):
            rows, columns = extent[0] - row, extent[1] - column
            along, across = (rows, columns) if copy.vertical else (columns, rows)
            present = cutlass.min(cutlass.max(along, 0), copy.width) if across > 0 else 0
        primitives.cp_async_shared_global(
            target + stage_offset,
            tile[line, (None, vector)].iterator,
            copy.width * element,
            # .cg bypasses L1; only copies of 16 bytes may (PTX ISA, cp.async)
            modifiers.CG if copy.width * element == 16 else modifiers.CA,
            cp_size=None if whole else present * element,
        )
