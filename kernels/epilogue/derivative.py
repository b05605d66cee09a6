"""The derivative of an epilogue, which is an epilogue too: what a backward pass computes.

    y = relu(acc) * r        d(acc) = where(acc > 0, r * grad, 0)        d(r) = relu(acc) * grad

Reverse mode: the program is replayed, and walked from its results to its leaves. Each rule gives
the derivatives of an operation's arguments; it is written with the operators of a `Value`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from cutedsl_gemm.kernels.epilogue.expression import Epilogue, Instruction, Mode, Operand, Result
from cutedsl_gemm.kernels.epilogue.functions import apply
from cutedsl_gemm.kernels.epilogue.trace import live
from cutedsl_gemm.kernels.epilogue.value import Recording, Value

Rule = Callable[..., tuple[Any, ...]]  # (gradient, value of the operation, *arguments)


@lru_cache(1024)
def derivative(
    epilogue: Epilogue, wanted: tuple[int, ...] = (), given: tuple[int, ...] = (0,)
) -> Epilogue:
    """The derivatives of the accumulators, and of the `wanted` operands, given those of results.

    `wanted` and `given` are places among the operands and the results. The derivative takes the
    operands of the epilogue, and behind them "grad i" for each result that is given: a matrix, or
    what is left of C where the result is a sum. A result that is another reduction counts as whole.
    Its own results are elementwise: that of a row vector is still to be added over M.

    >>> from cutedsl_gemm.kernels.epilogue.trace import trace
    >>> scaled = trace(lambda acc, r: (acc * r).relu(), (Operand("r", ("N",)),))
    >>> for _, text in derivative(scaled, wanted=(0,)).listing()[:4]:
    ...     print(text)
    where(acc * r > 0, grad 0, 0)
    t0 * r, float32
    t0 * acc, float32
    (M,N):(0,1)   float32, row vector
    """
    grads = tuple(_grad(i, epilogue.results[i]) for i in given)
    operands = (*epilogue.operands, *grads)
    recording = Recording(operands)
    values = _replayed(epilogue, recording)
    slopes: dict[int, Any] = {}  # of the results by each instruction

    def add(number: int, slope: Any) -> None:
        if slope is not None:
            slopes[number] = slopes[number] + slope if number in slopes else slope

    for place, i in enumerate(given, len(epilogue.operands)):
        add(epilogue.results[i].value, _leaf(recording, Instruction("operand", value=place)))
    for number in reversed(range(len(epilogue.program))):
        instruction = epilogue.program[number]
        if number in slopes and instruction.operation in RULES:
            arguments = [values[each] for each in instruction.arguments]
            found = RULES[instruction.operation](slopes[number], values[number], *arguments)
            for argument, part in zip(instruction.arguments, found, strict=True):
                add(argument, part)
    leaves = [
        *(Instruction("acc", value=i) for i in range(epilogue.accumulators)),
        *(Instruction("operand", value=i) for i in wanted),
    ]
    results = []
    for leaf in leaves:
        number = epilogue.program.index(leaf) if leaf in epilogue.program else -1
        slope = slopes[number]._number if number in slopes else recording.constant(0.0)
        results.append(Result(slope, "float32"))
    return live(recording.program, tuple(results), operands, epilogue.accumulators)


def with_accumulators(
    epilogue: Epilogue, wanted: tuple[int, ...] = ()
) -> tuple[Epilogue, tuple[int, ...]]:
    """The epilogue that also stores the accumulators, and the places of these results.

    They have the dtype of A and B. If the derivative does not depend on the accumulators, as that
    of acc + bias, the epilogue is returned as it is, without places.
    """
    slopes = derivative(epilogue, wanted, tuple(range(len(epilogue.results))))
    extremum = any(each.reduction in ("amax", "amin") for each in epilogue.results)
    if not extremum and all(each.operation != "acc" for each in slopes.program):
        return epilogue, ()
    leaves = (Instruction("acc", value=i) for i in range(epilogue.accumulators))
    kept = [Result(epilogue.program.index(leaf)) for leaf in leaves]
    results = tuple(dict.fromkeys((*epilogue.results, *kept)))
    return replace(epilogue, results=results), tuple(map(results.index, kept))


def _grad(i: int, result: Result) -> Operand:
    modes: tuple[Mode, ...] = ("M", "N")
    if result.reduction == "sum":
        modes = ("M",) if result.over == "N" else ("N",)
    return Operand(f"grad {i}", modes)


def _leaf(recording: Recording, instruction: Instruction) -> Value:
    return Value(recording, recording.add(instruction))


def _replayed(epilogue: Epilogue, recording: Recording) -> list[Value]:
    """The values of the epilogue's instructions, recorded again."""
    values: list[Value] = []
    for each in epilogue.program:
        arguments = tuple(values[number]._number for number in each.arguments)
        values.append(_leaf(recording, replace(each, arguments=arguments)))
    return values


