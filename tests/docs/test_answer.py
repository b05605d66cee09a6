"""The answers to the live pages, without a browser."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import layouts

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "live"))
import answer


def test_a_layout_has_table_facts_and_pictures():
    shown = json.loads(answer.show("(4,8):(8,1)"))
    assert shown["text"] == "(4,8):(8,1)"
    assert shown["facts"][0] == "size 32, cosize 32"
    assert "data-shape" in shown["html"]
    for form, part in (("svg", "<svg"), ("latex", "tikz")):
        assert part in json.loads(answer.drawing("(4,8):(8,1)", "", form))["text"]
    assert "of 32 bits" in answer.drawing("compare((4,8):(8,1))", "32", "svg")


def test_other_values_have_only_a_text():
    assert json.loads(answer.show("Swizzle(3,3,3)(64)")) == {"text": "72", "facts": []}


def test_an_instruction_is_the_picture_of_its_fragments():
    shown = json.loads(answer.show('mma("m16n8k16", "bf16")'))
    assert shown["text"] == ""
    assert "mma.m16n8k16" in shown["html"]
    assert "T31 V7" in shown["html"]


def test_an_error_marks_its_place():
    said = json.loads(answer.show("composition((4,8):(8,1), )"))["error"]
    assert "^" in said


@pytest.mark.parametrize(
    ("layout", "access", "lanes", "part"),
    [
        ("(64,64):(64,1)", "ldmatrix.x4", "", "32 wavefronts"),
        ("(8,64):(64,1)", "ldmatrix.x4", "", "32 wavefronts"),
        ("(64,8):(1,64)", "ldmatrix.x4", "", "32 wavefronts"),
        ("S<3,3,3> o 0 o (8,64):(64,1)", "ld.shared.v4.b32", "", "4 wavefronts, conflict-free"),
        ("(64,64):(64,1)", "ldmatrix.x1", "300000000:1", "there are 300000000, and a block has"),
        ("(64,64):(64,1)", "ldmatrix.x1", "(8,4):(1@0,1@1)", "they must be a layout, lane"),
        ("(4,8):(1@0,1@1)", "ldmatrix.x1", "", "gives coordinates, not addresses"),
        ("(64,64):(64,1)", "ldmatrix.x5", "", "'ldmatrix.x5' is not an instruction of the table"),
        ("(64,64):(64,1)", "ld.shared.v4.f32", "", "ld.shared.v4.b32 at"),
        ("(m,8):(8,1)", "ldmatrix.x1", "", "(m,8):(8,1) has symbols: give them values"),
        ("table((8,64):(64,1))", "ldmatrix.x1", "", "(8,64):(64,1): ldmatrix.x1 at (8,1):(64,8)"),
        ("compare(a=(8,8):(8,1), b=(8,8):(9,1), unit=128)", "ldmatrix.x1", "", "\nb: ldmatrix.x1"),
        ("S<3,3,3> o 0 o (64,64):(64,1)", "ldmatrix.x4", "(16,2):(1,512)", "conflict-free"),
        ("(4,4):(4,1)", "ldmatrix.x4", "", "16 coordinates, too few for ldmatrix.x4"),
        ("(64,64):(64,1)", "ldmatrix.x4", "7", "lanes 7: they must be a layout"),
    ],
)
def test_an_access_has_a_cost_or_a_message(layout, access, lanes, part):
    assert part in json.loads(answer.show(layout, access, lanes))["banks"]


@pytest.mark.parametrize("access", layouts.INSTRUCTIONS)
def test_every_instruction_has_a_cost_on_the_first_page(access):
    shown = json.loads(answer.show("S<3,3,3> o 0 o (8,64):(64,1)", access))
    assert "wavefront" in shown["banks"]


CHECKS = json.dumps(
    [["size(answer) == 32", "it has {size(answer)} indices"], ["answer(0, 1) == 1", "not rows"]]
)


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("(4,8):(8,1)", ""),
        ("(4,8):(1,4)", "not rows"),
        ("(4,4):(4,1)", "it has 16 indices"),
        ("32:1", "the extent 32 takes one integer"),
        ("S<3,3,3> o 0 o (4,8):(8,1)", ""),
    ],
)
def test_a_puzzle_is_judged(expression, why):
    verdict = json.loads(answer.judge(expression, CHECKS))
    assert verdict["right"] == (not why)
    assert why in verdict["why"]
    assert "<table" in verdict["html"]


@pytest.mark.parametrize("expression", ["7", "(4,8)", "Swizzle(3,3,3)"])
def test_an_answer_that_is_no_layout_is_told_so(expression):
    verdict = json.loads(answer.judge(expression, CHECKS))
    assert verdict["right"] is False
    assert "is not a layout" in verdict["why"]


def test_a_puzzle_says_what_is_shown_of_its_answer():
    def html(*given):
        return json.loads(answer.judge("(4,8):(8,1)", CHECKS, *given))["html"]

    assert "banks" in html("table(answer, banks=16)")
    assert "banks" not in html()
    assert "T3" in html("table_tv(answer, (8, 4))")
    assert html("table_tv(answer, (2, 2))") == html()  # it leaves this tile


def test_a_condition_that_raises_tells_why():
    checks = json.dumps([["wgmma_descriptor(answer, 'K')", ""]])
    assert "is a Swizzle over a Layout" in json.loads(answer.judge("8:1", checks))["why"]


def test_an_unreadable_answer_has_an_error():
    assert "^" in json.loads(answer.judge("(4,8", CHECKS))["error"]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("composition(ldmatrix, 3)", "the operation ldmatrix must be a Layout"),
        ("instruction(ldmatrix)", "ldmatrix is not an access"),
        ("compare((4,4), 7)", "it must be a Layout"),
        ("table((3000,3000), limit=100000)", "limit 100000: it must be an integer from 1 to 1024"),
    ],
)
def test_an_error_has_a_readable_message(expression, message):
    said = json.loads(answer.show(expression))["error"]
    assert message in said
    assert " at 0x" not in said


@pytest.mark.parametrize("expression", ["(64,64,64)", "table((999,999):(999,1), limit=300)"])
def test_a_page_shows_a_limited_number_of_cells(expression):
    shown = json.loads(answer.show(expression))
    assert shown["html"].count("<td") <= answer.MOST_CELLS
    assert "1 of 64 panels" in shown["html"] or "cut to 64" in shown["html"]


BROKEN = """
import sys
sys.modules["sympy"] = sys.modules["mpmath"] = None  # as in a browser
sys.path[:0] = [{root!r}, {live!r}]
import answer
for expression in ("(m,4):(4,1)", "ceiling(m/2)", "prove(SwizzleInvolution(S<3,4,3>))"):
    print(answer.show(expression))
