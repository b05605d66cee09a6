"""What the cases of a suite came to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple


class Case(NamedTuple):
    """A case of a suite: its name, and why it fails, or None."""

    name: str
    failure: str | None


def tried(name: str, test: Callable[..., Any], *arguments: Any) -> Case:
    """The case of one call."""
    try:
        test(*arguments)
    except Exception as error:
        return Case(name, f"{type(error).__name__}: {error}".split("\n")[0][:300])
    return Case(name, None)


Cases = Iterator[Case]
