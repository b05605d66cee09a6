"""The modes of a layout, or the entries of a tuple, selected, grouped, added and replaced.

Each operation does to the modes of a layout what it does to the entries of a tuple.  Of a composed
layout it takes the outer layout, and of a tensor its layout.  An integer is a tuple of one entry.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..errors import LayoutError, Undecided
from ..values.layout import Layout, joined
from ..values.steps import too_many
from ..values.swizzle import ComposedLayout
from ..values.tuples import is_int, rank, shallow, steps, text
from .on_tensors import on_tensor

__all__ = ["append", "group_modes", "prepend", "replace", "select"]


def select(x: Any, mode: int | list[int] | tuple[int, ...]) -> Any:
    """The modes of `x` whose numbers are `mode`, in that order (C++ ``select<Is...>``, DSL
    ``select``).

    Raises `LayoutError` if there is no such mode.

    >>> print(select(Layout((2, 3, 4)), [2, 0]), select((2, 3, 4), [0, 2]))
    (4,2):(6,1) (2, 4)
    """

    def chosen(modes: list[Any]) -> list[Any]:
        return [modes[_number("select", k, modes)] for k in steps(mode)]

    return _with_modes("select", x, chosen)


def group_modes(x: Any, begin: int, end: int | None = None) -> Any:
    """The modes from `begin` up to `end` as one mode; `end` is the rank by default (C++
    ``group_modes<B,E>`` and ``group<B,E>``).

    The function of the index stays the same.  Raises `LayoutError` unless
    ``0 <= begin < end <= rank(x)``.

    >>> print(group_modes(Layout((2, 3, 4)), 0, 2), group_modes((2, 3, 4), 1))
    ((2,3),4):((1,2),6) (2, (3, 4))
    """

    def grouped(modes: list[Any]) -> list[Any]:
        last = len(modes) if end is None else end
        if not is_int(begin) or not is_int(last) or not 0 <= begin < last <= len(modes):
            raise LayoutError(
                f"group_modes of {text(x)}, from {begin!r} to {end!r}: it takes begin < end, both "
                f"from 0 to {len(modes)}"
            )
        if not isinstance(getattr(x, "shape", x), tuple):
            return modes  # of 8:1 it is (8):(1), as in the DSL
        inner = modes[begin:last]
        one = joined(inner) if isinstance(inner[0], Layout) else tuple(inner)
        return [*modes[:begin], one, *modes[last:]]

    return _with_modes("group_modes", x, grouped)


def append(x: Any, elem: Any = None, up_to_rank: int | None = None) -> Any:
    """`x` with the mode `elem` after its own (C++ ``append``, DSL ``append``).

    With `up_to_rank`, as many of them as make that rank, none if `x` has it (C++ ``append<N>``).
    For a layout, `elem` is a layout, 1:0 by default.

    >>> print(append(Layout((2, 3)), Layout(4, 6)), append(Layout(8), up_to_rank=3))
    (2,3,4):(1,2,6) (8,1,1):(1,0,0)
    >>> append((2, 3), (4, 5))
    (2, 3, (4, 5))
    """
    added = _added("append", x, elem, up_to_rank)
    return _with_modes("append", x, lambda modes: [*modes, *added]) if added else x


def prepend(x: Any, elem: Any = None, up_to_rank: int | None = None) -> Any:
    """`x` with the mode `elem` before its own; as `append` (C++ ``prepend``, DSL ``prepend``).

    >>> print(prepend(Layout((2, 3)), Layout(4, 6)), prepend((2, 3), 4))
    (4,2,3):(6,1,2) (4, 2, 3)
    """
    added = _added("prepend", x, elem, up_to_rank)
    return _with_modes("prepend", x, lambda modes: [*added, *modes]) if added else x


def replace(x: Any, mode: int, elem: Any) -> Any:
    """`x` with `elem` in place of mode number `mode` (C++ ``replace<N>``).

    >>> print(replace(Layout((2, 3)), 0, Layout(4, 6)), replace((2, 3), 1, (4, 5)))
    (4,3):(6,2) (2, (4, 5))
    """

    def replaced(modes: list[Any]) -> list[Any]:
        number = _number("replace", mode, modes)
        return [*modes[:number], elem, *modes[number + 1 :]]

    return _with_modes("replace", x, replaced)


# ------------------------------------------------------------------------------------ parts


def _with_modes(name: str, x: Any, change: Callable[[list[Any]], list[Any]]) -> Any:
    """`x` with its modes changed."""
    if isinstance(x, Layout):
        return joined(change(list(x)))
    if isinstance(x, ComposedLayout):
        return x.over(_with_modes(name, x.outer, change))
    if isinstance(x, tuple):
        return shallow(tuple(change(list(x))))
    if hasattr(x, "with_layout"):
        return on_tensor(name, partial(_with_modes, name, change=change), x)
    if is_int(x) or hasattr(x, "free_symbols"):
        return shallow(tuple(change([x])))
    raise LayoutError(f"{name} of {x!r}: it takes a layout, a tuple or a tensor")


def _number(name: str, k: Any, modes: list[Any]) -> int:
    if not is_int(k) or not 0 <= k < len(modes):
        raise LayoutError(f"{name}: mode {k!r} must be from 0 to {len(modes) - 1}")
    return int(k)


def _added(name: str, x: Any, elem: Any, up_to_rank: int | None) -> list[Any]:
    """The modes to add: one, or as many as make the rank."""
    if elem is None and not isinstance(x, tuple) and not is_int(x):
        elem = Layout(1, 0)
    if up_to_rank is None:
        return [elem]
    if not is_int(up_to_rank):
        raise LayoutError(f"{name}: up_to_rank {up_to_rank!r} must be an integer")
    if too_many(up_to_rank):
        raise Undecided(f"{name}: {up_to_rank} modes are too many; layouts.budget sets how many")
    return [elem] * max(0, up_to_rank - rank(x))
