"""The staging of an epilogue, compared with addresses computed by hand."""

import pytest

from layouts import ComposedLayout, LayoutError, Swizzle, staging_report, wavefronts
from layouts.__main__ import main


def by_hand(pitch, swizzled):
    """The byte addresses of 128 threads' rows in the first stmatrix: 16 rows a warp, 2 columns."""
    addresses = []
    for thread in range(128):
        warp, lane = divmod(thread, 32)
        row, vector = 16 * warp + lane % 16, lane // 16
        addresses.append(row * pitch + 16 * (vector ^ row % 8 if swizzled else vector))
    return addresses


@pytest.mark.parametrize(
    ("name", "pitch", "degree"), [("naive", 128, 8), ("padded", 144, 1), ("swizzled", 128, 1)]
)
def test_addresses_match_the_formula(name, pitch, degree):
    report = dict(staging_report().reports)[name]
    addresses = by_hand(pitch, name == "swizzled")
    assert [2 * report.addresses(thread) for thread in range(128)] == addresses
    assert report.wavefronts.count == 64 * degree
    assert wavefronts(addresses, "stmatrix.x4").count == 16 * degree
    assert report.proof().holds == (degree == 1)


def test_the_pingpong_plan_has_the_same_swizzle():
    plan = pytest.importorskip("cutedsl_gemm.kernels.sm90.rungs").pingpong()
    tile = dict(staging_report().reports)["swizzled"]
    assert plan.staging.inner == Swizzle(3, 3, 3)
    found = [tile.addresses(lane) for lane in range(32)]
    plan_rows = ComposedLayout(Swizzle(3, 3, 3), 0, plan.staging.outer)
    assert found == [plan_rows(lane % 16, 8 * (lane // 16)) for lane in range(32)]


@pytest.mark.parametrize("columns", [16, 32, 64, 128, 256])
def test_every_width_has_a_padding_and_a_swizzle(columns):
    naive, padded, swizzled = (report for _, report in staging_report(columns).reports)
    assert padded.conflict_free
    assert swizzled.conflict_free
    assert naive.wavefronts.degree == min(columns // 8, 8)


def test_the_command_prints_every_thread_and_the_counts(capsys):
    assert main(["stmatrix"]) == 0
    out = capsys.readouterr().out
    assert "   127   63    8     8080   4-7     9088   0-3     8160 24-27" in out
    assert "naive     S<0,3,3> o 0 o (64,64):(64,1): 512 wavefronts instead of 64" in out
    assert out.count("\nwavefronts") == 16


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: staging_report(48), "columns 48"),
        (lambda: staging_report("64"), "columns '64'"),
        (lambda: staging_report().text(12), "threads 12"),
    ],
)
def test_other_tiles_raise(call, words):
    with pytest.raises(LayoutError, match=words):
        call()
