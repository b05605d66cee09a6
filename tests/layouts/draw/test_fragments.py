"""Instructions draw what their threads hold."""

import pytest

from layouts import (
    MFMA,
    MMA,
    Layout,
    LayoutError,
    ldmatrix,
    make_copy_atom,
    make_tiled_copy,
    make_tiled_mma,
    mma,
    size,
    stmatrix,
    table_tv,
    tcgen05_ld,
    tcgen05_st,
    volta_mma,
    wgmma,
)
from layouts.draw import summary
from layouts.draw.fragments import fragments
from layouts.hardware import atoms

HELD = Layout(((4, 8), (2, 2, 2)), ((32, 1), (16, 8, 128)))  # A of m16n8k16
SMALL = [
    ldmatrix(1),
    ldmatrix(4, transposed=True),
    stmatrix(2),
    tcgen05_ld("16x128b", 2),
    tcgen05_st("32x32b", 4),
    volta_mma(),
    mma("m16n8k16", "bf16"),
    wgmma(16, "bf16", a="rmem"),
    make_tiled_mma(mma("m16n8k8", "bf16"), (2, 2, 1)),
    make_tiled_copy(make_copy_atom(ldmatrix(4), 16), HELD, (16, 16)),
]


@pytest.mark.parametrize("drawn", SMALL, ids=lambda drawn: drawn.heading)
def test_every_cell_has_the_threads_and_values_that_hold_it(drawn):
    shown = fragments(drawn, limit=None)
    for panel, own in zip(shown.panels, drawn.fragments, strict=True):
        elements = {own.tile(i): [] for i in range(size(own.tile))}
        for t in range(size(own.layout, 0)):
            for v in range(size(own.layout, 1)):
                elements[own.layout(t, v)].append((t, v))
        for row, cells in enumerate(panel.cells):
            for column, (words, colour) in enumerate(cells):
                (t, v), *more = elements[own.tile(row, column)]
                assert words == f"T{t} V{v}" + (f" +{len(more)}" if more else "")
                assert colour == t % 8
                assert panel.elements[row][column] == (t, *(thread for thread, _ in more))


@pytest.mark.parametrize("drawn", [*MMA.values(), *MFMA.values()], ids=lambda drawn: drawn.name)
def test_every_matrix_instruction_prints_a_b_and_c_within_bounds(drawn):
    text = str(drawn)
    assert text.startswith(f"{drawn.name}: M = {drawn.shape[0]}, N = {drawn.shape[1]}, K = ")
    assert all(
        f"{name}: {of}" in text
        for name, of in (("A, M x K", drawn.a), ("B, K x N", drawn.b), ("C, M x N", drawn.c))
    )
    assert len(text.splitlines()) < 120
    assert "T0 V0" in text


def test_rows_of_ldmatrix_are_those_of_the_lanes_that_address_them():
    drawn = ldmatrix(4)
    (panel,) = fragments(drawn).panels
    (own,) = drawn.fragments
    for lane in range(32):
        assert [drawn.rows(lane, k) for k in range(8)] == [own.tile(lane, k) for k in range(8)]
    assert [row for row, end in enumerate(panel.row_ends) if end] == [7, 15, 23]


def test_an_operand_in_shared_memory_is_said_to_be_there():
    shown = fragments(wgmma(256, "bf16"))
    assert [panel.title.split(":")[0] for panel in shown.panels] == ["wgmma.m64n256k16, 16 bits"]
    assert "A and B in shared memory" in shown.panels[0].title
    assert "B in shared memory" in fragments(wgmma(64, "bf16", a="rmem")).legend
    assert len(str(wgmma(256, "bf16")).splitlines()) < 50


def test_instructions_draw_themselves_in_a_notebook_and_on_a_page():
    drawn = mma("m16n8k16", "bf16")
    assert drawn._repr_html_().count("<td") == 16 * 16 + 2 * 16 * 8
    assert summary.picture(drawn) == fragments(drawn)
    assert summary.words(drawn) == "mma.m16n8k16, 16 bits: M = 16, N = 8, K = 16"
    with pytest.raises(LayoutError, match="it has no offsets; omit show and banks"):
        summary.picture(drawn, show="bank")
    assert summary.picture(drawn, limit=8).panels[0].notes == ("8 x 8 of 16 x 16 cells",)
    assert eval(repr(drawn), vars(atoms)) == drawn


def test_a_tile_may_be_a_layout_of_elements():
    row_major = table_tv(ldmatrix(1).fragment, Layout((8, 8), (8, 1)))
    assert [words for words, _ in row_major.panels[0].cells[0]] == [
        f"T{t} V{v}" for t in range(4) for v in range(2)
    ]
