"""convert(model): the nn.Linear and gated MLPs of a model run on gemm; restore(model) undoes it.

A module keeps its Parameters, hooks and state_dict: only its class changes, as in FSDP2.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from cutedsl_gemm.models.faster import linear
from cutedsl_gemm.models.faster_mlp import gated_mlp
from cutedsl_gemm.models.recognition import GatedMlp, recognized

Model = TypeVar("Model", bound=nn.Module)

_classes: dict[type[nn.Module], Any] = {}  # see `_mlp_class`


class Converted:
    """A module that `convert` gave another class."""

    torch_class: type[nn.Module]  # the one before


class GemmLinear(Converted, nn.Linear):
    """An nn.Linear whose product runs on gemm where that is expected to be faster."""

    torch_class = nn.Linear

    def forward(self, input: Tensor) -> Tensor:
        """torch.nn.functional.linear(input, weight, bias)."""
        return linear(input, self.weight, self.bias)


LINEAR = frozenset((nn.Linear, GemmLinear))


class GemmMlp(Converted):
    """A gated MLP that runs on gemm where that is expected to be faster.

    It asks its layers for their weights. While one of its modules has hooks, is another than at the
    conversion, or is given another class, as by LoRA, the module runs as it was written.
    """

    _recognized: Recognized

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the class before computes."""
        if len(args) == 1 and not kwargs:
            result = self._by_gemm(args[0])
            if result is not None:
                return result
        return super().forward(*args, **kwargs)  # type: ignore[misc]

    def _by_gemm(self, x: object) -> Tensor | None:
        found, modules = self._recognized, self._modules  # type: ignore[attr-defined]
        if not isinstance(x, Tensor) or modules != found.modules or _has_hooks(found.others):
            return None
        mlp = found.mlp
        *first, down = layers = [modules[name] for name in (*mlp.first, mlp.down)]
        if not LINEAR.issuperset(map(type, layers)) or _has_hooks(layers):
            return None
        if any(each.bias is not None for each in first):  # given after the conversion
            return None
        weights = [each.weight for each in first]
        return gated_mlp(x, mlp.activation, weights, mlp.gate_first, down.weight, down.bias)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """A copy, and what pickle stores: its class is made by `_mlp_class`."""
        return _empty, (self.torch_class,), vars(self)


class Recognized(NamedTuple):
    """A gated MLP, and its modules at the conversion."""

    mlp: GatedMlp
    modules: dict[str, nn.Module | None]  # its children
    others: tuple[nn.Module, ...]  # those of the activation


def convert(model: Model) -> Model:
    """The same model, whose nn.Linear run on gemm where that is expected to be faster.

    Weights, state_dict and hooks stay as they are; only classes change, as printed below. torch
    computes a product that is not of bfloat16 or float16 (torch.autocast counts), not on a Hopper
    GPU, or expected to be slower by gemm, and all of them inside torch.func and forward-mode
    derivatives. Subclasses of nn.Linear, such as those of LoRA, and layers with a `forward` of
    their own are left alone.

    A module that computes down(act(gate(x)) * up(x)) of such layers, with silu or gelu, is
    converted too, whatever its class: two kernels compute it. Gate and up may be one layer, whose
    result is divided by chunk(2, -1). What it computes is found by a symbolic trace of its forward,
    once: convert again after you change the code or the attributes of a module.

    TypeError unless model is an nn.Module.

    >>> model = nn.Sequential(nn.Linear(16, 32), nn.ReLU())
    >>> convert(model)
    Sequential(
      (0): GemmLinear(in_features=16, out_features=32, bias=True)
      (1): ReLU()
    )
    >>> type(restore(model)[0]) is nn.Linear
    True
    """
    _check_module(model)
    for module in model.modules():
        if "forward" in vars(module):
            continue
        if type(module) is nn.Linear:
            module.__class__ = GemmLinear
        elif not isinstance(module, Converted):
            _convert_mlp(module)
    return model


def _convert_mlp(module: nn.Module) -> None:
    """Give a gated MLP another class. Its layers may be converted later."""
    found = recognized(module, LINEAR)
    if found is None:
        return
    children = dict(module._modules)
    layers = {*found.first, found.down}
    others = [each for name, each in children.items() if name not in layers and each is not None]
    nested = tuple(inner for each in others for inner in each.modules())
    module._recognized = Recognized(found, children, nested)
    module.__class__ = _mlp_class(type(module))


def _mlp_class(torch_class: type[nn.Module]) -> Any:
    """The subclass of a class of gated MLPs that runs on gemm: always the same one."""
    if torch_class not in _classes:
        attributes = {"torch_class": torch_class, "__module__": torch_class.__module__}
        name = f"Gemm{torch_class.__name__}"
        _classes[torch_class] = type(name, (GemmMlp, torch_class), attributes)
    return _classes[torch_class]


def _empty(torch_class: type[nn.Module]) -> Any:
    """A converted module without attributes, which `copy` and `pickle` fill."""
    made = _mlp_class(torch_class)
    return made.__new__(made)


def _has_hooks(modules: Iterable[Any]) -> bool:
    """Whether a call of one of these modules does more than the forward of its class."""
    for each in modules:
        if each._forward_hooks or each._forward_pre_hooks or "forward" in each.__dict__:
            return True
        if each._backward_hooks or each._backward_pre_hooks:
            return True
    return bool(torch.nn.modules.module._has_any_global_hook())


def restore(model: Model) -> Model:
    """The same model without what `convert` changed.

    TypeError unless model is an nn.Module, or if a converted module was given another class since,
    as by torch.nn.utils.parametrize; then no module is changed.

    >>> restore(convert(nn.Linear(16, 32)))
    Linear(in_features=16, out_features=32, bias=True)
    """
    _check_module(model)
    found = {name: each for name, each in model.named_modules() if isinstance(each, Converted)}
    for name, module in found.items():
        if "torch_class" not in vars(type(module)):
            raise TypeError(
                f"{name or 'model'} is {type(module).__name__}, a class made from the converted "
                "layer: undo that first (torch.nn.utils.parametrize.remove_parametrizations, for "
                "example), then restore"
            )
    for module in found.values():
        module.__class__ = module.torch_class
        vars(module).pop("_recognized", None)
    return model


def _check_module(model: object) -> None:
    """TypeError unless it is a module."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"model is {type(model).__name__}: it must be a torch.nn.Module")
