"""The exception of the package, its case that nothing was decided, and a part of messages."""

from __future__ import annotations

from collections.abc import Iterable
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


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The known name that is closest to a name that is not, as the end of a message; or nothing.

    >>> did_you_mean("sm90_pingpang", ["sm90_pingpong", "sm80_wide"]), did_you_mean("x", ["sm90"])
    ('; did you mean sm90_pingpong?', '')
    """
    from difflib import get_close_matches

    close = get_close_matches(name, [*known], 1)
    return f"; did you mean {close[0]}?" if close else ""
