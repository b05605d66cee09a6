"""linear and addmm, which torch has, and the gated layers swiglu and geglu, as one product each.

linear(x, weight, bias, activation="gelu")        F.gelu(F.linear(x, weight, bias))
addmm(c, a, b, beta=0.5)                          torch.addmm(c, a, b, beta=0.5)
swiglu(x, gate_up)                                F.silu(gate) * up, both in one weight
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling

from cutedsl_gemm.api import fused_product
from cutedsl_gemm.inputs.checks import (
    check_dense,
    check_matrices_or_batches,
    check_not_negative,
    check_pair,
)
from cutedsl_gemm.inputs.operands import Value, check_operand
from cutedsl_gemm.inputs.problem import TMA
from cutedsl_gemm.inputs.request import Fixed, Function
from cutedsl_gemm.inputs.tensors import DENSE, is_sharded
from cutedsl_gemm.inputs.transforms import dispatch_modes, exporting, transformed
from cutedsl_gemm.inputs.views import rows_of, transposed, unflattened
from cutedsl_gemm.layers.activations import (
    ACTIVATIONS,
    GATES,
    LINEAR,
    activated,
    function_of,
    has_function,
    name_of,
)
from cutedsl_gemm.layers.hooks import has_hooks
from cutedsl_gemm.layers.linear_calls import (
    AUTOCAST,
    LinearProduct,
    computed,
    needs_gradients,
    of_shards,
    product,
    remembered_linear,
    suits,
)
from layouts.errors import brief, did_you_mean

REFUSALS = AttributeError, IndexError, TypeError, ValueError, RuntimeError  # of torch's, and ours


def linear(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    activation: str | Callable[[Any], Any] | None = None,
) -> Tensor:
    """activation(x · weightᵀ + bias) of x (…, K) and weight (N, K): (…, N), in one kernel.

    Without an activation, it is torch.nn.functional.linear. `activation` is "relu", "relu2",
    "gelu", "gelu_tanh", "quick_gelu", "silu", "tanh", "sigmoid", or a function of the sum, as the
    epilogue of `gemm`. The sum is rounded once, after the activation. bias (N,), or whatever
    broadcasts to the result of a matrix x, may be bfloat16, float16 or float32. A compiled graph
    calls a module that is none of torch's activations, and so rounds before and after it.

    Under torch.autocast, x, weight and bias are cast as torch.nn.functional.linear casts them.
    Raises as `gemm` does.

    >>> x, weight = torch.ones(2, 3, 16).bfloat16(), torch.ones(8, 16).bfloat16()
    >>> linear(x, weight, torch.arange(-20, -12).bfloat16(), "relu")[0, 0]
    tensor([0., 0., 0., 0., 0., 1., 2., 3.], dtype=torch.bfloat16)
    """
    if isinstance(activation, torch.nn.Module) and _takes_tensors(activation):
        return activation(linear(x, weight, bias))
    function = _linear(activation, bias is not None)
    try:
        x, weight, bias = autocast(x, weight, bias)
        if activation is None and not is_dynamo_compiling():
            result = _without_activation(x, weight, bias)
            if result is not None:
                return result
        return _sum(x, weight, bias, function)
    except REFUSALS:
        check_weight("weight", x, weight)
        raise


def addmm(
    c: Tensor,
    a: Tensor,
    b: Tensor,
    *,
    beta: float | Tensor = 1,
    alpha: float | Tensor = 1,
    out: Tensor | None = None,
) -> Tensor:
    """beta · c + alpha · a · b, as torch.addmm: c broadcasts to the shape of a · b.

    Of batches a (L, M, K) and b (L, K, N), as torch.baddbmm.

    The sum is rounded once. If beta is the number 0, NaN in c has no effect; c's gradient is 0.
    alpha and beta may be tensors of one number, which may require gradients. New values need no
    compile. `out` may be c. Raises as `gemm` does.

    >>> a, b = torch.ones(2, 16).bfloat16(), torch.ones(16, 4).bfloat16()
    >>> addmm(torch.arange(4.0), a, b, beta=0.5)[0]
    tensor([16.0000, 16.5000, 17.0000, 17.5000], dtype=torch.bfloat16)
    """
    _check_scale("beta", beta)
    _check_scale("alpha", alpha)
    c, a, b = autocast(c, a, b)
    given: dict[str, Value] = {}
    if not _is_number(beta, 0):
        given["c"] = c
    else:
        if not is_dynamo_compiling():
            check_matrices_or_batches(a, b, TMA.with_meta)
            check_operand("c", c, (*a.shape[:-1], b.shape[-1]), a.device)
        if torch.is_grad_enabled() and isinstance(c, Tensor) and c.requires_grad:
            given["c"] = torch.where(c.new_zeros((), dtype=torch.bool), c, 0)
    if not _is_number(beta, 0, 1):
        given["beta"] = beta
    if not _is_number(alpha, 1):
        given["alpha"] = alpha
    outs = None if out is None else (out,)
    (result,) = fused_product(a, b, _ADDMM[tuple(given)], given, outs)
    return result


def swiglu(x: Tensor, gate_up: Tensor) -> Tensor:
    """silu(x · gateᵀ) · (x · upᵀ) of x (…, K) and gate_up (2N, K): (…, N), in one kernel.

    The first N rows of gate_up are the gate, as models store it. Raises as `gemm` does.

    >>> x, gate_up = torch.ones(1, 16).bfloat16(), torch.ones(16, 16).bfloat16()
    >>> swiglu(x, gate_up)[0, :4]
    tensor([256., 256., 256., 256.], dtype=torch.bfloat16)
    """
    return gated(x, gate_up, "swiglu")


def geglu(x: Tensor, gate_up: Tensor, approximate: str = "none") -> Tensor:
    """gelu(x · gateᵀ) · (x · upᵀ), as `swiglu`; `approximate` is "none" or "tanh", as F.gelu's.

    >>> x, gate_up = torch.ones(1, 16).bfloat16(), torch.ones(16, 16).bfloat16()
    >>> geglu(x, gate_up, approximate="tanh")[0, :4]
    tensor([256., 256., 256., 256.], dtype=torch.bfloat16)
    """
    if not isinstance(approximate, str) or approximate not in ("none", "tanh"):
        raise ValueError(f"approximate is {brief(approximate)}: it must be 'none' or 'tanh'")
    return gated(x, gate_up, "geglu" if approximate == "none" else "geglu_tanh")


_ADDMM = {
    (): Fixed(lambda acc: acc),
    ("c",): Fixed(lambda acc, c: acc + c),
    ("c", "beta"): Fixed(lambda acc, c, beta: acc + c * beta),
    ("alpha",): Fixed(lambda acc, alpha: acc * alpha),
    ("c", "alpha"): Fixed(lambda acc, c, alpha: acc * alpha + c),
    ("c", "beta", "alpha"): Fixed(lambda acc, c, beta, alpha: acc * alpha + c * beta),
}


_runs: dict[Any, LinearProduct | None] = {}


def _without_activation(x: Any, weight: Any, bias: Any) -> Tensor | None:
    """`linear` of plain tensors, or of DTensors that need no communication; None for any others.

    It takes less host time than a product with an epilogue.
    """
    if transformed() or exporting():
        return None
    if type(x) in DENSE and type(weight) in DENSE and (bias is None or type(bias) in DENSE):
        found = remembered_linear(_runs, _make, x, weight, bias)
        if found is None:
            return None
        return computed(found, _sum, needs_gradients(x, weight, bias), x, weight, bias)
    if dispatch_modes():
        return None
    return of_shards(linear, TMA.devices, x, weight, bias)


def _sum(
    x: Tensor, weight: Tensor, bias: Tensor | None, function: Function | None = None
) -> Tensor:
    """`linear` as a product with an epilogue."""
    given = {} if bias is None else {"bias": bias}
    function = function or LINEAR[None][int(bias is not None)]
    return _unflattened(x, transposed(weight), function, given)


def _make(x: Tensor, weight: Tensor, bias: Tensor | None, aligned: bool) -> LinearProduct | None:
    suited = suits(x, weight, bias, TMA.devices)
    return product(linear, x, weight, bias, aligned) if suited else None


def _takes_tensors(activation: torch.nn.Module) -> bool:
    """Whether a module must be called with the sum itself: hooks need it, and so does dynamo.

    Dynamo follows no epilogue that refers to a module, unless a function computes the same.
    """
    return has_hooks([activation]) or (is_dynamo_compiling() and not has_function(activation))


def _linear(activation: object, bias: bool) -> Function:
    """The epilogue of `linear`."""
    if isinstance(activation, torch.nn.Module):
        activation = name_of(activation) or function_of(activation)
    if activation is None or isinstance(activation, str):
        if activation in LINEAR:
            return LINEAR[activation][int(bias)]  # dynamo of torch 2.11 takes no bool
        raise ValueError(
            f"activation is {activation!r}: it must be one of {', '.join(ACTIVATIONS)}, None, "
            f"or a function{did_you_mean(activation or '', ACTIVATIONS)}"
        )
    if not callable(activation):
        raise TypeError(
            f"activation is {brief(activation)}: it must be a name, a function, or None"
        )
    return activated(activation, bias)


def gated(x: Tensor, gate_up: Tensor, name: str) -> Tensor:
    """The layer of this name in GATES: x (…, K), gate_up (2N, K) → (…, N)."""
    function, _ = GATES[name]
    try:
        x, gate_up = autocast(x, gate_up)
        rows, k = gate_up.shape
        if type(gate_up) is not Tensor and not is_dynamo_compiling() and is_sharded(gate_up):
            # here: it imports DTensor
            from cutedsl_gemm.distributed.sharding import with_whole_columns

            gate_up = with_whole_columns(gate_up)
        return _unflattened(x, transposed(gate_up.view(2, rows // 2, k)), function, {})
    except REFUSALS:
        check_weight("gate_up", x, gate_up, gate=True)
        raise


def _unflattened(x: Tensor, b: Tensor, function: Function, operands: Mapping[str, Value]) -> Tensor:
    """The product of x (…, K), as a matrix, and b."""

    def multiply(rows: Tensor) -> Tensor:
        (result,) = fused_product(rows, b, function, operands)
        return result

    if type(x) is not Tensor and x.ndim > 2 and not is_dynamo_compiling() and is_sharded(x):
        from cutedsl_gemm.distributed.sharding import batch_product  # here: it imports DTensor

        return batch_product(multiply, x)
    return unflattened(multiply(rows_of(x)), x)


def check_weight(name: str, x: Tensor, weight: Tensor, gate: bool = False, of: str = "x") -> None:
    """TypeError or ValueError unless x (…, K), called `of`, can be multiplied by the weight."""
    for each, tensor in ((of, x), (name, weight)):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{each} is {type(tensor).__name__}: it must be a torch.Tensor")
        check_dense(each, tensor)
        if tensor.dtype not in TMA.dtypes:
            raise TypeError(
                f"{each} is {tensor.dtype}: it must be {' or '.join(map(str, TMA.dtypes))}; "
                f"convert it with {each}.to({TMA.dtypes[0]}), or use torch.autocast"
            )
    if weight.ndim != 2 or x.ndim == 0 or x.shape[-1] != weight.shape[1]:
        raise ValueError(
            f"{of} has shape {tuple(x.shape)} and {name} {tuple(weight.shape)}: they must be "
            f"(…, K) and {'(2N, K)' if gate else '(N, K)'}"
        )
    if gate and weight.shape[0] % 2:
        raise ValueError(
            f"{name} has shape {tuple(weight.shape)}: it must be (2N, K), the gate and the "
            "value one above the other"
        )
    check_pair(of, x, name, weight)
    for each, tensor in ((of, x), (name, weight)):
        check_not_negative(each, tensor, f"{each}.resolve_neg()")


def _check_scale(name: str, value: object) -> None:
    """TypeError or ValueError unless alpha, or beta, is a number, or a tensor of one."""
    if type(value) in (float, int):  # faster than to ask for a Real
        return
    if not isinstance(value, (Real, Tensor)):
        raise TypeError(f"{name} is {brief(value)}: it must be a number")
    if isinstance(value, Tensor) and value.numel() != 1:
        raise ValueError(f"{name} has shape {tuple(value.shape)}: it must be one number")


def _is_number(scale: float | Tensor, *numbers: float) -> bool:
    """Whether a scale is one of these numbers. The value of a tensor is not read."""
    return not isinstance(scale, Tensor) and scale in numbers


def autocast(*tensors: Any) -> tuple[Any, ...]:
    """The tensors, cast to the dtype of torch.autocast where that is enabled."""
    if not torch._C._is_any_autocast_enabled():  # ten times faster than to ask for a device's
        return tensors
    device = next((each.device.type for each in tensors if isinstance(each, Tensor)), "meta")
    if device == "meta" or not torch.is_autocast_enabled(device):
        return tensors
    dtype = torch.get_autocast_dtype(device)
    return tuple(
        each.to(dtype) if isinstance(each, Tensor) and each.dtype in AUTOCAST else each
        for each in tensors
    )
