"""What the device files of this family share: the warps' multiply, and C's way out."""

from collections.abc import Callable
from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32
from cutlass.cute.nvgpu import warp
from cutlass.memory import SmemAllocator

from cutedsl_gemm.kernels.device import lower
from cutedsl_gemm.kernels.device.tile import Pair, guarded_copy, remaining_extent, thread_partition
from cutedsl_gemm.kernels.sm80.plan import Sm80Plan
from cutedsl_gemm.kernels.sm80.stage import ALIGNMENT
from layouts import ComposedLayout
from layouts.hardware.descriptor import Major


def tiled_mma(plan: Sm80Plan) -> cute.TiledMma:
    """mma.m16n8 by all warps of the block."""
    op = warp.MmaF16BF16Op(lower.DTYPES[plan.dtype], Float32, (16, 8, plan.step[2]))
    return cute.make_tiled_mma(op, lower.layout(plan.order), permutation_mnk=plan.step)


def warps(
    plan: Sm80Plan, sA: cute.Tensor, sB: cute.Tensor, thread: Int32
) -> tuple[cute.Tensor, Callable[[int, Any], None], Callable[[int], None]]:
    """The accumulator, zero, `fetch(step, stage)` and `multiply(step)`.

    `fetch` brings the fragments of one step of a k-block, `multiply` adds their product.
    """
    dtype, mma, (x_a, x_b) = lower.DTYPES[plan.dtype], tiled_mma(plan), plan.matrices
    mine = mma.get_slice(thread)
    load_a = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(plan.a_major == "MN", x_a), dtype)
    load_b = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(plan.b_major == "MN", x_b), dtype)
    load_a, load_b = cute.make_tiled_copy_A(load_a, mma), cute.make_tiled_copy_B(load_b, mma)
    mine_a, mine_b = load_a.get_slice(thread), load_b.get_slice(thread)
    from_a = _pieces(mine_a.partition_S(sA), plan.rings[0], plan.a_major)
    from_b = _pieces(mine_b.partition_S(sB), plan.rings[1], plan.b_major)
    rA = mma.make_fragment_A(mine.partition_A(sA)[None, None, None, 0])  # (mma, rows, steps)
    rB = mma.make_fragment_B(mine.partition_B(sB)[None, None, None, 0])  # (mma, rows, steps)
    to_a, to_b = mine_a.retile(rA), mine_b.retile(rB)
    acc = cute.make_rmem_tensor(mma.partition_shape_C(plan.tile[:2]), Float32)
    acc.fill(0)

    def fetch(step: int, stage: Any) -> None:
        for load, pieces, to in ((load_a, from_a, to_a), (load_b, from_b, to_b)):
            for row in range(cute.size(to, mode=[1])):
                cute.copy(load, pieces(row, step)[None, stage], to[None, row, step])

    def multiply(step: int) -> None:
        cute.gemm(mma, acc, rA[None, None, step], rB[None, None, step], acc)

    return acc, fetch, multiply


def _pieces(
    source: cute.Tensor, ring: ComposedLayout, major: Major
) -> Callable[[int, int], cute.Tensor]:
    """(row, step) → (matrices, stages): what ldmatrix reads of a ring (matrices, rows, steps, …).

    The swizzle is applied here, once for all stages: it changes bits that only one of the two, a
    step where the tile is K-major, else a row, can change.
    """
    if major == "K":
        first = [source[None, None, step, None] for step in range(cute.size(source, mode=[2]))]
    else:
        first = [source[None, row, None, None] for row in range(cute.size(source, mode=[1]))]
    settled = [cute.make_tensor(lower.swizzled_pointer(p.iterator, ring), p.layout) for p in first]
    if major == "K":
        return lambda row, step: settled[step][None, row, None]
    return lambda row, step: settled[row][None, step, None]


def shared(plan: Sm80Plan) -> tuple[cute.Tensor, cute.Tensor]:
    """The rings of A and of B, (lines, BK, stages) each."""
    smem, dtype = SmemAllocator(), lower.DTYPES[plan.dtype]
    rings = (
        smem.allocate_tensor(dtype, lower.layout(r.outer), ALIGNMENT, swizzle=lower.byte_swizzle(r))
        for r in plan.rings
    )
    return tuple(rings)


@cute.jit
def store(acc: cute.Tensor, c: cute.Tensor, plan: cutlass.Constexpr, tile: Pair, thread: Int32):
    """The accumulator to C: neighbours that a thread holds move together."""
    tiler = plan.tile[:2]
    values = cute.make_tensor(acc.iterator, lower.layout(plan.fragment))
    rC = cute.make_rmem_tensor(lower.layout(plan.c.registers), c.element_type)
    rC.store(values.load().to(c.element_type))
    gC = thread_partition(cute.local_tile(c, tiler, tile), plan.c, thread)
    guarded_copy(rC, gC, plan.c, thread, remaining_extent(c, tiler, tile))
