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

# Bytes of a box row → TMA's swizzle on byte addresses, whose period is eight such rows.
SWIZZLES = {32: Swizzle(1, 4, 3), 64: Swizzle(2, 4, 3), 128: Swizzle(3, 4, 3)}
ATOM_BYTES = 1024  # the longest period, and the alignment of a buffer
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

    A box row is as long as the row of the tile's swizzle: 32, 64 or 128 bytes. LayoutError if the
    tile has no unit, or if TMA cannot write this layout under any of its swizzles.

    >>> tile = ComposedLayout(SWIZZLES[128].recast(8, 16), 0, Layout((128, 64), (64, 1)), unit=16)
    >>> boxes(tile, contiguous=1)
    Boxes(rows=128, columns=64, origins=((0, 0, 0),))
    >>> two_boxes = Layout(((64, 2), (8, 8)), ((1, 4096), (64, 512)))  # 64 rows contiguous
    >>> boxes(ComposedLayout(tile.inner, 0, two_boxes, unit=16), contiguous=0).origins
    ((0, 0, 0), (0, 64, 4096))
    """
    if tile.unit is None:
        raise LayoutError(f"{tile}: say its unit, the bits of an element: ComposedLayout(unit=16)")
    element, row_bytes = tile.unit // 8, _row_bytes(tile, tile.unit)
    along, across = tile.outer[contiguous], tile.outer[1 - contiguous]
    columns, rows = row_bytes // element, size(coalesce(across)[0])
    if rows > MAX_BOX_ROWS:
        raise LayoutError(
            f"a box of {tile} has {rows} rows; TMA takes at most {MAX_BOX_ROWS}; "
            "take a smaller tile"
        )
    if size(along) % columns:
        raise LayoutError(
            f"{tile} has {size(along)} elements along memory; a row of TMA's {row_bytes}-byte "
            f"swizzle has {columns}; take a multiple"
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
    period = 8 * row_bytes
    if any(offset * element % period for _, _, offset in grid):
        raise LayoutError(
            f"the boxes of {tile} start at {rest}; they must start at multiples of {period} "
            "bytes, the period of the swizzle"
        )
    return Boxes(rows, columns, tuple((j * rows, i * columns, offset) for i, j, offset in grid))


def _row_bytes(tile: ComposedLayout, unit: int) -> int:
    """The bytes of a row of the tile's swizzle, which must be one of TMA's."""
    for row_bytes, swizzle in SWIZZLES.items():
        if tile.inner == swizzle.recast(8, unit):
            return row_bytes
    on_bytes, on_elements = (
        ", ".join(str(swizzle.recast(8, bits)) for swizzle in SWIZZLES.values())
        for bits in (8, unit)
    )
    raise LayoutError(
        f"the swizzle of {tile} is not one of TMA's, which are {on_bytes} on bytes, "
        f"and {on_elements} on elements of {unit} bits"
    )
