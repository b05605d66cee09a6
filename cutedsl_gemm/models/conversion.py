"""convert(model): the nn.Linear and MLPs of a model run on gemm; restore(model) undoes it.

A module keeps its Parameters, hooks and state_dict: only its class changes, as in FSDP2.
"""

from __future__ import annotations

from functools import wraps
from typing import Any, NamedTuple, TypeAlias, TypeVar

from torch import Tensor, nn
from torch.fx import GraphModule

from cutedsl_gemm.layers.hooks import has_hooks
from cutedsl_gemm.models.converted import Converted, original_class
from cutedsl_gemm.models.faster import linear
from cutedsl_gemm.models.faster_mlp import mlp
from cutedsl_gemm.models.recognition import MlpLayers, recognized

Model = TypeVar("Model", bound=nn.Module)

Members: TypeAlias = tuple[dict[str, Any], ...]  # the children, Parameters and buffers of a module

_NEW = object().__reduce_ex__(2)[0]  # how `copy` and `pickle` create an object

_classes: dict[type[nn.Module], Any] = {}  # see `_mlp_class`


class GemmLinear(Converted, nn.Linear):
    """An nn.Linear whose product runs on gemm where that is expected to be at least as fast."""

    _original_class = nn.Linear

    def forward(self, input: Tensor) -> Tensor:
        """torch.nn.functional.linear(input, weight, bias)."""
        try:  # nn.Module's __getattr__ would take a microsecond more
            weight, bias = self._parameters["weight"], self._parameters["bias"]
        except KeyError:  # parametrized, or a replica of DataParallel
            weight, bias = self.weight, self.bias
        return linear(input, weight, bias)


LINEAR = frozenset((nn.Linear, GemmLinear))


class GemmMlp(Converted):
    """An MLP that runs on gemm where that is expected to be at least as fast.

    It asks its layers for their weights. The module runs as it was written while one of its modules
    has hooks, was replaced, or has a new Parameter or buffer; while a layer has another class, as
    by LoRA; and while gate or up has a bias.
    """

    _recognized: Recognized | None = None  # None: a copy by the class's own code

    def __init_subclass__(cls, **_: Any) -> None:
        """Do nothing: the original class may register its subclasses, or require arguments."""

    def _by_gemm(self, x: object) -> Tensor | None:
        found, modules = self._recognized, self._modules  # type: ignore[attr-defined]
        if found is None or not isinstance(x, Tensor) or _members(self) != found.members:
            return None
        for each, parts in found.others:
            if _members(each) != parts:
                return None
        names = found.layers
        layers = [modules[name] for name in (*names.first, names.down)]
        if not LINEAR.issuperset(map(type, layers)):
            return None
        if has_hooks([*layers, *[each for each, _ in found.others]]):
            return None
        try:  # as in GemmLinear
            *w1, w2 = [each._parameters["weight"] for each in layers]
            *b1, b2 = [each._parameters["bias"] for each in layers]
        except KeyError:  # not Parameters, as in a replica of DataParallel
            return None
        return mlp(x, w1, b1, w2, b2, names.activation, names.gate_first)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """As the original class reduces it; by default, the copy is converted, too."""
        original: Any = type(self)._original_class
        module = object.__new__(original_class(self))  # with the attributes of this one
        object.__setattr__(module, "__dict__", vars(self))
        reduced = original.__reduce_ex__(module, max(2, protocol))
        if reduced[:2] != (_NEW, (original,)):
            return reduced
        return _empty, (original,), *reduced[2:]


class Recognized(NamedTuple):
    """The layers of an MLP, and its modules at the conversion."""

    layers: MlpLayers
    members: Members
    others: tuple[tuple[nn.Module, Members], ...]  # those of the activation


def convert(model: Model) -> Model:
    """The same model, whose nn.Linear run on gemm where that is expected to be at least as fast.

    Weights, state_dict and hooks stay as they are; only classes change, as printed below. torch
    computes products of types other than bfloat16 and float16 (after torch.autocast), on GPUs other
    than Hopper, and where gemm is expected to be slower; and all products inside torch.func,
    forward-mode derivatives and torch.jit.trace. Subclasses of nn.Linear, such as those of LoRA,
    and layers with a `forward` of their own are left alone.

    A module that computes down(act(up(x))) of such layers, or down(act(gate(x)) * up(x)) without
    biases of gate and up, is converted too, whatever its class: two kernels compute it. The
    activation is one of `linear`'s; that of a gate is silu or gelu. Gate and up may be one layer,
    whose result is divided by chunk(2, -1). `convert` calls its forward with a tensor without data
    to see what it computes: convert again after you change the code or the attributes of a module.

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
    modules = [each for each in model.modules() if "forward" not in vars(each)]
    changes = [(each, *_conversion(each)) for each in modules if not _is_derived(each)]
    for change in changes:  # all of them, or none
        _change(*change)
    return model


def _conversion(module: nn.Module) -> tuple[type[nn.Module], Recognized | None]:
    """The class that a module gets, and what it computes if that is an MLP."""
    original = original_class(module)
    if original is nn.Linear:
        return GemmLinear, None
    # A GraphModule has a class of its own, to which `recompile` writes its forward.
    found = None if isinstance(module, GraphModule) else recognized(module)
    if found is None:
        return original, None
    try:
        made = _mlp_class(original)
    except Exception:  # of its metaclass
        return original, None
    known = {module, *(module._modules[name] for name in (*found.first, found.down))}
    others = tuple((each, _snapshot(each)) for each in module.modules() if each not in known)
    return made, Recognized(found, _snapshot(module), others)


def _members(module: Any) -> Members:
    return module._modules, module._parameters, module._buffers


def _snapshot(module: nn.Module) -> Members:
    return tuple(map(dict, _members(module)))


def _is_derived(module: nn.Module) -> bool:
    """Whether a converted module was given another class since."""
    return isinstance(module, Converted) and original_class(module) is type(module)


def _change(module: nn.Module, made: type[nn.Module], found: Recognized | None = None) -> None:
    """Give a module another class, which may have a `__setattr__` of its own."""
    if isinstance(module, GemmMlp):
        vars(module).pop("_recognized", None)
    if found is not None:
        vars(module)["_recognized"] = found
    object.__setattr__(module, "__class__", made)


def _mlp_class(original: type[nn.Module]) -> Any:
    """The subclass of a class of MLPs that runs on gemm: always the same one."""
    if original in _classes:
        return _classes[original]

    @wraps(original.forward)  # torch.export reads its signature
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs:
            result = self._by_gemm(args[0])
            if result is not None:
                return result
        return original.forward(self, *args, **kwargs)

    name, module = f"Gemm{original.__name__}", original.__module__
    attributes = {"_original_class": original, "forward": forward, "__module__": module}
    made = _classes[original] = type(name, (GemmMlp, original), attributes)
    return made


def _empty(original: type[nn.Module]) -> Any:
    """A converted module without attributes, which `copy` and `pickle` fill."""
    made = _mlp_class(original)
    return made.__new__(made)


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
        if _is_derived(module):
            what = f"module {name}" if name else "model"
            raise TypeError(
                f"{what} is {type(module).__name__}, a class made from the converted layer: undo "
                "that first (torch.nn.utils.parametrize.remove_parametrizations, for example), "
                "then restore"
            )
    for module in found.values():
        _change(module, original_class(module))
    return model


def _check_module(model: object) -> None:
    """TypeError unless it is a module."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"model is {type(model).__name__}: it must be a torch.nn.Module")
