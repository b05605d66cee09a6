"""The plan of the persistent sm90 GEMMs: panels of C go out by stmatrix and TMA."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cutedsl_gemm.kernels.plan import tma
from cutedsl_gemm.kernels.plan.checks import (
    BITS,
    PlanError,
    count_problem,
    field_problem,
    shape_problem,
)
from cutedsl_gemm.kernels.plan.raster import Raster
from cutedsl_gemm.kernels.sm90.mainloop import (
    BY_DESCRIPTOR,
    CONSUMERS,
    ROW,
    WARPGROUP,
    Mainloop,
    Schedule,
    Tile,
    accumulator,
    cluster_problems,
    cost,
    operands,
    stages_beside,
    swizzled,
    tile_problems,
)
from layouts import (
    BankReport,
    ComposedLayout,
    Layout,
    LayoutError,
    Proof,
    banks,
    composition,
    cosize,
    make_layout,
    right_inverse,
    size,
    stmatrix,
    wgmma_accumulator,
)
from layouts.hardware.descriptor import Major

# (thread, value) → m + 64 * n of what a stmatrix.x4 of four warps takes: 16 columns of a wgmma
STORE = wgmma_accumulator(16)


@dataclass(frozen=True)
class Plan(Mainloop):
    """A GEMM whose blocks visit tile after tile, and stage C for TMA a panel at a time."""

    # (8, R/64, 4, BN/64) = (stmatrix, m64, 16 columns, panel) → accumulator value
    fragment: Layout
    # (thread, value) → place in the (64, 16) piece that four warps' stmatrix.x4 write
    store: Layout
    staging: ComposedLayout  # (R, 64): a panel of C, staged for the TMA store
    c_stages: int  # panels that a consumer may have under way

    @property
    def panels(self) -> int:
        """Panels of 64 columns in a tile."""
        return self.tile[1] // ROW

    @property
    def panel_bytes(self) -> int:
        """Bytes of one staged panel of C."""
        return cosize(self.staging) * BITS // 8

    @property
    def staged(self) -> int:
        """Panels of C in shared memory, of all consumers."""
        return self.consumers * self.c_stages

    @property
    def way_out_bytes(self) -> int:
        return self.staged * self.panel_bytes

    @property
    def way_out(self) -> str:
        return f"{self.staged} panels × {self.panel_bytes:,}"

    @property
    def buffers(self) -> dict[str, ComposedLayout]:
        return {**super().buffers, "C panel": self.staging}

    @property
    def lanes(self) -> Layout:
        """(lane, warp, m64, 16 columns) → m + R * n: the row that a lane addresses for stmatrix.

        It is the row of the panel whose first element `store` leaves with the thread that stmatrix
        takes it from.
        """
        atom, rows = stmatrix(4), self.rows
        holder = composition(right_inverse(atom.fragment), atom.rows[0])  # lane → lane + 32 * value
        holder = composition(Layout((32, 8), (1, WARPGROUP)), holder)  # → thread + 128 * value
        panel = Layout((64, 16), (1, rows))
        lane, warp = (
            composition(panel, composition(self.store, threads))
            for threads in (holder, Layout(4, 32))
        )
        return make_layout(lane, warp, Layout(rows // 64, 64), Layout(ROW // 16, 16 * rows))

    @property
    def panel_store(self) -> BankReport:
        """What one consumer's stmatrix into the whole C panel costs, by the bank model."""
        return banks(self.staging, "stmatrix.x4", lanes=self.lanes)

    def proofs(self) -> tuple[Proof, ...]:
        return *super().proofs(), self.panel_store.proof()

    def lines(self) -> Iterator[tuple[str, str]]:
        yield from super().lines()
        yield "stmatrix", f"{self.store}   (thread, value) → m + 64n of 64×16"
        yield "C panel", f"{self.staging}   ({self.rows}, 64)"
        report = self.panel_store
        yield "", f"{report.access} at {report.addresses}   (lane, warp, m64, 16 columns)"
        yield "", cost(report)
        yield "", f"read by TMA, {BY_DESCRIPTOR}"

    def device_code(self) -> Any:
        """The kernel of the plan's schedule."""
        if self.schedule == "single":
            from cutedsl_gemm.kernels.sm90.single import Single

            return Single(self)
        if self.schedule == "pingpong":
            from cutedsl_gemm.kernels.sm90.pingpong import Pingpong

            return Pingpong(self)
        from cutedsl_gemm.kernels.sm90.cooperative import Cooperative

        return Cooperative(self)

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        yield from shape_problem("C panel", self.staging, (self.rows, ROW))
        yield from _staging_problems(self.staging)
        yield from _store_problems(self)
        yield from count_problem("c_stages", self.c_stages, 1)
        why = "since each block stages whole sums; where K is divided, take a plan of split_plan"
        yield from field_problem("splits", self.splits, 1, why)
        if self.panels % self.c_stages:
            yield (
                f"c_stages is {self.c_stages}; it must divide the {self.panels} panels of a tile, "
                "so that every tile begins with the same one"
            )


