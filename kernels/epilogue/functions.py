"""The functions of torch that an epilogue may call, each by the operations that compute it.

A function stands here once, for `torch.f(x)`, `torch.nn.functional.f(x)`, `torch.special.f(x)` and
`x.f()`, with torch's names of arguments and torch's defaults. An argument that a function here
does not take, such as `out`, is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Real
from types import MappingProxyType
from typing import Any, TypeAlias

Number: TypeAlias = "int | float"
Argument: TypeAlias = Any  # a value of the trace, or a number

FLOATS = "float32", "bfloat16", "float16"  # what a value may be rounded to


class Refused(TypeError):
    """Why a function does not take these arguments: the end of a sentence."""


def apply(operation: str, *arguments: Argument) -> Argument:
    """The value of one operation; one of the arguments is a value of the trace."""
    recorded = next(each for each in arguments if hasattr(each, "_record"))
    return recorded._record(operation, *arguments)


def unary(operation: str) -> Callable[[Argument], Argument]:
    """The function that records this operation of one argument."""

    def function(input: Argument) -> Argument:
        return apply(operation, input)

    return function


def binary(operation: str) -> Callable[[Argument, Argument], Argument]:
    """The function that records this operation of two arguments."""

    def function(input: Argument, other: Argument) -> Argument:
        return apply(operation, input, other)

    return function


def add(input: Argument, other: Argument, *, alpha: Number = 1) -> Argument:
    return apply("add", input, other if alpha == 1 else other * alpha)


def sub(input: Argument, other: Argument, *, alpha: Number = 1) -> Argument:
    return apply("sub", input, other if alpha == 1 else other * alpha)


def rsub(input: Argument, other: Argument, *, alpha: Number = 1) -> Argument:
    return sub(other, input, alpha=alpha)


def div(input: Argument, other: Argument, *, rounding_mode: None = None) -> Argument:
    if rounding_mode is not None:
        raise Refused(f"takes no rounding_mode, here {rounding_mode!r}")
    return apply("div", input, other)


def reciprocal(input: Argument) -> Argument:
    return apply("div", 1, input)


def square(input: Argument) -> Argument:
    return apply("mul", input, input)


def pow(input: Argument, exponent: Number) -> Argument:
    """An integer power, by squaring; or a square root."""
    if not isinstance(exponent, Real) or not hasattr(input, "_record"):
        raise Refused("takes a number as exponent; write exp(y * log(x)) for x ** y")
    if abs(exponent) == 0.5:
        return apply("sqrt" if exponent > 0 else "rsqrt", input)
    if not 1 <= abs(exponent) <= 64 or exponent != int(exponent):  # int refuses inf and nan
        raise Refused(
            f"takes an integer from 1 to 64, or its negative, or ±0.5, as exponent, here "
            f"{exponent}; write exp({exponent} * log(x)) for x > 0"
        )
    power, factor, bits = None, input, int(abs(exponent))
    while bits:
        if bits & 1:
            power = factor if power is None else apply("mul", power, factor)
        bits >>= 1
        if bits:
            factor = apply("mul", factor, factor)
    return power if exponent > 0 else reciprocal(power)


def addcmul(
    input: Argument, tensor1: Argument, tensor2: Argument, *, value: Number = 1
) -> Argument:
    return add(input, apply("mul", tensor1, tensor2), alpha=value)


def addcdiv(
    input: Argument, tensor1: Argument, tensor2: Argument, *, value: Number = 1
) -> Argument:
    return add(input, apply("div", tensor1, tensor2), alpha=value)


def lerp(input: Argument, end: Argument, weight: Argument) -> Argument:
    """From the nearer end, as in torch: a weight of 1 gives `end` itself."""
    step = apply("sub", end, input)
    from_input, from_end = input + step * weight, end - step * (1 - weight)
    is_near = abs(weight) < 0.5
    if hasattr(weight, "_record"):
        return where(is_near, from_input, from_end)
    return from_input if is_near else from_end


def clamp(input: Argument, min: Argument | None = None, max: Argument | None = None) -> Argument:
    if min is None and max is None:
        raise Refused("needs min, or max, or both")
    if min is not None:
        input = _clamped("maximum", input, min)
    return input if max is None else _clamped("minimum", input, max)


def _clamped(operation: str, input: Argument, bound: Argument) -> Argument:
    """The maximum or minimum of both. At a tie, `input` has all of the gradient, as in torch."""
    clamped = apply(operation, input, bound)
    if isinstance(bound, Real):  # the derivative knows a constant for a bound
        return clamped
    return where(apply("eq", input, bound), input, clamped)


def exp2(input: Argument) -> Argument:
    return apply("exp", apply("mul", input, 0.6931471805599453))


def log2(input: Argument) -> Argument:
    return apply("mul", apply("log", input), 1.4426950408889634)


def where(condition: Argument, input: Argument, other: Argument) -> Argument:
    return apply("where", condition, input, other)


def where_method(input: Argument, condition: Argument, other: Argument) -> Argument:
    return apply("where", condition, input, other)


def masked_fill(input: Argument, mask: Argument, value: Argument) -> Argument:
    return apply("where", mask, value, input)


def in_place(inplace: bool) -> None:
    if inplace:
        raise Refused("takes no inplace=True: an epilogue changes no tensor")


def activation(operation: str) -> Callable[..., Argument]:
    """The function of torch.nn.functional that records this operation."""

    def function(input: Argument, inplace: bool = False) -> Argument:
        in_place(inplace)
        return apply(operation, input)

    return function


GELUS = {"none": "gelu", "tanh": "gelu_tanh"}  # by `approximate`


def gelu(input: Argument, approximate: str = "none") -> Argument:
    if approximate not in GELUS:
        raise Refused(f"takes approximate='none' or 'tanh', here {approximate!r}")
    return apply(GELUS[approximate], input)


def leaky_relu(input: Argument, negative_slope: Number = 0.01, inplace: bool = False) -> Argument:
    in_place(inplace)
    return where(apply("gt", input, 0), input, apply("mul", input, negative_slope))


def elu(input: Argument, alpha: Number = 1.0, inplace: bool = False) -> Argument:
    """expm1 gets min(x, 0): above 0 it may overflow, and the gradient would be 0 * inf = nan."""
    in_place(inplace)
    below = apply("expm1", apply("minimum", input, 0))
    return where(apply("gt", input, 0), input, below if alpha == 1 else apply("mul", below, alpha))


def celu(input: Argument, alpha: Number = 1.0, inplace: bool = False) -> Argument:
    in_place(inplace)
    if alpha <= 0:
        raise Refused(f"takes a positive alpha, here {alpha}")
    below = apply("expm1", apply("div", apply("minimum", input, 0), alpha))
    return where(apply("gt", input, 0), input, apply("mul", below, alpha))


def selu(input: Argument, inplace: bool = False) -> Argument:
    return apply("mul", elu(input, 1.6732632423543772, inplace), 1.0507009873554805)


def threshold(input: Argument, threshold: Number, value: Number, inplace: bool = False) -> Argument:
    in_place(inplace)
    return where(apply("le", input, threshold), value, input)  # NaN stays


def hardtanh(
    input: Argument, min_val: Number = -1.0, max_val: Number = 1.0, inplace: bool = False
) -> Argument:
    """Like clamp, but the derivative at a bound is 0."""
    in_place(inplace)
    above = where(apply("le", input, min_val), min_val, input)
    return where(apply("ge", input, max_val), max_val, above)


def relu6(input: Argument, inplace: bool = False) -> Argument:
    return hardtanh(input, 0.0, 6.0, inplace)


def hardsigmoid(input: Argument, inplace: bool = False) -> Argument:
    return apply("div", relu6(apply("add", input, 3), inplace), 6)


def hardswish(input: Argument, inplace: bool = False) -> Argument:
    return apply("mul", input, hardsigmoid(input, inplace))


def softplus(input: Argument, beta: Number = 1, threshold: Number = 20) -> Argument:
    """torch's is x itself above the threshold; beyond 20 the two are the same fp32 number."""
    if threshold < 20:
        raise Refused(f"takes threshold=20 or more, here {threshold}")
    if beta == 1:
        return apply("softplus", input)
    return apply("div", apply("softplus", apply("mul", input, beta)), beta)


