"""Something to look at while work takes more than a second; nothing where no one looks."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

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


@contextmanager
def bar(text: str) -> Iterator[Callable[[float], None]]:
    """A bar that is told the share that is done (0 to 1), seen once it takes long."""
    start, shown = time.monotonic(), ExitStack()
    show: Callable[[float], None] | None = None

    def tell(share: float) -> None:
        nonlocal show
        if show is None and share < 1 and time.monotonic() - start > PATIENCE:
            show = _shown(text, shown)
        if show is not None:
            show(share)

    with shown:
        yield tell if sys.stderr.isatty() else lambda share: None


def _shown(text: str, until: ExitStack) -> Callable[[float], None]:
    from rich.console import Console
    from rich.progress import Progress

    progress = until.enter_context(Progress(console=Console(stderr=True), transient=True))
    task = progress.add_task(text, total=1)
    return lambda share: progress.update(task, completed=share)
