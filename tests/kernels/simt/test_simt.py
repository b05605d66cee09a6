"""The SIMT ladder: exact on the executor, each rung cheaper than the last, compiled as planned."""

from dataclasses import replace
from itertools import cycle, pairwise, product

import pytest

from cutedsl_gemm.kernels.plan.checks import PlanError
from cutedsl_gemm.kernels.plan.tv_layout import TVLayout, load_layout
from cutedsl_gemm.kernels.simt.memory_report import memory_report
from cutedsl_gemm.kernels.simt.rungs import RUNGS, block1d, block2d, coalesced, naive, shared
from layouts import Layout
from tests.kernels.ladder import by_rung_and_majors, exact, inspect

MAJORS = list(product(("K", "MN"), repeat=2))
SHAPES = [(520, 264, 136), (48, 128, 12), (1, 1, 1), (33, 65, 7), (128, 128, 8)]
by_name = pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.__name__)


@by_name
@pytest.mark.parametrize("majors", MAJORS, ids="-".join)
@pytest.mark.parametrize("mnk", SHAPES, ids=str)
def test_the_executor_is_exact_on_integers(rung, majors, mnk):
    assert exact(rung(*majors), *mnk)


@by_name
@pytest.mark.parametrize("majors", MAJORS, ids="-".join)
def test_every_element_has_one_thread(rung, majors):
    assert all(rung(*majors).proofs())


def staged(plan, **change):
    return {"a": replace(plan.a, **change)}


ONE_COLUMN = TVLayout(Layout(((32, 32), (1, (1, 1))), ((1, 32), (0, (0, 0)))), naive().c.zeros)
ONLY_ROWS = TVLayout(naive().c.rows, naive().c.rows)
HALF = load_layout(32, 32, "K", threads=512, width=1)
# Its lines are columns of C: block1d transposed.
TURNED = TVLayout(block1d().c.columns, block1d().c.rows)


@pytest.mark.parametrize(
    ("plan", "change", "message"),
    [
        (naive(), {"c": ONLY_ROWS}, "layout of C.*the 1024 elements once"),
        (shared(), staged(shared(), copy=ONLY_ROWS), "layout of A"),
        (
            shared(),
            staged(shared(), copy=ONE_COLUMN),
            "layout of A.*the 1024 elements once",
        ),
        (shared(), staged(shared(), copy=HALF), "layout of A has 512 threads; the block has"),
        (shared(), staged(shared(), smem=Layout((32, 32), (16, 1))), "two elements in one place"),
        (shared(), staged(shared(), smem=Layout((32, 32), (100_000, 1))), "a block has 49152"),
        (shared(), staged(shared(), smem=Layout((32, 16), (16, 1))), r"the shape \(32, 16\)"),
        (shared(), {"a": None}, "both must go through shared memory, or neither"),
        (shared(), {"dtype": "bfloat16"}, "dtype is bfloat16; it must be float32"),
        (shared(), {"a_major": "M"}, "a_major is 'M'; it must be one of"),
        (shared(), {"tile": (32, 32)}, "tile is .* 3 positive integers"),
        (block1d(), {"a": None, "b": None}, r"a thread has \(8, 1\) outputs; .* must have one"),
        (block1d(), {"c": TURNED}, "its lines must be rows and its vectors columns"),
    ],
)
def test_a_plan_altered_anywhere_is_refused(plan, change, message):
    assert plan.check() == plan
    with pytest.raises(PlanError, match=message):
        replace(plan, **change).check()


def test_a_thread_value_layout_must_have_lines_and_vectors():
    with pytest.raises(PlanError, match=r"rows are 32:1 and columns 32:0; both must have the same"):
        TVLayout(Layout(32, 1), Layout(32, 0))


def test_a_wrong_place_in_shared_memory_gives_a_wrong_answer():
    folded = replace(shared(), a=replace(shared().a, smem=Layout((32, 32), (16, 1))))
    assert not all(folded.proofs())
    assert not exact(folded, 32, 32, 32)


def test_naive_and_coalesced_differ_in_the_roles_of_two_layouts():
    assert coalesced().c == TVLayout(naive().c.columns, naive().c.rows)
    assert replace(coalesced(), name="simt_naive", c=naive().c) == naive()


def test_each_rung_has_a_reason_to_be_faster():
    reports = [memory_report(rung()) for rung in RUNGS]
    assert (reports[0].requests, reports[0].sectors) == ({"A": 32, "B": 1, "C": 32}, 33)
    assert (reports[1].requests, reports[1].sectors) == ({"A": 1, "B": 4, "C": 4}, 5)
    assert [r.wavefronts for r in reports] == [0, 0, 2, 9 / 8, 1 / 4]
    assert all(after.sectors < before.sectors for before, after in pairwise(reports))


@pytest.mark.parametrize("majors", MAJORS, ids="-".join)
def test_shared_memory_has_no_conflicts_in_any_major(majors):
    assert [memory_report(rung(*majors)).wavefronts for rung in RUNGS[2:]] == [2, 9 / 8, 1 / 4]


@pytest.mark.slow
@by_rung_and_majors(
    zip(RUNGS, cycle([("K", "MN"), ("MN", "K")])),  # the rungs take turns; in CI each has both
    in_ci=zip(RUNGS, cycle([("MN", "K"), ("K", "MN")])),
)
def test_machine_code(rung, majors):
    plan = rung(*majors)
    code = inspect(plan, "sm_80")
    assert code.count("FFMA") >= plan.thread_tile[0] * plan.thread_tile[1] * plan.tile[2]
    assert code.spills == code.stack_bytes == 0
    assert (code.count("LDS") > 0) == (code.count("STS") > 0) == (plan.a is not None)
    assert code.count("BAR.SYNC") == (2 if plan.a else 0)
    assert code.registers * plan.threads <= 65_536
    assert code.count("FADD") == 0


@pytest.mark.slow
def test_the_vectorised_rung_moves_16_bytes_everywhere():
    code = inspect(block2d(), "sm_80")
    assert code.count("LDG.E.128") == 2  # of A and of B, each k-block
    assert code.count("LDS.128") == code.count("LDS") == 4 * 8  # two of A, two of B, each k
    assert code.count("STS.128") == 1  # B; A is turned on its way, one by one
    assert code.count("STG.E.128") == 16
