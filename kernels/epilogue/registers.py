"""A program on the registers of a kernel, one value of each accumulator at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cutlass.cute as cute
from cutlass import Boolean, Float16, Float32, Uint32, select_

from cutedsl_gemm.kernels.epilogue.expression import Epilogue
from cutedsl_gemm.kernels.epilogue.forms import COMBINED, compute


def evaluate(
    epilogue: Epilogue, accumulators: Sequence[Any], operands: Sequence[Any] = ()
) -> tuple[Any, ...]:
    """The values of the results in one thread, before they are reduced and before they are rounded.

    All are scalars of type Float32: one element of each accumulator, and the element of each
    operand at the same place of C. Instructions that no other place of C changes, as those of
    scalars alone, the compiler computes once.
    """
    accumulators, operands = ([Float32(x) for x in each] for each in (accumulators, operands))
    return compute(epilogue, REGISTERS, accumulators, operands)


def combine(reduction: str, x: Any, y: Any) -> Any:
    """Two parts of a reduction, scalars of type Float32. It starts from `operations.IDENTITIES`."""
    return COMBINED[reduction](REGISTERS, x, y)


class Registers:
    """The arithmetic of fp32 registers: an instruction of PTX each."""

    def constant(self, value: float) -> Any:
        return Float32(value)

    def cast(self, x: Any, dtype: str) -> Any:
        """x, rounded to a dtype.

        A pair (x, 0) of bf16 is x in fp32. The instruction that converts a pair, F2FP, does not go
        through the SFU, as that of one value does (F2F).
        """
        if dtype == "float32":
            return x
        if dtype == "float16":
            return x.to(Float16).to(Float32)
        pair = cute.arch.inline_ptx(
            "cvt.rn.bf16x2.f32 {$w0}, {$r0}, {$r1};",
            write_only_types=[Uint32],
            read_only_args=[x, Float32(0.0)],
        )
        return pair.bitcast(Float32)

    def fma(self, a: Any, b: Any, c: Any) -> Any:
        return cute.math.fma(a, Float32(b), Float32(c))

    def exp2(self, x: Any) -> Any:
        return cute.math.exp2(x, approx=True, ftz=True)

    def log2(self, x: Any) -> Any:
        return cute.math.log2(x, approx=True, ftz=True)

    def rcp(self, x: Any) -> Any:
        return cute.math.rcp(x, approx=True, ftz=True)

    def rsqrt(self, x: Any) -> Any:
        return cute.math.rsqrt(x, approx=True, ftz=True)

    def sqrt(self, x: Any) -> Any:
        return cute.math.sqrt(x, approx=True, ftz=True)

    def tanh(self, x: Any) -> Any:
        return cute.math.tanh(x, approx=True)

    def abs(self, x: Any) -> Any:
        return cute.math.abs(x)

    def copysign(self, x: Any, sign: Any) -> Any:
        return cute.math.copysign(x, sign)

    def maximum(self, x: Any, y: Any) -> Any:
        return cute.arch.fmax(x, Float32(y), nan=True)

    def minimum(self, x: Any, y: Any) -> Any:
        return cute.arch.fmin(x, Float32(y), nan=True)

    def select(self, condition: Any, x: Any, y: Any) -> Any:
        return Float32(select_(Boolean(condition), Float32(x), Float32(y)))


REGISTERS = Registers()
