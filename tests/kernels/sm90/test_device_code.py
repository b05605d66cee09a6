"""The compiled kernels do what their plans say, step by step.

Every block's producer is followed, and threads of each other role of the first and the last block.
"""

import pytest

from cutedsl_gemm.kernels.plan.tma import EVICT_FIRST, EVICT_NORMAL
from cutedsl_gemm.kernels.sm90.rungs import pingpong, split
from tests.kernels.ptx.events import TmaLoad
from tests.kernels.sm90.device_code import Thread, difference
from tests.kernels.sm90.plans import BATCHED, GATHERED, SCATTERED, SPLIT, SWIGLU, THREADS, TMA, name
from tests.kernels.sm90.product import Product

pytestmark = pytest.mark.slow


def products(plan):
    """Several tiles a block, not as many of each, more k-tiles than stages, and ragged edges."""
    down, across = plan.exchanged(plan.cluster_tile)
    if plan.gathered or plan.scattered:
        for group in ((2, 1), (3, 0)):
            m = 2 * down * group[0]
            yield Product(plan, m, 2 * across - 9, 130, clusters=3, group=group)
        return
    k = plan.tile[2] * (plan.splits * (plan.stages + 2) + 1) - 8
    batch = 3 if plan.batched else 1
    yield Product(plan, 2 * down - 5, 4 * across - 9, k, clusters=3, batch=batch)
    yield Product(plan, 2 * down + 8, across - 1, plan.tile[2] * plan.splits - 3, batch=batch)


def lanes(plan):
    """Lanes of the first and of another warp of each warpgroup; all that arrive at other blocks."""
    yield from range(1, max(2, plan.cluster_size))
    first_consumer = plan.threads - 128 * plan.consumers
    yield from range(first_consumer + 1, first_consumer + plan.cluster_size)
    for warpgroup in range(plan.threads // 128):
        yield from (128 * warpgroup, 128 * warpgroup + 13)
        yield 128 * warpgroup + 32 * (1 + warpgroup % 3) + 21


@pytest.mark.parametrize(
    "plan", [*TMA, *BATCHED, *GATHERED, *SCATTERED, *THREADS, *SPLIT], ids=name
)
def test_the_machine_code_does_the_steps_of_the_pipeline(plan):
    for product in products(plan):
        (blocks, *_), size = product.blocks, plan.cluster_size
        sampled = {0, size - 1, blocks - 1}
        for block, thread in [
            *((block, 0) for block in range(blocks)),
            *((block, thread) for block in sampled for thread in lanes(plan)),
        ]:
            found = product.events(block, thread)
            assert not difference(Thread(product, block, thread), found), (block, thread)


@pytest.mark.parametrize(
    "plan",
    [pingpong(), pingpong(swapped=True), split(cluster=(2, 1)), pingpong(epilogue=SWIGLU)],
)
def test_l2_evicts_an_operand_first_that_it_cannot_keep(plan):
    (rows, columns), k = plan.cluster_tile, 32 * plan.tile[2] * plan.splits
    # Clusters of tiles that read each element of B: two, or three. The last C is large.
    for down, across, first in ((2, 100, True), (3, 100, False), (2, 1500, False)):
        product = Product(plan, *plan.exchanged((down * rows, across * columns)), k, clusters=9000)
        loads = [each for each in product.events(0, 0) if isinstance(each, TmaLoad)]
        hints = {each.descriptor: each.cache_hint for each in loads}
        assert hints == {"tma_a": EVICT_NORMAL, "tma_b": EVICT_FIRST if first else EVICT_NORMAL}


@pytest.mark.parametrize("plan", SPLIT, ids=name)
def test_the_reduction_waits_then_adds_the_partial_sums_of_its_rows(plan):
    for product in products(plan):
        blocks = product.blocks[1]
        for block in {0, 1, blocks // 2, blocks - 1}:
            for thread in (0, 37, plan.reduction.threads - 1):
                found = product.events(block, thread, kernel=1)
                assert not difference(Thread(product, block, thread, 1), found), (block, thread)


@pytest.mark.parametrize("plan", [*TMA, *THREADS, *SPLIT], ids=name)
def test_all_lanes_of_a_warp_shuffle_the_same_values(plan):
    """The machine runs a thread alone: shfl.sync gives it its own value."""
    product = Product(plan, *plan.c_tile, 64)
    for warp in range(0, plan.threads, 32):
        first, *others = (product.run(0, warp + lane).uniform for lane in range(32))
        assert first
        assert all(other == first for other in others)
