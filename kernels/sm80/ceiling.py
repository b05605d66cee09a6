"""The peak rate of mma.m16n8k16: warps that do nothing else, from registers.

    warp    rA (64×16), rB (64×16) ▶ acc (64×64), `rounds` times; eight warps a multiprocessor

No GEMM of this family can be faster; the ladder gives each rung as a percentage of it.
"""

from collections.abc import Callable

import cutlass
import cutlass.cute as cute
from cuda.bindings.driver import CUstream
from cutlass import BFloat16, Float32, Int32
from cutlass.cute.nvgpu import warp

from cutedsl_gemm.kernels.device.compiler import compile_kernel

WARPS = 8
TILE = (64, 64, 16)  # what a warp multiplies in a round
ROUNDS, UNROLLED = 4096, 4
NUMBERS = (TILE[0] + TILE[1]) * TILE[2] // 32  # elements of both fragments in a lane


class Ceiling:
    """4 * `rounds` products of a 64×16 and a 16×64 matrix by each warp of `blocks` blocks."""

    @cute.jit
    def __call__(
        self,
        numbers: cute.Tensor,  # (threads, NUMBERS)
        sums: cute.Tensor,  # (blocks, threads)
        rounds: Int32,
        blocks: Int32,
        stream: CUstream,
    ):
        self.kernel(numbers, sums, rounds).launch(
            grid=(blocks, 1, 1), block=(32 * WARPS, 1, 1), stream=stream
        )

    @cute.kernel
    def kernel(self, numbers: cute.Tensor, sums: cute.Tensor, rounds: Int32):
        thread = cute.arch.thread_idx()[0]
        op, (m, n, k) = warp.MmaF16BF16Op(BFloat16, Float32, (16, 8, 16)), TILE
        mma = cute.make_tiled_mma(op)
        rA = cute.make_rmem_tensor(mma.partition_shape_A((m, k)), BFloat16)
        rB = cute.make_rmem_tensor(mma.partition_shape_B((n, k)), BFloat16)
        acc = cute.make_rmem_tensor(mma.partition_shape_C((m, n)), Float32)
        acc.fill(0)
        for i in cutlass.range_constexpr(cute.size(rA)):
            rA[i] = numbers[thread, i]
        for i in cutlass.range_constexpr(cute.size(rB)):
            rB[i] = numbers[thread, cute.size(rA) + i]
        for _ in cutlass.range(rounds, unroll=1):
            for _ in cutlass.range_constexpr(UNROLLED):
                cute.gemm(mma, acc, rA[None, None, 0], rB[None, None, 0], acc)
        total = Float32(0)
        for i in cutlass.range_constexpr(cute.size(acc)):
            total += acc[i]
        sums[cute.arch.block_idx()[0], thread] = total


def operations(blocks: int, rounds: int = ROUNDS) -> int:
    """Multiplications and additions of a launch."""
    m, n, k = TILE
    return 2 * m * n * k * UNROLLED * rounds * WARPS * blocks


def build(arch: str) -> Callable[..., None]:
    """Compiled: (numbers (threads, NUMBERS) bfloat16, sums (blocks, threads), rounds, blocks)."""
    fake, any_extent, one = cute.runtime.make_fake_tensor, cute.sym_int, cute.Int32(1)
    threads = 32 * WARPS
    return compile_kernel(
        Ceiling(),
        fake(BFloat16, (threads, NUMBERS), (NUMBERS, 1)),
        fake(Float32, (any_extent(), threads), (threads, 1)),
        one,
        one,
        arch=arch,
    )
