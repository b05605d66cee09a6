"""CUTLASS pycute's unit tests, each call of a helper a case of its own.

The tests import everything from `pycute`; while they load, that is the shim.
"""

from __future__ import annotations

import sys
import unittest
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from .outcome import Case, Cases, tried
from .shims import pycute
from .sources import CUTLASS


def cases() -> Cases:
    """The cases of all test files."""
    for file in sorted((CUTLASS.folder / "test/python/pycute").glob("test_*.py")):
        for test_class in vars(_loaded(file)).values():
            if isinstance(test_class, type) and issubclass(test_class, unittest.TestCase):
                yield from _of_class(test_class)


def _loaded(file: Path) -> ModuleType:
    """A test file as a module, in which `pycute` is the shim."""
    module, before = ModuleType(file.stem), sys.modules.get("pycute")
    sys.modules["pycute"] = pycute
    try:
        exec(compile(file.read_text(), file, "exec"), vars(module))
    finally:
        if before is None:
            del sys.modules["pycute"]
        else:
            sys.modules["pycute"] = before
    return module


def _of_class(test_class: type[unittest.TestCase]) -> Iterator[Case]:
    """A case for each call of a helper, and for each test that calls none."""
    found: list[Case] = []
    test = test_class()
    for name in dir(test_class):
        if name.startswith("helper_"):
            setattr(test, name, _counted(getattr(test, name), found))
    for name in unittest.TestLoader().getTestCaseNames(test_class):
        before = len(found)
        whole = tried(name, getattr(test, name))
        if len(found) == before or whole.failure:
            found.append(whole)
    return iter(found)


def _counted(helper: Any, found: list[Case]) -> Any:
    def counted(*arguments: Any) -> None:
        name = helper.__name__.removeprefix("helper_")
        found.append(tried(f"{name}({', '.join(map(str, arguments))})", helper, *arguments))

    return counted
