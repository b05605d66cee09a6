"""Swizzle and ComposedLayout."""

import numpy as np
import pytest
import sympy
import torch

from layouts import (
    ComposedLayout,
    Layout,
    LayoutError,
    Swizzle,
    coalesce,
    complement,
    composition,
    cosize,
    logical_divide,
    rank,
    right_inverse,
    size,
    zipped_divide,
)

LEGAL = [
    Swizzle(bits, base, shift)
    for bits in range(4)
    for base in range(4)
    for shift in range(-4, 5)
    if bits == 0 or abs(shift) >= bits
]


@pytest.mark.parametrize("swizzle", LEGAL, ids=str)
def test_a_swizzle_is_an_involution_of_aligned_blocks(swizzle):
    image = [swizzle(x) for x in range(4 * swizzle.block)]
    assert [swizzle(y) for y in image] == list(range(4 * swizzle.block))
    assert all(x // swizzle.block == y // swizzle.block for x, y in enumerate(image))
    assert all(x % 2**swizzle.base == y % 2**swizzle.base for x, y in enumerate(image))


@pytest.mark.parametrize("swizzle", LEGAL, ids=str)
def test_arrays_are_swizzled_elementwise(swizzle):
    expected = [swizzle(x) for x in range(300)]
    assert swizzle(np.arange(300)).tolist() == expected
    assert swizzle(np.arange(300, dtype=np.uint16)).tolist() == expected
    assert swizzle(torch.arange(300)).tolist() == expected


def test_bits_of_a_swizzle():
    assert Swizzle(2, 0, 3)(0b11000) == 0b11011
    assert Swizzle(2, 1, -3)(0b00110) == 0b110110
    assert (Swizzle(3, 4, 3).source, Swizzle(3, 4, 3).target) == (0x380, 0x70)
    assert (Swizzle(2, 1, -3).source, Swizzle(2, 1, -3).target) == (0b110, 0b110000)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((3, 0, 1), r"Swizzle\(3, 0, 3\) and Swizzle\(1, 0, 1\)"),  # S2
        ((2, 4, -1), r"Swizzle\(2, 4, -2\) and Swizzle\(1, 4, -1\)"),
        ((3, 4, 0), r"Swizzle\(3, 4, 3\) and Swizzle\(0, 4, 0\)"),
        ((-1, 0, 3), "at least 0"),
        ((1, -1, 3), "at least 0"),
        ((1.0, 0, 3), "BBits is 1.0"),
        ((True, 0, 3), "BBits is True"),
        ((1, 0, "3"), "SShift is '3'"),
    ],
)
def test_s2_bad_parameters_are_refused(arguments, words):
    with pytest.raises(LayoutError, match=words):
        Swizzle(*arguments)


def test_s2_zero_bits_with_any_shift_is_the_identity():
    assert [Swizzle(0, 4, 0)(x) for x in range(100)] == list(range(100))


@pytest.mark.parametrize("offset", [-1, 1.5, (1, 2), None, sympy.Symbol("i", integer=True)])
def test_a_swizzle_takes_offsets_from_0_up(offset):
    with pytest.raises(LayoutError):
        Swizzle(3, 4, 3)(offset)


def test_printing_and_values():
    assert str(Swizzle(3, 4, 3)) == "S<3,4,3>"
    assert str(Swizzle(2, 0, -3)) == "S<2,0,-3>"
    assert eval(repr(Swizzle(2, 0, -3))) == Swizzle(2, 0, -3)
    assert len({Swizzle(3, 4, 3), Swizzle(3, 4, 3), Swizzle(3, 3, 3)}) == 2
    assert Swizzle(3, 4, 3) != (3, 4, 3)


@pytest.mark.parametrize(("old", "new"), [(16, 8), (8, 16), (32, 8), (8, 128), (16, 16)])
def test_recast_moves_the_same_bytes(old, new):
    for swizzle in LEGAL:
        if swizzle.bits and new > old << swizzle.base:  # S7: it changes bits inside the wide unit
            with pytest.raises(LayoutError, match="bits inside one"):
                swizzle.recast(old, new)
        else:
            check_same_bytes(swizzle, swizzle.recast(old, new), old, new)


