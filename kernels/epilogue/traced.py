"""`traced`: `trace` with a cache that equal functions share.

A lambda is a new function at every call, of the same code. Two functions are the same here if they
have the same code and refer to the same things: in their closures, as defaults, and in the globals
that their code names. Those must be constants: numbers, texts, dtypes, modules, and functions of
the same kind. A function that refers to anything else is traced at every call, as is one that has
attributes, imports, or calls a builtin that reads what the code does not name (getattr, globals,
dict.get).
"""

from __future__ import annotations

import builtins
import dis
import types
from collections.abc import Callable, Hashable, Iterable
from functools import lru_cache, partial
from typing import Any, TypeAlias

from cutedsl_gemm.kernels.epilogue.expression import Epilogue, EpilogueOperand
from cutedsl_gemm.kernels.epilogue.trace import trace

REMEMBERED = 4096  # epilogues
DEPTH = 4  # how far functions that a function calls are followed
CONSTANTS = {int, bool, str, bytes, type(None)}
LIBRARIES = "torch", "math"  # whose modules and functions do not change
READERS = {
    *("getattr", "hasattr", "dir", "globals", "locals", "vars"),
    *("eval", "exec", "open", "input", "__import__"),
}

Key: TypeAlias = Hashable


def traced(
    function: Callable[..., Any],
    operands: tuple[EpilogueOperand, ...] = (),
    accumulators: int = 1,
    dimensions: int = 2,
) -> Epilogue:
    """The epilogue of a function, as `trace` makes it; once for all functions that are the same.

    >>> row = (EpilogueOperand("bias", ("N",)),)
    >>> first, second = (traced(lambda acc, bias: acc + bias, row) for _ in range(2))
    >>> first is second
    True
    """
    key = function_key(function)
    if key is None:
        return trace(function, operands, accumulators, dimensions)
    return _remembered(_Function(key, function), operands, accumulators, dimensions)


class _Function:
    """A function that equals another of the same key."""

    __slots__ = ("function", "hash", "key")

    def __init__(self, key: Key, function: Callable[..., Any]) -> None:
        self.key, self.function, self.hash = key, function, hash(key)

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Function) and self.key == other.key


@lru_cache(REMEMBERED)
def _remembered(
    function: _Function, operands: tuple[EpilogueOperand, ...], accumulators: int, dimensions: int
) -> Epilogue:
    return trace(function.function, operands, accumulators, dimensions)


def function_key(function: object, depth: int = DEPTH) -> Key | None:
    """All that a function's epilogue depends on; None if that may change, or is not known."""
    if type(function) is types.FunctionType:
        if function.__dict__:
            return None  # attributes, which may change
        code = function.__code__
        parts = _parts(function, code)
        if not parts:
            return None if parts is None else code
        keys = _keys(parts, code, depth)
        return None if keys is None else (code, keys)
    if type(function) is partial:
        given = function.func, *function.args, *function.keywords.values()
        keys = _keys(given, None, depth)
        return None if keys is None else (len(function.args), *function.keywords, keys)
    if type(function) is types.BuiltinFunctionType:
        return function if _of_library(function) else None
    return function if _is_dtype(function) else None


def _is_dtype(part: object) -> bool:
    return type(part).__name__ == "dtype" and type(part).__module__ == "torch"


def _parts(function: types.FunctionType, code: types.CodeType) -> list[object] | None:
    """What a function refers to; None if a cell of its closure is not filled yet."""
    parts: list[object] = []
    if names := _globals(code):
        space = function.__globals__
        parts = [space[name] if name in space else _builtin(name) for name in names]
    try:
        if function.__closure__:
            parts += [cell.cell_contents for cell in function.__closure__]
    except ValueError:
        return None
    if function.__defaults__:
        parts += function.__defaults__
    if function.__kwdefaults__:
        parts += [each for pair in function.__kwdefaults__.items() for each in pair]
    return parts


def _builtin(name: str) -> object:
    return getattr(builtins, name, None)


def _keys(parts: Iterable[object], code: types.CodeType | None, depth: int) -> Key | None:
    """What the epilogue depends on of each part; of a module, of what the code may take of it."""
    keys: list[Any] = []
    for part in parts:
        kind = type(part)
        keys.append(kind)  # 1 == True == 1.0
        if kind in CONSTANTS:
            key: Key | None = part
        elif kind is float:
            key = part or repr(part)  # 0.0 == -0.0
        elif kind in OF_LIBRARIES and _of_library(part):
            key = part
        elif not depth:
            return None
        elif kind is types.ModuleType and code:
            taken = [getattr(part, name) for name in _names(code) if hasattr(part, name)]
            key = _keys(taken, code, depth - 1)
        else:
            key = function_key(part, depth - 1)
        if key is None and part is not None:
            return None
        keys.append(key)
    return tuple(keys)


OF_LIBRARIES = {types.ModuleType, types.FunctionType, types.BuiltinFunctionType, type}


@lru_cache(REMEMBERED)
def _of_library(part: object) -> bool:
    """Whether it is a module or a function of torch's or of `math`, or a builtin of Python's."""
    if isinstance(part, type):
        return part.__module__ == "builtins"
    if isinstance(part, types.BuiltinFunctionType) and part.__module__ == "builtins":
        return part.__name__ not in READERS
    names: list[Any] = [part.__name__ if isinstance(part, types.ModuleType) else part.__module__]
    if isinstance(part, types.FunctionType):
        # functools.wraps copies __module__; and a decorator of torch's wraps a user's function
        names.append(part.__globals__.get("__name__"))
    # None of eval's functions, of dict.get
    return all((name or "").partition(".")[0] in LIBRARIES for name in names)


@lru_cache(REMEMBERED)
def _globals(code: types.CodeType) -> tuple[str, ...]:
    """The globals that a code names, or code inside of it; an import calls __import__.

    The body of a class looks in its own namespace first: in Python 3.12, by another instruction.
    """
    own = set()
    for each in dis.get_instructions(code):
        if each.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"):
            own.add(each.argval)
        elif each.opname == "IMPORT_NAME":
            own.add("__import__")
    return tuple(sorted(own.union(*map(_globals, _inner(code)))))


@lru_cache(REMEMBERED)
def _names(code: types.CodeType) -> tuple[str, ...]:
    """All names of a code, and of the functions inside of it: globals and attributes."""
    return tuple({*code.co_names}.union(*map(_names, _inner(code))))


def _inner(code: types.CodeType) -> list[types.CodeType]:
    return [each for each in code.co_consts if isinstance(each, types.CodeType)]
