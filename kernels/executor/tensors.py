"""The tensors that a plan takes: those of its compiled kernel's signature."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from cutedsl_gemm.kernels.plan.arguments import (
    Argument,
    Exchange,
    GatheredRows,
    ScatteredRows,
    arguments,
    parts_mode,
)
from cutedsl_gemm.kernels.plan.kernel_plan import KernelPlan


def on_cpu() -> AbstractContextManager[object]:
    """A context in which torch makes tensors on the CPU, whatever its default device is.

    torch.device("cpu") is one, but each call of torch inside it goes through Python. It is entered
    only if the default is another.
    """
    default = torch.get_default_device()
    return nullcontext() if default.type == "cpu" else torch.device("cpu")


def check_tensors(plan: KernelPlan, *tensors: Tensor) -> None:
    """ValueError unless a, b, …, out are tensors that the plan's compiled kernel takes.

    They are those of `arguments(plan)`, in its order. Their extents must agree and be positive. Of
    each, the dtype, the contiguous mode, and the alignment of the leading stride and of the address
    are those of the kernel's signature. A stride counts even if its mode has one element, as it
    does there.

    >>> from cutedsl_gemm.kernels.sm80.rungs import swizzled
    >>> a, b, out = empty_tensors(swizzled(), 5, 6, 7)
    >>> check_tensors(swizzled(), a, b, out)
    >>> check_tensors(swizzled(), a.contiguous(), b, out)
    Traceback (most recent call last):
    ...
    ValueError: a has strides (7, 1): sm80_swizzled takes (s, 1), s a multiple of 8 and at least 7
    """
    names = [*arguments(plan)]
    if len(tensors) < len(names) and (plan.gathered or plan.scattered):
        what = GatheredRows if plan.gathered else ScatteredRows
        raise ValueError(
            f"{plan.name} talks with other GPUs: pass exchange={what.__name__}"
            f"({', '.join(what._fields)})"
        )
    if len(tensors) != len(names):
        raise ValueError(
            f"{plan.name} takes {len(names)} tensors ({', '.join(names)}), and was given "
            f"{len(tensors)}: pass the operands of its epilogue as operands=(…)"
        )
    extents: dict[str, tuple[int, str]] = {}  # mode → extent, the tensor that has it
    for (name, argument), tensor in zip(arguments(plan).items(), tensors, strict=True):
        if tensor.ndim != len(argument.modes):
            count = len(argument.modes)
            need = f"{('one', 'two', 'three', 'four')[count - 1]} dimension{'s' * (count > 1)}"
            raise ValueError(f"{name} has shape {tuple(tensor.shape)}: it must have {need}")
        for mode, extent in zip(argument.modes, tensor.shape, strict=True):
            wanted, of = extents.setdefault(mode, (extent, name))
            if extent != wanted or extent == 0:
                need = f"{wanted}, as in {of}" if wanted else "positive"
                raise ValueError(f"{name} has {mode} = {extent}: it must be {need}")
        if [*tensor.shape] != (shape := argument.shape({m: e for m, (e, _) in extents.items()})):
            raise ValueError(f"{name} has shape {tuple(tensor.shape)}: it must be {tuple(shape)}")
        for problem in _tensor_problems(plan, argument, tensor):
            raise ValueError(f"{name} {problem}")
    for mode, parts in _parts(plan, extents["M"][0], extents["N"][0]).items():
        found, name = extents[mode]
        if found != parts:
            raise ValueError(f"{name} has {mode} = {found}: it must be {parts}")


def other_gpus_tensors(plan: Any, a: Tensor, exchange: Exchange) -> tuple[Tensor, ...]:
    """What a kernel takes after B to talk with other GPUs: these tensors, and flags.

    ValueError unless all GPUs have equally many rows, a multiple of the height of a cluster tile.
    """
    own, number, *there = exchange
    rows, tile = own.shape[-2], plan.cluster_tile[0]
    if rows == 0 or rows % tile or a.shape[0] % rows or not 0 <= number < a.shape[0] // rows:
        raise ValueError(
            f"this GPU is number {number}, with {rows} of {a.shape[0]} rows: all GPUs must have "
            f"equally many rows, a multiple of {tile} for the tiles of {plan.name}"
        )
    gpus = a.shape[0] // rows
    shape = (gpus, -(-rows // plan.piece_rows)) if plan.scattered else (gpus,)
    flags = torch.zeros(shape, dtype=torch.int32)
    return own, flags, *there, *(flags for _ in there)


def _parts(plan: Any, m: int, n: int) -> dict[str, int]:
    """The parts in which a plan stores reductions of an (M, N) result, by the mode's name."""
    results = plan.epilogue.results
    return {
        parts_mode(result): plan.reduction_parts(result, m, n)
        for result in results
        if result.over is not None
    }


def _tensor_problems(plan: KernelPlan, argument: Argument, tensor: Tensor) -> Iterator[str]:
    """What the plan's kernel refuses of one tensor, as a predicate of its name."""
    name, alignment, dtype = plan.name, argument.alignment, getattr(torch, argument.dtype)
    if tensor.dtype != dtype or tensor.device.type != "cpu":
        yield f"is {tensor.dtype} on {tensor.device}: the executor of {name} takes {dtype} on cpu"
    leading, lines, modes = [*tensor.stride()], [*tensor.shape], [*argument.modes]
    one, contiguous = leading.pop(argument.contiguous), lines.pop(argument.contiguous)
    modes.pop(argument.contiguous)
    overlapping = any(  # the matrices of a batch, or of B, may overlap
        not (mode == "L" or mode.isdigit()) and count > 1 and stride < contiguous
        for mode, count, stride in zip(modes, lines, leading, strict=True)
    )
    if one != 1 or any(stride % alignment for stride in leading) or overlapping:
        takes = ["s"] * len(tensor.shape)
        takes[argument.contiguous] = "1"
        each = ", each s" if len(leading) > 1 else ", s"
        and_s = f"{each} a multiple of {alignment} and at least {contiguous}" if leading else ""
        takes_strides = f"({', '.join(takes)}{',' * (not leading)})"
        yield f"has strides {tensor.stride()}: {name} takes {takes_strides}{and_s}"
    multiple = alignment * tensor.element_size()
    if tensor.data_ptr() % multiple:
        yield (
            f"starts at address {tensor.data_ptr():#x}: {name} takes multiples of {multiple} bytes"
        )


def empty_tensors(plan: KernelPlan, m: int, n: int, k: int, batch: int = 1) -> tuple[Tensor, ...]:
    """New tensors that the plan takes, a (M, K), b (K, N), …, out (M, N), filled with NaN.

    If the plan is batched, they have a first mode of extent `batch`.

    >>> from cutedsl_gemm.kernels.sm80.rungs import swizzled
    >>> [tensor.stride() for tensor in empty_tensors(swizzled(a_major="MN"), 5, 6, 7)]
    [(1, 8), (8, 1), (8, 1)]
    """
    extents = {"L": batch, "M": m, "N": n, "K": k, **_parts(plan, m, n)}

    def empty(argument: Argument) -> Tensor:
        shape = argument.shape(extents)
        inner = shape.pop(argument.contiguous)
        leading = -(-inner // argument.alignment) * argument.alignment
        memory = torch.full((*shape, leading), torch.nan, dtype=getattr(torch, argument.dtype))
        return memory[..., :inner].movedim(-1, argument.contiguous)

    with on_cpu():
        return tuple(map(empty, arguments(plan).values()))
