"""The pipeline of every plan that gemm may choose is right, for every problem."""

from dataclasses import replace

import pytest

from cutedsl_gemm.kernels.pipeline.decide import violation
from cutedsl_gemm.problem import Problem
from cutedsl_gemm.select.candidate import CANDIDATES, plans

STORED_BY_TMA = Problem.dense(4096, 4096, 4096)
STORED_BY_THREADS = replace(STORED_BY_TMA, c_alignment=1)
SOME = [each for each in CANDIDATES if each.cluster in ((1, 1), (2, 1))][::15]


@pytest.mark.parametrize("candidate", SOME, ids=lambda each: each.name)
def test_the_pipelines_of_some_candidates_are_right(candidate):
    for problem in (STORED_BY_TMA, STORED_BY_THREADS):
        assert violation(candidate.plan(problem).pipeline) is None


@pytest.mark.deep
def test_the_pipelines_of_all_plans_are_right():
    """Plans that differ in layouts alone have equal pipelines, and each is decided once.

    The blocks of a cluster store C each for itself: where threads store it, one block will do.
    """
    alone = (candidate for candidate in CANDIDATES if candidate.cluster == (1, 1))
    by_threads = (candidate.plan(STORED_BY_THREADS) for candidate in alone)
    pipelines = dict.fromkeys(plan.pipeline for plan in (*plans(), *by_threads))
    assert len(pipelines) > 100
    assert [violation(each) for each in pipelines] == [None] * len(pipelines)
