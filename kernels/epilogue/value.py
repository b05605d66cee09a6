"""A value of an epilogue while its function runs: each operation on it is recorded.

A Value takes Python's operators, and what torch's functions and methods do to a tensor. Each adds
an instruction to the recording; an equal one is there already and is taken again.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from numbers import Real
from typing import Any, NoReturn

from cutedsl_gemm.kernels.epilogue.expression import (
    EpilogueOperand,
    Instruction,
    Mode,
    Result,
    ShapeError,
    modes_of,
)
from cutedsl_gemm.kernels.epilogue.functions import FUNCTIONS, METHODS, Refused
from cutedsl_gemm.kernels.epilogue.operations import OPERATIONS
from cutedsl_gemm.kernels.epilogue.refusal import place, refuse, say


class Recording:
    """The program so far. Instructions are numbered in the order in which they were first made."""

    def __init__(self, operands: tuple[EpilogueOperand, ...], dimensions: int = 2) -> None:
        self.operands, self.dimensions = operands, dimensions  # of C
        self.program: list[Instruction] = []
        self.modes: list[frozenset[Mode]] = []  # of C, on which the value depends
        self.numbers: dict[Instruction, int] = {}

    def add(self, instruction: Instruction) -> int:
        """The number of this instruction."""
        number = self.numbers.setdefault(instruction, len(self.program))
        if number == len(self.program):
            self.program.append(instruction)
            self.modes.append(modes_of(instruction, self.operands, self.modes))
        return number

    def detaches(self) -> bool:
        """Whether no gradient is taken of what is recorded now."""
        return False

    def constant(self, number: float) -> int:
        """A number of the function's text. -0.0 is -(0.0), since 0.0 equals it."""
        if math.isnan(number):
            refuse("a constant that is not a number (nan)")
        if math.copysign(1, number) < 0 and number == 0:
            return self.add(Instruction("neg", (self.constant(0.0),)))
        return self.add(Instruction("constant", value=number))

    def number(self, argument: object, name: str, predicate: bool) -> int:
        """The number of the instruction that an argument of an operation stands for."""
        if isinstance(argument, Real):
            if predicate:
                refuse(f"{name} of {argument!r}, where a comparison must stand")
            try:
                return self.constant(float(argument))
            except OverflowError:
                refuse(f"{name} of an integer that no float holds")
        if not isinstance(argument, Value):
            refuse(f"{name} of {_kind(argument)}", "pass it to gemm by name")
        if argument._recording is not self:
            refuse(f"{name} of a value of another epilogue")
        if argument._reduction is not None:
            refuse(
                f"{name} of a reduction, which is final",
                "return the reduction and compute the rest afterwards",
            )
        instruction = self.program[argument._number]
        if instruction == Instruction("cast", instruction.arguments, "float32"):
            return instruction.arguments[0]  # it is one already; as a result it would be stored so
        is_predicate = OPERATIONS[instruction.operation].is_predicate
        if predicate and not is_predicate:
            refuse(f"{name} of a number, where a comparison must stand", "write x != 0")
        if is_predicate and not predicate:
            choices = self.constant(1.0), self.constant(0.0)
            return self.add(Instruction("where", (argument._number, *choices)))
        return argument._number


