"""The plans of the sm90 family, in the order of the ladder.

Each function returns a checked plan with as many stages as fit into shared memory. `a_major` and
`b_major` are those of the caller's A and B. If `swapped`, the kernel computes Cᵀ = Bᵀ · Aᵀ: BM
counts columns of the caller's C, and BN rows. `c_alignment` is 8, or 1 for a C of any row length,
leading stride and address, which the consumers' threads store instead of TMA. The `epilogue` is
that of the caller's C. If `batched`, one launch computes C (L, M, N) = A (L, M, K) · B (L, K, N).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

from cutedsl_gemm.kernels.epilogue.expression import PLAIN, Epilogue
from cutedsl_gemm.kernels.plan.checks import BITS, PER_VECTOR, refuse
from cutedsl_gemm.kernels.plan.raster import Raster
from cutedsl_gemm.kernels.sm90.checks import (
    cluster_problems,
    column_problems,
    consumer_problems,
    role_problems,
    tile_problems,
)
from cutedsl_gemm.kernels.sm90.operand import Tile, operands
from cutedsl_gemm.kernels.sm90.panel_plan import PanelPlan, with_panels
from cutedsl_gemm.kernels.sm90.panels import default_panels, fragment, panel_layout, stmatrix_tv
from cutedsl_gemm.kernels.sm90.plan import accumulator, atom_layout
from cutedsl_gemm.kernels.sm90.resources import Schedule, default_consumers
from cutedsl_gemm.kernels.sm90.split_k_plan import (
    SplitKPlan,
    partial_sums,
    reduction,
    split_problems,
)
from layouts.hardware.descriptor import Major


def single(
    tile: Tile = (128, 128, 64),
    dtype: str = "bfloat16",
    a_major: Major = "K",
    b_major: Major = "K",
    c_alignment: int = PER_VECTOR,
    epilogue: Epilogue = PLAIN,
) -> PanelPlan:
    """One warpgroup loads, multiplies and stores, one tile a block.

    New: TMA loads whole tiles, swizzled, and wgmma multiplies 64 rows of shared memory at a time.
    Gains: loads take no registers and no address arithmetic. Costs: the tensor core waits at each
    k-tile for its own last wgmma, and at the end for the store.

    >>> plan = single()
    >>> plan.stages, plan.smem_bytes, plan.registers
    (6, 214016, 128)
    """
    return _panel_plan(
        "single",
        tile,
        dtype,
        a_major,
        b_major,
        Raster(1),
        c_alignment=c_alignment,
        epilogue=epilogue,
    )


def cooperative(
    tile: Tile = (128, 256, 64),
    dtype: str = "bfloat16",
    a_major: Major = "K",
    b_major: Major = "K",
    raster: Raster = Raster(4),
    c_stages: int | None = None,
    cluster: tuple[int, int] = (1, 1),
    swapped: bool = False,
    c_alignment: int = PER_VECTOR,
    epilogue: Epilogue = PLAIN,
    batched: bool = False,
) -> PanelPlan:
    """Two consumers share each tile; one if BM is 64, or three if BM is 192 and BN <= 200.

    New: a producer warp loads k-tiles as far ahead as stages are free, and the consumer warpgroups
    multiply. Blocks are persistent: they walk tile after tile. Gains: loads and multiplies overlap,
    across tiles too, and a tile of 128×256 moves fewer bytes a flop. Costs: the tensor core waits
    for the epilogue.

    >>> plan = cooperative()
    >>> plan.stages, plan.smem_bytes, plan.registers
    (4, 214016, 128)
    """
    return _panel_plan(
        "cooperative",
        tile,
        dtype,
        a_major,
        b_major,
        raster,
        c_stages=c_stages,
        cluster=cluster,
        swapped=swapped,
        c_alignment=c_alignment,
        epilogue=epilogue,
        batched=batched,
    )


def pingpong(
    tile: Tile = (128, 128, 64),
    dtype: str = "bfloat16",
    a_major: Major = "K",
    b_major: Major = "K",
    raster: Raster = Raster(4),
    c_stages: int | None = None,
    cluster: tuple[int, int] = (1, 1),
    swapped: bool = False,
    c_alignment: int = PER_VECTOR,
    epilogue: Epilogue = PLAIN,
    consumers: int = 2,
    batched: bool = False,
) -> PanelPlan:
    """Two consumer warpgroups, or three if the epilogue is long, take turns with whole tiles.

    New: each consumer has a tile of its own; while one stores, another multiplies. Gains: the
    tensor core never waits for an epilogue. Costs: registers for a whole tile, at most 128×192; or
    128×128, if there are three consumers.

    >>> plan = pingpong()
    >>> plan.stages, plan.smem_bytes, plan.registers
    (6, 230400, 128)
    """
    return _panel_plan(
        "pingpong",
        tile,
        dtype,
        a_major,
        b_major,
        raster,
        c_stages=c_stages,
        cluster=cluster,
        swapped=swapped,
        c_alignment=c_alignment,
        epilogue=epilogue,
        consumers=consumers,
        batched=batched,
    )


def split(
    tile: Tile = (128, 128, 64),
    dtype: str = "bfloat16",
    a_major: Major = "K",
    b_major: Major = "K",
    splits: int = 8,
    cluster: tuple[int, int] = (1, 1),
    swapped: bool = False,
    c_alignment: int = PER_VECTOR,
    epilogue: Epilogue = PLAIN,
) -> SplitKPlan:
    """Blocks split the K of each tile, and a second kernel adds their partial sums.

    New: `splits` blocks compute a tile together. Gains: few tiles of large K keep all
    multiprocessors busy. Costs: partial sums go through L2, and a second launch.

    >>> plan = split()
    >>> plan.stages, plan.smem_bytes, plan.reduction_rows
    (7, 230400, 8)
    """
    name, matrices = f"tile {tile}, {dtype}", epilogue.accumulators
    refuse(name, tile_problems(tile, dtype, "cooperative", swapped, matrices))
    refuse(name, chain(split_problems(splits), cluster_problems(cluster)))
    bm, bn, _ = tile
    consumers = default_consumers("cooperative", bm, bn)
    down, across = atom_layout(consumers, bm)
    a, b = operands(tile, a_major, b_major, cluster, swapped, matrices, parts=across)
    refuse(name, column_problems(bn // across, b))
    c_rows, c_columns = bm // a.matrices, bn // b.matrices
    plan = SplitKPlan(
        tile=tile,
        dtype=dtype,
        a=a,
        b=b,
        schedule="cooperative",
        consumers=consumers,
        stages=0,  # as many as fit, below
        splits=splits,
        swapped=swapped,
        c_alignment=c_alignment,
        epilogue=epilogue,
        accumulator=accumulator(bm // down, bn // across),
        raster=Raster(1),
        partial_sums=partial_sums(bm, bn, swapped),
        reduction=reduction(*((c_columns, c_rows) if swapped else (c_rows, c_columns))),
    )
    return replace(plan, stages=plan.stages_that_fit).check()


RUNGS = single, cooperative, pingpong, split


def _panel_plan(
    schedule: Schedule,
    tile: Tile,
    dtype: str,
    a_major: Major,
    b_major: Major,
    raster: Raster,
    c_stages: int | None = None,
    cluster: tuple[int, int] = (1, 1),
    swapped: bool = False,
    c_alignment: int = PER_VECTOR,
    epilogue: Epilogue = PLAIN,
    consumers: int | None = None,
    batched: bool = False,
) -> PanelPlan:
    """The checked plan of a schedule; its panels are `default_panels` unless `c_stages` is given.

    If TMA can load operands into them, a panel takes a buffer for each, and a consumer has two or
    more: one panel is loaded while another is evaluated and stored. It has fewer, or threads load
    the operands, if the stages of A and B leave no room.
    """
    name, matrices = f"tile {tile}, {dtype}", epilogue.accumulators
    refuse(name, tile_problems(tile, dtype, schedule, swapped, matrices))
    bm, bn, _ = tile
    if consumers is None:
        consumers = default_consumers(schedule, bm, bn)
    refuse(name, chain(role_problems(schedule, tile, consumers), cluster_problems(cluster)))
    down, across = atom_layout(consumers if schedule == "cooperative" else 1, bm)
    rows, wgmma_columns = bm // down, bn // across
    a, b = operands(tile, a_major, b_major, cluster, swapped, matrices, parts=across)
    part = rows, wgmma_columns
    refuse(name, chain(consumer_problems(part, a, b), column_problems(wgmma_columns, b)))
    c_rows, c_columns = rows // a.matrices, wgmma_columns // b.matrices
    k_bytes = (bm + bn) * BITS // 8
    of_c = consumers * c_rows, c_columns, swapped, k_bytes
    columns, in_flight = default_panels(*of_c)
    plan = PanelPlan(
        tile=tile,
        dtype=dtype,
        a=a,
        b=b,
        schedule=schedule,
        consumers=consumers,
        splits=1,
        swapped=swapped,
        c_alignment=c_alignment,
        epilogue=epilogue,
        batched=batched,
        stages=0,  # as many as fit, below
        accumulator=accumulator(rows, wgmma_columns),
        fragment=fragment(rows, wgmma_columns, columns, a.matrices, b.matrices),
        stmatrix_tv=stmatrix_tv(columns),
        staging=panel_layout(c_rows, columns, swapped),
        c_stages=in_flight if c_stages is None else c_stages,
        raster=raster,
    )
    if c_stages is None and plan.loadable_operands:
        plan = _with_operand_panels(plan, *of_c)
    return replace(plan, stages=plan.stages_that_fit).check()


def _with_operand_panels(
    plan: PanelPlan, rows: int, columns: int, swapped: bool, k_bytes: int
) -> PanelPlan:
    """The plan with panels into which TMA loads operands; the arguments are `default_panels`'."""
    buffers = plan.buffers_per_panel_for(plan.loadable_operands)
    panel_columns, in_flight = default_panels(rows, columns, swapped, k_bytes, buffers)
    most = min(in_flight // buffers, columns // panel_columns)
    choices = (with_panels(plan, panel_columns, buffers * panels) for panels in (most, 1))
    return next((each for each in choices if each.stages >= 2), plan)
