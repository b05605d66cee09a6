"""The one exception of the package."""

from __future__ import annotations

from typing import Any


class LayoutError(ValueError):
    """A layout that cannot be, or an operation that has no layout as its answer.

    The message is a sentence: which argument, what it is, what it must be, and what to do.  Where
    an operation is refused it also names an index that shows why, the smallest, with both values;
    `counterexample` then holds (index, coordinate, value, what it would have to be).
    """

    counterexample: tuple[Any, ...] | None = None
