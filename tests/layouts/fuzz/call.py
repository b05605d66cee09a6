"""One call of one operation, and its outcome."""

from __future__ import annotations

import signal
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any, NamedTuple

from layouts import ComposedLayout, Layout, LayoutError
from layouts.values.symbols import free_symbols, substitute
from layouts.values.value import Value

from . import model

SLOW = 1.0  # seconds of CPU: a slower call is a fault
STOP = 10.0  # seconds, after which a call is given up

#: Values of the symbols m and n for which a result is checked.
VALUES = ((1, 1), (2, 3), (3, 2), (5, 1))

#: Arguments with more elements are only timed.
CHECKED = 2048

#: Outcomes; those from "wrong" on are faults.
KINDS = ("right", "timed", "refused", "missed", "wrong", "foreign", "slow", "oracle")
FAULTS = KINDS[4:]


class Wrong(Exception):
    """A post-condition that does not hold, in words."""


class Law(NamedTuple):
    """An operation, its random arguments, and its post-condition.

    `holds` takes the result and the arguments, and raises `Wrong`.  If there are symbols, it is
    called for small values of them; `exactly` is called only if there are none.  `exists` says for
    refused arguments whether they have a result after all.
    """

    name: str
    call: Callable[..., Any]
    arguments: Callable[[Random], tuple[Any, ...]]
    holds: Callable[..., None]
    exactly: Callable[..., None] | None = None
    exists: Callable[..., bool] | None = None
    weight: float = 1.0
    by_value: bool = True  # whether the result is a layout, and symbols in it are replaced


class Outcome(NamedTuple):
    """What a call did, in a word and in a sentence.

    right     the result satisfies the post-condition
    timed     there is a result; its arguments have too many elements to check it
    refused   LayoutError
    missed    LayoutError, though brute force finds a result
    wrong     the result does not satisfy the post-condition
    foreign   another exception
    slow      the call took longer than `SLOW`
    oracle    the post-condition itself raised: a defect of the fuzzer, or a malformed result
    """

    kind: str
    what: str
    seconds: float = 0.0

    @property
    def is_fault(self) -> bool:
        """Whether the library, or the fuzzer, must be mended."""
        return self.kind in FAULTS


def outcome(law: Law, arguments: tuple[Any, ...]) -> Outcome:
    """Call the operation, and hold its result against the post-condition."""
    start = time.process_time()
    try:
        with _limited(STOP):
            result = law.call(*arguments)
    except LayoutError as error:
        seconds = time.process_time() - start
        return _slow("refused", seconds) or _refused(law, arguments, error, seconds)
    except _TooLong:
        return Outcome("slow", f"given up after {STOP:.0f} s", STOP)
    except Exception as error:
        return Outcome("foreign", f"{type(error).__name__} in {_place(error)}: {error}")
    seconds = time.process_time() - start
    if is_large(arguments):
        return _slow("answered", seconds) or Outcome("timed", "", seconds)
    return _slow("answered", seconds) or _checked(law, result, arguments, seconds)


def _slow(what: str, seconds: float) -> Outcome | None:
    return Outcome("slow", f"{what} after {seconds:.1f} s", seconds) if seconds > SLOW else None


def _refused(law: Law, arguments: Any, error: LayoutError, seconds: float) -> Outcome:
    checked = law.exists is not None and not free_symbols(arguments) and not is_large(arguments)
    if checked and law.exists(*arguments):
        return Outcome("missed", f"there is one, but: {error}", seconds)
    return Outcome("refused", str(error), seconds)


def is_large(x: Any, most: int = CHECKED) -> bool:
    """Whether a layout among the arguments has more elements than are looked at."""
    if isinstance(x, tuple):
        return any(is_large(part, most) for part in x)
    if isinstance(x, (Layout, ComposedLayout)):
        count = model.size(x)
        return type(count) is int and count > most
    return isinstance(x, Value) and is_large(x._fields(), most)


def _checked(law: Law, result: Any, arguments: tuple[Any, ...], seconds: float) -> Outcome:
    try:
        names = free_symbols(arguments)
        if not law.by_value or not names:
            law.holds(result, *arguments)
            if law.exactly is not None and not names:
                law.exactly(result, *arguments)
        else:
            for given in assignments(arguments):
                values = [substitute(x, given) for x in (result, *arguments)]
                if not any(is_large(x, CHECKED // 4) for x in values):
                    law.holds(*values)
    except Wrong as wrong:
        return Outcome("wrong", f"{_text(result)}: {wrong}", seconds)
    except Exception as error:
        lines = traceback.format_exception(error)[-4:]
        return Outcome("oracle", f"{_text(result)}: {''.join(lines)}", seconds)
    return Outcome("right", "", seconds)


def assignments(arguments: Any) -> Iterator[dict[Any, int]]:
    """The values of the symbols in `arguments` for which they are still layouts."""
    names = free_symbols(arguments)
    for numbers in VALUES:
        given = dict(zip(names, numbers, strict=False))
        try:
            substitute(arguments, given)
        except LayoutError:
            continue
        yield given


def _place(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{frame.filename.rsplit('/layouts/', 1)[-1]}:{frame.name}"


def _text(x: Any) -> str:
    try:
        return repr(x)[:300]
    except Exception as error:
        return f"a result whose repr raises {error!r}"


class _TooLong(BaseException):
    """A call that was given up."""


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raise `_TooLong` if the body takes longer."""

    def stop(*_: Any) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
