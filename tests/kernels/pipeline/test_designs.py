"""Pipelines that are wrong by design, not by one fault: each rule that they break is found."""

from dataclasses import replace

import pytest

from cutedsl_gemm.kernels.pipeline.actions import Counts
from cutedsl_gemm.kernels.pipeline.decide import problems, violation, violations
from cutedsl_gemm.kernels.pipeline.order import Order
from cutedsl_gemm.kernels.pipeline.steps import (
    Agent,
    Arrive,
    InitBarriers,
    Loop,
    Mbarrier,
    NamedBarrier,
    Pipeline,
    Sync,
    SyncArrive,
    Wait,
)
from cutedsl_gemm.kernels.sm90.rungs import pingpong

PINGPONG = replace(pingpong((128, 64, 64)), stages=3).pipeline


def with_tiles(pipeline, change):
    """A pingpong pipeline with other steps for each tile: change(consumer, steps)."""
    producer, *consumers = pipeline.agents
    agents = [producer]
    for consumer, agent in enumerate(consumers):
        *prologue, tiles, last_wait = agent.program
        tiles = replace(tiles, body=tuple(change(consumer, tiles.body)))
        agents.append(replace(agent, program=(*prologue, tiles, last_wait)))
    return replace(pipeline, agents=tuple(agents))


def of_turn(step):
    """Whether a step is one of a turn's barrier."""
    return isinstance(step, Sync | SyncArrive) and step.barrier.startswith("turn")


def test_without_turns_a_wait_may_pass_by_the_parity_of_an_earlier_phase():
    """A consumer waits for its next tile before the other's has come, into the same stages."""
    no_turns = with_tiles(PINGPONG, lambda _, steps: (each for each in steps if not of_turn(each)))
    found = violation(no_turns)
    assert "may pass two phases early" in found.rule
    assert isinstance(found.interleaving[-1].label.step, Wait)


def test_a_turn_that_comes_early_is_found_though_only_long_tiles_show_it():
    """Consumer 1 gives its turn away when three k-tiles have come: one ring behind is missing."""
    three = Loop("first k_tiles", (Wait("full"),), step=3)

    def early(consumer, steps):
        if consumer == 0:
            return steps
        turn, *others = steps
        (away,) = (each for each in others if of_turn(each))
        return turn, three, away, *(each for each in others if each is not away)

    found = violation(with_tiles(PINGPONG, early))
    assert "may pass two phases early" in found.rule
    assert found.counts.k_tiles == PINGPONG.stages + 3
    assert found.counts.tiles == 3


def test_a_phase_that_nobody_waits_for_still_needs_its_arrivals():
    """Phase 0 gets none: the hardware counts those of phase 1 for it."""
    prologue = InitBarriers(leader=True), Sync("block")
    arrive = *prologue[1:], Loop("further k_tiles", (Arrive("ready", ((0,),)),))
    wait = *prologue, Loop("further k_tiles", (Wait("ready"),))
    agents = (Agent("first", 4, arrive), Agent("second", 4, wait))
    both = NamedBarrier("block", 0, 256)
    pipeline = Pipeline(1, 1, False, agents, (Mbarrier("ready", 4),), (both,))
    found = next(violations(Order(pipeline, Counts(1, 2))))
    assert found.rule == "phase 0 of ready[0], block 0 has 0 arrivals, not 4"


def test_a_consumer_of_every_second_tile_has_two_tiles_of_every_length():
    for tiles, k_tiles in {(3, k) for k in range(1, PINGPONG.stages + 3)}:
        assert (tiles, k_tiles) in problems(PINGPONG)


def test_each_barrier_has_a_name_and_a_number_of_its_own():
    """The rules tell barriers apart by name, the hardware by number: it has sixteen (PTX, bar)."""
    first, *others = PINGPONG.named
    for number in (others[0].number, 16):
        with pytest.raises(ValueError, match=r"each must have one of its own, 0 to 15"):
            replace(PINGPONG, named=(replace(first, number=number), *others))
    with pytest.raises(ValueError, match="two barriers are named full"):
        replace(PINGPONG, mbarriers=(*PINGPONG.mbarriers, PINGPONG.mbarriers[0]))
    with pytest.raises(ValueError, match="no named barrier of the pipeline is turn 0"):
        replace(PINGPONG, named=tuple(each for each in PINGPONG.named if each.name != "turn 0"))


@pytest.mark.parametrize(
    ("step", "kind"), [(Wait("turn 0"), "mbarrier"), (Sync("full"), "named barrier")]
)
def test_a_step_of_one_kind_of_barrier_takes_none_of_the_other_kind(step, kind):
    agents = (replace(PINGPONG.agents[0], program=(step,)), *PINGPONG.agents[1:])
    with pytest.raises(ValueError, match=f"no {kind} of the pipeline is {step.barrier}"):
        replace(PINGPONG, agents=agents)
