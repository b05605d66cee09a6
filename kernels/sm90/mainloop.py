"""The main loop of the sm90 GEMMs, planned: A and B by TMA into a ring, by wgmma out of it.

How the product leaves is for the plans that are made of this one: staged for a TMA store
(sm90/plan.py), or summed over blocks that divide K (sm90/split_plan.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, get_args

from cutedsl_gemm.kernels.plan import tma
from cutedsl_gemm.kernels.plan.checks import (
    BITS,
    UNIT,
    choice_problem,
    count_problem,
    field_problem,
    raster_problem,
    refuse,
    shape_problem,
)
from cutedsl_gemm.kernels.plan.kernel_plan import Tell
from cutedsl_gemm.kernels.plan.raster import Raster
from layouts import (
    BankReport,
    Bijective,
    ComposedLayout,
    Layout,
    LayoutError,
    Proof,
    Swizzle,
    composition,
    cosize,
    make_layout,
    prove,
    size,
    wgmma_accumulator,
    wgmma_descriptor,
)
from layouts.hardware.descriptor import Major

if TYPE_CHECKING:
    from torch import Tensor

# One warpgroup does everything; or two consumers, beside a producer, take turns with whole tiles,
# or each takes half the rows of every tile.
Schedule: TypeAlias = Literal["single", "pingpong", "cooperative"]
Tile: TypeAlias = tuple[int, int, int]  # (BM, BN, BK)
Checked = TypeVar("Checked", bound="Mainloop")
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
BY_DESCRIPTOR = "by descriptor: no LSU wavefronts"
# On elements: the hardware's 128-byte swizzle XORs byte-address bits 4-6 with 7-9.
SW128 = Swizzle(3, 4, 3).recast(8, BITS)
ROW = 64  # elements of one 128-byte row of the swizzle
CLUSTERS = (1, 1), (2, 1), (1, 2)  # tiles side by side (down, across)
FEW = 2  # rows of tiles that leave B to DRAM: no third reads it from L2
LAG = 5, 32  # of K, by which a column of few tiles begins behind its neighbour


@dataclass(frozen=True)
class Operand:
    """How A or B travels: by TMA into swizzled shared memory, from there to the tensor core.

    `smem` is the layout of one stage, (rows, BK) → element offset; `major` names the contiguous
    mode, as in PTX: "K", or "MN". Where the blocks of a cluster share the operand, each brings its
    rows of the tile to all of them: one of so many `parts`.
    """

    name: str
    major: Major
    smem: ComposedLayout
    parts: int = 1

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns) of the tile: (BM, BK) of A, (BN, BK) of B."""
        return size(self.smem[0]), size(self.smem[1])

    @property
    def box(self) -> tuple[int, int]:
        """(rows, columns) of what one block brings."""
        rows, columns = self.shape
        return rows // self.parts, columns

    @property
    def contiguous(self) -> int:
        """The mode that runs along memory."""
        return 1 if self.major == "K" else 0

    @property
    def elements(self) -> int:
        """Elements of one stage."""
        return cosize(self.smem)

    @property
    def part(self) -> ComposedLayout:
        """(rows / parts, BK) → element offset: what one block brings of a stage.

        >>> print(Operand("B", "K", swizzled(256, 64, "K"), parts=2).part)
        S<3,3,3> o 0 o (128,64):(64,1)
        """
        return composition(self.smem, tuple(map(Layout, self.box)))


