"""The pipeline of every plan that gemm may choose is right, for every problem."""

from collections import defaultdict
from dataclasses import replace
from functools import cache
from itertools import product

import pytest

from cutedsl_gemm.inputs.problem import Problem
from cutedsl_gemm.kernels.pipeline.decide import violation
from cutedsl_gemm.kernels.plan.raster import Raster
from cutedsl_gemm.select.candidate import CANDIDATES

STORED_BY_TMA = Problem.dense(4096, 4096, 4096)
STORED_BY_THREADS = replace(STORED_BY_TMA, c_alignment=1)
OF_MAJORS = [
    Problem.dense(4096, 4096, 4096, majors=majors) for majors in product(("K", "MN"), repeat=2)
]
SOME = [each for each in CANDIDATES if each.cluster in ((1, 1), (2, 1))][::30]


@pytest.mark.parametrize("candidate", SOME, ids=lambda each: each.name)
def test_the_pipelines_of_some_candidates_are_right(candidate):
    for problem in (STORED_BY_TMA, STORED_BY_THREADS):
        assert violation(candidate.plan(problem).pipeline) is None


@cache
def pipelines():
    """Number of blocks → the pipelines of all plans of such clusters, always in the same order.

    Plans that differ in dtype, raster or number of splits have equal pipelines. The blocks of a
    cluster store C each for itself: where threads store it, one block will do.
    """
    alone = [candidate for candidate in CANDIDATES if candidate.cluster == (1, 1)]
    cases = *product(CANDIDATES, OF_MAJORS), *product(alone, [STORED_BY_THREADS])
    found = defaultdict(dict)
    for candidate, problem in cases:
        if candidate.serves(problem.majors):
            pipeline = candidate.over(2).plan(problem).pipeline
            found[pipeline.blocks][pipeline] = None
    return found


@pytest.mark.parametrize("candidate", SOME, ids=lambda each: each.name)
def test_dtype_raster_and_number_of_splits_change_no_pipeline(candidate):
    plan = candidate.over(2).plan(STORED_BY_TMA)
    other = replace(plan, dtype="float16")
    if plan.splits > 1:
        other = replace(other, splits=plan.splits + 3)
    else:
        other = replace(other, raster=Raster(plan.raster.group + 1, "columns"))
    assert other.check().pipeline == plan.pipeline


PARTS = {1: 1, 2: 1, 4: 2, 8: 12}  # number of blocks → parts that take about equally long


@pytest.mark.deep
@pytest.mark.parametrize(
    ("blocks", "part"),
    [(blocks, part) for blocks, count in PARTS.items() for part in range(count)],
)
def test_the_pipelines_of_all_plans_are_right(blocks, part):
    for pipeline in [*pipelines()[blocks]][part :: PARTS[blocks]]:
        assert violation(pipeline) is None


@pytest.mark.deep
def test_no_pipeline_is_left_out():
    assert {*pipelines()} == {*PARTS}
    assert sum(map(len, pipelines().values())) > 100
