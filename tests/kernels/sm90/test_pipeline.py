"""The smem pipeline of a cluster: producers and consumers, in any order, by the plan's counts."""

from collections import Counter
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutedsl_gemm.kernels.sm90.rungs import cooperative, pingpong, split

CLUSTERS = (2, 1), (1, 2), (2, 2), (4, 2)
PLANS = [
    make((128, 128, 64), cluster=cluster)
    for make, cluster in product((pingpong, cooperative, split), CLUSTERS)
]


class Pipeline:
    """Blocks of a cluster that load and multiply `tiles` tiles of `k_tiles` each.

    An agent is a generator. It yields what it waits for, and goes on when that holds.
    """

    def __init__(self, plan, tiles, k_tiles):
        self.plan, self.tiles, self.k_tiles = plan, tiles, k_tiles
        self.loads = Counter()  # slices that have arrived, by (block, k-tile)
        self.reads = Counter()  # consumers that have read, by (block, k-tile)
        self.arrivals = Counter()  # on empty mbarriers, by (block, stage)
        self.awaited = Counter()  # the arrivals for which a producer has waited
        self.ended = set()  # blocks whose producers have issued their last loads

    def agents(self):
        for rank in range(self.plan.cluster_size):
            yield self.produce(rank)
            for consumer in range(self.plan.consumers):
                yield self.consume(rank, consumer)

    def produce(self, rank):
        plan, reached = self.plan, self.reached(rank)
        for k_tile in range(self.tiles * self.k_tiles):
            key = rank, k_tile % plan.stages
            if k_tile >= plan.stages:  # a new mbarrier lets its first wait pass
                self.awaited[key] += plan.stage_readers
                yield lambda key=key: self.arrivals[key] >= self.awaited[key]
            for other in reached:
                last = other, k_tile - plan.stages  # the contents that the load overwrites
                assert k_tile < plan.stages or self.reads[last] == plan.consumers_per_tile
                self.loads[other, k_tile] += 1
        self.ended.add(rank)

    def reached(self, rank):
        """The blocks that get a slice from this one, with those whose stages it fills."""
        return [each for each in range(self.plan.cluster_size) if rank in self.plan.loaders(each)]

    def consume(self, rank, consumer):
        plan, loaders = self.plan, self.plan.loaders(rank)
        reloaded = plan.reloaded_k_tiles(self.tiles * self.k_tiles)
        turns = plan.consumers // plan.consumers_per_tile
        for tile in range(consumer if turns > 1 else 0, self.tiles, turns):
            for k_tile in range(tile * self.k_tiles, (tile + 1) * self.k_tiles):
                yield lambda k_tile=k_tile: self.loads[rank, k_tile] == len(loaders)
                self.reads[rank, k_tile] += 1
                if k_tile < reloaded:  # as release_stage has it
                    for other in loaders:
                        assert other not in self.ended
                        self.arrivals[other, k_tile % plan.stages] += 4  # warps

    def run(self, random):
        """Agents go on in random order until all are done; AssertionError if none can."""
        waiting = {agent: lambda: True for agent in self.agents()}
        while waiting:
            able = [agent for agent, holds in waiting.items() if holds()]
            assert able, "deadlock"
            agent = random.choice(able)
            waiting[agent] = next(agent, None)
            if waiting[agent] is None:
                del waiting[agent]


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: f"{plan.kind} {plan.cluster}")
@given(st.integers(1, 5), st.integers(0, 7), st.integers(2, 6), st.randoms(use_true_random=False))
def test_every_arrival_on_an_empty_mbarrier_is_awaited(plan, tiles, k_tiles, stages, random):
    """No block arrives on one that may have ended, and no producer waits in vain."""
    tiles = 1 if plan.kind == "split" else tiles
    pipeline = Pipeline(replace(plan, stages=stages), tiles, k_tiles)
    pipeline.run(random)
    assert pipeline.arrivals == pipeline.awaited
