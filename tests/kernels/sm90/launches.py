"""The launches of a plan, for the interpreter of PTX: its kernels and their arguments.

What a thread of the first consumer does, step by step (needs the DSL, no GPU):

    from tests.kernels.ptx.machine import trace
    from tests.kernels.sm90.launches import launches
    from cutedsl_gemm.kernels.sm90.rungs import pingpong

    (launch,) = launches(pingpong(), 512, 512, 256)
    for event in trace(launch, block=0, blocks=16, thread=128):
        print(event)
"""

from __future__ import annotations

import struct
from functools import lru_cache
from itertools import chain
from math import prod
from typing import Any, TypeAlias

from cutedsl_gemm.kernels.compile import build
from cutedsl_gemm.kernels.epilogue.expression import EpilogueOperand
from cutedsl_gemm.kernels.plan.tma import EVICT_FIRST, EVICT_NORMAL
from cutedsl_gemm.kernels.sm90.launch_policy import pass_through_l2
from cutedsl_gemm.kernels.sm90.panel_plan import PanelPlan
from cutedsl_gemm.kernels.sm90.split_k_plan import SplitKPlan
from layouts import cosize
from tests.kernels.ptx.arguments import Argument, matrix, pointer, tensor_map
from tests.kernels.ptx.machine import Launch
from tests.kernels.ptx.reader import Kernel, read

Sm90: TypeAlias = PanelPlan | SplitKPlan


@lru_cache(maxsize=64)  # more than the plans that the tests run in turn
def kernels(plan: Sm90) -> tuple[Kernel, ...]:
    """The plan's kernels, compiled once: one, or the product and the reduction if K is split."""
    return read(build.ptx(plan))


def launches(plan: Sm90, *mnk: int, **options: Any) -> tuple[Launch, ...]:
    """The launches of an (m, n, k) product, for `trace`: one, or two if K is split.

    The options are those of `arguments`.
    """
    clusters = plan.cluster_size, 1  # the reduction has no clusters
    return tuple(map(Launch, kernels(plan), arguments(plan, *mnk, **options), clusters))


