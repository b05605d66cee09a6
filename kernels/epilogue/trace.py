"""From a Python function to an Epilogue: the function runs once, on values that record.

    trace(lambda acc, bias, r: F.gelu(acc + bias) + r, (bias, r))

The function must be pure, as that of jax.jit: what it computes depends on its arguments, on
constants, and on nothing that changes. `traced` remembers what it made of a function.
"""

from __future__ import annotations

import dis
import inspect
import types
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache, partial
from typing import Any

from cutedsl_gemm.kernels.epilogue.expression import (
    Epilogue,
    EpilogueError,
    Instruction,
    Operand,
    Result,
)
from cutedsl_gemm.kernels.epilogue.value import Recording, Value, place, result

REMEMBERED = 4096  # epilogues, of `traced`


def trace(
    function: Callable[..., Any], operands: Sequence[Operand] = (), accumulators: int = 1
) -> Epilogue:
    """The epilogue that a function computes: function(acc, ..., **{name of an operand: value}).

    The function may use Python's operators, `torch.where`, `torch.maximum`, `F.gelu` and the like
    (kernels/epilogue/functions.py has them all), and their spelling as methods. It returns a
    value, or a tuple of them.

    EpilogueError, with the line of the function, if it does anything else, if it does not take an
    operand or does not use it, or if a result is not of the shape of C.

    >>> row = Operand("bias", ("N",), "bfloat16")
    >>> print(trace(lambda acc, bias: (acc + bias).relu(), (row,)))
    C     relu(acc + bias)
    bias  (M,N):(0,1)   bfloat16, row vector
    """
    operands = tuple(operands)
    _check_names(function, operands, accumulators)
    recording = Recording(operands)
    acc = [
        Value(recording, recording.add(Instruction("acc", value=i))) for i in range(accumulators)
    ]
    named = {
        operand.name: Value(
            recording, recording.add(Instruction("operand", value=i)), operand.dtype
        )
        for i, operand in enumerate(operands)
    }
    made = function(*acc, **named)
    outputs = made if isinstance(made, tuple | list) else (made,)
    results = tuple(_result(value, recording, function) for value in outputs)
    if not results:
        raise EpilogueError(f"{_where(function)} returns no result")
    epilogue = live(recording.program, results, operands, accumulators)
    _check_use(epilogue, function)
    return epilogue


def traced(
    function: Callable[..., Any], operands: tuple[Operand, ...] = (), accumulators: int = 1
) -> Epilogue:
    """`trace`, remembered: a function that is made anew at every call, as a lambda is, costs one.

    Two functions are the same if they have the same code, and equal constants: in their closures,
    as defaults, and in the globals that their code names. A function that refers to anything else
    than numbers, texts, dtypes, modules, and functions of the same kind is traced at every call.
    """
    key = function_key(function)
    if key is None:
        return trace(function, operands, accumulators)
    return _remembered(_Function(key, function), operands, accumulators)


class _Function:
    """A function that equals another of the same key."""

    __slots__ = ("function", "hash", "key")

    def __init__(self, key: Hashable, function: Callable[..., Any]) -> None:
        self.key, self.function, self.hash = key, function, hash(key)

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Function) and self.key == other.key


@lru_cache(REMEMBERED)
def _remembered(function: _Function, operands: tuple[Operand, ...], accumulators: int) -> Epilogue:
    return trace(function.function, operands, accumulators)


_CONSTANTS = int, str, bytes, type(None), types.ModuleType, types.BuiltinFunctionType


def function_key(function: object, depth: int = 4) -> Hashable | None:
    """What a function's epilogue depends on; None if that may change, or is not known.

    `depth` is how far functions that the function calls are followed.
    """
    if isinstance(function, partial):
        parts = (function.func, *function.args, *function.keywords.values())
        keys = _keys(parts, depth)
        return None if keys is None else (keys, len(function.args), tuple(function.keywords))
    if not isinstance(function, types.FunctionType):
        return function if isinstance(function, types.BuiltinFunctionType) else None
    code = function.__code__
    names = _globals(code)
    if not (names or function.__closure__ or function.__defaults__ or function.__kwdefaults__):
        return code
    space = function.__globals__
    try:
        closure = [cell.cell_contents for cell in function.__closure__ or ()]
    except ValueError:  # a cell that is not filled yet
        return None
    defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    parts = (*closure, *defaults, *(space[name] for name in names if name in space))
    keys = _keys(parts, depth)
    return None if keys is None else (code, keys)


