"""Thread-value layouts, compared with the PTX ISA and with the CuTe DSL's own layouts."""

import pytest

from layouts import (
    MMA,
    QUAD_PAIRS,
    Bijective,
    LayoutError,
    MmaAtom,
    coalesce,
    ldmatrix,
    mma,
    parse,
    prove,
    size,
    stmatrix,
    volta_mma,
    wgmma,
    wgmma_accumulator,
    wgmma_operand,
)


@pytest.mark.parametrize("n", range(8, 257, 8))
def test_the_accumulator_is_a_bijection_onto_its_tile(n):
    layout = wgmma_accumulator(n)
    assert prove(Bijective(layout))
    assert (size(layout, 0), size(layout, 1)) == (128, n // 2)


def test_the_accumulator_matches_the_figure_of_the_ptx_isa():
    layout = wgmma_accumulator(64)
    for thread in range(128):
        warp, lane = divmod(thread, 32)
        for register in range(32):
            column, row = divmod(layout(thread, register), 64)
            assert row == 16 * warp + lane // 4 + 8 * (register // 2 % 2)
            assert column == 8 * (register // 4) + 2 * (lane % 4) + register % 2


@pytest.mark.parametrize("n", [0, 4, 12, 264, 64.0, "64"])
def test_an_accumulator_of_another_width_raises(n):
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


def test_registers_of_the_accumulator_are_matrices_of_stmatrix():
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


# --------------------------------------------------------------------------------------- mma


def by_ptx(name, lane, i):
    """(row, column) of element i of A, and (column, row) of B, by the PTX ISA's formulas."""
    group, in_group = lane >> 2, lane % 4
    a, b = {
        ("m8n8k4", 64): ((group, in_group), in_group),
        ("m8n8k16", 8): ((group, in_group * 4 + i), in_group * 4 + i),
        ("m8n8k32", 4): ((group, in_group * 8 + i), in_group * 8 + i),
        ("m8n8k128", 1): ((group, in_group * 32 + i), in_group * 32 + i),
        ("m16n8k4", 32): ((group + 8 * (i == 1), in_group), in_group),
        ("m16n8k4", 64): ((group + 8 * (i == 1), in_group), in_group),
        ("m16n8k8", 16): (
            (group + 8 * (i >= 2), in_group * 2 + (i & 1)),
            in_group * 2 + (i & 1),
        ),
        ("m16n8k8", 32): ((group + 8 * (i % 2), in_group + 4 * (i >= 2)), in_group + 4 * (i >= 1)),
        ("m16n8k8", 64): (
            (group + 8 * (i not in (0, 2)), in_group + 4 * (i >= 2)),
            in_group + 4 * (i >= 1),
        ),
        ("m16n8k16", 16): (
            (group + 8 * (i % 4 >= 2), in_group * 2 + (i & 1) + 8 * (i >= 4)),
            in_group * 2 + (i & 1) + 8 * (i >= 2),
        ),
        ("m16n8k16", 64): (
            (group + 8 * (i % 2), i * 2 - 2 * (i % 2) + in_group),
            in_group + i * 4,
        ),
        ("m16n8k16", 8): ((group + 8 * (i >= 4), in_group * 4 + (i & 3)), in_group * 4 + i),
        ("m16n8k32", 8): (
            (group + 8 * (i // 4 % 2), in_group * 4 + (i & 3) + 16 * (i >= 8)),
            in_group * 4 + (i & 3) + 16 * (i >= 4),
        ),
        ("m16n8k32", 4): ((group + 8 * (i >= 8), in_group * 8 + (i & 7)), in_group * 8 + (i & 7)),
        ("m16n8k64", 4): (
            (group + 8 * (not (i < 8 or 16 <= i < 24)), in_group * 8 + (i & 7) + 32 * (i >= 16)),
            in_group * 8 + (i & 7) + 32 * (i >= 8),
        ),
        ("m16n8k128", 1): ((group + 8 * (i >= 32), in_group * 32 + (i & 31)), in_group * 32 + i),
        ("m16n8k256", 1): (
            (
                group + 8 * (not (i < 32 or 64 <= i < 96)),
                in_group * 32 + (i & 31) + 128 * (i >= 64),
            ),
            in_group * 32 + (i & 31) + 128 * (i >= 32),
        ),
    }[name]
    return a, (group, b)


@pytest.mark.parametrize("name", MMA, ids=str)
def test_fragments_of_mma_match_the_formulas_of_the_ptx_isa(name):
    atom = MMA[name]
    m, n, _ = atom.shape
    for lane in range(32):
        for i in range(size(atom.a[1])):
            assert divmod(atom.a(lane, i), m)[::-1] == by_ptx(name, lane, i)[0]
        for i in range(size(atom.b[1])):
            assert divmod(atom.b(lane, i), n)[::-1] == by_ptx(name, lane, i)[1]
        for i in range(m // 4):
            row, column = lane // 4 + 8 * (i // 2), lane % 4 * 2 + i % 2
            assert divmod(atom.c(lane, i), m) == (column, row)


VOLTA = [volta_mma(a, b, c) for a in ("row", "col") for b in ("row", "col") for c in ("f16", "f32")]


@pytest.mark.parametrize("atom", [*MMA.values(), *VOLTA], ids=lambda atom: atom.name)
def test_every_fragment_is_a_bijection_onto_its_matrix(atom):
    m, n, k = atom.shape
    for layout, count in ((atom.a, m * k), (atom.b, n * k), (atom.c, m * n)):
        assert prove(Bijective(layout))
        assert size(layout) == count


@pytest.mark.parametrize("atom", VOLTA, ids=lambda atom: atom.name)
def test_fragments_of_quad_pairs_match_the_formulas_of_the_ptx_isa(atom):
    """PTX ISA, Matrix Fragments for mma.m8n8k4 with .f16, by %laneid and the element's index."""
    _, _, a, b, kind = atom.name.split(".")
    for pair in range(4):
        for thread in range(8):
            lane = QUAD_PAIRS(thread, pair)
            assert lane // 4 % 4 == pair
            high = 4 * (lane >= 16)
            for i in range(4):
                by_row = (lane % 4 + high, i)  # one row of A, or one column of B, along k
                by_col = (i + high, lane % 4)
                assert divmod(atom.a(thread, i), 8)[::-1] == (by_row if a == "row" else by_col)
                assert divmod(atom.b(thread, i), 8)[::-1] == (by_row if b == "col" else by_col)
            for i in range(8):
                row, column = lane % 4 + high, i
                if kind == "f32":
                    row = (lane & 1) + (i & 2) + high
                    column = (i & 4) + (lane & 2) + (i & 1)
                assert divmod(atom.c(thread, i), 8) == (column, row)
    assert prove(Bijective(QUAD_PAIRS))


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_operands_in_registers_match_the_formulas_of_the_ptx_isa(bits):
    layout, held = wgmma_operand(bits), 32 // bits  # elements of a register
    assert prove(Bijective(layout))
    assert size(layout) == 64 * (256 // bits)
    for thread in range(128):
        warp, lane = divmod(thread, 32)
        for i in range(size(layout[1])):
            register, part = divmod(i, held)
            row = 16 * warp + lane // 4 + 8 * (register % 2)
            column = held * (lane % 4) + part + 4 * held * (register // 2)
            assert divmod(layout(thread, i), 64) == (column, row)


def test_an_accumulator_can_be_the_operand_of_the_next_product():
    """Registers 8j to 8j + 7 of D are columns 16j to 16j + 15 as an operand A."""
    accumulator, operand = wgmma_accumulator(64), wgmma_operand(16)
    for j in range(4):
        for thread in range(128):
            for i in range(8):
                assert accumulator(thread, 8 * j + i) == operand(thread, i) + 64 * 16 * j


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: mma("m16n8k16", "tf32"), "mma m16n8k16 of tf32: the table has m8n8k4 of f64; m8"),
        (lambda: mma("m16n8k64", "e2m1"), "m16n8k64 of s4 u4"),
        (lambda: mma("m8n8k16", "e4m3"), "m8n8k16 of s8 u8"),
        (lambda: mma("m16n8k16", 16), "m16n8k16 of 16: the table"),
        (lambda: mma("m16n8k16", ["bf16"]), "m16n8k16 of .*: the table"),
        (lambda: volta_mma("K"), "are 'row' or 'col'"),
        (lambda: volta_mma(accumulator="bf16"), "accumulator is 'f32' or 'f16'"),
        (lambda: wgmma_operand(64), "elements of 64 bits"),
        (lambda: wgmma("m64n64k16", "bf16"), "^wgmma: n = 'm64n64k16' must be"),
        (
            lambda: MmaAtom("mma", (16, 8, 8), *[mma("m16n8k8", "f16").c] * 3, ""),
            "B is .* must have 64 elements",
        ),
    ],
)
def test_atoms_outside_the_tables_raise(call, words):
    with pytest.raises(LayoutError, match=words):
        call()


# ------------------------------------------------------------------------------ the DSL's own

cutlass = pytest.importorskip("cutlass")
cute = pytest.importorskip("cutlass.cute")


def dsl_wgmma(n):
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


def mmas():
    """(shape, type), the DSL's."""
    from cutlass.cute.nvgpu import warp

    acc = cutlass.Float32
    for kind, dtype in (("f16", cutlass.Float16), ("bf16", cutlass.BFloat16)):
        for k in (8, 16):
            yield (f"m16n8k{k}", kind), warp.MmaF16BF16Op(dtype, acc, (16, 8, k))
    for k in (4, 8):
        yield (f"m16n8k{k}", "tf32"), warp.MmaTF32Op((16, 8, k))


def fp8_mmas():
    """(shape, type), the DSL's, of sm_89."""
    from cutlass.cute.nvgpu import warp

    for kind, dtype in (("e4m3", cutlass.Float8E4M3FN), ("e5m2", cutlass.Float8E5M2)):
        yield ("m16n8k32", kind), warp.MmaFP8Op(dtype, cutlass.Float32, (16, 8, 32))


def wgmmas_from_registers():
    """Type of A, the DSL's wgmma."""
    from cutlass.cute.nvgpu import OperandMajorMode, warpgroup
    from cutlass.cute.nvgpu.warpgroup.mma import MmaI8Op

    major, source, f32 = OperandMajorMode.K, warpgroup.OperandSource.RMEM, cutlass.Float32
    for kind, dtype in (("f16", cutlass.Float16), ("bf16", cutlass.BFloat16)):
        op = warpgroup.MmaF16BF16Op(dtype, f32, (64, 32, 16), source, major, major)
        yield kind, cute.make_tiled_mma(op)
    for kind, dtype in (("e4m3", cutlass.Float8E4M3FN), ("e5m2", cutlass.Float8E5M2)):
        op = warpgroup.MmaF8Op(dtype, dtype, f32, (64, 32, 32), source, major, major)
        yield kind, cute.make_tiled_mma(op)
    s8 = cutlass.Int8
    yield (
        "s8",
        cute.make_tiled_mma(MmaI8Op(s8, s8, cutlass.Int32, (64, 32, 32), source, major, major)),
    )


def fragments(op):
    """A, B and C of an mma, as text."""
    tiled = cute.make_tiled_mma(op)
    return str(tiled.tv_layout_A), str(tiled.tv_layout_B), str(tiled.tv_layout_C)


def read_off():
    found = {}
    for n in range(8, 257, 8):
        found[n] = str(dsl_wgmma(n).tv_layout_C)
    for name, matrices, transposed, atom in matrix_copies():
        sides = str(atom.layout_src_tv), str(atom.layout_dst_tv)
        found[name, matrices, transposed] = sides
    for name, op in mmas():
        found[name] = fragments(op)
    for kind, tiled in wgmmas_from_registers():
        found["operand", kind] = str(tiled.tv_layout_A)
    atom = next(atom for *key, atom in matrix_copies() if key == ["stmatrix", 4, False])
    found["epilogue"] = str(cute.make_tiled_copy_C(atom, dsl_wgmma(128)).layout_src_tv_tiled)
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


def test_thread_value_layouts_equal_the_dsl_s(found):
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


def test_fragments_of_mma_equal_the_dsl_s(found):
    f8 = {}

    @cute.jit
    def trace():
        f8.update({name: fragments(op) for name, op in fp8_mmas()})

    cute.compile(trace, options="--gpu-arch sm_89")
    theirs = {name: text for name, text in found.items() if isinstance(name, tuple)} | f8
    for shape, kind in [name for name in theirs if str(name[0]).startswith("m16n8")]:
        atom = mma(shape, kind)
        assert (str(atom.a), str(atom.b), str(atom.c)) == theirs[shape, kind]
    assert len(f8) == 2
    assert {(shape, kind) for shape, kind in mma_names()} <= set(theirs)


def mma_names():
    return [(f"m16n8k{k}", kind) for kind in ("f16", "bf16") for k in (8, 16)] + [
        (f"m16n8k{k}", "tf32") for k in (4, 8)
    ]


def test_operands_in_registers_equal_the_dsl_s(found):
    for kind, bits in (("f16", 16), ("bf16", 16), ("e4m3", 8), ("e5m2", 8), ("s8", 8)):
        assert str(wgmma_operand(bits)) == found["operand", kind]


def check_atom(atom, memory, registers):
    lanes, values = range(32), range(2 * atom.matrices)
    for lane in lanes:
        assert [atom.fragment(lane, v) for v in values] == [registers(lane, v) for v in values]
        if lane < 8 * atom.matrices:
            assert [atom.rows(lane, c) for c in range(8)] == [memory(lane, c) for c in range(8)]


def test_the_dsl_s_epilogue_copies_the_accumulator(found):
    assert coalesce(parse(found["epilogue"]), (1, 1)) == coalesce(wgmma_accumulator(128), (1, 1))


def test_wgmma_of_8_bit_integers_has_fewer_widths():
    assert wgmma(24, "s8").shape == wgmma(24, "e4m3").shape == (64, 24, 32)
    assert wgmma(40, "e4m3").shape == (64, 40, 32)
    with pytest.raises(LayoutError, match="8, 24 or a multiple of 16"):
        wgmma(40, "s8")
