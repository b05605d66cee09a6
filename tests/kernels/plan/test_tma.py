"""The boxes of a tile: what one TMA instruction can copy."""

import pytest

from cutedsl_gemm.kernels.plan import tma
from cutedsl_gemm.kernels.sm90.operand import swizzled, unswizzled
from layouts import ComposedLayout, Layout, LayoutError


def test_a_box_has_at_most_256_rows():
    swizzle = tma.SWIZZLES[128].recast(8, 16)
    tile = ComposedLayout(swizzle, 0, Layout((256, 64), (64, 1)), unit=16)
    assert tma.boxes(tile, contiguous=1).rows == 256
    longer = ComposedLayout(swizzle, 0, Layout((264, 64), (64, 1)), unit=16)
    with pytest.raises(LayoutError, match="has 264 rows; TMA takes at most 256"):
        tma.boxes(longer, contiguous=1)


@pytest.mark.parametrize(
    ("columns", "refused"), [(8, 0), (104, 0), (256, 0), (100, 200), (264, 528)]
)
def test_a_row_without_a_swizzle_has_whole_vectors_and_at_most_256_elements(columns, refused):
    tile = unswizzled(64, columns)
    if refused:
        with pytest.raises(LayoutError, match=f"has {refused} bytes along memory"):
            tma.boxes(tile, contiguous=1)
    else:
        found = tma.boxes(tile, contiguous=1)
        assert (found.rows, found.columns, found.swizzle) == (64, columns, tma.NO_SWIZZLE)


@pytest.mark.parametrize(
    ("tile", "contiguous", "rows", "columns", "boxes"),
    [  # rows and columns that a box has of each matrix
        (swizzled(128, 64, "K"), 1, 64, 64, 1),
        (swizzled(80, 128, "K"), 1, 40, 64, 2),
        (swizzled(128, 64, "MN", parts=2), 0, 64, 64, 1),
        (swizzled(256, 64, "MN", parts=2), 0, 64, 64, 4),  # of one matrix each
        (swizzled(64, 64, "MN", parts=2), 0, 64, 32, 1),
    ],
)
def test_a_box_has_both_matrices_if_they_are_back_to_back(tile, contiguous, rows, columns, boxes):
    found = tma.boxes(tile, contiguous, matrices=2)
    assert (found.rows, found.columns, len(found.origins)) == (rows, columns, boxes)
    plain = tma.boxes(tile, contiguous)  # the same place for every element
    assert {*places(found)} == {*places(plain)}


def places(boxes):
    """(row, column, offset) of each element of the boxes, the columns contiguous."""
    for row, column, offset in boxes.of_each:
        for i in range(boxes.rows):
            for j in range(boxes.columns):
                yield row + i, column + j, offset + i * boxes.columns + j


def test_no_row_of_a_box_has_elements_of_two_matrices():
    with pytest.raises(LayoutError, match="has 32 elements along memory of each matrix"):
        tma.boxes(swizzled(64, 64, "MN"), contiguous=0, matrices=2)
