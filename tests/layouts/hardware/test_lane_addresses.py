"""The row that a lane addresses is the one whose elements the instruction moves there."""

import itertools

import pytest

from layouts import ldmatrix, size, stmatrix, wgmma_accumulator
from layouts.hardware.lane_addresses import row_addresses


@pytest.mark.parametrize("atom", [stmatrix, ldmatrix])
@pytest.mark.parametrize("matrices", [1, 2, 4])
@pytest.mark.parametrize("transposed", [False, True])
def test_a_lane_addresses_the_row_that_other_lanes_hold(atom, matrices, transposed):
    atom, values = atom(matrices, transposed), wgmma_accumulator(32)
    rows, row = row_addresses(atom, values)
    lanes, count, warps = 8 * matrices, 2 * matrices, 4
    repeats = size(values[1]) // count
    assert (*map(size, rows), size(row)) == (lanes, warps, repeats, 8)
    holder = {
        atom.fragment(lane, value): (lane, value) for lane in range(32) for value in range(count)
    }
    extents = map(range, (lanes, 8, warps, repeats))
    for lane, column, warp, repeat in itertools.product(*extents):
        held_by, value = holder[atom.rows(lane, column)]
        element = values(32 * warp + held_by, count * repeat + value)
        assert rows(lane, warp, repeat) + row(column) == element
