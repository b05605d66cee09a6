"""Two texts side by side, as HTML: lines that both have once, changed lines next to each other.

Lines are made of tokens, which pygments colours. A line of code may have values: `plan.stages = 3`
after the code that names it; where a value differs, both are shown. docs/_static/ladder.css places
all of it; there is no script.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cache
from html import escape
from typing import TypeAlias

from pygments.lexers.python import PythonLexer
from pygments.token import STANDARD_TYPES

Token: TypeAlias = tuple[str, str]  # (pygments' CSS class, text)
ALIKE = 0.5  # the least similarity of two lines whose differences are marked
LONGEST = 60  # characters of a value that is shown although it does not differ


@dataclass(frozen=True)
class Line:
    """A line, the values of expressions in it, and the anchors of names by their columns."""

    tokens: tuple[Token, ...]
    values: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[int, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The line without colours and values."""
        return "".join(text for _, text in self.tokens)


def plain(text: str) -> list[Line]:
    """The lines of a text that is not code."""
    return [
        Line(tuple(("", word) for word in re.findall(r"\w+|\s+|.", line)))
        for line in text.splitlines()
    ]


@cache
def _coloured(source: str) -> tuple[tuple[Token, ...], ...]:
    lines: list[list[Token]] = [[]]
    for kind, text in PythonLexer().get_tokens(source):
        while kind not in STANDARD_TYPES:
            kind = kind.parent
        first, *rest = text.split("\n")
        lines[-1].append((STANDARD_TYPES[kind], first))
        lines += [[(STANDARD_TYPES[kind], piece)] for piece in rest]
    return tuple(tuple(token for token in line if token[1]) for line in lines[:-1])


def code(
    source: str,
    values: Mapping[int, Mapping[str, str]] | None = None,
    links: Mapping[int, Mapping[int, str]] | None = None,
) -> list[Line]:
    """The lines of Python code; values and links are by line, counted from 0."""
    return [
        Line(tokens, (values or {}).get(i, {}), (links or {}).get(i, {}))
        for i, tokens in enumerate(_coloured(source))
    ]


def alone(lines: Sequence[Line]) -> str:
    """A text by itself."""
    return _block("".join(map(_html, lines)))


def side_by_side(below: Sequence[Line], here: Sequence[Line]) -> str:
    """`here` beside `below`."""
    parts: list[str] = []
    for equal, (i, j), (k, n) in _blocks(below, here):
        old, new = below[i:j], here[k:n]
        if equal:
            pairs = zip(old, new, strict=True)
            parts += [_html(line, was=before.values) for before, line in pairs]
        else:
            marks = _marks(old, new)
            left, right = (
                "".join(_html(line, marked.get(x, ())) for x, line in enumerate(lines))
                for lines, marked in zip((old, new), marks, strict=True)
            )
            sides = (("below", left), ("here", right))
            both = "".join(f'<div class="{side}">{text}</div>' for side, text in sides if text)
            parts.append(f'<div class="changed">{both}</div>')
    return _block("".join(parts))


def _block(lines: str) -> str:
    return f'<div class="side-by-side highlight">{lines}</div>'


Span: TypeAlias = tuple[int, int]


def _blocks(below: Sequence[Line], here: Sequence[Line]) -> Iterator[tuple[bool, Span, Span]]:
    """(equal, lines of below, lines of here) in order.

    A single line that both have, between changes, counts as changed: so changes stay together.
    """
    matcher = SequenceMatcher(None, [x.text for x in below], [x.text for x in here], False)
    codes = matcher.get_opcodes()
    waiting: tuple[Span, Span] | None = None
    for n, (tag, i, j, k, m) in enumerate(codes):
        between = 0 < n < len(codes) - 1 and j - i == 1
        if tag == "equal" and not between:
            if waiting:
                yield False, *waiting
            waiting = None
            yield True, (i, j), (k, m)
        else:
            (first, _), (start, _) = waiting or ((i, j), (k, m))
            waiting = (first, j), (start, m)
    if waiting:
        yield False, *waiting


def _marks(
    below: Sequence[Line], here: Sequence[Line]
) -> tuple[dict[int, set[int]], dict[int, set[int]]]:
    """The tokens that differ, by line, where as many lines replace as many."""
    found: tuple[dict[int, set[int]], dict[int, set[int]]] = ({}, {})
    if len(below) != len(here):
        return found
    for x, (old, new) in enumerate(zip(below, here, strict=True)):
        words = [[text for _, text in line.tokens] for line in (old, new)]
        matcher = SequenceMatcher(None, *words, False)
        if matcher.ratio() >= ALIKE:
            changes = [code[1:] for code in matcher.get_opcodes() if code[0] != "equal"]
            found[0][x] = {t for i, j, _, _ in changes for t in range(i, j)}
            found[1][x] = {t for _, _, k, m in changes for t in range(k, m)}
    return found


def _html(line: Line, marked: Container[int] = (), was: Mapping[str, str] | None = None) -> str:
    """A line; wrapped parts of it are indented more than its start."""
    column, shown = 0, []
    for i, (kind, text) in enumerate(line.tokens):
        shown.append(_token(kind, text, line.links.get(column), i in marked))
        column += len(text)
    indent = len(line.text) - len(line.text.lstrip())
    values = "".join(
        _value(name, value, (was or {}).get(name, value)) for name, value in line.values.items()
    )
    return f'<div class="line" style="--indent:{indent}">{"".join(shown) or " "}{values}</div>'


def _token(kind: str, text: str, link: str | None, marked: bool) -> str:
    shown = f'<span class="{kind}">{escape(text)}</span>' if kind else escape(text)
    if link is not None:
        shown = f'<a href="#{link}">{shown}</a>'
    return f"<mark>{shown}</mark>" if marked and text.strip() else shown


def _value(name: str, value: str, was: str) -> str:
    """The value of an expression; that of the rung below before it, if it differs."""
    if was == value:
        short = len(value) <= LONGEST
        return f'<span class="value">{escape(name)} = {escape(value)}</span>' if short else ""
    return (
        f'<span class="value differs">{escape(name)} = '
        f"<del>{escape(was)}</del> <ins>{escape(value)}</ins></span>"
    )
