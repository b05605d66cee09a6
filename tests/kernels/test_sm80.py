"""The sm80 ladder: exact on the executor, each rung with its reason, compiled as planned."""

from dataclasses import replace
from itertools import product

import cutlass.cute as cute
import pytest
import torch

from cutedsl_gemm.kernels import build
from cutedsl_gemm.kernels.plan import PlanError
from cutedsl_gemm.kernels.sm80 import execute, parts
from cutedsl_gemm.kernels.sm80.plan import (
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
from cutedsl_gemm.kernels.sm80.report import ldmatrix_wavefronts, report, wave_bytes
from layouts import ComposedLayout, Layout, Swizzle

MAJORS = list(product(("K", "MN"), repeat=2))
by_name = pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.__name__)
by_majors = pytest.mark.parametrize("majors", MAJORS, ids="-".join)


def run(plan, m, n, k):
    dtype = getattr(torch, plan.dtype)
    a, b = torch.randint(-2, 3, (m, k)).to(dtype), torch.randint(-2, 3, (k, n)).to(dtype)
    out = torch.full((m, n), torch.nan, dtype=dtype)
    execute.gemm(plan, a, b, out)
    return torch.equal(out, (a.float() @ b.float()).to(dtype))


@by_name
@by_majors
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_the_executor_is_exact_on_integers(rung, majors, dtype):
    for mnk in ((520, 264, 136), (48, 128, 12), (1, 1, 1), (33, 65, 7)):
        assert run(rung(dtype, *majors), *mnk)


@by_name
@by_majors
def test_every_element_has_one_place(rung, majors):
    assert all(rung("bfloat16", *majors).proofs())


@pytest.mark.parametrize(("alignment", "opcode"), [(8, ".BYPASS.LTC128B.128"), (4, ".64"), (2, "")])
def test_copies_are_as_wide_as_lines_allow(alignment, opcode):
    plan = multistage("bfloat16", "K", "K", alignment)
    report = build.inspect(plan)
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
    """It XORs inside the 16 bytes that ldmatrix takes as they lie: a row leaves the buffer."""
    plan = swizzled()
    smem = ComposedLayout(Swizzle(3, 2, 4), 0, plan.a.smem.outer, plan.a.smem.unit)
    with pytest.raises(IndexError):
        run(replace(plan, a=replace(plan.a, smem=smem, lines=smem)), 128, 128, 64)


def test_lines_that_mma_takes_in_another_order_give_a_wrong_answer():
    plan = wide(b_major="K")
    assert plan.c != plan.accumulator
    assert not run(replace(plan, b=replace(plan.b, smem=plan.b.lines)), 128, 256, 64)


def test_each_rung_has_its_reason():
    def of(rung):
        return report(rung(b_major="K"))

    assert 2 * mma_k8().step[2] == mma().step[2]
    assert of(padded).wavefronts == of(swizzled).wavefronts == of(mma).wavefronts / 8
    assert 2 * swizzled().matrices[1] == ldmatrix_x4().matrices[1] == 4
    assert multistage().stages > ldmatrix_x4().stages == 1
    assert wave_bytes(raster(), 32, 32, 132, 4096) < wave_bytes(multistage(), 32, 32, 132, 4096)
    assert replace(raster(), name="sm80_ahead", ahead=True) == ahead()
    assert of(large).sectors == of(ahead).sectors * 3 / 4
    # Sectors of a request, and bytes: whole sectors for the last rung, half of each before.
    assert (of(large).requests["C"], 32 * large().c.width * 2) == (8, 8 * 16)
    assert (of(wide).requests["C"], 32 * wide(b_major="K").c.width * 2) == (16, 16 * 32)


def test_the_accumulator_is_the_dsls_own():
    """Of the 32×32 that the warps multiply at a time, in the order of the registers."""
    plan, found = ldmatrix_x4(), []

    @cute.jit
    def trace():
        theirs = parts.tiled_mma(plan).tv_layout_C_tiled
        found.append(Layout(theirs.shape, theirs.stride))

    cute.compile(trace, options="--gpu-arch sm_80")
    for thread, column, row, across in product(range(plan.threads), *[range(2)] * 3):
        value = ((row, 0), ((column, 0), across))
        place = plan.c.rows(thread, value) + 32 * plan.c.columns(thread, value)
        assert found[0](thread, column + 2 * row + 4 * across) == place
        assert plan.fragment(value) == column + 2 * row + 16 * across


def test_plans_that_cannot_be_are_refused():
    with pytest.raises(PlanError, match="dtype is float32"):
        mma("float32")
    with pytest.raises(PlanError, match="196608 bytes of shared memory; a block has 166912"):
        replace(multistage(), stages=6).check()
    with pytest.raises(PlanError, match=r"shares of C.*must take each of 16384 once"):
        replace(mma(), c=mma().a.share).check()


@by_name
@pytest.mark.parametrize("majors", [("K", "K"), ("MN", "MN")], ids="-".join)
def test_machine_code(rung, majors):
    plan = rung("bfloat16", *majors)
    code = build.inspect(plan, "sm_80")
    loops = 1 if plan.stages == 1 else 2  # with copies that look for edges, and without
    crowded = (rung, majors) == (ahead, ("MN", "MN"))  # one address finds no register
    assert code.stack_bytes == (8 if crowded else 0)
    assert code.spills == (2 if crowded else 0)
    hmma = "HMMA.1688.F32.BF16" if plan.step[2] == 8 else "HMMA.16816.F32.BF16"
    (m, n, _), (down, along) = plan.tile, plan.warps
    rows, columns = m // down // 16, n // along // 8  # mma of a warp
    assert code.count(hmma) == code.count("HMMA") == loops * rows * columns * plan.steps
    loads = rows + columns * plan.step[2] // 8 // plan.matrices[1]
    fetched = loops * plan.steps + plan.ahead  # the first step's, before the loop
    assert code.count("LDSM") == loads * fetched
    assert code.count("LDSM.16.MT88") == (code.count("LDSM") if majors == ("MN", "MN") else 0)
    moves = plan.a.share.lines * plan.a.share.vectors + plan.b.share.lines * plan.b.share.vectors
    assert code.count("LDGSTS") == (0 if plan.stages == 1 else (plan.stages + 1) * moves)
    assert code.count("LDG.E.128") == (moves if plan.stages == 1 else 0)
    assert code.count("BAR.SYNC") == (2 if plan.stages == 1 else loops + plan.ahead)
    assert code.count("STG.E.128") == (16 if plan.c.width == 8 else 0)
