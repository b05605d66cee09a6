"""Who stores the lines of a panel that start anywhere in memory."""

from collections import Counter
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutedsl_gemm.kernels.sm90.panel_lines import panel_lines
from cutedsl_gemm.kernels.sm90.panels import panel_layout
from layouts.hardware.facts import WARPGROUP

ROWS = 64, 128, 192, 256
PANELS = [
    *product(ROWS, range(8, 65, 8), (0,)),  # rows, columns, the contiguous mode
    *product(ROWS, (16, 32, 64, *range(8, 249, 16)), (1,)),
]


@pytest.mark.parametrize("panel", PANELS, ids=str)
def test_lines_of_a_thread_have_one_shift_and_one_swizzle(panel):
    rows, columns, contiguous = panel
    lines, staging = panel_lines(*panel), panel_layout(rows, columns, swapped=not contiguous)
    assert lines.step % lines.width == 0  # so that all strides of C leave the shift as it is
    offset = staging.outer((lines.step, 0) if lines.contiguous else (0, lines.step))
    period = 1 << staging.inner.base + staging.inner.shift + staging.inner.bits
    assert lines.width == 1 or offset % period == 0


@given(st.data())
def test_threads_store_each_element_that_c_has_once_in_aligned_words(data):
    panel = data.draw(st.sampled_from(PANELS))
    lines = panel_lines(*panel)
    rows, columns = extents = tuple(data.draw(st.integers(0, extent)) for extent in panel[:2])
    start, stride = data.draw(st.integers(0, 15)), data.draw(st.integers(1, 99))
    stored = Counter()
    for thread in range(WARPGROUP):
        for line, first, count in lines.stored_by(thread, extents, start, stride):
            assert (start + line * stride + first) % count == 0
            assert count in (1, lines.width)
            stored.update((line, first + i) for i in range(count))
    elements = product(range(rows), range(columns))
    assert stored == Counter(each if lines.contiguous else each[::-1] for each in elements)


def test_of_a_whole_line_all_but_one_word_is_stored_in_words():
    lines = panel_lines(128, 64, contiguous=0)
    stores = [
        count
        for thread in range(lines.threads)
        for _, _, count in lines.stored_by(thread, (128, 1), start=3, stride=128)
    ]
    assert Counter(stores) == {8: 15, 1: 8}
