"""The host side of GEMM kernels: their arguments, and the launch of one block per tile of C."""

from typing import Any

import cutlass.cute as cute
from cuda.bindings.driver import CUstream
from cutlass import Float32, Int32

from cutedsl_gemm.kernels.device import lower
from cutedsl_gemm.kernels.device.tile import tile_count, transposed
from cutedsl_gemm.kernels.plan.arguments import Argument, arguments


class Gemm:
    """One kernel for every M, N, K of a plan."""

    plan: Any

    def arguments(self) -> tuple[Any, ...]:
        """A, B and C with symbolic extents and leading strides, the workspace if any, and sms."""
        extents = {mode: cute.sym_int() for mode in ("M", "N", "K")}
        matrices = (
            self._matrix(argument, tuple(extents[mode] for mode in argument.modes))
            for argument in arguments(self.plan).values()
        )
        return *matrices, *self._workspace(), Int32(1)

    def _matrix(self, argument: Argument, shape: tuple[Any, ...]) -> Any:
        dtype = lower.DTYPES[self.plan.dtype]
        leading = cute.sym_int64(divisibility=argument.alignment)
        stride = (leading, 1) if argument.row_major else (1, leading)
        align = argument.alignment * dtype.width // 8  # bytes
        return cute.runtime.make_fake_tensor(dtype, shape, stride, assumed_align=align)

    def _workspace(self) -> tuple[Any, ...]:
        if not self.plan.workspace(1, 1):
            return ()
        size = (cute.sym_int(),)
        return (cute.runtime.make_fake_tensor(Float32, size, (1,), assumed_align=16),)


class OneTilePerBlock(Gemm):
    """One block for each tile of C; a subclass gives `kernel`, its device code."""

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
