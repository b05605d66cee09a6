"""The CuTe DSL as an oracle: its tiled MMAs and tiled copies, traced on the CPU.

Ours must print the same, except where the DSL's layout leaves its tile or is not injective.
"""

import random
from functools import partial

import pytest
from hypothesis import settings

from layouts import (
    Layout,
    LayoutError,
    Swizzle,
    cosize,
    ldmatrix,
    make_copy_atom,
    make_tiled_copy_A,
    make_tiled_copy_B,
    make_tiled_copy_C,
    make_tiled_copy_C_atom,
    make_tiled_copy_D,
    make_tiled_copy_S,
    make_tiled_copy_tv,
    make_tiled_mma,
    mma,
    parse,
    size,
    stmatrix,
    universal_fma,
    wgmma,
)
from layouts.tiled.tiled_mma import OPERAND_MODES

cutlass = pytest.importorskip("cutlass")
cute = pytest.importorskip("cutlass.cute")
from cutlass.cute import nvgpu  # noqa: E402

#: Determines how many cases of each kind are drawn; CI has four times as many.
EXAMPLES = settings().max_examples


def sample(seed, cases, count):
    cases = list(cases)
    return random.Random(seed).sample(cases, min(count, len(cases)))


def lowered(x):
    """A layout, or a tuple of tilers, in the DSL."""
    if isinstance(x, Layout):
        return cute.make_layout(x.shape, stride=x.stride)
    return tuple(map(lowered, x)) if isinstance(x, tuple) else x


def mma_atoms():
    """Name → our atom, and the operation of the DSL."""
    half, single = cutlass.Float16, cutlass.Float32
    k_major = nvgpu.OperandMajorMode.K
    warpgroup = nvgpu.warpgroup
    return {
        "m16n8k16": (mma("m16n8k16", "f16"), nvgpu.warp.MmaF16BF16Op(half, single, (16, 8, 16))),
        "m16n8k8": (mma("m16n8k8", "f16"), nvgpu.warp.MmaF16BF16Op(half, single, (16, 8, 8))),
        "m16n8k8 tf32": (mma("m16n8k8", "tf32"), nvgpu.warp.MmaTF32Op((16, 8, 8))),
        "m16n8k32 e4m3": (
            mma("m16n8k32", "e4m3"),
            nvgpu.warp.MmaFP8Op(cutlass.Float8E4M3FN, single, (16, 8, 32)),
        ),
        "wgmma e4m3": (
            wgmma(64, "e4m3"),
            warpgroup.MmaF8Op(
                cutlass.Float8E4M3FN,
                cutlass.Float8E4M3FN,
                single,
                (64, 64, 32),
                warpgroup.OperandSource.SMEM,
                k_major,
                k_major,
            ),
        ),
        "fma": (universal_fma(), nvgpu.MmaUniversalOp(single)),
        **{
            f"wgmma {n} {source}": (
                wgmma(n, "f16", a=source),
                warpgroup.MmaF16BF16Op(
                    half,
                    single,
                    (64, n, 16),
                    getattr(warpgroup.OperandSource, source.upper()),
                    k_major,
                    k_major,
                ),
            )
            for n in (16, 96, 256)
            for source in ("smem", "rmem")
        },
    }


#: Atom layouts, and permutations that fit every atom of 8 or 16 columns.
ARRANGEMENTS = [
    ((1, 1, 1), None),
    ((2, 2, 1), None),
    (Layout((2, 2, 1), (2, 1, 0)), None),
    ((2, 1, 2), None),
    ((1, 2, 2), None),
]
WARP_ARRANGEMENTS = [
    *ARRANGEMENTS,
    ((2, 2, 1), (32, 32, 16)),
    ((2, 1, 1), (None, 16, None)),
    ((2, 2, 1), (32, Layout((8, 2, 2), (1, 16, 8)), 16)),
    ((4, 1, 1), (Layout((16, 4), (4, 1)), 16, 32)),
]


def matrices(rows, columns):
    """Two tiles along each mode: row-major, column-major, and nested with a third mode."""
    m, n = 2 * rows, 2 * columns
    yield Layout((m, n), (n, 1))
    yield Layout((m, n))
    yield Layout((m, (columns, 2), 3), (1, (m, 2 * m * columns), 5 * m * n))


