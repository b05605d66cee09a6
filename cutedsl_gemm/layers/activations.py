"""The epilogues of torch's layers: activations of a sum with a bias, and gates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cutedsl_gemm.inputs.request import Fixed
from cutedsl_gemm.kernels.epilogue.functions import GELUS

ACTIVATIONS: Mapping[str, Callable[[Any], Any]] = MappingProxyType(
    {
        "relu": torch.relu,
        "relu2": lambda x: torch.relu(x).square(),  # of Nemotron
        "gelu": F.gelu,
        "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
        "quick_gelu": lambda x: x * torch.sigmoid(1.702 * x),  # of CLIP
        "silu": F.silu,
        "tanh": torch.tanh,
        "sigmoid": torch.sigmoid,
    }
)


def _silu_backward(g: Tensor, x: Tensor) -> Tensor:
    """The gradient by torch's kernel, which has no derivative; by operations if one is needed."""
    if torch.is_grad_enabled() and (g.requires_grad or x.requires_grad):
        s = torch.sigmoid(x)
        return g * s * (1 + x * (1 - s))
    return torch.ops.aten.silu_backward(g, x)


# The derivatives of activations by torch's kernels: functions of the gradient, and of the result
# or the sum, whichever is stored.
BACKWARDS: Mapping[str, Callable[..., Any]] = {
    "relu": lambda g, y: torch.ops.aten.threshold_backward(g, y, 0),
    "relu2": lambda g, x: g * (2 * torch.relu(x)),  # in fp16, 2 * g may overflow
    "gelu": lambda g, x: torch.ops.aten.gelu_backward(g, x),
    "gelu_tanh": lambda g, x: torch.ops.aten.gelu_backward(g, x, approximate="tanh"),
    "quick_gelu": lambda g, x: _silu_backward(g, 1.702 * x),
    "silu": _silu_backward,
    "tanh": lambda g, y: torch.ops.aten.tanh_backward(g, y),
    "sigmoid": lambda g, y: torch.ops.aten.sigmoid_backward(g, y),
}


def _gate(name: str) -> tuple[Fixed, Fixed]:
    """The epilogues of a gated layer: with the gate before the value in memory, and after it."""
    activation, backward = ACTIVATIONS[name], BACKWARDS[name]
    gate_first = Fixed(
        lambda gate, up: activation(gate) * up,
        lambda g, gate, up: (backward(g * up, gate), g * activation(gate)),
    )
    up_first = Fixed(
        lambda up, gate: activation(gate) * up,
        lambda g, up, gate: (g * activation(gate), backward(g * up, gate)),
    )
    return gate_first, up_first


MODULES = {nn.ReLU: "relu", nn.SiLU: "silu", nn.Tanh: "tanh", nn.Sigmoid: "sigmoid"}


def name_of(module: nn.Module) -> str | None:
    """The name in ACTIVATIONS of one of torch's modules; None for any other module.

    >>> name_of(nn.GELU(approximate="tanh")), name_of(nn.Softplus())
    ('gelu_tanh', None)
    """
    return GELUS.get(module.approximate) if type(module) is nn.GELU else MODULES.get(type(module))


# Further modules of torch's: the function, and the attributes that are its arguments.
FUNCTIONS: Mapping[type[nn.Module], tuple[Callable[..., Any], tuple[str, ...]]] = {
    nn.CELU: (F.celu, ("alpha",)),
    nn.ELU: (F.elu, ("alpha",)),
    nn.Hardsigmoid: (F.hardsigmoid, ()),
    nn.Hardswish: (F.hardswish, ()),
    nn.Hardtanh: (F.hardtanh, ("min_val", "max_val")),
    nn.LeakyReLU: (F.leaky_relu, ("negative_slope",)),
    nn.LogSigmoid: (F.logsigmoid, ()),
    nn.Mish: (F.mish, ()),
    nn.ReLU6: (F.relu6, ()),
    nn.SELU: (F.selu, ()),
    nn.Softplus: (F.softplus, ("beta", "threshold")),
    nn.Threshold: (F.threshold, ("threshold", "value")),
}


def has_function(module: nn.Module) -> bool:
    """Whether a function of ACTIVATIONS or FUNCTIONS computes what a module does.

    >>> has_function(nn.SiLU()), has_function(nn.LeakyReLU()), has_function(nn.Sequential())
    (True, True, False)
    """
    return name_of(module) is not None or type(module) in FUNCTIONS


def function_of(module: nn.Module) -> Callable[..., Any]:
    """What one of torch's modules computes; any other module itself.

    torch.compile follows an epilogue that refers to a function and numbers, but none that refers
    to a module.

    >>> function_of(nn.LeakyReLU(0.2))(torch.tensor(-1.0))
    tensor(-0.2000)
    """
    if type(module) not in FUNCTIONS:
        return module
    function, names = FUNCTIONS[type(module)]
    return partial(function, **{name: getattr(module, name) for name in names})


def activated(activation: Callable[[Any], Any], bias: bool) -> Callable[..., Any]:
    """The activation of the accumulator, or of its sum with a bias."""
    if bias:
        return lambda acc, bias: activation(acc + bias)
    return lambda acc: activation(acc)


def _layer(name: str, bias: bool) -> Fixed:
    backward = BACKWARDS[name]
    return Fixed(activated(ACTIVATIONS[name], bias), lambda g, stored: (backward(g, stored),))


LINEAR: dict[str | None, tuple[Fixed, Fixed]] = {  # without a bias, with one
    None: (Fixed(lambda acc: acc), Fixed(lambda acc, bias: acc + bias)),
    **{name: (_layer(name, False), _layer(name, True)) for name in ACTIVATIONS},
}

# The activation of the gate of each gated layer, and the layers' epilogues; see `_gate`.
GATED = {"swiglu": "silu", "geglu": "gelu", "geglu_tanh": "gelu_tanh"}
GATES = {name: _gate(activation) for name, activation in GATED.items()}
