"""Expressions of the algebra, and the command line."""

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import layouts
from layouts import ComposedLayout, Layout, LayoutError, Swizzle, Table, symbols, table
from layouts.__main__ import main
from layouts.notation.expression import evaluate, operations

ROWS = Layout((8, 64), (64, 1))
TILE = ComposedLayout(Swizzle(3, 3, 3), 0, ROWS)
REPOSITORY = Path(__file__).parents[2]


# ------------------------------------------------------------------------------ expressions


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("composition(Swizzle(3,3,3), (8,64):(64,1))", TILE),
        ("Swizzle(3,3,3) @ (8,64):(64,1)", TILE),
        ("S<3,3,3> o 0 o (8,64):(64,1)", TILE),
        ("composition(Layout((6, 2), (8, 2)), (4,3):(3,1))", Layout(((2, 2), 3), ((24, 2), 8))),
        ("logical_divide((4,8):(8,1), (2:1, None))", Layout(((2, 2), 8), ((8, 16), 1))),
        ("logical_divide((4,8):(8,1), <2:1,_>)", Layout(((2, 2), 8), ((8, 16), 1))),
        ("logical_divide((4,2,3):(2,1,8), 4:2)", Layout(((2, 2), (2, 3)), ((4, 1), (2, 8)))),
        ("zipped_divide((8,64):(64,1), (4,16))[0]", Layout((4, 16), (64, 1))),
        ("coalesce(coalesce((2,(1,6)):(1,(6,2))))", Layout(12)),
        ("complement((2,2):(1,6), cotarget=24)", Layout((3, 2), (2, 12))),
        ("make_layout(4:2, 3:1)", Layout((4, 3), (2, 1))),
        ("size((4,8))", 32),
        ("Swizzle(3,3,3)(64)", 72),
        ("((4,8):(8,1))(1, 5)", 13),
        ("Layout((4,8),(8,1))((1,5))", 13),
        ("local_tile((128,64):(64,1), (32,16), (1,2))[1]", 2080),
        ("compatible((4,6), (4,(2,3)))", True),
        (
            "ComposedLayout(Swizzle(3,3,3), 0, 8:64, unit=16)",
            ComposedLayout(Swizzle(3, 3, 3), 0, Layout(8, 64), 16),
        ),
        ("2*(3+4) - 1", 13),
        ("(4 // 3, 7 % 4)", (1, 3)),
        ("_", None),
    ],
)
def test_an_expression_has_the_value_of_the_same_python(expression, value):
    assert evaluate(expression) == value


def test_an_unknown_name_is_a_positive_integer():
    m, n = symbols("m n")
    assert evaluate("(8*m,n):(1,8*m)") == Layout((8 * m, n), (1, 8 * m))


def test_every_public_operation_has_its_name():
    for name in layouts.__all__:
        if callable(getattr(layouts, name)) and name not in ("LayoutError", "parse", "evaluate"):
            assert name in operations() or name == "symbols"


@pytest.mark.parametrize(
    ("expression", "words", "column"),
    [
        ("compos(4:1)", "no operation compos; did you mean composition", 0),
        ("coalesce((4,8):(1,4)", "expected ',' or '\\)'", 20),
        ("size(4, 5, 6)", "size\\(x, mode\\) does not take these", 0),
        ("size()", "missing a required argument: 'x'", 0),
        ("make_layout(4:1, composition((4,3):(1,100), 4:3))", "has no layout", 17),
        ("size", "is an operation: write size", 0),
        ("(1,2) + 3", "between integers", 6),
        ("size((4,8), mode=7)", "mode 7", 0),
        ("4 // 0", "cannot be computed", 2),
        ("((4,8):(8,1))[2]", "mode 2", 0),
        ("os.system(1)", "expected", 0),
        ("Layout.__init__(4)", "cannot be read", 6),
        ("__import__(4)", "no operation __import__", 0),
    ],
)
def test_a_wrong_expression_gets_a_message_that_marks_the_place(expression, words, column):
    with pytest.raises(LayoutError, match=words) as caught:
        evaluate(expression)
    *_, shown, caret = str(caught.value).splitlines()
    assert shown == f"    {expression}"
    if column:
        assert caret == " " * (4 + column) + "^"