def compare(found, name, ours, theirs):
    """Notes both as text; None where the DSL refuses."""
    try:
        text = str(theirs()).replace(" ", "")
    except Exception:
        text = None
    found.append((name, str(ours).replace(" ", ""), text))


def compare_mma(found, name, tiled, traced):
    """All that a tiled MMA gives."""
    tile = [tiled.get_tile_size(mode) for mode in range(3)]
    compare(found, f"{name}: threads", tiled.thr_layout_vmnk, lambda: traced.thr_layout_vmnk)
    compare(found, f"{name}: size", tiled.size, lambda: traced.size)
    compare(found, f"{name}: tile", tile, lambda: [traced.get_tile_size(mode) for mode in range(3)])
    for operand, (i, j) in OPERAND_MODES.items():
        held = f"tv_layout_{operand}_tiled"
        compare(found, f"{name}: {held}", getattr(tiled, held), partial(getattr, traced, held))
        for matrix in matrices(tile[i], tile[j]):
            divided = getattr(tiled, f"thrfrg_{operand}")(matrix)
            theirs = partial(getattr(traced, f"_thrfrg_{operand}"), lowered(matrix))
            compare(found, f"{name}: thrfrg_{operand} {matrix}", divided, theirs)
            shape = getattr(tiled, f"partition_shape_{operand}")(matrix.shape)
            theirs = partial(getattr(traced, f"partition_shape_{operand}"), matrix.shape)
            compare(found, f"{name}: partition_shape_{operand} {matrix.shape}", shape, theirs)


def trace_mmas(found):
    for name, (atom, op), (atoms, permutation) in sampled_mmas():
        tiled = make_tiled_mma(atom, atoms, permutation)
        traced = cute.make_tiled_mma(op, lowered(atoms), permutation_mnk=lowered(permutation))
        compare_mma(found, f"{name} {atoms} {permutation}", tiled, traced)


def sampled_mmas():
    """Atoms in arrangements that suit them."""
    cases = [
        (name, pair, arrangement)
        for name, pair in mma_atoms().items()
        for arrangement in (ARRANGEMENTS if name.startswith("w") else WARP_ARRANGEMENTS)
    ]
    return sample(3, cases, EXAMPLES // 3)


def copy_atoms():
    """Our atom, and the operation of the DSL with its further arguments, for 16-bit elements."""
    for matrices in (1, 2, 4):
        for transposed in (False, True):
            for ours, theirs in (
                (ldmatrix, nvgpu.warp.LdMatrix8x8x16bOp),
                (stmatrix, nvgpu.warp.StMatrix8x8x16bOp),
            ):
                yield ours(matrices, transposed), theirs(transposed, matrices), {}
    for size_of_copy in (2, 4, 8, 16):
        bits = {"num_bits_per_copy": 8 * size_of_copy}
        yield size_of_copy, nvgpu.CopyUniversalOp(), bits


def trace_copy_atoms(found):
    for op, operation, arguments in copy_atoms():
        for bits, dtype in ((8, cutlass.Int8), (16, cutlass.Float16), (32, cutlass.Float32)):
            try:
                atom = make_copy_atom(op, bits)
            except LayoutError:  # an element in several lanes, or wider than the copy
                assert bits == 32
                assert op == 2 or op.transposed
                continue
            traced = cute.make_copy_atom(operation, dtype, **arguments)
            for field in ("layout_src_tv", "layout_dst_tv"):
                name = f"{atom.name} {bits} {field}"
                compare(found, name, getattr(atom, field), partial(getattr, traced, field))


def compare_copy(found, name, tiled, traced):
    """The two sides of a tiled copy."""
    for side in ("src", "dst"):
        field = f"layout_{side}_tv_tiled"
        compare(found, f"{name}: {field}", getattr(tiled, field), partial(getattr, traced, field))
    thread = min(5, tiled.size - 1)
    tile = [size(tiler) for tiler in tiled.tiler_mn]
    for matrix in matrices(*tile):
        tensor = cute.make_rmem_tensor(lowered(matrix), cutlass.Float16)
        for part in ("partition_S", "partition_D"):
            ours = getattr(tiled.get_slice(thread), part)(matrix).layout
            theirs = getattr(traced.get_slice(thread), part)
            compare(found, f"{name}: {part} {matrix}", ours, lambda t=theirs, x=tensor: t(x).layout)


def trace_copies(found):
    rng = random.Random(4)
    for op, operation, arguments in sample(5, copy_atoms(), EXAMPLES // 8):
        atom = make_copy_atom(op, 16)
        traced = cute.make_copy_atom(operation, cutlass.Float16, **arguments)
        for name, ours, theirs in copies_of(atom, traced, rng):
            compare_copy(found, f"{atom.name} {name}", ours, theirs)


def copies_of(atom, operation, rng):
    """Tiled copies of an atom: of threads and values, and of the operands of an mma."""
    if size(atom.thr_id) == 1:
        count = size(atom.layout_ref_tv)
        threads = rng.choice([Layout((8, 4), (4, 1)), Layout((4, (2, 4)), (1, (4, 8)))])
        values = rng.choice([Layout((1, 2 * count)), Layout((2, count), (count, 1))])
        made = make_tiled_copy_tv(atom, threads, values)
        theirs = cute.make_tiled_copy_tv(operation, lowered(threads), lowered(values))
        yield "tv", made, theirs
        yield "S", make_tiled_copy_S(atom, made), cute.make_tiled_copy_S(operation, theirs)
        yield "D", make_tiled_copy_D(atom, made), cute.make_tiled_copy_D(operation, theirs)
    op = nvgpu.warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16))
    tiled = make_tiled_mma(mma("m16n8k16", "f16"), (2, 2, 1), (32, 32, 16))
    traced = cute.make_tiled_mma(op, (2, 2, 1), permutation_mnk=(32, 32, 16))
    if atom.layout_src_tv == atom.layout_ref_tv:
        theirs = cute.make_tiled_copy_C_atom(operation, traced)
        yield "C atom", make_tiled_copy_C_atom(atom, tiled), theirs
    yield "A", make_tiled_copy_A(atom, tiled), cute.make_tiled_copy_A(operation, traced)
    yield "B", make_tiled_copy_B(atom, tiled), cute.make_tiled_copy_B(operation, traced)
    yield "C", make_tiled_copy_C(atom, tiled), cute.make_tiled_copy_C(operation, traced)


