"""A requested product: its epilogue with these operands, and its problem.

gemm(a, b, epilogue=lambda acc, bias: F.gelu(acc + bias), bias=bias)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from inspect import Parameter, signature
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

from cutedsl_gemm.inputs.checks import check_matrices_or_batches
from cutedsl_gemm.inputs.operands import Bound, Value, bind
from cutedsl_gemm.inputs.problem import Problem, Requirements
from cutedsl_gemm.inputs.tensors import aligned, empty_padded, problem_of
from cutedsl_gemm.kernels.epilogue.expression import (
    PLAIN,
    Epilogue,
    EpilogueError,
    EpilogueOperand,
    ShapeError,
)
from cutedsl_gemm.kernels.epilogue.traced import traced
from layouts.errors import brief, did_you_mean

OF_GEMM = "tile", "out", "kernel", "tune", "invariant"  # its arguments beside a, b and epilogue


class Fixed:
    """A function that always computes the same: the object itself is its key in caches.

    `backward`, if known, is its derivative by torch's kernels: (gradient, *stored values) → the
    gradient of each accumulator. `derivative.with_stored` says what is stored. The gradient of each
    operand is then that of the first accumulator, as where the operand is added to it.
    """

    __slots__ = ("backward", "function")

    def __init__(
        self, function: Callable[..., Any], backward: Callable[..., tuple[Any, ...]] | None = None
    ) -> None:
        self.function, self.backward = function, backward


Function: TypeAlias = Callable[..., Any] | Epilogue | Fixed


class Request(NamedTuple):
    """The epilogue, its operands in its order, and the shape of C: (M, N) or (L, M, N)."""

    epilogue: Epilogue
    bound: tuple[Bound, ...]
    shape: tuple[int, ...]

    def problem(
        self,
        a: Tensor,
        b: Tensor,
        requirements: Requirements,
        invariant: bool = False,
        on_copies: bool = False,
    ) -> Problem:
        """The problem that a plan is made for; see `problem_of`."""
        first, *_ = parts_of(a, b)
        found = problem_of(a, first, requirements, invariant, on_copies)
        return replace(found, epilogue=self.epilogue)


def request(
    a: Tensor,
    b: Tensor,
    function: Function,
    operands: Mapping[str, Value],
    requirements: Requirements,
) -> Request:
    """The epilogue of these operands; TypeError or ValueError if they do not fit a · b.

    `function` is the epilogue, or the function from which it is traced.
    """
    parts = parts_of(a, b)
    check_matrices_or_batches(a, parts[0], requirements)
    shape = *a.shape[:-1], b.shape[-1]
    bound = _bound(operands, shape, a.device)
    if isinstance(function, Epilogue):
        epilogue = _with_operands(function, bound)
        if not epilogue.gives_matrices:
            whole = {each.name for each in function.operands if each.is_matrix}
            bound = _bound(operands, shape, a.device, whole)
            epilogue = _with_operands(function, bound)
        if epilogue.accumulators != len(parts):
            raise EpilogueError(
                f"epilogue takes {epilogue.accumulators} accumulators, and b of shape "
                f"{tuple(b.shape)} makes {len(parts)}: b is (K, N) for one, (2, K, N) for two"
            )
    else:
        function = function.function if isinstance(function, Fixed) else function
        if not callable(function):
            raise TypeError(
                f"epilogue is {brief(function)}: it must be a function of the product, such as "
                "torch.relu, or lambda acc: acc * 2"
            )
        try:
            epilogue = traced(function, _operands(bound), len(parts), len(shape))
        except ShapeError:  # at M = 1, say, where a matrix is bound as a row vector
            bound = _bound(operands, shape, a.device, {*operands})
            epilogue = traced(function, _operands(bound), len(parts), len(shape))
    in_order = tuple(bound[operand.name] for operand in epilogue.operands)
    return Request(PLAIN if epilogue == PLAIN else epilogue, in_order, shape)


def _bound(
    operands: Mapping[str, Value],
    shape: tuple[int, ...],
    device: torch.device,
    whole: Collection[str] = (),
) -> dict[str, Bound]:
    """The operands by name, those of `whole` as matrices if they have the shape of C."""
    return {name: bind(name, each, shape, device, name in whole) for name, each in operands.items()}


def _operands(bound: Mapping[str, Bound]) -> tuple[EpilogueOperand, ...]:
    return tuple(each.operand for each in bound.values())


def epilogue_of(
    epilogue: Function | None, operands: Mapping[str, Value], called: Callable[..., Any]
) -> Function:
    """The epilogue of a call of gemm, or the like; PLAIN if it has none.

    TypeError if there is no epilogue for operands, or if one is an argument that gemm alone has.
    """
    for name in operands:
        if name in OF_GEMM:
            raise TypeError(
                f"{called.__name__} has no argument {name}, which only gemm takes: omit it; it "
                f"takes {', '.join(own_names(called))}, and the operands of an epilogue"
            )
    if epilogue is not None or not operands:
        return PLAIN if epilogue is None else epilogue
    nearest = "".join(did_you_mean(name, own_names(called)) for name in operands)
    raise TypeError(
        f"unexpected arguments ({', '.join(operands)}): without an epilogue, gemm takes no "
        f"operands; pass epilogue, a function of the product and of these, or omit them{nearest}"
    )


def own_names(called: Callable[..., Any]) -> list[str]:
    """The names of a function's arguments, except those that `**operands` collects."""
    parameters = signature(called).parameters.values()
    return [each.name for each in parameters if each.kind is not each.VAR_KEYWORD]


