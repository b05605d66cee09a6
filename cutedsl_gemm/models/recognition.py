"""Which modules are MLPs, whatever their class is called.

    down(activation(up(x)))
    down(activation(gate(x)) * up(x))

The answer is read from an expression, which the module's forward makes of a tensor without data:

    ("linear", "down", ("mul", ("silu", ("linear", "gate", "x")), ("linear", "up", "x")))

A TorchFunctionMode records it. To the forward, x is a tensor like any other; but all functions are
refused that are not part of an expression, among them those for a shape, a dtype or a value. The
forward is that of a stand-in, which has the attributes of the module. If forward changes one of
them, the module does more than its expression says, and is not recognized.

Only modules whose parameters are those of two or three nn.Linear are recorded.
"""

from __future__ import annotations

import io
import pickle
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy, deepcopy
from functools import partial
from inspect import signature
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from cutedsl_gemm.kernels.epilogue.functions import GELUS
from cutedsl_gemm.layers.activations import ACTIVATIONS, GATED, GATES
from cutedsl_gemm.models.converted import original_class

DEVICES = "cpu", "cuda"
OF_TORCH = vars(nn.Module())  # the attributes of every module
GENERAL = nn.Module, object
GENERATORS = random.Random, np.random.Generator, np.random.RandomState
Expression = Any  # "x", or a tuple: the name of an operation, and its arguments


class MlpLayers(NamedTuple):
    """The activation of an MLP, and the names of its layers. Gate and up have no bias."""

    activation: str  # a name in ACTIVATIONS, or in GATES
    first: tuple[str, ...]  # with a gate: gate and up; or one layer of both, one above the other
    gate_first: bool  # True without a gate
    down: str


def recognized(module: nn.Module) -> MlpLayers | None:
    """What a module computes, as it is written, if it is an MLP of nn.Linear; else None.

    >>> class Mlp(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.w1, self.w3 = (nn.Linear(16, 32, bias=False) for _ in range(2))
    ...         self.w2 = nn.Linear(32, 16)
    ...
    ...     def forward(self, x):
    ...         return self.w2(F.silu(self.w1(x)) * self.w3(x))
    >>> recognized(Mlp())
    MlpLayers(activation='swiglu', first=('w1', 'w3'), gate_first=True, down='w2')
    >>> recognized(nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16)))
    MlpLayers(activation='relu', first=('0',), gate_first=True, down='2')
    >>> recognized(nn.Sequential(nn.Linear(16, 32), nn.Linear(32, 16)))
    """
    children = module.named_children()
    layers = {name: each for name, each in children if original_class(each) is nn.Linear}
    owned = [each for layer in layers.values() for each in layer.parameters()]
    if len(layers) not in (2, 3) or len([*module.parameters()]) != len({*map(id, owned)}):
        return None
    if [*module.parameters(recurse=False)] or [*module.buffers()]:
        return None
    if len(signature(original_class(module).forward).parameters) != 2:
        return None
    if any(isinstance(each, GENERATORS) for each in _values(module)):
        return None
    before = _random_states()
    try:
        modes = product((False, True), repeat=4)
        expression, *others = (_recorded(module, layers, *each) for each in modes)
        if pickle.dumps(_random_states()) != pickle.dumps(before):  # a layer is left out at times
            return None
        found = _match(expression) if all(each == expression for each in others) else None
    except Exception:  # of the module's own code, given no data: it is no such expression
        return None
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])
    return found if found is not None and _fits(layers, found) else None


def _values(module: nn.Module) -> Iterator[Any]:
    """The attributes of a module and of its modules."""
    for each in module.modules():
        yield from vars(each).values()


def _random_states() -> tuple[Any, Any]:
    """Of the global generators of Python and of numpy."""
    return random.getstate(), np.random.get_state()


def _recorded(
    module: nn.Module,
    layers: dict[str, nn.Linear],
    training: bool,
    autocast: bool,
    gradients: bool,
    inference: bool,
) -> Expression:
    """The expression that a module's forward returns in such modes."""
    stand_ins = _stand_ins(module, training)
    given = [_state(each) for each in stand_ins.values()]
    before = {device: torch.is_autocast_enabled(device) for device in DEVICES}
    try:
        for device in DEVICES:
            torch.set_autocast_enabled(device, autocast)
        with torch.inference_mode(inference), torch.set_grad_enabled(gradients):
            recorder = _Recorder(layers)
            x = recorder.tensor("x")
            with recorder:
                result = stand_ins[module].forward(x)
    finally:
        for device, enabled in before.items():
            torch.set_autocast_enabled(device, enabled)
    if given != [_state(each) for each in stand_ins.values()]:
        raise ValueError("forward changes an attribute")
    return recorder.expressions[result]


