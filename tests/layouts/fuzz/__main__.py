"""Many random calls, the smallest call for each fault, and a table of the outcomes."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from functools import partial
from multiprocessing import Pool
from random import Random
from typing import Any

from .call import FAULTS, KINDS, Law, Outcome, outcome
from .laws import LAWS
from .odd import odd_arguments, unchecked
from .shrink import cause, shrunk


def main() -> int:
    """Run the cases; 1 if there was a fault."""
    parser = argparse.ArgumentParser(prog="python -m tests.layouts.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="processes, which share the cases")
    parser.add_argument("--only", default="", help="operations whose name contains this")
    parser.add_argument("--show", type=int, default=2, help="faults shown for each cause")
    parser.add_argument("--odd", action="store_true", help="put an argument out of place")
    parser.add_argument("--missed", action="store_true", help="show what is refused but exists")
    options = parser.parse_args()
    start = time.perf_counter()
    with Pool(options.jobs) as pool:
        total = sum(pool.imap(partial(run, options), range(options.jobs)), Report())
    print(f"\n{options.cases} cases, seed {options.seed}, {time.perf_counter() - start:.0f} s\n")
    print(total)
    return 1 if any(total.counts[key] for key in total.counts if key[1] in FAULTS) else 0


def run(options: argparse.Namespace, job: int) -> Report:
    """The outcomes of every so many cases, from case `job` on."""
    laws = [law for law in LAWS if options.only in law.name]
    report = Report(options.show, options.missed)
    for case in range(job, options.cases, options.jobs):
        if not options.odd:
            law, arguments = drawn(laws, options.seed, case)
            report.add(case, law, arguments, outcome(law, arguments))
            continue
        rng = Random(f"odd/{options.seed}/{case}")
        (law,) = rng.choices(laws, [law.weight for law in laws])
        odd = odd_arguments(rng, law)
        if odd is not None:
            report.add(case, unchecked(law), odd, outcome(unchecked(law), odd))
    return report


def drawn(laws: list[Law], seed: int, case: int) -> tuple[Law, tuple[Any, ...]]:
    """The operation and the arguments of one case, whichever other cases are run."""
    rng = Random(f"{seed}/{case}")
    (law,) = rng.choices(laws, [law.weight for law in laws])
    return law, law.arguments(rng)


class Report:
    """Outcomes counted by operation and kind; the first faults of each cause are printed."""

    def __init__(self, show: int = 0, missed: bool = False) -> None:
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

    def __add__(self, other: Report) -> Report:
        """Both together."""
        self.counts += other.counts
        self.slowest |= other.slowest  # the larger of two
        return self

    def __str__(self) -> str:
        """One line for each operation, and one for all."""
        names = list(dict.fromkeys(law.name for law in LAWS if law.name in self.slowest))
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
