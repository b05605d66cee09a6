"""The plan of a GEMM: every layout that its data moves through, as one frozen value.

The kernel lowers these layouts, the executor walks them on the CPU, the proofs and the pictures
speak about them; nothing about the movement of data is written anywhere else. `check` refuses,
before any compile and with a sentence, what the hardware cannot do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from cutedsl_gemm.kernels import tma
from cutedsl_gemm.kernels.raster import Raster
from layouts import (
    BankReport,
    Bijective,
    ComposedLayout,
    Layout,
    LayoutError,
    Proof,
    Swizzle,
    banks,
    composition,
    cosize,
    make_layout,
    prove,
    right_inverse,
    size,
    stmatrix,
    wgmma_accumulator,
    wgmma_descriptor,
)
from layouts.descriptor import Major

# Two consumers take turns with whole tiles, or each takes half the rows of every tile.
Schedule: TypeAlias = Literal["pingpong", "cooperative"]
BITS = 16  # of an element: bfloat16 or float16
UNIT = 8  # elements of 16 bits in 16 bytes: TMA's addresses and leading strides are multiples of it
# A block's limit, compute capability 9.0 (CUDA C++ Programming Guide, technical specifications).
SMEM_BYTES = 232_448
BARRIER_BYTES = 1024  # two 8-byte mbarriers a stage, rounded up to the swizzle's alignment
WARPGROUP = 128  # threads
CONSUMERS = 2  # warpgroups that multiply, and stage their own panels of C
# Of 65,536 / 384 threads = 168: the producer gives up 128, each consumer takes 64.
CONSUMER_REGISTERS = 232
PRODUCER_REGISTERS = 40
# What a consumer needs beside its accumulator; 128×256 (256 of 232) spills, 128×192 does not.
ADDRESS_REGISTERS = 40
# On elements: the hardware's 128-byte swizzle XORs byte-address bits 4-6 with 7-9.
SW128 = Swizzle(3, 4, 3).recast(8, BITS)
ROW = 64  # elements of one 128-byte row of the swizzle
# (thread, value) → m + 64 * n of what a stmatrix.x4 of four warps takes: 16 columns of a wgmma
STORE = wgmma_accumulator(16)


class PlanError(ValueError):
    """A plan that the hardware cannot run: the message says which part, what it is and must be."""


@dataclass(frozen=True)
class Operand:
    """How A or B travels: by TMA into swizzled shared memory, from there to the tensor core.

    `smem` is the layout of one stage, (rows, BK) → element offset; `major` names the contiguous
    mode, as in PTX: "K", or "MN".
    """

    name: str
    major: Major
    smem: ComposedLayout

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns) of the tile: (BM, BK) of A, (BN, BK) of B."""
        return size(self.smem[0]), size(self.smem[1])

    @property
    def contiguous(self) -> int:
        """The mode that runs along memory."""
        return 1 if self.major == "K" else 0

    @property
    def elements(self) -> int:
        """Elements of one stage."""
        return cosize(self.smem)


