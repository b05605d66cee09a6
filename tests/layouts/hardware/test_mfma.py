"""AMD's MFMA, compared with AMD's matrix instruction calculator and with Triton's layouts."""

import pytest

from layouts import (
    MFMA,
    Bijective,
    LayoutError,
    composition,
    equivalent,
    from_linear_layout,
    make_layout,
    mfma,
    prove,
    size,
)


@pytest.mark.parametrize("name", MFMA, ids=" ".join)
def test_fragments_of_mfma_match_amd_s_calculator(name):
    """InstCalcGfx9: the lane and the storage of A[i][k], B[k][j] and D[i][j], of one block."""
    atom, height = MFMA[name], 1 if name[1] == "f64" else 4
    rows, _, depth = atom.shape
    held = depth // (64 // rows)  # elements of k in neighbouring registers
    for i in range(rows):
        for k in range(depth):
            assert atom.a(k // held * rows + i, k % held) == i + rows * k
            assert atom.b(k // held * rows + i, k % held) == i + rows * k
        for j in range(rows):
            groups = 64 // rows
            lane = i // height % groups * rows + j
            assert atom.c(lane, i // (height * groups) * height + i % height) == i + rows * j


@pytest.mark.parametrize("atom", MFMA.values(), ids=lambda atom: atom.name)
def test_every_fragment_is_a_bijection_onto_its_matrix(atom):
    rows, _, depth = atom.shape
    for layout, count in ((atom.a, rows * depth), (atom.b, rows * depth), (atom.c, rows * rows)):
        assert prove(Bijective(layout))
        assert (size(layout), size(layout[0])) == (count, 64)


@pytest.mark.parametrize(
    ("shape", "bases"),
    [
        (
            "32x32x8",
            {
                "register": [[1, 0], [2, 0], [8, 0], [16, 0]],
                "lane": [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [4, 0]],
            },
        ),
        (
            "16x16x16",
            {
                "register": [[1, 0], [2, 0]],
                "lane": [[0, 1], [0, 2], [0, 4], [0, 8], [4, 0], [8, 0]],
            },
        ),
    ],
)
def test_accumulators_equal_triton_s(shape, bases):
    """LinearLayoutConversionsTest.cpp: MFMA32_2x4Warps and MFMA16_2x4Warps, isTransposed=false."""
    lanes, registers = mfma(shape, "f16").c
    assert equivalent(from_linear_layout(bases), make_layout(registers, lanes))


def test_an_accumulator_of_32_rows_holds_four_rows_of_every_eight():
    lane, registers = mfma("32x32x8", "bf16").c
    assert [composition(registers, size(registers))(v) for v in range(5)] == [0, 1, 2, 3, 8]
    assert lane(32) == 4


@pytest.mark.parametrize("of", [("32x32x8", "f32"), ("4x4x4", "f16"), ("32x32x8", 16)])
def test_what_is_not_in_the_table_raises(of):
    with pytest.raises(LayoutError, match=r"mfma .* the table has 16x16x4 of f32"):
        mfma(*of)
