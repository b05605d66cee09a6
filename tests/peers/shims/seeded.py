"""A plugin of pytest: every test starts from the same random numbers."""

import random

import pytest


@pytest.fixture(autouse=True)
def _seeded() -> None:
    random.seed(0)
