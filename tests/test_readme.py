"""What the README shows is what happens."""

import doctest
from pathlib import Path

from layouts.expression import evaluate

ROOT = Path(__file__).parents[1]
PICTURE = (
    "compare(naive=(8,8):(8,1), padded=(8,8):(9,1), swizzled=S<3,0,3> o 0 o (8,8):(8,1), unit=128)"
)


def test_every_example_gives_what_it_says():
    failed, tried = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert tried > 5
    assert failed == 0


def test_the_picture_is_what_the_library_draws():
    """To draw it anew: python -m layouts "EXPRESSION" --svg docs/picture.svg"""
    assert (ROOT / "docs" / "picture.svg").read_text() == evaluate(PICTURE).svg()
    assert PICTURE in (ROOT / "README.md").read_text()
