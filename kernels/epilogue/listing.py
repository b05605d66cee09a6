"""An epilogue as text: expressions as Python writes them, and each operand's layout.

A value that is used twice has a name of its own, and a line above those that use it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cutedsl_gemm.kernels.epilogue.operations import (
    ATOM,
    COMPARISON,
    LEAVES,
    OPERATIONS,
)

if TYPE_CHECKING:
    from cutedsl_gemm.kernels.epilogue.expression import Epilogue, Instruction, Result


def listing(epilogue: Epilogue) -> tuple[tuple[str, str], ...]:
    """(name, text) of what is shared, of each result, and of each operand."""
    return (*_values(epilogue), *_operands(epilogue))


def _values(epilogue: Epilogue) -> Iterator[tuple[str, str]]:
    """What is shared, in the order of the program; then the results."""
    uses = Counter(each for one in epilogue.program for each in one.arguments)
    uses.update(each.value for each in epilogue.results)
    texts: list[tuple[str, int]] = []  # of each instruction, and how tightly it binds
    shared = 0
    for number, instruction in enumerate(epilogue.program):
        text, binding = _text(epilogue, instruction, [texts[i] for i in instruction.arguments])
        if uses[number] > 1 and instruction.operation not in LEAVES:
            yield f"t{shared}", text
            text, binding = f"t{shared}", ATOM
            shared += 1
        texts.append((text, binding))
    for label, result in zip(epilogue.result_labels, epilogue.results, strict=True):
        yield label, _stored(result, texts[result.value][0])


def _text(
    epilogue: Epilogue, instruction: Instruction, arguments: list[tuple[str, int]]
) -> tuple[str, int]:
    """The text of an instruction of arguments of these texts, and how tightly it binds."""
    name, value = instruction.operation, instruction.value
    if name == "acc":
        return ("acc" if epilogue.accumulators == 1 else f"acc{value}"), ATOM
    if name == "operand":
        return epilogue.operands[int(value or 0)].name, ATOM
    if name == "constant":
        number = float(value or 0)
        return f"{number:g}" if float(f"{number:g}") == number else repr(number), ATOM
    operation = OPERATIONS[name]
    if name == "cast":
        (argument,) = arguments
        return f"{_inside(argument, ATOM)}.to({value})", ATOM
    binding = operation.binding
    if binding == ATOM:
        return operation.text.format(*(text for text, _ in arguments)), ATOM
    # a - (b - c) is not (a - b) - c; a comparison of comparisons means another thing in Python
    first = binding + (binding == COMPARISON)
    texts = [_inside(each, binding + 1 if place else first) for place, each in enumerate(arguments)]
    return operation.text.format(*texts), binding


def _inside(argument: tuple[str, int], binding: int) -> str:
    """The text of an argument where it must bind at least so tightly."""
    text, own = argument
    return text if own >= binding else f"({text})"


def _stored(result: Result, text: str) -> str:
    if result.reduction is not None:
        return f"{result.reduction}({text}) over {result.over}, float32"
    return text if result.dtype is None else f"{text}, {result.dtype}"


def _operands(epilogue: Epilogue) -> Iterator[tuple[str, str]]:
    for operand in epilogue.operands:
        yield operand.name, f"{operand.layout:<12}  {operand.dtype}, {operand.kind}"