def check_names(function: object, called: Callable[..., Any]) -> None:
    """EpilogueError if an operand of a function has the name of an argument of gemm's own."""
    try:
        _, *operands = signature(function).parameters.values()  # type: ignore[arg-type]
    except (TypeError, ValueError):  # no function, or a builtin
        return
    for name in (each.name for each in operands if each.default is Parameter.empty):
        if name in own_names(called):
            raise EpilogueError(
                f"epilogue takes an operand {name}, and gemm has an argument of this name: give "
                "the operand another"
            ) from None


def _with_operands(epilogue: Epilogue, given: Mapping[str, Bound]) -> Epilogue:
    """The epilogue, with the modes, dtypes and strides of what is passed for its operands."""
    names = [operand.name for operand in epilogue.operands]
    if set(names) != set(given):
        raise EpilogueError(
            f"epilogue has the operands ({', '.join(names)}), and gemm was given "
            f"({', '.join(given)}): pass each by its name"
        )
    return replace(epilogue, operands=tuple(given[name].operand for name in names))


def in_parts(a: Tensor, b: Tensor) -> bool:
    """Whether B has a matrix for each of two accumulators, and so one mode more than A."""
    return b.ndim == a.ndim + 1


def parts_of(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    """B (K, N), or both parts of B (2, K, N), where a is a matrix; of a batch, likewise.

    Parts of batches are (L, K, N). ValueError for another number of parts than two.
    """
    if not isinstance(a, Tensor) or not isinstance(b, Tensor) or not in_parts(a, b):
        return (b,)
    if b.shape[0] != 2:
        of_one, of_two = ("K, N", "2, K, N") if a.ndim == 2 else ("L, K, N", "2, L, K, N")
        raise ValueError(
            f"b has shape {tuple(b.shape)}: it must be ({of_one}), or ({of_two}) for an epilogue "
            "of two accumulators"
        )
    return b[0], b[1]


def readable(a: Tensor, b: Tensor, requirements: Requirements) -> bool:
    """Whether a kernel reads all parts of B in place."""
    return all(aligned(part, requirements) for part in parts_of(a, b))


def readable_copy(b: Tensor) -> Tensor:
    """A copy of both parts of B that every kernel reads, contiguous along K, or along N if b is."""
    if b.stride(-1) == 1:
        return empty_padded(b, b.shape).copy_(b)
    return empty_padded(b, b.mT.shape).mT.copy_(b)
