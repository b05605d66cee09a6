"""The boxes of a tile: what one TMA instruction can copy."""

import pytest

from cutedsl_gemm.kernels.plan import tma
from layouts import ComposedLayout, Layout, LayoutError


def test_a_box_has_at_most_256_rows():
    swizzle = tma.SWIZZLES[128].recast(8, 16)
    tile = ComposedLayout(swizzle, 0, Layout((256, 64), (64, 1)), unit=16)
    assert tma.boxes(tile, contiguous=1).rows == 256
    longer = ComposedLayout(swizzle, 0, Layout((264, 64), (64, 1)), unit=16)
    with pytest.raises(LayoutError, match="has 264 rows; TMA takes at most 256"):
        tma.boxes(longer, contiguous=1)
