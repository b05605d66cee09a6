"""Tiled MMAs and tiled copies: which thread has which element."""

import random
from collections import Counter

import numpy
import pytest
from hypothesis import settings

from layouts import (
    F2,
    ComposedLayout,
    CopyAtom,
    Layout,
    LayoutError,
    Swizzle,
    copy,
    idx2crd,
    ldmatrix,
    make_copy_atom,
    make_counting_tensor,
    make_fragment_like,
    make_layout_tv,
    make_ordered_layout,
    make_tensor,
    make_tiled_copy,
    make_tiled_copy_A,
    make_tiled_copy_B,
    make_tiled_copy_C,
    make_tiled_copy_C_atom,
    make_tiled_copy_tv,
    make_tiled_mma,
    mma,
    size,
    stmatrix,
    symbols,
    universal_fma,
    volta_mma,
    wgmma,
)
from layouts.tiled.tiled_mma import OPERAND_MODES

HALF = mma("m16n8k16", "f16")
TILED_MMAS = {
    "one warp": make_tiled_mma(HALF),
    "four warps": make_tiled_mma(HALF, (2, 2, 1), (32, 32, 16)),
    "rows before columns": make_tiled_mma(HALF, Layout((2, 2, 1), (2, 1, 0))),
    "warps along k": make_tiled_mma(HALF, (1, 2, 2)),
    "permuted": make_tiled_mma(HALF, (2, 1, 1), (None, Layout((8, 2, 2), (1, 16, 8)), None)),
    "rows apart": make_tiled_mma(HALF, (4, 1, 1), (Layout((16, 4), (4, 1)), 16, 32)),
    "threads": make_tiled_mma(universal_fma(), Layout((4, 2, 1), (2, 1, 0)), (8, 4, None)),
    "quad pairs": make_tiled_mma(volta_mma(), (2, 2, 1)),
    "warpgroups": make_tiled_mma(wgmma(16, "f16"), (2, 1, 1)),
}


def bijection(rng, count):
    """A layout of `count` integers, its modes in any order."""
    extents = []
    while count > 1:
        extents.append(rng.choice([d for d in (2, 3, 4, 8, 16) if count % d == 0] or [count]))
        count //= extents[-1]
    order = rng.sample(range(len(extents)), len(extents))
    return make_ordered_layout(tuple(extents), tuple(order)) if extents else Layout(1)


def random_tiled_mma(seed):
    """An atom on one to four warps, with permutations that may split and reorder its rows."""
    rng = random.Random(seed)
    atom = rng.choice([HALF, mma("m16n8k8", "tf32"), mma("m16n8k32", "s8")])
    atoms = rng.sample([rng.choice([1, 2, 4]), 1, 1], 3)
    order = tuple(rng.sample(range(3), 3))
    extents = [extent * count for extent, count in zip(atom.shape, atoms, strict=True)]
    tilers = [
        rng.choice([None, extent * rng.randint(1, 3), bijection(rng, extent << rng.randrange(3))])
        for extent in extents
    ]
    return make_tiled_mma(atom, make_ordered_layout(tuple(atoms), order), tuple(tilers))


RANDOM = settings().max_examples // 8
TILED_MMAS |= {f"random {seed}": random_tiled_mma(seed) for seed in range(RANDOM)}
NO_WARPS = "threads", "quad pairs", "warpgroups"  # not of warps: ldmatrix does not serve them
COPIES = {"A": make_tiled_copy_A, "B": make_tiled_copy_B, "C": make_tiled_copy_C}


def counted(shape):
    """The tensor whose elements are their own indices, leftmost mode fastest."""
    return make_counting_tensor(Layout(shape))


def elements(tensor):
    return tensor[numpy.arange(size(tensor))].tolist()


def tile_of(tiled, operand):
    return tuple(tiled.get_tile_size(mode) for mode in OPERAND_MODES[operand])


@pytest.mark.parametrize("operand", OPERAND_MODES)
@pytest.mark.parametrize("name", TILED_MMAS)
def test_every_element_is_with_as_many_threads_as_atoms_use_it(name, operand):
    tiled = TILED_MMAS[name]
    rows, columns = tile_of(tiled, operand)
    shape = (rows, 2 * columns)
    count = Counter()
    in_shared_memory = name == "warpgroups" and operand != "C"  # the same for all of a warpgroup
    for thread in range(0, tiled.size, 128 if in_shared_memory else 1):
        part = getattr(tiled.get_slice(thread), f"partition_{operand}")(counted(shape))
        count.update(elements(part))
    assert len(count) == size(shape)
    (other,) = {0, 1, 2} - {*OPERAND_MODES[operand]}
    assert {*count.values()} == {size(tiled.atom_layout_mnk, other)}


