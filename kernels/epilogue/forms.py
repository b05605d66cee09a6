"""How a kernel computes an operation: few instructions, no branch, no table.

At K = 256 the epilogue has about as many issue slots as the mainloop, some 16 for each value. One
instruction of the SFU (MUFU: ex2, lg2, rcp, rsqrt, tanh) takes eight of them. So both counts
decide, and a form uses a polynomial where that takes fewer.

A form is a function of an `Arithmetic`: on registers in `device`, on fp32 arrays of numpy in the
tests, which hold the errors below. Relative errors are of the exact result, over all finite values.

    operation     instructions  MUFU  largest error
    div                     2     1   2 ulp; the divisor from 2^-126 to 2^126
    exp                     2     1   2 ulp, and 0.65 |x| ulp
    expm1                  11     1   as exp, and 8 ulp
    log                     2     1   4e-7 absolute from 0.5 to 2, else 3 ulp
    sqrt                    1     1   2 ulp
    rsqrt                   1     1   2 ulp
    sigmoid                 4     2   as exp, and 2 ulp
    silu                    5     2   as exp, and 3 ulp
    gelu                   11     1   6e-6 relative and 1e-10 absolute
    gelu_tanh               6     1   5e-6 relative and 7e-6 absolute
    ndtr                   11     1   6e-6 relative and 1e-10 absolute
    tanh                    1     1   1.2e-5 relative
    erf                    15     1   1e-6 relative
    softplus               11     1   4e-6 relative

The error of tanh is that of tanh.approx on an H100, over 92 million arguments; the PTX ISA allows
2^-11 (9.7.3, "tanh"). cuBLAS's fused gelu has the same errors as gelu_tanh: both are 0 below
x = -4.9, where gelu is -5e-7. silu does not use tanh: its small results would lose their
relative accuracy, and SwiGLU at 8448×9216×256 was no faster.

Infinities and nan give what torch gives, but gelu(-inf) is 0, its limit, where torch has nan.
Results of the SFU below 2^-126 are 0 (ftz).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias

from cutedsl_gemm.kernels.epilogue.expression import Epilogue, Instruction, needed

F: TypeAlias = Any  # a value in fp32; +, - and * of values and numbers round to fp32
P: TypeAlias = Any  # a predicate

LOG2_E = math.log2(math.e)
LN_2 = math.log(2)


class Arithmetic(Protocol):
    """What a form is made of: an instruction each."""

    def constant(self, value: float) -> F: ...
    def cast(self, x: F, dtype: str) -> F: ...
    def fma(self, a: F, b: F | float, c: F | float) -> F: ...
    def exp2(self, x: F) -> F: ...
    def log2(self, x: F) -> F: ...
    def rcp(self, x: F) -> F: ...
    def rsqrt(self, x: F) -> F: ...
    def sqrt(self, x: F) -> F: ...
    def abs(self, x: F) -> F: ...
    def tanh(self, x: F) -> F: ...
    def copysign(self, x: F, sign: F) -> F: ...
    def maximum(self, x: F, y: F | float) -> F: ...
    def minimum(self, x: F, y: F | float) -> F: ...
    def select(self, condition: P, x: F, y: F | float) -> F: ...


def polynomial(m: Arithmetic, x: F, coefficients: Sequence[float]) -> F:
    """The sum of coefficients[i] * x^i, by Horner's rule: an fma for each but the last."""
    *rest, value = coefficients
    value = m.fma(x, value, rest.pop())
    for each in reversed(rest):
        value = m.fma(value, x, each)
    return value


def exp(m: Arithmetic, x: F) -> F:
    return m.exp2(x * LOG2_E)


# exp(x) - 1 = x p(x), for |x| up to 0.4.
EXPM1 = (
    1.0,
    0.4999999701976776,
    0.16666382551193237,
    0.041667498648166656,
    0.008380929939448833,
    0.0013888860121369362,
)
SMALL = 0.4


def expm1(m: Arithmetic, x: F) -> F:
    """exp(x) - 1, whose difference is not exact near 0: a polynomial there."""
    near = x * polynomial(m, x, EXPM1)
    return m.select(m.abs(x) < SMALL, near, exp(m, x) - 1.0)


