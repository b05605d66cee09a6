"""How gemm of DTensors is divided among the ranks of a mesh: the rules that torch chooses among.

A rule splits one mode of the product along one dimension of the mesh. Tensors that have the mode
are sharded along it, and the others are replicated:

    mode    a          b          an operand, or a result, that has M, or N
    M       Shard(0)   Replicate  Shard
    N       Replicate  Shard(1)   Shard
    K       Shard(1)   Shard(0)   results are partial sums

Of a batch, the matrices are a mode, too, the first.

A result that the epilogue reduces over M is partial where M is split. Two more rules split no
mode: if a or b is a partial sum and the other is replicated, C is a partial sum. These two and the
split of K need an epilogue that is linear in the accumulators, which a gelu is not: f(x) + f(y)
differs from f(x + y). torch adds up the redistribution that each rule needs and takes the cheapest.

Importing this module registers the rules of the operators that multiply as torch's public
`register_sharding` would, with two differences. That function remembers a choice by tensors and
integers alone, so that it would use the rule of one epilogue for another. And it knows no operator
that returns a list.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from itertools import combinations
from math import prod
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.distributed.tensor._op_schema import OpSchema, OpStrategy, RuntimeSchemaInfo
from torch.distributed.tensor._ops.utils import expand_to_full_mesh_op_strategy
from torch.distributed.tensor.placement_types import Placement

from cutedsl_gemm.inputs.remember import REMEMBERED
from cutedsl_gemm.inputs.views import rows_of, unflattened
from cutedsl_gemm.kernels.epilogue.expression import PLAIN, Epilogue, EpilogueOperand, Instruction
from cutedsl_gemm.kernels.epilogue.text import from_text
from cutedsl_gemm.kernels.epilogue.traced import traced
from cutedsl_gemm.layers.activations import LINEAR
from cutedsl_gemm.models import faster  # noqa: F401, they define the operators
from cutedsl_gemm.ops import fused_operator, operator  # noqa: F401, they define the operators

Rule: TypeAlias = list[Placement]  # of the results, a, b, and the operands
Modes: TypeAlias = str  # of a tensor, a letter each: "MK"; "." for an extent that is not divided

ADDENDS = 6  # the most operands of an epilogue that is checked for linearity
REDUCED = {"sum": "sum", "amax": "max", "amin": "min"}  # an epilogue's reductions, as Partial's


def rules(
    epilogue: Epilogue,
    operands: tuple[Modes, ...],
    invariant: bool,
    even: bool,
    batch: bool = False,
) -> list[Rule]:
    """The placements along one dimension of a mesh under which each rank has its part of C.

    `operands` are the modes of the epilogue's tensors. If `invariant`, no sum is divided. Unless
    `even`, a rank may have an empty shard, which has no extremum.

    >>> for rule in rules(PLAIN, (), False, True):
    ...     print(*map(str, rule))
    R R R
    S(0) S(0) R
    S(1) R S(1)
    P(sum) S(1) S(0)
    P(sum) P(sum) R
    P(sum) R P(sum)
    >>> for rule in rules(PLAIN, (), True, True, batch=True):
    ...     print(*map(str, rule))
    R R R
    S(0) S(0) S(0)
    S(1) S(1) R
    S(2) R S(2)
    """
    of_batch = "L" if batch else ""
    results = tuple(of_batch + "".join(each.modes) for each in epilogue.results)
    a, b = f"{of_batch}MK", f"{of_batch}KN"
    if epilogue.accumulators > 1:
        b = f".{b}"
    tensors = (*results, a, b, *operands)
    found: list[Rule] = [[Replicate() for _ in tensors]]
    for mode in f"{of_batch}MN":
        rule = [_split(mode, each) for each in tensors]
        for place, result in enumerate(epilogue.results):
            if result.over == mode:
                rule[place] = Partial(REDUCED[str(result.reduction)])
        found.append(rule)
    if not even:
        extrema = [result.reduction in ("amax", "amin") for result in epilogue.results]
        found = [each for each in found if not _divided(each, extrema)]
    sums: list[Placement] = [Partial() for _ in results]
    for addends in linear_in(epilogue):
        beside: list[Placement] = [
            Partial() if i in addends else Replicate() for i in range(len(operands))
        ]
        found.append([*sums, _split("K", a), _split("K", b), *beside])
        found.append([*sums, Partial(), Replicate(), *beside])
        found.append([*sums, Replicate(), Partial(), *beside])
    if invariant:  # the bits of a sum over ranks depend on their number
        found = [rule for rule in found if not any(isinstance(each, Partial) for each in rule)]
    return found


def with_whole_columns(weight: DTensor) -> DTensor:
    """The same matrix, in which each rank has all rows of the columns that it has.

    A shard of the rows of gate and value, one above the other, need not have both.
    """
    kept = (
        each.is_replicate() or each.is_partial() or each == Shard(1) for each in weight.placements
    )
    pairs = zip(weight.placements, kept, strict=True)
    return weight.redistribute(placements=[each if whole else Replicate() for each, whole in pairs])


def batch_product(multiply: Callable[[Tensor], Tensor], x: DTensor) -> Tensor:
    """`multiply` of the rows of a batch x (…, K), of three modes or more: (…, N).

    A sharded mode of the batch that the ranks divide, such as the sequence, becomes the first: the
    rows that a rank has are then neighbours, and need no communication. Other sharded modes of the
    batch are gathered, since torch cannot flatten them; so are rows of partial sums that the ranks
    do not divide into whole samples.
    """
    sharded = {each.dim for each in x.placements if each.is_shard()} - {x.ndim - 1}
    kept = next((each for each in sorted(sharded) if x.shape[each] % _ranks(x, each) == 0), None)
    mode = kept or 0
    batch = _gathered(x, sharded - {kept}).movedim(mode, 0)
    rows: Any = multiply(rows_of(batch))
    if batch.shape[0] % _ranks(rows, 0):
        rows = _gathered(rows, {0})
    return unflattened(rows, batch).movedim(0, mode).contiguous()


def _gathered(x: DTensor, modes: Collection[int | None]) -> DTensor:
    """The same tensor, of which each rank has these modes whole."""
    placements = tuple(
        Replicate() if isinstance(each, Shard) and each.dim in modes else each
        for each in x.placements
    )
    if placements == x.placements:
        return x
    # The local tensor may have other strides than torch 2.11 assumes.
    return x.redistribute(placements=placements).clone(memory_format=torch.contiguous_format)


def _ranks(x: DTensor, mode: int) -> int:
    """Among how many ranks a mode is sharded."""
    pairs = zip(x.placements, x.device_mesh.shape, strict=True)
    return prod(size for each, size in pairs if each == Shard(mode))


def _split(mode: str, modes: Modes) -> Placement:
    return Shard(modes.index(mode)) if mode in modes else Replicate()


def _divided(rule: Rule, results: Sequence[bool]) -> bool:
    """Whether one of these results is a reduction of what the ranks have."""
    pairs = zip(rule, results, strict=False)
    return any(chosen and isinstance(each, Partial) for each, chosen in pairs)


@lru_cache(REMEMBERED)
def linear_in(epilogue: Epilogue) -> tuple[frozenset[int], ...]:
    """Sets of tensors such that every result is linear in the accumulators and these together.

    A set has the places of its tensors among those of the epilogue; the other tensors are factors.
    The sum of partial results is then the result. If a result is not linear, there is no set.

    >>> from cutedsl_gemm.kernels.epilogue.expression import EpilogueOperand
    >>> from cutedsl_gemm.kernels.epilogue.trace import trace
    >>> r, s = EpilogueOperand("r", ("M", "N")), EpilogueOperand("s", ("M",))
    >>> linear_in(trace(lambda acc, r, s: acc * s - r, (r, s)))
    (frozenset({0}),)
    >>> linear_in(trace(lambda acc, r: (acc + r).relu(), (r,)))
    ()
    """
    places = [i for i, each in enumerate(epilogue.operands) if not each.by_value]
    extrema = any(each.reduction in ("amax", "amin") for each in epilogue.results)
    if extrema or len(places) > ADDENDS:
        return ()
    subsets = (
        frozenset(chosen)
        for count in range(len(places) + 1)
        for chosen in combinations(range(len(places)), count)
    )
    return tuple(
        each for each in subsets if _is_linear(epilogue, {places[number] for number in each})
    )


def _is_linear(epilogue: Epilogue, addends: set[int]) -> bool:
    """Whether every result has degree 1 in the accumulators and in these operands."""
    degrees: list[int | None] = []
    for each in epilogue.program:
        degrees.append(_degree(each, [degrees[i] for i in each.arguments], addends))
    return all(degrees[result.value] == 1 for result in epilogue.results)


def _degree(
    instruction: Instruction, arguments: Sequence[int | None], addends: set[int]
) -> int | None:
    """The degree of a value, a homogeneous polynomial; None if it is no such polynomial."""
    match instruction.operation, arguments:
        case "acc", _:
            return 1
        case "operand", _:
            return int(instruction.value in addends)
        case (("add" | "sub"), (first, second)):
            return first if first == second else None
        case "neg", (first,):
            return first
        case "mul", (int(first), int(second)):
            return first + second
        case "div", (first, 0):
            return first
    return 0 if all(each == 0 for each in arguments) else None


def _strategy(schema: OpSchema, epilogue: Epilogue, operands: Any, invariant: bool) -> OpStrategy:
    """What torch chooses from: the rules along every dimension of the mesh."""
    mesh = schema.get_mesh_from_args()
    tensors = [each for each in epilogue.operands if not each.by_value]
    modes = tuple(
        _modes(operand, len(each.shape)) for operand, each in zip(tensors, operands, strict=True)
    )
    a, b = (each.shape for each in schema.args_schema[:2])
    even = a[-2] % mesh.size() == 0 and b[-1] % mesh.size() == 0
    found = rules(epilogue, modes, invariant, even, batch=len(a) == 3)
    return expand_to_full_mesh_op_strategy(mesh, schema, found, input_index=len(epilogue.results))


def _modes(operand: EpilogueOperand, dimensions: int) -> Modes:
    """The modes of an operand's tensor; a dot for each along which it broadcasts.

    >>> _modes(EpilogueOperand("bias", ("N",), batched=True), 3)
    'L.N'
    """
    own = operand.tensor_modes
    return "".join(mode if mode in own else "." for mode in "LMN"[3 - dimensions :])


def _gemm(schema: OpSchema) -> OpStrategy:
    invariant = bool(schema.args_schema[5:6] and schema.args_schema[5])
    return _strategy(schema, PLAIN, (), invariant)


def _linear(schema: OpSchema) -> OpStrategy:
    """The rules of gemm, of a weight (N, K) and perhaps a bias (N,) or (M, N)."""
    biases = schema.args_strategy[2:]
    operands = tuple(
        EpilogueOperand("bias", ("N",) if each.ndim == 1 else ("M", "N")) for each in biases
    )
    epilogue = traced(LINEAR[None][len(biases)].function, operands)
    modes = tuple("".join(each.modes) for each in operands)
    found = [
        [result, x, _transposed(weight), *rest]
        for result, x, weight, *rest in rules(epilogue, modes, False, True)
    ]
    return expand_to_full_mesh_op_strategy(schema.get_mesh_from_args(), schema, found)


def _transposed(placement: Placement) -> Placement:
    """The placement of the same matrix, with both modes exchanged."""
    return Shard(1 - placement.dim) if isinstance(placement, Shard) else placement


def _fused(schema: OpSchema) -> OpStrategy:
    _, _, operands, _, epilogue, *_, invariant = schema.args_schema
    children = getattr(operands, "children", ())  # of a TupleStrategy; else an empty list
    found = _strategy(schema, from_text(str(epilogue)), children, bool(invariant))
    for each in found.strategies:  # the operator returns a list, even of one result
        if not isinstance(each.output_specs, tuple):
            each.output_specs = (each.output_specs,)
    return found


# torch remembers its choice by the tensors, and by the other arguments from this index on.
_register = DTensor._op_dispatcher.sharding_propagator.register_op_strategy
_register(torch.ops.cutedsl_gemm.gemm.default, _gemm, RuntimeSchemaInfo(5))
_register(torch.ops.cutedsl_gemm.linear.default, _linear, RuntimeSchemaInfo(3))
_register(torch.ops.cutedsl_gemm.fused.default, _fused, RuntimeSchemaInfo(4, needs_pytree=True))
