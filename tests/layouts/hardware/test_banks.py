"""Accesses of a warp to a tile in shared memory: by lanes, by fragment, and their wavefronts."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layouts import (
    Access,
    ComposedLayout,
    Layout,
    LayoutError,
    Swizzle,
    banks,
    instruction,
    ldmatrix,
    size,
    stmatrix,
    symbols,
    wavefronts,
    wgmma_accumulator,
)
from layouts.values.stride import E

NAIVE = ComposedLayout(Swizzle(0, 3, 3), 0, Layout((64, 64), (64, 1)), unit=16)
PADDED = ComposedLayout(Swizzle(0, 3, 3), 0, Layout((64, 64), (72, 1)), unit=16)
SWIZZLED = ComposedLayout(Swizzle(3, 3, 3), 0, Layout((64, 64), (64, 1)), unit=16)
MN_MAJOR = ComposedLayout(Swizzle(3, 3, 3), 0, Layout((64, 64), (1, 64)), unit=16)


@pytest.mark.parametrize(
    ("tile", "count"), [(NAIVE, 8 * 64), (PADDED, 64), (SWIZZLED, 64)], ids=str
)
def test_the_fragment_determines_the_row_address_of_each_lane(tile, count):
    """stmatrix stores a warpgroup's accumulator to a 64 x 64 tile: 8192 bytes, 128 at a time."""
    report = banks(tile, "stmatrix.x4", values=wgmma_accumulator(64))
    assert (report.wavefronts.count, report.wavefronts.ideal) == (count, 64)
    assert report.proof().holds == report.conflict_free == (count == 64)
    for lane in range(32):
        for warp in range(4):
            for group in range(4):
                row = 16 * warp + lane % 16
                column = 16 * group + 8 * (lane // 16)
                assert report.addresses(lane, warp, group) == tile(row, column)


def test_a_transposed_store_writes_an_mn_major_tile():
    report = banks(MN_MAJOR, "stmatrix.x4.trans", values=wgmma_accumulator(64))
    assert report.conflict_free
    assert report.wavefronts.count == 64
    with pytest.raises(LayoutError, match=r"8 elements at the address of lane 0 .*contiguous"):
        banks(MN_MAJOR, "stmatrix.x4", values=wgmma_accumulator(64))


@pytest.mark.parametrize("name", ["ldmatrix", "stmatrix"])
@pytest.mark.parametrize("matrices", [1, 2, 4])
@pytest.mark.parametrize("transposed", [False, True])
def test_the_fragment_of_an_atom_determines_its_rows(name, matrices, transposed):
    atom = {"ldmatrix": ldmatrix, "stmatrix": stmatrix}[name](matrices, transposed)
    full = f"{name}.x{matrices}{'.trans' * transposed}"
    report = banks(Layout(64 * matrices), full, values=atom.fragment, unit=16)
    for lane in range(8 * matrices):
        assert report.addresses(lane) == atom.rows(lane, 0)
    assert report.wavefronts.count == matrices
    assert banks(Layout(64 * matrices), atom, values=atom.fragment, unit=16) == report


def test_vectors_of_a_thread_value_layout():
    tile = Layout((32, 32), (32, 1))  # 32-bit elements: a thread has four of a row
    values = Layout(((8, 32), 4), ((128, 1), 32))
    for name, count in (("ld.shared.v4.b32", 32), ("ld.shared.b32", 4 * 32)):
        report = banks(tile, name, values=values, unit=32)
        assert report.wavefronts.count == count
        assert report.conflict_free == (name != "ld.shared.b32")
    with pytest.raises(LayoutError, match=r"4 elements at the address of lane 0 .*\[0, 32"):
        banks(Layout((32, 32), (1, 32)), "ld.shared.v4.b32", values=values, unit=32)


def test_fewer_matrices_take_the_first_lanes_of_every_warp():
    report = banks(SWIZZLED, "ldmatrix.x2", lanes=Layout((8, 2, 2, 4), (1, 512, 8, 16)))
    assert size(report.addresses) == 4 * 16
    assert report.wavefronts.count == 8
    assert [report.addresses(lane) for lane in range(16)] == [
        SWIZZLED(lane % 8, 8 * (lane // 8)) for lane in range(16)
    ]


TALL = ComposedLayout(Swizzle(3, 3, 3), 0, Layout((48, 64), (64, 1)), unit=16)


@pytest.mark.parametrize("tile", [NAIVE, PADDED, SWIZZLED, TALL], ids=str)
def test_a_count_at_every_base_holds_for_each_tile(tile):
    lanes = Layout((16, 2), (1, size(tile[0]) * 8))
    report = banks(tile, "ldmatrix.x4", lanes=lanes)
    assert report.wavefronts.every_base
    for row in range(0, size(tile[0]), 16):
        for column in range(0, 64, 16):
            at = [2 * tile(row + i % 16, column + 8 * (i // 16)) for i in range(32)]
            assert wavefronts(at, "ldmatrix.x4").count == report.wavefronts.count


def test_further_modes_of_any_extent_are_decided_by_rank():
    """48 rows are three times 16: each 16 set bits of their own."""
    lanes = Layout((16, 2, 3, 4), (1, 48 * 8, 16, 48 * 16))
    report = banks(TALL, "ldmatrix.x4", lanes=lanes)
    at = [2 * TALL(lanes(i)) for i in range(size(lanes))]
    assert report.wavefronts.ranks == (3, 3)
    assert report.wavefronts.count == wavefronts(at, "ldmatrix.x4").count == 3 * 4 * 4
    assert report.proof().verify()


@given(
    st.lists(st.sampled_from([0, *range(8)]), min_size=5, max_size=5),
    st.lists(st.tuples(st.integers(2, 6), st.integers(0, 700)), min_size=1, max_size=3),
    st.sampled_from([Swizzle(0, 0, 0), Swizzle(3, 4, 3), Swizzle(2, 5, 2), Swizzle(3, 4, -4)]),
    st.sampled_from(["ld.shared.b32", "ld.shared.v4.b32", "st.shared.v2.b32"]),
)
@settings(max_examples=4 * settings().max_examples)
def test_rank_and_lane_by_lane_agree_for_several_warps(bits, modes, swizzle, name):
    strides = [16 << bit for bit in bits]
    shape = ((2,) * 5, *(extent for extent, _ in modes))
    outer = Layout(shape, (tuple(strides), *(16 * stride for _, stride in modes)))
    lanes = ComposedLayout(swizzle, 0, outer, unit=8)
    at = [lanes(i) for i in range(size(lanes))]
    found, looked = wavefronts(lanes, name), wavefronts(at, name)
    assert (found.count, found.ideal) == (looked.count, looked.ideal)
    assert found.degree == looked.degree


def test_a_count_that_depends_on_the_base_says_so():
    shifted = ComposedLayout(Swizzle(3, 3, 3), 8, Layout((64, 64), (72, 1)), unit=16)
    report = banks(shifted, "ldmatrix.x1", lanes=Layout(8))
    assert not report.wavefronts.every_base
    assert "at these addresses" in str(report)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: banks(NAIVE, "ldmatrix.x4", lanes=Layout(16)), "32 lanes, .* has 16: lanes are"),
        (
            lambda: banks(NAIVE, "ldmatrix.x3", lanes=Layout(32)),
            "'ldmatrix.x3' is not an instruction",
        ),
        (lambda: banks(NAIVE, 12, lanes=Layout(32)), "width 12: .* 1, 2, 4, 8 or 16 bytes"),
        (
            lambda: banks(NAIVE, "ld.shared.v4.b32", lanes=Layout(32, 64)),
            "lane 1 accesses 16 bytes at byte 2 .* must be a multiple",
        ),
        (lambda: Access(16, Layout(32), Layout((32, 2))), "give lanes or values"),
        (lambda: banks(NAIVE, "stmatrix.x4", values=Layout((32, 4))), "8 elements .* 4 values"),
        (lambda: banks(NAIVE, "st.shared.b8", values=Layout((32, 4))), "8 bits"),
        (lambda: banks(NAIVE, "stmatrix.x4", values=Layout(32)), "two modes, .threads, values."),
        (lambda: banks(NAIVE, "stmatrix.x4", values=Layout((16, 8))), "whole warps of 32"),
        (
            lambda: banks(Layout((64, 64)), "stmatrix.x1", values=Layout((32, 2)), unit=8),
            "8-bit elements: it moves elements of 16 bits",
        ),
        (lambda: banks(NAIVE, 16, lanes=Layout(32), unit=12), "unit 12 bits"),
        (lambda: instruction("sync"), "'sync' is not an instruction"),
        (lambda: instruction(None), "None is not an access: give a PTX name"),
        (lambda: instruction(True), "True is not an access"),
        (lambda: instruction(ldmatrix), "ldmatrix is not an access: .* an atom such as ldmatrix"),
        (
            lambda: banks(Layout((4, 8), (E(0), E(1))), 16, lanes=Layout(8), unit=16),
            r"\(4,2\):\(1@0,1@1\) gives coordinates: an access needs offsets in memory",
        ),
        (lambda: wavefronts(Layout(symbols("m"), 16)), "extents must be integers"),
        (lambda: banks(3, "ldmatrix.x1"), "ldmatrix.x1 of 3: it takes a Layout"),
        (lambda: banks((4, 8), "ldmatrix.x1", lanes=Layout(8)), r"\(4, 8\): it takes a Layout"),
    ],
)
def test_impossible_accesses_raise(call, words):
    with pytest.raises(LayoutError, match=words):
        call()


@pytest.mark.parametrize(
    ("name", "is_"),
    [
        ("ld.shared.v4.f32", "ld.shared.v4.b32"),
        ("st.shared::cta.u64", "st.shared.b64"),
        ("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16", "ldmatrix.x2.trans"),
        ("stmatrix.sync.aligned.m8n8.x1.shared::cta.b16", "stmatrix.x1"),
        ("cp.async.cg.shared.global", "cp.async.cg"),
    ],
)
def test_ptx_names_are_shortened(name, is_):
    assert str(instruction(name)) == is_


def test_the_text_of_a_report():
    lanes = Layout((16, 2), (1, 64 * 8))
    assert str(banks(NAIVE, "ldmatrix.x4", lanes=lanes)) == (
        "ldmatrix.x4 at S<0,3,3> o 0 o (16,2):(64,8): 32 wavefronts instead of 4 at every base: "
        "lanes 0 and 1 access different words of one bank (offsets in elements of 16 bits)"
    )
