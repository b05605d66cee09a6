"""The boxes by which TMA copies a swizzled tile.

Source: CUDA driver API, cuTensorMapEncodeTiled; PTX ISA, "Tensor swizzling modes".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd

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
NO_SWIZZLE = Swizzle(0, 4, 3)  # for a box row of any multiple of 16 bytes
ATOM_BYTES = 1024  # the longest period, and the alignment of a buffer
BOX_BYTES = 128  # alignment of a box without a swizzle
MAX_BOX_ROWS = 256  # and columns
# Cache policies of loads and stores.
EVICT_NORMAL = 0  # what the DSL passes where no policy is given
EVICT_FIRST = 0x12F0000000000000  # CUTLASS: TMA::CacheHintSm90::EVICT_FIRST


@dataclass(frozen=True)
class Boxes:
    """The boxes of a tile: one instruction copies one box of `rows` × `columns` elements.

    The columns are contiguous in memory. `origins` holds for each box its first row and column in
    the tile and its offset in the buffer, in elements. Of several `matrices`, a box has these rows
    and columns of each, one matrix after the other: TMA's third mode. In the tile, the next matrix
    is a `step` of (rows, columns) away.
    """

    rows: int
    columns: int
    origins: tuple[tuple[int, int, int], ...]
    matrices: int = 1
    step: tuple[int, int] = (0, 0)
    swizzle: Swizzle = NO_SWIZZLE  # on byte addresses

    @property
    def of_each(self) -> Iterator[tuple[int, int, int]]:
        """The first row, column and offset of what each box has of each matrix."""
        for row, column, offset in self.origins:
            for i in range(self.matrices):
                at = row + i * self.step[0], column + i * self.step[1]
                yield *at, offset + i * self.rows * self.columns


def boxes(tile: ComposedLayout, contiguous: int, matrices: int = 1) -> Boxes:
    """The boxes that fill `tile`, a rank-2 layout of shared memory, contiguous in one mode.

    A box row is as long as the row of the tile's swizzle, 32, 64 or 128 bytes; without a swizzle,
    it is all of the contiguous mode. If the tile holds several `matrices`, mode 0 is divided
    evenly among them, one after the other. LayoutError if the tile has no unit, or if TMA cannot
    write this layout under any of its swizzles.

    >>> tile = ComposedLayout(SWIZZLES[128].recast(8, 16), 0, Layout((128, 64), (64, 1)), unit=16)
    >>> found = boxes(tile, contiguous=1)
    >>> found.rows, found.columns, found.origins, found.swizzle
    (128, 64, ((0, 0, 0),), Swizzle(3, 4, 3))
    >>> found = boxes(tile, contiguous=1, matrices=2)
    >>> found.rows, found.columns, found.origins, found.step
    (64, 64, ((0, 0, 0),), (64, 0))
    >>> plain = ComposedLayout(NO_SWIZZLE.recast(8, 16), 0, Layout((64, 104), (104, 1)), unit=16)
    >>> boxes(plain, contiguous=1).columns
    104
    >>> two_boxes = Layout(((64, 2), (8, 8)), ((1, 4096), (64, 512)))  # 64 rows contiguous
    >>> boxes(ComposedLayout(tile.inner, 0, two_boxes, unit=16), contiguous=0).origins
    ((0, 0, 0), (0, 64, 4096))
    """
    if tile.unit is None:
        raise LayoutError(f"{tile}: say its unit, the bits of an element: ComposedLayout(unit=16)")
    element = tile.unit // 8
    along, across = tile.outer[contiguous], tile.outer[1 - contiguous]
    swizzle, row_bytes, period = _row(tile, tile.unit, size(along) * element)
    columns, rows = row_bytes // element, size(coalesce(across)[0])
    extent_of_each = size(tile.outer[0]) // matrices  # of mode 0
    if matrices > 1 and contiguous == 1:
        rows = gcd(rows, extent_of_each)
    if rows > MAX_BOX_ROWS:
        raise LayoutError(
            f"a box of {tile} has {rows} rows; TMA takes at most {MAX_BOX_ROWS}; "
            "take a smaller tile"
        )
    if (extent := size(along) if contiguous == 1 else extent_of_each) % columns:
        raise LayoutError(
            f"{tile} has {extent} elements along memory{' of each matrix' * (matrices > 1)}; a row "
            f"of TMA's {row_bytes}-byte swizzle has {columns}; take a multiple"
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
    if any(offset * element % period for _, _, offset in grid):
        raise LayoutError(
            f"the boxes of {tile} start at {rest}; they must start at multiples of {period} "
            "bytes, the period of the swizzle"
        )
    origins = tuple((j * rows, i * columns, offset) for i, j, offset in grid)
    found = Boxes(rows, columns, origins, swizzle=swizzle)
    return found if matrices == 1 else _joined(found, extent_of_each, matrices, contiguous)


def _joined(found: Boxes, extent: int, matrices: int, contiguous: int) -> Boxes:
    """Each box of all matrices at once, if they allow it; `extent` is that of mode 0 of one."""
    step = (extent, 0) if contiguous == 1 else (0, extent)
    first = tuple(at for at in found.origins if at[1 - contiguous] < extent)  # of the first matrix
    joined = Boxes(found.rows, found.columns, first, matrices, step, found.swizzle)
    return joined if {*joined.of_each} == {*found.origins} else found


def _row(tile: ComposedLayout, unit: int, bytes_along: int) -> tuple[Swizzle, int, int]:
    """TMA's swizzle of the tile, the bytes of a box row, and those at whose multiples boxes start.

    Without a swizzle, the row has all the bytes along memory.
    """
    for row_bytes, swizzle in SWIZZLES.items():
        if tile.inner == swizzle.recast(8, unit):
            return swizzle, row_bytes, 8 * row_bytes
    if tile.inner == NO_SWIZZLE.recast(8, unit):
        if bytes_along % 16 or bytes_along > MAX_BOX_ROWS * unit // 8:
            raise LayoutError(
                f"{tile} has {bytes_along} bytes along memory; a row of a box without a swizzle "
                f"has a multiple of 16 bytes, and at most {MAX_BOX_ROWS} elements"
            )
        return NO_SWIZZLE, bytes_along, BOX_BYTES
    on_bytes, on_elements = (
        ", ".join(str(swizzle.recast(8, bits)) for swizzle in SWIZZLES.values())
        for bits in (8, unit)
    )
    raise LayoutError(
        f"the swizzle of {tile} is not one of TMA's, which are {on_bytes} on bytes, "
        f"and {on_elements} on elements of {unit} bits"
    )