def log(m: Arithmetic, x: F) -> F:
    return m.log2(x) * LN_2


def div(m: Arithmetic, x: F, y: F) -> F:
    return x * m.rcp(y)


def sigmoid(m: Arithmetic, x: F) -> F:
    """1 / (1 + exp(-x))"""
    return m.rcp(m.exp2(x * -LOG2_E) + 1.0)


def silu(m: Arithmetic, x: F) -> F:
    return x * sigmoid(m, x)


GELU_SCALE = (math.sqrt(2 / math.pi) * 0.044715) ** (1 / 3)


def gelu_tanh(m: Arithmetic, s: F) -> F:
    """x (1 + tanh(u)) / 2 for u = √(2/π) (x + 0.044715 x³), where s = GELU_SCALE x.

    Then u = s³ + √(2/π) x, which reads fewer registers than a polynomial in x. Registers matter,
    since wgmma reads and writes its sums meanwhile: bias and gelu at 8448×9216×256 take 71 µs, and
    72.4 with a polynomial in x / 2.
    """
    u = s * m.fma(s, s, math.sqrt(2 / math.pi) / GELU_SCALE)
    half = s * (0.5 / GELU_SCALE)
    return m.fma(half, m.tanh(u), half)


# log2 of the standard normal tail: Q(a) = (1 - erf(a / √2)) / 2 = 2^(-1 + a p(a)) for a from 0 to
# 5.5. The polynomial falls beyond, so that 2^ gives 0. Fitted for the relative error of Q.
LOG2_TAIL = (
    -1.0,
    -1.1512099504470825,
    -0.45856189727783203,
    -0.05386105552315712,
    0.008457278832793236,
    -0.000916870660148561,
    5.974443774903193e-05,
    -1.7351364931528224e-06,
)
FAR = 16.0  # Q(16) < 2^-126; infinity times 0 would be nan


def gelu(m: Arithmetic, x: F) -> F:
    """x for x > 0, less |x| Q(|x|): relative accuracy on both sides, without a cancellation."""
    a = m.minimum(m.abs(x), FAR)
    return m.fma(-a, m.exp2(polynomial(m, a, LOG2_TAIL)), m.maximum(x, 0.0))


def ndtr(m: Arithmetic, x: F) -> F:
    """Q(-x) for x < 0, else 1 - Q(x)."""
    tail = m.exp2(polynomial(m, m.abs(x), LOG2_TAIL))
    return m.select(x > 0.0, 1.0 - tail, tail)


# log2 of 1 - erf(a) = a p(a), for a from 0.4 on; and erf(a) = a p(a²), for a up to 0.4.
LOG2_ERFC = (
    -1.6278074979782104,
    -0.9188653230667114,
    -0.1481356918811798,
    0.029267719015479088,
    -0.002875939942896366,
)
ERF = 1.1283791065216064, -0.3761213421821594, 0.11267901211977005, -0.025255654007196426


def erf(m: Arithmetic, x: F) -> F:
    a = m.abs(x)
    large = 1.0 - m.exp2(a * polynomial(m, a, LOG2_ERFC))
    return m.select(a < SMALL, x * polynomial(m, x * x, ERF), m.copysign(large, x))


# log(1 + e) = e p(e), for e from 0 to 1.
LOG1P = (
    0.9999998211860657,
    -0.4999740421772003,
    0.33275479078292847,
    -0.24495458602905273,
    0.17745229601860046,
    -0.10768154263496399,
    0.044089507311582565,
    -0.008539172820746899,
)


def softplus(m: Arithmetic, x: F) -> F:
    """max(x, 0) + log(1 + exp(-|x|))"""
    e = m.exp2(m.abs(x) * -LOG2_E)
    return m.fma(e, polynomial(m, e, LOG1P), m.maximum(x, 0.0))