@pytest.mark.parametrize("operand", OPERAND_MODES)
@pytest.mark.parametrize("name", TILED_MMAS)
def test_the_thread_value_layout_of_a_tile_agrees_with_the_partitions(name, operand):
    tiled = TILED_MMAS[name]
    tile = tile_of(tiled, operand)
    layout = getattr(tiled, f"tv_layout_{operand}_tiled")
    assert size(layout, 0) == tiled.size
    values = numpy.arange(size(layout, 1))
    for thread in range(0, tiled.size, 5):
        part = getattr(tiled.get_slice(thread), f"partition_{operand}")(counted(tile))
        assert elements(part) == layout(thread, values).tolist()


@pytest.mark.parametrize("operand", OPERAND_MODES)
@pytest.mark.parametrize("name", [name for name in TILED_MMAS if name not in NO_WARPS])
@pytest.mark.parametrize("op", [ldmatrix(2), stmatrix(1, transposed=True), 4], ids=str)
def test_retiled_registers_have_the_coordinates_of_the_copy(name, operand, op):
    """`retile` of what an mma partitions is the copy's own partition, on its register side."""
    tiled, atom = TILED_MMAS[name], make_copy_atom(op, 16)
    if size(getattr(tiled, f"tv_layout_{operand}_tiled"), 1) % size(atom.layout_ref_tv, 1):
        pytest.skip("a thread has fewer values than the atom")
    made = COPIES[operand](atom, tiled)
    registers = "partition_S" if atom.layout_ref_tv == atom.layout_src_tv else "partition_D"
    rows, columns = tile_of(tiled, operand)
    matrix = counted((2 * rows, 2 * columns))
    for thread in range(0, tiled.size, 13):
        held = getattr(tiled.get_slice(thread), f"partition_{operand}")(matrix)
        own = getattr(made.get_slice(thread), registers)(matrix)
        assert elements(made.retile(held)) == elements(own)


@pytest.mark.parametrize("name", [name for name in TILED_MMAS if name not in NO_WARPS])
def test_the_smallest_copy_of_c_takes_registers_in_order_or_is_refused(name):
    tiled = TILED_MMAS[name]
    try:
        made = make_tiled_copy_C_atom(make_copy_atom(stmatrix(2), 16), tiled)
    except LayoutError as error:
        assert "out of order" in str(error)  # noqa: PT017
        assert any(isinstance(tiler, Layout) for tiler in tiled.permutation_mnk)
        return
    rows, columns = tile_of(tiled, "C")
    matrix = counted((2 * rows, 2 * columns))
    for thread in range(0, tiled.size, 13):
        held = tiled.get_slice(thread).partition_C(matrix)
        own = made.get_slice(thread).partition_S(matrix)
        assert elements(made.retile(held)) == elements(own)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("matrices", [1, 2, 4])
def test_what_a_lane_receives_is_what_the_copy_says(matrices, transposed):
    """ldmatrix to registers, then stmatrix back: each element has its coordinate's value."""
    layout_tv = Layout(((4, 8), (2, 2, 2)), ((32, 1), (16, 8, 128)))  # A of m16n8k16
    shape, threads = (32, 32), range(32)
    matrix = Layout(shape) if transposed else Layout(shape, (32, 1))  # a matrix's rows: contiguous
    source = make_tensor(numpy.arange(1024, dtype=numpy.int16), Swizzle(2, 3, 3) @ matrix)
    back = make_tensor(numpy.zeros(1024, numpy.int16), matrix)
    load = make_tiled_copy(make_copy_atom(ldmatrix(matrices, transposed), 16), layout_tv, (16, 16))
    slices = [load.get_slice(thread) for thread in threads]
    held = [make_fragment_like(each.partition_D(source)) for each in slices]
    copy(load, [each.partition_S(source) for each in slices], held)
    for each, registers in zip(slices, held, strict=True):
        where = each.partition_D(counted(shape))
        assert elements(registers) == [source[index] for index in elements(where)]
    store = make_tiled_copy(make_copy_atom(stmatrix(matrices, transposed), 16), layout_tv, (16, 16))
    copy(store, held, [store.get_slice(thread).partition_D(back) for thread in threads])
    assert (back.load() == source.load()).all()


