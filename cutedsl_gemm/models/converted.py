"""The class that `convert` gave a module, and the class that the module had before."""

from __future__ import annotations

from typing import ClassVar

from torch import nn


class Converted:
    """A module that `convert` gave another class."""

    _class_as_written: ClassVar[type[nn.Module]]


def class_as_written(module: nn.Module) -> type[nn.Module]:
    """The class of a module, or the one before `convert`.

    A class made from a converted one, as by torch.nn.utils.parametrize, is its own.
    """
    found: type[nn.Module] = type(module)
    if issubclass(found, Converted):
        found = vars(found).get("_class_as_written", found)
    return found
