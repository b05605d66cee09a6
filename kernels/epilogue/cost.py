"""What an epilogue costs in a kernel: its forms, run on values that count instructions."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from cutedsl_gemm.kernels.epilogue.expression import Epilogue
from cutedsl_gemm.kernels.epilogue.forms import compute


class Cost(NamedTuple):
    """Instructions of one thread for one element of C; `mufu` of them run on the SFU.

    Not counted: loads of operands, conversions of results, stores, and what a thread computes once
    for many elements, from vectors and numbers alone.
    """

    instructions: int
    mufu: int

    @property
    def issue_slots(self) -> int:
        """The instructions, where one of the SFU counts as two.

        That is what they took in a run of twelve epilogues (docs/performance/notebook.md,
        "Epilogues"). The unit has four results per clock, so that a warp's instruction takes eight;
        but other instructions run meanwhile.

        >>> Cost(instructions=5, mufu=2).issue_slots
        7
        """
        return self.instructions + self.mufu

    def __str__(self) -> str:
        mufu = f", {self.mufu} of them MUFU" if self.mufu else ""
        return f"{self.instructions} instructions an output{mufu}"


@lru_cache(1024)
def cost(epilogue: Epilogue) -> Cost:
    """The cost of a program whose accumulators and operands are in registers.

    >>> from torch.nn.functional import gelu
    >>> from cutedsl_gemm.kernels.epilogue.trace import trace
    >>> cost(trace(lambda acc: gelu(acc * 2)))
    Cost(instructions=12, mufu=1)
    """
    counter = Counter()
    accumulators = [counter.leaf("acc", i) for i in range(epilogue.accumulators)]
    operands = [counter.leaf(each.name, shared=not each.is_matrix) for each in epilogue.operands]
    compute(epilogue, counter, accumulators, operands)
    return Cost(counter.instructions, counter.mufu)


def _operator(name: str) -> Callable[..., Counted]:
    return lambda value, *others: value.counter.count(name, value, *others)


class Counted:
    """A value, or a predicate, of which an operator is one instruction.

    `shared` by many places of C: a vector, a number, or what is computed of such alone.
    """

    def __init__(self, counter: Counter, number: int, shared: bool) -> None:
        self.counter, self.number, self.shared = counter, number, shared

    def __neg__(self) -> Counted:
        return self.counter.value("neg", self)

    __hash__ = None  # type: ignore[assignment]
    __add__, __radd__ = _operator("add"), _operator("radd")
    __sub__, __rsub__ = _operator("sub"), _operator("rsub")
    __mul__, __rmul__ = _operator("mul"), _operator("rmul")
    __lt__, __le__, __gt__, __ge__ = map(_operator, ("lt", "le", "gt", "ge"))
    __eq__, __ne__ = _operator("eq"), _operator("ne")  # type: ignore[assignment]
    __and__, __or__, __xor__, __invert__ = map(_operator, ("and", "or", "xor", "not"))


def _instruction(name: str, mufu: int = 0) -> Callable[..., Counted]:
    return lambda counter, *arguments: counter.count(name, *arguments, mufu=mufu)


class Counter:
    """An `Arithmetic` that counts.

    Equal instructions of equal values are one, as the compiler has it. Negation and absolute value
    are modifiers of other instructions, and constants are their operands.
    """

    def __init__(self) -> None:
        self.instructions = self.mufu = 0
        self.made: dict[tuple[object, ...], Counted] = {}

    def leaf(self, *key: object, shared: bool = False) -> Counted:
        """An accumulator, or an operand."""
        return self.made.setdefault(key, Counted(self, len(self.made), shared))

    def value(self, *key: object) -> Counted:
        """The value of this instruction; it costs nothing."""
        numbers = tuple(each.number if isinstance(each, Counted) else (each,) for each in key)
        shared = all(each.shared for each in key if isinstance(each, Counted))
        return self.made.setdefault(numbers, Counted(self, len(self.made), shared))

    def count(self, *instruction: object, times: int = 1, mufu: int = 0) -> Counted:
        """The value of this instruction; counted if it is new."""
        before = len(self.made)
        value = self.value(*instruction)
        if len(self.made) > before and not value.shared:
            self.instructions += times
            self.mufu += mufu
        return value

    def constant(self, value: float) -> Counted:
        return self.value(value)

    def cast(self, x: Counted, dtype: str) -> Counted:
        return self.count(dtype, x, times=1 if dtype == "bfloat16" else 2)

    def abs(self, x: Counted) -> Counted:
        return self.value("abs", x)

    fma, copysign, select = map(_instruction, ("fma", "copysign", "select"))
    maximum, minimum = _instruction("maximum"), _instruction("minimum")
    exp2, log2 = _instruction("exp2", mufu=1), _instruction("log2", mufu=1)
    rcp, rsqrt = _instruction("rcp", mufu=1), _instruction("rsqrt", mufu=1)
    sqrt, tanh = _instruction("sqrt", mufu=1), _instruction("tanh", mufu=1)
