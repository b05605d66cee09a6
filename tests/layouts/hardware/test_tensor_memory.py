"""Fragments of tcgen05.ld and .st, and accumulators in tensor memory; the CuTe DSL's are equal."""

import pytest

from layouts import (
    TMEM,
    Bijective,
    Injective,
    LayoutError,
    composition,
    left_inverse,
    mma,
    parse,
    prove,
    size,
    tcgen05_accumulator,
    tcgen05_ld,
    tcgen05_st,
)

SHAPES = ("32x32b", "16x64b", "16x128b", "16x256b")
MOST = {"32x32b": 128, "16x64b": 128, "16x128b": 64, "16x256b": 32}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_cell_is_moved_once(shape):
    for bit in range(MOST[shape].bit_length()):
        atom = tcgen05_ld(shape, 1 << bit)
        cells = [divmod(atom.fragment(i), 1 << 16) for i in range(size(atom.fragment))]
        every = [(lane, column) for lane in range(atom.lanes) for column in range(atom.columns)]
        assert sorted(cells) == every
        assert atom.registers == len(every) // 32 <= 128
        assert atom.columns * 32 == int(shape.split("x")[1][:-1]) << bit


@pytest.mark.parametrize(
    ("m", "n", "ctas"), [(64, 8, 1), (64, 256, 1), (128, 16, 1), (128, 256, 2), (256, 32, 2)]
)
def test_an_accumulator_lies_in_tensor_memory(m, n, ctas):
    layout = tcgen05_accumulator(m, n, ctas)
    assert prove(Injective(layout))
    assert size(layout) * ctas == m * n
    inside = {TMEM(i) for i in range(size(TMEM))}
    assert inside.issuperset(layout(i) for i in range(size(layout)))


def test_a_warp_loads_whole_rows_or_the_fragment_of_an_mma():
    element = left_inverse(tcgen05_accumulator(128, 16))  # → m + 128 * n
    assert str(composition(element, tcgen05_ld("32x32b", 16).fragment)) == "(32,16):(1,128)"
    held = composition(element, tcgen05_ld("16x256b", 2).fragment)
    theirs = mma("m16n8k16", "f16").c  # → m + 16 * n
    for thread in range(32):
        for register in range(8):
            n, m = divmod(held(thread, register), 128)
            assert divmod(theirs(thread, register % 4), 16) == (n - 8 * (register // 4), m)
    assert prove(Bijective(theirs))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: tcgen05_accumulator(128, 12), "n a multiple of 8"),
        (lambda: tcgen05_accumulator(128, 8, 2), "n a multiple of 16"),
        (lambda: tcgen05_accumulator(64, 264), "n a multiple of 8 up to 256"),
        (lambda: tcgen05_accumulator(64, 8, 2), "m must be 64 of cta_group 1, 128 of cta_group 1"),
        (lambda: tcgen05_accumulator(128, "16"), "n a multiple of 16"),
        (lambda: tcgen05_accumulator([128], 16), r"tcgen05_accumulator\(\[128\]"),
        (lambda: tcgen05_ld(["16x64b"]), "must be one of 32x32b"),
        (lambda: tcgen05_ld("16x512b"), "must be one of 32x32b, 16x64b"),
        (lambda: tcgen05_st("16x256b", 64), r"repeat 64 must be 1, 2, 4 \.\.\. 32"),
        (lambda: tcgen05_ld("32x32b", 3), "repeat 3"),
        (lambda: tcgen05_ld("32x32b", True), "repeat True"),
    ],
)
def test_what_tcgen05_has_not_raises(call, words):
    with pytest.raises(LayoutError, match=words):
        call()


# ------------------------------------------------------------------------------ the DSL's own

cutlass = pytest.importorskip("cutlass")
cute = pytest.importorskip("cutlass.cute")

ACCUMULATORS = [(64, 16, 1), (128, 16, 1), (128, 32, 2), (256, 32, 2)]


def copies():
    """(class, repeat), the DSL's atom."""
    from cutlass.cute.nvgpu import tcgen05

    for name in ("Ld", "St"):
        for shape in SHAPES:
            for repeat in (tcgen05.Repetition.x1, tcgen05.Repetition.x4):
                op = getattr(tcgen05, f"{name}{shape}Op")(repeat)
                yield (name, shape, repeat.value), cute.make_copy_atom(op, cutlass.Float32)


def accumulator(m, n, ctas):
    """The layout of D in tensor memory, as text."""
    from cutlass.cute.nvgpu import OperandMajorMode, tcgen05

    group, major = tcgen05.CtaGroup(ctas), OperandMajorMode.K
    source = tcgen05.OperandSource.SMEM
    op = tcgen05.MmaF16BF16Op(
        cutlass.BFloat16, cutlass.Float32, (m, n, 16), group, source, major, major
    )
    tiled = cute.make_tiled_mma(op)
    return str(tiled.make_fragment_C(tiled.partition_shape_C((m, n))).layout)


@pytest.fixture(scope="module")
def found():
    """The DSL's layouts, as text."""
    found = {}

    @cute.jit
    def trace():
        for key, atom in copies():
            sides = str(atom.layout_src_tv), str(atom.layout_dst_tv)
            found[key] = sides[key[0] == "Ld"]
        for shape in ACCUMULATORS:
            found[shape] = accumulator(*shape)

    cute.compile(trace, options="--gpu-arch sm_100a")
    return found


@pytest.mark.parametrize("shape", SHAPES)
def test_fragments_equal_the_dsl_s(found, shape):
    """The DSL counts column + columns * lane."""
    for repeat in (1, 4):
        for name, make in (("Ld", tcgen05_ld), ("St", tcgen05_st)):
            atom, theirs = make(shape, repeat), parse(found[name, shape, repeat])
            for i in range(size(theirs)):
                lane, column = divmod(atom.fragment(i), 1 << 16)
                assert theirs(i) == column + atom.columns * lane


@pytest.mark.parametrize("shape", ACCUMULATORS)
def test_accumulators_equal_the_dsl_s(found, shape):
    theirs = parse(found[shape])
    assert theirs[0] == tcgen05_accumulator(*shape)
