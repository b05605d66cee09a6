"""The pipeline of every plan that gemm may choose is right, for every problem."""

from collections import defaultdict
from dataclasses import replace
from functools import cache

import pytest

from cutedsl_gemm.kernels.pipeline.decide import violation
from cutedsl_gemm.problem import Problem
from cutedsl_gemm.select.candidate import CANDIDATES, plans

STORED_BY_TMA = Problem.dense(4096, 4096, 4096)
STORED_BY_THREADS = replace(STORED_BY_TMA, c_alignment=1)
SOME = [each for each in CANDIDATES if each.cluster in ((1, 1), (2, 1))][::30]


@pytest.mark.parametrize("candidate", SOME, ids=lambda each: each.name)
def test_the_pipelines_of_some_candidates_are_right(candidate):
    for problem in (STORED_BY_TMA, STORED_BY_THREADS):
        assert violation(candidate.plan(problem).pipeline) is None


@cache
def pipelines():
    """Number of blocks → the pipelines of all plans of such clusters.

    Plans that differ in layouts alone have equal pipelines. The blocks of a cluster store C each
    for itself: where threads store it, one block will do.
    """
    alone = (candidate for candidate in CANDIDATES if candidate.cluster == (1, 1))
    by_threads = (candidate.plan(STORED_BY_THREADS) for candidate in alone)
    found = defaultdict(set)
    for plan in (*plans(), *by_threads):
        found[plan.pipeline.blocks].add(plan.pipeline)
    return found


BLOCKS = 1, 2, 4, 8


@pytest.mark.deep
@pytest.mark.parametrize("blocks", BLOCKS)
def test_the_pipelines_of_all_plans_are_right(blocks):
    assert [violation(each) for each in pipelines()[blocks]] == [None] * len(pipelines()[blocks])


@pytest.mark.deep
def test_no_pipeline_is_left_out():
    assert {*pipelines()} == {*BLOCKS}
    assert sum(map(len, pipelines().values())) > 100
