"""What the kernels of this family share: fragments by ldmatrix, mma, and the epilogue."""

from collections.abc import Callable
from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32
from cutlass.cute.nvgpu import warp

from cutedsl_gemm.kernels.device import lower
from cutedsl_gemm.kernels.device.smem import SmemAllocator
from cutedsl_gemm.kernels.device.tile import Pair
from cutedsl_gemm.kernels.device.tile_epilogue import store_tile
from cutedsl_gemm.kernels.sm80.operand import ALIGNMENT
from cutedsl_gemm.kernels.sm80.plan import Sm80Plan
from layouts import ComposedLayout
from layouts.hardware.descriptor import Major


def tiled_mma(plan: Sm80Plan) -> cute.TiledMma:
    """mma.m16n8 by all warps of the block."""
    op = warp.MmaF16BF16Op(lower.DTYPES[plan.dtype], Float32, (16, 8, plan.step[2]))
    return cute.make_tiled_mma(op, lower.layout(plan.warp_layout), permutation_mnk=plan.step)


def allocate_smem(plan: Sm80Plan) -> tuple[cute.Tensor, cute.Tensor]:
    """The buffers of A and of B, (lines, BK, stages) each."""
    smem, dtype = SmemAllocator(), lower.DTYPES[plan.dtype]
    buffers = (
        smem.allocate_tensor(dtype, lower.layout(x.outer), ALIGNMENT, swizzle=lower.byte_swizzle(x))
        for x in plan.staged_smem
    )
    return tuple(buffers)


def warp_mma(
    plan: Sm80Plan, sA: cute.Tensor, sB: cute.Tensor, thread: Int32
) -> tuple[cute.Tensor, Callable[[int, Any], None], Callable[[int], None]]:
    """The accumulator, filled with zero; `load_fragments(step, stage)`; `multiply(step)`.

    `load_fragments` loads A and B of one step of a k-tile by ldmatrix, `multiply` adds their
    product to the accumulator.
    """
    dtype, mma = lower.DTYPES[plan.dtype], tiled_mma(plan)
    (x_a, x_b), (a_smem, b_smem) = plan.matrices_per_ldmatrix, plan.staged_smem
    thr_mma = mma.get_slice(thread)
    rA = mma.make_fragment_A(thr_mma.partition_A(sA)[None, None, None, 0])  # (mma, rows, steps)
    rB = mma.make_fragment_B(thr_mma.partition_B(sB)[None, None, None, 0])  # (mma, rows, steps)
    copy_a = cute.make_tiled_copy_A(ldmatrix(x_a, plan.a_major, dtype), mma)
    copy_b = cute.make_tiled_copy_B(ldmatrix(x_b, plan.b_major, dtype), mma)
    load_a = fragment_load(copy_a.get_slice(thread), sA, a_smem, plan.a_major, rA)
    load_b = fragment_load(copy_b.get_slice(thread), sB, b_smem, plan.b_major, rB)
    acc = cute.make_rmem_tensor(mma.partition_shape_C(plan.tile[:2]), Float32)
    acc.fill(0)

    def load_fragments(step: int, stage: Any) -> None:
        load_a(step, stage)
        load_b(step, stage)

    def multiply(step: int) -> None:
        cute.gemm(mma, acc, rA[None, None, step], rB[None, None, step], acc)

    return acc, load_fragments, multiply


def ldmatrix(matrices: int, major: Major, dtype: Any) -> cute.CopyAtom:
    """ldmatrix of 1, 2 or 4 matrices 8×8; it transposes those of an MN-major operand."""
    return cute.make_copy_atom(warp.LdMatrix8x8x16bOp(major == "MN", matrices), dtype)


def fragment_load(
    copy: Any, buffer: cute.Tensor, smem: ComposedLayout, major: Major, fragment: cute.Tensor
) -> Callable[[int, Any], None]:
    """`load(step, stage)`: a thread's ldmatrix of one operand, from its buffer to its fragment."""
    source = swizzled_sources(copy.partition_S(buffer), smem, major)
    target = copy.retile(fragment)  # (ldmatrix, rows, steps)

    def load(step: int, stage: Any) -> None:
        for row in range(cute.size(target, mode=[1])):
            cute.copy(copy, source(row, step)[None, stage], target[None, row, step])

    return load


def swizzled_sources(
    source: cute.Tensor, smem: ComposedLayout, major: Major
) -> Callable[[int, int], cute.Tensor]:
    """(row, step) → (matrices, stages): what ldmatrix reads of a source (matrices, rows, steps, …).

    The swizzle is applied once for all stages. It depends on one of the two arguments only: on the
    step if the tile is K-major, else on the row (`checks.swizzle_problems` sees to it).
    """
    if major == "K":
        first = [source[None, None, step, None] for step in range(cute.size(source, mode=[2]))]
    else:
        first = [source[None, row, None, None] for row in range(cute.size(source, mode=[1]))]
    swizzled = [cute.make_tensor(lower.swizzled_pointer(x.iterator, smem), x.layout) for x in first]
    if major == "K":
        return lambda row, step: swizzled[step][None, row, None]
    return lambda row, step: swizzled[row][None, step, None]


@cute.jit
def store_accumulator(
    acc: cute.Tensor, outputs: Any, plan: cutlass.Constexpr, coord: Pair, thread: Int32
):
    """Compute the results of the accumulator, and store them in vectors."""
    values = cute.make_tensor(acc.iterator, lower.layout(plan.fragment))
    store_tile([values], outputs, plan.epilogue, plan.c, plan.tile[:2], coord, thread)
