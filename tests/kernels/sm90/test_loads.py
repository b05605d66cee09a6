"""An operand of the epilogue comes by TMA, through the panels of C."""

from dataclasses import replace

import pytest
import torch

from cutedsl_gemm.kernels.compile import build
from cutedsl_gemm.kernels.epilogue.expression import Operand
from cutedsl_gemm.kernels.epilogue.trace import trace
from cutedsl_gemm.kernels.plan.checks import PlanError
from cutedsl_gemm.kernels.sm90.rungs import cooperative, pingpong, single

BIAS = Operand("bias", ("N",), "bfloat16", alignment=8)
MATRIX = Operand("c", ("M", "N"), "bfloat16", alignment=8)


def added(*operands):
    """acc + each of the operands."""
    return trace(lambda acc, **given: sum(given.values(), start=acc), operands)


@pytest.mark.parametrize(
    ("operands", "options", "staged"),
    [
        ((MATRIX,), {}, 0),
        ((BIAS, replace(MATRIX, dtype="float16"), replace(MATRIX, name="d")), {}, 1),
        ((MATRIX,), {"swapped": True}, 0),
        ((replace(MATRIX, row_major=False),), {}, None),  # it does not lie in memory as C does
        ((replace(MATRIX, row_major=False), replace(MATRIX, name="d")), {}, 1),
        ((replace(MATRIX, alignment=4),), {}, None),  # TMA needs rows of whole 16 bytes
        ((replace(MATRIX, dtype="float32"),), {}, None),  # ldmatrix reads 16 bits
        ((BIAS,), {}, None),
        ((MATRIX,), {"c_alignment": 1}, None),
        ((MATRIX,), {"c_stages": 1}, None),  # fewer buffers than panels
        ((MATRIX,), {"c_stages": 2}, 0),
    ],
)
def test_the_first_matrix_that_lies_in_memory_as_c_does_is_loaded(operands, options, staged):
    plan = pingpong(epilogue=added(*operands), **options)
    assert plan.staged_operand == staged
    assert plan.loaded_buffers == (0 if staged is None else 2 * plan.panels)


def test_results_that_panels_do_not_stage_take_no_part():
    one = trace(lambda acc, c: (acc + c).float(), [MATRIX])
    assert pingpong(epilogue=one).staged_operand is None
    two = pingpong(epilogue=trace(lambda acc, c: (acc.float(), acc + c, acc - c), [MATRIX]))
    assert (two.staged_operand, two.panels, two.c_stages) == (0, 2, 4)
    assert [two.operand_buffer(panel) for panel in range(two.panels)] == [0, 2]
    with pytest.raises(PlanError, match="c_stages is 5; it must be at most 4"):
        replace(two, c_stages=5, stages=2).check()


def test_threads_load_the_operand_if_its_panels_leave_too_few_stages():
    assert pingpong((128, 192, 64), epilogue=added(MATRIX)).stages == 3
    plan = pingpong((128, 192, 128), epilogue=added(MATRIX))
    assert (plan.staged_operand, plan.c_stages, plan.stages) == (None, 1, 2)


@pytest.mark.parametrize(
    "plan",
    [
        pingpong((128, 192, 64), epilogue=added(MATRIX)),
        pingpong((64, 48, 64), epilogue=added(MATRIX)),
        pingpong((128, 72, 64), swapped=True, epilogue=added(MATRIX)),
        cooperative((192, 96, 64), epilogue=added(MATRIX)),
        single((64, 64, 64), epilogue=added(MATRIX)),
    ],
)
def test_panels_are_read_without_bank_conflicts(plan):
    assert plan.staged_operand == 0
    assert all(plan.proofs())
    assert plan.operand_read.wavefronts.count == plan.operand_read.wavefronts.ideal
    assert f"read by {plan.ldmatrix.instruction}" in plan.explain()


@pytest.mark.slow
@pytest.mark.deep
@pytest.mark.parametrize(
    ("function", "operands"),
    [
        (lambda acc, c: acc + c, [MATRIX]),
        (lambda acc, bias, c: torch.nn.functional.gelu(acc + bias) + c, [BIAS, MATRIX]),
    ],
)
def test_the_largest_tile_spills_no_register(function, operands):
    plan = pingpong((128, 192, 64), epilogue=trace(function, operands))
    report = build.inspect(plan)
    assert report.spills == report.stack_bytes == 0
    assert report.instructions["LDSM.16.M88.4"] == report.instructions["STSM.16.M88.4"]