print(answer.show("(8/2,ceiling(15/2)):(8,1)")[:20])
"""


def test_an_operation_has_steps_and_a_layout_has_none():
    call = "composition((6,2):(8,2), (4,3):(3,1))"
    assert json.loads(answer.steps(call))["text"].startswith(f"{call} = ((2,2),3):((24,2),8)")
    assert "(2,1) times (8,1)" in json.loads(answer.steps("((4,8):(8,1))(6)"))["text"]
    for expression in ("(4,8):(8,1)", "size((4,8))", "compare((8,8):(8,1), (8,8):(9,1))"):
        assert json.loads(answer.steps(expression)) == {}


def test_the_width_of_an_element_is_that_of_the_page_or_of_the_expression():
    for expression in ("(8,8):(8,1)", "table((8,8):(8,1))", "compare((8,8):(8,1))"):
        assert "of 32 bits" in json.loads(answer.show(expression, "", "", "32"))["html"]
    given = "table((8,8):(8,1), unit=64)"
    assert "of 64 bits" in json.loads(answer.show(given, "", "", "32"))["html"]
    assert "32 bits" in json.loads(answer.show("(8,8):(8,1)", "ldmatrix.x1", "", "32"))["banks"]


LONG = "+".join("1" * 9000)


@pytest.mark.parametrize(
    "expression",
    [f"({LONG}", f"composition({LONG})", f"size({LONG}", f"'{LONG}'", "x" * 9000, f"({'(' * 9000}"],
)
def test_a_message_can_be_read(expression):
    for found in (answer.show(expression), answer.show("(8,8)", "ldmatrix.x1", expression)):
        shown = json.loads(found)
        assert len(shown.get("error", shown.get("banks", ""))) < 1.1 * answer.MOST_CHARACTERS


def test_without_sympy_an_answer_asks_for_it():
    root = Path(__file__).parents[2]
    program = BROKEN.format(root=str(root), live=str(root / "docs" / "live"))
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    *needing, plain = run.stdout.splitlines()
    assert len(needing) == 3, run.stderr
    assert all(json.loads(line) == {"needs": "sympy"} for line in needing)
    assert plain.startswith('{"text": "(4,8)')


def test_what_python_prints_has_the_picture_of_its_value():
    assert answer.show("print(ldmatrix(4))") == answer.show("ldmatrix(4)")
