"""From a Python function to an Epilogue: the function runs once, on values that record.

    trace(lambda acc, bias, r: F.gelu(acc + bias) + r, (bias, r))

The function must be pure, as that of jax.jit: what it computes depends on its arguments, on
constants, and on nothing that changes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import CodeType
from typing import Any

from cutedsl_gemm.kernels.epilogue.expression import (
    Epilogue,
    EpilogueError,
    EpilogueOperand,
    Instruction,
    Result,
    ShapeError,
    needed,
)
from cutedsl_gemm.kernels.epilogue.refusal import of_function, refuse, running
from cutedsl_gemm.kernels.epilogue.value import Recording, Value, result


def trace(
    function: Callable[..., Any],
    operands: Sequence[EpilogueOperand] = (),
    accumulators: int = 1,
    dimensions: int = 2,
) -> Epilogue:
    """The epilogue that a function computes: function(acc, ..., **{name of an operand: value}).

    The function may use Python's operators, `torch.where`, `torch.maximum`, `F.gelu` and the like
    (kernels/epilogue/functions.py has them all), and their spelling as methods. It returns a
    value, or a tuple of them.

    Values are fp32, whatever the dtypes of the operands. `.bfloat16()` rounds, and what follows is
    fp32 again, where torch would round again. A cast that ends a result is the dtype in which it is
    stored; `y.sum(dim=1)`, `amax` and `amin` end one too, and are fp32. `dim` counts the
    `dimensions` of C: two, or three if it is a batch (L, M, N).

    EpilogueError, with the line of the function, if it does anything else, if it does not take an
    operand or does not use it. ShapeError if a result is not of the shape of C.

    >>> row = EpilogueOperand("bias", ("N",), "bfloat16")
    >>> print(trace(lambda acc, bias: (acc + bias).relu(), (row,)))
    C     relu(acc + bias)
    bias  (M,N):(0,1)   bfloat16, row vector
    """
    operands = tuple(operands)
    _check_names(function, operands, accumulators)
    recording = OfFunction(operands, dimensions)
    acc = [
        Value(recording, recording.add(Instruction("acc", value=i))) for i in range(accumulators)
    ]
    named = {
        operand.name: Value(
            recording, recording.add(Instruction("operand", value=i)), operand.dtype
        )
        for i, operand in enumerate(operands)
    }
    with _gradients_enabled():  # whether the caller needs gradients or not
        made = function(*acc, **named)
    outputs = made if isinstance(made, tuple | list) else (made,)
    results = tuple(_result(value, recording, function) for value in outputs)
    if not results:
        raise EpilogueError(f"{of_function(function)} returns no result")
    epilogue = live(recording.program, results, operands, accumulators)
    _check_use(epilogue, function)
    return epilogue


@contextmanager
def _gradients_enabled() -> Iterator[None]:
    """torch.enable_grad, hidden from torch.export, which would have it in the graph."""
    import torch  # here: a process that compiles ahead needs no torch

    before = torch.is_grad_enabled()
    with torch._C.DisableTorchFunction():
        torch.set_grad_enabled(True)
    try:
        yield
    finally:
        with torch._C.DisableTorchFunction():
            torch.set_grad_enabled(before)


class OfFunction(Recording):
    """What a function records: under torch.no_grad, values of which no gradient is taken."""

    def __init__(self, operands: tuple[EpilogueOperand, ...], dimensions: int) -> None:
        super().__init__(operands, dimensions)
        self.followed: set[CodeType] = set()  # code of no torch.autograd.Function

    def detaches(self) -> bool:
        import torch  # here, as above

        new = running(inside=trace) - self.followed
        if new and new & _forwards(torch.autograd.Function):  # all subclasses: 90 µs
            refuse(
                "a torch.autograd.Function, whose backward it would not take",
                "write x + (f(x) - x).detach() for f(x) with the gradient of x",
            )
        self.followed |= new
        return not torch.is_grad_enabled()


def _forwards(function: type) -> set[CodeType]:
    """The code that `apply` of a torch.autograd.Function and of its subclasses calls.

    In torch 2.15, `apply` itself is not on the stack: it is no longer in Python.
    """
    code = getattr(getattr(function, "forward", None), "__code__", None)
    found = set() if code is None else {code}
    return found.union(*map(_forwards, function.__subclasses__()))


def _check_names(
    function: Callable[..., Any], operands: tuple[EpilogueOperand, ...], accumulators: int
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
            f"{of_function(function)} takes {signature}; it is called with {parts}, and the "
            f"operands by name ({given}): {reason}"
        ) from None


def _result(value: object, recording: Recording, function: Callable[..., Any]) -> Result:
    if not isinstance(value, Value) or value._recording is not recording:
        raise EpilogueError(
            f"{of_function(function)} returns {value!r:.60}; it must return what it computes from "
            "the accumulator, or a tuple of such values"
        )
    one = result(value)
    if recording.modes[one.value] != {"M", "N"}:
        modes = ", ".join(sorted(recording.modes[one.value]))
        raise ShapeError(
            f"{of_function(function)} returns a result of shape ({modes}), where C is (M, N)"
        )
    return one


def live(
    program: list[Instruction],
    results: tuple[Result, ...],
    operands: tuple[EpilogueOperand, ...],
    accumulators: int,
) -> Epilogue:
    """The epilogue, of the instructions that a result needs."""
    places = {old: new for new, old in enumerate(needed(program, results))}
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
                f"{of_function(function)}: no result depends on {operand.name}; leave it out"
            )
    for i in range(epilogue.accumulators):
        if ("acc", i) not in used:
            which = "acc" if epilogue.accumulators == 1 else f"accumulator {i}"
            raise EpilogueError(f"{of_function(function)}: no result depends on {which}")
