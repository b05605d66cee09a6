"""What TMA can carry: the boxes of a swizzled tile.

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

SWIZZLE_128B = Swizzle(3, 4, 3)  # on byte addresses: the 16-byte piece ^= the row of 128 bytes
SPAN = 128  # bytes of a box row under this swizzle
ATOM = 1024  # bytes of eight rows: the swizzle repeats, and a buffer must be aligned to it
MOST_ROWS = 256  # of a box


@dataclass(frozen=True)
class Boxes:
    """How a tile travels: one instruction a box of `rows` × `columns`, columns contiguous.

    `origins` holds for each box its first row and column in the tile, and its offset in the buffer,
    in elements.
    """

    rows: int
    columns: int
    origins: tuple[tuple[int, int, int], ...]


def boxes(tile: ComposedLayout, contiguous: int) -> Boxes:
    """The boxes that fill `tile`, a rank-2 layout of shared memory.

    Its mode `contiguous` runs along memory. Raises LayoutError where the tile has no unit, or where
    TMA's 128-byte swizzle cannot write what the layout says.

    >>> from cutedsl_gemm.kernels.sm90.mainloop import swizzled
    >>> boxes(swizzled(128, 64, "K"), contiguous=1)
    Boxes(rows=128, columns=64, origins=((0, 0, 0),))
    >>> boxes(swizzled(128, 64, "MN"), contiguous=0).origins
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
    columns, rows = SPAN // element, size(coalesce(across)[0])
    if rows > MOST_ROWS:
        raise LayoutError(
            f"a box of {tile} has {rows} rows; TMA takes at most {MOST_ROWS}; take a smaller tile"
        )
    if size(along) % columns:
        raise LayoutError(
            f"{tile} has {size(along)} elements along memory; a row of TMA's 128-byte swizzle has "
            f"{columns}; take a multiple"
        )
    box, rest = zipped_divide(make_layout(along, across), (columns, rows))
    if coalesce(box) != Layout(columns * rows, 1):
        raise LayoutError(
            f"TMA writes {rows} rows of {columns} contiguous elements, one after the other; "
            f"{tile} has {box} in their place"
        )
    across, down = size(rest[0]), size(rest[1])
    places = [
        (column, row, tile.offset + rest((column, row)))
        for row in range(down)
        for column in range(across)
    ]
    if any(offset * element % ATOM for _, _, offset in places):
        raise LayoutError(
            f"the boxes of {tile} start at {rest}; they must start at multiples of {ATOM} bytes, "
            "where the swizzle begins anew"
        )
    origins = tuple((row * rows, column * columns, offset) for column, row, offset in places)
    return Boxes(rows, columns, origins)
