"""The same numbers on every run, at three depths; and `gpu` tests, which need an H100."""

from __future__ import annotations

import functools
import os
import sys

import pytest
from hypothesis import settings

NEED = "needs an H100 (sm_90)"

# Workers share the cores. Two of torch's own threads doubled the executor's CPU time on two cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# The CuTe DSL reads it when it is first imported; only for sm_90a does it trace wgmma.
os.environ.setdefault("CUTE_DSL_ARCH", "sm_90a")

# The same examples on every run and every machine, and no deadline, since CI's two cores are busy.
# Tests marked `deep` run under `ci` alone.
# A test that needs more examples than its profile asks for a multiple of settings().max_examples.
REPEATABLE = settings(derandomize=True, deadline=None, database=None)
settings.register_profile("quick", REPEATABLE, max_examples=10)  # make check
settings.register_profile("daily", REPEATABLE, max_examples=25)
settings.register_profile("ci", REPEATABLE, max_examples=100)  # --hypothesis-profile=ci
settings.load_profile("daily")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--require-gpu", action="store_true", help="fail gpu tests, don't skip them")


@functools.cache
def has_sm90() -> bool:
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)


@pytest.hookimpl(tryfirst=True)  # before the test's fixtures, which may draw, or want the GPU
def pytest_runtest_setup(item: pytest.Item) -> None:
    if torch := sys.modules.get("torch"):
        torch.manual_seed(0)  # whatever ran before, and on whichever worker
    if item.get_closest_marker("gpu") and not has_sm90():
        if item.config.getoption("--require-gpu"):
            pytest.fail(NEED, pytrace=False)
        pytest.skip(NEED)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if settings().max_examples < settings.get_profile("ci").max_examples:
        deep = [item for item in items if item.get_closest_marker("deep")]
        config.hook.pytest_deselected(items=deep)
        items[:] = [item for item in items if not item.get_closest_marker("deep")]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.getreports("skipped")
    if count := sum(report.longrepr[2] == f"Skipped: {NEED}" for report in skipped):
        tests = "1 test needs" if count == 1 else f"{count} tests need"
        terminalreporter.write_line(
            f"{tests} an H100 (sm_90): skipped here; run with --require-gpu on one"
        )
