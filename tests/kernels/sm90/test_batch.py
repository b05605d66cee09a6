"""A batch of products: one launch for all matrices, whose tile rows follow each other."""

from dataclasses import replace

import pytest
import torch

from cutedsl_gemm.kernels.epilogue.trace import trace
from cutedsl_gemm.kernels.executor import empty_tensors
from cutedsl_gemm.kernels.plan.checks import PlanError
from cutedsl_gemm.kernels.sm90.rungs import cooperative, pingpong, single, split
from tests.kernels.sm90.plans import name

PLANS = [
    replace(plan, batched=True).check()
    for plan in (
        pingpong(),
        pingpong((64, 32, 64), cluster=(2, 2)),
        pingpong((128, 192, 64), a_major="MN", b_major="MN"),
        pingpong((128, 176, 64), cluster=(2, 1), swapped=True),
        cooperative(cluster=(2, 1)),
        cooperative((256, 128, 64), cluster=(1, 2), swapped=True),
    )
]


@pytest.mark.parametrize("shape", [(136, 200, 72, 3), (64, 8, 64, 5), (300, 520, 136, 2)])
@pytest.mark.parametrize("plan", PLANS, ids=name)
def test_each_matrix_is_the_product_of_its_own(plan, shape):
    a, b, out = empty_tensors(plan, *shape)
    a.random_(-2, 3), b.random_(-2, 3)
    plan.execute(a, b, out)
    assert torch.equal(out.float(), a.float() @ b.float())


def test_matrices_may_lie_anywhere():
    a, b, out = (torch.randint(-2, 3, (40, 3, 96)).bfloat16().transpose(0, 1) for _ in "abc")
    (plan, *_), b = PLANS, b.mT  # (3, 40, 96) and (3, 96, 40): rows of the matrices take turns
    plan.execute(a, b, out[..., :40])
    assert torch.equal(out[..., :40].float(), a.float() @ b.float())


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (split(), "C is a batch, and the plan is split: it must be pingpong or cooperative"),
        (single(), "C is a batch, and the plan is single"),
        (replace(pingpong(), gathered=True), "pingpong, with A gathered"),
        (pingpong(c_alignment=1), "C is a batch: TMA stores the products as they are"),
        (pingpong(epilogue=trace(torch.relu, [])), "it takes no epilogue"),
    ],
)
def test_other_plans_are_refused(plan, message):
    with pytest.raises(PlanError, match=message):
        replace(plan, batched=True).check()


def test_explain_says_how_a_batch_is_loaded():
    assert "batch        A is ((M, L), K), B ((N, L), K) and C ((M, L), N)" in PLANS[0].explain()
