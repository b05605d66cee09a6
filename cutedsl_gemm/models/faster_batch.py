"""Products of batches, by gemm where it is expected to be at least as fast, else by torch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling

from cutedsl_gemm.api import gemm
from cutedsl_gemm.inputs.problem import TMA
from cutedsl_gemm.inputs.remember import remember
from cutedsl_gemm.inputs.tensors import DENSE, aligned_starts, fits
from cutedsl_gemm.inputs.transforms import dispatch_modes, transformed
from cutedsl_gemm.layers.linear_calls import extents, needs_gradients
from cutedsl_gemm.models import faster
from cutedsl_gemm.select.preference import batch_beats_torch

_suited: dict[Any, bool] = {}


def batch_by_gemm(a: Tensor, b: Tensor) -> Tensor | None:
    """a (…, M, K) · b (…, K, N) by gemm; None if torch is to compute it.

    None where `faster.by_gemm` gives None; where modes before the last two differ; in compiled
    graphs, where torch replaces the products of attention by a kernel of its own; inside a
    TorchDispatchMode; and for DTensors and FakeTensors.
    """
    if transformed() or is_dynamo_compiling() or dispatch_modes() or torch._C._is_tracing():
        return None
    if type(a) not in DENSE or type(b) not in DENSE or a.is_neg() or b.is_neg():
        return None
    if a.layout != torch.strided or b.layout != torch.strided or a.shape[:-2] != b.shape[:-2]:
        return None
    if needs_gradients(a, b, None) and a.numel() * b.shape[-1] < faster.LEAST_TRAINED:
        return None
    cast = torch._C._is_any_autocast_enabled()
    if cast:
        tensors = faster.autocast(a, b)
        if tensors is None:
            return None
        a, b = tensors
    # fmt: off
    signature = (
        a.shape, a.stride(), b.shape, b.stride(), a.dtype, b.dtype, a.get_device(), b.get_device(),
    )
    # fmt: on
    suited = _suited.get(signature)
    if suited is None:
        suited = remember(_suited, signature, _suit(a, b))
    if suited and aligned_starts(a, b):
        return gemm(a, b) if a.ndim == 3 else gemm(_batch(a), _batch(b)).unflatten(0, a.shape[:-2])
    multipliable = a.shape[-1] == b.shape[-2]  # else torch says why not
    return torch.matmul(a, b) if cast and multipliable else None  # torch would cast them again


def _batch(tensor: Tensor) -> Tensor:
    """A tensor (…, rows, columns) as (L, rows, columns); a copy if need be, as torch makes it."""
    return tensor.reshape(-1, *tensor.shape[-2:])


def _suit(a: Tensor, b: Tensor) -> bool:
    """Whether one kernel of gemm multiplies batches like these, expected to be as fast as torch."""
    if a.numel() == 0 or b.numel() == 0 or a.is_meta:
        return False
    first, weight = (each[(0,) * (each.ndim - 2)] for each in (a, b.mT))  # as of a linear layer
    if not faster.suits(first, weight, None) or not faster.on_hopper(a.device):
        return False
    mnk = extents(first, weight)
    if mnk is None:
        return False
    like = [torch.empty_strided(each.shape, each.stride(), device="meta") for each in (a, b)]
    batches = [_batch(each) for each in like]
    if len(batches[0]) == 1:
        return False
    in_place = mnk[1] % TMA.alignment == 0 and all(fits(each, TMA) for each in batches)
    return batch_beats_torch(*mnk, in_place)
