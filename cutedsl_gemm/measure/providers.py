"""The providers that bench compares gemm with: torch.mm, and quack and Triton if installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from typing import Any, TypeAlias

import torch
from torch import Tensor

Provider: TypeAlias = Callable[[Tensor, Tensor, Tensor], object]  # (a, b, out)

CUBLAS = "torch.mm"
QUACK = "quack pp 128×192", "quack 128×256"


def baselines() -> dict[str, Provider]:
    """Each provider by name, torch.mm first.

    >>> next(iter(baselines()))
    'torch.mm'
    """
    found: dict[str, Provider] = {CUBLAS: lambda a, b, out: torch.mm(a, b, out=out)}
    if find_spec("quack") is not None:
        found.update(_quack())
    if find_spec("triton") is not None:
        from cutedsl_gemm.measure import triton_gemm

        found["triton"] = triton_gemm.matmul
    return found


def _quack() -> Iterator[tuple[str, Provider]]:
    from quack.gemm_interface import gemm_tuned

    for name, config in quack_configs().items():
        yield name, partial(gemm_tuned.fn, config=config)


def quack_configs() -> dict[str, Any]:
    """Two configurations of quack, by name; the first is its default on Hopper.

    There it schedules tiles statically. A dynamic schedule begins with a counter set to zero by
    another launch.
    """
    from quack.gemm_config import GemmConfig

    pingpong, cooperative = QUACK
    static = partial(GemmConfig, is_dynamic_persistent=False)
    return {
        pingpong: static(tile_m=128, tile_n=192, pingpong=True),
        cooperative: static(tile_m=128, tile_n=256, pingpong=False),
    }
