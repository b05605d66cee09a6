"""Reading layouts as CuTe prints them.

    (4,8):(8,1)                          shape:stride, as the DSL and this package print it
    (_4,_8):(_8,_1)                      C++, whose static integers have an underscore
    (4, 8):(8, 1)                        pycute, with blanks
    S<3,4,3>   Sw<3,4,3>   SW_3_4_3      a swizzle, as the DSL, C++ and pycute print it
    S<3,3,3> o 0 o (8,64):(64,1)         a composed layout: inner o offset o outer
    (4,8)                                a shape alone, an integer tuple

``str`` gives the first form of each, so that ``parse(str(x)) == x``; a unit is not printed.
"""

from __future__ import annotations

import re
from typing import Any

from .errors import LayoutError
from .layout import Layout
from .swizzle import ComposedLayout, Swizzle
from .tuples import IntTuple

__all__ = ["parse"]

TOKEN = re.compile(
    r"\s*(?:"
    r"Sw?<\s*(?P<bits>\d+)\s*,\s*(?P<base>\d+)\s*,\s*(?P<shift>-?\d+)\s*"
    r"(?:>|(?=\s*(?:o|$)))"  # the DSL prints S<2,0,-3 o 0 o ..., without the bracket
    r"|SW_(?P<bits_>\d+)_(?P<base_>\d+)_(?P<shift_>-?\d+)"
    r"|_?(?P<integer>\d+)"
    r"|(?P<sign>[():,o∘])"
    r")"
)


def parse(expression: str) -> Any:
    """The Layout, Swizzle, ComposedLayout or integer tuple that `expression` spells.

    ``A o B`` without an offset has offset 0.  Raises `LayoutError` with the place marked by a caret
    if `expression` cannot be read, and as the constructors do if what it says cannot be.

    >>> parse("(_4,_8):(_8,_1)"), parse("((2,4),8)")
    (Layout((4, 8), (8, 1)), ((2, 4), 8))
    >>> parse("Sw<3,3,3> o _0 o (_8,_64):(_64,_1)") == parse("S<3,3,3> o (8,64):(64,1)")
    True
    """
    return _Reader(expression).whole()


class _Reader:
    """Reads one expression from left to right; `token` is the one at hand, None at the end."""

    def __init__(self, expression: str) -> None:
        self.expression = expression
        self.end = 0
        self.step()

    def step(self) -> None:
        """Go to the next token."""
        self.start = len(self.expression) - len(self.expression[self.end :].lstrip())
        if self.start >= len(self.expression):
            self.token: Any = None
            return
        found = TOKEN.match(self.expression, self.end)
        if found is None:
            raise self.error("this cannot be read: expected an integer, a tuple or a swizzle")
        self.end = found.end()
        self.token = _value(found)

    def error(self, what: str) -> LayoutError:
        """`what`, with the place of the token at hand marked under the expression."""
        return LayoutError(f"parse: {what}\n    {self.expression}\n    {' ' * self.start}^")

    def whole(self) -> Any:
        """expression = part [o part [o part]]"""
        parts = [self.part()]
        while self.token in ("o", "∘"):
            self.step()
            parts.append(self.part())
        if self.token is not None:
            raise self.error("expected ':' or 'o' or the end")
        return _composed(parts, self)

    def part(self) -> Any:
        """part = swizzle | tuple [: tuple]"""
        if isinstance(self.token, Swizzle):
            swizzle = self.token
            self.step()
            return swizzle
        shape = self.tuple()
        if self.token != ":":
            return shape
        self.step()
        return Layout(shape, self.tuple())

    def tuple(self) -> IntTuple:
        """tuple = integer | ( [tuple [, tuple] ...] [,] )"""
        if isinstance(self.token, int):
            value = self.token
            self.step()
            return value
        if self.token != "(":
            raise self.error("expected an integer or '('")
        self.step()
        entries = []
        while self.token != ")":
            entries.append(self.tuple())
            if self.token == ",":
                self.step()
            elif self.token != ")":
                raise self.error("expected ',' or ')'")
        self.step()
        return tuple(entries)


def _value(token: re.Match[str]) -> Any:
    group = token.groupdict()
    if group["integer"] is not None:
        return int(group["integer"])
    if group["sign"] is not None:
        return group["sign"]
    names = ("bits", "base", "shift")
    return Swizzle(*(int(group[name] or group[f"{name}_"]) for name in names))


def _composed(parts: list[Any], reader: _Reader) -> Any:
    if len(parts) == 1:
        return parts[0]
    inner, outer = parts[0], parts[-1]
    offset = parts[1] if len(parts) == 3 else 0
    if len(parts) > 3 or not isinstance(outer, Layout) or not isinstance(offset, int):
        raise reader.error("a composed layout is written: swizzle o offset o shape:stride")
    return ComposedLayout(inner, offset, outer)
