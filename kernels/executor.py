"""What executors share: how they are driven, and how a matrix falls into tiles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from layouts import Layout, size


def on_cpu(steps: Callable[..., Iterator[float]]) -> Callable[..., None]:
    """An executor (plan, a, b, out, tell=None) from the steps that it takes.

    `steps` yields the share that is done, which `tell` is told. All is made on the CPU, whatever
    torch's default device is.
    """

    @wraps(steps)
    def gemm(
        plan: Any, a: Tensor, b: Tensor, out: Tensor, tell: Callable[[float], object] | None = None
    ) -> None:
        with torch.device("cpu"):
            for share in steps(plan, a, b, out):
                if tell is not None:
                    tell(share)

    return gemm


def every(share: Layout) -> tuple[Tensor, Tensor]:
    """Every (thread, value), to be broadcast."""
    return torch.arange(size(share[0]))[:, None], torch.arange(size(share[1]))


def tiles(matrix: Tensor, rows: int, columns: int, at_once: int = 1) -> Tensor:
    """The matrix as (row tiles, column tiles, rows, columns), zero outside, as the guards say.

    The row tiles are a multiple of `at_once`.
    """
    m, n = matrix.shape
    down, across = -(-m // (rows * at_once)) * at_once, -(-n // columns)
    padded = matrix.new_zeros(down * rows, across * columns)
    padded[:m, :n] = matrix
    return padded.view(down, rows, across, columns).transpose(1, 2)