def logsigmoid(input: Argument) -> Argument:
    return apply("neg", apply("softplus", apply("neg", input)))


def mish(input: Argument, inplace: bool = False) -> Argument:
    in_place(inplace)
    return apply("mul", input, apply("tanh", apply("softplus", input)))


def to(input: Argument, dtype: Any) -> Argument:
    """Rounded to the dtype; that of another value's, if one is given."""
    name = str(getattr(dtype, "dtype", dtype)).removeprefix("torch.")
    if name not in FLOATS:
        raise Refused(f"takes torch.float32, bfloat16 or float16, here {dtype}")
    return input._cast(name)


def cast(name: str) -> Callable[[Argument], Argument]:
    """The method that rounds to this dtype."""

    def method(input: Argument) -> Argument:
        return input._cast(name)

    return method


def detach(input: Argument) -> Argument:
    """The value itself, of which no gradient is taken."""
    return input._detach()


def reduction(kind: str) -> Callable[..., Argument]:
    """The reduction of a matrix along one of its modes."""

    def function(
        input: Argument, dim: Any = None, keepdim: bool = False, dtype: Any = None
    ) -> Argument:
        dims = dim if isinstance(dim, tuple | list) else (dim,)
        over = input._mode(dims[0]) if len(dims) == 1 else None
        if over is None:
            raise Refused(f"reduces over dim=-2 (M) or dim=-1 (N) of C, here dim={dim}")
        if keepdim or str(dtype) not in ("None", "torch.float32"):
            raise Refused("gives a vector of fp32; it takes no keepdim and no other dtype")
        return input._reduce(kind, over)

    return function


