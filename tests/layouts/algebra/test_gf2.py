"""Layouts as bit matrices over GF(2)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layouts import ComposedLayout, Layout, LayoutError, Swizzle, size, wgmma_accumulator
from layouts.algebra import gf2

COLUMNS = st.lists(st.integers(0, 63), max_size=7)


@given(COLUMNS)
def test_rank_and_kernel_count_the_image(columns):
    values = [gf2.image(index, columns) for index in range(1 << len(columns))]
    assert len(set(values)) == 1 << gf2.rank(columns)
    basis = gf2.kernel(columns)
    assert len(basis) == len(columns) - gf2.rank(columns)
    assert all(values[index] == 0 for index in basis)
    assert gf2.rank(basis) == len(basis)


def test_a_matrix_gives_every_offset():
    tile = ComposedLayout(Swizzle(3, 3, 3), 0, Layout((8, 64), (64, 1)))
    shifted = ComposedLayout(Swizzle(3, 3, 3), 1024, Layout((8, 64), (64, 1)))
    for layout in (tile, shifted, Layout((4, (2, 8)), (16, (0, 1))), wgmma_accumulator(128)):
        columns = gf2.matrix(layout)
        for index in range(size(layout)):
            assert layout(index) == layout(0) ^ gf2.image(index, columns)


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        (Layout(6), "6 is not a power of two"),
        (Layout((4, 4), (1, 3)), "carry"),  # S8: another library gets 9 of 16 wrong here
        (Layout((2, 2), (1, 1)), "carry"),
        (ComposedLayout(Swizzle(1, 0, 2), 1, Layout(8)), "offset 1 .* carry"),
        (ComposedLayout(Layout(8), 0, Layout(8)), "not a swizzle"),
    ],
)
def test_s8_what_carries_is_no_bit_matrix(layout, words):
    with pytest.raises(LayoutError, match=words):
        gf2.matrix(layout)
