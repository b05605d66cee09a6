"""Every k-tile of every tile has one block, whatever the blocks are."""

from collections import Counter
from itertools import product

import pytest

from cutedsl_gemm.kernels.plan.raster import ChunkOrder, Raster
from cutedsl_gemm.kernels.plan.tile_scheduler import TileExtents, TileScheduler

SCHEDULERS = [
    *(
        TileScheduler(Raster(group), cluster)
        for group in (1, 4)
        for cluster in ((1, 1), (2, 1), (2, 4))
    ),
    *(TileScheduler(Raster(1), cluster, 3, persistent=False) for cluster in ((1, 1), (1, 2))),
    TileScheduler(Raster(1), persistent=False),
]


@pytest.mark.parametrize("scheduler", SCHEDULERS, ids=str)
def test_every_k_tile_of_every_tile_has_one_block(scheduler):
    (down, across), k_tiles = scheduler.cluster, 5
    for clusters_m, clusters_n, sms in product((1, 5), (1, 3), (8, 17, 132)):
        extents = TileExtents(clusters_m, clusters_n, k_tiles)
        blocks = scheduler.blocks(clusters_m * clusters_n, sms)
        visits = Counter(
            (*tile.coord, k_tile)
            for block in range(blocks)
            for tile in scheduler.work_tiles(block, blocks, extents)
            for k_tile in tile.k_tiles
        )
        every = product(range(clusters_m * down), range(clusters_n * across), range(k_tiles))
        assert visits == Counter(every)


@pytest.mark.parametrize("of", ["rows", "columns"])
@pytest.mark.parametrize("cluster", [(1, 1), (2, 2)])
def test_tiles_of_gathered_rows_are_each_visited_once_in_the_order_in_which_chunks_come(
    cluster, of
):
    """This GPU's own chunk is first, and the others follow cyclically."""
    (down, _), scheduler = cluster, TileScheduler(Raster(4, of), cluster)
    for gpus, height, clusters_n in product((1, 2, 5), (1, 4, 6), (1, 3)):
        for first in range(gpus):
            here = TileExtents(gpus * height, clusters_n, 1)
            there = here._replace(chunk_order=ChunkOrder(first, height))
            all_here, visited = (
                [tile.coord for tile in scheduler.work_tiles(0, scheduler.cluster_size, extents)]
                for extents in (here, there)
            )
            chunks = [m // (height * down) for m, _ in visited]
            wanted = [(first + turn) % gpus for turn in range(gpus)]
            assert chunks == sorted(chunks, key=wanted.index)
            assert sorted(visited) == sorted(all_here)


@pytest.mark.parametrize("cluster", [(1, 1), (2, 1), (2, 2), (2, 4)])
def test_a_persistent_grid_fills_the_multiprocessors_and_has_no_block_too_many(cluster):
    """All clusters run at once, in as many waves as they must, and none idles if one less does."""
    scheduler = TileScheduler(Raster(1), cluster)
    for tiles, sms in product((1, 7, 66, 132, 133, 1000), (8, 120, 132)):
        blocks, at_once = scheduler.blocks(tiles, sms), sms // scheduler.cluster_size
        clusters, waves = blocks // scheduler.cluster_size, -(-tiles // at_once)
        assert blocks % scheduler.cluster_size == 0
        assert clusters <= at_once
        assert -(-tiles // clusters) == waves
        assert clusters == 1 or -(-tiles // (clusters - 1)) > waves
