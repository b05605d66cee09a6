"""gemm as operators of torch's, for what torch.compile and torch.export trace: no graph breaks."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from cutedsl_gemm.api import NO_GRADIENT, Gradients, Product, gradients
from cutedsl_gemm.call import Tile, call
from cutedsl_gemm.problem import agree
from cutedsl_gemm.select.choose import three_integers
from cutedsl_gemm.select.registry import named


def gemm(
    a: Tensor, b: Tensor, out: Tensor | None, tile: Tile | None, kernel: str | None, tune: bool
) -> Tensor:
    """What `api.gemm` is inside a graph."""
    if out is None:
        made: Tensor = _anew(a, b, tile, kernel, tune)
        return made
    if torch.is_grad_enabled() and (a.requires_grad or b.requires_grad or out.requires_grad):
        raise ValueError(NO_GRADIENT)
    _into(a, b, out, tile, kernel, tune)
    return out


@torch.library.custom_op("cutedsl_gemm::gemm", mutates_args=())
def _anew(a: Tensor, b: Tensor, tile: list[int] | None, kernel: str | None, tune: bool) -> Tensor:
    return call(a, b, _tuple(tile), None, kernel, tune)(a, b, None)


@torch.library.custom_op("cutedsl_gemm::gemm_out", mutates_args=("out",))
def _into(
    a: Tensor, b: Tensor, out: Tensor, tile: list[int] | None, kernel: str | None, tune: bool
) -> None:
    call(a, b, _tuple(tile), out, kernel, tune)(a, b, out)


@_anew.register_fake
def _shaped(a: Tensor, b: Tensor, tile: list[int] | None, kernel: str | None, tune: bool) -> Tensor:
    _tuple(tile)
    rung = named(kernel, a.device)
    agree(a, b, rung.terms)
    m, n, unit = a.shape[0], b.shape[1], rung.terms_for(a, b).unit
    return a.new_empty_strided((m, n), (-(-n // unit) * unit, 1))


def _backward(ctx: Any, grad: Tensor) -> Gradients:
    return gradients(ctx, grad, _anew)


_anew.register_autograd(_backward, setup_context=Product.setup_context)


def _tuple(tile: list[int] | None) -> Tile | None:
    return None if tile is None else three_integers(tuple(tile))
