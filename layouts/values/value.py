"""Frozen values, without the time that importing and running `dataclasses` takes."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, ClassVar

__all__ = ["Report", "Value"]


class Value:
    """A frozen value.

    Two values are equal if their classes and their fields are.  A value can be hashed, copied,
    pickled and matched, and its repr evaluates to it, unless it is a `Report`.  A format such as
    ``f"{value:>20}"`` is that of its text.  A class lists its fields, in the order of its
    constructor, as both ``__slots__`` and ``__match_args__``.

    >>> class Point(Value):
    ...     __slots__ = __match_args__ = ("x", "y")
    ...     def __init__(self, x, y):
    ...         self._set(x, y)
    >>> Point(1, 2), Point(1, 2) == Point(1, 2), Point(1, 2) == "a point"
    (Point(1, 2), True, False)
    """

    __slots__ = ()
    __match_args__: tuple[str, ...] = ()
    #: The fields by which values are compared, in one call: a tuple, or the field of a single one.
    _key: ClassVar[Callable[[Any], Any]] = type

    def __init_subclass__(cls) -> None:
        if cls.__match_args__:
            cls._key = attrgetter(*cls.__match_args__)

    def _set(self, *fields: Any) -> None:
        """Set the fields, in a constructor."""
        for name, field in zip(self.__match_args__, fields, strict=True):
            object.__setattr__(self, name, field)

    def _fields(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.__match_args__)

    def __setattr__(self, name: str, field: Any) -> None:
        raise AttributeError(f"{self!r} is frozen: make a new one with another {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{self!r} is frozen: its {name} cannot be deleted")

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Value) and type(other) is type(self):
            key = type(self)._key
            return bool(key(self) == key(other))
        return NotImplemented

    def __hash__(self) -> int:
        own = type(self)
        return hash((own, own._key(self)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self._fields()))})"

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._fields()


class Report(Value):
    """A value that answers a question.  Its repr is its text, so that a REPL shows the answer.

    >>> from layouts import Layout, sectors
    >>> sectors(Layout(32), unit=32)
    4 sectors per request, coalesced at every base (offsets in elements of 32 bits)
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)
