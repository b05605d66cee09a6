"""The timeline is a run of the pipeline, and shows what the schedules differ in."""

import re
from itertools import pairwise

import pytest

from cutedsl_gemm.kernels.pipeline.actions import Counts
from cutedsl_gemm.kernels.pipeline.order import Order
from cutedsl_gemm.kernels.pipeline.schedule import times
from cutedsl_gemm.kernels.pipeline.timeline import rows_of, timeline
from cutedsl_gemm.kernels.sm90 import cooperative as cooperative_device
from cutedsl_gemm.kernels.sm90 import pingpong as pingpong_device
from cutedsl_gemm.kernels.sm90.rungs import cooperative, pingpong, single, split
from tests.kernels.pipeline.loaded import RESIDUAL

COUNTS = Counts(4, 8)


@pytest.mark.parametrize(
    "plan",
    [pingpong(cluster=(2, 1)), cooperative(), single(), split(), pingpong(epilogue=RESIDUAL)],
)
def test_every_moment_follows_those_before_it(plan):
    order = Order(plan.pipeline, Counts(3 if plan.pipeline.persistent else 1, 8))
    come = times(order)
    assert len(come) == len(order.labels)
    place = {moment: number for number, moment in enumerate(come)}
    for moment, before in enumerate(order.before):
        assert all(come[each] <= come[moment] and place[each] < place[moment] for each in before)


def gaps(spans):
    return [after.begin - before.end for before, after in pairwise(spans)]


def test_the_tensor_core_waits_for_no_epilogue_of_pingpong():
    busy = rows_of(pingpong().pipeline, COUNTS)["tensor core"]
    assert set(gaps(sorted(busy))) == {0}


def test_an_operand_of_pingpong_comes_while_the_other_consumer_multiplies():
    """Its loads are issued before the products of their tile."""
    rows = rows_of(pingpong(epilogue=RESIDUAL).pipeline, COUNTS)
    assert set(gaps(sorted(rows["tensor core"]))) == {0}
    for consumer in (0, 1):
        loads = {span.tile: span for span in merged(rows[f"consumer {consumer}, loads"])}
        for span in rows[f"consumer {consumer}"]:
            if span.activity == "multiply" and span.tile > 1:
                assert loads[span.tile].end <= span.begin


def test_the_tensor_core_waits_for_every_epilogue_of_cooperative():
    busy = sorted(rows_of(cooperative().pipeline, COUNTS)["tensor core"])
    idle = [span.tile for span, gap in zip(busy[1:], gaps(busy), strict=True) if gap]
    assert idle == [1, 2, 3]


@pytest.mark.parametrize(
    ("plan", "device"), [(pingpong(), pingpong_device), (cooperative(), cooperative_device)]
)
def test_the_drawn_timeline_of_a_kernel_is_that_of_its_pipeline(plan, device):
    """Each agent's row of the docstring: the same activities and tiles, in the same order."""
    rows = rows_of(plan.pipeline, COUNTS)
    for agent in plan.pipeline.agents:
        drawn = re.search(rf"{agent.name} +│(.*)", device.__doc__)[1]
        tiles = re.findall(r"(load|multiply|store)(?: t(\d))?", drawn)
        for (activity, tile), span in zip(tiles, merged(rows[agent.name]), strict=False):
            assert activity == span.activity
            assert not tile or int(tile) == span.tile


def merged(spans):
    """The spans of different activities and tiles."""
    return [
        s for s, before in zip(spans, [None, *spans], strict=False) if s[2:] != (before or ())[2:]
    ]


def test_a_timeline_shows_every_agent():
    for plan in (pingpong(), cooperative((192, 144, 64)), split()):
        lines = str(timeline(plan.pipeline)).splitlines()
        for agent in plan.pipeline.agents:
            assert any(line.startswith(agent.name) and "│" in line for line in lines)


def test_a_drawing_has_a_bar_for_every_span_of_the_text():
    for plan in (pingpong(), single(), split()):
        drawn = timeline(plan.pipeline)
        svg = drawn.svg()
        bars = [float(end) for end in re.findall(r'<rect x="[\d.]+" y="\d+" width="([\d.]+)"', svg)]
        assert len(bars) == sum(len(spans) for _, spans in drawn.rows)
        assert min(bars) > 0
        for name, _ in drawn.rows:
            assert f">{name}</text>" in svg
