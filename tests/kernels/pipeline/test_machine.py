"""Whether a pipeline is right, held against a machine that runs it in other orders of its steps."""

import re
from dataclasses import replace
from functools import cache
from random import Random

import pytest

from cutedsl_gemm.kernels.pipeline.actions import Counts
from cutedsl_gemm.kernels.pipeline.decide import problems, violation, violations
from cutedsl_gemm.kernels.pipeline.order import Order
from cutedsl_gemm.kernels.sm90.rungs import cooperative, pingpong, single, split
from tests.kernels.pipeline.faults import faults
from tests.kernels.pipeline.loaded import RESIDUAL
from tests.kernels.pipeline.machine import Machine, Wrong, explored, run

PLANS = {
    "single": single(),
    "one consumer": cooperative((64, 64, 64)),
    "pingpong": pingpong((128, 64, 64)),
    "panels": cooperative((64, 192, 64), c_stages=2),
    "stored by threads": cooperative((64, 64, 64), c_alignment=1),
    "split": split(),
    "cluster": cooperative((64, 64, 64), cluster=(2, 1)),
    "loaded": cooperative((64, 64, 64), epilogue=RESIDUAL),
    "gathered": replace(cooperative((64, 64, 64)), gathered=True),
    "panels loaded": pingpong((64, 128, 64), epilogue=RESIDUAL),
}
QUICK = "single", "one consumer"
PLANS_BY_DEPTH = [
    name if name in QUICK else pytest.param(name, marks=pytest.mark.deep) for name in PLANS
]
COUNTS = Counts(1, 1), Counts(1, 3), Counts(2, 2), Counts(4, 1), Counts(4, 2)
LATE = "load", "product", "store", "front", None
PAIRS = 40  # of faults
RUNS, STATES = 10, 250  # interleavings at random; states of all interleavings, at most
# Rules of the order that concern what barriers count. The machine may count otherwise and yet do
# nothing wrong: an arrival that is early or late by one phase, where the phases in between get as
# many; one that is left over when nobody waits any more.
COUNTING = re.compile("arrivals, not|bytes, and|threads, not|may count for the one before")
# Faults that leave something counted when nobody waits any more, and do nothing else: an mbarrier
# expects bytes of a load that the block does not have; a turn is given to a tile that it does not
# have.
HARMLESS = "always Expect", "always SyncArrive"


@cache
def small(name, stages):
    """The pipeline of a plan with few stages."""
    return replace(PLANS[name], stages=stages).pipeline


def is_wrong(pipeline, counts, runs=RUNS):
    """Whether the machine does what it must not do in some order of its moves.

    None if it has not, and not every order has been tried.
    """
    machine, random = Machine(pipeline, counts), Random(1)
    try:
        for number in range(runs):
            run(machine, random, changes=number % 3, late=LATE[number % len(LATE)])
        tried = explored(machine, STATES)
    except Wrong:
        return True
    return None if tried is None else False


@pytest.mark.parametrize("name", PLANS_BY_DEPTH)
def test_a_fault_is_found_if_and_only_if_the_machine_does_wrong(name):
    for what, pipeline in faults(small(name, 2)):
        verdicts = []
        for counts in COUNTS:
            if counts.tiles > 1 and not pipeline.persistent:
                continue
            found, wrong = first(pipeline, counts), is_wrong(pipeline, counts)
            assert found or not wrong, (what, counts)
            counting = found and COUNTING.search(found.rule)
            assert wrong is not False or not found or counting, (what, counts, found.rule)
            verdicts.append((bool(found), wrong))
        if any(found for found, _ in verdicts) and not any(each in what for each in HARMLESS):
            often = (is_wrong(pipeline, counts, 50 * RUNS) for counts in reversed(COUNTS))
            assert any(wrong for _, wrong in verdicts) or any(often), what


def first(pipeline, counts):
    return next(violations(Order(pipeline, counts)), None)


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("single", Counts(1, 5)),
        ("one consumer", Counts(2, 3)),
        ("pingpong", Counts(1, 3)),
        pytest.param("pingpong", Counts(2, 2), marks=pytest.mark.deep),
        pytest.param("split", Counts(1, 1), marks=pytest.mark.deep),
    ],
)
def test_a_pipeline_that_ships_is_right_in_every_interleaving(name, counts):
    assert explored(Machine(small(name, 2), counts), 300_000)


@pytest.mark.parametrize("name", PLANS_BY_DEPTH)
@pytest.mark.parametrize("stages", [2, pytest.param(3, marks=pytest.mark.deep)])
def test_what_is_right_for_the_deciding_problems_is_right_for_larger_ones(name, stages):
    """Also what is right with a fault, and with some pairs of faults."""
    whole, random = small(name, stages), Random(1)
    one = [pipeline for _, pipeline in faults(whole)]
    two = [random.choice([*faults(random.choice(one))])[1] for _ in range(PAIRS)]
    right = {each for each in (whole, *one, *two) if violation(each) is None}
    for pipeline in right:
        for counts in larger(pipeline):
            assert first(pipeline, counts) is None, counts


def larger(pipeline):
    """Problems of twice the window, and of more tiles."""
    decided = set(problems(pipeline))
    window = 2 * pipeline.stages + 3
    tiles = range(1, 6 if pipeline.persistent else 2)
    every = {Counts(t, k) for t in tiles for k in (1, 2, window - 1, window)}
    return every - decided
