"""Something to look at while work takes more than a second; nothing where no one looks."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain

PATIENCE = 1.0  # seconds


@contextmanager
def line(text: str) -> Iterator[None]:
    """A spinner with `text` while the block runs."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(text):
        yield


def bar(text: str, shares: Iterable[float]) -> None:
    """Run `shares`, which yields how much is done (0 to 1), under a bar once it takes long."""
    shares, start = iter(shares), time.monotonic()
    for share in shares:
        if sys.stderr.isatty() and share < 1 and time.monotonic() - start > PATIENCE:
            _show(text, chain([share], shares))


def _show(text: str, shares: Iterable[float]) -> None:
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(text, total=1.0)
        for share in shares:
            progress.update(task, completed=share)
