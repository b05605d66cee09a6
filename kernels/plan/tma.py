"""The boxes by which TMA copies a swizzled tile.

Source: CUDA driver API, cuTensorMapEncodeTiled; PTX ISA, "Tensor swizzling modes".
"""

from __future__ import annotations

from dataclasses import dataclass

from layouts import (
    ComposedLayout,
    Layout,
    LayoutError,
    Swizzle,
    coalesce,
    make_layout,
    size,
    zipped_divide,
)

SWIZZLE_128B = Swizzle(3, 4, 3)  # on bytes: XORs address bits 4-6 with bits 7-9
BOX_ROW_BYTES = 128  # of a box under this swizzle
ATOM_BYTES = 1024  # eight box rows: the swizzle's period, and the alignment of a buffer
MAX_BOX_ROWS = 256


@dataclass(frozen=True)
class Boxes:
    """The boxes of a tile: one instruction copies one box of `rows` × `columns` elements.

    The columns are contiguous in memory. `origins` holds for each box its first row and column in
    the tile and its offset in the buffer, in elements.
    """

    rows: int
    columns: int
    origins: tuple[tuple[int, int, int], ...]


def boxes(tile: ComposedLayout, contiguous: int) -> Boxes:
    """The boxes that fill `tile`, a rank-2 layout of shared memory, contiguous in one mode.

    LayoutError if the tile has no unit, or if TMA's 128-byte swizzle cannot write this layout.

    >>> tile = ComposedLayout(SWIZZLE_128B.recast(8, 16), 0, Layout((128, 64), (64, 1)), unit=16)
    >>> boxes(tile, contiguous=1)
    Boxes(rows=128, columns=64, origins=((0, 0, 0),))
    >>> two_panels = Layout(((64, 2), (8, 8)), ((1, 4096), (64, 512)))  # 64 rows contiguous
    >>> boxes(ComposedLayout(tile.inner, 0, two_panels, unit=16), contiguous=0).origins
    ((0, 0, 0), (0, 64, 4096))
    """
    if tile.unit is None:
        raise LayoutError(f"{tile}: say its unit, the bits of an element: ComposedLayout(unit=16)")
    element, swizzle = tile.unit // 8, SWIZZLE_128B.recast(8, tile.unit)
    if tile.inner != swizzle:
        raise LayoutError(
            f"the swizzle of {tile} is not TMA's 128-byte swizzle, "
            f"which is {SWIZZLE_128B} on bytes and {swizzle} on elements of {tile.unit} bits"
        )
    along, across = tile.outer[contiguous], tile.outer[1 - contiguous]
    columns, rows = BOX_ROW_BYTES // element, size(coalesce(across)[0])
    if rows > MAX_BOX_ROWS:
        raise LayoutError(
            f"a box of {tile} has {rows} rows; TMA takes at most {MAX_BOX_ROWS}; "
            "take a smaller tile"
        )
    if size(along) % columns:
        raise LayoutError(
            f"{tile} has {size(along)} elements along memory; a row of TMA's 128-byte swizzle has "
            f"{columns}; take a multiple"
        )
    # ((columns, rows), (boxes along, boxes across)) → offset
    box, rest = zipped_divide(make_layout(along, across), (columns, rows))
    if coalesce(box) != Layout(columns * rows, 1):
        raise LayoutError(
            f"TMA writes {rows} rows of {columns} contiguous elements, back to back; "
            f"the box of {tile} is {box}"
        )
    grid = [
        (i, j, tile.offset + rest((i, j)))
        for j in range(size(rest[1]))
        for i in range(size(rest[0]))
    ]
    if any(offset * element % ATOM_BYTES for _, _, offset in grid):
        raise LayoutError(
            f"the boxes of {tile} start at {rest}; they must start at multiples of {ATOM_BYTES} "
            "bytes, the period of the swizzle"
        )
    return Boxes(rows, columns, tuple((j * rows, i * columns, offset) for i, j, offset in grid))
