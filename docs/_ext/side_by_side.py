"""Two texts side by side, as HTML: lines that both have once, changed lines next to each other.

Lines are made of tokens, which pygments colours. A line of code may have values: `plan.stages = 3`
after the code that names it; where a value differs, both are shown. docs/_static/ladder.css places
all of it; there is no script.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cache
from html import escape
from typing import TypeAlias

from pygments.lexers.python import PythonLexer
from pygments.token import STANDARD_TYPES

Token: TypeAlias = tuple[str, str]  # (pygments' CSS class, text)
ALIKE = 0.6  # the share of common words from which on two lines stand in one row
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
    shown: list[str] = []
    for equal, (i, j), (k, n) in _blocks(below, here):
        old, new = below[i:j], here[k:n]
        if equal:
            pairs = zip(old, new, strict=True)
            shown += [_html(line, was=before.values) for before, line in pairs]
        else:
            shown.append(_changed(old, new))
    return _block("".join(shown))


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


def _changed(below: Sequence[Line], here: Sequence[Line]) -> str:
    """Lines that replace others: like ones in the same row, their different words marked."""
    rows, marks = [0, 0], ({}, {})  # the next row of each side; the marked tokens of its lines
    places: tuple[dict[int, int], dict[int, int]] = ({}, {})
    for pair in (*_alike(below, here), (len(below), len(here))):
        for side, end in enumerate(pair):
            for line in range(len(places[side]), end):
                places[side][line] = rows[side]
                rows[side] += 1
        rows = [max(rows)] * 2
        if pair != (len(below), len(here)):
            for side, line in enumerate(pair):
                places[side][line] = rows[side]
                rows[side] += 1
            marks[0][pair[0]], marks[1][pair[1]] = _differing(below[pair[0]], here[pair[1]])
    shown = "".join(
        _html(line, marks[side].get(x, ()), kind=kind, row=places[side][x] + 1)
        for side, (kind, lines) in enumerate((("below", below), ("here", here)))
        for x, line in enumerate(lines)
    )
    return f'<div class="changed{"" if below and here else " alone"}">{shown}</div>'


def _alike(below: Sequence[Line], here: Sequence[Line]) -> list[tuple[int, int]]:
    """Pairs of lines that have most words in common, in order: the best such alignment."""
    words = [[Counter(re.findall(r"\w+", line.text)) for line in lines] for lines in (below, here)]
    best: dict[tuple[int, int], tuple[float, list[tuple[int, int]]]] = {}
    for i in range(len(below), -1, -1):
        for j in range(len(here), -1, -1):
            found = [best[at] for at in ((i + 1, j), (i, j + 1)) if at in best]
            if i < len(below) and j < len(here):
                old, new = words[0][i], words[1][j]
                common = 2 * (old & new).total() / max(1, old.total() + new.total())
                if common >= ALIKE:
                    score, pairs = best[i + 1, j + 1]
                    found.append((score + common, [(i, j), *pairs]))
            best[i, j] = max(found, key=lambda x: x[0], default=(0.0, []))
    return best[0, 0][1]


def _differing(below: Line, here: Line) -> tuple[set[int], set[int]]:
    """The tokens of two lines that differ."""
    words = [[text for _, text in line.tokens] for line in (below, here)]
    codes = SequenceMatcher(None, *words, False).get_opcodes()
    changes = [code[1:] for code in codes if code[0] != "equal"]
    old = {token for i, j, _, _ in changes for token in range(i, j)}
    return old, {token for _, _, k, m in changes for token in range(k, m)}


def _html(
    line: Line,
    marked: Container[int] = (),
    was: Mapping[str, str] | None = None,
    kind: str = "",
    row: int | None = None,
) -> str:
    """A line; wrapped parts of it are indented more than its start."""
    column, shown = 0, []
    for i, (token, text) in enumerate(line.tokens):
        shown.append(_token(token, text, line.links.get(column), i in marked))
        column += len(text)
    values = "".join(
        _value(name, value, (was or {}).get(name, value)) for name, value in line.values.items()
    )
    style = f"--indent:{len(line.text) - len(line.text.lstrip())}"
    style += f";grid-row:{row}" if row else ""
    kinds = f"line {kind}".strip()
    return f'<div class="{kinds}" style="{style}">{"".join(shown) or " "}{values}</div>'


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
