"""Rows of texts in columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """The rows as lines; each column is as wide as its widest text.

    >>> print(*table([("k-tile", "stage"), ("7", "1")]), sep="\\n")
    k-tile   stage
    7        1
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (f"{cell:{width}}" for cell, width in zip(row, widths, strict=True))
        yield "   ".join(cells).rstrip()
