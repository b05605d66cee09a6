"""The last line of an explanation: the law of the operation, checked on the result it returned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import LayoutError
from ..proof.prove import Proof, prove
from ..values.symbols import free_symbols
from ..values.tuples import text
from .steps import Lines

__all__ = ["check", "check_values"]

#: How many values are written out, and how many compared.
SHOWN, COMPARED = 24, 4096


def check(lines: Lines, law: Any, formula: str) -> None:
    """Prove `law`; `formula` is how it is written."""
    try:
        verdict = _verdict(prove(law))
    except LayoutError as error:
        verdict = str(error)
    lines.append(f"check {formula}: {verdict}")


def _verdict(proof: Proof) -> str:
    if not proof:
        return f"refuted, {proof.reason[-1]}"
    return "proved" + (" for all values of the symbols" if free_symbols(proof.statement) else "")


def check_values(
    lines: Lines, formula: str, left: Callable[[int], Any], right: Callable[[int], Any], count: int
) -> None:
    """Compare the two sides of a law at the indices below `count`, and write the first values."""
    first, second = ([text(side(i)) for i in range(min(count, SHOWN))] for side in (left, right))
    more = " ..." if count > SHOWN else ""
    if first == second and all(left(i) == right(i) for i in range(min(count, COMPARED))):
        of = f"all {count}" if count <= COMPARED else f"the first {COMPARED}"
        lines.append(f"check {formula}: {' '.join(first)}{more} on both sides, for {of} indices")
    else:
        lines.append(f"check {formula} FAILS: {' '.join(first)} and {' '.join(second)}")
