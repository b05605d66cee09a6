"""gemm(a, b, invariant=True): the bits of a row do not depend on the other rows, nor on M."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cutedsl_gemm import PlanError, explain, gemm, plan_for
from cutedsl_gemm.inputs.problem import Problem
from cutedsl_gemm.kernels.executor import empty_tensors
from cutedsl_gemm.kernels.plan.raster import Raster
from cutedsl_gemm.kernels.sm90.rungs import cooperative, pingpong, single, split
from cutedsl_gemm.measure.random_shapes import draw
from cutedsl_gemm.select import tune
from cutedsl_gemm.select.candidate import CANDIDATES, Candidate
from cutedsl_gemm.select.choose import choose_among
from cutedsl_gemm.select.model import best, ranking

DEPTHS = 1, 63, 64, 65, 136, 1096, 4096

MAY_BE_CHOSEN = [each for each in CANDIDATES if each.serves(("K", "K"), invariant=True)]


def invariant(m, n, k):
    return replace(Problem.dense(m, n, k), invariant=True)


@pytest.mark.parametrize("candidate", MAY_BE_CHOSEN, ids=lambda candidate: candidate.name)
def test_every_plan_that_may_be_chosen_sums_k_in_one_order(candidate):
    plan = candidate.plan(invariant(64, 64, 64))
    for k in DEPTHS:
        assert plan.k_order(k) == (range(0, -(-k // 64) * 64, 16),)


def test_split_k_sums_in_another_order():
    assert split(splits=3).k_order(640) == (
        *(range(0, 192, 16), range(192, 384, 16), range(384, 640, 16)),
    )


PLANS = pingpong(), cooperative(swapped=True), split(splits=5), single()


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.name)
@pytest.mark.parametrize("k", DEPTHS)
def test_an_order_has_every_k_once(plan, k):
    bk, steps = plan.tile[2], [start for part in plan.k_order(k) for start in part]
    assert steps == list(range(0, -(-k // bk) * bk, plan.instruction_k))


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.name)
@pytest.mark.parametrize("mnk", [(3, 264, 456), (200, 8, 712)])
def test_the_executor_adds_in_the_order_of_the_plan(plan, mnk):
    m, n, k = mnk
    a, b, out = empty_tensors(plan, m, n, k)
    for tensor, values in zip((a, b), cancelling(m, n, k // 2, a.dtype), strict=True):
        tensor.copy_(values)
    plan.execute(a, b, out, one_by_one=True)
    total = torch.zeros(m, n)
    for part in plan.k_order(k):
        acc = torch.zeros(m, n)
        for at in (start + step for start in part for step in range(plan.instruction_k)):
            if at < k:  # zeros follow
                acc += a[:, at, None].float() * b[at].float()
        total += acc
    assert torch.equal(out, total.to(a.dtype))


def cancelling(m, n, k, dtype):
    """A (M, 2K) and B (2K, N) whose product is 0, so that rounding alone gives its bits."""
    a, b, order = torch.randn(m, k).to(dtype), torch.randn(k, n).to(dtype), torch.randperm(k)
    return torch.cat((a, a[:, order]), 1), torch.cat((b, -b[order]))


extents = st.integers(1, 150)


@settings(max_examples=max(6, settings().max_examples // 10))
@given(
    m=extents,
    n=extents,
    k=st.integers(1, 150),
    dtype=st.sampled_from([torch.bfloat16, torch.float16]),
    seed=st.integers(0, 99),
)
def test_a_row_has_the_same_bits_in_any_batch_and_a_column_beside_any_others(m, n, k, dtype, seed):
    torch.manual_seed(seed)
    a, b = cancelling(m, n, k, dtype)
    whole = gemm(a, b, invariant=True)
    rows, columns = torch.randperm(m)[: 1 + seed % m], torch.randperm(n)[: 1 + seed % n]
    assert torch.equal(gemm(a[rows], b, invariant=True), whole[rows])
    assert torch.equal(gemm(a, b[:, columns], invariant=True), whole[:, columns])
    bound = a.double().abs() @ b.double().abs()  # of what rounds
    assert bool((whole.double().abs() <= 2 * k * 2**-24 * bound).all())


A, B = cancelling(200, 72, 68, torch.bfloat16)


@pytest.fixture(scope="module")
def whole():
    return gemm(A, B, invariant=True)


def test_every_way_to_call_it_gives_the_same_bits(whole):
    column_major, askew = torch.empty(72, 200).bfloat16().mT, torch.empty(200, 73).bfloat16()
    shifted = torch.cat((A.new_zeros(200, 1), A), 1)[:, 1:]  # read through a copy
    for a, b, options in (
        (A, B, {"tile": (128, 128, 64)}),
        (A, B, {"tile": (64, 48, 128)}),
        (A, B, {"out": column_major}),
        (A, B, {"out": askew[:, 1:]}),
        (A, B.mT.contiguous().mT, {}),
        (A.mT.contiguous().mT, B, {}),
        (shifted, B, {}),
        (A, B, {"kernel": "sm90"}),
        (A, B, {"kernel": "sm90_cooperative"}),
        (A, B, {"kernel": "sm90_pingpong"}),
        (A, B, {"kernel": "sm90_single"}),
    ):
        assert torch.equal(gemm(a, b, invariant=True, **options), whole)


def test_a_call_with_the_keyword_and_one_without_are_remembered_apart():
    assert plan_for(A, B).splits == plan_for(A, B, invariant=True).splits == 1  # nothing to avoid
    deep = cancelling(24, 24, 1536, torch.bfloat16)
    assert plan_for(*deep).splits > 1
    assert plan_for(*deep, invariant=True).splits == 1
    plain = gemm(*deep)
    ours = gemm(*deep, invariant=True)
    assert torch.equal(gemm(deep[0][:3], deep[1], invariant=True), ours[:3])
    assert torch.equal(gemm(*deep), plain)


def test_a_gradient_is_an_invariant_product():
    weight, transposed = cancelling(40, 24, 150, torch.bfloat16)
    a, b = A[:40, :24].clone().requires_grad_(), transposed.mT.clone().requires_grad_()
    (gemm(a, b, invariant=True) * weight).sum().backward()
    assert torch.equal(a.grad, gemm(weight, transposed, invariant=True))
    assert not torch.equal(a.grad, gemm(weight, transposed))
    assert torch.equal(a.grad[7:16], gemm(weight[7:16], transposed, invariant=True))
    assert torch.equal(b.grad, gemm(A[:40, :24].mT, weight, invariant=True))


def test_vmap_gives_the_same_bits(whole):
    mapped = torch.vmap(lambda a: gemm(a, B, invariant=True))(A.view(4, 50, 136))
    assert torch.equal(mapped.flatten(0, 1), whole)


def test_the_choice_is_the_first_of_a_ranking_without_split_k():
    for mnk in [*draw(40, seed=3), (24, 24, 8192), (1, 4096, 14336)]:
        problem = invariant(*mnk)
        ranked = ranking(problem)
        assert best(problem) == ranked[0].candidate
        assert {each.candidate.splits for each in ranked} == {1}


def test_tuning_races_plans_that_do_not_split_k_and_remembers_them_apart(monkeypatch, tmp_path):
    monkeypatch.setattr(tune, "_file", lambda: tmp_path / "tuned.json")
    asked, plain = invariant(512, 512, 16384), Problem.dense(512, 512, 16384)
    entries = tune.entries(asked)
    assert len(entries) == tune.ENTRIES
    assert all(tune._plan(asked, entry).splits == 1 for entry in entries)
    splitting = next(each for each in CANDIDATES if each.maker is split)
    tune._store(plain, "H100", (splitting, Raster(1)))
    assert tune._stored(asked, "H100") is None
    tune._store(asked, "H100", (splitting, Raster(1)))  # by another hand
    assert tune._stored(asked, "H100") is None


def test_explain_says_so():
    a, b = (torch.empty(shape, dtype=A.dtype, device="meta") for shape in ((24, 8192), (8192, 24)))
    assert "split" in explain(a, b)
    text = explain(a, b, invariant=True)
    assert "K over" not in text
    assert "invariant    K is not split: every output is summed in one order" in text


ERRORS = [
    (lambda: gemm(A, B, invariant="yes"), TypeError, "invariant is 'yes': it must be True or"),
    (
        lambda: gemm(A, B, invariant=True, kernel="sm90_split"),
        PlanError,
        "invariant=True, and sm90_split divides K into as many parts as suit M and N: omit kernel",
    ),
    (
        lambda: gemm(A, B, invariant=True, kernel="sm80_swizzled"),
        PlanError,
        "only the sm90 kernels.*the kernel is sm80_swizzled: omit",
    ),
    (
        lambda: choose_among(split, invariant(64, 64, 64), (128, 64, 64)),
        PlanError,
        "sm90_split divides K",
    ),
    (
        lambda: Candidate(split, (128, 64, 64), 4).plan(invariant(64, 64, 64)),
        PlanError,
        "sm90_split divides K",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), ERRORS)
def test_what_contradicts_it_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
