"""A spinner and a progress bar for slow work, on stderr; nothing if stderr is not a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

PATIENCE = 1.0  # seconds until a bar appears


@contextmanager
def spinner(text: str) -> Iterator[None]:
    """Show `text` and a spinner while the block runs."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(text):
        yield


@contextmanager
def bar(text: str) -> Iterator[Callable[[float], None]]:
    """A function that takes the fraction done, 0 to 1, and shows a bar after the first second."""
    start, until = time.monotonic(), ExitStack()
    show: Callable[[float], None] | None = None

    def tell(fraction: float) -> None:
        nonlocal show
        if show is None and fraction < 1 and time.monotonic() - start > PATIENCE:
            show = _show_bar(text, until)
        if show is not None:
            show(fraction)

    with until:
        yield tell if sys.stderr.isatty() else lambda fraction: None


def _show_bar(text: str, until: ExitStack) -> Callable[[float], None]:
    """Show a bar until the stack closes; the function moves it."""
    from rich.console import Console
    from rich.progress import Progress

    progress = until.enter_context(Progress(console=Console(stderr=True), transient=True))
    task = progress.add_task(text, total=1)
    return lambda fraction: progress.update(task, completed=fraction)
