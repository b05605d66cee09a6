"""A reader of C++ CuTe's unit tests: their layouts as values of this library.

It knows as much C++ as those tests are written in: ``auto a = make_layout(Shape<_4,_2>{}, 7);`` and
statements that are one call.  A statement in any other form is left out, and so are loops.

``_4`` is known when C++ is compiled, and is 4 here.  ``4`` is known at run time, and is a symbol
here; what C++ computes at run time, comparisons among it, is computed with its number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import layouts as L
from layouts import ComposedLayout, Layout, LayoutError, Swizzle
from layouts.values.symbols import free_symbols, substitute


class Call(NamedTuple):
    """A statement that is a call: its function, its arguments, and their text."""

    function: str
    arguments: tuple[Any, ...]
    text: str


class Comparison(NamedTuple):
    """``left == right``, which is as true as their numbers are equal."""

    left: Any
    right: Any

    def __bool__(self) -> bool:
        return bool(numbers(self.left) == numbers(self.right))

    @property
    def at_run_time(self) -> bool:
        """Whether C++ knows the sides at run time only."""
        return bool(free_symbols(tuple(self)))


class Unread(Exception):
    """A form of C++ that is not known here."""


TOKEN = re.compile(r"[A-Za-z_]\w*|\d+|==|::|\S")
NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|^\s*#[^\n]*|"[^"\n]*"', re.DOTALL | re.MULTILINE)
SPACES = ("cute", "std", "cutlass")
OPENING, CLOSING = "({[", ")}]"


def calls(source: str) -> Iterator[Call]:
    """The calls that are statements of the TEST functions of a file."""
    for test in re.split(r"^TEST\(", NOISE.sub("", source), flags=re.MULTILINE)[1:]:
        tokens = [token for token in TOKEN.findall(test) if token != "::" and token not in SPACES]
        yield from _block(tokens[tokens.index("{") + 1 :])


def _block(tokens: list[str]) -> Iterator[Call]:
    """The calls of a block; a name of an inner block hides that of an outer one."""
    scopes: list[dict[str, Any]] = [{}]
    while tokens and scopes:
        if tokens[0] == "{":
            scopes.append(dict(scopes[-1]))
            tokens = tokens[1:]
        elif tokens[0] == "}":
            scopes.pop()
            tokens = tokens[1:]
        elif tokens[0] in ("for", "if"):
            tokens = tokens[_end(tokens, ")") :]
            tokens = tokens[_end(tokens, "}" if tokens[0] == "{" else ";") :]
        else:
            end = _end(tokens, ";")
            yield from _statement(tokens[: end - 1], scopes[-1])
            tokens = tokens[end:]


def _end(tokens: list[str], closing: str) -> int:
    """The place after the first `closing` that is not inside brackets."""
    depth = 0
    for place, token in enumerate(tokens):
        depth += (token in OPENING) - (token in CLOSING)
        if depth == 0 and token == closing:
            return place + 1
    return len(tokens)


def _statement(tokens: list[str], scope: dict[str, Any]) -> Iterator[Call]:
    """The call that a statement is, if it is one; a definition goes into the scope."""
    if "auto" in tokens and "=" in tokens:
        place = tokens.index("=")
        scope.pop(tokens[place - 1], None)
        for value in _values(tokens[place + 1 :], scope):
            scope[tokens[place - 1]] = value
    elif len(tokens) > 2 and tokens[1] == "(" and tokens[-1] == ")":
        for values in _values(["args", *tokens[1:]], scope):
            arguments = values if isinstance(values, tuple) else (values,)
            arguments = tuple(x if isinstance(x, Comparison) else numbers(x) for x in arguments)
            yield Call(tokens[0], arguments, "".join(tokens[2:-1]))


def _values(tokens: list[str], scope: dict[str, Any]) -> Iterator[Any]:
    """The value of an expression if it can be read; an error of this library is a value."""
    try:
        yield Reader(tokens, scope).whole()
    except LayoutError as error:
        yield error
    except (Unread, IndexError):
        return


class Reader:
    """The value of an expression, or of a type, which stands for its value: ``_4`` is 4."""

    def __init__(self, tokens: list[str], scope: dict[str, Any]) -> None:
        self.tokens, self.scope, self.place = tokens, scope, 0
        self.is_type = False  # inside <>, where every number is known

    def whole(self) -> Any:
        """The value of all tokens."""
        value = self.value()
        if self.place != len(self.tokens):
            raise Unread(" ".join(self.tokens[self.place :]))
        return value

    def take(self, wanted: str = "") -> str:
        """The next token, which must be `wanted` if that is given."""
        token = self.tokens[self.place]
        if wanted and token != wanted:
            raise Unread(f"{token} for {wanted}")
        self.place += 1
        return token

    @property
    def next(self) -> str:
        """The next token, or nothing."""
        return self.tokens[self.place] if self.place < len(self.tokens) else ""

    def value(self) -> Any:
        """An expression of products and comparisons."""
        value = self.factor()
        while self.next in ("*", "=="):
            if self.take() == "*":
                value = value * self.factor()
            else:
                value = Comparison(value, self.factor())
        return value

    def factor(self) -> Any:
        """A number, a name, a type, a call, or an expression in parentheses."""
        token = self.take()
        if token == "(":
            value = self.value()
            self.take(")")
            return value
        if token == "-":
            return -self.factor()
        if token.isdigit():
            return int(token) if self.is_type else run_time(int(token))
        if re.fullmatch(r"_m?\d+", token):
            return self.braced(int(token[1:].replace("m", "-")))
        if token in self.scope and self.next not in ("(", "<"):
            return self.scope[token]
        return self.named(token)

    def named(self, name: str) -> Any:
        """What a type of CuTe's is, or a function gives."""
        types = self.arguments("<", ">") if self.next == "<" else []
        if name in TYPES:
            return self.braced(TYPES[name](*types))
        if name in FUNCTIONS and self.next == "(":
            value = FUNCTIONS[name](*types, *self.arguments("(", ")"))
            if name == "decltype":
                self.take("value")
            return value
        raise Unread(name)

    def braced(self, value: Any) -> Any:
        """The value of a type, after the braces that make one of it."""
        if self.next == "{":
            self.arguments("{", "}")
        return value

    def arguments(self, opening: str, closing: str) -> list[Any]:
        """The values between two brackets."""
        self.take(opening)
        around, self.is_type = self.is_type, opening == "<"
        found = []
        while self.next != closing:
            found.append(self.value())
            if self.next != closing:
                self.take(",")
        self.take(closing)
        self.is_type = around
        return found


