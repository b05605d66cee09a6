"""The page of plots: one for each CSV of docs/performance, in the colours of the page's theme.

What a plot shows, by which command and protocol, are the heading and the paragraph of the section
in docs/performance/README.md that links to the CSV.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl

from cutedsl_gemm.measure.providers import CUBLAS
from cutedsl_gemm.measure.report import drawn, files, is_relative, read

from page_text import html

INK = "#010203"  # stands for the colour of the page's text, in what matplotlib writes
STYLE = {
    "svg.fonttype": "none",  # text, not outlines
    "svg.hashsalt": "plots",
    "savefig.transparent": True,
    "font.size": 10,
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor"), INK),
    **dict.fromkeys(("xtick.color", "ytick.color"), INK),
}


def plots(measured: Path) -> str:
    """The page, in the order of the sections."""
    page = (measured / "README.md").read_text()
    method = re.search(r"^\*\*Machine\.\*\*.*?(?=\n\n)", page, re.M | re.S)
    parts = ["# Performance plots", linked(method[0]) if method else ""]
    found = described(measured, page)
    for file, heading, words in sorted(found, key=lambda x: page.index(f"## {x[1]}")):
        anchor = re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        relative = f" The plot shows speeds relative to {CUBLAS}." * is_relative(read(file))
        parts += [
            f"## {heading}",
            f"{linked(words)}{relative} [The table](../performance/README.md#{anchor}).",
            html(f'<figure class="plot">{svg(file)}</figure>'),
        ]
    return "\n\n".join(parts) + "\n"


def described(measured: Path, page: str) -> Iterator[tuple[Path, str, str]]:
    """(CSV, heading, paragraph) of each plot; LookupError for a CSV that no section links to."""
    for file in files(measured):
        link = f"({file.name})"
        sections = re.split(r"^## ", page, flags=re.M)
        section = next((each for each in sections if link in each), None)
        if section is None:
            raise LookupError(f"{measured}/README.md: no section links to {file.name}")
        heading, *paragraphs = section.split("\n\n")
        words = next(each for each in paragraphs if link in each)
        yield file, heading.strip(), words


def linked(words: str) -> str:
    """Markdown of docs/performance/README.md, with links that work from docs/written."""
    words = words.replace("](#", "](README.md#")
    return re.sub(r"\]\((?!http|\.\./)", "](../performance/", words)


def svg(file: Path) -> str:
    """The plot of a CSV, to stand in a page."""
    with mpl.rc_context(STYLE):
        return embedded(drawn(read(file)))


def embedded(figure: Any) -> str:
    """A figure of matplotlib, made in `STYLE`, as SVG: its text has the page's colour."""
    out = io.StringIO()
    with mpl.rc_context(STYLE):
        figure.savefig(out, format="svg", metadata={"Date": None})
    return re.sub(r"^.*?(?=<svg)", "", out.getvalue(), flags=re.S).replace(INK, "currentColor")
