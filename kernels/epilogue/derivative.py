"""The derivative of an epilogue, which is an epilogue too: what a backward pass computes.

    y = relu(acc) * r        d(acc) = where(acc <= 0, 0, r * grad)        d(r) = relu(acc) * grad

Reverse mode: the program is replayed, and walked from its results to its leaves. Each rule gives
the derivatives of an operation's arguments; it is written with the operators of a `Value`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from cutedsl_gemm.kernels.epilogue.expression import (
    Epilogue,
    EpilogueOperand,
    Instruction,
    Mode,
    Result,
)
from cutedsl_gemm.kernels.epilogue.functions import apply
from cutedsl_gemm.kernels.epilogue.trace import live
from cutedsl_gemm.kernels.epilogue.value import Recording, Value

Rule = Callable[..., tuple[Any, ...]]  # (gradient, value of the operation, *arguments)


@lru_cache(1024)
def derivative(
    epilogue: Epilogue,
    wanted: tuple[int, ...] = (),
    given: tuple[int, ...] = (0,),
    stored: tuple[int, ...] = (),
) -> Epilogue:
    """The derivatives of the accumulators, and of the `wanted` operands, given those of results.

    `wanted` and `given` are places among the operands and the results; `stored` are instructions
    whose values are known. The derivative takes the operands of the epilogue, then "value i" for
    each instruction that is stored, then "grad i" for each result that is given: a matrix, or a
    vector where the result is a sum. For other reductions, "grad i" is a matrix.
    The results of the derivative are elementwise: the caller sums that of a row vector over M.

    >>> from cutedsl_gemm.kernels.epilogue.trace import trace
    >>> scaled = trace(lambda acc, r: (acc * r).relu(), (EpilogueOperand("r", ("N",)),))
    >>> for _, text in derivative(scaled, wanted=(0,)).listing()[:4]:
    ...     print(text)
    where(relu(acc * r) <= 0, 0, grad 0)
    t0 * r, float32
    t0 * acc, float32
    (M,N):(0,1)   float32, row vector
    """
    grads = tuple(_grad(i, epilogue.results[i]) for i in given)
    recording, values = _replayed(epilogue, stored, grads)
    gradients: dict[int, Any] = {}  # of the results by each instruction

    def add(number: int, gradient: Any) -> None:
        if gradient is not None:
            gradients[number] = gradients[number] + gradient if number in gradients else gradient

    for place, i in enumerate(given, len(epilogue.operands) + len(stored)):
        add(epilogue.results[i].value, _leaf(recording, Instruction("operand", value=place)))
    for number in reversed(range(len(epilogue.program))):
        instruction = epilogue.program[number]
        if number in gradients and instruction.operation in RULES:
            arguments = [values[each] for each in instruction.arguments]
            found = RULES[instruction.operation](gradients[number], values[number], *arguments)
            for argument, part in zip(instruction.arguments, found, strict=True):
                add(argument, part)
    leaves = [
        *(Instruction("acc", value=i) for i in range(epilogue.accumulators)),
        *(Instruction("operand", value=i) for i in wanted),
    ]
    results = []
    for leaf in leaves:
        number = epilogue.program.index(leaf) if leaf in epilogue.program else -1
        gradient = gradients[number]._number if number in gradients else recording.constant(0.0)
        results.append(Result(gradient, "float32"))
    return live(recording.program, tuple(results), recording.operands, epilogue.accumulators)


@lru_cache(1024)
def recomputed(epilogue: Epilogue, places: tuple[int, ...], stored: tuple[int, ...]) -> Epilogue:
    """The values of some results, before they are reduced, of the operands and stored values."""
    recording, values = _replayed(epilogue, stored)
    results = tuple(Result(values[epilogue.results[i].value]._number, "float32") for i in places)
    return live(recording.program, results, recording.operands, epilogue.accumulators)


class Stored(NamedTuple):
    """An epilogue that stores what its derivative needs."""

    epilogue: Epilogue
    numbers: tuple[int, ...]  # of the instructions whose values are stored
    places: tuple[int, ...]  # of these values among the results


@lru_cache(1024)
def with_stored(epilogue: Epilogue, wanted: tuple[int, ...] = ()) -> Stored:
    """The epilogue, with further results if the derivative cannot do without the accumulators.

    Nothing is added for acc + bias, whose derivative does not depend on acc, nor for
    tanh(acc + bias), where it follows from the result. For gelu(acc + bias), acc + bias is stored,
    in the dtype of A and B: its sign is then that of the sum, whatever is lost of acc.

    >>> from cutedsl_gemm.kernels.epilogue.trace import trace
    >>> bias = (EpilogueOperand("bias", ("N",)),)
    >>> len(with_stored(trace(lambda acc, bias: (acc + bias).tanh(), bias)).epilogue.results)
    1
    >>> for _, text in with_stored(trace(lambda acc, bias: (acc + bias).log(), bias))[0].listing():
    ...     print(text)
    acc + bias
    log(t0)
    t0
    (M,N):(0,1)   float32, row vector
    """
    numbers: tuple[int, ...] = ()
    for i in range(epilogue.accumulators):
        acc = Instruction("acc", value=i)
        if acc not in _needed(epilogue, wanted, numbers):
            continue
        for number in _candidates(epilogue, epilogue.program.index(acc)):
            if acc not in _needed(epilogue, wanted, (*numbers, number)):
                numbers = (*numbers, number)
                break
    whole = {each.value: each for each in reversed(epilogue.results) if _exact(each)}
    kept = [whole.get(number, Result(number)) for number in numbers]
    further = dict.fromkeys(each for each in kept if each not in epilogue.results)
    results = (*epilogue.results, *further)
    return Stored(replace(epilogue, results=results), numbers, tuple(map(results.index, kept)))


@lru_cache(1024)
def in_product(kept: Stored, wanted: tuple[int, ...] = ()) -> Epilogue:
    """The derivative of the first result, in the epilogue of the product that makes its gradient.

    The accumulator is that gradient. The results are the derivatives of the accumulators, in the
    dtype of A and B, and of the `wanted` operands, row vectors: sums over M. Its operands are
    those of the derivative that it reads.

    >>> from cutedsl_gemm.kernels.epilogue.trace import trace
    >>> layer = trace(lambda acc, bias: (acc + bias).relu(), (EpilogueOperand("bias", ("N",)),))
    >>> for _, text in in_product(with_stored(layer, wanted=(0,)), wanted=(0,)).listing():
    ...     print(text)
    where(value 3 <= 0, 0, acc)
    t0
    sum(t0) over M, float32
    (M,N):(ld,1)  float32, matrix
    """
    backward = derivative(kept.epilogue, wanted, (0,), kept.numbers)
    grad = Instruction("operand", value=len(backward.operands) - 1)
    places = sorted(
        int(each.value or 0)
        for each in backward.program
        if each.operation == "operand" and each != grad
    )
    leaves = {Instruction("operand", value=place): i for i, place in enumerate(places)}
    program = tuple(
        Instruction("acc", value=0)
        if each == grad
        else replace(each, value=leaves[each])
        if each in leaves
        else each
        for each in backward.program
    )
    count = kept.epilogue.accumulators
    results = (
        *(Result(each.value) for each in backward.results[:count]),
        *(Result(each.value, reduction="sum", over="M") for each in backward.results[count:]),
    )
    return Epilogue(program, tuple(backward.operands[place] for place in places), results)


def _needed(
    epilogue: Epilogue, wanted: tuple[int, ...], stored: tuple[int, ...]
) -> set[Instruction]:
    """What the derivative is computed from, and the values of results that are extrema."""
    places = range(len(epilogue.results))
    extrema = tuple(i for i in places if epilogue.results[i].reduction in ("amax", "amin"))
    backward = derivative(epilogue, wanted, tuple(places), stored)
    return {*backward.program, *recomputed(epilogue, extrema, stored).program}


def _candidates(epilogue: Epilogue, acc: int) -> Iterator[int]:
    """Instructions whose values may be stored in place of an accumulator, the best first.

    They are results, which cost nothing; sums of the accumulator, which are as large as it is; and
    itself.
    """
    yield from sorted({each.value for each in epilogue.results if _exact(each)}, reverse=True)
    sums = {acc}
    for number, each in enumerate(epilogue.program):
        if each.operation in ("add", "sub", "neg") and sums.intersection(each.arguments):
            sums.add(number)
    yield from sorted(sums, reverse=True)


def _exact(result: Result) -> bool:
    """Whether a result is a value at each place of C, not rounded more than that of A and B."""
    return result.reduction is None and result.dtype in (None, "float32")


def _grad(i: int, result: Result) -> EpilogueOperand:
    modes: tuple[Mode, ...] = ("M", "N")
    if result.reduction == "sum":
        modes = ("M",) if result.over == "N" else ("N",)
    return EpilogueOperand(f"grad {i}", modes)


def _leaf(recording: Recording, instruction: Instruction) -> Value:
    return Value(recording, recording.add(instruction))


def _replayed(
    epilogue: Epilogue, stored: tuple[int, ...], further: tuple[EpilogueOperand, ...] = ()
) -> tuple[Recording, list[Value]]:
    """The values of the epilogue's instructions, recorded again; those that are stored are read."""
    kept = tuple(EpilogueOperand(f"value {number}", ("M", "N")) for number in stored)
    recording = Recording((*epilogue.operands, *kept, *further))
    values: list[Value] = []
    for number, each in enumerate(epilogue.program):
        if number in stored:
            place = len(epilogue.operands) + stored.index(number)
            each = Instruction("operand", value=place)
        arguments = tuple(values[argument]._number for argument in each.arguments)
        values.append(_leaf(recording, replace(each, arguments=arguments)))
    return recording, values


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
    return (g * (s + (y - y * s)),)


def _gelu_tanh(g: Any, y: Any, x: Any) -> tuple[Any]:
    """y = x s for s = sigmoid(u), u = √(8/π) (x + 0.044715 x³)."""
    c, cubic = math.sqrt(8 / math.pi), 0.044715
    square = x * x
    s = (x * (square * (c * cubic) + c)).sigmoid()
    return (g * (s + (s - s * s) * x * (square * (3 * c * cubic) + c)),)


RULES: Mapping[str, Rule] = {
    "cast": lambda g, y, x: (g,),
    "detach": lambda g, y, x: (None,),
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
    "relu": lambda g, y, x: (_where(y <= 0, 0.0, g),),  # as torch has it at NaN
    "silu": _silu,
    "gelu": lambda g, y, x: (g * (apply("ndtr", x) + x * _density(x)),),
    "gelu_tanh": _gelu_tanh,
    "softplus": lambda g, y, x: (g * x.sigmoid(),),
    "where": lambda g, y, c, x, z: (None, _where(c, g, 0.0), _where(c, 0.0, g)),
}
