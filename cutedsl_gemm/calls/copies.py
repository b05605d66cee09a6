"""Copies of matrices by the copy kernel, where one mode of both is contiguous."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeAlias

import torch
from torch import Tensor

from cutedsl_gemm.calls.on_device import on_device
from cutedsl_gemm.inputs.problem import Requirements, dtype_name
from cutedsl_gemm.inputs.tensors import aligned, empty_aligned
from cutedsl_gemm.kernels.compile import build
from cutedsl_gemm.kernels.copies.plan import DTYPES, TILES, CopyPlan, copy_plan
from cutedsl_gemm.select.registry import named

Pair: TypeAlias = tuple[Tensor, Tensor]  # (source, target), of one shape and dtype
Copies: TypeAlias = Callable[..., None]  # (*pairs)

OVERLAP = (9, 0)  # the compute capability that introduced programmatic dependent launch


def copy(*pairs: Pair) -> None:
    """Copy each source to its target: tensors of one dtype on one device, up to two pairs.

    One launch of the copy kernel copies all pairs of 16-bit elements whose rows, or columns, are
    contiguous in both. torch copies the others. Batches count as matrices if the rows of all their
    matrices are equally far apart.
    """
    rows = []
    for source, target in pairs:
        found = _rows(source, target)
        if found is None:
            target.copy_(source)
        else:
            rows.append(found)
    if rows:
        _copies(*rows)(*rows)


def aligned_copies(a: Tensor, b: Tensor, requirements: Requirements) -> tuple[Tensor, Tensor]:
    """The operands, each itself if a kernel with these requirements accepts it, else a copy."""
    readable = [each if aligned(each, requirements) else empty_aligned(each) for each in (a, b)]
    pairs = zip((a, b), readable, strict=True)
    copy(*((each, target) for each, target in pairs if each is not target))
    return readable[0], readable[1]


def plan_of(*pairs: Pair, overlap: bool = True) -> CopyPlan:
    """The plan that copies pairs with contiguous rows: of all tiles, the one with fewest blocks.

    >>> tall, wide = (torch.empty(shape, dtype=torch.float16) for shape in ((4096, 77), (77, 4096)))
    >>> plan_of((tall, tall)).tile, plan_of((wide, wide)).tile
    ((32, 128), (16, 256))
    """

    def blocks(tile: tuple[int, int]) -> int:
        shapes = (target.shape for _, target in pairs)
        return sum(-(-rows // tile[0]) * -(-columns // tile[1]) for rows, columns in shapes)

    return _plan(dtype_name(pairs[0][0].dtype), len(pairs), min(TILES, key=blocks), overlap)


@cache
def _plan(dtype: str, matrices: int, tile: tuple[int, int], overlap: bool) -> CopyPlan:
    return copy_plan(dtype, matrices, tile, overlap=overlap)


def _rows(source: Tensor, target: Tensor) -> Pair | None:
    """The pair with contiguous rows, transposed if need be; None if the copy kernel refuses it."""
    if dtype_name(source.dtype) not in DTYPES:
        return None
    for pair in ((source, target), (source.mT, target.mT)):
        if source.ndim == 3:
            if not all(map(_is_evenly_spaced, pair)):
                continue
            pair = _flattened(pair[0]), _flattened(pair[1])
        disjoint_rows = pair[1].shape[0] == 1 or pair[1].stride(0) >= pair[1].shape[1]
        if pair[0].stride(1) == pair[1].stride(1) == 1 and disjoint_rows:
            return pair
    return None


def _is_evenly_spaced(batch: Tensor) -> bool:
    """Whether the rows of all matrices of a batch are equally far apart."""
    _, rows, _ = batch.shape
    return batch.stride(0) == rows * batch.stride(1)


def _flattened(batch: Tensor) -> Tensor:
    """The rows of all matrices of a batch, as those of one."""
    (count, rows, columns), (_, down, across) = batch.shape, batch.stride()
    return batch.as_strided((count * rows, columns), (down, across))


def _copies(*pairs: Pair) -> Copies:
    """The executor, or the compiled kernel on the device of the pairs."""
    device = pairs[0][0].device
    if device.type == "cpu":
        return plan_of(*pairs).execute
    capability = torch.cuda.get_device_capability(device)
    plan = plan_of(*pairs, overlap=capability >= OVERLAP)
    return _launcher(plan, device)


@cache
def _launcher(plan: CopyPlan, device: torch.device) -> Copies:
    """The compiled kernel on its device, on torch's current stream there."""
    arch = named(None, device).arch(torch.cuda.get_device_capability(device))
    if arch is None:
        return _by_torch
    kernel = build.load(plan, arch)
    return on_device(lambda *pairs: kernel(pairs), device)


def _by_torch(*pairs: Pair) -> None:
    for source, target in pairs:
        target.copy_(source)
