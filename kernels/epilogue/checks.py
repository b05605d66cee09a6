"""Whether a program is valid: only an Epilogue that `trace` did not make can fail."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cutedsl_gemm.kernels.epilogue.functions import FLOATS
from cutedsl_gemm.kernels.epilogue.operations import IDENTITIES, OPERATIONS

if TYPE_CHECKING:
    from cutedsl_gemm.kernels.epilogue.expression import Epilogue, Instruction, Result

MODES = (), ("M",), ("N",), ("M", "N")


def problems(epilogue: Epilogue) -> Iterator[str]:
    """What is wrong, a message each; the first may be why there are others."""
    if epilogue.accumulators not in (1, 2):
        yield f"accumulators is {epilogue.accumulators}; it must be 1, or 2 if B has two parts"
    names = [operand.name for operand in epilogue.operands]
    if len({*names}) < len(names):
        yield f"operands are named {', '.join(names)}; each must have a name of its own"
    for operand in epilogue.operands:
        if operand.modes not in MODES:
            yield f"operand {operand.name} has modes {operand.modes}; they must be one of {MODES}"
        if operand.by_value and operand.modes:
            yield f"operand {operand.name} is given by value; it must have no modes"
        if type(operand.batched) is not bool or (operand.batched and operand.by_value):
            given = f"operand {operand.name} has batched {operand.batched!r}"
            yield f"{given}; it must be a bool, and False if the operand is given by value"
        if operand.dtype not in FLOATS:
            yield f"operand {operand.name} is {operand.dtype}; it must be {' or '.join(FLOATS)}"
        if type(operand.alignment) is not int or operand.alignment < 1:
            given = f"operand {operand.name} has alignment {operand.alignment!r}"
            yield f"{given}; it must be an integer of at least 1"
    for number, instruction in enumerate(epilogue.program):
        for problem in _instruction(epilogue, number, instruction):
            yield f"instruction {number}, {instruction.operation}: {problem}"
    if not epilogue.results:
        yield "there is no result; there must be one"
    for number, result in enumerate(epilogue.results):
        for problem in _result(epilogue, result):
            yield f"result {number}: {problem}"


def _instruction(epilogue: Epilogue, number: int, instruction: Instruction) -> Iterator[str]:
    name, arguments, value = instruction.operation, instruction.arguments, instruction.value
    if name not in OPERATIONS:
        yield f"there is no such operation; there are {', '.join(OPERATIONS)}"
        return
    operation = OPERATIONS[name]
    if len(arguments) != operation.arguments:
        yield f"it has {len(arguments)} arguments; it must have {operation.arguments}"
    elif not all(isinstance(each, int) and 0 <= each < number for each in arguments):
        yield f"its arguments are {arguments}; they must be numbers of earlier instructions"
    else:
        for place, each in enumerate(arguments):
            given = OPERATIONS.get(epilogue.program[each].operation)
            if given and given.is_predicate != (place in operation.predicates):
                kind = "a predicate" if place in operation.predicates else "a number"
                yield f"argument {place} is instruction {each}; it must be {kind}"
    yield from _value(epilogue, name, value)


def _value(epilogue: Epilogue, name: str, value: float | int | str | None) -> Iterator[str]:
    counts = {"acc": epilogue.accumulators, "operand": len(epilogue.operands)}
    if name in counts:
        if not (isinstance(value, int) and 0 <= value < counts[name]):
            yield f"its value is {value!r}; it must be one of {counts[name]}, from 0"
    elif name == "constant":
        if not isinstance(value, int | float) or value != value:
            yield f"its value is {value!r}; it must be a number"
    elif name == "cast":
        if value not in FLOATS:
            yield f"its value is {value!r}; it must be one of {', '.join(FLOATS)}"
    elif value is not None:
        yield f"its value is {value!r}; it must be None"


def _result(epilogue: Epilogue, result: Result) -> Iterator[str]:
    count = len(epilogue.program)
    if not (isinstance(result.value, int) and 0 <= result.value < count):
        yield f"its value is {result.value!r}; it must be the number of one of {count} instructions"
    else:
        operation = OPERATIONS.get(epilogue.program[result.value].operation)
        if operation and operation.is_predicate:
            yield f"its value is instruction {result.value}, a predicate; it must be a number"
    if result.reduction is None:
        if result.dtype not in (None, *FLOATS):
            yield f"its dtype is {result.dtype!r}; it must be None or one of {', '.join(FLOATS)}"
        if result.over is not None:
            yield f"it is over {result.over}; without a reduction that must be None"
    else:
        if result.reduction not in IDENTITIES:
            kinds = ", ".join(IDENTITIES)
            yield f"its reduction is {result.reduction!r}; it must be one of {kinds}"
        if result.over not in ("M", "N"):
            yield f"it is reduced over {result.over!r}; it must be over M or N"
        if result.dtype is not None:
            yield f"its dtype is {result.dtype!r}; a reduction is fp32, and has None"
