"""The arithmetic of fp32 registers, on arrays of numpy; and PTX that runs on it.

The function unit's errors are added as the PTX ISA states them (9.7.3, "Floating Point
Instructions"), of a random size and sign. Those of tanh are an H100's.
"""

import operator
import re

import numpy as np

from tests.kernels.ptx.reader import Label, read

TINY = np.finfo(np.float32).tiny
RANDOM = np.random.default_rng(0)
# |x| → a bound of the error of tanh.approx on an H100, linear in between. 92 million results were
# compared with tanh in fp64. From 9.01 on, the bound is 0: the result is 1 or -1.
TANH_ERROR = {
    **{0: 0, 0.5: 5e-6, 1: 8e-6, 1.5: 8e-6, 3: 2.4e-6, 4.5: 2.4e-6},
    **{6: 2.5e-7, 9: 2.5e-7, 9.01: 0},
}


def _inexact(exact, error):
    """An fp32 result within so many parts of 2^-23 of the exact one; ftz."""
    noise = 1 + error * 2.0**-23 * RANDOM.uniform(-1, 1, np.shape(exact))
    result = (exact * noise).astype(np.float32)
    return np.where(np.abs(result) < TINY, np.copysign(np.float32(0), result), result)


def _flushed(x):
    return np.where(np.abs(x) < TINY, np.copysign(np.float32(0), x), x).astype(np.float64)


class Arrays:
    """Arithmetic on fp32 arrays, as an H100 has it."""

    def fma(self, a, b, c):
        wide = [np.asarray(each, np.float32).astype(np.float64) for each in (a, b, c)]
        return (wide[0] * wide[1] + wide[2]).astype(np.float32)

    def exp2(self, x):
        return _inexact(np.exp2(_flushed(x)), 2)

    def log2(self, x):
        exact = np.log2(_flushed(x))
        near = np.where((x > 0.5) & (x < 2), 2.0**-22 * RANDOM.uniform(-1, 1, np.shape(x)), 0)
        return (_inexact(exact, 1) + near).astype(np.float32)

    def rcp(self, x):
        return _inexact(1 / _flushed(x), 1)

    def rsqrt(self, x):
        return _inexact(1 / np.sqrt(_flushed(x)), 1.1)

    def sqrt(self, x):
        return _inexact(np.sqrt(_flushed(x)), 1)

    def tanh(self, x):
        error = np.interp(np.abs(x), [*TANH_ERROR], [*TANH_ERROR.values()])
        noisy = np.tanh(np.float64(x)) + error * RANDOM.uniform(-1, 1, np.shape(x))
        return np.clip(noisy, -1, 1).astype(np.float32)

    def abs(self, x):
        return np.abs(x)

    def copysign(self, x, sign):
        return np.copysign(x, sign)

    def maximum(self, x, y):
        return np.maximum(x, np.float32(y))

    def minimum(self, x, y):
        return np.minimum(x, np.float32(y))

    def select(self, condition, x, y):
        return np.where(condition, x, np.float32(y) if isinstance(y, float) else y)


M = Arrays()
F16, F32 = np.float16, np.float32
COMPARISONS = {
    each: getattr(operator, each.removesuffix("u"))
    for each in (*("lt", "le", "gt", "ge", "eq", "ne"), *("ltu", "leu", "gtu", "geu", "equ", "neu"))
}


def _bf16(x):
    """fp32, rounded to bf16 and to the nearest even."""
    bits = np.asarray(x, F32).view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32)
    return np.where(np.isnan(x), F32(np.nan), rounded.view(F32))


INSTRUCTIONS = {
    "mov.b32": lambda a: a,
    "mov.f32": lambda a: a,
    "abs.f32": np.abs,
    "neg.f32": np.negative,
    "add.f32": np.add,
    "sub.f32": np.subtract,
    "mul.f32": np.multiply,
    "fma.rn.f32": M.fma,
    "ex2.approx.ftz.f32": M.exp2,
    "lg2.approx.ftz.f32": M.log2,
    "rcp.approx.ftz.f32": M.rcp,
    "rsqrt.approx.ftz.f32": M.rsqrt,
    "sqrt.approx.ftz.f32": M.sqrt,
    "tanh.approx.f32": M.tanh,
    "max.NaN.f32": np.maximum,
    "min.NaN.f32": np.minimum,
    "copysign.f32": lambda sign, x: np.copysign(x, sign),
    "selp.f32": lambda a, b, p: np.where(p, a, b),
    "selp.b32": lambda a, b, p: np.where(p, a, b),
    "and.pred": np.logical_and,
    "or.pred": np.logical_or,
    "xor.pred": np.logical_xor,
    "not.pred": np.logical_not,
    "cvt.rn.f16.f32": lambda a: a.astype(F16),
    "cvt.f32.f16": lambda a: a.astype(F32),
    "cvt.rn.bf16x2.f32": lambda high, low: _bf16(high),  # low is 0: the pair is fp32
}


def run(ptx, inputs):
    """The outputs of an elementwise kernel, in the order in which it stores them.

    `inputs` are what it loads, in that order: fp32 arrays. Only instructions on values are run.
    """
    (kernel,) = read(ptx)
    shape, inputs, outputs, registers = np.shape(inputs[0]), iter(inputs), [], {}

    def value(text):
        if text.startswith("0f"):
            return np.uint32(int(text[2:], 16)).view(F32)
        return registers[text] if text.startswith("%") else np.uint32(text).view(F32)

    for each in kernel.body:
        if isinstance(each, Label):
            continue
        opcode, operands = each.opcode, each.operands
        if opcode.startswith("ld.global"):
            registers[operands[0]] = next(inputs)
        elif opcode.startswith("st.global"):
            outputs.append(np.broadcast_to(value(operands[1]), shape))
        elif comparison := re.fullmatch(r"setp[.](\w+)[.]f32", opcode):
            registers[operands[0]] = _compared(comparison[1], *map(value, operands[1:]))
        elif opcode in INSTRUCTIONS and all(
            text in registers or not text.startswith("%") for text in operands[1:]
        ):
            registers[operands[0]] = INSTRUCTIONS[opcode](*map(value, operands[1:]))
    return outputs


def _compared(name, a, b):
    """PTX's comparisons of floats; those that end in u are true if one is nan, and ne is not."""
    nan = np.isnan(a) | np.isnan(b)
    if name == "nan":
        return nan
    if name == "num":
        return ~nan
    result = COMPARISONS[name](a, b)
    return result | nan if name.endswith("u") else result & ~nan