# torch has these as functions and as methods.
_UNARY = "neg", "abs", "exp", "expm1", "log", "sqrt", "rsqrt", "tanh", "sigmoid", "erf"
_BINARY = "mul", "maximum", "minimum", "lt", "le", "gt", "ge", "eq", "ne"
_LOGICAL = "and", "or", "xor", "not"
_DEFINED = (
    *(add, sub, div, reciprocal, square, pow, addcmul, addcdiv, lerp, clamp, exp2, log2),
    *(where, masked_fill, detach),
)
_SAME = {  # other names for one function
    "negative": "neg",
    "absolute": "abs",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "true_divide": "div",
    "clip": "clamp",
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
    "not_equal": "ne",
}
# torch has these as functions alone, some by a name that users do not write, as log_sigmoid.
_FUNCTIONS: dict[str, Callable[..., Argument]] = {
    **{
        each.__name__: each
        for each in (rsub, gelu, leaky_relu, elu, celu, selu, threshold, hardtanh, relu6)
    },
    **{each.__name__: each for each in (hardsigmoid, hardswish, softplus, logsigmoid, mish)},
    "silu": activation("silu"),
    "ndtr": unary("ndtr"),
    "expit": unary("sigmoid"),
    "log_sigmoid": logsigmoid,
    "_threshold": threshold,
}


def _methods() -> dict[str, Callable[..., Argument]]:
    table: dict[str, Callable[..., Argument]] = {each.__name__: each for each in _DEFINED}
    table |= {name: unary(name) for name in _UNARY}
    table |= {name: binary(name) for name in _BINARY}
    for name in _LOGICAL:
        table[f"logical_{name}"] = table[f"bitwise_{name}"] = (
            unary(name) if name == "not" else binary(name)
        )
    table |= {name: reduction(name) for name in ("sum", "amax", "amin")}
    return table | {other: table[name] for other, name in _SAME.items()}


FUNCTIONS: Mapping[str, Callable[..., Argument]] = MappingProxyType(
    {**_methods(), **_FUNCTIONS, "relu": activation("relu")}
)
METHODS: Mapping[str, Callable[..., Argument]] = MappingProxyType(
    {
        **_methods(),
        "relu": unary("relu"),
        "where": where_method,
        "to": to,
        "type": to,
        "type_as": to,
        "float": cast("float32"),
        "half": cast("float16"),
        "bfloat16": cast("bfloat16"),
    }
)
