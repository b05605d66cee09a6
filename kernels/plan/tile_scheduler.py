"""The tile scheduler: which tiles of C a block computes, and which k-tiles of each.

A block computes work tiles, one after the other: a tile of C, and a range of its k-tiles.

    persistent   block 0: tile 0, G, 2G, …, each with all k-tiles     G blocks, or clusters of them
    split        block 0: tile 0, the first k-tiles; …                the blocks of one split are
                 block T: tile 0, the next k-tiles; …                 neighbours; T tiles

A cluster takes one cluster tile at a time; each of its blocks computes one tile of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from cutedsl_gemm.kernels.plan.raster import ChunkOrder, Raster


class TileExtents(NamedTuple):
    """C in tiles of clusters, and K in k-tiles: ints, or a kernel's integers.

    The tile rows of a batch are those of its matrices, one after the other.
    """

    clusters_m: Any
    clusters_n: Any
    k_tiles: Any
    chunk_order: ChunkOrder | None = None  # the order of tile rows, if they come from several GPUs
    clusters_of_each: Any = None  # if C is a batch: how many of `clusters_m` each matrix has

    @property
    def cluster_tiles(self) -> Any:
        """How many tiles of clusters C has."""
        return self.clusters_m * self.clusters_n


class WorkTile(NamedTuple):
    """A tile of C at `coord` (m, n), its number, and the k-tiles of it that a block multiplies."""

    coord: tuple[int, int]
    number: int
    split: int
    k_tiles: range


@dataclass(frozen=True)
class TileScheduler:
    """Block → work tiles. Arguments are ints, or a kernel's integers.

    `cluster` is the number of tiles (down, across) that the blocks of a cluster compute at a time:
    ranks run down, then across. `splits` blocks compute a tile together. Unless the kernel is
    `persistent`, a block has one work tile.
    """

    raster: Raster
    cluster: tuple[int, int] = (1, 1)
    splits: int = 1
    persistent: bool = True

    @property
    def cluster_size(self) -> int:
        """Blocks of a cluster."""
        down, across = self.cluster
        return down * across

    def blocks(
        self, tiles: Any, sms: Any, ceil_div: Callable[[Any, Any], Any] = lambda a, b: -(-a // b)
    ) -> Any:
        """Blocks to launch on `sms` multiprocessors, for `tiles` tiles of clusters.

        A persistent kernel launches as few as need the same number of waves. Blocks that would idle
        in the last wave only take power and L2 from the others: without them it is 1.01 to 1.05
        times as fast (docs/performance).

        >>> [TileScheduler(Raster(1), (down, 1)).blocks(200 // down, 132) for down in (1, 2)]
        [100, 100]
        >>> TileScheduler(Raster(1), splits=4, persistent=False).blocks(10, 132)
        40
        """
        if not self.persistent:
            return tiles * self.splits * self.cluster_size
        return ceil_div(tiles, ceil_div(tiles, sms // self.cluster_size)) * self.cluster_size

    def walk(
        self, cluster: Any, grid_clusters: Any, k_tiles: Any
    ) -> tuple[Any, Any, tuple[Any, Any]]:
        """A cluster's first tile, the step to its next, and its k-tiles (begin, end).

        Tiles are those of clusters. If blocks split K, a cluster has one tile: the step leads past
        all others.

        >>> TileScheduler(Raster(1)).walk(3, 132, 16)
        (3, 132, (0, 16))
        >>> TileScheduler(Raster(1), splits=2, persistent=False).walk(3, 4, 16)
        (1, 2, (8, 16))
        """
        if self.splits == 1:
            return cluster, grid_clusters, (0, k_tiles)
        tile, tiles, split = self.tile_and_split(cluster, grid_clusters)
        return tile, tiles, self.k_tile_range(split, k_tiles)

    def tile_and_split(self, cluster: Any, grid_clusters: Any) -> tuple[Any, Any, Any]:
        """A cluster's tile, the number of tiles, and its split of K."""
        tiles = grid_clusters // self.splits
        return cluster % tiles, tiles, cluster // tiles

    def k_tile_range(self, split: Any, k_tiles: Any) -> tuple[Any, Any]:
        """The first k-tile of a split, and the one after its last."""
        return split * k_tiles // self.splits, (split + 1) * k_tiles // self.splits

    def cluster_coord(self, rank: Any) -> tuple[Any, Any]:
        """The tile (row, column) of block `rank` in its cluster."""
        down, across = self.cluster
        return (rank % down, rank // down) if across > 1 else (rank, 0)

    def tile_coord(
        self,
        index: Any,
        rank: Any,
        extents: TileExtents,
        minimum: Callable[[Any, Any], Any] = min,
    ) -> tuple[Any, Any]:
        """The tile (m, n) of C of block `rank` of the cluster with tile `index`.

        The raster orders the tiles of clusters. If their rows come from several GPUs, it orders
        those of each chunk, and the chunk order orders the chunks.

        >>> scheduler, extents = TileScheduler(Raster(1), cluster=(2, 1)), TileExtents(2, 3, 8)
        >>> [scheduler.tile_coord(1, rank, extents) for rank in (0, 1)]
        [(0, 1), (1, 1)]
        """
        clusters_m, clusters_n, _, chunk_order, _ = extents
        if chunk_order is None:
            m, n = self.raster(index, clusters_m, clusters_n, minimum)
        else:
            m, n = self.raster.by_chunks(index, chunk_order, clusters_m, clusters_n, minimum)
        (down, across), (row, column) = self.cluster, self.cluster_coord(rank)
        return m * down + row, n * across + column

    def matrix_of(self, m: Any, extents: TileExtents) -> tuple[Any, Any]:
        """The matrix of a batch to which tile row m belongs, and the tile row within it.

        >>> extents = TileExtents(6, 1, 8, clusters_of_each=2)
        >>> [TileScheduler(Raster(1), (2, 1)).matrix_of(m, extents) for m in (3, 4)]
        [(0, 3), (1, 0)]
        """
        rows = extents.clusters_of_each * self.cluster[0]
        return m // rows, m % rows

    def work_tiles(self, block: int, blocks: int, extents: TileExtents) -> Iterator[WorkTile]:
        """What block `block` of `blocks` computes.

        >>> for tile in TileScheduler(Raster(2)).work_tiles(1, 2, TileExtents(2, 2, 8)):
        ...     print(tile)
        WorkTile(coord=(1, 0), number=1, split=0, k_tiles=range(0, 8))
        WorkTile(coord=(1, 1), number=3, split=0, k_tiles=range(0, 8))
        """
        cluster, rank = divmod(block, self.cluster_size)
        grid_clusters = blocks // self.cluster_size
        first, step, k_range = self.walk(cluster, grid_clusters, extents.k_tiles)
        split = self.tile_and_split(cluster, grid_clusters)[2]
        for index in range(first, extents.cluster_tiles, step):
            coord = self.tile_coord(index, rank, extents)
            yield WorkTile(coord, index * self.cluster_size + rank, split, range(*k_range))
