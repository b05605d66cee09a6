"""The suites by name, and what running one came to."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from . import cute_cases, pycute_cases, pytest_suites
from .differs import DIFFERS
from .outcome import Cases
from .sources import CUTLASS, TENSOR_LAYOUTS, TRACT, Source


class Suite(NamedTuple):
    """A suite: its files and its cases."""

    source: Source
    cases: Callable[[], Cases]


SUITES = {
    "pycute": Suite(CUTLASS, pycute_cases.cases),
    "cute": Suite(CUTLASS, cute_cases.cases),
    "tract": Suite(TRACT, pytest_suites.tract_cases),
    "tensor-layouts": Suite(TENSOR_LAYOUTS, pytest_suites.tensor_layouts_cases),
}


class Result:
    """The cases of one suite: those that pass, those that differ as listed, and all others."""

    def __init__(self, suite: str) -> None:
        self.suite = suite
        self.cases = list(SUITES[suite].cases())
        expected = self.reasons = {
            name: reason for reason, names in DIFFERS.get(suite, {}).items() for name in names
        }
        failures = [case for case in self.cases if case.failure]
        self.passed = len(self.cases) - len(failures)
        self.differing = [case for case in failures if case.name in expected]
        self.unexpected = [case for case in failures if case.name not in expected]
        names = {case.name for case in failures}
        self.agreeing = [name for name in expected if name not in names]

    def __str__(self) -> str:
        lines = [f"{self.suite}: {self.passed} of {len(self.cases)} pass"]
        lines += [f"  differs: {case.name}: {self.reasons[case.name]}" for case in self.differing]
        lines += [f"  FAILS: {case.name}: {case.failure}" for case in self.unexpected]
        lines += [f"  no longer differs: {name}" for name in self.agreeing]
        return "\n".join(lines)
