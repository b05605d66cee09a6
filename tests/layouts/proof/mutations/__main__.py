"""Many forged proofs, and what became of them."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

from layouts import Proof, prove

from .mutate import mutated
from .statements import statement
from .truth import Unknown, holds, refuted_by

#: So many forgeries are made of each proof.
EACH = 40

#: Outcomes; the last two are faults.
KINDS = ("rejected", "accepted", "unknown", "false accepted", "raised")


def main() -> int:
    """Run the cases; 1 if there was a fault."""
    parser = argparse.ArgumentParser(prog="python -m tests.layouts.proof.mutations")
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    start, counts = time.process_time(), Counter[tuple[str, str]]()
    for forged in forgeries(options.cases, options.seed):
        kind = outcome(forged)
        counts[type(forged.statement).__name__, kind] += 1
        if kind in KINDS[3:]:
            print(f"{kind}: {written(forged)}", flush=True)
    print(f"\n{options.cases} forgeries, {time.process_time() - start:.0f} s of CPU\n")
    print(table(counts))
    return 1 if any(counts[name, kind] for name, kind in counts if kind in KINDS[3:]) else 0


def forgeries(count: int, seed: int) -> Iterator[Proof]:
    """`count` forged proofs, each a proof of a random statement with something changed."""
    recent: list[Proof] = []
    for number in range(-(-count // EACH)):
        rng = Random(f"{seed}/{number}")
        proof = _proof(rng)
        recent = [*recent[-9:], proof]
        made = 0
        while made < min(EACH, count - number * EACH):
            try:
                forged = mutated(rng, proof, recent)
            except Exception:  # a constructor that refuses is no matter of `verify`
                continue
            made += 1
            yield forged


def _proof(rng: Random) -> Proof:
    while True:
        try:
            return prove(statement(rng))
        except Exception:  # `prove` has a fuzzer of its own, tests/layouts/fuzz
            continue


def outcome(proof: Proof) -> str:
    """What `verify` says of a forged proof, held against the truth."""
    try:
        if proof.verify() is not True:
            return "rejected"
    except Exception:
        return "raised"
    try:
        right = (
            holds(proof.statement) is True
            if proof.holds
            else refuted_by(proof.statement, proof.counterexample)
        )
    except Unknown:
        return "unknown"
    return "accepted" if right else "false accepted"


def written(proof: Proof) -> str:
    """The forged proof as Python."""
    shown: tuple[Any, ...] = (proof.statement, proof.holds, proof.counterexample)
    return f"{', '.join(map(repr, shown))}, {[each.witness for each in proof.certificates]!r}"


def table(counts: Counter[tuple[str, str]]) -> str:
    """One line for each kind of statement."""
    lines = [f"{'':20}" + "".join(f"{kind:>16}" for kind in KINDS)]
    for name in [*sorted({name for name, _ in counts}), "all"]:
        numbers = [
            sum(n for (of, what), n in counts.items() if name in (of, "all") and what == kind)
            for kind in KINDS
        ]
        lines.append(f"{name:20}" + "".join(f"{n:16}" for n in numbers))
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
