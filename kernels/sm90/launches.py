"""The launches of a plan, for the interpreter of PTX: its kernels and their arguments.

What a thread of the first consumer does, step by step (needs the DSL, no GPU):

    from cutedsl_gemm.kernels.compile.ptx.machine import trace
    from cutedsl_gemm.kernels.sm90.launches import launches
    from cutedsl_gemm.kernels.sm90.rungs import pingpong

    (launch,) = launches(pingpong(), 512, 512, 256)
    for event in trace(launch, block=0, blocks=16, thread=128):
        print(event)

The DSL passes a tensor as a struct: its pointer, then the extents and then the strides that are
not known when it compiles. A tensor map is an argument of its own, and the tensor that TMA sees,
which has no pointer, follows it: its extents alone. (Read from the kernels' signatures in the DSL's
MLIR, `CUTE_DSL_KEEP_IR=1`.) `Launch` checks the size of each argument against the PTX.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TypeAlias

from cutedsl_gemm.kernels.compile import build
from cutedsl_gemm.kernels.compile.ptx.machine import Argument, Launch, pointer
from cutedsl_gemm.kernels.compile.ptx.reader import Kernel, read
from cutedsl_gemm.kernels.sm90.epilogue_plan import PanelPlan
from cutedsl_gemm.kernels.sm90.split_k_plan import SplitKPlan
from layouts import cosize

Sm90: TypeAlias = PanelPlan | SplitKPlan


@lru_cache(maxsize=32)
def kernels(plan: Sm90) -> tuple[Kernel, ...]:
    """The plan's kernels, compiled once: one, or the product and the reduction if K is split."""
    return read(build.ptx(plan))


def launches(plan: Sm90, m: int, n: int, k: int, c_stride: int | None = None) -> tuple[Launch, ...]:
    """The launches of an (m, n, k) product, for `trace`: one, or two if K is split."""
    inputs = arguments(plan, m, n, k, c_stride)
    clusters = plan.cluster_size, 1  # the reduction has no clusters
    return tuple(map(Launch, kernels(plan), inputs, clusters))


def arguments(
    plan: Sm90, m: int, n: int, k: int, c_stride: int | None = None
) -> tuple[tuple[Argument, ...], ...]:
    """What the plan's launches pass for an (m, n, k) product: the arguments of each kernel.

    m, n and the leading stride of C, in elements (n by default), are those of the caller's
    matrices.

    >>> from cutedsl_gemm.kernels.sm90.rungs import pingpong
    >>> (launch,) = arguments(pingpong(), 100, 200, 300)
    >>> [(each.name, each.value and struct.unpack("ii", each.value)) for each in launch]
    ... # doctest: +NORMALIZE_WHITESPACE
    [('tma_a', None), ('gA', (100, 300)), ('tma_b', None), ('gB', (200, 300)),
     ('tma_c', None), ('gC', (100, 200))]
    """
    rows, columns = plan.exchanged((m, n))
    loads = (
        Argument("tma_a"),
        Argument("gA", struct.pack("<2i", rows, k)),
        Argument("tma_b"),
        Argument("gB", struct.pack("<2i", columns, k)),
    )
    c_stride = n if c_stride is None else c_stride

    def c(parameter: int, *extents: int) -> Argument:
        return Argument("gC", struct.pack("<Qiiq", pointer(parameter), *extents, c_stride))

    if isinstance(plan, SplitKPlan):
        tiles = plan.workspace(m, n) // plan.splits // cosize(plan.partial_sums)

        def sums(parameter: int) -> Argument:
            split = tiles * cosize(plan.partial_sums)  # elements from split to split
            return Argument("sums", struct.pack("<Qii", pointer(parameter), tiles, split))

        return (*loads, sums(4), c(5, rows, columns)), (sums(0), c(1, m, n))
    if plan.stored_by_tma:
        extents = struct.pack("<2i", rows, columns)
        return ((*loads, Argument("tma_c"), Argument("gC", extents)),)
    return ((*loads, c(4, rows, columns)),)