class Value:
    """What a function computes at one place of C. See `trace`."""

    __slots__ = ("_dtype", "_number", "_recording", "_reduction")
    __hash__ = None  # type: ignore[assignment]
    __array_priority__ = 1000  # a number of numpy on the left leaves the operation to the value

    def __init__(
        self,
        recording: Recording,
        number: int,
        dtype: str = "float32",
        reduction: tuple[str, Mode] | None = None,
    ) -> None:
        self._recording = recording
        self._number = number
        self._dtype = dtype
        self._reduction = reduction

    # What functions do with a value

    def _record(self, operation: str, *arguments: object, value: str | None = None) -> Value:
        if operation in ("add", "sub", "neg") and all(map(_is_bool, arguments)):
            refuse(
                f"{operation} of comparisons alone, which are no numbers",
                "write a | b for either, a.float() + b.float() to count",
            )
        recording, predicates = self._recording, OPERATIONS[operation].predicates
        numbers = tuple(
            recording.number(argument, operation, place in predicates)
            for place, argument in enumerate(arguments)
        )
        number = recording.add(Instruction(operation, numbers, value))
        made = Value(recording, number, value or _dtype_of(operation, arguments))
        return made._detach() if recording.detaches() else made

    def _cast(self, dtype: str) -> Value:
        instruction = self._recording.program[self._number]
        if self._reduction is not None:
            if dtype == "float32":  # a reduction is
                return self
        elif instruction == Instruction("cast", instruction.arguments, dtype):
            return self
        return self._record("cast", self, value=dtype)

    def _detach(self) -> Value:
        recording, number = self._recording, self._number
        instruction = recording.program[number]
        if self._reduction is not None or OPERATIONS[instruction.operation].is_predicate:
            return self
        if instruction.operation == "cast":  # remains the end, since that is the result's dtype
            inner = recording.add(Instruction("detach", instruction.arguments))
            made = recording.add(replace(instruction, arguments=(inner,)))
        else:
            made = recording.add(Instruction("detach", (number,)))
        return Value(recording, made, self._dtype)

    def _mode(self, dim: object) -> Mode | None:
        """The mode of C that a dimension is; None if it is neither M nor N."""
        count = self._recording.dimensions
        modes: dict[object, Mode] = {-2: "M", -1: "N", count - 2: "M", count - 1: "N"}
        return modes.get(dim) if type(dim) is int else None

    def _reduce(self, kind: str, over: Mode) -> Value:
        number = self._recording.number(self, kind, predicate=False)
        if self._recording.modes[number] != {"M", "N"}:
            raise ShapeError(f"{place()}{kind} of a value that is not of the shape of C")
        return Value(self._recording, number, "float32", (kind, over))

    # What Python and torch ask of a value

    @classmethod
    def __torch_function__(
        cls,
        function: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        name = function.__name__.removeprefix("special_")
        if not _is_torch(function, name) or name not in FUNCTIONS:
            refuse(_spelled(function))
        return _call(FUNCTIONS[name], _spelled(function), args, kwargs or {})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in METHODS:
            refuse(f".{name}")
        return lambda *args, **kwargs: _call(METHODS[name], f".{name}", (self, *args), kwargs)

    @property
    def dtype(self) -> Any:
        """torch's, that `.to(x.dtype)` may be written."""
        import torch

        return getattr(torch, self._dtype)

    def __pos__(self) -> Value:
        return self

    def __bool__(self) -> NoReturn:
        refuse(
            "a decision of Python's (if, and, or, not, max, min, a < b < c) on a value",
            "write torch.where(condition, x, y), torch.maximum, (a < b) & (b < c)",
        )


def _is_bool(argument: object) -> bool:
    """Whether it is a bool to torch, which adds bools as `or`."""
    return isinstance(argument, bool) or (isinstance(argument, Value) and argument._dtype == "bool")


def _dtype_of(operation: str, arguments: tuple[object, ...]) -> str:
    """The dtype that torch would give the result of values of these dtypes.

    Numbers have none, and a scalar's counts for nothing beside that of a vector or a matrix.
    """
    if OPERATIONS[operation].is_predicate:
        return "bool"
    chosen = arguments[1:] if operation == "where" else arguments
    if operation in ("mul", "maximum", "minimum", "where") and all(map(_is_bool, chosen)):
        return "bool"
    values = [each for each in arguments if isinstance(each, Value) and each._dtype != "bool"]
    sized = [each for each in values if each._recording.modes[each._number]]
    dtypes = {each._dtype for each in sized or values}
    return dtypes.pop() if len(dtypes) == 1 else "float32"


def _operator(operation: str, swapped: bool = False) -> Callable[..., Value]:
    def method(self: Value, *other: object) -> Value:
        function = FUNCTIONS[operation]
        arguments = (*other, self) if swapped else (self, *other)
        return _call(function, operation, arguments, {})

    return method


_OPERATORS = {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "pow": "pow"}
_LOGICAL = {"and": "logical_and", "or": "logical_or", "xor": "logical_xor"}
_COMPARISONS = "lt", "le", "gt", "ge", "eq", "ne"
_UNARY = {"neg": "neg", "abs": "abs", "invert": "logical_not"}
_REFUSED = {
    "matmul": "@",
    "floordiv": "//",
    "mod": "%",
    "divmod": "divmod",
    "lshift": "<<",
    "rshift": ">>",
}
_CONVERSIONS = {
    "float": "float()",
    "int": "int()",
    "index": "a value as an index",
    "len": "len()",
    "iter": "a loop over a value",
    "getitem": "index [ ]",
    "setitem": "an assignment to elements",
    "contains": "in",
    "round": "round()",
    "array": "a conversion to numpy",
}


def _refused(what: str, advice: str = "") -> Callable[..., NoReturn]:
    def method(self: Value, *args: object, **kwargs: object) -> NoReturn:
        refuse(what, advice)

    return method


for _name, _operation in (_OPERATORS | _LOGICAL).items():
    setattr(Value, f"__{_name}__", _operator(_operation))
    setattr(Value, f"__r{_name}__", _operator(_operation, swapped=True))
    setattr(
        Value, f"__i{_name}__", _refused("an assignment in place", "write x = x + y for x += y")
    )
for _name in _COMPARISONS:
    setattr(Value, f"__{_name}__", _operator(_name))
for _name, _operation in _UNARY.items():
    setattr(Value, f"__{_name}__", _operator(_operation))
for _name, _symbol in _REFUSED.items():
    for _side in ("", "r", "i"):
        setattr(Value, f"__{_side}{_name}__", _refused(_symbol))
for _name, _what in _CONVERSIONS.items():
    setattr(Value, f"__{_name}__", _refused(_what))


def _call(
    function: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Value:
    try:
        _signature(function).bind(*args, **kwargs)
    except TypeError as reason:
        say(f"an epilogue takes other arguments of {name}: {reason}")
    try:
        return function(*args, **kwargs)
    except Refused as reason:
        say(f"{name} {reason}")


@cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


def _is_torch(function: Callable[..., Any], name: str) -> bool:
    """Whether the function is torch's of this name, and not another's."""
    import torch

    homes = torch, torch.nn.functional, torch._C._nn, torch.special, torch.Tensor
    return any(getattr(home, name, None) is function for home in homes)


def _spelled(function: Callable[..., Any]) -> str:
    module = (getattr(function, "__module__", None) or "torch.Tensor").replace("._C._nn", ".nn")
    return f"{module.replace('._C', '')}.{function.__name__}"


def _kind(argument: object) -> str:
    shape = getattr(argument, "shape", None)
    return type(argument).__name__ if shape is None else f"a tensor of shape {tuple(shape)}"


def result(value: Value) -> Result:
    """What the kernel stores of a value. A cast that ends it is the dtype of the result."""
    recording, number = value._recording, value._number
    if value._reduction is not None:
        kind, over = value._reduction
        return Result(number, reduction=kind, over=over)  # type: ignore[arg-type]
    instruction = recording.program[number]
    if instruction.operation == "cast":
        return Result(instruction.arguments[0], dtype=str(instruction.value))
    return Result(recording.number(value, "a result", predicate=False))
