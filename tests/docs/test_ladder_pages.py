"""The pages of the ladder: code beside the rung below's, its values, and bars."""

import html
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "docs" / "_ext"))

pytest.importorskip("pygments", reason="the docs extra is not installed")
pytest.importorskip("cutlass", reason="the gpu extra is not installed")

import ladder_pages
import ladder_results
from kernel_source import parts
from side_by_side import code, plain, side_by_side

from cutedsl_gemm.kernels.sm80 import rungs as sm80
from cutedsl_gemm.kernels.sm90 import rungs as sm90
from cutedsl_gemm.select.registry import KERNELS


def texts(shown, without):
    """The lines that a reader sees, without the values and without one of the two sides."""
    shown = re.sub(r'<span class="value.*?</span>', "", shown)
    lines = re.findall(r'<div class="line ?(\w*)"[^>]*>(.*?)</div>', shown)
    seen = [line for side, line in lines if side != without]
    return [html.unescape(re.sub(r"<.*?>", "", line)).rstrip() for line in seen]


def test_lines_that_are_alike_stand_in_one_row():
    old = plain("load a tile of A\nwait\nmultiply tile by tile")
    new = plain("load a tile of B\nmultiply two tiles")
    shown = side_by_side(old, new)
    places = re.findall(r'line (\w+)" style="--indent:0;grid-row:(\d)"', shown)
    assert places == [("below", "1"), ("below", "2"), ("below", "3"), ("here", "1"), ("here", "2")]
    assert re.findall("<mark>(.*?)</mark>", shown) == ["A", "B"]


@pytest.mark.parametrize(
    ("below", "here"), [("single", "cooperative"), ("cooperative", "pingpong")]
)
def test_both_texts_are_there_whole(below, here):
    old, new = (parts(getattr(sm90, name)().device_code()) for name in (below, here))
    for name in old.keys() & new.keys():
        shown = side_by_side(code(old[name].source), code(new[name].source))
        assert texts(shown, without="below") == new[name].source.splitlines(), name
        assert texts(shown, without="here") == old[name].source.splitlines(), name


def test_a_line_that_both_have_stands_once_and_words_that_differ_are_marked():
    shown = side_by_side(
        plain("same\nstages 1, bytes 32\nend"), plain("same\nstages 3, bytes 32\nend")
    )
    assert shown.count("same") == shown.count("end") == 1
    assert re.findall(r"<mark>(.*?)</mark>", shown) == ["1", "3"]


def test_code_has_the_values_of_its_plan():
    values = parts(sm80.multistage("bfloat16", "K", "K").device_code())["round"].values
    assert values == {3: {"plan.stages": "3"}, 4: {"plan.steps": "4"}}


def test_a_value_that_differs_is_shown_beside_that_of_the_rung_below():
    old, new = (
        parts(rung("bfloat16", "K", "K").device_code())["allocate_smem"]
        for rung in (sm80.mma, sm80.padded)
    )
    assert old.source == new.source
    shown = side_by_side(code(old.source, old.values), code(new.source, new.values))
    (differs,) = re.findall(r'<span class="value differs">(.*?)</span>', shown)
    assert differs.index("(64,1,8192)") < differs.index("<ins>") < differs.index("(72,1,9208)")


def test_a_kernel_brings_all_functions_of_device_code_that_it_runs():
    found = parts(sm90.pingpong().device_code())
    assert found["consume"].file == "kernels/sm90/pingpong.py"
    assert found["mainloop"].file == "kernels/sm90/mainloop.py"
    assert found["TmaPanels.store"].file == "kernels/sm90/panel_stores.py"
    assert found["smem_tensor"].file == "kernels/device/lower.py"
    # A name leads to the part for which it stands.
    for part in found.values():
        lines = part.source.splitlines()
        for line, names in part.names.items():
            for column, name in names.items():
                assert lines[line][column:].startswith(name.rpartition(".")[2]), (part.name, line)
    mainloop = found["mainloop"].names.values()
    assert "multiply_k_tile" in {name for names in mainloop for name in names.values()}


def test_a_page_says_what_its_rung_changes_and_how_fast_it_is_over_what():
    page = ladder_pages.rung(KERNELS["sm80_padded"])
    assert "return replace(mma.recipe, padding=8)" in page
    assert "2.67 × `sm80_mma`, the rung below" in page
    assert "python -m cutedsl_gemm ladder --csv" in page
    assert "sm80_mma`, line by line" in page  # the code is the same


def test_a_bar_shows_what_its_rung_gains_over_the_rung_below():
    rows = ladder_results.measured()["sm80"]
    reference, first, *_ = rows
    faster = replace(first, name="sm80_faster", milliseconds=first.milliseconds / 2)
    slower = replace(first, name="sm80_slower", milliseconds=first.milliseconds)
    drawn = ladder_results.bars([reference, first, faster, slower], {}, "")
    share = 100 * first.tflops / reference.tflops
    widths = re.findall(r'<span class="(kept|gained|lost)" style="width:([\d.]+)%">', drawn)
    assert [(kind, float(width)) for kind, width in widths] == [
        ("kept", pytest.approx(share, abs=0.01)),
        ("kept", pytest.approx(share, abs=0.01)),
        ("gained", pytest.approx(share, abs=0.01)),
        ("kept", pytest.approx(share, abs=0.01)),
        ("lost", pytest.approx(share, abs=0.01)),
        ("kept", 100),
    ]
