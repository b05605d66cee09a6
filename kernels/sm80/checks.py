"""What the instructions of an sm80 plan, and the kernels that issue them, cannot do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cutedsl_gemm.kernels.plan.checks import field_problem
from cutedsl_gemm.kernels.plan.raster import Raster
from cutedsl_gemm.kernels.sm80.accumulator import accumulator, fragment, outputs, permuted_b
from cutedsl_gemm.kernels.sm80.operand import swizzle_period
from layouts import size

if TYPE_CHECKING:
    from cutedsl_gemm.kernels.sm80.plan import Sm80Plan


def step_problems(plan: Sm80Plan) -> Iterator[str]:
    """A step is what ldmatrix and mma can do at a time; a tile is whole steps."""
    (m, n, k), (down, along) = plan.step, plan.warps
    b_matrices = plan.matrices_per_ldmatrix[1]
    if m != 16 * down or n % (8 * along) or k not in (8, 16) or b_matrices not in (1, 2, 4):
        yield (
            f"step is {plan.step}; it must be ({16 * down}, n, k): mma.m16n8 has k = 8 or 16, and "
            f"n must be a multiple of {8 * along} with which one ldmatrix loads each warp 1, 2 or "
            "4 matrices of B"
        )
    if any(extent % step for extent, step in zip(plan.tile, plan.step, strict=True)):
        yield f"tile is {plan.tile}; it must be a multiple of the step, {plan.step}"


def pipeline_problems(plan: Sm80Plan) -> Iterator[str]:
    """Which of the three kernels can run the plan."""
    if plan.stages == 1:
        why = "since with one stage nothing is loaded ahead"
        yield from field_problem("prefetch_fragments", plan.prefetch_fragments, False, why)
        why = "since the kernel of one stage walks the tiles along N"
        yield from field_problem("raster", plan.raster, Raster(1), why)
    if plan.prefetch_fragments and plan.steps < 2:
        yield f"a k-tile has {plan.steps} step; prefetch_fragments needs 2"


def register_problems(plan: Sm80Plan) -> Iterator[str]:
    """The registers are as mma leaves them, and each line of B is the column that they say."""
    tile, warps, permuted_mma = plan.tile, plan.warps, max(1, plan.accumulator.width // 2)
    if tile[1] % (8 * warps[1] * permuted_mma):
        yield f"BN is {tile[1]}; it must be a multiple of {permuted_mma} mma of 8 columns a warp"
        return
    why = "as mma.m16n8 leaves its registers (PTX ISA, Matrix Fragments for mma.m16n8k16)"
    held = accumulator(tile, warps, permuted_mma)
    yield from field_problem("accumulator", plan.accumulator, held, why)
    yield from field_problem("c", plan.c, outputs(tile, warps, permuted_mma), why)
    yield from field_problem("fragment", plan.fragment, fragment(tile, warps, permuted_mma), why)
    why = "since the accumulator says which of its lines is which row"
    yield from field_problem("A in shared memory", plan.a.smem, plan.a.mma_smem, why)
    wanted = permuted_b(plan.b.mma_smem, warps, permuted_mma)
    yield from field_problem("B in shared memory", plan.b.smem, wanted, why)
    if plan.stages == 1:
        why = "since the kernel of one stage stores B where mma reads it"
        yield from field_problem("B in shared memory", plan.b.smem, plan.b.mma_smem, why)


def swizzle_problems(plan: Sm80Plan) -> Iterator[str]:
    """ldmatrix's addresses are swizzled once for many (`warp_mma.swizzled_sources`)."""
    (m, n, k), (_, _, bk) = plan.step, plan.tile
    operands = ("A", plan.a, plan.a_major, m), ("B", plan.b, plan.b_major, n)
    for name, operand, major, step in operands:
        smem, period = operand.mma_smem, swizzle_period(operand.mma_smem)
        if major == "K":
            starts = [smem.outer(line, 0) for line in range(0, size(smem[0]), step)]
        else:
            starts = [smem.outer(0, column) for column in range(0, bk, k)]
        if any(start % period for start in starts):
            yield (
                f"{name} in shared memory is {smem}; its steps along "
                f"{'MN' if major == 'K' else 'K'} begin at {starts}, which must be multiples of "
                f"{period}, so that the swizzle does the same in all of them"
            )
