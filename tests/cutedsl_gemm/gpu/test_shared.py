"""What the tests of this folder share, checked without a GPU."""

import itertools
import time

import pytest
from family import CLUSTERS, PERSISTENT
from on_gpu import plan_of, run_apart


def test_the_persistent_plans_have_every_kind_of_block_cluster_and_epilogue():
    assert {plan.cluster for plan in PERSISTENT} == {*CLUSTERS}
    assert {plan.c_stages for plan in PERSISTENT} == {1, 2, 3, 4}
    assert {plan.consumers for plan in PERSISTENT} == {1, 2, 3}
    epilogues = {(plan.schedule, plan.stored_by_tma, plan.swapped) for plan in PERSISTENT}
    both = False, True
    assert epilogues == {*itertools.product(("pingpong", "cooperative"), both, both)}


def test_a_plan_is_named_for_the_orders_of_its_matrices():
    assert [
        plan_of((64, 64, 64), order).b_major for order in (("row", "row"), ("row", "column"))
    ] == (["MN", "K"])


def test_a_process_that_hangs_fails_its_test_and_leaves_no_child():
    start = time.monotonic()
    with pytest.raises(pytest.fail.Exception, match=r"took more than 0.2 s"):
        run_apart("bash", "-c", "sleep 30 & sleep 30", seconds=0.2)
    assert time.monotonic() - start < 10


def test_a_process_says_how_it_ended():
    assert run_apart("bash", "-c", "echo $WORD >&2; exit 9", seconds=30, WORD="x") == (9, "x\n")
