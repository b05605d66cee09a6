"""The row address that each lane supplies to ldmatrix or stmatrix.

A lane addresses one row of eight elements, but other lanes hold them: four lanes hold two each.
The atom's fragment says which lane holds which element of the matrices.  A thread-value layout says
where a thread's elements are in the tile.  One after the other, they say where each row is.
"""

from __future__ import annotations

from ..algebra import composition, right_inverse
from ..values.layout import Layout, make_layout
from ..values.tuples import size
from .atoms import MatrixAtom
from .facts import WARP

__all__ = ["row_addresses"]


def row_addresses(atom: MatrixAtom, values: Layout) -> tuple[Layout, Layout]:
    """(lane, warp, instruction) → coordinate where the lane's row starts; column → step from there.

    `values` takes (thread, value) to the index of a coordinate of a tile.  It has whole warps, and
    a multiple of the ``2 * atom.matrices`` values that an instruction moves.  The address is what
    the tile's layout makes of the coordinate.

    >>> from layouts import stmatrix, wgmma_accumulator
    >>> rows, columns = row_addresses(stmatrix(), wgmma_accumulator(32))  # → m + 64 * n
    >>> print(rows, columns)
    ((8,(2,2)),4,2):((1,(8,512)),16,1024) (2,4):(64,128)
    """
    threads, held = values
    count = 2 * atom.matrices  # elements that an instruction moves per lane
    holder = composition(right_inverse(atom.fragment), atom.rows)  # → lane + WARP * value
    holder = composition(Layout((WARP, count), (1, size(threads))), holder)  # → index of `values`
    lanes, columns = composition(values, holder)
    warps = composition(threads, Layout(size(threads) // WARP, WARP))
    instructions = composition(held, Layout(size(held) // count, count))
    return make_layout(lanes, warps, instructions), columns
