"""Which modules are gated MLPs: down(activation(gate(x)) * up(x)), whatever their class is called.

The answer is read from a symbolic trace of the module's forward (torch.fx), as an expression:

    ("linear", "down", ("mul", ("silu", ("linear", "gate", "x")), ("linear", "up", "x")))

Only modules whose parameters are those of two or three nn.Linear are traced.
"""

from __future__ import annotations

import operator
from collections.abc import Collection
from inspect import signature
from itertools import product
from typing import Any, NamedTuple

import torch
from torch import fx, nn
from torch.nn import functional as F

from cutedsl_gemm.activations import GATED
from cutedsl_gemm.kernels.epilogue.functions import GELUS

DEVICES = "cpu", "cuda"
Expression = Any  # "x", or a tuple: the name of an operation, and its arguments


class GatedMlp(NamedTuple):
    """The names of the layers of a gated MLP, which have no bias, except the last."""

    activation: str  # a name in GATES
    first: tuple[str, ...]  # gate and value; or one layer of both, one above the other
    gate_first: bool
    down: str


def recognized(module: nn.Module, linear: Collection[type[nn.Module]]) -> GatedMlp | None:
    """What a module computes if it is a gated MLP of layers of these classes; else None.

    >>> class Mlp(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.w1, self.w3 = (nn.Linear(16, 32, bias=False) for _ in range(2))
    ...         self.w2 = nn.Linear(32, 16)
    ...
    ...     def forward(self, x):
    ...         return self.w2(F.silu(self.w1(x)) * self.w3(x))
    >>> recognized(Mlp(), (nn.Linear,))
    GatedMlp(activation='swiglu', first=('w1', 'w3'), gate_first=True, down='w2')
    >>> recognized(nn.Sequential(nn.Linear(16, 32), nn.Linear(32, 16)), (nn.Linear,))
    """
    layers = {name: each for name, each in module.named_children() if type(each) in linear}
    owned = [each for layer in layers.values() for each in layer.parameters()]
    if len(layers) not in (2, 3) or len([*module.parameters()]) != len({*map(id, owned)}):
        return None
    if [*module.buffers()] or len(signature(module.forward).parameters) != 1:
        return None
    try:
        modes = product((False, True), repeat=3)
        expression, *others = (_traced(module, linear, *each) for each in modes)
    except Exception:  # of the module's own code, given a proxy: it is no such expression
        return None
    found = _match(expression) if all(each == expression for each in others) else None
    return found if found is not None and _fits(layers, found) else None


def _traced(
    module: nn.Module,
    linear: Collection[type[nn.Module]],
    autocast: bool,
    training: bool,
    gradients: bool,
) -> Expression:
    """The expression that a module's forward returns in such modes."""
    before = {device: torch.is_autocast_enabled(device) for device in DEVICES}
    trained = [(each, each.training) for each in module.modules()]
    try:
        for device in DEVICES:
            torch.set_autocast_enabled(device, autocast)
        for each, _ in trained:
            each.training = training
        with torch.set_grad_enabled(gradients):
            return _expression(_output(_Tracer(linear).trace(module)))
    finally:
        for device, enabled in before.items():
            torch.set_autocast_enabled(device, enabled)
        for each, was in trained:
            each.training = was


class _Tracer(fx.Tracer):
    """A tracer that enters all modules but these layers, and refuses code that sets torch's modes.

    A module that computes without gradients, or without autocast, is not its expression alone.
    """

    def __init__(self, linear: Collection[type[nn.Module]]) -> None:
        super().__init__()
        self.linear, self.modes = linear, _modes()

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Whether a module is one operation of the trace."""
        return type(m) in self.linear

    def create_node(self, *args: Any, **kwargs: Any) -> fx.Node:
        """An operation of the trace."""
        if _modes() != self.modes:
            raise ValueError("forward sets a mode of torch's")
        return super().create_node(*args, **kwargs)


def _modes() -> tuple[bool, ...]:
    autocast = (torch.is_autocast_enabled(device) for device in DEVICES)
    return torch.is_grad_enabled(), torch.is_inference_mode_enabled(), *autocast


def _output(graph: fx.Graph) -> Any:
    """What a graph returns. TypeError if it has an operation whose result is not used."""
    *nodes, output = graph.nodes
    if any(not each.users for each in nodes):
        raise TypeError("an operation without a result may have an effect")
    return output.args[0]


def _expression(node: Any) -> Expression:
    """The expression of a node; ValueError if an operation is none of those below."""
    if not isinstance(node, fx.Node):
        raise ValueError
    if node.op == "placeholder":
        return "x"
    given = node.args, node.kwargs
    if node.op == "call_module":
        (x,) = node.args
        return "linear", str(node.target), _expression(x)
    if node.op == "call_method" and node.target in ("chunk", "mul"):
        function: Any = getattr(torch, node.target)
    else:
        function = node.target
    if function in (operator.mul, torch.mul):
        first, second = node.args
        return "mul", _expression(first), _expression(second)
    if function is operator.getitem:
        halves, place = node.args
        if place not in (0, 1):
            raise ValueError
        return "half", place, _halves(halves)
    return _activation(function, *given)


def _halves(node: Any) -> Expression:
    """The expression that is divided into two halves of its last mode."""
    call = signature(lambda input, chunks, dim=0: None).bind(*node.args, **node.kwargs).arguments
    named = node.target == "chunk" if node.op == "call_method" else node.target is torch.chunk
    if not named or call["chunks"] != 2 or call.get("dim") != -1:
        raise ValueError
    return _expression(call["input"])


def _activation(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Expression:
    if function is F.silu:
        call = signature(F.silu).bind(*args, **kwargs).arguments
        if call.get("inplace", False):
            raise ValueError
        return "silu", _expression(call["input"])
    if function is F.gelu:
        made = lambda input, approximate="none": None  # noqa: E731, the signature of a builtin
        call = signature(made).bind(*args, **kwargs).arguments
        return GELUS[call.get("approximate", "none")], _expression(call["input"])
    raise ValueError


def _match(expression: Expression) -> GatedMlp | None:
    """The gated MLP that an expression is."""
    match expression:
        case "linear", down, ("mul", (activation, gate), up) if activation in GATED.values():
            pass
        case "linear", down, ("mul", up, (activation, gate)) if activation in GATED.values():
            pass
        case _:
            return None
    name = next(name for name, each in GATED.items() if each == activation)
    match gate, up:
        case ("linear", first, "x"), ("linear", second, "x") if first != second:
            return GatedMlp(name, (first, second), True, down)
        case ("half", i, ("linear", first, "x")), ("half", j, ("linear", second, "x")):
            if first == second and i != j:
                return GatedMlp(name, (first,), i == 0, down)
    return None


def _fits(layers: dict[str, nn.Linear], found: GatedMlp) -> bool:
    """Whether the weights are those of a gated MLP, and all layers are used once."""
    if {*found.first, found.down} != {*layers}:
        return False
    first, down = [layers[name] for name in found.first], layers[found.down]
    hidden, width = down.weight.shape[1], first[0].weight.shape[1]
    shape = torch.Size((2 * hidden if len(first) == 1 else hidden, width))
    return all(each.bias is None and each.weight.shape == shape for each in first)
