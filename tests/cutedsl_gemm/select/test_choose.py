"""What may be chosen, and what must not."""

from dataclasses import replace
from itertools import product

import pytest
from torch.nn import functional as F

from cutedsl_gemm.inputs.problem import MAX_EXTENT, Problem
from cutedsl_gemm.kernels.epilogue.trace import trace
from cutedsl_gemm.kernels.plan.checks import PlanError
from cutedsl_gemm.kernels.sm90.rungs import cooperative, pingpong, split
from cutedsl_gemm.measure.random_shapes import draw
from cutedsl_gemm.select.choose import choose, choose_among
from cutedsl_gemm.select.costs import SMS
from cutedsl_gemm.select.model import NEAR, TIED, ranking
from cutedsl_gemm.select.registry import KERNELS

EXTENTS = 16, 128, 513, 1024, 5120, 32896
DEPTHS = 64, 4096, 65536, 491520


@pytest.mark.parametrize("mnk", [*product(EXTENTS, EXTENTS, DEPTHS)], ids=str)
def test_k_is_divided_only_to_fill_one_wave(mnk):
    problem = Problem.dense(*mnk)
    ranked = ranking(problem)
    split = [found for found in ranked if found.candidate.splits > 1]
    assert all(found.tiles * found.candidate.splits <= SMS for found in split)
    before = [found.seconds / found.correction for found in ranked]
    limit = sorted(before)[:NEAR][-1] * float(TIED)
    near = sum(seconds <= limit for seconds in before)
    assert max(before[:near]) <= limit
    for part in (ranked[:near], ranked[near:]):
        assert [found.seconds for found in part] == sorted(found.seconds for found in part)
    first = ranked[0].candidate
    plan = choose(problem)
    assert (plan.tile, plan.splits, plan.cluster) == (first.tile, first.splits, first.cluster)
    if first.splits > 1:
        assert plan.workspace(*mnk[:2]) <= SMS * first.tile[0] * first.tile[1]


@pytest.mark.parametrize("tile", [(192, 176, 64), (192, 192, 64), (128, 256, 64), (256, 176, 64)])
def test_a_tile_too_large_for_pingpong_is_cooperative(tile):
    assert choose(Problem.dense(512, 512, 512), tile).schedule == "cooperative"


@pytest.mark.parametrize("tile", [(64, 512, 64), (192, 100, 64)])
def test_a_tile_of_no_schedule_is_refused_for_its_own_reason(tile):
    with pytest.raises(PlanError, match=f"BN is {tile[1]}"):
        choose(Problem.dense(512, 512, 512), tile)


@pytest.mark.parametrize("maker", [pingpong, cooperative])
def test_a_named_kernel_pads_k_alike_for_every_m_of_an_invariant_product(maker):
    problems = (replace(Problem.dense(m, 4096, 4096), invariant=True) for m in (1, 16, 512, 4096))
    assert {choose_among(maker, each).tile[2] for each in problems} == {64}


def gated(m, n, k):
    epilogue = trace(lambda gate, up: F.silu(gate) * up, (), 2)
    return replace(Problem.dense(m, n, k), epilogue=epilogue)


@pytest.mark.parametrize("mnk", [(1024, 14336, 4096), (700, 11008, 4096), (2048, 13824, 5120)])
def test_a_gated_product_has_a_plan_though_the_first_tile_may_suit_one_matrix_only(mnk):
    assert choose(gated(*mnk)).epilogue.accumulators == 2


def test_a_tile_that_no_gated_product_has_is_refused_for_its_own_reason():
    with pytest.raises(PlanError, match=r"BN is 176.* columns of 2 matrices"):
        choose(gated(1024, 14336, 4096), (128, 176, 64))


def test_a_product_of_any_size_has_a_plan():
    assert choose(Problem.dense(MAX_EXTENT, MAX_EXTENT, MAX_EXTENT)).splits == 1


def test_k_of_few_tiles_is_divided_and_that_of_many_is_not():
    assert choose(Problem.dense(512, 512, 16384)).splits > 1
    assert choose(Problem.dense(4096, 4096, 16384)).splits == 1


@pytest.mark.parametrize("maker", [pingpong, cooperative, split])
def test_each_maker_has_a_plan_whatever_the_majors(maker):
    """Tiles of an odd multiple of 8 columns serve only a B that is contiguous along K."""
    for m, n, k in draw(400, seed=5):
        for majors in product(("K", "MN"), repeat=2):
            problem = Problem.dense(m, n, k, majors=majors)
            assert choose_among(maker, problem).a_major in ("K", "MN")


def test_sums_that_32_bits_do_not_count_are_refused_before_anything_is_compiled():
    with pytest.raises(PlanError, match=r"\d parts of K take [\d,]+ elements; they must be"):
        choose_among(split, Problem.dense(32896, 32896, 491520))


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=lambda kernel: kernel.name)
def test_a_plan_of_elements_that_the_kernel_does_not_multiply_is_refused_for_its_dtype(kernel):
    dtype = "bfloat16" if kernel.family == "simt" else "float32"
    with pytest.raises(PlanError, match=f"dtype is {dtype}"):
        kernel.plan(Problem.dense(64, 64, 64, dtype), None)
