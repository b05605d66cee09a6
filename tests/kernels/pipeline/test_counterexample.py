"""A violation is an interleaving that can happen, with what comes too early at its end."""

from dataclasses import replace

import pytest

from cutedsl_gemm.kernels.pipeline.counterexample import counterexample
from cutedsl_gemm.kernels.pipeline.decide import violation
from cutedsl_gemm.kernels.pipeline.order import Order
from cutedsl_gemm.kernels.sm90.rungs import cooperative, pingpong
from tests.kernels.pipeline.faults import faults

PIPELINE = pingpong((128, 64, 64)).pipeline


def fault(start):
    """The violation of the first fault whose description starts so."""
    return next(violation(each) for what, each in faults(PIPELINE) if what.startswith(start))


@pytest.mark.parametrize("plan", [pingpong((128, 64, 64)), cooperative((64, 64, 64))])
def test_an_interleaving_has_all_that_lies_before_its_events(plan):
    for _, pipeline in faults(replace(plan, stages=2).pipeline):
        if (found := violation(pipeline)) is None:
            continue
        order = Order(pipeline, found.counts)
        happened = set()
        for event in found.interleaving:
            before = set(order.before[event.moment])
            if found.rule.endswith("may pass two phases early") and event is found.interleaving[-1]:
                before -= {*order.completed.values()}  # this wait takes another phase for its own
            assert happened >= before
            happened.add(event.moment)
        assert happened.isdisjoint(event.moment for event in found.missing)


def test_the_last_line_comes_too_early_and_what_is_missing_follows():
    text = counterexample(fault("consumer 0: no StoreWait"))
    rule, table, chart = text.split("\n\n")
    assert rule.startswith("panel buffer 0 of consumer 0, block 0 is overwritten while it is read")
    *_, last, missing = table.splitlines()
    assert last.startswith("✗ 2")
    assert "stmatrix panel 0 → buffer 0" in last
    assert missing.startswith("not yet")
    assert "TMA store buffer 0 → panel 0 of C, commit_group: ends" in missing
    flying = next(
        line for line in chart.splitlines() if line.startswith("TMA stores of consumer 0")
    )
    assert flying.endswith("▶")
    assert "┤" not in flying


def test_a_deadlock_shows_what_never_comes():
    text = counterexample(fault("producer: other parity of Wait"))
    never = [line for line in text.splitlines() if line.startswith("never")]
    assert "producer, first warp" in never[0]
    assert "mbarrier wait empty[0]" in never[0]
    assert len(never) == 3  # the producer, and both groups of consumer 0's warps
    assert "✗" not in text


def test_a_long_interleaving_says_how_much_is_left_out():
    found = fault("consumer 0: no StoreWait")
    for shown in (5, 10):
        table = counterexample(found, shown).split("\n\n")[1].splitlines()
        assert table[1].startswith("…")
        assert "TMA store" in table[2]  # which has not ended, and begins earlier
        assert len(table) == 1 + 1 + 1 + shown + 1
    assert "…" not in counterexample(found, 1000)
