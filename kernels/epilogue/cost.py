"""What an epilogue costs in a kernel: its forms, run on values that count instructions."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from cutedsl_gemm.kernels.epilogue.expression import Epilogue
from cutedsl_gemm.kernels.epilogue.forms import FORMS
from cutedsl_gemm.kernels.epilogue.operations import LEAVES

MUFU_ISSUE = 8  # issue slots of a scheduler in which its function unit takes one instruction


class Cost(NamedTuple):
    """Instructions of one thread for one place of C; `mufu` of them take the function unit.

    Loads of operands, conversions of results and stores are not among them.
    """

    instructions: int
    mufu: int

    @property
    def issue_slots(self) -> int:
        """Issue slots for each place of 32, at the least: a scheduler issues one instruction each.

        >>> Cost(instructions=5, mufu=2).issue_slots
        16
        """
        return max(self.instructions, MUFU_ISSUE * self.mufu)


@lru_cache(1024)
def cost(epilogue: Epilogue) -> Cost:
    """The cost of a program whose accumulators and operands are in registers.

    >>> from torch.nn.functional import gelu
    >>> from cutedsl_gemm.kernels.epilogue.trace import trace
    >>> cost(trace(lambda acc: gelu(acc * 2)))
    Cost(instructions=12, mufu=1)
    """
    counter = Counter()
    for instruction in epilogue.program:
        if instruction.operation == "cast":
            counter.count(1 if instruction.value == "bfloat16" else 2)
        elif instruction.operation not in LEAVES:
            values = [counter.value] * len(instruction.arguments)
            FORMS[instruction.operation](counter, *values)
    return Cost(counter.instructions, counter.mufu)


class Counter:
    """An `Arithmetic` that counts; negation and absolute value are modifiers of other instructions.

    One value stands for all, since no form branches.
    """

    def __init__(self) -> None:
        self.instructions = self.mufu = 0
        self.value = Counted(self)

    def count(self, instructions: int, mufu: int = 0) -> Counted:
        self.instructions += instructions
        self.mufu += mufu
        return self.value

    def abs(self, x: Any) -> Counted:
        return self.value

    def fma(self, a: Any, b: Any, c: Any) -> Counted:
        return self.count(1)

    def copysign(self, x: Any, sign: Any) -> Counted:
        return self.count(1)

    maximum = minimum = copysign

    def select(self, condition: Any, x: Any, y: Any) -> Counted:
        return self.count(1)

    def exp2(self, x: Any) -> Counted:
        return self.count(1, mufu=1)

    log2 = rcp = rsqrt = sqrt = exp2


class Counted:
    """A value, or a predicate, of which every operator is one instruction."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, counter: Counter) -> None:
        self.counter = counter

    def __neg__(self) -> Counted:
        return self

    def _one(self, other: Any = None) -> Counted:
        return self.counter.count(1)

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _one
    __lt__ = __le__ = __gt__ = __ge__ = __and__ = __or__ = __xor__ = __invert__ = _one
    __eq__ = __ne__ = _one  # type: ignore[assignment]
