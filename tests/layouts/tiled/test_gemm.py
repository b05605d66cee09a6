"""A GEMM through tensors, tiled copies and tiled MMAs alone, as a kernel would move its data."""

import numpy
import pytest

from layouts import (
    ComposedLayout,
    Layout,
    LayoutError,
    Swizzle,
    composition,
    copy,
    gemm,
    ldmatrix,
    local_tile,
    make_copy_atom,
    make_fragment_like,
    make_rmem_tensor,
    make_tensor,
    make_tiled_copy_A,
    make_tiled_copy_B,
    make_tiled_copy_C,
    make_tiled_copy_tv,
    make_tiled_mma,
    mma,
    stmatrix,
    universal_fma,
    volta_mma,
    wgmma,
)

HALF, FLOAT = numpy.float16, numpy.float32


def integers(rng, *shape, dtype=HALF):
    """Small integers, whose products every type holds exactly."""
    return rng.integers(-4, 5, shape).astype(dtype)


def swizzled(rows, columns):
    """K-major shared memory of 16-bit elements, swizzled as far as its rows allow."""
    bits = (columns // 8).bit_length() - 1
    return composition(Swizzle(bits, 3, 3), Layout((rows, columns), (columns, 1)))


def by_thread(threads, operation):
    return [operation(thread) for thread in range(threads)]


def add_product(tiled, slices, acc, a, b):
    """acc += a · bᵀ, by all threads: each takes its part of the operands."""
    parts_a = [each.partition_A(make_tensor(a)) for each in slices]
    parts_b = [each.partition_B(make_tensor(b)) for each in slices]
    gemm(tiled, acc, parts_a, parts_b, acc)


def to_shared(array, threads):
    """A matrix of global memory in shared memory, by a tiled copy of 16 bytes a thread."""
    rows, columns = array.shape
    matrix, shared = make_tensor(array), make_rmem_tensor(swizzled(rows, columns), array.dtype)
    across = columns // 8
    down = min(threads // across, rows)
    order = Layout((down, across), (across, 1))
    tiled = make_tiled_copy_tv(make_copy_atom(16, 16), order, Layout((1, 8)))
    for thread in by_thread(tiled.size, tiled.get_slice):
        copy(tiled, thread.partition_S(matrix), thread.partition_D(shared))
    return shared


def to_registers(tiled_mma, operand, tiled, shared):
    """An operand in the registers of all threads, by ldmatrix."""
    threads = range(tiled_mma.size)
    parts = [getattr(tiled_mma.get_slice(t), f"partition_{operand}")(shared) for t in threads]
    fragments = [make_fragment_like(part) for part in parts]
    sources = [tiled.get_slice(t).partition_S(shared) for t in threads]
    copy(tiled, sources, [tiled.retile(fragment) for fragment in fragments])
    return fragments


@pytest.mark.parametrize(
    ("shape", "atoms", "permutation"),
    [
        ((64, 32, 16), (1, 1, 1), (16, 16, 16)),
        ((32, 32, 16), (1, 2, 1), (16, 32, 16)),
        ((32, 32, 64), (2, 1, 1), (None, Layout((8, 2, 2), (1, 16, 8)), None)),
    ],
)
def test_a_gemm_by_ldmatrix_mma_and_stmatrix_is_numpys_product(shape, atoms, permutation):
    m, n, k = shape
    rng = numpy.random.default_rng(0)
    a, b = integers(rng, m, k), integers(rng, n, k)
    tiled_mma = make_tiled_mma(mma("m16n8k16", "f16"), atoms, permutation)
    threads = tiled_mma.size
    shared_a, shared_b = to_shared(a, threads), to_shared(b, threads)

    load = make_copy_atom(ldmatrix(4), 16)
    held_a = to_registers(tiled_mma, "A", make_tiled_copy_A(load, tiled_mma), shared_a)
    held_b = to_registers(tiled_mma, "B", make_tiled_copy_B(load, tiled_mma), shared_b)
    shape_c = tiled_mma.partition_shape_C((m, n))
    sums = by_thread(threads, lambda _: make_rmem_tensor(shape_c, FLOAT))
    gemm(tiled_mma, sums, held_a, held_b, sums)

    rounded = [make_fragment_like(held, HALF) for held in sums]
    for held, out in zip(sums, rounded, strict=True):
        copy(held, out)
    staging = make_rmem_tensor(swizzled(m, n), HALF)
    store = make_tiled_copy_C(make_copy_atom(stmatrix(4), 16), tiled_mma)
    copy(
        store,
        [store.retile(out) for out in rounded],
        by_thread(threads, lambda t: store.get_slice(t).partition_D(staging)),
    )
    expected = a.astype(FLOAT) @ b.astype(FLOAT).T
    assert (staging.load() == expected).all()

    direct = make_tensor(numpy.zeros((m, n), FLOAT))
    for thread in range(threads):
        copy(sums[thread], tiled_mma.get_slice(thread).partition_C(direct))
    assert (direct.load() == expected).all()


MMAS = {
    "m16n8k8 tf32": (make_tiled_mma(mma("m16n8k8", "tf32"), (2, 1, 1)), FLOAT, FLOAT),
    "m16n8k32 s8": (make_tiled_mma(mma("m16n8k32", "s8"), (1, 2, 1)), numpy.int8, numpy.int32),
    "fma": (make_tiled_mma(universal_fma(), Layout((4, 8, 1), (8, 1, 0))), FLOAT, FLOAT),
    "volta": (make_tiled_mma(volta_mma("row", "row"), Layout((2, 2, 1))), HALF, FLOAT),
    "wgmma ss": (make_tiled_mma(wgmma(16, "f16"), (1, 1, 1)), HALF, FLOAT),
    "wgmma rs": (make_tiled_mma(wgmma(32, "f16", a="rmem"), (1, 1, 1)), HALF, FLOAT),
}


@pytest.mark.parametrize("name", MMAS)
def test_every_kind_of_mma_multiplies(name):
    tiled, of_operands, of_sums = MMAS[name]
    m, n, k = (2 * tiled.get_tile_size(mode) for mode in range(3))
    rng = numpy.random.default_rng(1)
    a, b = integers(rng, m, k, dtype=of_operands), integers(rng, n, k, dtype=of_operands)
    c = make_tensor(integers(rng, m, n, dtype=of_sums))
    slices = by_thread(tiled.size, tiled.get_slice)
    expected = c.load() + a.astype(of_sums) @ b.astype(of_sums).T
    add_product(tiled, slices, [each.partition_C(c) for each in slices], a, b)
    assert (c.load() == expected).all()


def test_atoms_along_k_each_hold_a_part_of_the_sum():
    rng = numpy.random.default_rng(2)
    a, b = integers(rng, 16, 32), integers(rng, 8, 32)
    tiled = make_tiled_mma(mma("m16n8k16", "f16"), (1, 1, 2))
    slices = by_thread(64, tiled.get_slice)
    sums = by_thread(64, lambda _: make_rmem_tensor(tiled.partition_shape_C((16, 8)), FLOAT))
    add_product(tiled, slices, sums, a, b)
    total = make_tensor(numpy.zeros((16, 8), FLOAT))
    for each, held in zip(slices, sums, strict=True):
        part = each.partition_C(total)
        part.store(part.load() + held.load())
    assert (total.load() == a.astype(FLOAT) @ b.astype(FLOAT).T).all()


def test_a_gemm_of_torch_tensors_is_torchs_product():
    torch = pytest.importorskip("torch")
    a, b = (torch.randint(-4, 5, (n, 16)).bfloat16() for n in (16, 8))
    tiled = make_tiled_mma(mma("m16n8k16", "bf16"))
    slices = by_thread(32, tiled.get_slice)
    c = make_tensor(torch.zeros(16, 8))
    add_product(tiled, slices, [each.partition_C(c) for each in slices], a, b)
    assert (c.load() == a.float() @ b.float().T).all()


def test_ldmatrix_of_one_lane_is_refused():
    tiled = make_tiled_copy_A(
        make_copy_atom(ldmatrix(4), 16), make_tiled_mma(mma("m16n8k16", "f16"))
    )
    shared = make_rmem_tensor(ComposedLayout(Swizzle(1, 3, 3), 0, Layout((16, 16), (16, 1))), HALF)
    source = tiled.get_slice(0).partition_S(shared)
    with pytest.raises(LayoutError, match="needs all threads of its warp"):
        copy(tiled, source, make_fragment_like(source))
    with pytest.raises(LayoutError, match="the tensors of 32 threads"):
        copy(tiled, [source] * 31, [source] * 31)


def test_fragments_that_do_not_fit_are_refused():
    tiled = make_tiled_mma(mma("m16n8k16", "f16"))
    a = [make_rmem_tensor(tiled.partition_shape_A((16, 32)), HALF)] * 32
    b = [make_rmem_tensor(tiled.partition_shape_B((8, 16)), HALF)] * 32
    c = [make_rmem_tensor(tiled.partition_shape_C((16, 8)), FLOAT)] * 32
    with pytest.raises(LayoutError, match="the counts must agree"):
        gemm(tiled, c, a, b, c)
    with pytest.raises(LayoutError, match="must have one shape"):
        gemm(tiled, c, a[:31] + [make_rmem_tensor(tiled.partition_shape_A((16, 16)), HALF)], b, c)
    with pytest.raises(LayoutError, match="31 fragments for 32 threads"):
        gemm(tiled, c, a[:31], b, c)
    with pytest.raises(LayoutError, match="a tensor of three modes"):
        gemm(tiled, c, b, b, c)


def test_a_fragment_of_d_has_the_modes_of_c():
    tiled = make_tiled_mma(universal_fma())
    a, b = (make_tensor(numpy.arange(2.0 * n), (1, n, 2)) for n in (3, 2))
    c = make_rmem_tensor((1, 3, 2), numpy.float64)
    product = a.load()[0] @ b.load()[0].T
    for shape in ((1, 3, 2), (1, 3, (2, 1))):
        d = make_rmem_tensor(shape, numpy.float64)
        gemm(tiled, d, a, b, c)
        assert (d.load()[0] == product).all()
    for shape in ((1, 2, 3), (1, 3, 4), (1, 1, 2), (3, 3, 2), (1, 1, 3, 2), (1, 6), (3, 2), 6):
        d = make_rmem_tensor(shape, numpy.float64)
        with pytest.raises(LayoutError, match=r"the counts must agree|a tensor of three modes"):
            gemm(tiled, d, a, b, c)
        assert not d.data.any()
    for not_tensors in ([[0]], [numpy.zeros((1, 3, 2))], [None]):
        with pytest.raises(LayoutError, match="a tensor of three modes"):
            gemm(tiled, not_tensors, a, b, c)


def test_a_ragged_tile_is_copied_under_a_predicate():
    from layouts import elem_less, make_identity_tensor

    source = make_tensor(numpy.arange(100 * 3).reshape(100, 3))
    tile, where = (local_tile(x, (32, 3), (3, 0)) for x in (source, make_identity_tensor((100, 3))))
    pred = make_rmem_tensor((32, 3), numpy.bool_)
    for index in range(96):
        pred[index] = elem_less(where[index], (100, 3))
    held = make_rmem_tensor((32, 3), numpy.int64)
    held.fill(-1)
    with pytest.raises(LayoutError, match="beyond the data"):
        copy(tile, held)
    copy(tile, held, pred=pred)
    assert (held.load()[:4] == numpy.arange(288, 300).reshape(4, 3)).all()
    assert (held.load()[4:] == -1).all()
