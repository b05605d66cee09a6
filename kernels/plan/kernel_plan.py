"""What plans answer: the protocols between plans and their users.

`gemm` runs a plan, `compile.build` compiles it, tests prove it, and docs explain it, all without
knowing its family.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from cutedsl_gemm.kernels.epilogue.expression import Epilogue
from layouts import Layout, Proof
from layouts.hardware.descriptor import Major

if TYPE_CHECKING:
    from torch import Tensor

    from cutedsl_gemm.kernels.plan.memory_report import MemoryReport

Report: TypeAlias = Callable[[float], object]  # takes the fraction that is done


class Plan(Protocol):
    """A frozen, hashable value: how one kernel moves its data.

    A plan imports neither torch nor the CuTe DSL until `device_code` or `execute` is called.
    """

    @property
    def name(self) -> str:
        """The name of the kernel; for a GEMM as `gemm(a, b, kernel=name)` takes it: "sm80_mma"."""

    @property
    def tile(self) -> tuple[int, ...]:
        """The extents of what a block computes or moves."""

    @property
    def dtype(self) -> str:
        """The type of the elements: "bfloat16", "float16" or "float32"."""

    @property
    def threads(self) -> int:
        """Threads of a block."""

    def workspace(self, m: int, n: int) -> int:
        """Elements of fp32 in global memory for an (M, N) result; 0 if the kernel needs none."""

    def __hash__(self) -> int: ...

    def check(self) -> Plan:
        """The plan itself; PlanError with the first problem if the hardware cannot run it."""

    def proofs(self) -> tuple[Proof, ...]:
        """What must hold for the plan to be right and fast, decided."""

    def explain(self) -> str:
        """The plan as text: what moves where, by which layout."""

    def device_code(self) -> Any:
        """The kernel object that `cute.compile` takes, after what its `arguments()` returns."""


class KernelPlan(Plan, Protocol):
    """How one kernel computes C (M, N) = A (M, K) · B (K, N)."""

    @property
    def tile(self) -> tuple[int, int, int]:
        """(BM, BN, BK): a block computes BM×BN outputs, BK deep at a time."""

    @property
    def a_major(self) -> Major:
        """The contiguous mode of A in global memory."""

    @property
    def b_major(self) -> Major:
        """The contiguous mode of B in global memory."""

    @property
    def alignment(self) -> int:
        """Leading strides and addresses of A and B must be multiples of this many elements."""

    @property
    def c_alignment(self) -> int:
        """The leading stride and the address of C must be multiples of this many elements."""

    @property
    def cluster_size(self) -> int:
        """Blocks of a cluster; 1 if blocks are alone."""

    @property
    def smem_bytes(self) -> int:
        """Bytes of shared memory that a block takes."""

    @property
    def outputs(self) -> Layout:
        """(thread, value) → m + BM * n: the outputs that each thread holds in registers."""

    @property
    def instruction_k(self) -> int:
        """The depth that one instruction multiplies: 16 for wgmma of 16-bit elements, 1 for FMA."""

    @property
    def epilogue(self) -> Epilogue:
        """What is computed from the accumulators, and stored."""

    @property
    def gathered(self) -> bool:
        """Whether other GPUs send rows of A while the kernel runs."""

    @property
    def scattered(self) -> bool:
        """Whether several GPUs have rows of C each, and send their parts of them."""

    @property
    def batched(self) -> bool:
        """Whether A, B and C are batches: C (L, M, N) = A (L, M, K) · B (L, K, N)."""

    def check(self) -> KernelPlan:
        """The plan itself; PlanError with the first problem if the hardware cannot run it."""

    def memory_report(self) -> MemoryReport | None:
        """The memory report; None for a family that has none."""

    def execute(
        self,
        a: Tensor,
        b: Tensor,
        out: Tensor | tuple[Tensor, ...],
        report: Report | None = None,
        operands: tuple[Tensor | float, ...] = (),
    ) -> None:
        """Compute out from a · b on CPU tensors, K > 0, moving data through the plan's layouts."""