def _stand_ins(module: nn.Module, training: bool) -> dict[nn.Module, nn.Module]:
    """One for each module of a module: as it is written, without hooks."""
    made = {each: object.__new__(original_class(each)) for each in module.modules()}
    shared = *made, *module.parameters(), *module.buffers()
    for each, stand_in in made.items():
        hooks = {name: value for name, value in OF_TORCH.items() if "hook" in name}
        vars(stand_in).update(_copied(each, shared), **hooks, training=training)
        for name, child in each._modules.items():
            stand_in._modules[name] = made.get(child)
    return made


def _copied(module: nn.Module, shared: Iterable[object]) -> dict[str, Any]:
    """The attributes of a module: forward may change these copies; what is `shared` is not copied.

    What cannot be pickled, such as a lock, is shared, too; so are other modules, and tensors.
    """
    found: dict[str, Any] = {}
    memo = {id(each): each for each in shared}
    for name, value in vars(module).items():
        try:
            if name in OF_TORCH:
                found[name] = copy(value)
                continue
            found[name] = deepcopy(value, memo | _pickled(value).met)
        except Exception:  # of the value's own code
            found[name] = copy(value) if isinstance(value, (dict, list, set)) else value
    return found


class _Pickler(pickle.Pickler):
    """The bytes of an object, in which modules and tensors stand for themselves."""

    def __init__(self) -> None:
        self.file = io.BytesIO()
        self.met: dict[int, object] = {}
        super().__init__(self.file)

    def persistent_id(self, found: object) -> int | None:
        if not isinstance(found, (nn.Module, Tensor)):
            return None
        self.met[id(found)] = found
        return id(found)


def _state(module: nn.Module) -> list[tuple[str, object]]:
    """What forward must not change: the module's attributes, and those of its classes."""
    spaces = (vars(each) for each in (module, *type(module).__mro__) if each not in GENERAL)
    return [(name, _value(each)) for space in spaces for name, each in space.items()]


def _value(attribute: object) -> object:
    """An attribute by its value, also if it is an object that changes; else the object itself."""
    if isinstance(attribute, (nn.Module, Tensor)) or callable(attribute):
        return id(attribute)
    try:
        return _pickled(attribute).file.getvalue()
    except Exception:  # of the attribute's own code
        return id(attribute)


def _pickled(value: object) -> _Pickler:
    """The pickler of a value: its bytes, and the modules and tensors that it met."""
    pickler = _Pickler()
    pickler.dump(value)
    return pickler


