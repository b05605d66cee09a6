"""No forged proof is accepted; `python -m tests.layouts.proof.mutations` tries as many as asked."""

from collections import Counter

from hypothesis import settings

from tests.layouts.proof.mutations.__main__ import forgeries, outcome, written

COUNT = 50 * settings().max_examples  # 5,000 in CI


def test_no_forged_proof_is_accepted_unless_it_is_true():
    kinds = Counter()
    for forged in forgeries(COUNT, seed=1):
        kind = outcome(forged)
        kinds[kind] += 1
        assert kind not in ("false accepted", "raised"), written(forged)
    assert kinds["accepted"] > COUNT / 10  # a change that keeps the truth is no forgery
    assert kinds["rejected"] > COUNT / 3
