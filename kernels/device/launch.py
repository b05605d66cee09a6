"""The host side of every kernel that computes one tile of C per block."""

from typing import Any

import cutlass.cute as cute
from cuda.bindings.driver import CUstream
from cutlass import Int32

from cutedsl_gemm.kernels.device.tile import tile_count, transposed


class OneTilePerBlock:
    """One kernel for every M, N, K of a plan; a subclass gives `kernel`, its device code."""

    kernel: Any

    def __init__(self, plan: Any) -> None:
        self.plan = plan

    @cute.jit
    def __call__(
        self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, sms: Int32, stream: CUstream
    ):
        """C (M, N) = A (M, K) · B (K, N), one block per tile; `sms` is not used."""
        self.kernel(a, transposed(b), c).launch(
            grid=(tile_count(c, self.plan.tile[:2]), 1, 1),
            block=(self.plan.threads, 1, 1),
            smem=self.plan.smem_bytes,
            stream=stream,
        )
