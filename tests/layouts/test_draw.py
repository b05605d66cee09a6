"""Tables, and the command line."""

import re
import subprocess
import sys

import pytest

from layouts import ComposedLayout, Layout, LayoutError, Swizzle, table
from layouts.__main__ import main
from layouts.draw import TINTS

TILE = ComposedLayout(Swizzle(3, 3, 3), 0, Layout((8, 64), (64, 1)), unit=16)


def cells(text):
    """The numbers of a table, row by row, without its headers."""
    plain = re.sub(r"\x1b\[[\d;]*m", "", text)
    return [
        [int(n) for n in line.split("│")[1].split()] for line in plain.splitlines() if "│" in line
    ]


@pytest.mark.parametrize(
    "layout", [Layout((4, 8), (8, 1)), Layout(((2, 2), (2, 4)), ((8, 1), (16, 2))), TILE]
)
@pytest.mark.parametrize("colour", [False, True])
def test_a_table_has_every_offset(layout, colour):
    rows = range(layout[0].shape if isinstance(layout[0].shape, int) else 4)
    expected = [[layout(i, j) for j in range(64 if layout is TILE else 8)] for i in rows]
    assert cells(table(layout, colour=colour)) == expected


def test_one_mode_goes_across():
    assert cells(table(Layout(8, 3), colour=False)) == [[0, 3, 6, 9, 12, 15, 18, 21]]


def test_three_modes_are_refused():
    with pytest.raises(LayoutError, match="it has 3 modes"):
        table(Layout((2, 3, 4)))


def test_the_unit_is_said():
    assert "offsets in elements of 16 bits" in table(TILE, colour=False)
    assert "offsets in bytes" in table(Layout(4), colour=False, unit=8)
    assert "offsets in elements of 32 bits" in table(Layout(4), colour=False, unit=32)


def test_cells_are_tinted_by_their_16_byte_group_of_banks():
    coloured = table(TILE, colour=True).splitlines()[5:]
    for row, line in enumerate(coloured):
        tints = re.findall(r"\x1b\[48;2;(\d+);(\d+);(\d+)m", line)
        groups = [TINTS.index(tuple(map(int, tint))) for tint in tints]
        assert groups == [TILE(row, column) * 2 // 16 % 8 for column in range(64)]
        assert set(groups) == set(range(8))


def test_black_text_is_readable_on_every_tint():
    assert len(set(TINTS)) == 8
    for tint in TINTS:
        red, green, blue = ((c / 255) ** 2.2 for c in tint)
        luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
        assert (luminance + 0.05) / 0.05 > 7  # WCAG AAA


def test_no_colour_unless_a_terminal_asks_for_it(monkeypatch):
    assert "\x1b" not in table(TILE)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b" in table(TILE)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in table(TILE)


def test_the_command_line(capsys):
    assert main(["S<3,3,3> o 0 o (8,64):(64,1)"]) == 0
    assert cells(capsys.readouterr().out) == cells(table(TILE, colour=False))
    assert main(["(4,8)", "--unit", "8"]) == 0
    assert "(4,8):(1,4)\noffsets in bytes" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["(4,,8)", "S<3,3,3>", "(2,2,2):(1,2,4)", "(4,8):(8,-1)"])
def test_the_command_line_answers_bad_input_with_a_sentence(text, capsys):
    assert main([text]) == 2
    assert capsys.readouterr().err.strip()


def test_python_m_layouts():
    done = subprocess.run(
        [sys.executable, "-m", "layouts", "(2,4):(4,1)"], capture_output=True, text=True, check=True
    )
    assert cells(done.stdout) == [[0, 1, 2, 3], [4, 5, 6, 7]]