@dataclass(frozen=True)
class Mainloop:
    """What all sm90 GEMMs share: C (M, N) = A (M, K) · B (K, N), summed in fp32.

    All layouts are in elements of 16 bits; (m, n) pairs are numbered m + rows * n. R is the rows of
    a tile that one consumer multiplies: BM, or half of them where the schedule is cooperative.
    """

    tile: Tile
    dtype: str
    a: Operand  # (BM, BK)
    b: Operand  # (BN, BK)
    schedule: Schedule
    stages: int
    splits: int  # blocks, each with its part of K, that make a tile together
    accumulator: Layout  # (thread, value) → place in the (R, BN) that one consumer multiplies
    raster: Raster

    @property
    def cluster(self) -> tuple[int, int]:
        """Tiles of C side by side, (down, across), whose blocks share B and A."""
        return self.b.parts, self.a.parts

    @property
    def blocks(self) -> int:
        """Blocks of a cluster whose tiles lie side by side."""
        return self.a.parts * self.b.parts

    def place(
        self, index: Any, rank: Any, tiles_m: Any, tiles_n: Any, least: Any = min
    ) -> tuple[Any, Any]:
        """The tile (m, n) of C of the block that is number `rank` of cluster `index`.

        `tiles_m` and `tiles_n` count clusters.
        """
        m, n = self.raster(index, tiles_m, tiles_n, least)
        down, across = self.cluster
        return m * down + rank % down, n * across + rank // down

    @property
    def consumers(self) -> int:
        """Warpgroups that multiply."""
        return 1 if self.schedule == "single" else CONSUMERS

    @property
    def kind(self) -> str:
        """What the kernel is called."""
        return self.schedule

    @property
    def name(self) -> str:
        """The name of the kernel, as `gemm(a, b, kernel=name)` takes it."""
        return f"sm90_{self.kind}"

    @property
    def threads(self) -> int:
        """Threads of a block: a warpgroup that does everything, or a producer and the consumers."""
        return WARPGROUP * (1 if self.schedule == "single" else 1 + CONSUMERS)

    @property
    def sharing(self) -> int:
        """Consumers that share a tile: its rows are divided among them."""
        return self.consumers if self.schedule == "cooperative" else 1

    def span(self, rank: Any, k_blocks: Any) -> tuple[Any, Any]:
        """First k-block of the block that is number `rank` of a tile's, and first of the next."""
        return rank * k_blocks // self.splits, (rank + 1) * k_blocks // self.splits

    def start(self, n: Any, tiles_m: Any, k_blocks: Any, least: Any = min) -> Any:
        """Which of so many k-blocks is first for a tile in column n; the first follows the last.

        Few rows of tiles stream B from DRAM through all multiprocessors at once, and its lines are
        K apart where it is K-major: beginning at the same k, all would ask the same channels. With
        64×64×128, 16×4096×14336 takes 48.6 µs with each column at another k and 55.2 without;
        16×14336×4096 takes 54.9 and 47.5, for which the model has other tiles (docs/performance).
        Columns of a cluster keep together, since each brings half of A to both. The order of a sum
        then depends on its column: equal columns of B may give results that differ in a last bit.

        >>> from cutedsl_gemm.kernels.sm90.plan import pingpong
        >>> [pingpong().start(n, 1, 64) for n in range(8)], pingpong().start(7, 3, 64)
        ([0, 10, 20, 30, 40, 50, 60, 6], 0)
        """
        if self.schedule == "single" or self.splits > 1:  # whose parts begin at different k anyway
            return 0
        (_, across), (part, whole) = self.cluster, LAG
        return least(FEW // tiles_m, 1) * (
            n // across % whole * part * k_blocks // whole % k_blocks
        )

    @property
    def rows(self) -> int:
        """Rows of a tile that one consumer multiplies."""
        return self.tile[0] // self.sharing

    @property
    def outputs(self) -> Layout:
        """(thread, value) → m + BM * n: the outputs that each consumer thread holds.

        Where the consumers share a tile, its threads are those of all of them.
        """
        bm, bn, _ = self.tile
        held = composition(Layout((self.rows, bn), (1, bm)), self.accumulator)  # by one consumer
        threads = make_layout(held[0], Layout(self.sharing, self.rows))
        return make_layout(threads, held[1])

    @property
    def instruction_k(self) -> int:
        """The depth of one wgmma."""
        return 16

    def workspace(self, m: int, n: int) -> int:
        """Elements of fp32 in global memory for an (M, N) product; 0 if the kernel needs none."""
        return 0

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
    def registers(self) -> int:
        """Accumulator registers of a consumer thread."""
        return size(self.accumulator[1])

    @property
    def smem_bytes(self) -> int:
        """Bytes of shared memory that a block takes."""
        return self.stages * self.stage_bytes + self.way_out_bytes + BARRIER_BYTES

    @property
    def way_out_bytes(self) -> int:
        """Bytes of shared memory through which the product leaves."""
        raise NotImplementedError

    @property
    def buffers(self) -> dict[str, ComposedLayout]:
        """Every swizzled buffer in shared memory, by name."""
        return {"A": self.a.smem, "B": self.b.smem}

    def proofs(self) -> tuple[Proof, ...]:
        """What must hold for the plan to be right and fast, decided."""
        buffers = dict.fromkeys(self.buffers.values())  # each once
        return *(prove(Bijective(buffer)) for buffer in buffers), prove(Bijective(self.accumulator))

    def check(self: Checked) -> Checked:
        """The plan itself, or PlanError with the first thing that cannot be."""
        refuse(f"tile {self.tile}, {self.dtype}", self.problems())
        return self

    def explain(self) -> str:
        """The plan as text: what moves where, by which layout."""
        return "\n".join(f"{name:<12} {text}" for name, text in self.lines())

    def memory_report(self) -> None:
        """None: TMA and wgmma make no requests of a warp; `explain` has the bank reports."""

    def execute(self, a: Tensor, b: Tensor, out: Tensor, tell: Tell | None = None) -> None:
        """Compute out = a · b on CPU tensors, K > 0, moving data through the plan's layouts."""
        from cutedsl_gemm.kernels.sm90.execute import gemm

        gemm(self, a, b, out, tell)

    def lines(self) -> Iterator[tuple[str, str]]:
        """The text of `explain`: what a line is about, and what it says."""
        bm, bn, bk = self.tile
        kind = f"sm90 {self.kind}, {self.dtype}, fp32 accumulation"
        yield "kernel", f"{kind}, tile {bm}×{bn}×{bk}"
        ring = f"{self.stages} stages × {self.stage_bytes:,}"
        yield "memory", " + ".join(filter(None, (ring, self.way_out, "barriers")))
        yield "", f"= {self.smem_bytes:,} of {SMEM_BYTES:,} bytes"
        yield (
            "registers",
            f"{self.registers} accumulators of {CONSUMER_REGISTERS} a consumer thread",
        )
        yield "A in smem", f"{self.a.smem}   (BM, BK), {self.a.major}-major"
        yield "B in smem", f"{self.b.smem}   (BN, BK), {self.b.major}-major"
        yield "A and B", f"written by TMA, read by wgmma m64n{bn}k16, {BY_DESCRIPTOR}"
        yield "accumulator", f"{self.accumulator}   (thread, value) → m + {self.rows}n"
        if self.blocks > 1:
            shared, way = (self.b, "below") if self.b.parts > 1 else (self.a, "beside")
            text = f"two blocks, one's tile {way} the other's; each brings half of {shared.name}"
            yield "cluster", f"{text}, for both by multicast"
            yield "", f"{shared.part}   {shared.box}"
        yield (
            "raster",
            f"{self.raster}; a cluster counts as a tile" if self.blocks > 1 else str(self.raster),
        )

    @property
    def way_out(self) -> str:
        """What `way_out_bytes` are, in words; nothing where there are none."""
        raise NotImplementedError

    def problems(self) -> Iterator[str]:
        """What cannot be, in sentences."""
        yield from tile_problems(self.tile, self.dtype, self.schedule)
        yield from _shape_problems(self)
        yield from _operand_problems(self.a)
        yield from _operand_problems(self.b)
        yield from _gap_problems(self.buffers)
        yield from _budget_problems(self)


