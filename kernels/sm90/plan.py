"""Sm90Plan: what the plans of all sm90 kernels share.

TMA loads A and B into swizzled shared memory, and wgmma multiplies from there. The epilogue is the
subclasses': TMA stores C (panel_plan.py), or K is split over blocks and a second kernel adds
their partial sums (split_k_plan.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from cutedsl_gemm.kernels.epilogue.expression import PLAIN, Epilogue, Result
from cutedsl_gemm.kernels.plan.arguments import Exchange, epilogue_problems
from cutedsl_gemm.kernels.plan.checks import PER_VECTOR, field_problem, refuse
from cutedsl_gemm.kernels.plan.kernel_plan import Report
from cutedsl_gemm.kernels.plan.raster import Raster
from cutedsl_gemm.kernels.plan.tile_scheduler import TileScheduler
from cutedsl_gemm.kernels.sm90 import checks
from cutedsl_gemm.kernels.sm90.operand import Operand, Tile
from cutedsl_gemm.kernels.sm90.resources import (
    BARRIER_BYTES,
    REGISTERS,
    SMEM_BYTES,
    Schedule,
)
from layouts import (
    Bijective,
    ComposedLayout,
    Layout,
    Proof,
    coalesce,
    composition,
    make_layout,
    prove,
    size,
    symbols,
    wgmma_accumulator,
)
from layouts.hardware.atoms import WGMMA_M
from layouts.hardware.descriptor import Major
from layouts.hardware.facts import WARP, WARPGROUP

if TYPE_CHECKING:
    from torch import Tensor

    from cutedsl_gemm.kernels.pipeline.steps import Pipeline

Checked = TypeVar("Checked", bound="Sm90Plan")
Element = TypeVar("Element")


@dataclass(frozen=True)
class Sm90Plan:
    """C (M, N) = A (M, K) · B (K, N), summed in fp32: the mainloop.

    If the operands are swapped, the kernel computes Cᵀ = Bᵀ · Aᵀ of the matrices that it is given,
    and the plan's A, B and C are Bᵀ (N, K), Aᵀ (K, M) and Cᵀ (N, M): BM counts columns of the
    caller's C, and BN rows. A wgmma has 64 rows, but 8 to 256 columns, so that a short C wastes
    less of the tensor core as Cᵀ.

    If the epilogue has two accumulators, the caller's B is two matrices (2, K, N), such as the gate
    and the value of a gated product. Half of the tile's columns (or rows, if operands are swapped)
    are of each, and a tile of C has half as many.

    Layouts are in elements of 16 bits. Element (m, n) of a tile has the number m + rows * n. R is
    the number of tile rows that one consumer multiplies: BM, or its share if the consumers of a
    cooperative schedule divide the rows.
    """

    tile: Tile
    dtype: str
    a: Operand  # (BM, BK)
    b: Operand  # (BN, BK)
    schedule: Schedule
    consumers: int  # warpgroups that multiply
    stages: int
    splits: int  # blocks that compute one tile together, each over its range of K
    swapped: bool  # the kernel computes Cᵀ = Bᵀ · Aᵀ
    c_alignment: int  # of the caller's C: its row length, leading stride and address, in elements
    accumulator: Layout  # (thread, value) → m + R * n, of one consumer
    raster: Raster
    epilogue: Epilogue = field(default=PLAIN, kw_only=True)  # in the caller's orientation
    gathered: bool = field(default=False, kw_only=True)  # other GPUs send rows of A as it runs
    scattered: bool = field(default=False, kw_only=True)  # several GPUs have rows of C each
    batched: bool = field(default=False, kw_only=True)  # C (L, M, N) = A (L, M, K) · B (L, K, N)

    @property
    def kind(self) -> str:
        """The kind of kernel, as `explain` prints it: the schedule, or "split"."""
        return self.schedule

    @property
    def name(self) -> str:
        """The name of the kernel, as `gemm(a, b, kernel=name)` takes it."""
        return f"sm90_{self.kind}"

    @property
    def consumers_per_tile(self) -> int:
        """Consumers that share a tile: they divide its rows, or its columns (`atom_layout`)."""
        return self.consumers if self.schedule == "cooperative" else 1

    @property
    def threads(self) -> int:
        """Threads of a block: the consumers and, except in `single`, a producer warpgroup."""
        return WARPGROUP * (self.consumers + (self.schedule != "single"))

    @property
    def producer_registers(self) -> int:
        """Registers of a producer thread."""
        return REGISTERS[self.consumers][0]

    @property
    def consumer_registers(self) -> int:
        """Registers of a consumer thread."""
        return REGISTERS[self.consumers][1]

    @property
    def atom_layout(self) -> tuple[int, int]:
        """Consumers (down, across) that divide a tile (CUTLASS: AtomLayoutMNK).

        They divide its rows if each has rows of whole wgmmas, else its columns.

        >>> from cutedsl_gemm.kernels.sm90.rungs import cooperative, pingpong
        >>> [cooperative((192, bn, 64)).atom_layout for bn in (160, 208)]
        [(3, 1), (1, 2)]
        >>> pingpong().atom_layout
        (1, 1)
        """
        return atom_layout(self.consumers_per_tile, self.tile[0])

    @property
    def rows(self) -> int:
        """R, the rows of a tile that one consumer multiplies."""
        return self.tile[0] // self.atom_layout[0]

    @property
    def columns(self) -> int:
        """The columns of a tile that one consumer multiplies: the N of its wgmmas."""
        return self.tile[1] // self.atom_layout[1]

    @property
    def consumer_tile(self) -> tuple[int, int]:
        """Rows and columns of the part of a tile of C that one consumer computes."""
        return self.rows // self.a.matrices, self.columns // self.b.matrices

    def consumer_coord(self, tile: tuple[Any, Any], consumer: Any) -> tuple[Any, Any]:
        """The coordinate in C, in units of `consumer_tile`, of a consumer's part of a tile.

        >>> from cutedsl_gemm.kernels.sm90.rungs import cooperative
        >>> [cooperative((192, bn, 64)).consumer_coord((5, 7), 1) for bn in (160, 208)]
        [(16, 7), (5, 15)]
        """
        (m, n), (down, across) = tile, self.atom_layout
        return (m, n * across + consumer) if across > 1 else (m * down + consumer, n)

    @property
    def registers(self) -> int:
        """Accumulator registers of a consumer thread."""
        return size(self.accumulator[1])

    @property
    def outputs(self) -> Layout:
        """(thread, value) → m + BM * n: the outputs that each consumer thread holds.

        If the consumers share a tile, the threads are those of all.
        """
        bm, _, _ = self.tile
        part = Layout((self.rows, self.columns), (1, bm))
        held = composition(part, self.accumulator)  # by one consumer
        consumers = Layout(self.atom_layout, (self.rows, bm * self.columns))
        return make_layout(make_layout(held[0], coalesce(consumers)), held[1])

    @property
    def instruction_k(self) -> int:
        """The depth of one wgmma."""
        return 16

    def exchanged(self, pair: tuple[Element, Element]) -> tuple[Element, Element]:
        """From the plan's order to the caller's, or back: A and B, or the modes M and N.

        Swapped operands reverse the pair.
        """
        first, second = pair
        return (second, first) if self.swapped else (first, second)

    def operand_rows(self, m: int, n: int) -> tuple[int, int]:
        """The rows of A (M, K) and of B (N, K), of all their matrices, for a C (m, n).

        >>> from cutedsl_gemm.kernels.sm90.rungs import pingpong
        >>> pingpong().operand_rows(64, 128), pingpong(swapped=True).operand_rows(64, 128)
        ((64, 128), (128, 64))
        """
        rows, columns = self.exchanged((m, n))
        return rows * self.a.matrices, columns * self.b.matrices

    @property
    def a_major(self) -> Major:
        """The contiguous mode of the A that the kernel is given."""
        return self.exchanged((self.a, self.b))[0].major

    @property
    def b_major(self) -> Major:
        """The contiguous mode of the B that the kernel is given."""
        return self.exchanged((self.a, self.b))[1].major

    @property
    def output_tile(self) -> tuple[int, int]:
        """Rows and columns of C that a block computes at a time: (BM, BN) if B is one matrix.

        An output is computed from its products by all matrices of B, which are in the same tile.
        """
        bm, bn, _ = self.tile
        return bm // self.a.matrices, bn // self.b.matrices

    @property
    def c_tile(self) -> tuple[int, int]:
        """Rows and columns of a tile of the C that the kernel is given.

        >>> from cutedsl_gemm.kernels.sm90.rungs import pingpong
        >>> pingpong((128, 16, 64)).c_tile, pingpong((128, 16, 64), swapped=True).c_tile
        ((128, 16), (16, 128))
        """
        return self.exchanged(self.output_tile)

    @property
    def matrices(self) -> int:
        """Matrices of which the caller's B is made."""
        return self.a.matrices * self.b.matrices

    @property
    def planned_epilogue(self) -> Epilogue:
        """The epilogue of the plan's C, which is Cᵀ if operands are swapped."""
        return self.epilogue.transposed if self.swapped else self.epilogue

    @property
    def alignment(self) -> int:
        """Leading strides and addresses of A and B must be multiples of this many elements."""
        return PER_VECTOR

    @property
    def stage_bytes(self) -> int:
        """Bytes of one stage, A and B: the transaction count of its full mbarrier."""
        return self.a.stage_bytes + self.b.stage_bytes

    @property
    def epilogue_smem_bytes(self) -> int:
        """Bytes of shared memory in which the epilogue stages C."""
        return 0

    @property
    def epilogue_smem(self) -> str:
        """How `epilogue_smem_bytes` is made up, for `explain`; empty if there are none."""
        return ""

    @property
    def loaded_panels(self) -> int:
        """Panels of all consumers for which TMA loads operands: each has an mbarrier."""
        return 0

    @property
    def stages_that_fit(self) -> int:
        """Stages that fit into the shared memory that the epilogue leaves free."""
        free = SMEM_BYTES - BARRIER_BYTES - self.epilogue_smem_bytes
        return max(0, free // self.stage_bytes)

    @property
    def smem_bytes(self) -> int:
        """Bytes of shared memory that a block takes."""
        return self.stages * self.stage_bytes + self.epilogue_smem_bytes + BARRIER_BYTES

    @property
    def buffers(self) -> dict[str, ComposedLayout]:
        """The layout of every swizzled buffer in shared memory, by name."""
        return {"A": self.a.smem, "B": self.b.smem}

    @property
    def cluster(self) -> tuple[int, int]:
        """Tiles (down, across) of a cluster: the blocks of a column share B, those of a row A."""
        return self.b.sharers, self.a.sharers

    @property
    def cluster_size(self) -> int:
        """Blocks of a cluster."""
        return self.a.sharers * self.b.sharers

    @property
    def cluster_tile(self) -> tuple[int, int]:
        """Rows and columns of C that a cluster computes at a time."""
        (rows, columns), (down, across) = self.output_tile, self.cluster
        return rows * down, columns * across

    @property
    def piece_rows(self) -> int:
        """Rows of C that are sent to another GPU at once: those of a group of the raster."""
        return self.raster.group * self.cluster_tile[0]

    def gmem_tiler(self, tiler: tuple[Any, int]) -> tuple[Any, int]:
        """The tiler (rows, columns) of a matrix in global memory; of a batch, ((rows, 1), columns).

        The rows of a batch are one mode, (rows of a matrix, matrices): a tile has those of one. A
        tiler ((rows, matrices of B), columns) becomes ((rows, matrices of B, 1), columns).
        """
        rows, columns = tiler
        if not self.batched:
            return tiler
        return (*(rows if isinstance(rows, tuple) else (rows,)), 1), columns

    @property
    def tile_scheduler(self) -> TileScheduler:
        """Who computes which tiles of C, and which of their k-tiles."""
        persistent = self.schedule != "single" and self.splits == 1
        return TileScheduler(self.raster, self.cluster, self.splits, persistent)

    def multicast(self, operand: Operand, rank: Any) -> tuple[list[Any], Any]:
        """The slices of an operand that block `rank` loads, and the blocks that receive them.

        Bit r of the mask is block r of the cluster. The blocks of a row share A; those of a column
        share B. The last slice may not exist (`Operand.slices_of`).

        >>> from cutedsl_gemm.kernels.sm90.rungs import pingpong
        >>> plan = pingpong(cluster=(2, 4))
        >>> for operand in (plan.a, plan.b):  # rank 5 is in row 1, column 2
        ...     parts, mask = plan.multicast(operand, 5)
        ...     print(operand.name, parts, f"{mask:08b}")
        A [2] 10101010
        B [1] 00110000
        """
        (down, across), (row, column) = self.cluster, self.tile_scheduler.cluster_coord(rank)
        if operand.name == "A":
            mask = sum(1 << down * other for other in range(across)) << row
            return operand.slices_of(column), mask
        return operand.slices_of(row), (1 << down) - 1 << down * column

    def loader_mask(self, rank: Any) -> Any:
        """The blocks that load into block `rank`'s stages: those of its row and of its column.

        Bit r is block r of the cluster.

        >>> from cutedsl_gemm.kernels.sm90.rungs import pingpong
        >>> f"{pingpong(cluster=(2, 4)).loader_mask(5):08b}"
        '10111010'
        """
        (_, of_row), (_, of_column) = (self.multicast(each, rank) for each in (self.a, self.b))
        return of_row | of_column

    def loaders(self, rank: int) -> list[int]:
        """The blocks of `loader_mask`.

        >>> from cutedsl_gemm.kernels.sm90.rungs import pingpong
        >>> pingpong(cluster=(2, 4)).loaders(5)
        [1, 3, 4, 5, 7]
        """
        mask = self.loader_mask(rank)
        return [block for block in range(self.cluster_size) if mask >> block & 1]

    @property
    def stage_readers(self) -> int:
        """Warps that read a stage before a block loads into it again: an empty mbarrier's count.

        >>> from cutedsl_gemm.kernels.sm90.rungs import cooperative, pingpong
        >>> cooperative().stage_readers, pingpong(cluster=(2, 4)).stage_readers
        (8, 20)
        """
        return WARPGROUP // WARP * self.consumers_per_tile * len(self.loaders(0))

    def reloaded_k_tiles(self, k_tiles: Any) -> Any:
        """How many of a block's k-tiles, from the first on, leave their stage to a later one.

        Zero or less if every k-tile has a stage of its own. No load waits for the stages of the
        remaining k-tiles.

        >>> from cutedsl_gemm.kernels.sm90.rungs import pingpong
        >>> pingpong().stages, pingpong().reloaded_k_tiles(16)
        (6, 10)
        """
        return k_tiles - self.stages

    def k_order(self, k: int) -> tuple[range, ...]:
        """The order in which every output is summed over K: a range of k for each split.

        One wgmma adds the products of `instruction_k` neighbouring k to an fp32 accumulator, from
        the range's first on; the accumulators of the splits are then added in their order. The last
        range ends with the last k-tile, where k beyond K are zeros. Equal orders give equal bits
        (tests/cutedsl_gemm/gpu/test_bits.py). M and N play no part: if a plan does not split K, a
        row of C has the same bits whatever the other rows are, as `gemm(…, invariant=True)`
        promises.

        >>> from cutedsl_gemm.kernels.sm90.rungs import pingpong, split
        >>> pingpong().k_order(500), split(splits=2).k_order(500)
        ((range(0, 512, 16),), (range(0, 256, 16), range(256, 512, 16)))
        """
        bk, k_tiles = self.tile[2], -(-k // self.tile[2])
        spans = (self.tile_scheduler.k_tile_range(split, k_tiles) for split in range(self.splits))
        return tuple(range(first * bk, last * bk, self.instruction_k) for first, last in spans)

    @property
    def pipeline(self) -> Pipeline:
        """The protocol of the kernel: when its data may be touched."""
        from cutedsl_gemm.kernels.sm90.pipeline import pipeline

        return pipeline(self)

    def reduction_parts(self, result: Result, m: int, n: int) -> int:
        """Parts in which the kernel stores a reduction of an (M, N) result."""
        raise NotImplementedError

    def workspace(self, m: int, n: int) -> int:
        """Elements of fp32 in global memory for an (M, N) product; 0 if the kernel needs none."""
        return 0

    def proofs(self) -> tuple[Proof, ...]:
        """What must hold for the plan to be right and fast, decided."""
        buffers = dict.fromkeys(self.buffers.values())  # each once
        loaded = [operand.gmem_rows(symbols("tiles")) for operand in (self.a, self.b)]
        return (
            *(prove(Bijective(buffer)) for buffer in buffers),
            *(prove(Bijective(rows)) for rows in dict.fromkeys(loaded)),
            prove(Bijective(self.accumulator)),
        )

    def memory_report(self) -> None:
        """None: TMA and wgmma make no requests of a warp; `explain` has the bank reports."""

    def device_code(self) -> Any:
        """The kernel object that `cute.compile` takes."""
        raise NotImplementedError

    def execute(
        self,
        a: Tensor,
        b: Tensor,
        out: Tensor | tuple[Tensor, ...],
        report: Report | None = None,
        operands: tuple[Tensor | float, ...] = (),
        one_by_one: bool = False,
        exchange: Exchange | None = None,
    ) -> None:
        """Compute out = a · b on CPU tensors, K > 0, moving data through the plan's layouts.

        `operands` are those of the epilogue; if it has several results, out is a tuple of them.

        If `one_by_one`, the executor adds one product after the other, in the order of K. The bits
        of an output then depend on `k_order`, its row of a and its column of b only.

        If the plan gathers A or scatters C, `exchange` is what the GPUs send to each other. What
        others send comes while the blocks work. If C is scattered, out has this GPU's rows.
        """
        from cutedsl_gemm.kernels.sm90.execute import gemm

        gemm(self, a, b, out, report, operands, exchange, one_by_one=one_by_one)

    def explain(self) -> str:
        """The plan as text: what moves where, by which layout."""
        return "\n".join(f"{subject:<12} {text}" for subject, text in self.explain_lines())

    def explain_lines(self) -> Iterator[tuple[str, str]]:
        """The lines of `explain`: (subject, text)."""
        from cutedsl_gemm.kernels.sm90.explain import explain_lines

        return explain_lines(self)

    def check(self: Checked) -> Checked:
        """The plan itself; PlanError with the first problem if the hardware cannot run it."""
        refuse(f"tile {self.tile}, {self.dtype}", self.problems())
        return self

    def problems(self) -> Iterator[str]:
        """Messages about what the hardware cannot do."""
        yield from epilogue_problems(self)
        yield from checks.matrices_problems(self)
        tile = self.tile, self.dtype, self.schedule, self.swapped
        yield from checks.tile_problems(*tile, self.matrices)
        yield from checks.role_problems(self.schedule, self.tile, self.consumers)
        yield from checks.shape_problems(self)
        yield from checks.gathered_problems(self)
        yield from checks.scattered_problems(self)
        yield from checks.batch_problems(self)
        for name, wanted, why in self.required():
            yield from field_problem(name, getattr(self, name), wanted, why)
        yield from self.a.problems()
        yield from self.b.problems()
        if self.splits == 1:
            yield from checks.consumer_problems((self.rows, self.columns), self.a, self.b)
        yield from checks.column_problems(self.columns, self.b)
        yield from checks.gap_problems(self.buffers)
        yield from checks.budget_problems(self)

    def required(self) -> Iterator[tuple[str, object, str]]:
        """The fields that the other fields and the instructions determine: (name, value, why)."""
        why = "as wgmma leaves its registers (PTX ISA, Matrix Fragments for wgmma)"
        yield "accumulator", accumulator(self.rows, self.columns), why


def atom_layout(consumers: int, bm: int) -> tuple[int, int]:
    """How this many consumers divide a tile of BM rows: down, or across if they cannot."""
    return (consumers, 1) if bm % (WGMMA_M * consumers) == 0 else (1, consumers)


def accumulator(rows: int, columns: int) -> Layout:
    """(thread, value) → m + rows * n: wgmma's (64, columns) accumulator, rows / 64 times down.

    >>> print(accumulator(128, 128))
    ((4,8,4),((2,2,16),2)):((256,1,16),((128,8,1024),64))
    """
    atom = Layout((WGMMA_M, columns), (1, rows))
    threads, values = composition(atom, wgmma_accumulator(columns))
    return make_layout(threads, make_layout(values, Layout(rows // WGMMA_M, WGMMA_M)))
