"""sm80 GEMM on the tensor core, one k-block at a time: serves `mma`, `padded` and `swizzled`.

    block   bring k-block 0 │ barrier │ multiply │ barrier │ bring k-block 1 │ barrier │ …
    warp    shared memory ─ ldmatrix.x4 ▶ rA, rB ─ mma.m16n8k16 ▶ acc, for each 16 of K

Where elements lie in shared memory is the plan's affair: only that differs between the three.
"""

import cutlass
import cutlass.cute as cute
from cuda.bindings.driver import CUstream
from cutlass import Int32

from cutedsl_gemm.kernels import parts
from cutedsl_gemm.kernels.sm80.parts import shared, store, warps
from cutedsl_gemm.kernels.sm80.plan import THREADS, Sm80Plan


class Mma:
    """One kernel for every M, N, K of a plan with one stage."""

    def __init__(self, plan: Sm80Plan) -> None:
        self.plan = plan

    @cute.jit
    def __call__(
        self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, sms: Int32, stream: CUstream
    ):
        """C (M, N) = A (M, K) · B (K, N); the grid has a block a tile, whatever `sms` is."""
        b = cute.make_tensor(b.iterator, cute.select(b.layout, mode=[1, 0]))  # (N, K)
        self.kernel(a, b, c).launch(
            grid=(parts.grid(c, self.plan.tile[:2]), 1, 1),
            block=(THREADS, 1, 1),
            smem=self.plan.smem_bytes,
            stream=stream,
        )

    @cute.kernel
    def kernel(self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
        plan, (bm, bn, bk) = self.plan, self.plan.tile
        thread = cute.arch.thread_idx()[0]
        m, n = parts.tile_of(cute.arch.block_idx()[0], c, (bm, bn))
        sA, sB = shared(plan)  # (BM, BK, 1), (BN, BK, 1)
        acc, multiply = warps(plan, sA, sB, thread)
        for block in cutlass.range(cute.ceil_div(a.shape[1], bk), unroll=1):
            parts.bring(a, sA[None, None, 0], plan.a.share, (bm, bk), (m, block), thread)
            parts.bring(b, sB[None, None, 0], plan.b.share, (bn, bk), (n, block), thread)
            cute.arch.sync_threads()
            multiply(0)
            cute.arch.sync_threads()
        store(acc, c, plan, (m, n), thread)