def room(sizes: Iterable[int], alignment: int) -> int:
    """Bytes of buffers of these sizes, one after the other, each at a multiple of `alignment`.

    >>> room([100, 100], 64)
    228
    """
    end = 0
    for taken in sizes:
        end = -(-end // alignment) * alignment + taken
    return end


def ring(tile: ComposedLayout, stages: int) -> ComposedLayout:
    """The layout of `stages` copies of a tile, one after the other: (rows, columns, stages).

    >>> print(ring(swizzled(128, 64, "K"), 6))
    S<3,3,3> o 0 o ((8,16),(64,1),6):((64,512),(1,0),8192)
    """
    return tile.over(make_layout(*tile.outer, Layout(stages, cosize(tile))))


@dataclass(frozen=True)
class Plan:
    """The sm90 GEMM: C (M, N) = A (M, K) · B (K, N), fp32 accumulation.

    All layouts are in elements of 16 bits; (m, n) pairs are numbered m + rows * n. R is the rows of
    a tile that one consumer multiplies: BM, or half of them where the schedule is cooperative.
    """

    tile: tuple[int, int, int]  # (BM, BN, BK)
    dtype: str
    a: Operand  # (BM, BK)
    b: Operand  # (BN, BK)
    schedule: Schedule
    stages: int
    accumulator: Layout  # (thread, value) → place in the (R, BN) that one consumer multiplies
    # (8, R/64, 4, BN/64) = (stmatrix, m64, 16 columns, panel) → accumulator value
    fragment: Layout
    # (thread, value) → place in the (64, 16) piece that four warps' stmatrix.x4 write
    store: Layout
    staging: ComposedLayout  # (R, 64): a panel of C, staged for the TMA store
    c_stages: int  # panels that a consumer may have under way
    raster: Raster

    @property
    def sharing(self) -> int:
        """Consumers that share a tile: its rows are divided among them."""
        return CONSUMERS if self.schedule == "cooperative" else 1

    @property
    def rows(self) -> int:
        """Rows of a tile that one consumer multiplies."""
        return self.tile[0] // self.sharing

    @property
    def a_major(self) -> Major:
        """The contiguous mode of A."""
        return self.a.major

    @property
    def b_major(self) -> Major:
        """The contiguous mode of B."""
        return self.b.major

    @property
    def alignment(self) -> int:
        """Elements of which leading strides and addresses must be multiples."""
        return UNIT

    @property
    def stage_bytes(self) -> int:
        """Bytes that TMA brings for one stage: the transaction count of its full barrier."""
        return (self.a.elements + self.b.elements) * BITS // 8

    @property
    def panel_bytes(self) -> int:
        """Bytes of one staged panel of C."""
        return cosize(self.staging) * BITS // 8

    @property
    def staged(self) -> int:
        """Panels of C in shared memory, of all consumers."""
        return CONSUMERS * self.c_stages

    @property
    def smem_bytes(self) -> int:
        """Bytes of shared memory that a block takes."""
        return self.stages * self.stage_bytes + self.staged * self.panel_bytes + BARRIER_BYTES

    @property
    def panels(self) -> int:
        """Panels of 64 columns in a tile."""
        return self.tile[1] // ROW

    @property
    def registers(self) -> int:
        """Accumulator registers of a consumer thread."""
        return size(self.accumulator[1])

    @property
    def buffers(self) -> dict[str, ComposedLayout]:
        """Every swizzled buffer in shared memory, by name."""
        return {"A": self.a.smem, "B": self.b.smem, "C panel": self.staging}

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

    def proofs(self) -> tuple[Proof, ...]:
        """What must hold for the plan to be right and fast, decided."""
        buffers = dict.fromkeys(self.buffers.values())  # each once
        return (
            *(prove(Bijective(buffer)) for buffer in buffers),
            prove(Bijective(self.accumulator)),
            self.panel_store.proof(),
        )

    @property
    def panel_store(self) -> BankReport:
        """What one consumer's stmatrix into the whole C panel costs, by the bank model."""
        return banks(self.staging, "stmatrix.x4", lanes=self.lanes)

    def check(self) -> Plan:
        """The plan itself, or PlanError with the first thing that cannot be."""
        for problem in self._problems():
            raise PlanError(f"tile {self.tile}, {self.dtype}: {problem}")
        return self

    def explain(self) -> str:
        """The plan as text: what moves where, by which layout."""
        bm, bn, bk = self.tile
        stages = f"{self.stages} stages × {self.stage_bytes:,}"
        panels = f"{self.staged} panels × {self.panel_bytes:,}"
        registers = f"{self.registers} accumulators of {CONSUMER_REGISTERS}"
        lines = (
            ("kernel", f"sm90 {self.schedule}, {self.dtype}, fp32 accumulation, tile {bm}×{bn}×{bk}"),
            ("memory", f"{stages} + {panels} + barriers"),
            ("", f"= {self.smem_bytes:,} of {SMEM_BYTES:,} bytes"),
            ("registers", f"{registers} a consumer thread"),
            ("A in smem", f"{self.a.smem}   (BM, BK), {self.a.major}-major"),
            ("B in smem", f"{self.b.smem}   (BN, BK), {self.b.major}-major"),
            ("accumulator", f"{self.accumulator}   (thread, value) → m + {self.rows}n"),
            ("stmatrix", f"{self.store}   (thread, value) → m + 64n of 64×16"),
            ("C panel", f"{self.staging}   ({self.rows}, 64)"),
            ("raster", f"groups of {self.raster.group} tile rows, N inside"),
            *self._accesses(),
        )
        return "\n".join(f"{name:<12} {text}" for name, text in lines)

    def _accesses(self) -> Iterator[tuple[str, str]]:
        """Every access to shared memory: layout, instruction, wavefronts and ideal, proof."""
        bn = self.tile[1]
        by_descriptor = "by descriptor: no LSU wavefronts"
        yield "A and B", f"written by TMA, read by wgmma m64n{bn}k16, {by_descriptor}"
        store, proof = self.panel_store, self.panel_store.proof()
        found, name = store.wavefronts, type(proof.statement).__name__
        how = "by rank over GF(2)" if found.ranks else "lane by lane"
        base = ", at every base" if found.every_base else ""
        why = f"proved {how}{base}" if proof else f"refuted: {proof.reason[0]}"
        yield "C panel", f"{store.access} at {store.addresses}   (lane, warp, m64, 16 columns)"
        yield "", f"{found.count} wavefronts, ideal {found.ideal}; {name} {why}"
        yield "", f"read by TMA, {by_descriptor}"

    def _problems(self) -> Iterator[str]:
        yield from _tile_problems(self.tile, self.dtype, self.schedule)
        yield from _shape_problems(self)
        yield from _operand_problems(self.a)
        yield from _operand_problems(self.b)
        yield from _staging_problems(self.staging)
        yield from _gap_problems(self.buffers)
        yield from _register_problems(self)
        yield from _budget_problems(self)


def _tile_problems(
    tile: tuple[int, int, int], dtype: str, schedule: Schedule
) -> Iterator[str]:
    bm, bn, bk = tile
    if schedule not in get_args(Schedule):
        yield f"schedule is {schedule!r}; it must be one of {get_args(Schedule)}"
    shared = schedule == "cooperative"
    why = "two consumers share its rows, 64 a wgmma" if shared else "a wgmma has 64 rows"
    if dtype not in ("bfloat16", "float16"):
        yield f"dtype is {dtype}; the tensor core takes bfloat16 or float16 here"
    for name, extent, unit, reason in (
        ("BM", bm, 128 if shared else 64, why),
        ("BN", bn, 64, "C leaves in panels of 64 columns (128 bytes)"),
        ("BK", bk, 64, "a row of the 128-byte swizzle holds 64 elements"),
    ):
        if extent < unit or extent % unit:
            yield f"{name} is {extent}; it must be a multiple of {unit}, since {reason}"
    if bm > 256 or bk > 1024:
        yield f"the tile has BM = {bm} and BK = {bk}; no stage of BM > 256 or BK > 1024 fits"
    if bn > 256:
        yield f"BN is {bn}; a wgmma has at most 256 columns (PTX ISA, wgmma.mma_async shapes)"


def _shape_problems(plan: Plan) -> Iterator[str]:
    bm, bn, bk = plan.tile
    for name, buffer, shape in (
        (plan.a.name, plan.a.smem, (bm, bk)),
        (plan.b.name, plan.b.smem, (bn, bk)),
        ("C panel", plan.staging, (plan.rows, ROW)),
    ):
        found = tuple(map(size, buffer))
        if found != shape:
            yield f"{name} has the shape {found} in shared memory; the tile makes it {shape}"
    if (plan.a.name, plan.b.name) != ("A", "B"):
        yield f"the operands are named {plan.a.name} and {plan.b.name}; they must be A and B"
    for name, count, least in (
        ("stages", plan.stages, 0),
        ("c_stages", plan.c_stages, 1),
        ("group", plan.raster.group, 1),
    ):
        if type(count) is not int or count < least:
            yield f"{name} is {count!r}; it must be an integer of at least {least}"
    if plan.c_stages and plan.panels % plan.c_stages:
        yield (
            f"c_stages is {plan.c_stages}; it must divide the {plan.panels} panels of a tile, so that "
            "every tile begins with the same one"
        )


def _gap_problems(buffers: dict[str, ComposedLayout]) -> Iterator[str]:
    for name, buffer in buffers.items():
        if buffer.offset != 0 or cosize(buffer) != size(buffer):
            yield (
                f"{name}: {buffer} must fill its buffer from offset 0 without a gap: TMA brings "
                f"{size(buffer)} elements, and the buffer has {cosize(buffer)}"
            )


def _register_problems(plan: Plan) -> Iterator[str]:
    rows, bn = plan.rows, plan.tile[1]
    for name, found, wanted in (
        ("accumulator", plan.accumulator, accumulator(rows, bn)),
        ("fragment", plan.fragment, fragment(rows, bn)),
        ("store", plan.store, STORE),
    ):
        if found != wanted:
            yield (
                f"{name} is {found}; wgmma leaves its registers, and stmatrix takes them, as "
                f"{wanted} (PTX ISA, Matrix Fragments for wgmma)"
            )


def _budget_problems(plan: Plan) -> Iterator[str]:
    most = CONSUMER_REGISTERS - ADDRESS_REGISTERS
    if plan.registers > most:
        yield (
            f"the accumulator takes {plan.registers} registers a thread, since one warpgroup holds "
            f"{plan.rows} rows of the tile; it must be at most {most} of {CONSUMER_REGISTERS}, or "
            f"it spills; take a tile with BM * BN <= {most * WARPGROUP * plan.sharing}"
        )
    if plan.stages < 2:
        yield (
            f"stages that fit into {SMEM_BYTES} bytes of shared memory: {plan.stages}; "
            "loads and multiplies overlap with at least 2; take a smaller tile"
        )
    if plan.smem_bytes > SMEM_BYTES:
        yield (
            f"{plan.stages} stages take {plan.smem_bytes} bytes of shared memory; "
            f"a block has {SMEM_BYTES}; take fewer stages or a smaller tile"
        )


def _operand_problems(operand: Operand) -> Iterator[str]:
    try:
        tma.boxes(operand.smem, operand.contiguous)
        wgmma_descriptor(operand.smem, operand.major)
    except LayoutError as error:
        yield f"shared memory of {operand.name}: {error}"


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


def swizzled(rows: int, columns: int, major: Major) -> ComposedLayout:
    """The shared-memory tile (rows, columns) under the 128-byte swizzle.

    It is contiguous along columns ("K") or rows ("MN"). Built of the tensor core's 8 × 64 atoms
    (PTX ISA, wgmma shared memory layout), panel after panel of 64 contiguous elements, so that TMA
    fills a panel with one box.

    >>> print(swizzled(128, 64, "K"))
    S<3,3,3> o 0 o ((8,16),(64,1)):((64,512),(1,0))
    >>> print(swizzled(128, 64, "MN"))
    S<3,3,3> o 0 o ((64,2),(8,8)):((1,4096),(64,512))
    """
    outer, inner = (rows, columns) if major == "K" else (columns, rows)
    across = Layout((8, outer // 8), (ROW, 8 * ROW))
    along = Layout((ROW, inner // ROW), (1, outer * ROW if inner > ROW else 0))
    plain = make_layout(across, along) if major == "K" else make_layout(along, across)
    return ComposedLayout(SW128, 0, plain, unit=BITS)


def accumulator(rows: int, bn: int) -> Layout:
    """(thread, value) → m + rows * n: wgmma's (64, bn) accumulator, rows / 64 times down.

    >>> print(accumulator(128, 128))
    ((4,8,4),((2,2,16),2)):((256,1,16),((128,8,1024),64))
    """
    threads, values = composition(Layout((64, bn), (1, rows)), wgmma_accumulator(bn))
    return make_layout(threads, make_layout(values, Layout(rows // 64, 64)))


def fragment(rows: int, bn: int) -> Layout:
    """(stmatrix, m64, 16 columns, panel) → value of the accumulator.

    >>> print(fragment(128, 128))
    (8,2,4,2):(1,64,8,32)
    """
    return Layout((8, rows // 64, ROW // 16, bn // ROW), (1, bn // 2, 8, ROW // 2))


def pingpong(
    tile: tuple[int, int, int] = (128, 128, 64),
    dtype: str = "bfloat16",
    a_major: Major = "K",
    b_major: Major = "K",
    group: int = 4,
    c_stages: int = 1,
) -> Plan:
    """The checked plan in which the consumers take turns, with as many stages as fit.

    >>> plan = pingpong()
    >>> plan.stages, plan.smem_bytes, plan.registers
    (6, 230400, 128)
    """
    return _plan("pingpong", tile, dtype, a_major, b_major, group, c_stages)


def cooperative(
    tile: tuple[int, int, int] = (128, 256, 64),
    dtype: str = "bfloat16",
    a_major: Major = "K",
    b_major: Major = "K",
    group: int = 4,
    c_stages: int = 1,
) -> Plan:
    """The checked plan in which the consumers share each tile, with as many stages as fit.

    >>> plan = cooperative()
    >>> plan.stages, plan.smem_bytes, plan.registers
    (4, 214016, 128)
    """
    return _plan("cooperative", tile, dtype, a_major, b_major, group, c_stages)


def _plan(
    schedule: Schedule,
    tile: tuple[int, int, int],
    dtype: str,
    a_major: Major,
    b_major: Major,
    group: int,
    c_stages: int,
) -> Plan:
    for problem in _tile_problems(tile, dtype, schedule):
        raise PlanError(f"tile {tile}, {dtype}: {problem}")
    bm, bn, bk = tile
    rows = bm // CONSUMERS if schedule == "cooperative" else bm
    a = Operand("A", a_major, swizzled(bm, bk, a_major))
    b = Operand("B", b_major, swizzled(bn, bk, b_major))
    staging = swizzled(rows, ROW, "K")
    free = SMEM_BYTES - BARRIER_BYTES - CONSUMERS * c_stages * cosize(staging) * BITS // 8
    return Plan(
        tile=tile,
        dtype=dtype,
        a=a,
        b=b,
        schedule=schedule,
        stages=free // ((a.elements + b.elements) * BITS // 8),
        accumulator=accumulator(rows, bn),
        fragment=fragment(rows, bn),
        store=STORE,
        staging=staging,
        c_stages=c_stages,
        raster=Raster(group),
    ).check()