def _store_problems(plan: Plan) -> Iterator[str]:
    why = "as wgmma leaves its registers, and stmatrix takes them (PTX ISA, Matrix Fragments)"
    wanted = fragment(plan.rows, plan.tile[1])
    yield from field_problem("fragment", plan.fragment, wanted, why)
    yield from field_problem("store", plan.store, STORE, why)


def _staging_problems(staging: ComposedLayout) -> Iterator[str]:
    rows = composition(staging, (None, Layout(8)))  # stmatrix writes rows of eight elements
    for m in range(size(rows[0])):
        offsets = [rows(m, n) for n in range(8)]
        if offsets != list(range(offsets[0], offsets[0] + 8)) or offsets[0] % 8:
            yield (
                f"C panel: eight elements of row {m} lie at offsets {offsets}; "
                "stmatrix writes a row as 16 contiguous bytes at a multiple of 16 "
                "(PTX ISA, stmatrix); take a layout contiguous in columns "
                "whose swizzle keeps the low 3 bits"
            )
            return
    try:
        tma.boxes(staging, contiguous=1)
    except LayoutError as error:
        yield f"C panel: {error}"


def fragment(rows: int, bn: int) -> Layout:
    """(stmatrix, m64, 16 columns, panel) → value of the accumulator.

    >>> print(fragment(128, 128))
    (8,2,4,2):(1,64,8,32)
    """
    return Layout((8, rows // 64, ROW // 16, bn // ROW), (1, bn // 2, 8, ROW // 2))


def pingpong(
    tile: Tile = (128, 128, 64),
    dtype: str = "bfloat16",
    a_major: Major = "K",
    b_major: Major = "K",
    raster: Raster = Raster(4),
    c_stages: int = 1,
    cluster: tuple[int, int] = (1, 1),
) -> Plan:
    """The checked plan in which the consumers take turns, with as many stages as fit.

    New: each consumer holds a tile of its own; while one stores, the other multiplies. Gains: the
    tensor core never waits for an epilogue. Costs: registers for a whole tile, at most 128×192.

    >>> plan = pingpong()
    >>> plan.stages, plan.smem_bytes, plan.registers
    (6, 230400, 128)
    """
    return _plan("pingpong", tile, dtype, a_major, b_major, raster, c_stages, cluster)


def single(
    tile: Tile = (128, 128, 64),
    dtype: str = "bfloat16",
    a_major: Major = "K",
    b_major: Major = "K",
) -> Plan:
    """The checked plan in which one warpgroup does everything, a tile a block.

    New: TMA brings whole tiles, swizzled, and wgmma multiplies 64 rows of shared memory at a time.
    Gains: no register and no address is spent on what comes in. Costs: the tensor core waits at
    each k-block for its own last wgmma, and at the end for the store.

    >>> plan = single()
    >>> plan.stages, plan.smem_bytes, plan.registers
    (6, 214016, 128)
    """
    return _plan("single", tile, dtype, a_major, b_major, Raster(1), c_stages=1)


def cooperative(
    tile: Tile = (128, 256, 64),
    dtype: str = "bfloat16",
    a_major: Major = "K",
    b_major: Major = "K",
    raster: Raster = Raster(4),
    c_stages: int = 1,
    cluster: tuple[int, int] = (1, 1),
) -> Plan:
    """The checked plan in which the consumers share each tile, with as many stages as fit.

    New: roles. A producer warp asks for k-blocks as far ahead as stages are free; two consumer
    warpgroups multiply; the blocks stay, and visit tile after tile. Gains: loads and multiplies
    overlap, across tiles too, and a tile of 128×256 moves fewer bytes a flop. Costs: the tensor
    core waits for the epilogue.

    >>> plan = cooperative()
    >>> plan.stages, plan.smem_bytes, plan.registers
    (4, 214016, 128)
    """
    return _plan("cooperative", tile, dtype, a_major, b_major, raster, c_stages, cluster)


def _plan(
    schedule: Schedule,
    tile: Tile,
    dtype: str,
    a_major: Major,
    b_major: Major,
    raster: Raster,
    c_stages: int,
    cluster: tuple[int, int] = (1, 1),
) -> Plan:
    for problem in (*tile_problems(tile, dtype, schedule), *cluster_problems(cluster)):
        raise PlanError(f"tile {tile}, {dtype}: {problem}")
    bm, bn, _ = tile
    rows = bm // CONSUMERS if schedule == "cooperative" else bm
    staged = c_stages if schedule == "single" else CONSUMERS * c_stages
    a, b = operands(tile, a_major, b_major, cluster)
    staging = swizzled(rows, ROW, "K")
    return Plan(
        tile=tile,
        dtype=dtype,
        a=a,
        b=b,
        schedule=schedule,
        splits=1,
        stages=stages_beside(staged * cosize(staging) * BITS // 8, a, b),
        accumulator=accumulator(rows, bn),
        fragment=fragment(rows, bn),
        store=STORE,
        staging=staging,
        c_stages=c_stages,
        raster=raster,
    ).check()
