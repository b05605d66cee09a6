"""Apply the faults one at a time, and print which test noticed each.

First a module of the copy is made to raise: if no test notices, the tests do not run the copy. At
the end the tests that noticed a fault run without one, and must pass.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

from . import outcomes
from .fault import Fault
from .outcomes import Outcome
from .rooms import FAULTS, named, nearest
from .tree import Tree

CANARY = Fault(
    "canary",
    "kernels/sm90/plan.py",
    "from __future__ import annotations\n",
    "raise RuntimeError('this is the copy')\n",
    "Nothing works.",
)
CANARY_TEST = "tests/kernels/sm90/test_plan.py"
GPU_TESTS = ("tests/cutedsl_gemm/gpu",)
# The options of pytest for four kinds of runs. `deep` tests run in CI alone (tests/conftest.py).
QUICK = "-m", "not gpu"
DEEP = "-m", "deep and not gpu", "--hypothesis-profile=ci"
ALL = "-m", "not gpu", "--hypothesis-profile=ci"
ON_GPU = "-m", "gpu", "--require-gpu", "--lazily"
# All but the tests of files: those notice that a file differs, not that it is wrong.
SUITE = (
    *("tests", "layouts", "cutedsl_gemm", "--ignore=tests/docs", "--ignore=tests/mutants"),
    *("--ignore=tests/test_readme.py", "--ignore=tests/test_packaging.py"),
)


def main() -> int:
    """Try the faults that the command line names; 1 if one survives."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--only", nargs="+", default=(), help="rooms, or faults as room/name")
    parser.add_argument("--new", action="store_true", help="those that nothing has noticed yet")
    parser.add_argument("--full", action="store_true", help="then the suite, if the nearest pass")
    parser.add_argument("--gpu", action="store_true", help="the tests that need an H100 instead")
    parser.add_argument("--jobs", type=int, default=1, help="faults at a time, each in a copy")
    parser.add_argument("--timeout", type=float, default=900, help="seconds for a run of tests")
    options = parser.parse_args()
    known = outcomes.read()
    names = [name for name in named(options.only) if not (options.new and any(known.get(name, ())))]
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        trials = Trials(Path(folder), options, known)
        trials.check_that_copies_run()
        found = {}
        with ThreadPoolExecutor(options.jobs) as pool:
            for name, (noticed_by, seconds) in zip(names, pool.map(trials, names), strict=True):
                print(f"{name:45} {seconds:4.0f} s  {noticed_by or 'SURVIVED'}", flush=True)
                outcomes.record(name, noticed_by, options.gpu, list(FAULTS))
                found[name] = noticed_by
        trials.check_that_noticing_tests_pass(found.values())
        trials.close()
    survivors = sum(not noticed_by for noticed_by in found.values())
    print(f"{len(found) - survivors} of {len(found)} noticed")
    return 1 if survivors else 0


class Trials:
    """Faults, each tried in a copy of the repository that no other trial uses at the time."""

    def __init__(
        self, folder: Path, options: argparse.Namespace, known: dict[str, Outcome]
    ) -> None:
        self.options, self.known = options, known
        self.idle: Queue[Tree] = Queue()
        for number in range(options.jobs):
            self.idle.put(Tree(folder / str(number), options.timeout))

    def __call__(self, name: str) -> tuple[str, float]:
        """(the test that noticed the fault, or "" if none did; seconds)."""
        tree, start = self.idle.get(), time.monotonic()
        try:
            with tree.mutated(FAULTS[name]):
                noticed_by = next(filter(None, map(tree.test, self.rounds(name))), "")
        finally:
            self.idle.put(tree)
        return noticed_by, time.monotonic() - start

    def rounds(self, name: str) -> Iterator[Sequence[str]]:
        """The runs of pytest, one after the other: first the test that noticed it last time."""
        known = self.known.get(name, Outcome())
        last = known.on_a_gpu if self.options.gpu else known.noticed_by
        if ".py" in last:
            yield *(ON_GPU if self.options.gpu else ALL), last
        if self.options.gpu:
            yield *ON_GPU, *GPU_TESTS
            return
        yield *QUICK, *nearest(name)
        yield *DEEP, *nearest(name)
        if self.options.full:
            yield *ALL, *SUITE

    def check_that_copies_run(self) -> None:
        """RuntimeError unless a test notices a module of a copy that raises."""
        for tree in list(self.idle.queue):
            with tree.mutated(CANARY):
                if not tree.test([*QUICK, CANARY_TEST]):
                    raise RuntimeError(f"{CANARY_TEST} passes where {CANARY.file} raises")

    def check_that_noticing_tests_pass(self, noticed_by: Iterable[str]) -> None:
        """RuntimeError unless the tests that noticed a fault pass without one."""
        tests = sorted({test for test in noticed_by if ".py" in test})  # others tell how it ended
        marked = ON_GPU if self.options.gpu else ALL
        if tests and (fails := self.idle.queue[0].test([*marked, *tests])):
            raise RuntimeError(f"{fails} fails without a fault, too")

    def close(self) -> None:
        """End the processes of the copies."""
        for tree in list(self.idle.queue):
            tree.close()


if __name__ == "__main__":
    sys.exit(main())
