"""The compiled kernels do what their plans say, step by step, for each of several problems.

The kernels' PTX runs on the CPU, one thread at a time (kernels/compile/ptx). No GPU is needed.
"""

from collections import Counter
from dataclasses import replace

import pytest

from cutedsl_gemm.kernels.compile.ptx import events
from cutedsl_gemm.kernels.compile.ptx.machine import trace
from cutedsl_gemm.kernels.sm90.launches import launches
from cutedsl_gemm.kernels.sm90.rungs import cooperative, pingpong, single, split
from tests.kernels.sm90.device_code import Thread, difference, reduction


def deep(plan):
    return pytest.param(plan, marks=pytest.mark.deep)


PLANS = [
    pingpong(),
    pingpong((128, 96, 64), c_stages=2, cluster=(1, 2), swapped=True, a_major="MN"),
    pingpong((64, 32, 128), cluster=(2, 2)),
    pingpong((64, 16, 64), swapped=True, c_alignment=1),
    cooperative((192, 80, 64), a_major="MN", b_major="MN"),
    single((128, 64, 64)),
    split((64, 64, 64), splits=3, cluster=(2, 1)),
    *map(
        deep,
        (
            split((128, 24, 64), splits=4, swapped=True, c_alignment=1),
            pingpong((128, 192, 64)),
            pingpong((128, 144, 64), swapped=True),
            pingpong((64, 96, 64), cluster=(2, 4)),
            pingpong(c_alignment=1),
            cooperative(),
            cooperative((64, 128, 64)),
            cooperative((256, 128, 64), cluster=(2, 2), c_stages=2),
            cooperative((256, 96, 64), b_major="MN", swapped=True),
            single((64, 48, 64), c_alignment=1),
            split((128, 80, 64), splits=5, dtype="float16"),
        ),
    ),
]
MULTIPROCESSORS = 8


def name(plan):
    return f"{plan.kind} {plan.tile} {plan.cluster}"


def problems(plan):
    """Five tiles a block and a ragged edge; then few k-tiles."""
    down, across = plan.exchanged(plan.cluster_tile)
    yield 3 * down - 5, 4 * across - 9, plan.tile[2] * (plan.stages + 2) - 8
    yield 2 * down + 8, across - 1, plan.tile[2] - 3


def threads(plan):
    """Lanes of the first and of another warp of each role."""
    yield from (0, 1, 32)
    for consumer in range(plan.threads // 128 - (plan.schedule != "single")):
        first = 128 * (consumer + (plan.schedule != "single"))
        yield from {first, first + 13, first + 32 * (1 + consumer % 3) + 21}


@pytest.mark.parametrize("plan", PLANS, ids=name)
def test_the_machine_code_does_the_steps_of_the_pipeline(plan):
    for m, n, k in problems(plan):
        launch = launches(plan, m, n, k)[0]
        down, across = plan.exchanged(plan.cluster_tile)
        tiles = -(-m // down) * -(-n // across)
        blocks = plan.work.blocks(tiles, MULTIPROCESSORS)
        for block in {0, plan.cluster_size - 1, blocks - 1}:
            for thread in threads(plan):
                found = trace(launch, block=block, blocks=blocks, thread=thread)
                wanted = Thread(plan, m, n, k, block, blocks, thread)
                assert not difference(wanted, found), (m, n, k, block, thread)


SPLITS = [each for each in PLANS if getattr(each, "kind", "") == "split"]


@pytest.mark.parametrize("plan", SPLITS, ids=name)
def test_the_reduction_waits_then_adds_the_partial_sums_of_its_rows(plan):
    for m, n, k in problems(plan):
        launch = launches(plan, m, n, k)[1]
        tiles = plan.workspace(m, n) // plan.splits // (plan.tile[0] * plan.tile[1])
        blocks = tiles * (plan.c_tile[0] // plan.reduction_rows)
        for block in {0, 1, blocks // 2, blocks - 1}:
            for thread in (0, 37, plan.reduction.threads - 1):
                wait, *found = trace(launch, block=block, blocks=blocks, thread=thread)
                assert wait == events.GridDependencyWait()
                found = [
                    replace(event, values=()) if hasattr(event, "values") else event
                    for event in found
                ]
                assert Counter(found) == Counter(reduction(plan, m, n, block, thread))