def check_same_bytes(swizzle, other, old, new):
    for bit_address in range(0, 64 * max(old, new), min(old, new)):
        moved = swizzle(bit_address // old) * old + bit_address % old
        assert other(bit_address // new) * new + bit_address % new == moved


def test_s5_recast_changes_the_unit():
    assert Swizzle(3, 4, 3).recast(8, 16) == Swizzle(3, 3, 3)
    assert Swizzle(3, 3, 3).recast(16, 8) == Swizzle(3, 4, 3)


def test_s7_recast_refuses_a_swizzle_inside_the_new_unit():
    with pytest.raises(LayoutError, match="bits inside one"):
        Swizzle(3, 3, 3).recast(8, 256)
    with pytest.raises(LayoutError, match="power of two"):
        Swizzle(3, 3, 3).recast(8, 24)
    with pytest.raises(LayoutError, match="at least 1"):
        Swizzle(3, 3, 3).recast(8, 0)


TILE = ComposedLayout(Swizzle(3, 3, 3), 0, Layout((8, 64), (64, 1)), unit=16)


def test_a_composed_layout_goes_through_its_parts():
    shifted = ComposedLayout(Swizzle(3, 3, 3), 128, Layout((8, 64), (64, 1)))
    for row in range(8):
        for column in range(64):
            assert shifted(row, column) == Swizzle(3, 3, 3)(128 + 64 * row + column)
    plain = ComposedLayout(Layout((4, 8), (8, 1)), 2, Layout(8, 3))
    assert [plain(i) for i in range(8)] == [Layout((4, 8), (8, 1))(2 + 3 * i) for i in range(8)]


def test_a_composed_layout_maps_arrays():
    index = np.arange(512)
    assert TILE(index).tolist() == [TILE(i) for i in range(512)]
    grid = TILE(torch.arange(8)[:, None], torch.arange(64))
    assert grid.tolist() == [[TILE(i, j) for j in range(64)] for i in range(8)]


def test_a_mode_keeps_inner_offset_and_unit():
    assert TILE[0] == ComposedLayout(Swizzle(3, 3, 3), 0, Layout(8, 64), unit=16)
    assert [TILE[0](i) for i in range(8)] == [TILE(i, 0) for i in range(8)]
    assert (list(TILE), len(TILE)) == ([TILE[0], TILE[1]], 2)
    assert (TILE.shape, size(TILE), size(TILE, 1), rank(TILE)) == ((8, 64), 512, 64, 2)


def test_composed_layouts_are_values():
    assert eval(repr(TILE)) == TILE
    assert str(TILE) == "S<3,3,3> o 0 o (8,64):(64,1)"
    assert ComposedLayout(Swizzle(3, 3, 3), 0, TILE.outer) != TILE  # the unit is part of it
    assert len({TILE, eval(repr(TILE))}) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        (3, 0, Layout(4)),
        (Swizzle(1, 0, 1), 0, TILE),
        (Swizzle(1, 0, 1), -1, Layout(4)),
        (Swizzle(1, 0, 1), (0, 0), Layout(4)),
        (Swizzle(1, 0, 1), 0.0, Layout(4)),
        (Swizzle(1, 0, 1), 0, Layout(4), 0),
    ],
)
def test_what_is_no_composed_layout_is_refused(arguments):
    with pytest.raises(LayoutError):
        ComposedLayout(*arguments)


def test_s1_cosize_bounds_the_image():
    padded = ComposedLayout(Swizzle(1, 0, 2), 0, Layout(5, 1))
    assert {padded(i) for i in range(5)} == {0, 1, 2, 3, 5}
    assert cosize(padded) == 6
    assert cosize(ComposedLayout(Swizzle(3, 3, 3), 0, Layout((128, 64), (64, 1)))) == 8192


@pytest.mark.parametrize("swizzle", LEGAL, ids=str)
def test_s1_cosize_bounds_every_image(swizzle):
    for offset in (0, 3, 8):
        for outer in (Layout(5), Layout((3, 4), (4, 1)), Layout((2, 8), (20, 1)), Layout(1)):
            composed = ComposedLayout(swizzle, offset, outer)
            assert all(composed(i) < cosize(composed) for i in range(size(outer)))


def test_s1_cosize_after_a_layout_bounds_every_image():
    for inner in (Layout((4, 3), (1, 100)), Layout((4, 3), (7, 2)), Layout((2, 1, 2), (5, 9, 1))):
        for offset in range(0, 20, 3):
            composed = ComposedLayout(inner, offset, Layout((3, 2), (1, 4)))
            assert all(composed(i) < cosize(composed) for i in range(6))


def test_composition_with_a_swizzle():
    tile = Layout((8, 64), (64, 1))
    assert composition(Swizzle(3, 3, 3), tile) == ComposedLayout(Swizzle(3, 3, 3), 0, tile)
    assert Swizzle(3, 3, 3) @ tile == composition(Swizzle(3, 3, 3), tile)
    assert composition(Swizzle(0, 3, 3), tile) == tile
    with pytest.raises(LayoutError, match="goes after a Layout"):
        composition(Swizzle(3, 3, 3), 8)


@pytest.mark.parametrize(
    "operation",
    [
        lambda x: composition(x, Layout((4, 8), (16, 1))),
        lambda x: composition(x, (4, None)),
        lambda x: x @ Layout(8, 2),
        coalesce,
        lambda x: coalesce(x, (1, 1)),
        lambda x: logical_divide(x, (4, 16)),
        lambda x: zipped_divide(x, (4, 16)),
    ],
)
def test_operations_keep_the_swizzle_the_offset_and_the_unit(operation):
    composed = ComposedLayout(Swizzle(3, 3, 3), 64, Layout((8, 64), (64, 1)), unit=16)
    result = operation(composed)
    expected = operation(composed.outer)
    assert result == ComposedLayout(Swizzle(3, 3, 3), 64, expected, unit=16)
    assert all(result(i) == composed.inner(64 + expected(i)) for i in range(size(expected)))


def test_composition_after_a_composed_layout_without_a_swizzle():
    a = Layout((4, 8), (8, 1))
    b = ComposedLayout(Layout((8, 4), (4, 1)), 0, Layout(8, 2))
    assert all(composition(a, b)(i) == a(b(i)) for i in range(8))


def test_what_has_no_exact_answer_is_refused():
    shifted = ComposedLayout(Swizzle(3, 3, 3), 1024, TILE.outer)
    for operation in (complement, right_inverse):
        with pytest.raises(LayoutError, match="offset"):
            operation(shifted)
