"""torch's transforms around a call: torch.func (grad, jvp, vmap), and forward-mode derivatives.

torch 2.11 has no public function that says whether one is active. api.py tests the two separately,
since it handles them differently. `untraced` keeps torch.compile out of a function.
"""

import sys
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import torch
from torch._C._functorch import peek_interpreter_stack
from torch.autograd import forward_ad
from torch.compiler import is_dynamo_compiling

# How many TorchDispatchModes are active: they see operators, and no launches of kernels.
dispatch_modes: Callable[[], int] = torch._C._len_torch_dispatch_stack

P = ParamSpec("P")
T = TypeVar("T")


def untraced(function: Callable[P, T]) -> Callable[P, T]:
    """The function, hidden from torch.compile along with all that it calls.

    A compiled function that ran in a TorchDispatchMode first runs eagerly, and torch tries to trace
    the functions inside. `torch.compiler.disable` does this, too, and takes 0.8 s to import.
    """

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        dynamo = sys.modules.get("torch._dynamo")
        run: Callable[P, T] = function if dynamo is None else dynamo.disable(function)
        return run(*args, **kwargs)

    return called


def check_not_jit_traced() -> None:
    """RuntimeError inside torch.jit.trace, which records no launches of kernels.

    Only a call of an unknown signature asks. Inside a trace all are unknown: extents are tensors.
    """
    if torch._C._is_tracing():
        raise RuntimeError(
            "gemm was called inside torch.jit.trace, which records torch's operators and no "
            "launches of kernels: use torch.compile or torch.export"
        )


def tracing() -> bool:
    """Whether torch.compile or torch.export traces the call."""
    return is_dynamo_compiling() or exporting()


def exporting() -> bool:
    """Whether torch.export traces the call.

    In torch 2.11, torch.compiler.is_exporting is True inside torch.compile, too.
    """
    flag: bool = torch.compiler._is_exporting_flag
    return flag


def in_make_fx() -> bool:
    """Whether make_fx records operators: a graph of these alone, without autograd.Function."""
    if is_dynamo_compiling():
        return False
    return torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.PROXY) is not None


def transformed() -> bool:
    """Whether a transform is active: tensors may then stand for others, and have no memory.

    Dynamo may trace it: its guards know when the transforms around a graph change.

    >>> inside = []
    >>> _ = torch.func.vmap(lambda x: inside.append(transformed()) or x)(torch.ones(2))
    >>> inside, transformed()
    ([True], False)
    """
    if forward_ad._current_level >= 0:
        return True
    if is_dynamo_compiling():
        from cutedsl_gemm.ops import operator  # here: only traced calls need torch._dynamo

        return bool(operator.in_torch_func())
    return peek_interpreter_stack() is not None
