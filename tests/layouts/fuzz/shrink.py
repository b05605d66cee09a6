"""The smallest call with the same outcome.

Values that are simpler than a given one: a layout with a mode less, or one extent or stride
smaller; a composed layout with one of its parts simpler; and so on into tuples and statements.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from layouts import F2, ArithTuple, ComposedLayout, Layout
from layouts.values.value import Value

from .call import Law, Outcome, outcome


def shrunk(
    law: Law, arguments: tuple[Any, ...], fault: Outcome, seconds: float = 4.0
) -> tuple[tuple[Any, ...], Outcome]:
    """The smallest arguments found that have a fault of the same kind, and their outcome."""
    stop = time.perf_counter() + seconds
    going = True
    while going:
        going = False
        for candidate in simpler(arguments):
            if time.perf_counter() > stop:
                return arguments, fault
            found = outcome(law, candidate)
            if found.kind == fault.kind and cause(found) == cause(fault):
                arguments, fault, going = candidate, found, True
                break
    return arguments, fault


def cause(found: Outcome) -> str:
    """What faults with one cause have in common: of an exception, its type and its place."""
    return found.what.split(":")[0] if found.kind == "foreign" else ""


def simpler(x: Any) -> Iterator[Any]:
    """Values that are simpler than `x`, the simplest first."""
    if type(x) is int:
        yield from sorted({n for n in (0, 1, x // 2, x - 1) if 0 <= n < x})
    elif isinstance(x, tuple):
        for k, entry in enumerate(x):
            yield from ((*x[:k], less, *x[k + 1 :]) for less in simpler(entry))
    elif isinstance(x, Layout):
        yield from _simpler_layouts(x)
    elif isinstance(x, ArithTuple):
        yield from (ArithTuple([(path, 1)]) for path, _ in x.terms if x != ArithTuple([(path, 1)]))
    elif isinstance(x, Value):
        yield from _simpler_values(x)
    elif hasattr(x, "free_symbols"):
        yield from (1, 2, 4, *sorted(x.free_symbols - {x}, key=str))


def _simpler_values(x: Value) -> Iterator[Any]:
    """A value with one of its fields simpler; of a composed layout, also one of its layouts."""
    fields = x._fields()
    if isinstance(x, ComposedLayout):
        yield from (part for part in (x.outer, x.inner) if not isinstance(part, F2))
        if x.unit is not None:
            yield ComposedLayout(x.inner, x.offset, x.outer)
    for k, field in enumerate(fields):
        for less in simpler(field):
            yield from _made(type(x), *fields[:k], less, *fields[k + 1 :])


def _simpler_layouts(x: Layout) -> Iterator[Layout]:
    shape, stride = x.shape, x.stride
    if not isinstance(shape, tuple):
        for extent in simpler(shape):
            yield from _made(Layout, extent, stride)
        for step in simpler(stride):
            yield from _made(Layout, shape, step)
        return
    for k in range(len(shape)):
        yield from _made(Layout, shape[:k] + shape[k + 1 :], stride[:k] + stride[k + 1 :])
    if len(shape) == 1:
        yield from _made(Layout, shape[0], stride[0])
    for k, pair in enumerate(zip(shape, stride, strict=True)):
        for mode in _simpler_layouts(Layout(*pair)):
            sides = (
                (*x[:k], y, *x[k + 1 :]) for x, y in ((shape, mode.shape), (stride, mode.stride))
            )
            yield from _made(Layout, *sides)


def _made(cls: Any, *fields: Any) -> Iterator[Any]:
    """The value with these fields, if there is one."""
    try:
        yield cls(*fields)
    except (ValueError, TypeError):
        return
