"""The raster visits every tile of C once, whatever the number of tiles."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutedsl_gemm.kernels.plan.raster import Raster


@given(
    group=st.integers(1, 9),
    of=st.sampled_from(["rows", "columns"]),
    tiles_m=st.integers(1, 25),
    tiles_n=st.integers(1, 25),
)
def test_every_tile_once(group, of, tiles_m, tiles_n):
    visited = [Raster(group, of)(i, tiles_m, tiles_n) for i in range(tiles_m * tiles_n)]
    assert sorted(visited) == [(m, n) for m in range(tiles_m) for n in range(tiles_n)]


@pytest.mark.parametrize("group", [1, 4])
def test_a_wave_stays_in_few_panels(group):
    """132 tiles of 66 × 72: g4 needs 4 panels of A and 33 of B, g1 2 and 72."""
    wave = [Raster(group)(i, 66, 72) for i in range(132)]
    panels = len({m for m, _ in wave}), len({n for _, n in wave})
    assert panels == {1: (2, 72), 4: (4, 33)}[group]
