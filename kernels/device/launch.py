"""The host side of GEMM kernels: their arguments, and the launch of one block per tile of C."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import cutlass.cute as cute
from cutlass import Float32, Int32

from cutedsl_gemm.kernels.device import lower
from cutedsl_gemm.kernels.device.epilogue import like_c, over_c, split_arguments
from cutedsl_gemm.kernels.device.tile import tile_count, transposed
from cutedsl_gemm.kernels.plan.arguments import Argument, arguments


class Gemm:
    """One kernel for every M, N, K of a plan."""

    plan: Any

    def arguments(self) -> tuple[Any, ...]:
        """What the kernel is compiled for: fake tensors with symbolic extents, and numbers.

        The tensors of `arguments(plan)`, the operands that are passed by value, the workspace if
        there is one; if A is gathered or C scattered, this GPU's number and the epoch; and sms.
        """
        extents: dict[str, Any] = defaultdict(cute.sym_int)
        tensors = (_tensor(each, each.shape(extents)) for each in arguments(self.plan).values())
        number_and_epoch = (Int32(1), Int32(1)) if self.plan.gathered or self.plan.scattered else ()
        return *tensors, *self._numbers(), *self._workspace(), *number_and_epoch, Int32(1)

    def _numbers(self) -> tuple[Any, ...]:
        return tuple(Float32(1) for each in self.plan.epilogue.operands if each.by_value)

    def _workspace(self) -> tuple[Any, ...]:
        if not self.plan.workspace(1, 1):
            return ()
        size = (cute.sym_int(),)
        return (cute.runtime.make_fake_tensor(Float32, size, (1,), assumed_align=16),)


def _tensor(argument: Argument, shape: Sequence[Any]) -> Any:
    dtype = lower.DTYPES[argument.dtype]
    stride: list[Any] = [cute.sym_int64(divisibility=argument.alignment) for _ in shape]
    stride[argument.contiguous] = 1
    align = argument.alignment * dtype.width // 8  # bytes
    return cute.runtime.make_fake_tensor(dtype, tuple(shape), tuple(stride), assumed_align=align)


class OneTilePerBlock(Gemm):
    """One block for each tile of C; a subclass gives `kernel`, its device code."""

    kernel: Any

    def __init__(self, plan: Any) -> None:
        self.plan = plan

    @cute.jit
    def __call__(self, a: cute.Tensor, b: cute.Tensor, *others: Any):
        """C (M, N) = A (M, K) · B (K, N), one block per tile; `sms` is not used.

        `others` are the operands and results of the epilogue, its numbers, sms and the stream.
        """
        epilogue = self.plan.epilogue
        operands, results, (_, stream) = split_arguments(epilogue, others)
        c = like_c(epilogue, results, (a.shape[0], b.shape[1]))
        self.kernel(a, transposed(b), over_c(epilogue, operands, c.shape), results).launch(
            grid=(tile_count(c.shape, self.plan.tile[:2]), 1, 1),
            block=(self.plan.threads, 1, 1),
            smem=self.plan.smem_bytes,
            stream=stream,
        )
