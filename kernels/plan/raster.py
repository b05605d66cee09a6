"""The raster: the order in which the blocks visit the tiles of C.

Groups of `group` tile rows; inside a group M runs first, then N:

    group=2      n →
    m  0  2  4 │              Blocks that run at the same time hold neighbouring tiles. The panels
    ↓  1  3  5 │ one group    of A and B that a wave reads then stay in L2. The best group depends
       6  8 10 │              on K, the depth of a panel (docs/performance).
       7  9 11 │

`of="columns"` gives the transpose: groups of tile columns, inside which N runs first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from layouts import Layout

Side: TypeAlias = Literal["rows", "columns"]


def row_by_row(index: Any, tiles_m: Any, tiles_n: Any) -> tuple[Any, Any]:
    """Tile index → tile coordinate, where N runs first.

    >>> [row_by_row(i, 2, 3) for i in range(6)]
    [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    """
    return index // tiles_n, index % tiles_n


class ChunkOrder(NamedTuple):
    """The order of tile rows that belong to several GPUs: chunks of `height`, one of each GPU.

    The chunks follow each other cyclically from number `first` on.
    """

    first: Any
    height: Any

    def chunks_before(self, index: Any, tiles_n: Any) -> Any:
        """How many chunks come before that of tile `index`.

        >>> [ChunkOrder(2, 1).chunks_before(index, tiles_n=2) for index in range(6)]
        [0, 0, 1, 1, 2, 2]
        """
        return index // (self.height * tiles_n)

    def chunk(self, index: Any, tiles_m: Any, tiles_n: Any) -> Any:
        """The chunk of tile `index`, if C has `tiles_m` × `tiles_n` tiles.

        >>> [ChunkOrder(2, 1).chunk(index, 3, 2) for index in range(6)]
        [2, 2, 0, 0, 1, 1]
        """
        return (self.chunks_before(index, tiles_n) + self.first) % (tiles_m // self.height)


@dataclass(frozen=True)
class Raster:
    """Tile index → tile coordinate (m, n), in groups of `group` tile rows or columns.

    >>> [Raster(2)(i, 4, 3) for i in range(8)]
    [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 0), (3, 0)]
    >>> [Raster(2, "columns")(i, 4, 3) for i in range(9)]
    [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (3, 1), (0, 2)]
    """

    group: int
    of: Side = "rows"

    def __str__(self) -> str:
        if self.group == 1:
            return f"tile {self.of}, one after the other"
        fastest = "M" if self.of == "rows" else "N"
        return f"groups of {self.group} tile {self.of}, {fastest} fastest within a group"

    def modes(self, height: Any, tiles_n: Any) -> tuple[Layout, Layout]:
        """The layouts index → m and index → n of one group, `height` tile rows high.

        Together they are CuTe's coordinate layout (height, tiles_n):(1@0, 1@1).
        """
        return Layout((height, tiles_n), (1, 0)), Layout((height, tiles_n), (0, 1))

    def __call__(
        self, index: Any, tiles_m: Any, tiles_n: Any, minimum: Callable[[Any, Any], Any] = min
    ) -> tuple[Any, Any]:
        """The coordinate (m, n) of tile `index`, 0 <= index < tiles_m * tiles_n.

        Each tile has one index (a law of the tests). The last group has the remaining rows. The
        arguments are ints, or a kernel's integers with their own `minimum`.
        """
        if self.of == "columns":
            n, m = Raster(self.group)(index, tiles_n, tiles_m, minimum)
            return m, n
        if self.group == 1:  # one division fewer than in other groups
            return row_by_row(index, tiles_m, tiles_n)
        first = index // (self.group * tiles_n) * self.group  # tile row of the group
        within = index - first * tiles_n
        rows, columns = self.modes(minimum(self.group, tiles_m - first), tiles_n)
        return first + rows(within), columns(within)

    def by_chunks(
        self,
        index: Any,
        chunk_order: ChunkOrder,
        tiles_m: Any,
        tiles_n: Any,
        minimum: Callable[[Any, Any], Any] = min,
    ) -> tuple[Any, Any]:
        """The coordinate of tile `index` if tile rows arrive in chunks: no group crosses one.

        >>> [Raster(2).by_chunks(i, ChunkOrder(1, 2), 4, 2) for i in range(8)]
        [(2, 0), (3, 0), (2, 1), (3, 1), (0, 0), (1, 0), (0, 1), (1, 1)]
        """
        within = index - chunk_order.chunks_before(index, tiles_n) * (chunk_order.height * tiles_n)
        m, n = self(within, chunk_order.height, tiles_n, minimum)
        return chunk_order.chunk(index, tiles_m, tiles_n) * chunk_order.height + m, n
