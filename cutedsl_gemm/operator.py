"""gemm as operators of torch's, for what torch.compile and torch.export trace: no graph breaks."""

import torch
from torch import Tensor

from cutedsl_gemm import api
from cutedsl_gemm.call import Tile
from cutedsl_gemm.problem import agree, lines
from cutedsl_gemm.rungs import named


def gemm(
    a: Tensor, b: Tensor, out: Tensor | None, tile: Tile | None, kernel: str | None, tune: bool
) -> Tensor:
    """What `api.gemm` is inside a graph."""
    extents = None if tile is None else list(tile)
    if out is None:
        made: Tensor = _anew(a, b, extents, kernel, tune)
        return made
    _into(a, b, out, extents, kernel, tune)
    return out


@torch.library.custom_op("cutedsl_gemm::gemm", mutates_args=())
def _anew(a: Tensor, b: Tensor, tile: list[int] | None, kernel: str | None, tune: bool) -> Tensor:
    return api.gemm(a, b, tile=_tuple(tile), kernel=kernel, tune=tune)


@torch.library.custom_op("cutedsl_gemm::gemm_out", mutates_args=("out",))
def _into(
    a: Tensor, b: Tensor, out: Tensor, tile: list[int] | None, kernel: str | None, tune: bool
) -> None:
    api.gemm(a, b, out=out, tile=_tuple(tile), kernel=kernel, tune=tune)


@_anew.register_fake
def _shaped(a: Tensor, b: Tensor, tile: list[int] | None, kernel: str | None, tune: bool) -> Tensor:
    rung = named(kernel, a.device)
    agree(a, b, rung.terms)
    return lines(a, (a.shape[0], b.shape[1]), rung.terms_for(a, b).unit)


def _kept(ctx, inputs, output):
    a, b, _, *ctx.how = inputs
    ctx.save_for_backward(a, b)


def _backward(ctx, grad):
    a, b = ctx.saved_tensors
    needs_a, needs_b, *_ = ctx.needs_input_grad
    grad = api.laid_out(grad)
    da = _anew(grad, b.mT, None, *ctx.how) if needs_a else None
    return da, _anew(a.mT, grad, None, *ctx.how) if needs_b else None, None, None, None


_anew.register_autograd(_backward, setup_context=_kept)


def _tuple(tile: list[int] | None) -> Tile | None:
    if tile is None:
        return None
    m, n, k = tile
    return m, n, k
