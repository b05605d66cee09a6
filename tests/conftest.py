"""The same numbers on every run, at three depths; and `gpu` tests, which need an H100.

What the gpu tests launch is compiled before the first of them, on all cores. One that hangs ends
the process, since nothing else takes its kernel off the GPU.
"""

from __future__ import annotations

import faulthandler
import functools
import gc
import inspect
import os
import sys
import time
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from hypothesis import settings

NEED = "needs an H100 (sm_90)"
SECONDS = 120  # of a gpu test
COMPILE_SECONDS = 300  # of all their plans
STDERR = pytest.StashKey[int]()  # a copy, which pytest does not capture

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
    parser.addoption("--lazily", action="store_true", help="compile no kernels of gpu tests ahead")


@functools.cache
def has_sm90() -> bool:
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)


def pytest_configure(config: pytest.Config) -> None:
    # A full collection walks all that torch, SymPy and the DSL hold, and frees next to nothing. At
    # the default thresholds, tests that make many small objects took twice as long.
    gc.set_threshold(50_000, 20, 20)
    config.stash[STDERR] = os.dup(2)


def pytest_unconfigure(config: pytest.Config) -> None:
    os.close(config.stash[STDERR])


def watch(config: pytest.Config, seconds: float) -> None:
    """End the process, with a traceback of every thread, unless the watch is cancelled in time."""
    faulthandler.dump_traceback_later(seconds, exit=True, file=config.stash[STDERR])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    if not (item.get_closest_marker("gpu") and has_sm90()):
        return (yield)
    within = item.get_closest_marker("within")
    watch(item.config, within.args[0] if within else SECONDS)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


def pytest_collection_finish(session: pytest.Session) -> None:
    gc.freeze()
    options = session.config.option
    lazily = options.lazily or hasattr(session.config, "workerinput")  # xdist's workers share cores
    items = [item for item in session.items if item.get_closest_marker("gpu")]
    if items and not (lazily or options.collectonly) and has_sm90():
        compile_ahead(session.config, {plan for item in items for plan in named_plans(item)})


def named_plans(item: pytest.Item) -> Iterator[Any]:
    """The plans among a test's parameters, and those that its markers `compiles` give for them."""
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    yield from plans_in([*parameters.values()])
    for marker in item.iter_markers("compiles"):
        plans = marker.kwargs["plans"]
        names = inspect.signature(plans).parameters
        yield from plans_in(plans(**{name: parameters[name] for name in names}))


def plans_in(value: object) -> Iterator[Any]:
    """The plans in nested lists and tuples."""
    if isinstance(value, (list, tuple)):
        for each in value:
            yield from plans_in(each)
    elif hasattr(value, "device_code"):
        yield value


def compile_ahead(config: pytest.Config, plans: set[Any]) -> None:
    """Compile the plans on all cores. The test of a plan that does not compile shows the error."""
    from cutedsl_gemm.select.precompile import compiled_with_bar

    start = time.perf_counter()
    watch(config, COMPILE_SECONDS)
    try:
        compiled_with_bar(plans)
        outcome = "are compiled"
    except Exception as error:
        outcome = f"are not all compiled ({error!r})"
    finally:
        faulthandler.cancel_dump_traceback_later()
    if reporter := config.pluginmanager.get_plugin("terminalreporter"):
        seconds = time.perf_counter() - start
        reporter.write_line(f"{len(plans)} kernels of gpu tests {outcome}, after {seconds:.0f} s")


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