def trace_registers(found):
    """Fragments, and the registers of an mma as tiled copies count them."""
    op = nvgpu.warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16))
    for atoms, permutation in sample(6, WARP_ARRANGEMENTS, EXAMPLES // 10):
        tiled = make_tiled_mma(mma("m16n8k16", "f16"), atoms, permutation)
        traced = cute.make_tiled_mma(op, lowered(atoms), permutation_mnk=lowered(permutation))
        for operand, (i, j) in OPERAND_MODES.items():
            for matrix in matrices(tiled.get_tile_size(i), tiled.get_tile_size(j)):
                name = f"{operand} of {atoms} {permutation} {matrix}"
                compare_registers(found, name, operand, (tiled, traced), matrix)


def compare_registers(found, name, operand, mmas, matrix):
    tiled, traced = mmas
    part = getattr(tiled.get_slice(0), f"partition_{operand}")(matrix).layout
    held = getattr(tiled, f"make_fragment_{operand}")(part if operand in "AB" else part.shape)
    tensor = cute.make_rmem_tensor(lowered(matrix), cutlass.Float16)
    theirs = getattr(traced.get_slice(0), f"partition_{operand}")(tensor)
    fragment = getattr(traced, f"make_fragment_{operand}")(theirs)
    compare(found, f"fragment {name}", held, lambda: fragment.layout)
    for op, operation, arguments in sample(name, copy_atoms(), EXAMPLES // 8):
        atom = make_copy_atom(op, 16)
        traced_atom = cute.make_copy_atom(operation, cutlass.Float16, **arguments)
        try:
            ours = MAKE[operand](atom, tiled).retile(held)
        except LayoutError:  # the atom has more values than a thread has in a tile
            assert size(atom.layout_ref_tv, 1) > size(tiled_values(tiled, operand))
            continue
        made = getattr(cute, f"make_tiled_copy_{operand}")(traced_atom, traced)
        compare(found, f"retile {atom.name} {name}", ours, lambda m=made: m.retile(fragment).layout)


def tiled_values(tiled, operand):
    return getattr(tiled, f"tv_layout_{operand}_tiled")[1]


MAKE = {"A": make_tiled_copy_A, "B": make_tiled_copy_B, "C": make_tiled_copy_C}


@cute.jit
def run(trace: cutlass.Constexpr, found: cutlass.Constexpr):
    trace(found)


def differences(trace):
    """What the DSL prints otherwise; it must answer most of the questions."""
    found = []
    run(trace, found)
    answered = [case for case in found if case[2] is not None]
    assert len(answered) > 0.9 * len(found) > 0
    return [case for case in answered if case[1] != case[2]]


def test_tiled_mmas_are_those_of_the_dsl():
    for name, ours, theirs in differences(trace_mmas):
        # atoms along K hold the same elements of C; the DSL gives theirs elements beyond the tile
        assert "tv_layout_C_tiled" in name, (name, ours, theirs)
        assert cosize(parse(theirs)) > cosize(parse(ours)), (name, ours, theirs)


def test_copy_atoms_are_those_of_the_dsl():
    assert differences(trace_copy_atoms) == []


def test_tiled_copies_are_those_of_the_dsl():
    assert differences(trace_copies) == []


def test_fragments_and_retiled_registers_are_those_of_the_dsl():
    assert differences(trace_registers) == []


def trace_permuted(found):
    """The registers of B, retiled: a permutation puts four values of a thread out of order."""
    permutation = (None, Layout((8, 2, 2), (1, 16, 8)), None)
    op = nvgpu.warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16))
    tiled = make_tiled_mma(mma("m16n8k16", "f16"), (1, 1, 1), permutation)
    traced = cute.make_tiled_mma(op, (1, 1, 1), permutation_mnk=lowered(permutation))
    copy = cute.make_tiled_copy_B(
        cute.make_copy_atom(nvgpu.CopyUniversalOp(), cutlass.Float16, num_bits_per_copy=32), traced
    )
    held = cute.make_rmem_tensor(traced.partition_shape_B((32, 16)), cutlass.Float16)
    ours = make_tiled_copy_B(make_copy_atom(4, 16), tiled).retile(Layout(((2, 2), 4, 1)))
    compare(found, "registers", ours, lambda: copy.retile(held).layout)
    compare(found, "tile", copy.layout_dst_tv_tiled, lambda: copy.layout_dst_tv_tiled)


