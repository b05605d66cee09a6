"""A program on the registers of a kernel, one value of each accumulator at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cutlass.cute as cute
from cutlass import Boolean, Float16, Float32, Uint32, select_

from cutedsl_gemm.kernels.epilogue.expression import Epilogue, Instruction
from cutedsl_gemm.kernels.epilogue.forms import FORMS


def evaluate(
    epilogue: Epilogue, accumulators: Sequence[Any], operands: Sequence[Any] = ()
) -> tuple[Any, ...]:
    """The values of the results in one thread, before they are reduced and before they are rounded.

    All are scalars of type Float32: one element of each accumulator, and the element of each
    operand at the same place of C. Instructions that no other place of C changes, as those of
    scalars alone, the compiler computes once.
    """
    leaves = {"acc": accumulators, "operand": operands}
    values: list[Any] = []
    for instruction in epilogue.program:
        if instruction.operation in leaves:
            value = Float32(leaves[instruction.operation][int(instruction.value or 0)])
        elif instruction.operation == "constant":
            value = Float32(float(instruction.value or 0))
        else:
            value = _apply(instruction, [values[each] for each in instruction.arguments])
        values.append(value)
    return tuple(values[each.value] for each in epilogue.results)


def _apply(instruction: Instruction, arguments: list[Any]) -> Any:
    if instruction.operation == "cast":
        return rounded(arguments[0], str(instruction.value))
    return FORMS[instruction.operation](REGISTERS, *arguments)


def rounded(value: Any, dtype: str) -> Any:
    """The value, rounded to a dtype.

    A pair (value, 0) of bf16 is the value in fp32. The instruction that converts a pair, F2FP, does
    not go through the function unit, as that of one value does (F2F).
    """
    if dtype == "float32":
        return value
    if dtype == "float16":
        return value.to(Float16).to(Float32)
    pair = cute.arch.inline_ptx(
        "cvt.rn.bf16x2.f32 {$w0}, {$r0}, {$r1};",
        write_only_types=[Uint32],
        read_only_args=[value, Float32(0.0)],
    )
    return pair.bitcast(Float32)


class Registers:
    """The arithmetic of fp32 registers: an instruction of PTX each."""

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
