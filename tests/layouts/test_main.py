"""The command line of `layouts`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from layouts import ComposedLayout, Layout, Swizzle, Table, table
from layouts.__main__ import main
from layouts.notation.expression import evaluate

ROWS = Layout((8, 64), (64, 1))
TILE = ComposedLayout(Swizzle(3, 3, 3), 0, ROWS)
REPOSITORY = Path(__file__).parents[2]


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
        ("(4,8)", "(4,8):(1,4)\noffsets\n"),
        ("size((4,8))", "32"),
        ("(4:1,_)", "(4:1,_)"),
        ("prove(Injective((4,2):(1,2)))", "refuted"),
        ("Injective((4,8):(7,1))", "refuted: (4,8):(7,1) is injective\n  coordinates (1,0) and"),
        ("(Injective(4:1), Bijective(4:2))", "(proved: 4:1 is injective"),
        ("Swizzle(2,0,3)", "S<2,0,3> o 0 o (4,8):(8,1)\n"),
        ("(8*m,4):(4,1)", "size 32*m, cosize 32*m"),
        ("compare(naive=(4,8):(8,1), padded=(4,8):(9,1))", "padded: (4,8):(9,1)"),
        ("table_tv((4,2):(2,1), (2,4))", "T0 V1"),
        ("compatible(4, (2,2))", "True"),
        ("(2*4,<4,2>)", "(8,(4,2)):(1,(8,32))\noffsets\n"),
    ],
)
def test_the_command_line_shows_any_value(expression, words, capsys):
    assert main([expression]) == 0
    assert words in capsys.readouterr().out


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("idx2crd(20, (4,8))", "(0,5)"),
        ("idx2crd(21, (4,8))", "(1,5)"),
        ("idx2crd(21, ((4,8),2))[0]", "(1,5)"),
        ("(idx2crd(21, (4,8)), 3)", "((1,5),3)"),
        ("crd2crd((1,5), (4,8), (2,16))", "(1,10)"),
        ("unflatten((1,2), (4,8))", "(1,2)"),
        ("select((4,8,2), (2,0))", "(2,4)"),
        ("to_bits((2,2):(0,1))", "(0,1)"),
        ("(make_identity_layout((4,8)))(1,5)", "(1,5)"),
        ("(0,5)", "(0,5)"),
        ("()", "()"),
    ],
)
def test_a_tuple_that_is_no_shape_written_out_is_printed(expression, words, capsys):
    assert main([expression]) == 0
    assert capsys.readouterr().out == f"{words}\n"


def test_options_change_the_table(capsys):
    assert main(["4:33", "--unit", "32", "--show", "bank", "--banks", "4"]) == 0
    assert (
        "banks of 4 bytes; the layout has offsets in elements of 32 bits" in capsys.readouterr().out
    )
    assert main(["(2,64)", "--width", "60"]) == 0
    assert "columns 0 to 7 of 64" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("expression", "unit"),
    [
        ("sectors(32:1{})", "32"),
        ("banks((8,8):(8,1), 'ldmatrix.x1', lanes=8:1{})", "128"),
        ("compare(naive=(8,64):(64,1), padded=(8,64):(72,1){})", "128"),
        ("table((8,64):(64,1){})", "8"),
        ("prove(ConflictFree(8:64{}))", "8"),
    ],
)
def test_an_operation_takes_the_option_that_is_one_of_its_arguments(expression, unit, capsys):
    assert main([expression.format(f", unit={unit}")]) == 0
    written = capsys.readouterr().out
    assert main([expression.format(""), "--unit", unit]) == 0
    assert capsys.readouterr().out == written
    assert (main([expression.format("")]), capsys.readouterr().out) != (0, written)


def test_a_picture_takes_the_unit_that_an_operation_inside_took(capsys):
    assert main(["ComposedLayout(Swizzle(3,3,3),0,(8,8):(8,1))", "--unit", "8"]) == 0
    inner = "coalesce(ComposedLayout(Swizzle(3,3,3),0,(8,8):(8,1)))"
    assert main([f"composition((8,64):(64,1), {inner})", "--unit", "8", "--show", "byte"]) == 0
    assert "the layout has offsets in bytes" in capsys.readouterr().out


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
        ["size((4,8))", "--unit", "8"],
        ["wavefronts(8:64)", "--unit", "8", "--show", "bank"],
        ["size((4,8))", "--show", "bank"],
        ["stmatrx"],
        ["Injective((m,n):(1,m+n//2))"],
        ["size((4,8))", "--svg", "never.svg"],
        ["(4,8)", "--svg", "/no/such/folder/picture.svg"],
    ],
)
def test_the_command_line_reports_bad_input(arguments, capsys):
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert said.strip()
    assert "Traceback" not in said


def test_python_m_layouts():
    done = subprocess.run(
        [sys.executable, "-m", "layouts", "(2,4):(4,1)"], capture_output=True, text=True, check=True
    )
    assert " 1 │ 4  5  6  7\n" in done.stdout


def test_an_encoding_without_the_signs_is_not_an_error():
    command = [sys.executable, "-m", "layouts", "(2,4):(4,1)"]
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert " 1 ? 4  5  6  7\n" in done.stdout


def test_a_closed_pipe_is_not_an_error():
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


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--width", "0", "'0' must be a number of columns, 1 or more"),
        ("--width", "-5", "'-5' must be"),
        ("--svg", "", "the name of the file is empty"),
    ],
)
def test_an_option_that_makes_no_sense_is_named(option, value, message, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["(8,8):(8,1)", f"{option}={value}"])
    assert f"argument {option}: {message}" in capsys.readouterr().err


def test_an_output_that_is_closed_is_no_error(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["(8,8):(8,1)"]) == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_an_output_that_takes_nothing_is_named():
    command = f"{sys.executable} -m layouts '(8,8):(8,1)' >/dev/full"
    found = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (2, "the output: No space left on device\n")
