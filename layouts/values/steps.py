"""How many steps a search may take: one number for the whole library, which the caller may set.

What the theorems do not decide is searched: all indices of a layout, all differences of two
coordinates, all layouts through given points.  A step of a search is one index or one candidate,
about a microsecond.  A search that runs out of steps raises `Undecided`.  Steps are counted, not
seconds, so the same call has the same outcome on every machine.
"""

from __future__ import annotations

from contextvars import ContextVar, Token

from ..errors import LayoutError, Undecided
from .tuples import is_int

__all__ = ["HOW_TO_TRY_MORE", "Steps", "affordable", "budget", "too_many"]

#: The steps of one search, unless `budget` sets another number: about a second.
STEPS = 1 << 20

#: The end of a message that a search ran out of steps.
HOW_TO_TRY_MORE = "layouts.budget(steps) sets how many steps a search may take"

_most: ContextVar[int] = ContextVar("steps", default=STEPS)


class budget:
    """In a ``with`` statement, every search inside takes at most `steps` steps (default 2**20).

    A search with fewer indices or candidates is decided as usual.  One that would need more raises
    `Undecided`, which is a `LayoutError`.  The budget is that of one search, and an operation makes
    a few at most; other threads and tasks keep their own.

    >>> from layouts import Layout, budget, composition
    >>> a, b = Layout((3, 3, 4), (3, 9, 2)), Layout((2, 4, 1000), (1, 5, 36))
    >>> print(composition(a, b))
    (2,(2,2),1000):(3,(15,5),8)
    >>> with budget(1000):  # doctest: +ELLIPSIS
    ...     composition(a, b)
    Traceback (most recent call last):
        ...
    layouts.errors.Undecided: composition of (3,3,4):(3,9,2) with ...
    """

    __slots__ = ("_before", "steps")

    def __init__(self, steps: int) -> None:
        if not is_int(steps) or steps < 1:
            raise LayoutError(f"budget({steps!r}): it must be an integer of at least 1 step")
        self.steps = int(steps)
        self._before: list[Token[int]] = []

    def __enter__(self) -> None:
        self._before.append(_most.set(self.steps))

    def __exit__(self, *_: object) -> None:
        _most.reset(self._before.pop())


def too_many(count: int) -> bool:
    """Whether `count` steps are more than one search may take.

    >>> too_many(10), too_many(10**9)
    (False, True)
    """
    return count > _most.get()


def affordable(steps: int) -> int:
    """How many indices a search may try that takes `steps` steps for each.

    >>> with budget(1000):
    ...     affordable(3)
    333
    """
    return _most.get() // steps


class Steps:
    """The steps that are left to one search."""

    __slots__ = ("left", "what")

    def __init__(self, what: str) -> None:
        self.what = what
        self.left = _most.get()

    def take(self, count: int = 1) -> None:
        """Take `count` steps; raises `Undecided` if fewer are left.  `what` begins its message."""
        self.left -= count
        if self.left < 0:
            raise Undecided(
                f"{self.what} is not decided: the search was given up after {_most.get()} steps; "
                f"{HOW_TO_TRY_MORE}"
            )
