"""torch's layers as one product each: linear, addmm, swiglu and geglu.

linear(x, weight, bias, activation="gelu")        F.gelu(F.linear(x, weight, bias))
addmm(c, a, b, beta=0.5)                          torch.addmm(c, a, b, beta=0.5)
swiglu(x, gate_up)                                F.silu(gate) * up, both in one weight
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from cutedsl_gemm.api import fused_product
from cutedsl_gemm.operands import Value
from cutedsl_gemm.problem import TMA
from cutedsl_gemm.request import Fixed, Function

ACTIVATIONS: Mapping[str, Callable[[Any], Any]] = MappingProxyType(
    {
        "relu": torch.relu,
        "gelu": F.gelu,
        "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
        "silu": F.silu,
        "tanh": torch.tanh,
        "sigmoid": torch.sigmoid,
    }
)


def linear(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    activation: str | Callable[[Any], Any] | None = None,
) -> Tensor:
    """activation(x · weightᵀ + bias) of x (…, K) and weight (N, K): (…, N), in one kernel.

    Without an activation, it is torch.nn.functional.linear. `activation` is "relu", "gelu",
    "gelu_tanh", "silu", "tanh", "sigmoid", or a function of the sum, as the epilogue of `gemm`.
    The sum is rounded once, after the activation. bias (N,), or whatever broadcasts to the result
    of a matrix x, may be bfloat16, float16 or float32.

    Under torch.autocast, x, weight and bias are cast as torch.nn.functional.linear casts them.
    Raises as `gemm` does.

    >>> x, weight = torch.ones(2, 3, 16).bfloat16(), torch.ones(8, 16).bfloat16()
    >>> linear(x, weight, torch.arange(-20, -12).bfloat16(), "relu")[0, 0]
    tensor([0., 0., 0., 0., 0., 1., 2., 3.], dtype=torch.bfloat16)
    """
    function = _linear(activation, bias is not None)
    try:
        x, weight, bias = _autocast(x, weight, bias)
        given = {} if bias is None else {"bias": bias}
        return _unflattened(x, weight.mT, function, given)
    except (AttributeError, TypeError, ValueError, RuntimeError):
        _check_weight("weight", x, weight)
        raise


def addmm(
    c: Tensor,
    a: Tensor,
    b: Tensor,
    *,
    beta: float = 1,
    alpha: float = 1,
    out: Tensor | None = None,
) -> Tensor:
    """beta · c + alpha · a · b, as torch.addmm: c broadcasts to the shape of a · b.

    The sum is rounded once. If beta is 0, c is not read, so that its NaN do not matter. Other
    values of alpha and beta compile nothing. `out` may be c.

    >>> a, b = torch.ones(2, 16).bfloat16(), torch.ones(16, 4).bfloat16()
    >>> addmm(torch.arange(4.0), a, b, beta=0.5)[0]
    tensor([16.0000, 16.5000, 17.0000, 17.5000], dtype=torch.bfloat16)
    """
    c, a, b = _autocast(c, a, b)
    given: dict[str, Value] = {}
    if beta != 0:
        given["c"] = c
    if beta not in (0, 1):
        given["beta"] = beta
    if alpha != 1:
        given["alpha"] = alpha
    outs = None if out is None else (out,)
    (result,) = fused_product(a, b, _ADDMM[tuple(given)], given, outs)
    return result


def swiglu(x: Tensor, gate_up: Tensor) -> Tensor:
    """silu(x · gateᵀ) · (x · upᵀ) of x (…, K) and gate_up (2N, K): (…, N), in one kernel.

    The first N rows of gate_up are the gate, as models store it. Raises as `gemm` does.

    >>> x, gate_up = torch.ones(1, 16).bfloat16(), torch.ones(16, 16).bfloat16()
    >>> swiglu(x, gate_up)[0, :4]
    tensor([256., 256., 256., 256.], dtype=torch.bfloat16)
    """
    return _gated(x, gate_up, _SWIGLU)


def geglu(x: Tensor, gate_up: Tensor, approximate: str = "none") -> Tensor:
    """gelu(x · gateᵀ) · (x · upᵀ), as `swiglu`; `approximate` is "none" or "tanh", as F.gelu's.

    >>> x, gate_up = torch.ones(1, 16).bfloat16(), torch.ones(16, 16).bfloat16()
    >>> geglu(x, gate_up, approximate="tanh")[0, :4]
    tensor([256., 256., 256., 256.], dtype=torch.bfloat16)
    """
    if approximate not in _GEGLU:
        raise ValueError(f"approximate is {approximate!r}: it must be 'none' or 'tanh'")
    return _gated(x, gate_up, _GEGLU[approximate])


# The slopes of activations by torch's kernels: of the gradient, and of the result or the sum,
# whichever is stored.
_SLOPES: Mapping[str, Callable[..., Any]] = {
    "relu": lambda g, y: torch.ops.aten.threshold_backward(g, y, 0),
    "gelu": lambda g, x: torch.ops.aten.gelu_backward(g, x),
    "gelu_tanh": lambda g, x: torch.ops.aten.gelu_backward(g, x, approximate="tanh"),
    "silu": lambda g, x: torch.ops.aten.silu_backward(g, x),
    "tanh": lambda g, y: torch.ops.aten.tanh_backward(g, y),
    "sigmoid": lambda g, y: torch.ops.aten.sigmoid_backward(g, y),
}


def _gate(name: str) -> Fixed:
    """The epilogue of a gated layer."""
    activation, slope = ACTIVATIONS[name], _SLOPES[name]
    return Fixed(
        lambda gate, up: activation(gate) * up,
        lambda g, gate, up: (slope(g * up, gate), g * activation(gate)),
    )


_SWIGLU = _gate("silu")
_GEGLU = {"none": _gate("gelu"), "tanh": _gate("gelu_tanh")}
_ADDMM = {
    (): Fixed(lambda acc: acc),
    ("c",): Fixed(lambda acc, c: acc + c),
    ("c", "beta"): Fixed(lambda acc, c, beta: acc + c * beta),
    ("alpha",): Fixed(lambda acc, alpha: acc * alpha),
    ("c", "alpha"): Fixed(lambda acc, c, alpha: acc * alpha + c),
    ("c", "beta", "alpha"): Fixed(lambda acc, c, beta, alpha: acc * alpha + c * beta),
}


def _linear(activation: object, bias: bool) -> Function:
    """The epilogue of `linear`."""
    if activation is None or isinstance(activation, str):
        if activation in _LINEAR:
            return _LINEAR[activation][int(bias)]  # dynamo of torch 2.11 takes no bool
        raise ValueError(
            f"activation is {activation!r}: it must be one of {', '.join(ACTIVATIONS)}, None, "
            "or a function"
        )
    if not callable(activation):
        raise TypeError(f"activation is {activation!r}: it must be a name, a function, or None")
    return _activated(activation, bias)


def _activated(activation: Callable[[Any], Any], bias: bool) -> Callable[..., Any]:
    if bias:
        return lambda acc, bias: activation(acc + bias)
    return lambda acc: activation(acc)


def _layer(name: str, bias: bool) -> Fixed:
    slope = _SLOPES[name]
    return Fixed(_activated(ACTIVATIONS[name], bias), lambda g, stored: (slope(g, stored),))


_LINEAR: dict[str | None, tuple[Fixed, Fixed]] = {  # without a bias, with one
    None: (Fixed(lambda acc: acc), Fixed(lambda acc, bias: acc + bias)),
    **{name: (_layer(name, False), _layer(name, True)) for name in ACTIVATIONS},
}


def _gated(x: Tensor, gate_up: Tensor, function: Fixed) -> Tensor:
    try:
        x, gate_up = _autocast(x, gate_up)
        rows, k = gate_up.shape
        return _unflattened(x, gate_up.view(2, rows // 2, k).mT, function, {})
    except (AttributeError, TypeError, ValueError, RuntimeError):
        _check_weight("gate_up", x, gate_up)
        if gate_up.shape[0] % 2:
            raise ValueError(
                f"gate_up has shape {tuple(gate_up.shape)}: it must be (2N, K), the gate and the "
                "value one above the other"
            ) from None
        raise


def _unflattened(x: Tensor, b: Tensor, function: Function, operands: Mapping[str, Value]) -> Tensor:
    """The product of x (…, K), as a matrix, and b."""
    if x.ndim == 2:
        (result,) = fused_product(x, b, function, operands)
        return result
    rows = x[None] if x.ndim == 1 else x.flatten(0, -2)
    (result,) = fused_product(rows, b, function, operands)
    return result.view(*x.shape[:-1], b.shape[-1])


def _check_weight(name: str, x: Tensor, weight: Tensor) -> None:
    """TypeError or ValueError unless x (…, K) can be multiplied by the weight (…, K)."""
    for each, tensor in (("x", x), (name, weight)):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{each} is {type(tensor).__name__}: it must be a torch.Tensor")
        if tensor.dtype not in TMA.dtypes:
            raise TypeError(
                f"{each} is {tensor.dtype}: it must be {' or '.join(map(str, TMA.dtypes))}; "
                f"convert it with {each}.to({TMA.dtypes[0]}), or use torch.autocast"
            )
    if weight.ndim != 2 or x.ndim == 0 or x.shape[-1] != weight.shape[1]:
        raise ValueError(
            f"x has shape {tuple(x.shape)} and {name} {tuple(weight.shape)}: they must be (…, K) "
            f"and {'(N, K)' if name == 'weight' else '(2N, K)'}"
        )


def _autocast(*tensors: Any) -> tuple[Any, ...]:
    """The tensors, cast to the dtype of torch.autocast where that is enabled."""
    device = tensors[0].device.type
    if device == "meta" or not torch.is_autocast_enabled(device):
        return tensors
    dtype = torch.get_autocast_dtype(device)
    return tuple(None if each is None else each.to(dtype) for each in tensors)
