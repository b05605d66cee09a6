"""Many random calls, the smallest call for each fault, and a table of the outcomes."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

from .call import FAULTS, KINDS, Law, Outcome, outcome
from .laws import LAWS
from .shrink import cause, shrunk


def main() -> int:
    """Run the cases; 1 if there was a fault."""
    parser = argparse.ArgumentParser(prog="python -m tests.layouts.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="operations whose name contains this")
    parser.add_argument("--show", type=int, default=2, help="faults shown for each cause")
    parser.add_argument("--missed", action="store_true", help="show what is refused but exists")
    options = parser.parse_args()
    laws = [law for law in LAWS if options.only in law.name]
    start, report = time.perf_counter(), Report(options.show, options.missed)
    for case, law, arguments in cases(laws, options.cases, options.seed):
        report.add(case, law, arguments, outcome(law, arguments))
    print(f"\n{options.cases} cases, seed {options.seed}, {time.perf_counter() - start:.0f} s\n")
    print(report.table())
    return 1 if any(report.counts[law.name, kind] for law in laws for kind in FAULTS) else 0


def cases(laws: list[Law], count: int, seed: int) -> Iterator[tuple[int, Law, tuple[Any, ...]]]:
    """The cases of a seed: number, operation and arguments, each case by itself repeatable."""
    weights = [law.weight for law in laws]
    for case in range(count):
        rng = Random(f"{seed}/{case}")
        (law,) = rng.choices(laws, weights)
        yield case, law, law.arguments(rng)


class Report:
    """Outcomes counted by operation and kind; the first faults of each cause are printed."""

    def __init__(self, show: int, missed: bool) -> None:
        self.show, self.missed = show, missed
        self.counts: Counter[tuple[str, str]] = Counter()
        self.slowest: Counter[str] = Counter()
        self.seen: Counter[tuple[str, ...]] = Counter()

    def add(self, case: int, law: Law, arguments: tuple[Any, ...], found: Outcome) -> None:
        """Count an outcome, and print a fault with the smallest call that has it."""
        self.counts[law.name, found.kind] += 1
        self.slowest[law.name] = max(self.slowest[law.name], found.seconds)  # type: ignore[assignment]
        if not found.is_fault and not (self.missed and found.kind == "missed"):
            return
        self.seen[law.name, found.kind, cause(found)] += 1
        if self.seen[law.name, found.kind, cause(found)] > self.show:
            return
        arguments, found = shrunk(law, arguments, found)
        print(
            f"{found.kind}: {written(law, arguments)}    # case {case}\n    {found.what[:400]}",
            flush=True,
        )

    def table(self) -> str:
        """One line for each operation."""
        names = list(dict.fromkeys(law.name for law in LAWS if self.slowest.get(law.name)))
        lines = [f"{'':20}" + "".join(f"{kind:>9}" for kind in KINDS) + f"{'slowest':>10}"]
        for name in names:
            numbers = "".join(f"{self.counts[name, kind]:9}" for kind in KINDS)
            lines.append(f"{name:20}{numbers}{self.slowest[name]:8.3f} s")
        sums = "".join(f"{sum(self.counts[name, kind] for name in names):9}" for kind in KINDS)
        return "\n".join([*lines, f"{'all':20}{sums}{max(self.slowest.values()):8.3f} s"])


def written(law: Law, arguments: tuple[Any, ...]) -> str:
    """The call as Python."""
    return f"{law.name}({', '.join(getattr(x, '__name__', None) or repr(x) for x in arguments)})"


if __name__ == "__main__":
    sys.exit(main())
