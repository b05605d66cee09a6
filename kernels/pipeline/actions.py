"""A pipeline for a problem: the actions of every warp, in its order, with all indices known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cutedsl_gemm.kernels.pipeline.steps import Agent, Loop, Pipeline, Program, Step


class Counts(NamedTuple):
    """How much each block of a cluster does: its tiles, and the k-tiles of each."""

    tiles: int
    k_tiles: int

    def __str__(self) -> str:
        tiles = f"{self.tiles} tile{'s' * (self.tiles != 1)}"
        return f"{tiles} of {self.k_tiles} k-tile{'s' * (self.k_tiles != 1)}"


class Warps(NamedTuple):
    """Warps of a block that take the same steps: the first warp of an agent, or its others."""

    block: int  # the rank in the cluster
    agent: str
    leader: bool
    size: int  # warps

    def __str__(self) -> str:
        return f"block {self.block}, {self.agent}, {'first warp' if self.leader else 'other warps'}"


class Action(NamedTuple):
    """A step that warps take once, at the block's `tile`-th tile and `k_tile`-th k-tile.

    `tiles_done` counts the tiles that these warps have taken before.
    """

    step: Step
    warps: Warps
    tile: int
    k_tile: int
    tiles_done: int

    def phase(self, stages: int) -> tuple[int, int]:
        """The mbarrier of the step in its ring, and the number of its phase."""
        panel: int | None = getattr(self.step, "panel", None)
        if panel is not None:
            return panel, self.tiles_done
        return self.k_tile % stages, self.k_tile // stages


def actions(pipeline: Pipeline, counts: Counts) -> dict[Warps, list[Action]]:
    """What the warps of a cluster do, one list for each group of warps."""
    unrolled = [
        (agent, [*_unrolled(agent.program, pipeline, counts, 0, 0, 0)]) for agent in pipeline.agents
    ]
    return {
        warps: [
            Action(step, warps, tile, k_tile, done)
            for step, tile, k_tile, done in taken
            if warps.leader or not step.leader
        ]
        for block in range(pipeline.blocks)
        for agent, taken in unrolled
        for warps in _groups(agent, block)
    }


def _groups(agent: Agent, block: int) -> Iterator[Warps]:
    """The first warp of an agent, and the others, which skip the leader's steps."""
    yield Warps(block, agent.name, True, 1)
    if agent.warps > 1:
        yield Warps(block, agent.name, False, agent.warps - 1)


def _unrolled(
    program: Program, pipeline: Pipeline, counts: Counts, tile: int, k_tile: int, done: int
) -> Iterator[tuple[Step, int, int, int]]:
    """(step, tile, k-tile, tiles done) of a program; the loops around it are at these."""
    for each in program:
        if isinstance(each, Loop):
            for number, (t, k) in enumerate(_iterations(each, counts, tile)):
                inside = number if each.over == "tiles" else done
                yield from _unrolled(each.body, pipeline, counts, t, k, inside)
        elif holds(each, pipeline, counts, tile, k_tile - each.lag):
            yield each, tile, k_tile - each.lag, done


def _iterations(loop: Loop, counts: Counts, tile: int) -> Iterator[tuple[int, int]]:
    """(tile, k-tile) of each iteration of a loop."""
    begin, end = tile * counts.k_tiles, (tile + 1) * counts.k_tiles
    if loop.over == "tiles":
        tiles = range(loop.first, counts.tiles if counts.k_tiles else 0, loop.step)
        yield from ((each, each * counts.k_tiles) for each in tiles)
        return
    k_tiles = {
        "k_tiles": range(begin, end),
        "further k_tiles": range(begin + 1, end),
        "first k_tiles": range(begin, min(end, begin + loop.step)),
        "last k_tile": range(max(begin, end - 1), end),
    }
    yield from ((tile, each) for each in k_tiles[loop.over])


def holds(step: Step, pipeline: Pipeline, counts: Counts, tile: int, k_tile: int) -> bool:
    """Whether a step is taken at this tile and k-tile."""
    if step.when == "always":
        return True
    last = counts.tiles * counts.k_tiles
    return {
        "later tiles": tile > 0,
        "not the last tile": tile + 1 < counts.tiles,
        "reloaded": k_tile < last - pipeline.stages,
        "exists": k_tile < last,
        "in the tile": k_tile < (tile + 1) * counts.k_tiles,
    }[step.when]
