"""The list of operations on the playground."""

import json
import re
import sys
from html import unescape
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
sys.path[:0] = [str(DOCS / "_ext"), str(DOCS / "live")]
pytest.importorskip("sphinx", reason="the docs extra is not installed")
import answer  # noqa: E402
import expression_examples  # noqa: E402
import playground_page  # noqa: E402


def test_an_example_of_a_docstring_is_written_as_an_expression():
    def documented():
        """
        >>> tile, by = Layout((4, 8), (8, 1)), 2
        >>> print(logical_divide(tile, by), logical_divide(tile, None)[0])
        >>> [f(tile) for f in (size, rank)]
        >>> table(tile, unit=16, show="bank")
        >>> composition(Swizzle(3, 3, 3), tile)
        """

    assert [*expression_examples.calls_of(documented)] == [
        "(4,8):(8,1)",
        "logical_divide((4,8):(8,1), 2)",
        "logical_divide((4,8):(8,1), _)",
        'table((4,8):(8,1), unit=16, show="bank")',
        "composition(S<3,3,3>, (4,8):(8,1))",
        "S<3,3,3>",
    ]


def test_every_example_has_an_answer():
    found = expression_examples.examples()
    for name in ("composition", "logical_divide", "banks", "prove", "mma", "compare", "local_tile"):
        assert f"{name}(" in found[name]
    for expression in found.values():
        assert expression_examples.is_defined(expression), expression


def test_the_page_lists_operations_with_a_line_and_an_example_and_has_its_first_answer():
    page = playground_page.playground((DOCS / "live" / "playground.html").read_text())
    items = re.findall(r'<div data-operation="(\w+)" data-call="([^"]*)">(.*?)</div>', page)
    calls = {name: unescape(call) for name, call, _ in items}
    assert calls["table"].startswith("table(layout, unit=None, show='offset'")
    assert len(items) > 90
    for name, _, words in items:
        assert re.search(rf'<a href="written/layouts/\w+.html#layouts.{name}">', words)
        assert re.search(r"<p>.*[.:]</p>", words), words
    shown = re.search(r'id="first">(.*?)</script>', page, re.DOTALL)
    assert json.loads(shown[1]) == json.loads(answer.show(*playground_page.FIRST))
