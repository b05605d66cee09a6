"""What plans share whose blocks work alone: simt, sm70, sm80."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cutedsl_gemm.kernels.epilogue.expression import Epilogue, Result
from cutedsl_gemm.kernels.plan.epilogue import reduction_parts
from cutedsl_gemm.kernels.plan.kernel_plan import Report
from cutedsl_gemm.kernels.plan.tv_layout import TVLayout
from layouts import Layout

if TYPE_CHECKING:
    from torch import Tensor


class BlockPlan:
    """A plan of blocks that work alone. C's thread-value layout says which thread stores what.

    Subclasses are dataclasses with these fields, and have a copy for A, B and C.
    """

    name: str
    tile: tuple[int, int, int]  # (BM, BN, BK)
    c: TVLayout  # of C (BM, BN)
    epilogue: Epilogue

    def tile_coord(self, block: Any, tiles_m: Any, tiles_n: Any) -> tuple[Any, Any]:
        """The tile (m, n) of C that a block computes."""
        raise NotImplementedError

    @property
    def global_copies(self) -> dict[str, TVLayout]:
        """How the threads access a tile of A, B and C in global memory."""
        raise NotImplementedError

    @property
    def alignment(self) -> int:
        """Leading strides and addresses must be multiples of this many elements."""
        return max(copy.width for copy in self.global_copies.values())

    @property
    def c_alignment(self) -> int:
        """The leading stride and the address of C must be multiples of this many elements."""
        return self.alignment

    @property
    def outputs(self) -> Layout:
        """(thread, value) → m + BM * n: the outputs that each thread holds."""
        return self.c.offsets(1, self.tile[0])

    @property
    def cluster_size(self) -> int:
        """1: blocks are alone."""
        return 1

    @property
    def gathered(self) -> bool:
        """False: the whole of A is there before the kernel starts."""
        return False

    @property
    def batched(self) -> bool:
        """False: A, B and C are one matrix each."""
        return False

    @property
    def scattered(self) -> bool:
        """False: this GPU has all rows of C."""
        return False

    def workspace(self, m: int, n: int) -> int:
        """0: no block adds to the sums of another."""
        return 0

    def reduction_parts(self, result: Result, m: int, n: int) -> int:
        """The parts of a reduction of an (M, N) result: the first extent of its tensor."""
        return reduction_parts(result, self.c, self.tile[:2], (m, n))

    def executor(self) -> Callable[..., None]:
        """The family's executor. It imports torch, so a plan imports it here."""
        raise NotImplementedError

    def execute(
        self,
        a: Tensor,
        b: Tensor,
        out: Tensor | tuple[Tensor, ...],
        report: Report | None = None,
        operands: tuple[Tensor | float, ...] = (),
    ) -> None:
        """Compute out from a · b on CPU tensors, K > 0, moving data through the plan's layouts."""
        self.executor()(self, a, b, out, report, operands)
