"""The class that `convert` gave a module, and its original class."""

from __future__ import annotations

from typing import ClassVar

from torch import nn


class Converted:
    """A module that `convert` gave another class."""

    _original_class: ClassVar[type[nn.Module]]


def original_class(module: nn.Module) -> type[nn.Module]:
    """The class of a module, or the one before `convert`.

    A class made from a converted one, as by torch.nn.utils.parametrize, is its own.
    """
    found: type[nn.Module] = type(module)
    if issubclass(found, Converted):
        found = vars(found).get("_original_class", found)
    return found
