"""SIMT GEMM from global memory: each thread walks its row of A and its column of B.

Serves `naive` and `coalesced`: between the two, only the plan's layouts of C differ.

    A  row m ────────▶ k          Who    a block of 32×32 threads a tile of C, a thread an output
    B  column n ─────▶ k          When   load, load, multiply, K times: nothing overlaps but warps
    C  (m, n)  += A(m, k) B(k, n) Where  `plan.explain()` prints which thread has which (m, n)
"""

import cutlass
import cutlass.cute as cute
from cuda.bindings.driver import CUstream
from cutlass import Float32, Int32

from cutedsl_gemm.kernels import parts
from cutedsl_gemm.kernels.simt.plan import SimtPlan


class Direct:
    """One kernel for every M, N, K of a plan without stages."""

    def __init__(self, plan: SimtPlan) -> None:
        self.plan = plan

    @cute.jit
    def __call__(
        self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, sms: Int32, stream: CUstream
    ):
        """C (M, N) = A (M, K) · B (K, N); the grid has a block a tile, whatever `sms` is."""
        self.kernel(a, b, c).launch(
            grid=(parts.grid(c, self.plan.tile[:2]), 1, 1),
            block=(self.plan.threads, 1, 1),
            stream=stream,
        )

    @cute.kernel
    def kernel(self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
        plan, tiler = self.plan, self.plan.tile[:2]
        thread = cute.arch.thread_idx()[0]
        m, n = parts.tile_of(cute.arch.block_idx()[0], c, tiler)
        extent = parts.left(c, tiler, (m, n))
        row = m * tiler[0] + plan.c.rows(thread, 0)
        column = n * tiler[1] + plan.c.columns(thread, 0)
        if parts.inside(plan.c, thread, (0, 0), extent):
            total = Float32(0)
            for k in cutlass.range(a.shape[1], unroll=4):
                total += a[row, k] * b[k, column]
            c[row, column] = total