class _Recorder(TorchFunctionMode):
    """The expressions of tensors; an error in a function that makes none, or in another mode.

    A module that computes without gradients, or without autocast, is not its expression alone.
    """

    def __init__(self, layers: dict[str, nn.Linear]) -> None:
        super().__init__()
        self.modes = _modes()
        self.layers = {layer.weight: (name, layer.bias) for name, layer in layers.items()}
        self.expressions: dict[Tensor, Expression] = {}

    def tensor(self, expression: Expression) -> Tensor:
        """A tensor without data that has this expression."""
        made = torch.empty((), device="meta")
        self.expressions[made] = expression
        return made

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """The result of a function in _FUNCTIONS."""
        if _modes() != self.modes:
            raise ValueError("forward sets a mode of torch's")
        return _FUNCTIONS[func](self, *args, **(kwargs or {}))

    def linear(self, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """F.linear of the parameters of a layer."""
        name, expected = self.layers[weight]
        if bias is not expected:
            raise ValueError
        return self.tensor(("linear", name, self.expressions[input]))

    def elementwise(self, *given: Tensor | float, inplace: bool = False, name: str) -> Tensor:
        """An operation of _OPERATIONS, or an activation, of tensors and numbers."""
        expression = name, *map(self._argument, given)
        return self._changed(given[0], expression) if inplace else self.tensor(expression)

    def _changed(self, result: Any, expression: Expression) -> Tensor:
        """A layer's result, of which no part is known, after a change in place."""
        halves = any(each[0] == "half" for each in self.expressions.values())
        if halves or self.expressions[result][0] != "linear":
            raise ValueError
        self.expressions[result] = expression
        return result

    def _argument(self, given: Tensor | float) -> Expression:
        return self.expressions[given] if isinstance(given, Tensor) else float(given)

    def gelu(self, input: Tensor, approximate: str = "none") -> Tensor:
        """F.gelu."""
        return self.tensor((GELUS[approximate], self.expressions[input]))

    def dropout(
        self, input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
    ) -> Tensor:
        """F.dropout that drops nothing."""
        if training and p:
            raise ValueError
        return input

    def chunk(self, input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
        """torch.chunk into two halves of the last mode."""
        if (chunks, dim) != (2, -1):
            raise ValueError
        return tuple(self.tensor(("half", each, self.expressions[input])) for each in range(2))


# Of torch and of Tensor: activations that are written out consist of them.
_OPERATIONS = "add", "sub", "mul", "div", "pow", "square", "erf", "relu", "tanh", "sigmoid"
_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    getattr(owner, name): partial(_Recorder.elementwise, name=name)
    for name in _OPERATIONS
    for owner in (torch, Tensor)
} | {
    F.relu: partial(_Recorder.elementwise, name="relu"),
    F.silu: partial(_Recorder.elementwise, name="silu"),
    F.linear: _Recorder.linear,
    F.gelu: _Recorder.gelu,
    F.dropout: _Recorder.dropout,
    **dict.fromkeys((torch.chunk, Tensor.chunk), _Recorder.chunk),
}


def _modes() -> tuple[bool, ...]:
    autocast = (torch.is_autocast_enabled(device) for device in DEVICES)
    return torch.is_grad_enabled(), torch.is_inference_mode_enabled(), *autocast


def _match(expression: Expression) -> MlpLayers | None:
    """The MLP that an expression is."""
    match expression:
        case "linear", down, hidden:
            return _plain(hidden, down) or _gated(hidden, down)
    return None


def _plain(hidden: Expression, down: str) -> MlpLayers | None:
    """The MLP with such a hidden layer, if it is without a gate."""
    match _activation(hidden):
        case name, ("linear", first, "x"):
            return MlpLayers(name, (first,), True, down)
    return None


def _gated(hidden: Expression, down: str) -> MlpLayers | None:
    """The MLP with such a hidden layer, if it has a gate."""
    operation, *factors = hidden
    if operation != "mul":
        return None
    for activated, up in factors, factors[::-1]:
        activation, gate = _activation(activated) or (None, None)
        name = next((name for name, each in GATED.items() if each == activation), None)
        match name, gate, up:
            case str(), ("linear", first, "x"), ("linear", second, "x") if first != second:
                return MlpLayers(name, (first, second), True, down)
            case str(), ("half", i, ("linear", first, "x")), ("half", j, ("linear", second, "x")):
                if first == second and i != j:
                    return MlpLayers(name, (first,), i == 0, down)
    return None


def _activation(expression: Expression) -> tuple[str, Expression] | None:
    """The activation that an expression applies to a layer's result, by name, and that result.

    An activation may be written out in several ways, so its values at some points decide.
    """
    results = {*_results(expression)}
    if len(results) != 1:
        return None
    (result,) = results
    if expression[1:] == (result,) and expression[0] in ACTIVATIONS:
        return expression[0], result
    ends = torch.tensor([10.0, 100.0, 1e4], dtype=torch.float64, device="cpu")
    points = torch.cat([torch.linspace(-9, 9, 289, dtype=ends.dtype, device="cpu"), -ends, ends])
    values = _evaluated(expression, {result: points})
    for name, function in ACTIVATIONS.items():
        if torch.allclose(values, function(points), rtol=1e-6, atol=1e-6):
            return name, result
    return None


def _results(expression: Expression) -> Iterator[Expression]:
    """The results of layers, or x, from which an expression is computed."""
    match expression:
        case "x" | ("linear" | "half", *_):
            yield expression
        case tuple():
            for each in expression[1:]:
                yield from _results(each)


def _evaluated(expression: Expression, values: Mapping[Expression, Tensor]) -> Tensor | float:
    """What an expression computes, of values of the layers' results."""
    if isinstance(expression, float):
        return expression
    if expression in values:
        return values[expression]
    name, *arguments = expression
    function = ACTIVATIONS.get(name) or getattr(torch, name)
    return function(*(_evaluated(each, values) for each in arguments))


def _fits(layers: dict[str, nn.Linear], found: MlpLayers) -> bool:
    """Whether the weights are those of such an MLP, and all layers are used once."""
    if {*found.first, found.down} != {*layers}:
        return False
    first, down = [layers[name] for name in found.first], layers[found.down]
    if any(each.weight.ndim != 2 for each in (*first, down)):  # a part of one, or not there yet
        return False
    hidden, width = down.weight.shape[1], first[0].weight.shape[1]
    gated = found.activation in GATES
    if gated and any(each.bias is not None for each in first):
        return False
    shape = torch.Size((2 * hidden if gated and len(first) == 1 else hidden, width))
    return all(each.weight.shape == shape for each in first)
