"""Columns of figures, and dates: the style sheet aligns the former, and breaks neither."""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.application import Sphinx

#: A number, its unit, and another number in parentheses: 12, 1.39 ×, 85.7 (1.39 ×).
FIGURE = re.compile(
    r"[+−-]?\d[\d.,]*(?:\s?(?:×|%|[µm]?s|[GT]B|TB/s|TFLOP/s))?(?:\s\([\d.,]+(?:\s?[×%])?\))?"
)
NO_FIGURE = "", "—", "–", "none"
DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b")


def mark(app: Sphinx, document: nodes.document) -> None:
    """Gives the cells of a column of figures the class `figures`, and dates the class `date`."""
    for group in document.findall(nodes.tgroup):
        rows = [row.children for row in group.findall(nodes.row)]
        for head, *cells in [*zip(*rows, strict=True)][1:]:  # the first column has the names
            if figures([cell.astext().strip() for cell in cells]):
                for cell in (head, *cells):
                    cell["classes"].append("figures")
    for text in list(document.findall(nodes.Text)):
        if isinstance(text.parent, (nodes.paragraph, nodes.reference, nodes.strong)):
            text.parent.replace(text, whole_dates(text.astext()))


def figures(cells: list[str]) -> bool:
    """Whether all cells have a figure or nothing, and one has a figure.

    >>> figures(["85.7 (1.39 ×)", "—", "1,024"]), figures(["2", "8192×8192"]), figures(["none"])
    (True, False, False)
    """
    found = [cell for cell in cells if cell not in NO_FIGURE]
    return bool(found) and all(map(FIGURE.fullmatch, found))


def whole_dates(words: str) -> list[nodes.Node]:
    """A text whose dates have nodes of their own."""
    parts: list[nodes.Node] = []
    end = 0
    for date in DATE.finditer(words):
        parts += [nodes.Text(words[end : date.start()])]
        parts += [nodes.inline("", date[0], classes=["date"])]
        end = date.end()
    return [*parts, nodes.Text(words[end:])]


def setup(app: Sphinx) -> dict[str, bool]:
    """Registers the extension."""
    app.connect("doctree-read", mark)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
