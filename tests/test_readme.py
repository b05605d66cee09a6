"""What the README shows is what happens."""

import doctest
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_every_example_gives_what_it_says():
    failed, tried = doctest.testfile(str(README), module_relative=False)
    assert tried > 5
    assert failed == 0
