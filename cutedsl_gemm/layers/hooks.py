"""Whether a module computes what its class says."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch.nn.modules.module import _has_any_global_hook


def has_hooks(modules: Iterable[Any]) -> bool:
    """Whether a call of one of these modules does more than the forward of its class.

    >>> from torch import nn
    >>> doubled = nn.GELU()
    >>> _ = doubled.register_forward_hook(lambda module, args, result: 2 * result)
    >>> has_hooks([nn.GELU()]), has_hooks([nn.GELU(), doubled])
    (False, True)
    """
    for each in modules:
        if each._forward_hooks or each._forward_pre_hooks or "forward" in each.__dict__:
            return True
        if each._backward_hooks or each._backward_pre_hooks:
            return True
    return bool(_has_any_global_hook())
