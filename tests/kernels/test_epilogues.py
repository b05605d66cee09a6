"""Epilogues of the kernels of one tile a block: on the executor, in machine code, in words."""

from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from cutedsl_gemm.kernels.compile import build
from cutedsl_gemm.kernels.epilogue.evaluate import evaluate
from cutedsl_gemm.kernels.epilogue.expression import Epilogue, Operand, Result
from cutedsl_gemm.kernels.epilogue.trace import trace
from cutedsl_gemm.kernels.executor import empty_tensors
from cutedsl_gemm.kernels.plan.checks import PlanError
from cutedsl_gemm.kernels.simt.rungs import block1d, block2d, naive
from cutedsl_gemm.kernels.sm70.plan import volta884
from cutedsl_gemm.kernels.sm80.rungs import swizzled, wide

PLANS = [
    naive("MN", "K"),
    block1d(),
    block2d(),
    volta884("float16", "MN", "MN"),
    swizzled("float16"),
    wide(),
    wide("bfloat16", "K", "K"),
    wide("bfloat16", "K", "MN", 2),
]
by_plan = pytest.mark.parametrize("plan", PLANS, ids=lambda plan: f"{plan.name}-{plan.b_major}")
OPERANDS = {
    "row": Operand("row", ("N",), "bfloat16"),
    "column": Operand("column", ("M",), "float32"),
    "matrix": Operand("matrix", ("M", "N"), "float16", alignment=4),
    "transposed": Operand("transposed", ("M", "N"), "float32", row_major=False),
    "scalar": Operand("scalar", (), "bfloat16"),
    "number": Operand("number", by_value=True),
}


def computed(plan, m, n, k):
    """(results of the executor, the same in fp64) of random tensors."""
    epilogue = plan.epilogue
    a, b, *others = empty_tensors(plan, m, n, k)
    tensors = sum(not operand.by_value for operand in epilogue.operands)
    given, out = iter(others[:tensors]), tuple(others[tensors:])
    for each in (a, b, *others[:tensors]):
        each.random_(-4, 5)
    operands = [0.75 if operand.by_value else next(given) for operand in epilogue.operands]
    plan.execute(a, b, out if len(out) > 1 else out[0], operands=tuple(operands))
    shaped = [
        each[:, None] if operand.modes == ("M",) else each
        for operand, each in zip(epilogue.operands, operands, strict=True)
    ]
    return out, evaluate(epilogue, [a.double() @ b.double()], shaped)


@pytest.mark.parametrize("plan", [PLANS[2], PLANS[3], PLANS[6]], ids=lambda plan: plan.name)
@pytest.mark.parametrize("kind", OPERANDS)
def test_every_kind_of_operand_meets_the_outputs_at_its_own_rows_and_columns(plan, kind):
    epilogue = trace(lambda acc, **operand: acc - 3 * operand[kind], (OPERANDS[kind],))
    (found,), (expected,) = computed(replace(plan, epilogue=epilogue).check(), 135, 77, 24)
    assert torch.equal(found, expected.to(found.dtype))


def everything(acc, row, column, matrix, transposed, scalar, number):
    before = (acc * number + row) * column
    return F.gelu(before * scalar) + matrix - transposed, before.float(), acc.half()


@by_plan
def test_several_results_in_several_dtypes_are_those_of_fp64(plan):
    plan = replace(plan, epilogue=trace(everything, tuple(OPERANDS.values()))).check()
    results, exact = computed(plan, 135, 77, 24)
    assert [each.dtype for each in results[1:]] == [torch.float32, torch.float16]
    for found, expected in zip(results, exact, strict=True):
        torch.testing.assert_close(found, expected.to(found.dtype))


@by_plan
def test_each_value_of_a_thread_meets_its_own_element_of_an_operand(plan):
    epilogue = trace(everything, tuple(OPERANDS.values()))
    proofs = replace(plan, epilogue=epilogue).proofs()
    assert len(proofs) == len(plan.proofs()) + 5
    assert all(proofs)


def residual(acc, row, matrix, number):
    before = acc * number + row
    return F.relu(before) + matrix, before.float()


@pytest.mark.slow
@pytest.mark.parametrize(
    "plan",
    [
        naive(),
        *(pytest.param(plan, marks=pytest.mark.deep) for plan in (block2d(), volta884(), wide())),
    ],
    ids=lambda plan: plan.name,
)
def test_an_epilogue_compiles(plan):
    operands = tuple(OPERANDS[name] for name in ("row", "matrix", "number"))
    assert build.ptx(replace(plan, epilogue=trace(residual, operands)).check(), "sm_80")


@by_plan
def test_explain_names_the_expression_and_where_operands_come_from(plan):
    epilogue = trace(lambda acc, row: F.relu(acc + row), (OPERANDS["row"],))
    text = replace(plan, epilogue=epilogue).explain()
    assert "relu(acc + row)" in text
    assert f"{plan.c.projection(('N',)).columns}   (thread, value) → n" in text
    assert text.startswith(plan.explain())


@by_plan
@pytest.mark.parametrize(
    ("epilogue", "message"),
    [
        (Epilogue(accumulators=2), "2 accumulators; this kernel multiplies by one B"),
        (
            Epilogue(results=(Result(0), Result(0, None, "sum", "N"))),
            "result 1 of its epilogue is the sum over N; this kernel stores whole results",
        ),
    ],
)
def test_what_only_sm90_computes_is_refused(plan, epilogue, message):
    with pytest.raises(PlanError, match=message):
        replace(plan, epilogue=epilogue).check()
