"""Every k-tile of every tile has one block, whatever the blocks are."""

from collections import Counter
from itertools import product

import pytest

from cutedsl_gemm.kernels.plan.raster import Arrival, Raster
from cutedsl_gemm.kernels.plan.work import Work

WORKS = [
    *(Work(Raster(group), cluster) for group in (1, 4) for cluster in ((1, 1), (2, 1), (2, 4))),
    *(Work(Raster(1), cluster, 3, persistent=False) for cluster in ((1, 1), (1, 2))),
    Work(Raster(1), persistent=False),
]


@pytest.mark.parametrize("work", WORKS, ids=str)
def test_every_k_tile_of_every_tile_has_one_block(work):
    (down, across), k_tiles = work.cluster, 5
    for clusters_m, clusters_n, sms in product((1, 5), (1, 3), (8, 17, 132)):
        blocks = work.blocks(clusters_m * clusters_n, sms)
        visits = Counter(
            (*segment.tile, k_tile)
            for block in range(blocks)
            for segment in work.segments(block, blocks, clusters_m, clusters_n, k_tiles)
            for k_tile in segment.k_tiles
        )
        every = product(range(clusters_m * down), range(clusters_n * across), range(k_tiles))
        assert visits == Counter(every)


@pytest.mark.parametrize("of", ["rows", "columns"])
@pytest.mark.parametrize("cluster", [(1, 1), (2, 2)])
def test_tiles_of_gathered_rows_are_each_visited_once_in_the_order_in_which_chunks_come(
    cluster, of
):
    """This GPU's own chunk is first, and the others follow cyclically."""
    (down, _), work = cluster, Work(Raster(4, of), cluster)
    for gpus, height, clusters_n in product((1, 2, 5), (1, 4, 6), (1, 3)):
        for first in range(gpus):
            arrival = Arrival(first, height)
            grid = 0, work.cluster_size, gpus * height, clusters_n, 1
            visited = [segment.tile for segment in work.segments(*grid, arrival)]
            chunks = [m // (height * down) for m, _ in visited]
            wanted = [(first + turn) % gpus for turn in range(gpus)]
            assert chunks == sorted(chunks, key=wanted.index)
            assert sorted(visited) == sorted(segment.tile for segment in work.segments(*grid))


@pytest.mark.parametrize("cluster", [(1, 1), (2, 1), (2, 2), (2, 4)])
def test_a_persistent_grid_fills_the_multiprocessors_and_has_no_block_too_many(cluster):
    """All clusters run at once, in as many waves as they must, and none idles if one less does."""
    work = Work(Raster(1), cluster)
    for tiles, sms in product((1, 7, 66, 132, 133, 1000), (8, 120, 132)):
        blocks, at_once = work.blocks(tiles, sms), sms // work.cluster_size
        clusters, waves = blocks // work.cluster_size, -(-tiles // at_once)
        assert blocks % work.cluster_size == 0
        assert clusters <= at_once
        assert -(-tiles // clusters) == waves
        assert clusters == 1 or -(-tiles // (clusters - 1)) > waves
