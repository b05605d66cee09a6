"""Code and output that are wider than the column: their letters shrink until the lines fit.

The style sheet computes the size from the number of columns, `--columns`. On a narrow screen
letters would be too small to read, and the block scrolls instead.
"""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx

FITS = 88  # columns of letters of the normal size


def wrap(app: Sphinx, document: nodes.document) -> None:
    """Puts each wide block into a box that knows how many columns the block has."""
    for block in list(document.findall(nodes.literal_block)):
        columns = max(map(len, block.astext().splitlines()), default=0)
        if columns > FITS and wraps_no_lines(block):
            box = f'<div class="wide" style="--columns:{columns}">'
            opened, closed = (nodes.raw("", tag, format="html") for tag in (box, "</div>"))
            block.parent.replace(block, [opened, block, closed])


def wraps_no_lines(block: nodes.literal_block) -> bool:
    """Whether the lines of a block stay whole; output without columns wraps them."""
    return "output" not in block["classes"] or "columns" in block["classes"]


def setup(app: Sphinx) -> dict[str, bool]:
    """Registers the extension."""
    app.connect("doctree-read", wrap)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