def run_time(number: int) -> Any:
    """A symbol for a number that is known at run time; 0 is no positive integer, and stays."""
    return L.symbols(f"run_time_{number}") if number else 0


def numbers(x: Any) -> Any:
    """`x` with their numbers for such symbols."""
    return substitute(x, {each: int(str(each).split("_")[-1]) for each in free_symbols(x)})


def _on_numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *arguments: function(*map(numbers, arguments))


def _tuple(*entries: Any) -> tuple[Any, ...]:
    return entries


def _entry(t: Any, mode: int | None = None) -> Any:
    return t if mode is None else t[mode]


def _number(value: int) -> int:
    return value


def _make_layout(*parts: Any) -> Layout:
    if parts[-1] == "row":
        return Layout(parts[0], compact_row_major(parts[0]))
    return L.make_layout(*(part for part in parts if part != "column"))


def compact_row_major(shape: Any, start: int = 1) -> Any:
    """The strides of the compact layout whose last mode is fastest."""
    reversed_shape = _reversed(shape)
    return _reversed(compact_col_major(reversed_shape, start))


def compact_col_major(shape: Any, start: int = 1) -> Any:
    """The strides of the compact layout whose first mode is fastest."""
    return L.composition(Layout(10**9, start), Layout(shape)).stride


def _reversed(t: Any) -> Any:
    return tuple(map(_reversed, reversed(t))) if isinstance(t, tuple) else t


TYPES: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("Int", "C"), _number),
    **dict.fromkeys(("Shape", "Stride", "Tile", "Coord"), _tuple),
    "Layout": Layout,
    "E": L.E,
    "Swizzle": Swizzle,
    "ComposedLayout": ComposedLayout,
    **dict.fromkeys(("GenRowMajor", "LayoutRight"), lambda: "row"),
    **dict.fromkeys(("GenColMajor", "LayoutLeft"), lambda: "column"),
}

FUNCTIONS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("make_shape", "make_stride", "make_tuple", "make_tile", "make_coord"), _tuple),
    "make_layout": _make_layout,
    "compact_col_major": compact_col_major,
    "compact_row_major": compact_row_major,
    **{name: getattr(L, name) for name in ("composition", "logical_divide")},
    **{
        name: _on_numbers(getattr(L, name))
        for name in ("weakly_congruent", "congruent", "compatible")
    },
    "args": _tuple,
    "shape": lambda *of: _entry(of[-1].shape, *of[:-1]),
    "stride": lambda *of: _entry(of[-1].stride, *of[:-1]),
    **dict.fromkeys(("bool", "decltype"), _number),
}
