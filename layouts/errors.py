"""The exception of the package, its case that nothing was decided, and what messages share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
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


def check_call(
    function: Callable[..., Any], args: Sequence[Any], keywords: Mapping[str, Any] | None = None
) -> Any:
    """The arguments as `function` takes them, an ``inspect.BoundArguments``.

    Raises `LayoutError` unless it takes them.

    >>> check_call(did_you_mean, ["name", []]).args
    ('name', [])
    >>> check_call(did_you_mean, ["name"])
    Traceback (most recent call last):
    layouts.errors.LayoutError: did_you_mean(name, known) does not take these: missing a required \
argument: 'known'
    """
    from inspect import signature

    try:
        return signature(function).bind(*args, **keywords or {})
    except TypeError as error:
        takes = ", ".join(signature(function).parameters)
        raise LayoutError(f"{function.__name__}({takes}) does not take these: {error}") from None


def needed(module: str, by: str) -> Any:
    """`module`, which is imported where `by` uses it: the package runs without it.

    Raises `LayoutError` that says what to install, caused by the ``ModuleNotFoundError``.

    >>> needed("no_such_module", "what nobody calls")
    Traceback (most recent call last):
    layouts.errors.LayoutError: what nobody calls needs no_such_module, which is not installed: \
pip install no_such_module
    """
    from importlib import import_module

    try:
        return import_module(module)
    except ModuleNotFoundError as missing:
        if missing.name != module:
            raise
        raise LayoutError(
            f"{by} needs {module}, which is not installed: pip install {module}"
        ) from missing


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The known name that is closest to a name that is not, as the end of a message; or nothing.

    >>> did_you_mean("sm90_pingpang", ["sm90_pingpong", "sm80_wide"]), did_you_mean("x", ["sm90"])
    ('; did you mean sm90_pingpong?', '')
    """
    from difflib import get_close_matches

    close = get_close_matches(name, [*known], 1)
    return f"; did you mean {close[0]}?" if close else ""


def brief(value: object) -> str:
    """A value as messages show it: its text, or the type and shape of an array of many entries.

    >>> brief([128.0, 64]), brief("x" * 100)[-4:]
    ('[128.0, 64]', 'xxx…')
    """
    shape = getattr(value, "shape", ()) if hasattr(value, "dtype") else ()
    if isinstance(shape, tuple) and prod(shape) > 8:
        return f"{type(value).__name__} of shape {tuple(shape)}"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:79]}…"


def type_of(value: object) -> str:
    """The name of a value's type, with its article, as messages write it.

    >>> type_of(4), type_of([4]), type_of(...)
    ('an int', 'a list', 'an ellipsis')
    """
    name = type(value).__name__
    return f"{'an' if name.startswith((*'aeiouAEIOU', 'nd')) else 'a'} {name}"  # an ndarray