def cost(report: BankReport) -> str:
    """What an access costs, its ideal, and whether it is proved."""
    found, proof = report.wavefronts, report.proof()
    how = "by rank over GF(2)" if found.ranks else "lane by lane"
    base = ", at every base" if found.every_base else ""
    why = f"proved {how}{base}" if proof else f"refuted: {proof.reason[0]}"
    name = type(proof.statement).__name__
    return f"{found.count} wavefronts, ideal {found.ideal}; {name} {why}"


def stages_beside(way_out_bytes: int, a: Operand, b: Operand) -> int:
    """Stages of A and B that fit into shared memory beside the product's way out."""
    free = SMEM_BYTES - BARRIER_BYTES - way_out_bytes
    return max(0, free // ((a.elements + b.elements) * BITS // 8))


def operands(
    tile: Tile, a_major: Major, b_major: Major, cluster: tuple[int, int] = (1, 1)
) -> tuple[Operand, Operand]:
    """A and B of a tile under the 128-byte swizzle.

    Blocks of a cluster whose tiles lie one below the other share B, those side by side A.
    """
    (bm, bn, bk), (down, across) = tile, cluster
    a = Operand("A", a_major, swizzled(bm, bk, a_major), parts=across)
    return a, Operand("B", b_major, swizzled(bn, bk, b_major), parts=down)


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


def tile_problems(tile: Tile, dtype: str, schedule: Schedule) -> Iterator[str]:
    bm, bn, bk = tile
    yield from choice_problem("schedule", schedule, get_args(Schedule))
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


def cluster_problems(cluster: tuple[int, int]) -> Iterator[str]:
    if cluster not in CLUSTERS or not all(type(extent) is int for extent in cluster):
        yield f"cluster is {cluster!r}; it must be one of {CLUSTERS}, tiles (down, across)"


def _shape_problems(plan: Mainloop) -> Iterator[str]:
    bm, bn, bk = plan.tile
    if (plan.a.name, plan.b.name) != ("A", "B"):
        yield f"the operands are named {plan.a.name} and {plan.b.name}; they must be A and B"
    yield from shape_problem("A", plan.a.smem, (bm, bk))
    yield from shape_problem("B", plan.b.smem, (bn, bk))
    yield from count_problem("stages", plan.stages, 0)
    yield from count_problem("splits", plan.splits, 1)
    yield from raster_problem(plan.raster)
    yield from cluster_problems(plan.cluster)
    if plan.blocks > 1 and (plan.splits > 1 or plan.schedule == "single"):
        yield (
            f"cluster is {plan.cluster}; it must be (1, 1) where blocks divide K, or one warpgroup "
            "does everything: none of them waits for another block's part of A or B"
        )
    why = "as wgmma leaves its registers (PTX ISA, Matrix Fragments for wgmma)"
    yield from field_problem("accumulator", plan.accumulator, accumulator(plan.rows, bn), why)


def _gap_problems(buffers: dict[str, ComposedLayout]) -> Iterator[str]:
    for name, buffer in buffers.items():
        if buffer.offset != 0 or cosize(buffer) != size(buffer):
            yield (
                f"{name}: {buffer} must fill its buffer from offset 0 without a gap: TMA brings "
                f"{size(buffer)} elements, and the buffer has {cosize(buffer)}"
            )


def _operand_problems(operand: Operand) -> Iterator[str]:
    try:
        tma.boxes(operand.part, operand.contiguous)
        wgmma_descriptor(operand.smem, operand.major)
    except LayoutError as error:
        yield f"shared memory of {operand.name}: {error}"


def _budget_problems(plan: Mainloop) -> Iterator[str]:
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
