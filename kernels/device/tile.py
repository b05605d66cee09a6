"""What device files share: a thread's part of a tile, and its guarded moves."""

from typing import Any, TypeAlias

import cutlass
import cutlass.cute as cute
from cutlass.experimental import primitives

from cutedsl_gemm.kernels.device import lower
from cutedsl_gemm.kernels.plan.partition import Share
from layouts import cosize

Pair: TypeAlias = tuple[Any, Any]  # (rows, columns), or coordinates in them


def grid(c: cute.Tensor, tiler: Pair) -> cutlass.Int32:
    """Tiles of C: a block each."""
    return cute.ceil_div(c.shape[0], tiler[0]) * cute.ceil_div(c.shape[1], tiler[1])


def tile_of(block: cutlass.Int32, c: cute.Tensor, tiler: Pair) -> Pair:
    """(m, n) of a block's tile: along the rows of C."""
    across = cute.ceil_div(c.shape[1], tiler[1])
    return block // across, block % across


def part(tile: cute.Tensor, share: Share, thread: cutlass.Int32) -> cute.Tensor:
    """(lines, (width, vectors)): what `thread` takes of a tile (rows, columns)."""
    places = lower.layout(share.at(1, cute.size(tile, mode=[0])))
    return cute.composition(tile, places)[thread, (None, None)]


def left(matrix: cute.Tensor, tiler: Pair, coordinate: Pair) -> Pair:
    """(rows, columns) of a matrix from the start of a tile on."""
    (m, n), (rows, columns), (i, j) = matrix.shape, tiler, coordinate
    return m - rows * i, n - columns * j


def cut(matrix: cute.Tensor, column: cutlass.Int32) -> tuple[cute.Tensor, cute.Tensor]:
    """The columns of a matrix before one, and those from it on."""
    (rows, columns), stride = matrix.shape, matrix.stride
    rest = matrix.iterator + cute.crd2idx((0, column), matrix.layout)
    return (
        cute.make_tensor(matrix.iterator, cute.make_layout((rows, column), stride=stride)),
        cute.make_tensor(rest, cute.make_layout((rows, columns - column), stride=stride)),
    )


def inside(share: Share, thread: cutlass.Int32, value: Pair, extent: Pair) -> cutlass.Boolean:
    """Whether a value's place is one of the `extent` (rows, columns) that are left."""
    rows, columns = extent
    return (share.rows(thread, value) < rows) & (share.columns(thread, value) < columns)


@cute.jit
def move(
    source: cute.Tensor,
    target: cute.Tensor,
    share: cutlass.Constexpr,
    thread: cutlass.Int32,
    extent: Pair,
):
    """Copy a thread's values, `width` at a time; one by one at an edge that cuts through them."""
    for line in cutlass.range_constexpr(share.lines):
        for vector in cutlass.range_constexpr(share.vectors):
            if inside(share, thread, (line, (share.width - 1, vector)), extent):
                cute.autovec_copy(source[line, (None, vector)], target[line, (None, vector)])
            elif cutlass.const_expr(share.width > 1):
                for v in cutlass.range_constexpr(share.width):
                    if inside(share, thread, (line, (v, vector)), extent):
                        target[line, (v, vector)] = source[line, (v, vector)]


def bring(
    matrix: cute.Tensor,
    shared: cute.Tensor,
    share: Share,
    tiler: Pair,
    coordinate: Pair,
    thread: cutlass.Int32,
) -> None:
    """This thread's share of a tile, through registers into shared memory; zeros past the edges."""
    put(take(matrix, share, tiler, coordinate, thread), shared, share, thread)


def take(
    matrix: cute.Tensor, share: Share, tiler: Pair, coordinate: Pair, thread: cutlass.Int32
) -> cute.Tensor:
    """This thread's share of a tile in registers; zeros past the edges."""
    held = cute.make_rmem_tensor(lower.layout(share.registers), matrix.element_type)
    held.fill(0)
    tile = part(cute.local_tile(matrix, tiler, coordinate), share, thread)
    move(tile, held, share, thread, left(matrix, tiler, coordinate))
    return held


def put(held: cute.Tensor, shared: cute.Tensor, share: Share, thread: cutlass.Int32) -> None:
    """What a thread took of a tile into shared memory."""
    cute.autovec_copy(held, part(shared, share, thread))


@cute.jit
def ask(
    matrix: cute.Tensor,
    ring: cute.Tensor,
    operand: cutlass.Constexpr,
    tiler: cutlass.Constexpr,
    coordinate: Pair,
    stage: cutlass.Int32,
    thread: cutlass.Int32,
    whole: cutlass.Constexpr,
):
    """This thread's share of a tile by cp.async, which writes zeros for what lies past the edges.

    It goes to a stage of the ring (rows, columns, stages). Where the tile is known to lie inside,
    `whole`, no edge is looked for.
    """
    share, smem, bytes_of = operand.share, operand.smem, matrix.element_type.width // 8
    modifiers = primitives.LoadCacheModifier
    tile = part(cute.local_tile(matrix, tiler, coordinate), share, thread)
    extent = left(matrix, tiler, coordinate)
    for move in cutlass.range_constexpr(share.lines * share.vectors):
        line, vector = move // share.vectors, move % share.vectors
        at = (line, (0, vector))
        row, column = share.rows(thread, at), share.columns(thread, at)
        target = lower.settled(ring.iterator + smem.outer(row, column), smem)
        present = share.width
        if cutlass.const_expr(not whole):
            rows, columns = extent[0] - row, extent[1] - column
            along, across = (rows, columns) if share.down else (columns, rows)
            present = cutlass.min(cutlass.max(along, 0), share.width) if across > 0 else 0
        primitives.cp_async_shared_global(
            target + stage * cosize(smem),
            tile[line, (None, vector)].iterator,
            share.width * bytes_of,
            # around L1, which only whole pieces may go (PTX ISA, cp.async)
            modifiers.CG if share.width * bytes_of == 16 else modifiers.CA,
            cp_size=None if whole else present * bytes_of,
        )
