"""A kernel that is an epilogue and nothing else: each thread computes one element."""

from dataclasses import dataclass

import cutlass.cute as cute
from cuda.bindings.driver import CUstream
from cutlass import Float32, Int32

from cutedsl_gemm.kernels.epilogue import registers
from cutedsl_gemm.kernels.epilogue.expression import Epilogue


class Elementwise:
    """results[i][t] = the epilogue of accumulators and operands at t: vectors of fp32."""

    def __init__(self, epilogue):
        self.epilogue = epilogue

    def arguments(self):
        def vectors(count):
            return tuple(
                cute.runtime.make_fake_tensor(Float32, (cute.sym_int(),), (1,))
                for _ in range(count)
            )

        epilogue = self.epilogue
        inputs = epilogue.accumulators + len(epilogue.operands)
        return vectors(inputs), vectors(len(epilogue.results))

    @cute.jit
    def __call__(self, inputs, outputs, stream: CUstream):
        self.kernel(inputs, outputs).launch(
            grid=(cute.ceil_div(outputs[0].shape[0], 128), 1, 1), block=(128, 1, 1), stream=stream
        )

    @cute.kernel
    def kernel(self, inputs, outputs):
        at = Int32(cute.arch.block_idx()[0]) * 128 + cute.arch.thread_idx()[0]
        if at < outputs[0].shape[0]:
            values = [each[at] for each in inputs]
            count = self.epilogue.accumulators
            results = registers.evaluate(self.epilogue, values[:count], values[count:])
            for output, value in zip(outputs, results, strict=True):
                output[at] = value


@dataclass(frozen=True)
class ElementwisePlan:
    """As much of a plan as `kernels/compile/build` needs."""

    epilogue: Epilogue
    name = "elementwise"

    def device_code(self):
        return Elementwise(self.epilogue)
