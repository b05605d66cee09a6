"""The exception of the package, and its case that nothing was decided."""

from __future__ import annotations

from typing import Any


class LayoutError(ValueError):
    """A layout that cannot exist, or an operation whose result is not a layout.

    The message says which argument, what it is, what it must be, and what to do.  Where a
    composition has no layout, the message also names the smallest index that shows this, and
    `counterexample` holds (index, coordinate, value, value that a layout would need there).
    """

    counterexample: tuple[Any, ...] | None = None


class Undecided(LayoutError):
    """Neither proved nor refuted, neither a result nor a proof that there is none.

    The message says what could not be shown: for all values of the symbols, or within the steps
    that a search may take (`budget`).
    """