def test_the_dsl_mixes_up_the_registers_of_a_permuted_mma():
    """Registers 0, 4, 8, 12 hold n = 0, 16, 8, 24.  The DSL's copy writes n = 0, 16, 8, 24 to its
    values 0, 4, 8, 12, and its retile takes registers 0, 8, 4, 12 for these."""
    found = []
    run(trace_permuted, found)
    (_, ours, theirs), (_, _, tile) = found
    firsts = range(0, 16, 4)
    assert [parse(tile)(0, value) for value in firsts] == [0, 16, 8, 24]
    assert [parse(theirs)(register) for register in firsts] == [0, 8, 4, 12]
    assert [parse(ours)(register) for register in firsts] == [0, 4, 8, 12]


@cute.jit
def run_at_kernel_time(thread: cutlass.Int32, found: cutlass.Constexpr):
    partition_at_kernel_time(thread, found)


def partition_at_kernel_time(thread, found):
    tiled = make_tiled_mma(mma("m16n8k16", "f16"), (2, 2, 1), (32, 32, 16))
    part = tiled.get_slice(thread).partition_A(Layout((64, 32), (32, 1)))
    found.append((str(part.layout), type(part.offset).__name__))
    load = make_tiled_copy_A(make_copy_atom(ldmatrix(4), 16), tiled)
    part = load.get_slice(thread).partition_S(Swizzle(2, 3, 3) @ Layout((64, 32), (32, 1)))
    found.append((str(part.layout.outer), type(part.layout.offset).__name__))


def test_the_thread_may_be_an_integer_of_kernel_time():
    found = []
    run_at_kernel_time(9, found)
    assert found == [
        ("((2,2,2),2,2):((1,256,8),1024,16)", "Int32"),
        ("((8,1),2,2):((1,0),1024,16)", "Int32"),
    ]
