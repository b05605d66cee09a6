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
    STEP,
    THREADS,
    mma,
    multistage,
    padded,
    raster,
    swizzled,
)
from cutedsl_gemm.kernels.sm80.report import ldmatrix_wavefronts
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


@by_majors
def test_padding_and_swizzle_end_the_conflicts_of_ldmatrix(majors):
    assert ldmatrix_wavefronts(mma("bfloat16", *majors)) == (8, 8)
    for rung in (padded, swizzled, multistage, raster):
        assert ldmatrix_wavefronts(rung("bfloat16", *majors)) == (1, 1)
    assert padded().smem_bytes > swizzled().smem_bytes == mma().smem_bytes


def test_a_swizzle_that_breaks_rows_is_seen():
    """It XORs inside the 16 bytes that ldmatrix takes as they lie: a row leaves the buffer."""
    plan = swizzled()
    smem = ComposedLayout(Swizzle(3, 2, 4), 0, plan.a.smem.outer, plan.a.smem.unit)
    with pytest.raises(IndexError):
        run(replace(plan, a=replace(plan.a, smem=smem)), 128, 128, 64)


def test_the_accumulator_is_the_dsls_own():
    """Of the 32×32 that the warps multiply at a time, in the order of the registers."""
    plan, found = mma(), []

    @cute.jit
    def trace():
        theirs = parts.tiled_mma(plan).tv_layout_C_tiled
        found.append(Layout(theirs.shape, theirs.stride))

    cute.compile(trace, options="--gpu-arch sm_80")
    for thread, column, row, across in product(range(THREADS), *[range(2)] * 3):
        value = ((row, 0), (column, across))
        place = plan.c.rows(thread, value) + STEP[0] * plan.c.columns(thread, value)
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
    assert code.count("HMMA.16816.F32.BF16") == code.count("HMMA") == 4 * 8 * 4  # M, N, K of a warp
    assert code.count("LDSM") == (4 + 4) * 4  # of A and of B, for each 16 of K
    assert code.count("LDSM.16.MT88.4") == 16 * (majors[0] == "MN") + 16 * (majors[1] == "MN")
    assert code.spills == code.stack_bytes == 0
    asked = code.count("LDGSTS.E.BYPASS")
    assert asked == (0 if plan.stages == 1 else 16 * plan.stages)  # two rounds ahead, and one each
    assert code.count("BAR.SYNC") == (2 if plan.stages == 1 else 1)
    assert code.count("LDG.E.128") == (16 if plan.stages == 1 else 0)