WORDS = "composition coalesce S<3,3,3> size o m None 4 8 0 ( ) : , [ ] < > @ * // - E = unit ? F3"


@given(st.lists(st.sampled_from(WORDS.split()), max_size=12), st.sampled_from(["", " "]))
def test_nothing_but_layout_error_is_raised(words, blank):
    with suppress(LayoutError):
        evaluate(blank.join(words))


# ---------------------------------------------------------------------------- command line


def test_the_command_line_shows_table_size_and_proof(capsys):
    assert main(["S<3,3,3> o 0 o (8,64):(64,1)"]) == 0
    shown = capsys.readouterr().out
    assert table(TILE).text() in shown
    assert "size 512, cosize 512" in shown
    assert "proved: S<3,3,3> o 0 o (8,64):(64,1) is injective" in shown


def test_the_command_line_shows_the_counterexample(capsys):
    assert main(["(4,2):(1,2)"]) == 0
    assert "coordinates (2,0) and (0,1) both have the offset 2" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("(4,8)", "(4,8):(1,4)\noffsets in elements of 16 bits"),
        ("size((4,8))", "32"),
        ("(4:1,_)", "(4:1,_)"),
        ("prove(Injective((4,2):(1,2)))", "refuted"),
        ("Swizzle(2,0,3)", "S<2,0,3> o 0 o (4,8):(8,1)\n"),
        ("(8*m,4):(4,1)", "size 32*m, cosize 32*m"),
        ("compare(naive=(4,8):(8,1), padded=(4,8):(9,1))", "padded: (4,8):(9,1)"),
        ("table_tv((4,2):(2,1), (2,4))", "T0 V1"),
        ("compatible(4, (2,2))", "True"),
    ],
)
def test_the_command_line_shows_any_value(expression, words, capsys):
    assert main([expression]) == 0
    assert words in capsys.readouterr().out


def test_options_go_to_the_table(capsys):
    assert main(["4:33", "--unit", "32", "--show", "bank", "--banks", "4"]) == 0
    assert "banks of 4 bytes; the layout counts elements of 32 bits" in capsys.readouterr().out
    assert main(["(2,64)", "--width", "60"]) == 0
    assert "columns 0 to 7 of 64" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["svg", "html", "latex"])
def test_a_file_is_written(name, tmp_path, capsys):
    file = tmp_path / "picture"
    assert main(["(4,8):(8,1)", f"--{name}", str(file)]) == 0
    assert file.read_text(encoding="utf-8") == getattr(table(Layout((4, 8), (8, 1))), name)()
    assert f"wrote {file}" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ["(4,,8)"],
        ["(4,8):(8,-1)"],
        ["composition((4,3):(1,100), 4:3)"],
        ["nonsense((4,8))"],
        ["(4,8)", "--unit", "0"],
        ["size((4,8))", "--svg", "never.svg"],
        ["(4,8)", "--svg", "/no/such/folder/picture.svg"],
    ],
)
def test_the_command_line_answers_bad_input_with_a_message(arguments, capsys):
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert said.strip()
    assert "Traceback" not in said


def test_python_m_layouts():
    done = subprocess.run(
        [sys.executable, "-m", "layouts", "(2,4):(4,1)"], capture_output=True, text=True, check=True
    )
    assert " 1 │ 4  5  6  7\n" in done.stdout


def test_a_reader_that_leaves_early_is_no_error():
    command = f"{sys.executable} -m layouts '(128,128)' | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=True, cwd=REPOSITORY
    )
    assert done.stdout == "(128,128):(1,128)\n0\n"
    assert done.stderr == ""


def test_a_table_is_a_value():
    assert isinstance(evaluate("table((4,8):(8,1))"), Table)
    assert table(ROWS) == table(ROWS)
    assert hash(table(ROWS)) == hash(table(ROWS))
