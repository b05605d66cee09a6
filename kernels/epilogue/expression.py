"""Epilogue: what a kernel computes from its accumulators before it stores C.

An epilogue is a straight-line program. Each instruction names the earlier ones that it takes, so
that what is used twice is computed once. All values are fp32.

    acc + bias      0 = acc()    1 = operand("bias")    2 = add(0, 1)    result: 2

An operand is a layout over C: its strides are 0 along the modes that it lacks.

    scalar   (M,N):(0,0)      row   (M,N):(0,1)      column   (M,N):(1,0)
    matrix   (M,N):(ld,1), or (M,N):(1,ld)

If C is a batch (L, M, N), an operand is shared by all of its matrices, or each has its own:

    a row of each   (L,M,N):(s,0,1)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from operator import attrgetter
from typing import Literal, TypeAlias

from cutedsl_gemm.kernels.epilogue.checks import problems
from cutedsl_gemm.kernels.epilogue.listing import listing

Mode: TypeAlias = Literal["M", "N"]
OTHER: dict[Mode, Mode] = {"M": "N", "N": "M"}


class EpilogueError(TypeError):
    """A function that is no epilogue, or operands that are not its own.

    The message begins with the line of the function: "file:line: text: ".
    """


class ShapeError(EpilogueError):
    """A result, or what is reduced, does not have the shape of C."""


@dataclass(frozen=True)
class Instruction:
    """One operation on the values of earlier instructions, each given by its number.

    `value` is the number of a "constant", the place of an "acc" or an "operand" among the
    accumulators or the operands, and the dtype of a "cast"; None for every other operation.
    """

    operation: str
    arguments: tuple[int, ...] = ()
    value: float | int | str | None = None


@dataclass(frozen=True)
class EpilogueOperand:
    """A tensor, or a number, that the epilogue reads.

    `modes` are those of C that it has: ("M", "N") is a matrix, ("N",) a row vector, ("M",) a column
    vector, and () a scalar. A scalar is a tensor of one element on the device; or, if `by_value`, a
    number that is an argument of the launch. A new number needs no compile. If `batched`, each
    matrix of a batch has an operand of its own, and the tensor has a first mode L.
    """

    name: str
    modes: tuple[Mode, ...] = ()
    dtype: str = "float32"
    row_major: bool = True  # of a matrix: whether its rows are contiguous; else its columns are
    alignment: int = 1  # of the address, the contiguous extent and the leading stride, in elements
    by_value: bool = False
    batched: bool = False

    @property
    def transposed(self) -> EpilogueOperand:
        """The same operand over Cᵀ."""
        modes = tuple(OTHER[mode] for mode in reversed(self.modes))
        row_major = self.row_major != self.is_matrix  # a vector has no major to exchange
        return replace(self, modes=modes, row_major=row_major)

    @property
    def tensor_modes(self) -> tuple[str, ...]:
        """The modes of its tensor: those of C that it has, after L if it is batched.

        >>> EpilogueOperand("bias", ("N",), batched=True).tensor_modes
        ('L', 'N')
        """
        return (*"L" * self.batched, *self.modes)

    @property
    def is_matrix(self) -> bool:
        """Whether it has both modes of C."""
        return len(self.modes) == 2

    @property
    def kind(self) -> str:
        """What it is: "matrix", "row vector", "column vector", "scalar" or "number"."""
        if not self.modes:
            found = "number" if self.by_value else "scalar"
        elif self.is_matrix:
            found = "matrix"
        else:
            found = "row vector" if self.modes == ("N",) else "column vector"
        return f"{found} of each" if self.batched else found

    @property
    def layout(self) -> str:
        """The operand as a layout over C: its strides are 0 along the modes that it lacks.

        >>> EpilogueOperand("bias", ("N",)).layout
        '(M,N):(0,1)'
        >>> EpilogueOperand("r", ("M", "N"), row_major=False).layout
        '(M,N):(1,ld)'
        >>> EpilogueOperand("bias", ("N",), batched=True).layout
        '(L,M,N):(s,0,1)'
        """
        if self.is_matrix:
            strides = "ld,1" if self.row_major else "1,ld"
        else:
            strides = f"{int('M' in self.modes)},{int('N' in self.modes)}"
        return f"(L,M,N):(s,{strides})" if self.batched else f"(M,N):({strides})"


@dataclass(frozen=True)
class Result:
    """What the kernel stores: the value of an instruction, whole or reduced along a mode.

    `dtype` is None for that of A and B. A reduction is fp32, over the mode `over`; its other mode
    remains.
    """

    value: int
    dtype: str | None = None
    reduction: Literal["sum", "amax", "amin"] | None = None
    over: Mode | None = None

    @property
    def is_16_bit_matrix(self) -> bool:
        """Whether it is whole, and of 16 bits."""
        return self.reduction is None and self.dtype != "float32"

    @property
    def modes(self) -> tuple[Mode, ...]:
        """The modes of C that it has: all but the one over which it is reduced."""
        return ("M", "N") if self.over is None else (OTHER[self.over],)

    @property
    def transposed(self) -> Result:
        """The same result of Cᵀ."""
        return self if self.over is None else replace(self, over=OTHER[self.over])


def modes_of(
    instruction: Instruction, operands: Sequence[EpilogueOperand], before: Sequence[frozenset[Mode]]
) -> frozenset[Mode]:
    """The modes of C on which the value of an instruction depends.

    `before` has those of the instructions before it.

    >>> sorted(modes_of(Instruction("acc", value=0), (), ()))
    ['M', 'N']
    """
    if instruction.operation == "acc":
        return frozenset(("M", "N"))
    if instruction.operation == "operand":
        return frozenset(operands[int(instruction.value or 0)].modes)
    return frozenset().union(*(before[each] for each in instruction.arguments))


def needed(
    program: Sequence[Instruction],
    results: Sequence[Result],
    arguments: Callable[[Instruction], tuple[int, ...]] = attrgetter("arguments"),
) -> list[int]:
    """The numbers of the instructions that the results need, in order.

    `arguments` gives the numbers of the values from which an instruction is computed.

    >>> program = Instruction("acc", value=0), Instruction("exp", (0,)), Instruction("neg", (0,))
    >>> needed(program, [Result(2)])
    [0, 2]
    """
    found = {each.value for each in results}
    for number in reversed(range(len(program))):
        if number in found:
            found.update(arguments(program[number]))
    return sorted(found)


@dataclass(frozen=True)
class Epilogue:
    """Results of a program over the accumulators of a product and further operands.

    There are two `accumulators` if B has two parts, such as gate and value of SwiGLU.

    >>> print(Epilogue())
    C  acc
    """

    program: tuple[Instruction, ...] = (Instruction("acc", value=0),)
    operands: tuple[EpilogueOperand, ...] = ()
    results: tuple[Result, ...] = (Result(0),)
    accumulators: int = 1

    @property
    def result_names(self) -> list[str]:
        """The names of the results in messages: out, or out[0], out[1], …"""
        count = len(self.results)
        return ["out"] if count == 1 else [f"out[{i}]" for i in range(count)]

    @property
    def result_labels(self) -> list[str]:
        """The results as they are printed: C, or C0, C1, …"""
        count = len(self.results)
        return ["C"] if count == 1 else [f"C{i}" for i in range(count)]

    @property
    def gives_matrices(self) -> bool:
        """Whether each result, before it is reduced, depends on both modes of C.

        >>> Epilogue(operands=(EpilogueOperand("r", ("N",)),)).gives_matrices
        True
        """
        modes: list[frozenset[Mode]] = []
        for each in self.program:
            modes.append(modes_of(each, self.operands, modes))
        return all(len(modes[each.value]) == 2 for each in self.results)

    @property
    def transposed(self) -> Epilogue:
        """The same epilogue of Cᵀ.

        >>> Epilogue(operands=(EpilogueOperand("bias", ("N",)),)).transposed.operands[0].modes
        ('M',)
        """
        operands = tuple(operand.transposed for operand in self.operands)
        results = tuple(result.transposed for result in self.results)
        return replace(self, operands=operands, results=results)

    def check(self) -> Epilogue:
        """The epilogue itself; EpilogueError if its program is invalid, which no traced one is."""
        for problem in problems(self):
            raise EpilogueError(problem)
        return self

    @cached_property
    def _hash(self) -> int:
        return hash((self.program, self.operands, self.results, self.accumulators))

    def __hash__(self) -> int:  # computed once: calls are remembered by their epilogues
        return self._hash

    def __getstate__(self) -> dict[str, object]:  # another process has other hashes
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def listing(self) -> tuple[tuple[str, str], ...]:
        """(name, text) of what is shared, of each result, and of each operand, to print."""
        return listing(self)

    def __str__(self) -> str:
        rows = self.listing()
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {text}" for name, text in rows)


PLAIN = Epilogue()  # C = A · B
