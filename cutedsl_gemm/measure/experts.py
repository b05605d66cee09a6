"""Batches with an epilogue, as in a mixture of experts, measured as `epilogues` measures layers."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

from cutedsl_gemm.api import gemm
from cutedsl_gemm.layers.functions import addmm
from cutedsl_gemm.measure import epilogues
from cutedsl_gemm.measure.layers import Layer, halves

SHAPES = (  # L, M, N and K; N is that of the weights' columns
    (8, 1024, 4096, 1024),
    (8, 512, 28672, 4096),
    (32, 256, 5760, 2880),
    (64, 128, 1024, 1024),
)


def _gelu(acc: Tensor, bias: Tensor) -> Tensor:
    return F.gelu(acc + bias, approximate="tanh")


def _swiglu(gate: Tensor, up: Tensor) -> Tensor:
    return F.silu(gate) * up


LAYERS = (
    Layer(
        "bias + gelu (tanh)",
        "bias",
        _gelu,
        ours=lambda x, weights, bias: gemm(x, weights, epilogue=_gelu, bias=bias),
        torch=lambda x, weights, bias: F.gelu(torch.baddbmm(bias, x, weights), approximate="tanh"),
    ),
    Layer(
        "addmm",
        "c",
        lambda acc, c: acc + c,
        ours=lambda x, weights, c: addmm(c, x, weights),
        torch=lambda x, weights, c: torch.baddbmm(c, x, weights),
    ),
    Layer(
        "swiglu",
        None,
        _swiglu,
        ours=lambda x, weights: gemm(x, halves(weights), epilogue=_swiglu),
        torch=lambda x, weights: _swiglu(*torch.bmm(x, weights).chunk(2, dim=-1)),
        gated=True,
    ),
)
CASES = tuple((layer, shape) for layer in LAYERS for shape in SHAPES)


def main(file: Path | None = None) -> None:
    """Print the table; write the samples as CSV."""
    epilogues.main(file, CASES)
