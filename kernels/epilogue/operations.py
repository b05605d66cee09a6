"""The operations of an epilogue's program, one row each.

Every value is an fp32 number, except that of a comparison or of a logical operation. That one is a
predicate: true or false. Only `where` and logical operations take predicates.

Each has a torch form in `evaluate` and a form in a kernel's registers in `forms`, except acc,
operand, constant and cast.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

# How tightly an operator of Python binds.
COMPARISON, OR, XOR, AND, SUM, PRODUCT, UNARY, ATOM = range(8)


@dataclass(frozen=True)
class Operation:
    """What a program needs to know of one operation.

    `text` is how it prints, with the texts of its arguments in the places {0}, {1}, {2}.
    """

    arguments: int
    text: str
    binding: int = ATOM  # of the text, if it is an operator of Python
    predicates: tuple[int, ...] = ()  # the arguments that are predicates
    is_predicate: bool = False  # whether the result is one


def _function(name: str, arguments: int = 1) -> Operation:
    places = ", ".join(f"{{{i}}}" for i in range(arguments))
    return Operation(arguments, f"{name}({places})")


def _infix(symbol: str, binding: int) -> Operation:
    return Operation(2, f"{{0}} {symbol} {{1}}", binding)


def _comparison(symbol: str) -> Operation:
    return Operation(2, f"{{0}} {symbol} {{1}}", COMPARISON, is_predicate=True)


def _logical(symbol: str, binding: int) -> Operation:
    return Operation(2, f"{{0}} {symbol} {{1}}", binding, predicates=(0, 1), is_predicate=True)


LEAVES = "acc", "operand", "constant"  # no arguments: Instruction.value says which

OPERATIONS: Mapping[str, Operation] = MappingProxyType(
    {
        "acc": Operation(0, "acc"),
        "operand": Operation(0, "operand"),
        "constant": Operation(0, "constant"),
        "cast": Operation(1, "{0}.to({dtype})"),  # rounded to a dtype, and fp32 again
        "detach": _function("detach"),  # itself, with a derivative of 0
        "add": _infix("+", SUM),
        "sub": _infix("-", SUM),
        "mul": _infix("*", PRODUCT),
        "div": _infix("/", PRODUCT),
        "neg": Operation(1, "-{0}", UNARY),
        "abs": _function("abs"),
        "maximum": _function("maximum", 2),
        "minimum": _function("minimum", 2),
        "exp": _function("exp"),
        "expm1": _function("expm1"),
        "log": _function("log"),
        "sqrt": _function("sqrt"),
        "rsqrt": _function("rsqrt"),
        "tanh": _function("tanh"),
        "sigmoid": _function("sigmoid"),
        "erf": _function("erf"),
        "ndtr": _function("ndtr"),  # the standard normal distribution: (1 + erf(x / √2)) / 2
        "relu": _function("relu"),
        "silu": _function("silu"),
        "gelu": _function("gelu"),
        "gelu_tanh": _function("gelu_tanh"),
        "softplus": _function("softplus"),
        "lt": _comparison("<"),
        "le": _comparison("<="),
        "gt": _comparison(">"),
        "ge": _comparison(">="),
        "eq": _comparison("=="),
        "ne": _comparison("!="),
        "and": _logical("&", AND),
        "or": _logical("|", OR),
        "xor": _logical("^", XOR),
        "not": Operation(1, "~{0}", UNARY, predicates=(0,), is_predicate=True),
        "where": Operation(3, "where({0}, {1}, {2})", predicates=(0,)),
    }
)

# Reductions of a result over M or N, and the identity of each: what it gives of no elements.
IDENTITIES: Mapping[str, float] = MappingProxyType(
    {"sum": 0.0, "amax": -math.inf, "amin": math.inf}
)
