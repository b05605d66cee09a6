"""What the device files of this family share: the warps' multiply, and C's way out."""

from collections.abc import Callable
from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32
from cutlass.cute.nvgpu import warp
from cutlass.memory import SmemAllocator

from cutedsl_gemm.kernels import lower, parts
from cutedsl_gemm.kernels.sm80.plan import ALIGNMENT, STEP, Sm80Plan


def tiled_mma(plan: Sm80Plan) -> cute.TiledMma:
    """mma.m16n8k16 by all warps of the block."""
    op = warp.MmaF16BF16Op(lower.DTYPES[plan.dtype], Float32, (16, 8, 16))
    return cute.make_tiled_mma(op, lower.layout(plan.warps), permutation_mnk=STEP)


def warps(
    plan: Sm80Plan, sA: cute.Tensor, sB: cute.Tensor, thread: Int32
) -> tuple[cute.Tensor, Callable[[Any], None]]:
    """The accumulator, zero, and `multiply(stage)`, which adds the product of a k-block to it."""
    dtype, mma = lower.DTYPES[plan.dtype], tiled_mma(plan)
    mine = mma.get_slice(thread)
    load_a = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(plan.a_major == "MN", 4), dtype)
    load_b = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(plan.b_major == "MN", 4), dtype)
    load_a, load_b = cute.make_tiled_copy_A(load_a, mma), cute.make_tiled_copy_B(load_b, mma)
    mine_a, mine_b = load_a.get_slice(thread), load_b.get_slice(thread)
    from_a, from_b = mine_a.partition_S(sA), mine_b.partition_S(sB)  # (x4, rows, BK/16, stages)
    rA = mma.make_fragment_A(mine.partition_A(sA)[None, None, None, 0])  # (mma, BM/32, BK/16)
    rB = mma.make_fragment_B(mine.partition_B(sB)[None, None, None, 0])  # (mma, BN/16, BK/16)
    to_a, to_b = mine_a.retile(rA), mine_b.retile(rB)
    acc = cute.make_rmem_tensor(mma.partition_shape_C(plan.tile[:2]), Float32)
    acc.fill(0)

    def multiply(stage: Any) -> None:
        for k in range(plan.tile[2] // STEP[2]):
            cute.copy(load_a, from_a[None, None, k, stage], to_a[None, None, k])
            cute.copy(load_b, from_b[None, None, k, stage], to_b[None, None, k])
            cute.gemm(mma, acc, rA[None, None, k], rB[None, None, k], acc)

    return acc, multiply


def shared(plan: Sm80Plan) -> tuple[cute.Tensor, cute.Tensor]:
    """The rings of A and of B, (rows, BK, stages) each."""
    smem, dtype = SmemAllocator(), lower.DTYPES[plan.dtype]
    rings = (
        smem.allocate_tensor(dtype, lower.layout(r.outer), ALIGNMENT, swizzle=lower.byte_swizzle(r))
        for r in plan.rings
    )
    return tuple(rings)


@cute.jit
def store(
    acc: cute.Tensor, c: cute.Tensor, plan: cutlass.Constexpr, tile: parts.Pair, thread: Int32
):
    """The accumulator to C: pairs of neighbours, as mma leaves them."""
    tiler = plan.tile[:2]
    values = cute.make_tensor(acc.iterator, lower.layout(plan.fragment))
    rC = cute.make_rmem_tensor(lower.layout(plan.fragment), c.element_type)
    rC.store(values.load().to(c.element_type))
    gC = parts.part(cute.local_tile(c, tiler, tile), plan.c, thread)
    parts.move(rC, gC, plan.c, thread, parts.left(c, tiler, tile))
