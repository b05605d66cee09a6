"""Markdown from docstrings and program output."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator


def fenced(text: str, language: str) -> str:
    """A block of code."""
    return f"````{language}\n{text.rstrip()}\n````"


def html(text: str) -> str:
    """HTML as it is."""
    return f"````{{raw}} html\n{text}\n````"


def paragraphs(docstring: str) -> Iterator[str]:
    """A docstring as Markdown: examples and indented blocks as code, aligned names as a list."""
    for block in re.split(r"\n\s*\n", docstring):
        if block.lstrip().startswith(">>>"):
            yield fenced(re.sub(r" *# doctest:.*", "", inspect.cleandoc(block)), "pycon")
        elif block.startswith(" "):
            yield fenced(block, "text")
        elif re.match(r"`[^`]+`  ", block):
            yield "\n".join(map(_item, re.split(r"\n(?=`)", block)))
        elif block.strip():
            yield escaped(block)


def _item(entry: str) -> str:
    """ "`name`   its meaning" as an item of a list."""
    name, meaning = re.split(r"  +", entry, maxsplit=1)
    return f"- {escaped(name)}: {escaped(' '.join(meaning.split()))}"


def escaped(words: str) -> str:
    """Text as Markdown that shows it as it is; only backticks mark up."""
    parts = re.split(r"(`[^`]+`)", re.sub(r"``?([^`]+)``?", r"`\1`", words))
    return "".join(
        part if part.startswith("`") else re.sub(r"([\\*_<>\[\]$|#~{}])", r"\\\1", part)
        for part in parts
    )
