"""The listing shows every step of every agent, and what differs between them."""

import re

import pytest

from cutedsl_gemm.kernels.pipeline.listing import text
from cutedsl_gemm.kernels.pipeline.steps import Agent, Pipeline, Step, StoreWait, WritePanel, walk
from cutedsl_gemm.kernels.sm90.rungs import cooperative, pingpong, split
from tests.kernels.pipeline.loaded import RESIDUAL


def section(listing, agent):
    """The lines of an agent."""
    return re.split(rf"\n\n{agent} ", listing)[1].split("\n\n")[0]


def test_every_kind_of_step_has_a_text():
    for step in Step.__subclasses__():
        fields = dict.fromkeys(step.__dataclass_fields__, 0)
        assert text(step(**fields), "k")


@pytest.mark.parametrize("plan", [pingpong((128, 64, 64)), cooperative((64, 64, 64)), split()])
def test_the_steps_of_an_agent_are_listed_in_their_order(plan):
    """Each as its text, whatever its k-tile; these plans have one panel."""
    for agent in plan.pipeline.agents[:2]:
        lines = [line.strip() for line in section(str(plan.pipeline), agent.name).splitlines()[1:]]
        listed = [re.sub(r"\[[^]]*\]", "[]", line.split("   ")[0]) for line in lines]
        taken = [text(step, "") for step in walk(agent.program)]
        assert [line for line in listed if not line.startswith("for ")] == taken


def test_panels_that_repeat_are_listed_once_with_their_numbers():
    plan = pingpong((128, 112, 64))  # seven panels, four buffers
    listed = section(str(plan.pipeline), "consumer 0")
    numbers = [(p, p % plan.c_stages, plan.pending_stores(p)) for p in range(plan.panels)]
    assert f"for p, b, n = {', '.join(map(str, numbers))}" in listed
    assert listed.count("stmatrix panel p → buffer b") == 1


def test_loads_of_panels_are_listed_once_with_their_buffers():
    listed = section(str(pingpong(epilogue=RESIDUAL).pipeline), "consumer 0")
    assert listed.count("for p, b = (0, 0), (1, 1)") == 2  # loads, then stores
    assert listed.count("mbarrier arrive loaded 0[p], expect 16,384 bytes") == 1
    assert "TMA load panel p of c → buffer b, 16,384 bytes on loaded 0[p]" in listed
    assert listed.count("mbarrier wait loaded 0[p]") == listed.count("ldmatrix panel p") == 1


def test_panels_are_listed_one_by_one_if_two_steps_of_a_panel_have_other_numbers():
    waits = StoreWait(1), StoreWait(0)
    program = *waits, WritePanel(0, 0), *reversed(waits), WritePanel(1, 0)
    listed = str(Pipeline(2, 1, False, (Agent("storer", 1, program),)))
    pending = [line.split()[-1] for line in listed.splitlines() if "wait_group" in line]
    assert pending == ["1", "0", "0", "1"]


def test_a_consumer_that_does_the_same_is_listed_by_what_differs():
    assert str(split().pipeline).count("consumer 1 (4 warps): as consumer 0\n") == 1
    lines = section(str(pingpong().pipeline), "consumer 1").splitlines()
    assert lines[0].endswith("as consumer 0, except")
    assert lines[2].split("  ")[2] == "bar.sync turn 1"


def test_a_cluster_shows_who_loads_for_whom():
    listed = str(pingpong((128, 112, 64), cluster=(2, 2)).pipeline)
    assert "3       slice 1 → blocks 1, 3   slice 1 → blocks 2, 3   of blocks 1, 2, 3" in listed