def _keys(parts: Iterable[object], depth: int) -> tuple[Hashable, ...] | None:
    """What the epilogue depends on of each thing that a function refers to."""
    keys: list[Hashable] = []
    for part in parts:
        if isinstance(part, _CONSTANTS):
            key: Hashable = part
        elif isinstance(part, float):
            key = part.hex()  # 0.0 == -0.0, and nan != nan
        elif _is_torch(part):
            key = part
        else:
            key = function_key(part, depth - 1) if depth else None
            if key is None:
                return None
        keys.append(key)
    return tuple(keys)


def _is_torch(part: object) -> bool:
    """Whether it is one of torch's dtypes, or a function that torch has in Python."""
    if isinstance(part, types.FunctionType):
        return part.__module__.startswith("torch.")
    return type(part).__module__ == "torch" and type(part).__name__ == "dtype"


@lru_cache(REMEMBERED)
def _globals(code: types.CodeType) -> tuple[str, ...]:
    """The globals that a code names, and those of the functions inside of it."""
    names = {each.argval for each in dis.get_instructions(code) if each.opname == "LOAD_GLOBAL"}
    inner = (each for each in code.co_consts if isinstance(each, types.CodeType))
    return tuple(sorted(names.union(*(_globals(each) for each in inner))))


def _check_names(
    function: Callable[..., Any], operands: tuple[Operand, ...], accumulators: int
) -> None:
    """EpilogueError unless the function takes the accumulators and the operands by name."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a builtin
        return
    names = [operand.name for operand in operands]
    try:
        signature.bind(*range(accumulators), **dict.fromkeys(names))
    except TypeError as reason:
        given = ", ".join(names) or "none"
        parts = "one accumulator" if accumulators == 1 else f"{accumulators} accumulators"
        raise EpilogueError(
            f"{_where(function)} takes {signature}; it is called with {parts}, and the operands "
            f"by name ({given}): {reason}"
        ) from None


def _result(value: object, recording: Recording, function: Callable[..., Any]) -> Result:
    if not isinstance(value, Value) or value._recording is not recording:
        raise EpilogueError(
            f"{_where(function)} returns {value!r:.60}, where it must return what it computes of "
            "the accumulator, or a tuple of such values"
        )
    one = result(value)
    if recording.modes[one.value] != {"M", "N"}:
        modes = ", ".join(sorted(recording.modes[one.value]))
        raise EpilogueError(
            f"{_where(function)} returns a result of shape ({modes}), where C is (M, N)"
        )
    return one


def live(
    program: list[Instruction],
    results: tuple[Result, ...],
    operands: tuple[Operand, ...],
    accumulators: int,
) -> Epilogue:
    """The epilogue, of the instructions that a result needs."""
    needed = {each.value for each in results}
    for number in reversed(range(len(program))):
        if number in needed:
            needed.update(program[number].arguments)
    places = {old: new for new, old in enumerate(sorted(needed))}
    kept = tuple(
        Instruction(each.operation, tuple(places[i] for i in each.arguments), each.value)
        for each in (program[number] for number in places)
    )
    placed = tuple(
        Result(places[each.value], each.dtype, each.reduction, each.over) for each in results
    )
    return Epilogue(kept, operands, placed, accumulators)


def _check_use(epilogue: Epilogue, function: Callable[..., Any]) -> None:
    """EpilogueError if an operand, or an accumulator, is part of no result."""
    used = {(each.operation, each.value) for each in epilogue.program}
    for i, operand in enumerate(epilogue.operands):
        if ("operand", i) not in used:
            raise EpilogueError(
                f"{_where(function)}: no result depends on {operand.name}; leave it out"
            )
    for i in range(epilogue.accumulators):
        if ("acc", i) not in used:
            which = "acc" if epilogue.accumulators == 1 else f"accumulator {i}"
            raise EpilogueError(f"{_where(function)}: no result depends on {which}")


def _where(function: Callable[..., Any]) -> str:
    """The function, and where it is: "file:line: epilogue"."""
    code = getattr(function, "__code__", None)
    name = getattr(function, "__name__", type(function).__name__)
    if code is None:
        return f"{place()}the epilogue {name}"
    name = "" if name == "<lambda>" else f" {name}"
    return f"{code.co_filename}:{code.co_firstlineno}: the epilogue{name}"
