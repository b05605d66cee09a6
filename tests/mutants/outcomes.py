"""noticed.csv: of each fault, the test that noticed it without a GPU, and the one on a GPU."""

from __future__ import annotations

import csv
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).with_name("noticed.csv")


class Outcome(NamedTuple):
    """The tests that noticed a fault; empty if none has."""

    noticed_by: str = ""
    on_a_gpu: str = ""


def read(file: Path = FILE) -> dict[str, Outcome]:
    """The outcome of each fault that was tried."""
    if not file.exists():
        return {}
    with file.open(encoding="utf-8", newline="") as lines:
        _, *rows = csv.reader(lines)
    return {fault: Outcome(*tests) for fault, *tests in rows}


def record(
    fault: str, noticed_by: str, on_a_gpu: bool, order: Collection[str], file: Path = FILE
) -> None:
    """Write one outcome; rows stand in the order of the faults, and those of no fault are dropped.

    What the other machine noticed stays.
    """
    known = read(file)
    field = "on_a_gpu" if on_a_gpu else "noticed_by"
    known[fault] = known.get(fault, Outcome())._replace(**{field: noticed_by})
    with file.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(("fault", "noticed by", "noticed on a GPU by"))
        writer.writerows((name, *known[name]) for name in order if name in known)
