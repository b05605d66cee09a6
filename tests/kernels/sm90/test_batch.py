"""A batch of products: one launch for all matrices, whose tile rows follow each other."""

from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from cutedsl_gemm.kernels.epilogue.evaluate import evaluate, finish
from cutedsl_gemm.kernels.epilogue.expression import EpilogueOperand
from cutedsl_gemm.kernels.epilogue.trace import trace
from cutedsl_gemm.kernels.executor import empty_tensors
from cutedsl_gemm.kernels.executor.epilogue import over_c
from cutedsl_gemm.kernels.plan.arguments import parts_mode
from cutedsl_gemm.kernels.plan.checks import PlanError
from cutedsl_gemm.kernels.sm90.rungs import cooperative, pingpong, single, split
from tests.kernels.sm90.plans import SWIGLU, name

PLANS = [
    pingpong(batched=True),
    pingpong((64, 32, 64), cluster=(2, 2), batched=True),
    pingpong((128, 192, 64), a_major="MN", b_major="MN", batched=True),
    pingpong((128, 176, 64), cluster=(2, 1), swapped=True, batched=True),
    cooperative(cluster=(2, 1), batched=True),
    cooperative((256, 128, 64), cluster=(1, 2), swapped=True, batched=True),
]
BY_THREADS = [  # C, whose rows may start anywhere
    pingpong((64, 48, 64), c_alignment=1, batched=True),
    pingpong((128, 80, 64), swapped=True, c_alignment=1, batched=True),
    cooperative((128, 256, 64), c_alignment=1, cluster=(1, 2), batched=True),
]


@pytest.mark.parametrize("shape", [(136, 200, 72, 3), (64, 8, 64, 5), (300, 520, 136, 2)])
@pytest.mark.parametrize("plan", [*PLANS, *BY_THREADS], ids=name)
def test_each_matrix_is_the_product_of_its_own(plan, shape):
    m, n, k, count = shape
    shape = m, n if plan.stored_by_tma else n - 3, k, count
    a, b, out = empty_tensors(plan, *shape)
    a.random_(-2, 3), b.random_(-2, 3)
    plan.execute(a, b, out)
    assert torch.equal(out.float(), a.float() @ b.float())


def test_matrices_may_lie_anywhere():
    a, b, out = (torch.randint(-2, 3, (40, 3, 96)).bfloat16().transpose(0, 1) for _ in "abc")
    (plan, *_), b = PLANS, b.mT  # (3, 40, 96) and (3, 96, 40): rows of the matrices take turns
    plan.execute(a, b, out[..., :40])
    assert torch.equal(out[..., :40].float(), a.float() @ b.float())


def operand(name, *modes, **fields):
    return EpilogueOperand(name, modes, batched=True, **fields)


BIAS = operand("bias", "N", dtype="bfloat16")
COLUMN = operand("column", "M")
SCALE = operand("scale")
SHARED = EpilogueOperand("shared", ("N",))
RESIDUAL = operand("residual", "M", "N", dtype="bfloat16", alignment=8)  # by TMA
OF_ALL = EpilogueOperand("of_all", ("M", "N"), "bfloat16", alignment=8)
IN_COLUMNS = operand("residual", "M", "N", dtype="float16", row_major=False)  # by threads
NUMBER = EpilogueOperand("number", by_value=True)
EPILOGUES = {
    "vectors": trace(
        lambda acc, bias, column, scale, shared, number: (
            F.gelu(acc * column + bias) * scale - shared * number
        ),
        [BIAS, COLUMN, SCALE, SHARED, NUMBER],
    ),
    "matrices": trace(lambda acc, residual, of_all: acc * residual + of_all, [RESIDUAL, OF_ALL]),
    "a matrix in columns": trace(lambda acc, residual: acc + residual, [IN_COLUMNS]),
    "results": trace(
        lambda acc, bias: (acc + bias, acc.float(), acc.sum(dim=-1), (acc + bias).amax(dim=-2)),
        [BIAS],
    ),
    "gates": SWIGLU,
}
FUSED = {
    "pingpong": (pingpong, (128, 96, 64), {}),
    "clusters": (pingpong, (64, 64, 64), {"cluster": (2, 2), "b_major": "MN"}),
    "swapped": (pingpong, (128, 80, 64), {"swapped": True}),
    "cooperative": (cooperative, (256, 128, 64), {"cluster": (2, 1)}),
    "threads": (pingpong, (64, 96, 64), {"c_alignment": 1}),
    "threads, swapped": (cooperative, (192, 96, 64), {"c_alignment": 1, "swapped": True}),
}


@pytest.mark.parametrize("kind", FUSED)
@pytest.mark.parametrize("epilogue", EPILOGUES)
def test_an_epilogue_is_computed_of_each_matrix(kind, epilogue):
    maker, tile, options = FUSED[kind]
    if epilogue == "gates" and kind == "threads, swapped":
        maker, tile = pingpong, (128, 48, 64)
    plan = maker(tile, epilogue=EPILOGUES[epilogue], batched=True, **options)
    count, m, n = 3, 150, 104 if plan.stored_by_tma else 101
    torch.manual_seed(0)
    a, b, *others = (each.normal_() for each in empty_tensors(plan, m, n, 72, count))
    tensors = iter(others)
    given = [2.5 if each.by_value else next(tensors) for each in plan.epilogue.operands]
    outs = [*tensors]
    plan.execute(a, b, outs[0] if len(outs) == 1 else tuple(outs), operands=tuple(given))

    products = a.double() @ b.double()
    accumulators = [*products] if plan.matrices == 2 else [products]
    read = [
        each if isinstance(each, float) else over_c(one, each, (count, m, n)[-2 - one.batched :])
        for one, each in zip(plan.epilogue.operands, given, strict=True)
    ]
    wanted = evaluate(plan.epilogue, accumulators, read)
    for out, result, value in zip(outs, plan.epilogue.results, wanted, strict=True):
        if result.reduction is not None:
            assert parts_mode(result).endswith(result.over)
            out = getattr(out, result.reduction)(dim=-2)  # of the parts
        expected = finish(result, value, torch.float64).double()
        torch.testing.assert_close(out.double(), expected, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (split(), "C is a batch, and the plan is split: it must be pingpong or cooperative"),
        (single(), "C is a batch, and the plan is single"),
        (replace(pingpong(), gathered=True), "pingpong, with A gathered"),
    ],
)
def test_other_plans_are_refused(plan, message):
    with pytest.raises(PlanError, match=message):
        replace(plan, batched=True).check()


def test_a_matrix_takes_no_operands_of_a_batch():
    with pytest.raises(PlanError, match=r"operands \['residual'\] are batched, and C is a matrix"):
        pingpong(epilogue=EPILOGUES["a matrix in columns"])


def test_explain_says_how_a_batch_is_loaded():
    assert "batch        A is ((M, L), K), B ((N, L), K) and C ((M, L), N)" in PLANS[0].explain()
    gated = pingpong((128, 64, 64), epilogue=SWIGLU, swapped=True, batched=True)
    assert "batch        A is ((M, 2, L), K), B ((N, L), K) and C" in gated.explain()
