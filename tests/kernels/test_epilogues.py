"""Epilogues of the kernels of one tile a block: on the executor, in machine code, in words."""

from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from cutedsl_gemm.kernels.compile import build
from cutedsl_gemm.kernels.epilogue.evaluate import evaluate
from cutedsl_gemm.kernels.epilogue.expression import Epilogue, EpilogueOperand
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
    "row": EpilogueOperand("row", ("N",), "bfloat16"),
    "column": EpilogueOperand("column", ("M",), "float32"),
    "matrix": EpilogueOperand("matrix", ("M", "N"), "float16", alignment=4),
    "transposed": EpilogueOperand("transposed", ("M", "N"), "float32", row_major=False),
    "scalar": EpilogueOperand("scalar", (), "bfloat16"),
    "number": EpilogueOperand("number", by_value=True),
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


def residual(acc, row, matrix, number):
    before = acc * number + row
    return F.relu(before) + matrix, before.float(), before.amax(dim=1)


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
    assert f"{plan.c.projection(('N',)).columns}   (thread, value) → column" in text
    assert text.startswith(plan.explain())


def reductions(acc, row):
    value = acc * row
    return value.sum(dim=1), value, value.amax(dim=0), (value * value).sum(dim=0), value.amin(dim=1)


@by_plan
def test_each_thread_reduces_its_outputs_that_are_in_bounds(plan):
    plan = replace(plan, epilogue=trace(reductions, (OPERANDS["row"],))).check()
    results, exact = computed(plan, 135, 77, 24)
    finish = (torch.sum, 0), None, (torch.amax, 0), (torch.sum, 0), (torch.amin, 0)
    over = 1, None, 0, 0, 1
    for found, expected, parts, mode in zip(results, exact, finish, over, strict=True):
        if parts is not None:
            reduce, _ = parts
            found, expected = reduce(found, 0), reduce(expected, mode)
        torch.testing.assert_close(found, expected.to(found.dtype))
    assert all(plan.proofs())


def test_a_product_may_have_reductions_alone():
    plan = wide(epilogue=trace(lambda acc: (acc.amax(dim=1), acc.sum(dim=0))))
    (largest, total), (exact, _) = computed(plan, 135, 77, 24)
    torch.testing.assert_close(largest.amax(0), exact.amax(1).float())
    torch.testing.assert_close(total.sum(0), exact.sum(0).float())


def test_a_reduction_has_the_parts_that_the_plan_says():
    plan = wide(epilogue=trace(lambda acc: acc.sum(dim=1)))
    a, b, out = empty_tensors(plan, 8, 8, 8)
    with pytest.raises(ValueError, match="out has parts of N = 15: it must be 16"):
        plan.execute(a, b, out[1:].contiguous())


@by_plan
def test_a_plan_refuses_an_epilogue_that_is_invalid_or_names_an_argument_of_the_kernel(plan):
    for name in ("a", "b", "out"):
        epilogue = Epilogue(operands=(EpilogueOperand(name),))
        with pytest.raises(PlanError, match=f"an operand is named {name}, as another argument"):
            replace(plan, epilogue=epilogue).check()
    with pytest.raises(PlanError, match="epilogue: there is no result; there must be one"):
        replace(plan, epilogue=Epilogue(results=())).check()


@by_plan
def test_two_accumulators_are_refused(plan):
    with pytest.raises(PlanError, match="2 accumulators; this kernel multiplies by one B"):
        replace(plan, epilogue=Epilogue(accumulators=2)).check()