def test_an_access_that_is_no_aligned_vector_is_refused():
    data = make_tensor(numpy.zeros((16, 64), numpy.float16))
    columns = make_tensor(numpy.zeros(1024, numpy.float16), Layout((16, 64)))
    rows = Layout((16, 64), (64, 1))
    torn = make_tensor(numpy.zeros(1024, numpy.float16), Swizzle(2, 2, 4) @ rows)
    shifted = make_tensor(numpy.zeros(1200, numpy.float16), Layout((16, 64), (68, 1)))
    wide = make_tensor(numpy.zeros((16, 64), numpy.float32))
    tiled = make_tiled_copy_tv(make_copy_atom(16, 16), Layout((4, 8), (8, 1)), Layout((1, 8)))
    one = tiled.get_slice(9)
    copy(tiled, one.partition_S(data), one.partition_D(data))
    for other, reason in (
        (columns, "aligned runs of 8"),
        (torn, "aligned runs of 8"),
        (shifted, "aligned runs of 8"),
        (wide, "elements of 32 bits"),
    ):
        with pytest.raises(LayoutError, match=reason):
            copy(tiled, one.partition_S(data), one.partition_D(other))
        with pytest.raises(LayoutError, match=reason):
            copy(tiled, one.partition_S(other), one.partition_D(data))


def test_a_copy_of_part_of_a_vector_is_refused():
    short = make_tensor(numpy.zeros(12, numpy.float16))
    with pytest.raises(LayoutError, match="multiple of the 8"):
        copy(make_copy_atom(16, 16), short, short)
    with pytest.raises(LayoutError, match="multiple of the 8"):
        copy(make_copy_atom(16, 16), [short], [short])


TV_CASES = [
    (Layout((2, 3), (3, 1)), Layout((2, 2), (2, 1))),
    (Layout((8, 4)), Layout((1, 8))),
    (Layout((4, (2, 2)), (2, (1, 8))), Layout((2, 1))),
    (Layout(8), Layout(4)),
    (Layout((4, 2), (2, 1)), Layout((2, 2, 2))),
]


@pytest.mark.parametrize(("threads", "values"), TV_CASES, ids=str)
def test_the_values_of_a_thread_are_neighbours_in_the_tile(threads, values):
    tiler, layout_tv = make_layout_tv(threads, values)
    rank = max(len(threads), len(values))
    own, held = ((*map(size, x), *[1] * (rank - len(x))) for x in (threads, values))
    assert tiler == tuple(a * b for a, b in zip(own, held, strict=True))
    for i in range(size(own)):
        for j in range(size(held)):
            at, within = idx2crd(i, own), idx2crd(j, held)
            coord = tuple(a * h + w for a, h, w in zip(at, held, within, strict=True))
            thread, value = threads(i), values(j)
            assert idx2crd(layout_tv(thread, value), tiler) == coord


#: A matrix of 32 x 16 elements in every kind of layout that gives integers.
MATRICES = [
    Layout((32, 16), (16, 1)),
    Layout(((8, 4), 16), ((1, 128), 8)),
    ComposedLayout(Swizzle(1, 3, 3), 0, Layout((32, 16), (16, 1))),
    ComposedLayout(Swizzle(2, 3, 3), 64, Layout((32, 16), (16, 1))),
    Layout((32, 16), (F2(17), F2(3 << 10))),
    ComposedLayout(Swizzle(2, 0, 4), 3, Layout((32, 16), (F2(1), F2(33)))),
]


@pytest.mark.parametrize("matrix", MATRICES, ids=str)
def test_partitions_of_every_kind_of_layout_have_the_elements_of_their_coordinates(matrix):
    tiled, indices = TILED_MMAS["four warps"], counted((32, 16))
    loads = make_tiled_copy_A(make_copy_atom(ldmatrix(4), 16), tiled)
    for thread in (0, 37, 127):
        mma_slice, copy_slice = tiled.get_slice(thread), loads.get_slice(thread)
        for partition in (mma_slice.partition_A, copy_slice.partition_S, copy_slice.partition_D):
            tile = partition(matrix)
            assert [tile.offset + tile.layout(i) for i in range(size(tile.layout))] == [
                matrix(index) for index in elements(partition(indices))
            ]


def test_matrices_of_symbolic_extents_are_cut_like_those_of_numbers():
    m, k = symbols("m k")
    tiled = TILED_MMAS["four warps"]
    symbolic = tiled.thrfrg_A(Layout((32 * m, 16 * k), (16 * k, 1)))
    concrete = tiled.thrfrg_A(Layout((96, 32), (32, 1)))
    strides = str(symbolic.stride).replace("k", "2")
    assert str(symbolic.shape).replace("m", "3").replace("k", "2") == str(concrete.shape)
    assert eval(strides) == concrete.stride