def _where(condition: Any, value: Any, other: Any) -> Any:
    return apply("where", condition, value, other)


def _density(x: Any) -> Any:
    """That of the standard normal distribution."""
    return (x * x * -0.5).exp() * (1 / math.sqrt(2 * math.pi))


def _chosen(g: Any, ahead: Any, tie: Any, other: Any) -> Any:
    """The derivative of the greater, or lesser, of two: half where they are equal, as torch has it.

    All of it if the other is a constant, as in torch.clamp.
    """
    constant = other._recording.program[other._number].operation == "constant"
    return _where(ahead, g, _where(tie, g if constant else g * 0.5, 0.0))


def _silu(g: Any, y: Any, x: Any) -> tuple[Any]:
    s = x.sigmoid()
    return (g * (s + y - y * s),)


def _gelu_tanh(g: Any, y: Any, x: Any) -> tuple[Any]:
    """y = x s for s = sigmoid(u), u = √(8/π) (x + 0.044715 x³)."""
    c, cubic = math.sqrt(8 / math.pi), 0.044715
    square = x * x
    s = (x * (square * (c * cubic) + c)).sigmoid()
    return (g * (s + (s - s * s) * x * (square * (3 * c * cubic) + c)),)


RULES: Mapping[str, Rule] = {
    "cast": lambda g, y, x: (g,),
    "add": lambda g, y, x, z: (g, g),
    "sub": lambda g, y, x, z: (g, -g),
    "mul": lambda g, y, x, z: (g * z, g * x),
    "div": lambda g, y, x, z: (g / z, -g * y / z),
    "neg": lambda g, y, x: (-g,),
    "abs": lambda g, y, x: (_where(x > 0, g, _where(x < 0, -g, 0.0)),),
    "maximum": lambda g, y, x, z: (
        _chosen(g, x > z, x == z, z),
        _chosen(g, z > x, x == z, x),
    ),
    "minimum": lambda g, y, x, z: (
        _chosen(g, x < z, x == z, z),
        _chosen(g, z < x, x == z, x),
    ),
    "exp": lambda g, y, x: (g * y,),
    "expm1": lambda g, y, x: (g * y + g,),
    "log": lambda g, y, x: (g / x,),
    "sqrt": lambda g, y, x: (g / (y + y),),
    "rsqrt": lambda g, y, x: (g * y * y * y * -0.5,),
    "tanh": lambda g, y, x: (g - g * y * y,),
    "sigmoid": lambda g, y, x: (g * (y - y * y),),
    "erf": lambda g, y, x: (g * (-x * x).exp() * (2 / math.sqrt(math.pi)),),
    "ndtr": lambda g, y, x: (g * _density(x),),
    "relu": lambda g, y, x: (_where(x > 0, g, 0.0),),
    "silu": _silu,
    "gelu": lambda g, y, x: (g * (apply("ndtr", x) + x * _density(x)),),
    "gelu_tanh": _gelu_tanh,
    "softplus": lambda g, y, x: (g * x.sigmoid(),),
    "where": lambda g, y, c, x, z: (None, _where(c, g, 0.0), _where(c, 0.0, g)),
}
