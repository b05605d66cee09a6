"""convert(model): the nn.Linear of a model run on gemm, in place; restore(model) undoes it.

A layer keeps its Parameters, hooks and state_dict: only its class changes, as in FSDP2.
"""

from __future__ import annotations

from typing import TypeVar

from torch import Tensor, nn

from cutedsl_gemm.faster import linear

Model = TypeVar("Model", bound=nn.Module)


class GemmLinear(nn.Linear):
    """An nn.Linear whose product runs on gemm where that is expected to be faster."""

    def forward(self, input: Tensor) -> Tensor:
        """torch.nn.functional.linear(input, weight, bias)."""
        return linear(input, self.weight, self.bias)


def convert(model: Model) -> Model:
    """The same model, in which each nn.Linear runs on gemm where that is expected to be faster.

    Weights, state_dict and hooks stay as they are, and layers print as GemmLinear. torch computes a
    product that is not of bfloat16 or float16 (torch.autocast counts), not on a Hopper GPU, or
    expected to be slower by gemm, and all of them inside torch.func and forward-mode derivatives.
    Subclasses of nn.Linear, such as those of LoRA, and layers with a `forward` of their own are
    left alone. TypeError unless model is an nn.Module.

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
        if type(module) is nn.Linear and "forward" not in vars(module):
            module.__class__ = GemmLinear
    return model


def restore(model: Model) -> Model:
    """The same model without what `convert` changed.

    TypeError unless model is an nn.Module, or if a converted layer was given another class since,
    as by torch.nn.utils.parametrize; then no layer is changed.

    >>> restore(convert(nn.Linear(16, 32)))
    Linear(in_features=16, out_features=32, bias=True)
    """
    _check_module(model)
    found = {name: each for name, each in model.named_modules() if isinstance(each, GemmLinear)}
    for name, module in found.items():
        if type(module) is not GemmLinear:
            raise TypeError(
                f"{name or 'model'} is {type(module).__name__}, a class made from the converted "
                "layer: undo that first (torch.nn.utils.parametrize.remove_parametrizations, for "
                "example), then restore"
            )
    for module in found.values():
        module.__class__ = nn.Linear
    return model


def _check_module(model: object) -> None:
    """TypeError unless it is a module."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"model is {type(model).__name__}: it must be a torch.nn.Module")
