"""torch's layers as one product each: linear, addmm, swiglu and geglu.

linear(x, weight, bias, activation="gelu")        F.gelu(F.linear(x, weight, bias))
addmm(c, a, b, beta=0.5)                          torch.addmm(c, a, b, beta=0.5)
swiglu(x, gate_up)                                F.silu(gate) * up, both in one weight
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from cutedsl_gemm.activations import ACTIVATIONS, GATES, LINEAR, activated
from cutedsl_gemm.api import fused_product
from cutedsl_gemm.operands import Value
from cutedsl_gemm.problem import TMA
from cutedsl_gemm.request import Fixed, Function


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
        x, weight, bias = autocast(x, weight, bias)
        given = {} if bias is None else {"bias": bias}
        return _unflattened(x, weight.mT, function, given)
    except (AttributeError, TypeError, ValueError, RuntimeError):
        check_weight("weight", x, weight)
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
    c, a, b = autocast(c, a, b)
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
    return gated(x, gate_up, GATES["swiglu"])


def geglu(x: Tensor, gate_up: Tensor, approximate: str = "none") -> Tensor:
    """gelu(x · gateᵀ) · (x · upᵀ), as `swiglu`; `approximate` is "none" or "tanh", as F.gelu's.

    >>> x, gate_up = torch.ones(1, 16).bfloat16(), torch.ones(16, 16).bfloat16()
    >>> geglu(x, gate_up, approximate="tanh")[0, :4]
    tensor([256., 256., 256., 256.], dtype=torch.bfloat16)
    """
    if approximate not in ("none", "tanh"):
        raise ValueError(f"approximate is {approximate!r}: it must be 'none' or 'tanh'")
    return gated(x, gate_up, GATES["geglu" if approximate == "none" else "geglu_tanh"])


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
        if activation in LINEAR:
            return LINEAR[activation][int(bias)]  # dynamo of torch 2.11 takes no bool
        raise ValueError(
            f"activation is {activation!r}: it must be one of {', '.join(ACTIVATIONS)}, None, "
            "or a function"
        )
    if not callable(activation):
        raise TypeError(f"activation is {activation!r}: it must be a name, a function, or None")
    return activated(activation, bias)


def gated(x: Tensor, gate_up: Tensor, function: Fixed) -> Tensor:
    """The layer of a gate: x (…, K), gate_up (2N, K) → (…, N)."""
    try:
        x, gate_up = autocast(x, gate_up)
        rows, k = gate_up.shape
        return _unflattened(x, gate_up.view(2, rows // 2, k).mT, function, {})
    except (AttributeError, TypeError, ValueError, RuntimeError):
        check_weight("gate_up", x, gate_up)
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
    (result,) = fused_product(rows_of(x), b, function, operands)
    return result.view(*x.shape[:-1], b.shape[-1])


def rows_of(x: Tensor) -> Tensor:
    """x (…, K) as a matrix."""
    return x if x.ndim == 2 else x[None] if x.ndim == 1 else x.flatten(0, -2)


def check_weight(name: str, x: Tensor, weight: Tensor) -> None:
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


def autocast(*tensors: Any) -> tuple[Any, ...]:
    """The tensors, cast to the dtype of torch.autocast where that is enabled."""
    if not torch._C._is_any_autocast_enabled():  # ten times faster than to ask for a device's
        return tensors
    device = tensors[0].device.type
    if device == "meta" or not torch.is_autocast_enabled(device):
        return tensors
    dtype = torch.get_autocast_dtype(device)
    return tuple(None if each is None else each.to(dtype) for each in tensors)
