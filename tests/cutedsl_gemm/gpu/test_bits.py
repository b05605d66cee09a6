"""The bits of a result: the same in every run, and, of an invariant row, in every batch."""

import functools
import itertools
import random
from dataclasses import replace

import pytest
import torch
from family import FAMILY
from on_gpu import DTYPES, matrix, plan_of, poisoned

from cutedsl_gemm import gemm
from cutedsl_gemm.inputs.problem import Problem
from cutedsl_gemm.kernels.compile import build
from cutedsl_gemm.kernels.plan.raster import Raster
from cutedsl_gemm.kernels.sm90.rungs import pingpong, split
from cutedsl_gemm.select.candidate import CANDIDATES
from cutedsl_gemm.select.model import takes

pytestmark = pytest.mark.gpu

ROWS = 1, 2, 8, 17, 64, 65, 128, 129, 192, 256, 300, 512, 1000, 4096, 8192
PARTS = 8  # of the plans: the kernels of one compile in less time than a test may take
WEIGHTS = [(4096, 4096), (1024, 14336), (12288, 1536), (776, 1280), (136, 8192)]  # (N, K)


def cancelling(m, n, k, dtype=torch.bfloat16):
    """A (M, K) and B (K, N) whose product is 0: the order of the sum alone gives its bits."""
    order = torch.randperm(k // 2, device="cuda")
    a, b = matrix(m, k // 2, dtype=dtype), matrix(n, k // 2, dtype=dtype)
    return torch.cat((a, a[:, order]), 1), torch.cat((b, -b[:, order]), 1).mT


def same_bits(one, other):
    return torch.equal(one.view(torch.int16), other.view(torch.int16))


def test_runs_repeat_bit_for_bit():
    a, b = matrix(2000, 1000), matrix(1000, 3000)
    first = gemm(a, b)
    assert all(torch.equal(gemm(a, b), first) for _ in range(20))


@functools.cache
def invariant_plans(part):
    """One of PARTS of the candidates of an invariant product, each of majors and a dtype in turn.

    And FAMILY's plans, which all parts share.
    """
    majors = itertools.product(("K", "MN"), repeat=2)
    problems = [
        replace(Problem.dense(64, 64, 64, dtype, of_a_and_b), invariant=True)
        for of_a_and_b, dtype in itertools.product(majors, ("bfloat16", "float16"))
    ]
    every = [each for each in CANDIDATES if each.serves(("K", "K"), invariant=True)]
    chosen = []
    for i, candidate in enumerate(every[part::PARTS]):
        turned = (problems[(i + j) % len(problems)] for j in range(len(problems)))
        problem = next(problem for problem in turned if takes(problem, candidate))
        chosen.append(candidate.plan(problem, Raster(4)))
    return list(dict.fromkeys(chosen + [plan for plan in FAMILY if plan.splits == 1]))


@pytest.mark.compiles(plans=invariant_plans)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("nk", WEIGHTS, ids=str)
def test_plans_of_one_order_of_k_give_a_row_the_same_bits_whatever_m(nk, part):
    n, k = nk
    by_dtype, wholes = {}, {}  # by dtype, and by dtype and order of K
    for dtype in DTYPES:
        a, b = cancelling(ROWS[-1], n, k, dtype)
        k_major, other = (a, b), (a.mT.contiguous().mT, b.contiguous())
        by_dtype[str(dtype)] = {"K": k_major, "MN": other}
    for plan in invariant_plans(part):
        kernel, of = build.load(plan), by_dtype[f"torch.{plan.dtype}"]
        a, b = of[plan.a_major][0], of[plan.b_major][1]
        for m in reversed(ROWS):
            kernel(a[:m], b, out := poisoned(m, n, a.dtype), 132)
            whole = wholes.setdefault((a.dtype, plan.k_order(k)), out)
            assert same_bits(out, whole[:m]), (m, plan)


def test_another_order_of_k_gives_other_bits():
    a, b = cancelling(64, 512, 8192)
    whole, in_parts = (poisoned(64, 512, a.dtype) for _ in range(2))
    build.load(pingpong())(a, b, whole, 132)
    build.load(split(splits=4))(a, b, in_parts, 132)
    assert not same_bits(whole, in_parts)


def test_equal_columns_of_b_give_equal_columns_of_c():
    """Every tile begins with k-tile 0, also where C has one row of tiles."""
    a, b = cancelling(64, 8, 8192)
    repeated = b.mT.repeat(512, 1).mT  # column-major
    build.load(pingpong())(a, repeated, out := poisoned(64, 4096, a.dtype), 132)
    assert same_bits(out, out[:, :8].repeat(1, 512))


BATCHES = sorted({*range(1, 400), *random.Random(0).sample(range(400, ROWS[-1]), 100), *ROWS})


def plans_of_batches(nk):
    return [plan_of((m, *nk), ("row", "column"), invariant=True) for m in BATCHES]


@pytest.mark.compiles(plans=plans_of_batches)
@pytest.mark.parametrize("nk", [(4096, 4096), (1000, 4098)], ids=str)
def test_an_invariant_row_has_the_same_bits_in_every_batch(nk):
    n, k = nk
    a, b = cancelling(ROWS[-1], n, k)
    whole = gemm(a, b, invariant=True)
    for m in BATCHES:
        assert same_bits(gemm(a[:m], b, invariant=True), whole[:m]), m
    rows = torch.randperm(len(a), device="cuda")[:777]
    assert same_bits(gemm(a[rows], b, invariant=True), whole[rows])
    strange = a.clone()
    strange[1::2] = torch.nan
    assert same_bits(gemm(strange, b, invariant=True)[::2], whole[::2])
