"""The sm80 ladder: exact on the executor, each rung with its reason, compiled as planned."""

from dataclasses import replace
from itertools import cycle, pairwise, product

import cutlass.cute as cute
import pytest
import torch

from cutedsl_gemm.kernels.device import lower
from cutedsl_gemm.kernels.executor import thread_values
from cutedsl_gemm.kernels.plan.checks import PlanError
from cutedsl_gemm.kernels.plan.raster import Raster
from cutedsl_gemm.kernels.sm80 import fragments, warp_mma
from cutedsl_gemm.kernels.sm80.accumulator import accumulator
from cutedsl_gemm.kernels.sm80.memory_report import ldmatrix_wavefronts, memory_report
from cutedsl_gemm.kernels.sm80.operand import ALIGNMENTS
from cutedsl_gemm.kernels.sm80.rungs import (
    RUNGS,
    ahead,
    large,
    ldmatrix_x4,
    mma,
    mma_k8,
    multistage,
    padded,
    raster,
    swizzled,
    wide,
)
from layouts import ComposedLayout, Layout, Swizzle, size
from tests.kernels.ladder import by_rung_and_majors, exact, inspect, wrong

MAJORS = list(product(("K", "MN"), repeat=2))
by_name = pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.__name__)
by_majors = pytest.mark.parametrize("majors", MAJORS, ids="-".join)


@by_name
@by_majors
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_the_executor_is_exact_on_integers(rung, majors, dtype):
    for mnk in ((520, 264, 136), (48, 128, 12), (1, 1, 1), (33, 65, 7)):
        assert exact(rung(dtype, *majors), *mnk)


