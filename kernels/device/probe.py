"""One warp, one shared-memory instruction, at given addresses: ncu counts its wavefronts.

`layouts.hardware.wavefronts` predicts the wavefronts of an access. This kernel makes exactly one
access: each lane reads its byte offset from a table, so that one compiled kernel per instruction
serves every layout.
"""

import re

import cutlass
import cutlass.cute as cute
from cuda.bindings.driver import CUstream
from cutlass import Int32, Uint32

from cutedsl_gemm.kernels.device.compiler import compile_kernel
from cutedsl_gemm.kernels.device.smem import SmemAllocator

BYTES = 65_536  # of shared memory; an offset must be below

MATRIX = "sync.aligned.m8n8.{}.shared.b16"
INSTRUCTIONS = (  # PTX, without operands
    *(f"{kind}.shared.{width}b32" for kind in ("ld", "st") for width in ("", "v2.", "v4.")),
    *(
        f"{kind}matrix.{MATRIX.format(form)}"
        for kind in ("ld", "st")
        for form in ("x1", "x2", "x4", "x4.trans")
    ),
)


def registers(instruction: str) -> int:
    """The 32-bit registers of a lane that an instruction moves.

    >>> registers("ld.shared.v2.b32"), registers("stmatrix.sync.aligned.m8n8.x4.shared.b16")
    (2, 4)
    """
    count = re.search(r"\.[vx](\d)\.", instruction)
    return int(count[1]) if count else 1


class Probe:
    """The kernel of one instruction: (offsets (32,) in bytes, sink (32, 4)) → sink."""

    def __init__(self, instruction: str) -> None:
        self.instruction = instruction

    @cute.jit
    def __call__(self, offsets: cute.Tensor, sink: cute.Tensor, stream: CUstream):
        self.kernel(offsets, sink).launch(
            grid=(1, 1, 1), block=(32, 1, 1), smem=BYTES, stream=stream
        )

    @cute.kernel
    def kernel(self, offsets: cute.Tensor, sink: cute.Tensor):
        lane = cute.arch.thread_idx()[0]
        base = SmemAllocator().allocate_array(cutlass.Uint8, BYTES, byte_alignment=1024)
        address = Int32(base.toint()) + offsets[lane]
        count = registers(self.instruction)
        if cutlass.const_expr(self.instruction.startswith("ld")):
            found = cute.arch.inline_ptx(
                f"{self.instruction} {_registers(self.instruction, 'w', count)}, [{{$r0}}];",
                write_only_types=[Uint32] * count,
                read_only_args=[address],
            )
            for i in cutlass.range_constexpr(count):
                sink[lane, i] = found if count == 1 else found[i]
        else:
            cute.arch.inline_ptx(
                f"{self.instruction} [{{$r0}}], {_registers(self.instruction, 'r', count, 1)};",
                read_only_args=[address] + [Uint32(lane)] * count,
            )


def _registers(instruction: str, kind: str, count: int, first: int = 0) -> str:
    """The operand in PTX: `{r, r, …}`, or `r` for an instruction that takes a scalar."""
    names = ", ".join(f"{{${kind}{first + i}}}" for i in range(count))
    return names if instruction.endswith("shared.b32") else f"{{{names}}}"


def compile_probe(instruction: str):
    """The probe of an instruction as a TVM-FFI function (offsets, sink) of torch tensors."""
    offsets = cute.runtime.make_fake_compact_tensor(Int32, (32,), assumed_align=4)
    sink = cute.runtime.make_fake_compact_tensor(Uint32, (32, 4), stride_order=(1, 0))
    return compile_kernel(Probe(instruction), offsets, sink, arch="sm_90a")
