"""Operators of compiled graphs: what torch.compile calls, below autograd.

torch.library.custom_op would do, but each call of it takes 14 µs more of the host, which a graph
of a hundred short products feels: autograd, its own checks, and three dispatches in Python. These
operators have no derivative. A `composite` has one: it calls a torch.autograd.Function, whose
forward and backward call operators. AOTAutograd's graphs keep only these; a backend without it runs
the composite itself. An exported graph keeps no such function: its operators have a formula
(`with_derivative`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch.utils import _python_dispatch
from torch.utils.flop_counter import FlopCounterMode, flop_registry, register_flop_formula

Function: TypeAlias = Callable[..., Any]

_library = torch.library.Library("cutedsl_gemm", "FRAGMENT")


def operator(name: str, fake: Function) -> Callable[[Function], Function]:
    """Make a function of tensors torch.ops.cutedsl_gemm.NAME, and return the operator.

    The annotations are the schema. The function mutates no argument and returns memory of its own;
    `fake` takes the same arguments, and gives the shapes of the results.
    """

    def defined(function: Function) -> Function:
        found = _defined(name, function, "CompositeExplicitAutograd")
        torch.library.register_fake(f"cutedsl_gemm::{name}", fake, lib=_library)
        return found

    return defined


def composite(name: str) -> Callable[[Function], Function]:
    """Make a function of operators torch.ops.cutedsl_gemm.NAME, and return the operator.

    The annotations are the schema. Dynamo takes it as one operator, and AOTAutograd as what it
    calls, at once or in a torch.autograd.Function. If Dynamo followed such a function itself, it
    would take 31 ms for each layer of a model, not 8, and AOTAutograd would not cache the graph.
    The key of that cache has only the name and the arguments of this operator. Rename it when its
    function calls other operators, or passes them other arguments: cached graphs do not change.
    """

    return lambda function: _defined(name, function, "CompositeImplicitAutograd")


def _defined(name: str, function: Function, key: str) -> Function:
    """The operator of a function, whose annotations are the schema, at a dispatch key."""
    schema = torch.library.infer_schema(function, mutates_args=())
    _library.define(f"{name}{schema}", tags=torch.Tag.pt2_compliant_tag)
    _library.impl(name, function, key)
    found: Function = getattr(torch.ops.cutedsl_gemm, name).default
    return found


def with_derivative(
    name: str, fake: Function, save: Function, backward: Function
) -> Callable[[Function], Function]:
    """`operator` with an autograd formula: for exported graphs, which hold no autograd.Function.

    `save` is called as setup_context(ctx, inputs, output), and `backward` with ctx and gradients.
    """

    def defined(function: Function) -> Function:
        found = operator(name, fake)(function)
        full = f"cutedsl_gemm::{name}"
        torch.library.register_autograd(full, backward, setup_context=save, lib=_library)
        return found

    return defined


def register_flops(formula: Function, *operators: Any) -> None:
    """Tell FlopCounterMode the FLOPs of operators.

    A counter copies torch's registry when it is made. Operators are defined when they are first
    needed, which may be inside a counter.
    """
    register_flop_formula([*operators])(formula)
    for mode in _python_dispatch._get_current_dispatch_mode_stack():
        counter = getattr(mode, "counter", None)
        if isinstance(counter, FlopCounterMode):
            counter.flop_registry.update({each: flop_registry[each] for each in operators})