REFUSED = {
    "no atom": lambda: make_tiled_mma("m16n8k16"),
    "an atom layout of two modes": lambda: make_tiled_mma(HALF, (2, 2)),
    "atoms with the same threads": lambda: make_tiled_mma(HALF, Layout((2, 1, 1), (0, 0, 0))),
    "threads left out": lambda: make_tiled_mma(HALF, Layout((2, 2, 1), (1, 4, 0))),
    "two permutations": lambda: make_tiled_mma(HALF, (1, 1, 1), (16, 8)),
    "part of an atom": lambda: make_tiled_mma(HALF, (1, 1, 1), (None, 12, None)),
    "fewer than the atoms": lambda: make_tiled_mma(HALF, (2, 2, 1), (16, 8, 16)),
    "no permutation": lambda: make_tiled_mma(HALF, (1, 1, 1), (None, Layout(8, 2), None)),
    "atoms across a mode of 3": lambda: make_tiled_mma(
        HALF, (1, 1, 1), (None, Layout((2, 2, 3, 2), (4, 2, 8, 1)), None)
    ),
    "no such thread": lambda: make_tiled_mma(HALF).get_slice(32),
    "a negative thread": lambda: make_tiled_mma(HALF).get_slice(-1),
    "no thread of this quad pair": lambda: make_tiled_mma(volta_mma()).get_slice(4),
    "threads of one quad pair by number": lambda: make_tiled_mma(volta_mma()).tv_layout_C_tiled,
    "a vector as a matrix": lambda: make_tiled_mma(HALF).thrfrg_A(Layout(64)),
    "an array as a matrix": lambda: make_tiled_mma(HALF).thrfrg_A(numpy.zeros((16, 16))),
    "threads that are not compact": lambda: make_layout_tv(Layout(4, 2), Layout(2)),
    "values that are not compact": lambda: make_layout_tv(Layout(4), Layout(2, 0)),
    "a shape of threads": lambda: make_layout_tv((4, 8), Layout(2)),
    "no copy atom": lambda: make_tiled_copy_tv(ldmatrix(), Layout(32), Layout(8)),
    "half a warp": lambda: make_tiled_copy_tv(
        make_copy_atom(ldmatrix(), 16), Layout((16, 1)), Layout((1, 8))
    ),
    "half a vector": lambda: make_tiled_copy_tv(make_copy_atom(16, 16), Layout(32), Layout(4)),
    "beyond the tile": lambda: make_tiled_copy(make_copy_atom(2, 16), Layout((4, 4)), (4, 2)),
    "a tiler that is no tuple": lambda: make_tiled_copy(make_copy_atom(2, 16), Layout((4, 4)), 16),
    "a thread beyond the copy": lambda: make_tiled_copy_tv(
        make_copy_atom(16, 16), Layout(32), Layout(8)
    ).get_slice(32),
    "retile of other registers": lambda: make_tiled_copy_C(
        make_copy_atom(4, 16), TILED_MMAS["one warp"]
    ).retile(Layout((3, 2, 2))),
    "32-bit elements transposed": lambda: make_copy_atom(ldmatrix(4, True), 32),
    "elements wider than the copy": lambda: make_copy_atom(2, 32),
    "an instruction without its matrices": lambda: make_copy_atom("ldmatrix.x4", 16),
    "half an element": lambda: make_copy_atom(16, 0),
    "an atom that loses elements": lambda: CopyAtom(
        "lossy", Layout((4, 2), (1, 0)), Layout((4, 2)), Layout((4, 2)), 16
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_partition_is_refused(name):
    with pytest.raises(LayoutError):
        REFUSED[name]()


WIDE_COPY = make_tiled_copy_tv(make_copy_atom(4, 16), Layout((8, 4)), Layout((1, 2)))


@pytest.mark.parametrize("tiled", [TILED_MMAS["one warp"], WIDE_COPY], ids=["mma", "copy"])
def test_a_thread_is_one_that_exists(tiled):
    for thread in (0, numpy.int64(31), symbols("m")):
        assert tiled.get_slice(thread).thr_idx == thread
    assert type(tiled.get_slice(numpy.int64(3)).thr_idx) is int
    for thread in (32, -1, (3, 9), None, 1.0, "a", True, [1], numpy.array([3]), numpy.array(3)):
        with pytest.raises(LayoutError, match="thread"):
            tiled.get_slice(thread)


def test_tiled_values_are_equal_hashable_and_print_like_the_dsl():
    one, other = (make_tiled_mma(HALF, (2, 2, 1), (32, 32, 16)) for _ in range(2))
    assert one == other
    assert len({one, other}) == 1
    assert str(one).splitlines()[:3] == [
        "Tiled MMA",
        "  Thr Layout VMNK: (32,2,2,1):(1,32,64,0)",
        "  Permutation MNK: (32,32,16)",
    ]
    made = make_tiled_copy_A(make_copy_atom(ldmatrix(), 16), one)
    assert str(made).splitlines()[1] == "  Tiler MN:        (32,16)"
    assert eval(repr(HALF), {"MmaAtom": type(HALF), "Layout": Layout}) == HALF
