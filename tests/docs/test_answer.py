"""What the live pages answer, asked without a browser."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "live"))
import answer


def test_a_layout_has_table_facts_and_pictures():
    shown = json.loads(answer.show("(4,8):(8,1)"))
    assert shown["text"] == "(4,8):(8,1)"
    assert shown["facts"][0] == "size 32, cosize 32"
    assert shown["svg"].startswith("<svg")
    assert "tikz" in shown["latex"]


def test_what_is_no_layout_has_its_text():
    assert json.loads(answer.show("Swizzle(3,3,3)(64)")) == {"text": "72", "facts": []}


def test_an_error_marks_its_place():
    said = json.loads(answer.show("composition((4,8):(8,1), )"))["error"]
    assert "^" in said


@pytest.mark.parametrize(
    ("layout", "access", "lanes", "part"),
    [
        ("(64,64):(64,1)", "ldmatrix.x4", "", "32 wavefronts"),
        ("S<3,3,3> o 0 o (64,64):(64,1)", "ldmatrix.x4", "(16,2):(1,512)", "conflict-free"),
        ("(4,4):(4,1)", "ldmatrix.x4", "", "16 coordinates: ldmatrix.x4 asks for more lanes"),
        ("(64,64):(64,1)", "ldmatrix.x4", "7", "lanes are 7: they must be a layout"),
    ],
)
def test_an_access_has_its_cost_or_a_sentence(layout, access, lanes, part):
    assert part in json.loads(answer.show(layout, access, lanes))["banks"]


@pytest.mark.parametrize(
    ("expression", "right"),
    [("(4,8):(8,1)", True), ("(4,8):(1,4)", False), ("(4,8", False), ("7", False)],
)
def test_a_puzzle_is_judged(expression, right):
    verdict = json.loads(answer.judge(expression, "equivalent(answer, Layout((4, 8), (8, 1)))"))
    assert verdict["right"] is right
    assert bool(verdict["why"]) is not right
