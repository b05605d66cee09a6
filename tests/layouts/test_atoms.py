"""Thread-value layouts against the PTX ISA's words and the CuTe DSL's own layouts."""

import pytest

from layouts import (
    Bijective,
    LayoutError,
    coalesce,
    ldmatrix,
    parse,
    prove,
    size,
    stmatrix,
    wgmma_accumulator,
)


@pytest.mark.parametrize("n", range(8, 257, 8))
def test_the_accumulator_is_a_bijection_onto_its_tile(n):
    layout = wgmma_accumulator(n)
    assert prove(Bijective(layout))
    assert (size(layout, 0), size(layout, 1)) == (128, n // 2)


def test_the_accumulator_is_laid_out_as_the_figure_says():
    layout = wgmma_accumulator(64)
    for thread in range(128):
        warp, lane = divmod(thread, 32)
        for register in range(32):
            column, row = divmod(layout(thread, register), 64)
            assert row == 16 * warp + lane // 4 + 8 * (register // 2 % 2)
            assert column == 8 * (register // 4) + 2 * (lane % 4) + register % 2


@pytest.mark.parametrize("n", [0, 4, 12, 264, 64.0, "64"])
def test_the_accumulator_has_a_legal_width(n):
    with pytest.raises(LayoutError, match="multiple of 8 from 8 to 256"):
        wgmma_accumulator(n)


@pytest.mark.parametrize("atom", [ldmatrix, stmatrix])
@pytest.mark.parametrize("matrices", [1, 2, 4])
@pytest.mark.parametrize("transposed", [False, True])
def test_matrix_atoms_move_every_element_once(atom, matrices, transposed):
    atom = atom(matrices, transposed)
    assert prove(Bijective(atom.fragment))
    assert sorted(map(atom.rows, range(size(atom.rows)))) == list(range(64 * matrices))
    for lane in range(32):
        for matrix in range(matrices):
            for half in range(2):
                row, column = divmod(atom.fragment(lane, (half, matrix)) - 64 * matrix, 8)
                if transposed:
                    row, column = column, row
                assert (row, column) == (lane // 4, 2 * (lane % 4) + half)
        if lane < 8 * matrices:
            assert atom.rows(lane, 0) == 64 * (lane // 8) + 8 * (lane % 8)


@pytest.mark.parametrize("matrices", [0, 3, 8, "4"])
def test_matrix_atoms_move_1_2_or_4_matrices(matrices):
    with pytest.raises(LayoutError, match="it moves 1, 2 or 4"):
        stmatrix(matrices)


def test_stmatrix_takes_the_accumulator_as_it_is():
    """Registers 8j to 8j + 7 of the accumulator are the four matrices of 16 rows and columns."""
    accumulator, atom = wgmma_accumulator(128), stmatrix()
    for thread in range(128):
        warp, lane = divmod(thread, 32)
        for register in range(64):
            j, half, matrix = register // 8, register % 2, register // 2 % 4
            row, column = divmod(atom.fragment(lane, (half, matrix)) - 64 * matrix, 8)
            row += 16 * warp + 8 * (matrix % 2)
            column += 16 * j + 8 * (matrix // 2)
            assert accumulator(thread, register) == row + 64 * column


# ------------------------------------------------------------------------------ the DSL's own

cutlass = pytest.importorskip("cutlass")
cute = pytest.importorskip("cutlass.cute")


def wgmma(n):
    from cutlass.cute.nvgpu import OperandMajorMode, warpgroup

    major, source = OperandMajorMode.K, warpgroup.OperandSource.SMEM
    op = warpgroup.MmaF16BF16Op(
        cutlass.BFloat16, cutlass.Float32, (64, n, 16), source, major, major
    )
    return cute.make_tiled_mma(op)


def matrix_copies():
    from cutlass.cute.nvgpu import warp

    kinds = {"ldmatrix": warp.LdMatrix8x8x16bOp, "stmatrix": warp.StMatrix8x8x16bOp}
    for name, op in kinds.items():
        for matrices in (1, 2, 4):
            for transposed in (False, True):
                atom = cute.make_copy_atom(op(transposed, matrices), cutlass.BFloat16)
                yield name, matrices, transposed, atom


def read_off():
    found = {}
    for n in range(8, 257, 8):
        found[n] = str(wgmma(n).tv_layout_C)
    for name, matrices, transposed, atom in matrix_copies():
        sides = str(atom.layout_src_tv), str(atom.layout_dst_tv)
        found[name, matrices, transposed] = sides
    atom = next(atom for *key, atom in matrix_copies() if key == ["stmatrix", 4, False])
    found["epilogue"] = str(cute.make_tiled_copy_C(atom, wgmma(128)).layout_src_tv_tiled)
    return found


@pytest.fixture(scope="module")
def found():
    """The DSL's thread-value layouts, as text."""
    found = {}

    @cute.jit
    def trace():
        found.update(read_off())

    cute.compile(trace, options="--gpu-arch sm_90a")
    return found


def test_thread_value_layouts_are_those_of_the_dsl(found):
    assert found[8] == "((4,8,4),(2,2)):((128,1,16),(64,8))"  # it drops the mode of extent 1
    assert coalesce(wgmma_accumulator(8)) == coalesce(parse(found[8]))
    for n in range(16, 257, 8):
        assert str(wgmma_accumulator(n)) == found[n]
    for name, make in (("ldmatrix", ldmatrix), ("stmatrix", stmatrix)):
        for matrices in (1, 2, 4):
            for transposed in (False, True):
                memory, registers = found[name, matrices, transposed]
                if name == "stmatrix":
                    memory, registers = registers, memory
                check_atom(make(matrices, transposed), parse(memory), parse(registers))


def check_atom(atom, memory, registers):
    lanes, values = range(32), range(2 * atom.matrices)
    for lane in lanes:
        assert [atom.fragment(lane, v) for v in values] == [registers(lane, v) for v in values]
        if lane < 8 * atom.matrices:
            assert [atom.rows(lane, c) for c in range(8)] == [memory(lane, c) for c in range(8)]


def test_the_epilogue_of_the_dsl_copies_the_accumulator(found):
    assert coalesce(parse(found["epilogue"]), (1, 1)) == coalesce(wgmma_accumulator(128), (1, 1))