@by_name
@by_majors
def test_every_element_has_one_place(rung, majors):
    assert all(rung("bfloat16", *majors).proofs())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("alignment", "opcode", "arch"),
    [(8, ".BYPASS.LTC128B.128", "sm_80"), (4, ".64", "sm_90a"), (2, "", "sm_90a")],
)
def test_copies_are_as_wide_as_lines_allow(alignment, opcode, arch):
    report = inspect(multistage("bfloat16", "MN", "K", alignment), arch)
    for copies in ("", ".ZFILL"):
        start = "LDGSTS.E" + (opcode if alignment == 8 else f".LTC128B{opcode}")
        assert report.instructions[start + copies] % (2 * 128 * 64 // (128 * alignment)) == 0
        assert report.instructions[start + copies] > 0
    assert report.count("LDGSTS") == sum(
        count for name, count in report.instructions.items() if opcode in name and "LDGSTS" in name
    )


def test_a_copy_of_another_width_is_refused():
    with pytest.raises(PlanError, match=r"alignment is 1; it must be one of \(8, 4, 2\) elements"):
        multistage(alignment=1)


@by_majors
def test_padding_and_swizzle_end_the_conflicts_of_ldmatrix(majors):
    assert ldmatrix_wavefronts(mma("bfloat16", *majors)) == (8, 8)
    for rung in RUNGS[2:]:
        assert ldmatrix_wavefronts(rung("bfloat16", *majors)) == (1, 1)
    assert padded().smem_bytes > swizzled().smem_bytes == mma().smem_bytes


def test_a_swizzle_that_breaks_rows_is_seen():
    """It XORs inside the 16 bytes that ldmatrix reads in order: a row leaves the buffer."""
    plan = swizzled()
    smem = ComposedLayout(Swizzle(3, 2, 4), 0, plan.a.smem.outer, plan.a.smem.unit)
    with pytest.raises(PlanError, match="sm80_swizzled: an address is outside its buffer"):
        exact(replace(plan, a=replace(plan.a, smem=smem, mma_smem=smem)), 128, 128, 64)


def test_b_in_another_order_than_mma_reads_is_refused():
    plan = wide(b_major="K")
    assert plan.c != plan.accumulator
    with pytest.raises(PlanError, match="a value must be of one row of B in both"):
        exact(replace(plan, b=replace(plan.b, smem=plan.b.mma_smem)), 128, 256, 64)


def test_each_rung_changes_one_idea():
    recipes = [vars(rung.recipe) for rung in RUNGS]
    changed = [
        {name for name in above if above[name] != below[name]} for below, above in pairwise(recipes)
    ]
    assert changed == [
        {"mma_k"},
        {"padding"},
        {"padding", "swizzle_bits"},  # the one in place of the other
        {"mma_per_ldmatrix"},
        {"stages"},
        {"raster"},
        {"prefetch_fragments"},
        {"tile", "warps"},  # as many outputs a warp
        {"permuted_mma"},
    ]


def test_each_rung_has_its_reason():
    def of(rung):
        return memory_report(rung(b_major="K"))

    assert 2 * mma_k8().step[2] == mma().step[2]
    assert of(padded).wavefronts == of(swizzled).wavefronts == of(mma).wavefronts / 8
    assert 2 * swizzled().matrices_per_ldmatrix[1] == ldmatrix_x4().matrices_per_ldmatrix[1] == 4
    assert multistage().stages > ldmatrix_x4().stages == 1
    assert replace(raster(), name="sm80_ahead", prefetch_fragments=True) == ahead()
    assert of(large).sectors == of(ahead).sectors * 3 / 4
    # Sectors of a request, and bytes: whole sectors for the last rung, half of each before.
    assert (of(large).requests["C"], 32 * large().c.width * 2) == (8, 8 * 16)
    assert (of(wide).requests["C"], 32 * wide(b_major="K").c.width * 2) == (16, 16 * 32)


@by_name
def test_the_accumulator_equals_the_dsls(rung):
    """Register by register, of the threads that make all others: one for each bit."""
    plan, found = rung(b_major="K"), {}
    bm, bn, _ = plan.tile

    @cute.jit
    def trace():
        mma, coordinates = warp_mma.tiled_mma(plan), cute.make_identity_tensor((bm, bn))
        for thread in (0, *(1 << bit for bit in range(plan.threads.bit_length() - 1))):
            mine = mma.get_slice(thread).partition_C(coordinates)
            found[thread] = [mine[register] for register in range(cute.size(mine))]

    cute.compile(trace, options="--gpu-arch sm_80")
    _, value = thread_values(plan.c.rows)
    for thread, theirs in found.items():
        m, n = torch.tensor(theirs).mT
        at = plan.fragment(value)
        assert torch.equal(plan.accumulator.rows(thread, value), m[at])
        assert torch.equal(plan.accumulator.columns(thread, value), n[at])


def bits(count):
    """0 and the powers of two below `count`: the indices that make all others."""
    return 0, *(1 << bit for bit in range((count - 1).bit_length()))


TRACED = [(mma_k8, ("MN", "K")), (ldmatrix_x4, ("K", "MN")), (large, ("K", "K"))]
UNTRACED = [case for case in product(RUNGS, MAJORS) if case not in TRACED]


@by_rung_and_majors(TRACED, in_ci=UNTRACED)
def test_the_rows_that_ldmatrix_reads_equal_the_dsls(rung, majors):
    plan, found = rung("bfloat16", *majors), {}
    rows = {name: fragments.ldmatrix_rows(plan, name) for name in ("A", "B")}

    @cute.jit
    def trace():
        mma, (bm, bn, bk) = warp_mma.tiled_mma(plan), plan.tile
        copies = cute.make_tiled_copy_A, cute.make_tiled_copy_B
        for mode, (name, extent, copy) in enumerate(zip("AB", (bm, bn), copies, strict=True)):
            dtype, (lanes, warps, count) = lower.DTYPES[plan.dtype], map(size, rows[name])
            atom = warp_mma.ldmatrix(plan.matrices_per_ldmatrix[mode], majors[mode], dtype)
            tile, tiled = cute.make_identity_tensor((extent, bk)), copy(atom, mma)
            for lane, warp in (*product(bits(lanes), (0,)), *product((0,), bits(warps))):
                source = tiled.get_slice(lane + 32 * warp).partition_S(tile)  # (8, rows, steps)
                assert cute.size(source) == 8 * count
                for i in bits(count):
                    step, row = divmod(i, cute.size(source, mode=[1]))
                    found[name, lane, warp, i] = source[0, row, step]

    cute.compile(trace, options="--gpu-arch sm_80")
    for (name, *index), (row, k) in found.items():
        assert rows[name](*index) == row + plan.tile["AB".index(name)] * k


CHANGED = accumulator(swizzled().tile, (4, 1))
FOLDED = ComposedLayout(Swizzle(0, 3, 3), 0, Layout((128, 64), (32, 1)), unit=16)
ONE_STAGE = {"stages": 1, "prefetch_fragments": False, "raster": Raster(1)}
BROAD = ComposedLayout(Swizzle(4, 3, 4), 0, Layout((128, 128), (128, 1)), unit=16)
FAR = ComposedLayout(Swizzle(3, 3, 6), 0, swizzled().a.smem.outer, unit=16)


def in_smem(plan, smem):
    return {"a": replace(plan.a, smem=smem, mma_smem=smem)}


ALTERED = (
    # What the kernel takes from the instruction, the plan must say too.
    (swizzled(), {"accumulator": CHANGED, "c": CHANGED}, "accumulator is .*as mma.m16n8 leaves"),
    (ldmatrix_x4(), {"accumulator": CHANGED, "c": CHANGED}, "accumulator is .*PTX ISA"),
    (swizzled(), {"c": CHANGED}, "c is .*as mma.m16n8 leaves its registers"),
    (swizzled(), {"fragment": Layout(swizzled().fragment.shape)}, "fragment is"),
    (swizzled(), {"warps": (4, 1)}, r"step is \(32, 16, 16\); it must be \(64, n, k\)"),
    (swizzled(), {"warps": (4, 1), "step": (64, 8, 16)}, "accumulator is"),
    (swizzled(), {"warps": (1, 2)}, "layout of A has 128 threads; the block has 64"),
    (swizzled(), {"warps": (8, 8)}, "a block has 2048 threads; it can have at most 1024"),
    (swizzled(), {"warps": 4}, "warps is 4; it must be a tuple of 2 positive integers"),
    # A and B in shared memory.
    (swizzled(), {"a_major": "MN"}, "neighbours along memory, and A is MN-major"),
    (swizzled(), {"b_major": "N"}, "b_major is 'N'; it must be one of"),
    (multistage(), {"a": replace(multistage().a, copy=mma(a_major="MN").a.copy)}, "A is K-major"),
    (swizzled(), in_smem(swizzled(), mma(a_major="MN").a.smem), "along K must be 16 contiguous"),
    (mma(), in_smem(mma(), FOLDED), "has two elements in one place"),
    (mma(), in_smem(mma(), FOLDED.outer), "it must be a Swizzle over a Layout"),
    (mma(), in_smem(mma(), ComposedLayout(Swizzle(0, 3, 3), 0, FOLDED.outer)), "units of None"),
    (mma(), in_smem(mma(), large().b.smem), r"A has the shape \(256, 64\) in shared memory"),
    (swizzled(), in_smem(swizzled(), FAR), "steps along MN begin at .* multiples of 4096"),
    (swizzled(), in_smem(swizzled(), BROAD), "its swizzle must stay within 128 bytes"),
    (wide(b_major="K"), {"b": large(b_major="K").b}, "B in shared memory is .*which row"),
    (wide(b_major="K"), ONE_STAGE, "stores B where mma reads it"),
    # The order of tiles and steps, and the rest.
    (swizzled(), {"step": (32, 16, 32)}, r"step is \(32, 16, 32\); .*k = 8 or 16"),
    (swizzled(), {"step": (64, 16, 16)}, r"step is \(64, 16, 16\); it must be \(32, n, k\)"),
    (swizzled(), {"step": (32, 64, 16)}, "ldmatrix loads each warp 1, 2 or 4 matrices of B"),
    (swizzled(), {"tile": (128, 128)}, "tile is .*3 positive integers"),
    (swizzled(), {"tile": (128, 128, 32)}, "layout of A"),
    (swizzled(), {"stages": 0}, "stages is 0; it must be an integer of at least 1"),
    (swizzled(), {"stages": 2.5}, "stages is 2.5; it must be an integer"),
    (multistage(), {"stages": 6}, "196608 bytes of shared memory; a block has 166912"),
    (ahead(), {"stages": 1}, "prefetch_fragments is True; it must be False, since with one stage"),
    (raster(), {"stages": 1}, "raster is groups of 8.*must be tile rows, one after the other"),
    (ahead(), {"step": (32, 32, 64)}, "has k = 8 or 16"),
    (raster(), {"raster": Raster(0)}, "group is 0; it must be an integer of at least 1"),
    (raster(), {"raster": Raster(8, "diagonals")}, "of rows or of columns"),
    (swizzled(), {"dtype": "float32"}, "dtype is float32; this tensor core takes bfloat16 or"),
    (mma(), {"c": mma().a.copy}, r"layout of C.*must hold each of the 16384 elements once"),
)


@pytest.mark.parametrize(("plan", "change", "message"), ALTERED)
def test_a_plan_altered_anywhere_is_refused(plan, change, message):
    assert plan.check() == plan
    with pytest.raises(PlanError, match=message):
        replace(plan, **change).check()


@pytest.mark.parametrize(
    "change",
    [
        {"accumulator": CHANGED, "c": CHANGED},
        {"fragment": Layout(swizzled().fragment.shape)},
        {"a_major": "MN"},
        {"warps": (4, 1)},
    ],
    ids=lambda change: "-".join(change),
)
def test_a_plan_that_contradicts_the_instruction_is_refused_or_gives_a_wrong_answer(change):
    assert exact(swizzled(), 128, 128, 64)
    assert wrong(replace(swizzled(), **change), 128, 128, 64)


@by_name
@by_majors
@pytest.mark.parametrize("alignment", ALIGNMENTS)
def test_the_widest_access_says_what_must_be_aligned(rung, majors, alignment):
    assert rung("bfloat16", *majors, alignment).alignment == alignment


# The rungs take turns at the majors.
MIXED = [*zip(RUNGS, cycle([("K", "MN"), ("MN", "K")]))]
SAME = [*zip(RUNGS, cycle([("K", "K"), ("MN", "MN")]))]
ALWAYS = (mma_k8, ldmatrix_x4, multistage, ahead, wide)  # some of each file of device code


@pytest.mark.slow
@by_rung_and_majors(
    [case for case in MIXED if case[0] in ALWAYS],
    in_ci=[
        *(case for case in MIXED if case[0] not in ALWAYS),
        *(case for case in SAME if case[0] in ALWAYS),
    ],
)
def test_machine_code(rung, majors):
    plan = rung("bfloat16", *majors)
    code = inspect(plan, "sm_80")
    loops = 1 if plan.stages == 1 else 2  # with copies that look for edges, and without
    # In two kernels one address finds no register.
    crowded = (rung, majors) in ((ahead, ("MN", "MN")), (wide, ("MN", "K")))
    assert code.stack_bytes == (8 if crowded else 0)
    assert code.spills == (2 if crowded else 0)
    hmma = "HMMA.1688.F32.BF16" if plan.step[2] == 8 else "HMMA.16816.F32.BF16"
    (m, n, _), (down, along) = plan.tile, plan.warps
    rows, columns = m // down // 16, n // along // 8  # mma of a warp
    assert code.count(hmma) == code.count("HMMA") == loops * rows * columns * plan.steps
    loads = rows, columns * plan.step[2] // 8 // plan.matrices_per_ldmatrix[1]  # of A, of B
    transposed = [load for load, major in zip(loads, majors, strict=True) if major == "MN"]
    fetched = loops * plan.steps + plan.prefetch_fragments  # the first step's, before the loop
    assert code.count("LDSM") == sum(loads) * fetched
    assert code.count("LDSM.16.MT88") == sum(transposed) * fetched
    moves = plan.a.copy.lines * plan.a.copy.vectors + plan.b.copy.lines * plan.b.copy.vectors
    assert code.count("LDGSTS") == (0 if plan.stages == 1 else (plan.stages + 1) * moves)
    assert code.count("LDG.E.128") == (moves if plan.stages == 1 else 0)
    assert code.count("BAR.SYNC") == (2 if plan.stages == 1 else loops + plan.prefetch_fragments)
    assert code.count("STG.E.128") == (16 if plan.c.width == 8 else 0)
