"""An sm90 plan as text: the lines of `explain`, (subject, text) each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from cutedsl_gemm.kernels.epilogue.cost import cost
from cutedsl_gemm.kernels.epilogue.expression import PLAIN
from cutedsl_gemm.kernels.plan.checks import PER_VECTOR
from cutedsl_gemm.kernels.sm90.panel_plan import PanelPlan
from cutedsl_gemm.kernels.sm90.plan import Sm90Plan
from cutedsl_gemm.kernels.sm90.resources import SMEM_BYTES
from cutedsl_gemm.kernels.sm90.split_k_plan import SplitKPlan
from layouts import BankReport
from layouts.hardware.facts import WARP, WARPGROUP

Lines: TypeAlias = Iterator[tuple[str, str]]

BY_DESCRIPTOR = "by descriptor: no LSU wavefronts"


def explain_lines(plan: Sm90Plan) -> Lines:
    """What moves where, by which layout.

    >>> from cutedsl_gemm.kernels.sm90.rungs import pingpong
    >>> for subject, text in [*explain_lines(pingpong())][3:6]:
    ...     print(f"{subject}: {text}")
    registers: 128 of a consumer thread's 232 hold the accumulator
    A in smem: S<3,3,3> o 0 o ((8,16),(64,1)):((64,512),(1,0))   (BM, BK), K-major
    B in smem: S<3,3,3> o 0 o ((8,16),(64,1)):((64,512),(1,0))   (BN, BK), K-major
    """
    yield from _mainloop(plan)
    yield from _cluster_and_raster(plan)
    if isinstance(plan, PanelPlan):
        yield from _panels(plan)
    elif isinstance(plan, SplitKPlan):
        yield from _partial_sums(plan)
    if plan.epilogue != PLAIN:
        yield from plan.planned_epilogue.listing()
        yield "cost", str(cost(plan.epilogue))
    if isinstance(plan, PanelPlan):
        yield from _operands(plan)
        yield from _results(plan)


def _mainloop(plan: Sm90Plan) -> Lines:
    bm, bn, bk = plan.tile
    kernel = f"sm90 {plan.kind}, {plan.dtype}, fp32 accumulation"
    yield "kernel", f"{kernel}, tile {bm}×{bn}×{bk}"
    if plan.swapped:
        yield "swapped", "the kernel computes Cᵀ = Bᵀ · Aᵀ: below, A is Bᵀ, B is Aᵀ, C is Cᵀ"
        yield "", f"a tile has {bm} columns of C and {bn} rows: a wgmma always has 64 rows,"
        yield "", "but 8 to 256 columns, so that a short C wastes less of it as Cᵀ"
    if plan.batched:
        a, b = ("2, L" if each.matrices > 1 else "L" for each in (plan.a, plan.b))
        yield "batch", f"A is ((M, {a}), K), B ((N, {b}), K) and C ((M, L), N): a tile has one l"
    stages = f"{plan.stages} stages × {plan.stage_bytes:,}"
    yield "memory", " + ".join(filter(None, (stages, plan.epilogue_smem, "barriers")))
    yield "", f"= {plan.smem_bytes:,} of {SMEM_BYTES:,} bytes"
    registers = f"{plan.registers} of a consumer thread's {plan.consumer_registers}"
    yield "registers", f"{registers} hold the accumulator"
    for operand, extents in ((plan.a, "(BM, BK)"), (plan.b, "(BN, BK)")):
        yield f"{operand.name} in smem", f"{operand.smem}   {extents}, {operand.major}-major"
        if (matrices := operand.matrices) > 1:
            rows = operand.shape[0] // matrices
            each = f"{rows} rows of each of {matrices} matrices, for the same outputs"
            yield "", f"{each}, loaded as {operand.slice_tiler}"
    if plan.atom_layout[1] > 1:
        parts = f"{plan.rows}×{plan.columns} of the tile each"
        yield "consumers", f"{plan.consumers}, with {parts}: they divide its columns"
    wgmma = f"wgmma m64n{plan.columns}k16"
    yield "A and B", f"written by TMA, read by {wgmma}, {BY_DESCRIPTOR}"
    yield "accumulator", f"{plan.accumulator}   (thread, value) → m + {plan.rows}n"


def _cluster_and_raster(plan: Sm90Plan) -> Lines:
    if plan.cluster_size == 1:
        yield "raster", str(plan.raster)
        return
    down, across = plan.cluster
    yield "cluster", f"{plan.cluster_size} blocks, {down} down and {across} across"
    for operand, group in ((plan.a, "row"), (plan.b, "column")):
        if (slices := operand.slices) > 1:
            least, more = divmod(slices, operand.sharers)
            part = f"{least} or {least + 1} of {slices} slices" if more else f"1/{slices}"
            yield "", f"a block multicasts {part} of {operand.name} to its {group}"
            yield "", f"{operand.slice_smem}   {operand.slice_shape}"
    yield "raster", f"{plan.raster}; a cluster counts as a tile"


def _panels(plan: PanelPlan) -> Lines:
    columns = plan.stmatrix_columns
    yield "stmatrix", f"{plan.stmatrix_tv}   (thread, value) → m + 64n of 64×{columns}"
    yield "C panel", f"{plan.staging}   ({plan.panel_rows}, {plan.panel_columns})"
    report = plan.panel_store
    yield "", f"{report.access} at {report.addresses}   (lane, warp, m64, {columns} columns)"
    yield "", _cost(report)
    if plan.stored_by_tma:
        yield "", f"read by TMA, {BY_DESCRIPTOR}"
    else:
        report, rows = plan.panel_load, plan.panel_rows
        width, offsets = plan.lines.width, plan.lines.words.offsets(1, rows)
        yield "C", "stored by the consumer's threads, as its rows may start anywhere"
        yield "", f"{offsets}   (thread, value) → m + {rows}n of a panel"
        if width > 1:
            yield "", f"in words of {width} elements, each from two of the panel"
            yield "", "the other elements of a line one by one"
        yield "", f"read by {report.access} at {report.addresses}"
        yield "", _cost(report)


def _partial_sums(plan: SplitKPlan) -> Lines:
    yield "split", f"{plan.splits} blocks split K; a second kernel adds their partial sums"
    yield "", f"its blocks add {plan.reduction_rows} rows of a tile each"
    if plan.c_alignment != PER_VECTOR:
        yield "", "and store C element by element, as its rows may start anywhere"
    yield "partial sums", f"{plan.partial_sums}   (BM, BN), fp32, in global memory"
    stores = f"{plan.store_sectors} sectors a store of {WARP * plan.store_vector * 4} bytes"
    yield "", f"{stores}, {plan.load_sectors} a load of 512"


def _operands(plan: PanelPlan) -> Lines:
    for i, operand in enumerate(plan.planned_epilogue.operands):
        if i in plan.staged_operands:
            report, ahead = plan.operand_read, plan.panel_stages
            panels = f"{ahead} panel{'s' if ahead > 1 else ''} ahead"
            yield operand.name, f"loaded by TMA into the panels of C, {panels}"
            yield "", f"read by {report.access} at the addresses of stmatrix"
            yield "", _cost(report)
        elif not operand.by_value:
            width = plan.read_width(operand)
            yield operand.name, f"loaded by threads: {_at_a_time(width)}"
            if operand.modes == ("N",):
                yield "", "once a warp; a lane receives what others have loaded by shuffles"
            if i in plan.read_by_threads:
                most = max(begun - part for part, begun in enumerate(plan.read_ahead))
                count = len(plan.stmatrix_tiles)
                yield "", f"in {count} parts of a tile, at most {most} in registers"
            for mode, layout in zip("MN", plan.coordinates, strict=True):
                if mode in operand.modes:
                    yield "", f"{layout}   (thread, value) → {mode.lower()}"


def _results(plan: PanelPlan) -> Lines:
    epilogue = plan.planned_epilogue
    for i, (name, result) in enumerate(zip(epilogue.result_labels, epilogue.results, strict=True)):
        if i in plan.direct:
            yield name, f"stored by threads from registers: {_at_a_time(plan.store_width)}"
        elif i in plan.reduced:
            down, across = plan.atom_layout
            warps = down * WARPGROUP // WARP
            parts, by = (across, "consumer") if result.over == "N" else (warps, "warp")
            each = "one a tile" if parts == 1 else f"{parts} a tile, one a {by}"
            yield name, f"stored in parts: {each}"


def _at_a_time(width: int) -> str:
    return "two neighbours at a time" if width == 2 else "one element at a time"


def _cost(report: BankReport) -> str:
    """The wavefronts of an access, the ideal, and how that was decided."""
    found, proof = report.wavefronts, report.proof()
    how = "by rank over GF(2)" if found.ranks else "lane by lane"
    base = ", at every base" if found.every_base else ""
    why = f"proved {how}{base}" if proof else f"refuted: {proof.reason[0]}"
    name = type(proof.statement).__name__
    return f"{found.count} wavefronts, ideal {found.ideal}; {name} {why}"