def arguments(
    plan: Sm90,
    m: int,
    n: int,
    k: int,
    c_stride: int | None = None,
    group: tuple[int, int] = (1, 0),
    batch: int = 1,
) -> tuple[tuple[Argument, ...], ...]:
    """What the plan's launches pass for an (m, n, k) product: the arguments of each kernel.

    m, n and the leading stride of C, in elements (n by default), are those of the caller's
    matrices. `group`, if the plan gathers A or scatters C: how many GPUs there are, and the
    number of this one. `batch`, if the plan is batched: how many such products.

    >>> from cutedsl_gemm.kernels.sm90.rungs import pingpong
    >>> (launch,) = arguments(pingpong(), 100, 200, 300)
    >>> [(each.name, each.value and struct.unpack("ii", each.value)) for each in launch]
    ... # doctest: +NORMALIZE_WHITESPACE
    [('tma_a', None), ('gA', (100, 300)), ('tma_b', None), ('gB', (200, 300)),
     ('tma_c', None), ('gC', (100, 200)), ('policy_a', (0, 0)), ('policy_b', (0, 0))]
    """
    rows, columns = plan.exchanged((m, n))
    c_stride = n if c_stride is None else c_stride
    policies = _policies(plan, m, n, k, batch)
    matrices = (batch,) if plan.batched else ()
    loads = *tensor_map("a", rows, *matrices, k), *tensor_map("b", columns, *matrices, k)
    if isinstance(plan, SplitKPlan):
        c, of_plan = matrix("gC", 1, m, n, c_stride), matrix("gC", 5, rows, columns, c_stride)
        return (*loads, _sums(plan, 4, m, n), of_plan, *policies), (_sums(plan, 0, m, n), c)
    if plan.stored_by_tma:
        sent = {"c": rows // group[0]} if plan.scattered else {}
        maps = (
            tensor_map(each, sent.get(each, rows), *matrices, columns)
            for each in result_names(plan)
        )
        given = [*loads, *chain.from_iterable(maps)]
        for i, operand in enumerate(plan.planned_epilogue.operands):
            own = matrices if operand.batched else ()
            if i in plan.staged_operands:
                given += tensor_map(operand.name, rows, *own, columns)
            else:
                given.append(_operand(operand, len(given), rows, columns, own))
        if plan.gathered:
            given += _gathered(len(given), *group, rows, k)
        if plan.scattered:
            given += _scattered(plan, len(given), *group, sent["c"], columns)
        return ((*given, *policies),)
    if plan.batched:
        return ((*loads, _batch(plan, 4, rows, batch, columns, c_stride), *policies),)
    return ((*loads, matrix("gC", 4, rows, columns, c_stride), *policies),)


def _batch(
    plan: PanelPlan, parameter: int, rows: int, batch: int, columns: int, stride: int
) -> Argument:
    """The plan's C ((M, L), N) of matrices that follow each other, with this leading stride."""
    of_each = stride * plan.exchanged((rows, columns))[0]
    strides = plan.exchanged((stride, of_each))  # in the order of the modes
    value = struct.pack("<Qiii4xqq", pointer(parameter), rows, batch, columns, *strides)
    return Argument("gC", value)


def _gathered(parameter: int, gpus: int, number: int, rows: int, k: int) -> tuple[Argument, ...]:
    """This GPU's rows of A, the flags, its number, and the epoch."""
    flags = Argument("arrived", struct.pack("<Qi4x", pointer(parameter + 2), gpus))
    return *tensor_map("own", rows // gpus, k), flags, *_numbers(number=number, epoch=1)


def _scattered(
    plan: PanelPlan, parameter: int, gpus: int, number: int, rows: int, columns: int
) -> tuple[Argument, ...]:
    """The parts of this GPU's rows of C, their flags, the counts of what it sends, and numbers."""
    values = pointer(parameter), gpus, rows, columns, rows * columns, columns
    parts = Argument("parts", struct.pack("<Qiii4xqq", *values))
    pieces = -(-rows // plan.piece_rows)
    flags = (
        Argument(name, struct.pack("<Qiiq", pointer(parameter + i), gpus, pieces, pieces))
        for i, name in enumerate(("arrived", "stored"), 1)
    )
    return parts, *flags, *_numbers(number=number, epoch=1, first=number, rows=rows)


def _policies(plan: Sm90, m: int, n: int, k: int, batch: int) -> tuple[Argument, ...]:
    """The cache policies of the loads of A and B; A counts as all matrices of a batch."""
    rows, columns = plan.operand_rows(m, n)
    first = zip("ab", pass_through_l2(plan, batch * rows, columns, k), strict=True)
    return tuple(
        Argument(f"policy_{name}", struct.pack("<q", EVICT_FIRST if each else EVICT_NORMAL))
        for name, each in first
    )


def _numbers(**values: int) -> tuple[Argument, ...]:
    return tuple(Argument(name, struct.pack("<i", value)) for name, value in values.items())


def result_names(plan: PanelPlan) -> list[str]:
    """The names of results that are staged in panels: c, c1, c2, …

    If C is scattered: partial, what is sent to other GPUs, and c.
    """
    if plan.scattered:
        return ["partial", "c"]
    return [f"c{staged or ''}" for staged in range(len(plan.staged))]


def _operand(
    operand: EpilogueOperand, parameter: int, rows: int, columns: int, batch: tuple[int, ...] = ()
) -> Argument:
    """An operand over the plan's C, whose lines follow each other in memory."""
    of_each = prod({"M": rows, "N": columns}[mode] for mode in operand.modes)
    strides = [of_each for _ in batch if operand.modes]
    if operand.is_matrix and operand.row_major:
        strides = [columns, *strides]
    elif operand.is_matrix:
        strides = [*strides, rows]
    extents = struct.pack(f"<Q{2 + len(batch)}i", pointer(parameter), rows, *batch, columns)
    padding = bytes(-len(extents) % 8)
    return Argument(operand.name, extents + padding + struct.pack(f"<{len(strides)}q", *strides))


def _sums(plan: SplitKPlan, parameter: int, m: int, n: int) -> Argument:
    """The workspace (*tile, tiles, splits): the tiles, and the stride from split to split."""
    elements = plan.workspace(m, n) // plan.splits
    tiles = elements // cosize(plan.partial_sums)
    return Argument("sums", struct.pack("<Qii", pointer(parameter), tiles, elements))
