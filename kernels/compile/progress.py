"""Progress of slow work, on stderr: a spinner or a bar on a terminal, elsewhere a few lines.

A bar appears after one second, and the first line after five; a spinner appears at once.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from threading import Event, Thread
from typing import TypeVar

Item = TypeVar("Item")

PATIENCE = 1.0  # seconds until a bar appears
FIRST_LINE, LONGEST_PAUSE = 5.0, 60.0  # lines at 5, 10, 20, 40, 80, 140, 200, … seconds


@contextmanager
def spinner(text: str) -> Iterator[None]:
    """Show `text` while the block runs."""
    if _draws():
        from rich.console import Console

        with Console(stderr=True).status(text):
            yield
        return
    lines, done = Lines(text), Event()

    def wait() -> None:
        while not done.wait(lines.pause):
            lines.report()

    Thread(target=wait, daemon=True).start()
    try:
        yield
    finally:
        done.set()


@contextmanager
def bar(text: str) -> Iterator[Callable[[float], None]]:
    """A function that takes the fraction done, 0 to 1, and shows it."""
    if not _draws():
        yield Lines(text).report
        return
    start, until = time.monotonic(), ExitStack()
    show: Callable[[float], None] | None = None

    def report(fraction: float) -> None:
        nonlocal show
        if show is None and fraction < 1 and time.monotonic() - start > PATIENCE:
            show = _show_bar(text, until)
        if show is not None:
            show(fraction)

    with until:
        yield report


def track(items: Iterable[Item], text: str, total: int) -> Iterator[Item]:
    """The items, of which there are `total`, and a bar that says how many are done."""
    with bar(text) as report:
        for done, item in enumerate(items, 1):
            yield item
            report(done / total)


class Lines:
    """Lines about one piece of work, at growing intervals."""

    def __init__(self, text: str) -> None:
        self.text, self.start, self.next = text, time.monotonic(), FIRST_LINE

    @property
    def pause(self) -> float:
        """Seconds until the next line."""
        return max(0.0, self.start + self.next - time.monotonic())

    def report(self, fraction: float | None = None) -> None:
        """Print a line if the time has come for one."""
        seconds = time.monotonic() - self.start
        if seconds < self.next or fraction == 1:
            return
        self.next = seconds + min(seconds, LONGEST_PAUSE)
        share = ""
        if fraction:
            share = f", {fraction:.1%} done, about {duration(seconds / fraction - seconds)} left"
        print(f"{self.text}: {duration(seconds)}{share}", file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    """A duration in its natural unit.

    >>> duration(7.2), duration(119), duration(125), duration(9000)
    ('7 s', '119 s', '2 min', '2.5 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _draws() -> bool:
    """Whether stderr is a terminal, and rich is there to draw on it."""
    if not sys.stderr.isatty():
        return False
    from importlib.util import find_spec

    return find_spec("rich") is not None


def _show_bar(text: str, until: ExitStack) -> Callable[[float], None]:
    """Show a bar until the stack closes; the function moves it."""
    from rich.console import Console
    from rich.progress import Progress

    progress = until.enter_context(Progress(console=Console(stderr=True), transient=True))
    task = progress.add_task(text, total=1)
    return lambda fraction: progress.update(task, completed=fraction)
