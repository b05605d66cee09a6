"""What the ladder measured, from docs/performance/ladder.csv: bars, sentences, and reasons."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from html import escape
from pathlib import Path

from cutedsl_gemm.measure.ladder import Measured, below, digits, read
from cutedsl_gemm.measure.providers import CUBLAS

PERFORMANCE = Path(__file__).parents[1] / "performance"
CSV = PERFORMANCE / "ladder.csv"
COMMAND = "python -m cutedsl_gemm ladder"


@cache
def measured() -> dict[str, list[Measured]]:
    """The families of the CSV, torch.mm first in each."""
    return read(CSV)


def of(name: str) -> Measured | None:
    """What was measured of a kernel; None if the CSV lacks it."""
    return next((row for rows in measured().values() for row in rows if row.name == name), None)


def bars(family: Sequence[Measured], ideas: dict[str, str], root: str, here: str = "") -> str:
    """A bar for each rung: what the rung below reached, and what this one gained or lost.

    `ideas` are shown under the names, `root` is the path to the folder of the rungs' pages, and
    `here` is the rung of the page.
    """
    reference, *rungs = family
    lower = below(family)
    widest = max(row.tflops for row in family)
    shown = "".join(
        _bar(row, lower.get(row.name), widest, ideas.get(row.name, ""), root, row.name == here)
        for row in (*rungs, reference)
    )
    mark = f"--reference:{100 * reference.tflops / widest:.2f}%"
    return f'<div class="bars" style="{mark}">{shown}</div>'


def _bar(
    row: Measured, lower: Measured | None, widest: float, idea: str, root: str, here: bool
) -> str:
    known = 0.0 if lower is None else min(lower.tflops, row.tflops)
    changed = 0.0 if lower is None else abs(row.tflops - lower.tflops)
    kept = row.tflops if lower is None else known
    change = "gained" if lower is None or row.tflops >= lower.tflops else "lost"
    widths = [(kept, "kept"), (changed, change)]
    fills = "".join(
        f'<span class="{kind}" style="width:{100 * tflops / widest:.2f}%"></span>'
        for tflops, kind in widths
        if tflops
    )
    name = escape(row.name)
    if row.name != CUBLAS and not here:
        name = f'<a href="{root}{row.name}.html">{name}</a>'
    gain = f" <small>{row.speed_over(lower):.2f} ×</small>" if lower else ""
    kinds = "bar" + " this" * here + " reference" * (row.name == CUBLAS)
    return (
        f'<div class="{kinds}"><div class="name">{name}</div>'
        f'<div class="track">{fills}</div>'
        f'<div class="number">{digits(row.tflops)}{gain}</div>'
        f'<div class="idea">{idea}</div></div>'
    )


def protocol(row: Measured, page: str) -> str:
    """Where the figures come from, as Markdown; `page` is the path to the page on performance."""
    return (
        f"Measured at {row.setting}, on one {row.gpu}, {row.date}: `{COMMAND} --csv FILE` "
        f"([ladder.csv]({page.replace('README.md', 'ladder.csv')}), "
        f"[protocol]({page}#the-ladder))."
    )


def reasons() -> dict[str, str]:
    """Why a rung is not faster than the one below it, by rung: a list in docs/performance."""
    text = (PERFORMANCE / "README.md").read_text()
    found = re.findall(r"^- \*\*(\w+)\*\*((?:.*\n)(?:  .*\n)*)", text, re.M)
    return {name: " ".join(f"`{name}`{rest}".split()) for name, rest in found}
