"""A copy of the repository, in which a fault is applied, tested and taken back."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from .fault import Fault, repository

OPTIONS = "-x", "-q", "--no-header", "--tb=no", "-rfE", "-p", "no:cacheprovider"
# As tests/conftest.py sets them, but before torch and the DSL are imported.
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "CUTE_DSL_ARCH": "sm_90a"}
# pytest's exit status if a test fails, or a file cannot be collected; and if no test is there.
NOTICING = pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED
PASSING = (
    pytest.ExitCode.OK,
    pytest.ExitCode.USAGE_ERROR,
    pytest.ExitCode.NO_TESTS_COLLECTED,
)
# A line of pytest's summary: the identity of a test, and perhaps a reason.
NOTICED = re.compile(
    r"^(?:FAILED|ERROR) (\S+?\.py(?:::[\w.]+(?:\[.*?\])?)*)(?: - |$)", re.MULTILINE
)


class Tree:
    """A copy of what git knows and of new files, with the environment linked.

    A run of tests in it has `timeout` seconds.
    """

    def __init__(self, root: Path, timeout: float) -> None:
        self.root, self.timeout = root, timeout
        origin = repository()
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=origin, check=True, capture_output=True, text=True)
        for name in filter(None, listed.stdout.split("\0")):
            source, target = origin / name, root / name
            if source.is_symlink() or source.exists():  # not if it was deleted since the commit
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target, follow_symlinks=False)
        (root / ".venv").symlink_to((origin / ".venv").resolve())
        self.server = subprocess.Popen(
            [sys.executable, "-m", "tests.mutants.fork_server"],
            cwd=root,
            env=os.environ | ENVIRONMENT | {"PYTHONPATH": str(root)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    @contextmanager
    def mutated(self, fault: Fault) -> Iterator[None]:
        """The tree with the fault, for as long as the context lasts.

        SyntaxError if Python cannot read the file then: every test would notice.
        """
        file = self.root / fault.file
        sound = file.read_text(encoding="utf-8")
        faulty = fault.applied(sound)
        ast.parse(faulty, fault.file)
        self._write(file, faulty)
        try:
            yield
        finally:
            self._write(file, sound)

    def _write(self, file: Path, text: str) -> None:
        file.write_text(text, encoding="utf-8")
        # Python tells byte code that is stale by the second and the size of its source.
        Path(cache_from_source(str(file))).unlink(missing_ok=True)

    def test(self, arguments: Iterable[str]) -> str:
        """What noticed a fault: the first test that fails, or how pytest ended; "" if all pass.

        `arguments` are those of pytest. A test that is no longer there passes, too.
        """
        with tempfile.TemporaryDirectory() as cache:  # a mutant's kernels are its own
            variables = {"CUTEDSL_GEMM_CACHE_DIR": cache}
            run = [*OPTIONS, *arguments], variables, self.timeout
            print(json.dumps(run), file=self.server.stdin, flush=True)
            status, output = json.loads(self.server.stdout.readline())
        if status is None:
            return f"no end after {self.timeout:.0f} s"
        return outcome(status, output)

    def close(self) -> None:
        """End the process that runs the tests."""
        self.server.stdin.close()
        self.server.wait()


def outcome(status: int, output: str) -> str:
    """What noticed a fault, from pytest's exit status and what it printed.

    >>> outcome(1, "FAILED tests/test_a.py::test_b[1 - [2]] - assert 1 == 2")
    'tests/test_a.py::test_b[1 - [2]]'
    >>> outcome(2, "ERROR tests/test_a.py")
    'tests/test_a.py'
    >>> outcome(0, "3 passed"), outcome(4, "not found: tests/a.py"), outcome(-11, "")
    ('', '', 'the end of pytest by signal 11')
    """
    if status in PASSING:
        return ""
    if status < 0:
        return f"the end of pytest by signal {-status}"
    if status in NOTICING and (found := NOTICED.search(output)):
        return found[1]
    raise RuntimeError(f"pytest ended with {status}, and no test failed:\n{output[-2000:]}")
