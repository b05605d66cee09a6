"""Operands of the epilogue come by TMA, through the panels of C."""

from dataclasses import replace

import pytest
import torch

from cutedsl_gemm.kernels.compile import build
from cutedsl_gemm.kernels.epilogue.expression import EpilogueOperand
from cutedsl_gemm.kernels.epilogue.trace import trace
from cutedsl_gemm.kernels.plan.checks import PlanError
from cutedsl_gemm.kernels.sm90.rungs import cooperative, pingpong, single

BIAS = EpilogueOperand("bias", ("N",), "bfloat16", alignment=8)
MATRIX = EpilogueOperand("c", ("M", "N"), "bfloat16", alignment=8)


def added(*operands):
    """acc + each of the operands."""
    return trace(lambda acc, **given: sum(given.values(), start=acc), operands)


@pytest.mark.parametrize(
    ("operands", "options", "staged"),
    [
        ((MATRIX,), {}, (0,)),
        ((BIAS, replace(MATRIX, dtype="float16"), replace(MATRIX, name="d")), {}, (1, 2)),
        ((MATRIX,), {"swapped": True}, (0,)),
        ((replace(MATRIX, row_major=False),), {}, ()),  # it does not lie in memory as C does
        ((replace(MATRIX, row_major=False), replace(MATRIX, name="d")), {}, (1,)),
        ((replace(MATRIX, alignment=4),), {}, ()),  # TMA needs rows of whole 16 bytes
        ((replace(MATRIX, dtype="float32"),), {}, ()),  # ldmatrix reads 16 bits
        ((BIAS,), {}, ()),
        ((MATRIX,), {"c_alignment": 1}, ()),
        ((MATRIX,), {"c_stages": 1}, (0,)),
        ((MATRIX, replace(MATRIX, name="d")), {"c_stages": 1}, ()),  # a panel takes two buffers
        ((MATRIX, replace(MATRIX, name="d")), {"c_stages": 2}, (0, 1)),
    ],
)
def test_matrices_that_lie_in_memory_as_c_does_are_loaded(operands, options, staged):
    plan = pingpong(epilogue=added(*operands), **options)
    assert plan.staged_operands == staged
    assert plan.loaded_panels == (2 * plan.panels if staged else 0)


def test_results_that_panels_do_not_stage_take_no_part():
    one = trace(lambda acc, c: (acc + c).float(), [MATRIX])
    assert pingpong(epilogue=one).staged_operands == ()
    two = pingpong(epilogue=trace(lambda acc, c: (acc.float(), acc + c, acc - c), [MATRIX]))
    assert (two.staged_operands, two.panels, two.buffers_per_panel, two.c_stages) == ((0,), 2, 2, 2)


def test_a_panel_has_as_many_buffers_as_operands_or_results():
    epilogue = added(MATRIX, replace(MATRIX, name="d"))
    assert (
        pingpong(epilogue=epilogue).buffers_per_panel,
        pingpong(epilogue=epilogue).c_stages,
    ) == (2, 2)
    with pytest.raises(
        PlanError, match="c_stages is 6; it must be at most 2, the buffers of a tile's panels"
    ):
        pingpong((64, 64, 64), c_stages=6, epilogue=epilogue)


def test_threads_load_the_operands_if_their_buffers_leave_too_few_stages():
    epilogue = added(MATRIX, replace(MATRIX, name="d"))
    plan = pingpong((128, 184, 64), epilogue=epilogue)  # panels of 184 columns
    assert (plan.loadable_operands, plan.staged_operands, plan.c_stages) == ((0, 1), (), 1)


@pytest.mark.parametrize("tile", [(128, 192, 64), (128, 160, 64), (128, 192, 128)])
def test_a_panel_is_loaded_while_another_is_stored(tile):
    plan = pingpong(tile, epilogue=added(MATRIX))
    assert plan.panel_stages == 2
    assert plan.stages * plan.tile[2] >= 256


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
    assert plan.staged_operands == (0,)
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