FORMS: Mapping[str, Callable[..., F]] = MappingProxyType(
    {
        "add": lambda m, x, y: x + y,
        "sub": lambda m, x, y: x - y,
        "mul": lambda m, x, y: x * y,
        "div": div,
        "detach": lambda m, x: x,
        "neg": lambda m, x: -x,
        "abs": lambda m, x: m.abs(x),
        "maximum": lambda m, x, y: m.maximum(x, y),
        "minimum": lambda m, x, y: m.minimum(x, y),
        "exp": exp,
        "expm1": expm1,
        "log": log,
        "sqrt": lambda m, x: m.sqrt(x),
        "rsqrt": lambda m, x: m.rsqrt(x),
        "tanh": lambda m, x: m.tanh(x),
        "sigmoid": sigmoid,
        "erf": erf,
        "ndtr": ndtr,
        "relu": lambda m, x: m.maximum(x, 0.0),
        "silu": silu,
        "gelu": gelu,
        "gelu_tanh": lambda m, x: gelu_tanh(m, x * GELU_SCALE),
        "softplus": softplus,
        "lt": lambda m, x, y: x < y,
        "le": lambda m, x, y: x <= y,
        "gt": lambda m, x, y: x > y,
        "ge": lambda m, x, y: x >= y,
        "eq": lambda m, x, y: x == y,
        "ne": lambda m, x, y: x != y,
        "and": lambda m, x, y: x & y,
        "or": lambda m, x, y: x | y,
        "xor": lambda m, x, y: x ^ y,
        "not": lambda m, x: ~x,
        "where": lambda m, condition, x, y: m.select(condition, x, y),
    }
)

# Two parts of a reduction. A nan of either is a nan of both, as in torch.
COMBINED: Mapping[str, Callable[..., F]] = MappingProxyType(
    {"sum": FORMS["add"], "amax": FORMS["maximum"], "amin": FORMS["minimum"]}
)


def compute(
    epilogue: Epilogue, m: Arithmetic, accumulators: Sequence[F], operands: Sequence[F]
) -> tuple[F, ...]:
    """The values of the results, before they are reduced and before they are rounded."""
    program = epilogue.program
    values: dict[int, F] = {}
    leaves = {"acc": accumulators, "operand": operands}
    read = partial(_read, epilogue)
    for number in needed(program, epilogue.results, read):
        instruction = program[number]
        name, value = instruction.operation, instruction.value
        arguments = [values[each] for each in read(instruction)]
        if name in leaves:
            made = leaves[name][int(value or 0)]
        elif name == "constant":
            made = m.constant(float(value or 0))
        elif name == "cast":
            made = m.cast(arguments[0], str(value))
        elif name == "div" and (factor := _reciprocal(program[instruction.arguments[1]])):
            made = arguments[0] * m.constant(factor)
        elif name == "gelu_tanh" and len(arguments) == 2:
            x, vector = arguments
            made = gelu_tanh(m, m.fma(x, GELU_SCALE, vector * GELU_SCALE))
        else:
            made = FORMS[name](m, *arguments)
        values[number] = made
    return tuple(values[each.value] for each in epilogue.results)


def _read(epilogue: Epilogue, instruction: Instruction) -> tuple[int, ...]:
    """The values from which an instruction is computed: its arguments.

    For gelu_tanh(x + vector), they are x and the vector: scale (x + vector) is then one fma, since
    a thread computes scale · vector once for many places.
    """
    if instruction.operation != "gelu_tanh":
        return instruction.arguments
    argument = epilogue.program[instruction.arguments[0]]
    if argument.operation == "add":
        x, y = argument.arguments
        if _is_vector(epilogue, y):
            return x, y
        if _is_vector(epilogue, x):
            return y, x
    return instruction.arguments


def _is_vector(epilogue: Epilogue, number: int) -> bool:
    """Whether a value is an operand, and no matrix."""
    name, place = epilogue.program[number].operation, epilogue.program[number].value
    return name == "operand" and not epilogue.operands[int(place or 0)].is_matrix


def _reciprocal(divisor: Instruction) -> float | None:
    """That of a constant, if both are normal numbers of fp32."""
    number = float(divisor.value or 0) if divisor.operation == "constant" else 0.0
    return 1 / number if 2.0**-126 <= abs(number) <= 2.0**126 else None
