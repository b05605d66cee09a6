"""The suites of other layout algebras pass, except for the cases in `differs`."""

import pytest
from hypothesis import settings

from .sources import COMMAND
from .suites import SUITES, Result

#: Suites that take longer than a few seconds run in CI's profile.
SLOW = {"tract": "50 s", "tensor-layouts": "15 s"}


@pytest.mark.slow
@pytest.mark.parametrize("suite", SUITES)
def test_peer(suite: str) -> None:
    if not SUITES[suite].source.is_fetched:
        pytest.skip(f"not fetched: {COMMAND}")
    if suite in SLOW and settings().max_examples < 100:
        pytest.skip(f"{SLOW[suite]}: --hypothesis-profile=ci, or python -m tests.peers {suite}")
    result = Result(suite)
    assert not result.unexpected, str(result)
    assert not result.agreeing, str(result)
