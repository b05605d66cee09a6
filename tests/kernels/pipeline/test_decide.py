"""Pipelines are right in every interleaving, and every fault of one is found."""

from dataclasses import replace

import pytest

from cutedsl_gemm.kernels.pipeline.actions import Counts
from cutedsl_gemm.kernels.pipeline.decide import violation, violations
from cutedsl_gemm.kernels.pipeline.order import Order
from cutedsl_gemm.kernels.sm90.rungs import cooperative, pingpong, single, split
from tests.kernels.pipeline.faults import faults
from tests.kernels.pipeline.loaded import BOTH, RESIDUAL, SCALED, TWICE

PLANS = [
    single(),
    pingpong(),
    pingpong((64, 16, 64)),
    pingpong((128, 192, 64), c_stages=2, cluster=(2, 1)),
    pingpong(cluster=(2, 2)),
    pingpong(c_alignment=1),
    cooperative(),
    cooperative((192, 144, 64), c_alignment=1),
    pytest.param(cooperative((128, 128, 64), cluster=(4, 2)), marks=pytest.mark.deep),
    split(),
    split(cluster=(2, 1)),
    single(epilogue=TWICE),
    pingpong(cluster=(2, 1), epilogue=RESIDUAL),
    cooperative((128, 128, 64), epilogue=TWICE),
    # A panel takes two buffers, and the next one is loaded into them when they have been stored.
    *(pingpong((64, 48, 64), c_stages=2, epilogue=each) for each in (TWICE, SCALED, BOTH)),
    replace(cooperative((128, 128, 64), cluster=(2, 1)), gathered=True),
    replace(pingpong((64, 128, 64), cluster=(1, 2)), scattered=True),
]
LOADED = replace(pingpong((64, 128, 64), epilogue=RESIDUAL), stages=2)
RELOADED = replace(pingpong((64, 48, 64), c_stages=2, epilogue=BOTH), stages=2)
# Steps that may be left out: setmaxnreg is the plan's budget of registers, an early launch of what
# comes next and a test of the next stage save time, and consumers touch global memory only after
# the producer has waited. A test of a stage that is not the tile's next one is not used.
UNNEEDED = ("no Registers", "no GridLaunch", "no Peek", "always Peek")


def name(plan):
    kind = " loaded" * bool(plan.loaded_panels) + " gathered" * plan.gathered
    kind += " scattered" * plan.scattered
    return f"{plan.kind} {plan.tile} {plan.cluster} {plan.c_alignment}{kind}"


@pytest.mark.parametrize("plan", PLANS, ids=name)
def test_the_pipelines_of_plans_are_right(plan):
    assert violation(plan.pipeline) is None


@pytest.mark.parametrize("plan", [pingpong(), cooperative(), split(), LOADED, RELOADED], ids=name)
def test_every_fault_is_found(plan):
    missed = {
        what
        for what, pipeline in faults(plan.pipeline)
        if not violation(pipeline) and not any(each in what for each in UNNEEDED)
    }
    assert {what for what in missed if "consumer" not in what} == set()
    assert {what.split("(")[0] for what in missed} <= {
        "consumer 0: no GridWait",
        "consumer 1: no GridWait",
        "consumer 1: always Sync",  # its first tile is the block's second
    }


def test_rows_that_are_not_sent_or_not_awaited_are_found():
    pipeline = replace(pingpong((64, 64, 64)), gathered=True, stages=2).pipeline
    wrong = {what.split("(")[0]: each for what, each in faults(pipeline) if "Rows" in what}
    assert {what: str(violation(each)).split(",")[0] for what, each in wrong.items()} == {
        "producer: no WaitForRows": "the rows of A is read before it is written",
        "senders: no SendRows": "deadlock: no warp can proceed",
    }


def test_parts_that_are_not_awaited_and_tiles_that_are_told_before_they_are_stored_are_found():
    pipeline = replace(pingpong((64, 64, 64)), scattered=True, stages=2).pipeline
    steps = "Rows", "TellStored", "written=True"
    found = {
        what.partition(": ")[2].split("(")[0]: str(violation(each)).split(",")[0]
        for what, each in faults(pipeline)
        if any(step in what for step in steps)
    }
    assert found == {
        "no WaitForRows": "the rows of C is read before it is written",
        "no AddRows": "the rows of C is written",
        "no SendRows": "deadlock: no warp can proceed",
        "no StoreWait": "the stored tile is read before it is written",
        "one more pending in StoreWait": "the stored tile is read before it is written",
        "no TellStored": "the stored tile is written",
    }


def test_a_k_tile_that_one_of_two_consumers_leaves_out_is_found():
    """The other one reads the stage, so that no buffer is left unread."""
    whole = replace(split(), stages=2).pipeline
    left_out = next(each for what, each in faults(whole) if what.startswith("consumer 0: no Mult"))
    for k_tiles in (2, 3, 5):
        found = next(violations(Order(left_out, Counts(1, k_tiles))))
        assert found.rule.startswith("the accumulator of tile 0 sums over k-tiles [1")
