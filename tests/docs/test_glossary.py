"""The glossary says where each thing is in the repository: "Here: `name` in `path`"."""

import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HERE = re.findall(r"Here: .*", (ROOT / "docs/glossary.md").read_text(encoding="utf-8"))
NAMED = [pair for line in HERE for pair in re.findall(r"`([^`]+)` in `([^`]+)`", line)]
PATHS = [path for line in HERE for path in re.findall(r"`([^`.]+/[^`]*)`", line)]
PUBLIC = [name for line in HERE for name in re.findall(r"`layouts\.(\w+)`", line)]


@pytest.mark.parametrize(("name", "path"), NAMED)
def test_a_name_is_defined_in_its_file(name, path):
    text = (ROOT / path).read_text(encoding="utf-8")
    definition = rf"^ *(?:def|class) {name}\b|^ *(?:\w+, )*{name}\b[\w, ]*(?: =|: \w)"
    assert re.search(definition, text, re.MULTILINE)


@pytest.mark.parametrize("path", sorted(set(PATHS)))
def test_a_path_exists(path):
    assert (ROOT / path).exists()


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_is_there(name):
    assert hasattr(import_module("layouts"), name)
