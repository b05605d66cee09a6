"""Accesses of a warp to global memory, in sectors."""

import pytest

from layouts import Layout, LayoutError, sectors, size, symbols


@pytest.mark.parametrize(
    ("lanes", "width", "unit", "count", "ideal"),
    [
        (Layout(32, 1), 4, 32, 4, 4),
        (Layout(32, 2), 4, 32, 8, 4),
        (Layout(32, 8192), 4, 32, 32, 4),
        (Layout(32, 0), 4, 32, 1, 1),
        (Layout((4, 8), (0, 1)), 4, 32, 1, 1),
        (Layout(32, 4), 16, 32, 16, 16),
        (Layout((8, 4), (8, 4096)), 16, 16, 16, 16),
        (Layout(32, 1), 2, 16, 2, 2),
        (Layout(32, 3), 4, 32, 12, 4),
        (Layout(32, 33), 4, 32, 32, 4),
        (Layout(128, 1), 4, 32, 16, 16),
        (Layout(40, 1), 4, 32, 5, 5),
    ],
    ids=str,
)
def test_sectors(lanes, width, unit, count, ideal):
    found = sectors(lanes, width, unit)
    assert (found.count, found.ideal) == (count, ideal)
    assert found.coalesced == (count == ideal)
    at = [lanes(lane) * unit // 8 for lane in range(size(lanes))]
    warps = [at[first : first + 32] for first in range(0, len(at), 32)]
    assert count == sum(len({a // 32 for a in warp}) for warp in warps)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: sectors(Layout(32), 3), "width 3"),
        (lambda: sectors(Layout(32), 16, 32), "lane 1 accesses 16 bytes at byte 4"),
        (lambda: sectors(Layout(32), 4, 12), "unit 12 bits"),
        (lambda: sectors(Layout(symbols("m"), 16)), "extents must be integers"),
    ],
)
def test_impossible_requests_raise(call, words):
    with pytest.raises(LayoutError, match=words):
        call()
