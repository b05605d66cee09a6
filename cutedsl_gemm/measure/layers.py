"""A product with an epilogue, as each provider computes it: gemm, torch, cuBLAS, quack.

All take x (M, K), a weight (N, K) as models store it, and what the epilogue reads: a bias (N,), or
a matrix c (M, N). The weight of SwiGLU has the rows of the gate, then those of the value.

Layers of experts take x (L, M, K), weights (L, K, N), which torch.bmm multiplies, and biases
(L, 1, N) or c (L, M, N). The weights of SwiGLU have the columns of the gates, then of the values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional as F

from cutedsl_gemm.api import gemm, plan_for
from cutedsl_gemm.kernels.plan.kernel_plan import KernelPlan
from cutedsl_gemm.layers.functions import addmm, linear, swiglu
from cutedsl_gemm.measure.providers import QUACK, quack_configs
from cutedsl_gemm.measure.report import OURS
from cutedsl_gemm.select.timing import Launch

Extents: TypeAlias = tuple[int, ...]  # (M, N, K), or (L, M, N, K) of experts
ALONE, EAGER, COMPILED, FUSED = "gemm alone", "torch", "torch.compile", "cuBLAS fused"
PROVIDERS = ALONE, OURS, EAGER, COMPILED, FUSED, *QUACK


@dataclass(frozen=True)
class Layer:
    """A layer as a function of its inputs (x, weight, operand), by each provider that has it."""

    name: str
    operand: Literal["bias", "c"] | None  # that the epilogue reads
    epilogue: Callable[..., Any]  # that of gemm, for its plan
    ours: Callable[..., Tensor]
    torch: Callable[..., Tensor]
    cublas: Callable[..., Tensor] | None = None  # by its own epilogue
    quack: Callable[..., Launch] | None = None  # (config, inputs) → its launch
    gated: bool = False

    def inputs(self, shape: Extents, tensor: Callable[..., Tensor]) -> tuple[Tensor, ...]:
        """x, the weight, and the operand if there is one; `tensor` makes a contiguous one.

        The shape is (M, N, K), or (L, M, N, K) of experts.
        """
        *experts, m, n, k = shape
        x, weight = tensor(*experts, m, k), tensor(*experts, *((k, n) if experts else (n, k)))
        if self.operand is None:
            return x, weight
        if self.operand == "c":
            return x, weight, tensor(*experts, m, n)
        return x, weight, tensor(*experts, 1, n) if experts else tensor(n)

    def plans(self, shape: Extents) -> Iterator[KernelPlan]:
        """The plans of gemm: of the product alone, and of the layer."""
        empty = partial(torch.empty, dtype=torch.bfloat16)  # on the CPU, where it takes no memory
        x, weight, *operands = self.inputs(shape, empty)
        yield plan_for(x, b_of(weight))
        b = halves(b_of(weight)) if self.gated else b_of(weight)
        yield plan_for(
            x, b, epilogue=self.epilogue, **{str(self.operand): each for each in operands}
        )

    def launches(self, inputs: tuple[Tensor, ...]) -> Iterator[tuple[str, Launch]]:
        """(provider, launch) of those that have the layer, in the order of `PROVIDERS`."""
        x, weight, *_ = inputs
        yield ALONE, partial(gemm, x, b_of(weight))
        yield OURS, partial(self.ours, *inputs)
        yield EAGER, partial(self.torch, *inputs)
        yield COMPILED, partial(torch.compile(self.torch, dynamic=False), *inputs)
        if self.cublas is not None:
            yield FUSED, partial(self.cublas, *inputs)
        if self.quack is not None and find_spec("quack") is not None:
            for name, config in quack_configs().items():
                yield name, self.quack(config, *inputs)


def b_of(weight: Tensor) -> Tensor:
    """The B that x is multiplied by: (K, N) of a weight (N, K); weights (L, K, N) of experts."""
    return weight.mT if weight.ndim == 2 else weight


def halves(b: Tensor) -> Tensor:
    """The columns of gates, and those of values: (2, K, N), or (2, L, K, N)."""
    return b.unflatten(-1, (2, -1)).movedim(-2, 0)


def _swiglu(x: Tensor, weight: Tensor) -> Tensor:
    gate, up = F.linear(x, weight).chunk(2, dim=-1)
    return F.silu(gate) * up


def _quack_sum(config: Any, x: Tensor, weight: Tensor, operand: Tensor) -> Launch:
    """The product and a bias, or a matrix."""
    from quack.gemm_interface import gemm_tuned

    added = {"C" if operand.ndim == 2 else "bias": operand}

    def launch() -> Tensor:
        out = x.new_empty(len(x), len(weight))
        gemm_tuned.fn(x, weight.mT, out, **added, config=config)
        return out

    return launch


def _quack_activated(
    activation: str, config: Any, x: Tensor, weight: Tensor, bias: Tensor | None = None
) -> Launch:
    """The product, a bias, and an activation or a gate."""
    from quack.gemm_interface import gemm_act

    options = {"store_preact": False, "tuned": False, "config": config}
    return lambda: gemm_act(x, weight.mT, bias=bias, activation=activation, **options)[1]


def _quack_swiglu(config: Any, x: Tensor, weight: Tensor) -> Launch:
    """Of a weight that is repacked before: quack's has a row of the gate, then one of the value."""
    repacked = weight.unflatten(0, (2, -1)).transpose(0, 1).flatten(0, 1)
    return _quack_activated("swiglu", config, x, repacked)


SWIGLU = Layer(
    "swiglu",
    None,
    lambda gate, up: F.silu(gate) * up,
    ours=swiglu,
    torch=_swiglu,
    quack=_quack_swiglu,
    gated=True,
)
LAYERS = (
    Layer(
        "bias",
        "bias",
        lambda acc, bias: acc + bias,
        ours=linear,
        torch=lambda x, weight, bias: F.linear(x, weight, bias),
        quack=_quack_sum,
    ),
    Layer(
        "bias + gelu (tanh)",
        "bias",
        lambda acc, bias: F.gelu(acc + bias, approximate="tanh"),
        ours=partial(linear, activation="gelu_tanh"),
        torch=lambda x, weight, bias: F.gelu(F.linear(x, weight, bias), approximate="tanh"),
        cublas=lambda x, weight, bias: torch._addmm_activation(bias, x, weight.mT, use_gelu=True),
        quack=partial(_quack_activated, "gelu_tanh_approx"),
    ),
    Layer(
        "bias + gelu",
        "bias",
        lambda acc, bias: F.gelu(acc + bias),
        ours=partial(linear, activation="gelu"),
        torch=lambda x, weight, bias: F.gelu(F.linear(x, weight, bias)),
    ),
    Layer(
        "addmm",
        "c",
        lambda acc, c: acc + c,
        ours=lambda x, weight, c: addmm(c, x, weight.mT),
        torch=lambda x, weight, c: F.linear(x, weight) + c,
        cublas=lambda x, weight, c: torch.addmm(c, x, weight.mT),
        quack=_quack_sum,
    ),
    SWIGLU,
)
