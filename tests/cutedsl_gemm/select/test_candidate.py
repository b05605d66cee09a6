"""The candidates: their file, and the plans that they make for an epilogue."""

from dataclasses import replace

import pytest

from cutedsl_gemm.inputs.problem import Problem
from cutedsl_gemm.kernels.epilogue.expression import Epilogue, EpilogueOperand, Instruction, Result
from cutedsl_gemm.kernels.sm90.rungs import cooperative, pingpong, split
from cutedsl_gemm.select.candidate import CANDIDATES, FILE, Candidate, read, write

# acc + c, for a matrix c in bfloat16
SUM = Epilogue(
    (Instruction("acc", value=0), Instruction("operand", value=0), Instruction("add", (0, 1))),
    (EpilogueOperand("c", ("M", "N"), "bfloat16", alignment=8),),
    (Result(2),),
)


def test_what_is_written_is_read(tmp_path):
    file = tmp_path / "candidates.csv"
    write(file, CANDIDATES)
    assert read(file) == CANDIDATES
    assert file.read_text() == FILE.read_text()


def test_each_candidate_is_there_once_and_has_a_name_of_its_own():
    assert len({*CANDIDATES}) == len({each.name for each in CANDIDATES}) == len(CANDIDATES)


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("bn", [208, 240])
def test_consumers_that_divide_the_columns_of_a_tile_take_an_epilogue(bn, swapped):
    for maker, splits in ((cooperative, 1), (split, 3)):
        plan = Candidate(maker, (192, bn, 64), splits, swapped=swapped).plan(
            replace(Problem.dense(4096, 4096, 4096), epilogue=SUM)
        )
        assert (plan.epilogue, plan.columns, plan.splits) == (SUM, bn // 2, splits)


@pytest.mark.parametrize(
    "candidate",
    [Candidate(cooperative, (128, 256, 64)), Candidate(pingpong, (128, 192, 64), cluster=(2, 1))],
    ids=lambda each: each.maker.__name__,
)
def test_tma_loads_a_matrix_whatever_k_is(candidate):
    plans = [
        candidate.plan(replace(Problem.dense(4096, 4096, k), epilogue=SUM))
        for k in (256, 1024, 1088)
    ]
    assert [plan.staged_operands for plan in plans] == [(0,)] * 3
