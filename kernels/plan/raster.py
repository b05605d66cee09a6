"""Raster: the order in which a persistent grid visits the tiles of C.

Groups of `group` tile rows, N running inside a group:

    group=2      n →
    m  0  2  4 │              The CTAs that run at one time hold neighbouring tiles, so the panels
    ↓  1  3  5 │ one group    of A and B that a wave reads stay in L2. Which group is best depends
       6  8 10 │              on K (docs/performance): a panel is K deep.
       7  9 11 │

or the same turned, groups of tile columns with M running inside.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from layouts import Layout

Side: TypeAlias = Literal["rows", "columns"]


@dataclass(frozen=True)
class Raster:
    """Tile index → tile coordinate (m, n), in groups of `group` rows of tiles, or columns.

    >>> [Raster(2)(i, 4, 3) for i in range(8)]
    [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 0), (3, 0)]
    >>> [Raster(2, "columns")(i, 4, 3) for i in range(9)]
    [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (3, 1), (0, 2)]
    """

    group: int
    of: Side = "rows"

    def __str__(self) -> str:
        inside = "N" if self.of == "rows" else "M"
        return f"groups of {self.group} tile {self.of}, {inside} inside"

    def modes(self, height: Any, tiles_n: Any) -> tuple[Layout, Layout]:
        """The layouts of m and of n over the tiles of one group `height` rows high.

        Together they are CuTe's coordinate layout (height, tiles_n):(1@0, 1@1).
        """
        return Layout((height, tiles_n), (1, 0)), Layout((height, tiles_n), (0, 1))

    def __call__(
        self, index: Any, tiles_m: Any, tiles_n: Any, least: Callable[[Any, Any], Any] = min
    ) -> tuple[Any, Any]:
        """Coordinate (m, n) of tile `index`; the last group is as high as what is left.

        The arguments are ints, or a kernel's integers with their own minimum as `least`. Every tile
        is visited once by 0 <= index < tiles_m * tiles_n (a law of the tests).
        """
        if self.of == "columns":
            n, m = Raster(self.group)(index, tiles_n, tiles_m, least)
            return m, n
        first = index // (self.group * tiles_n) * self.group
        inside = index - first * tiles_n
        rows, columns = self.modes(least(self.group, tiles_m - first), tiles_n)
        return first + rows(inside), columns(inside)
