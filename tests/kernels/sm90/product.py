"""A product by an sm90 plan, run on the CPU: its launches, and the work of each block.

The kernels' PTX runs one thread at a time (tests/kernels/ptx). No GPU is needed.
"""

from __future__ import annotations

from math import prod

from cutedsl_gemm.kernels.plan.raster import ChunkOrder
from cutedsl_gemm.kernels.plan.tile_scheduler import TileExtents, WorkTile
from tests.kernels.ptx import events, machine
from tests.kernels.sm90.launches import Sm90, launches


class Product:
    """An (m, n, k) product by a plan: one kernel, or two if K is split.

    A persistent kernel has `clusters` clusters, or one for each tile if they are fewer. The leading
    stride of the caller's C is `c_stride` elements, n by default. If the plan gathers A or scatters
    C, `group` are how many GPUs there are, and this one's number. A batched plan computes a `batch`
    of such products.
    """

    def __init__(
        self,
        plan: Sm90,
        m: int,
        n: int,
        k: int,
        *,
        clusters: int = 1,
        c_stride: int | None = None,
        group: tuple[int, int] = (1, 0),
        batch: int = 1,
    ) -> None:
        self.plan, self.batch = plan, batch
        self.launches = launches(plan, m, n, k, c_stride=c_stride, group=group, batch=batch)
        self.gpus, self.number = group
        self.own_rows = m // self.gpus
        self.c_shape, self.c_stride = (m, n), n if c_stride is None else c_stride
        self.extents, self.k = plan.exchanged((m, n)), k  # of the plan's C
        self.clusters_mn = tuple(map(ceil_div, self.extents, plan.cluster_tile))
        self.k_tiles = ceil_div(k, plan.tile[2])
        tiles = prod(self.clusters_mn) * batch
        clusters = min(clusters, tiles) if plan.tile_scheduler.persistent else tiles * plan.splits
        self.tiles = tiles * plan.cluster_size
        self.blocks = [clusters * plan.cluster_size]  # of each kernel
        if plan.splits > 1:
            self.blocks.append(self.tiles * self.row_groups)

    @property
    def row_groups(self) -> int:
        """Blocks of the reduction that share a tile of C: each has `plan.reduction_rows` rows."""
        return self.plan.c_tile[0] // self.plan.reduction_rows

    def work_tiles(self, block: int) -> list[WorkTile]:
        """The tiles of a block of the first kernel, each with the k-tiles that it multiplies."""
        return [*self.plan.tile_scheduler.work_tiles(block, self.blocks[0], self.tile_extents)]

    @property
    def tile_extents(self) -> TileExtents:
        """C in tiles of clusters, and K in k-tiles."""
        (down, across), of_k = self.clusters_mn, (self.k_tiles, self.chunk_order)
        return TileExtents(down * self.batch, across, *of_k, down)

    def in_matrix(self, tile: WorkTile) -> tuple[int, tuple[int, int]]:
        """The matrix of a batch to which a tile belongs, or 0, and its coordinate in the matrix."""
        m, n = tile.coord
        matrix, m = self.plan.tile_scheduler.matrix_of(m, self.tile_extents)
        return matrix, (m, n)

    @property
    def chunk_order(self) -> ChunkOrder | None:
        """The order of the GPUs' tile rows: this one's are the first that it loads, or the last."""
        if self.gpus == 1:
            return None
        first = self.number + 1 if self.plan.scattered else self.number
        return ChunkOrder(first, self.own_rows // self.plan.cluster_tile[0])

    def reduced(self, block: int) -> tuple[int, int, tuple[int, int]]:
        """A block of the reduction: its tile's number, its group of rows, and its origin in C."""
        plan = self.plan
        number, group = divmod(block, self.row_groups)
        extents = TileExtents(*self.clusters_mn, None)
        tile = plan.tile_scheduler.tile_coord(*divmod(number, plan.cluster_size), extents)
        (m, n), (bm, bn) = plan.exchanged(tile), plan.c_tile
        return number, group, (m * bm + group * plan.reduction_rows, n * bn)

    def run(self, block: int, thread: int, kernel: int = 0) -> machine.Run:
        """A thread at its end."""
        return machine.run(self.launches[kernel], block, self.blocks[kernel], thread)

    def events(self, block: int, thread: int, kernel: int = 0) -> list[events.Event]:
        """What a thread does, in order."""
        return self.run(block, thread, kernel).events


def ceil_div(a: int, b: int) -> int:
    """a / b, rounded up."""
    return -(-a // b)
