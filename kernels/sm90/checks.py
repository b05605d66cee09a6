"""What TMA, wgmma and the kernels cannot do: the checks of an sm90 plan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, get_args

from cutedsl_gemm.kernels.epilogue.expression import PLAIN
from cutedsl_gemm.kernels.plan.checks import (
    PER_VECTOR,
    choice_problem,
    count_problem,
    extents_problem,
    raster_problem,
    shape_problem,
)
from cutedsl_gemm.kernels.sm90.operand import Operand, Tile
from cutedsl_gemm.kernels.sm90.resources import (
    ADDRESS_REGISTERS,
    BARRIER_BYTES,
    EPILOGUE_REGISTERS,
    MBARRIER_BYTES,
    SMEM_BYTES,
    WGMMA_REGISTERS,
    Schedule,
    default_consumers,
    registers_at_start,
)
from layouts import (
    ComposedLayout,
    Layout,
    LayoutError,
    composition,
    cosize,
    size,
    wgmma_descriptor,
)
from layouts.hardware.atoms import WGMMA_M, WGMMA_N
from layouts.hardware.facts import WARPGROUP

if TYPE_CHECKING:
    from cutedsl_gemm.kernels.epilogue.expression import Epilogue
    from cutedsl_gemm.kernels.sm90.plan import Sm90Plan

# Tiles (down, across) of a cluster: at most the eight blocks of a portable cluster (CUDA C++
# Programming Guide, Thread Block Clusters). The kernels know powers of two. Clusters of four or
# eight leave some multiprocessors idle (device/occupancy.py).
CLUSTERS = tuple(
    (down, across) for down in (1, 2, 4, 8) for across in (1, 2, 4, 8) if down * across <= 8
)


def tile_problems(
    tile: Tile, dtype: str, schedule: Schedule, swapped: bool = False, matrices: int = 1
) -> Iterator[str]:
    """The tile and the dtype must suit TMA and wgmma; the caller's B has `matrices` matrices."""
    for problem in extents_problem("tile", tile, 3):
        yield problem
        return
    if type(swapped) is not bool:
        yield f"swapped is {swapped!r}; it must be True or False"
    bm, bn, bk = tile
    yield from choice_problem("schedule", schedule, get_args(Schedule))
    if dtype not in ("bfloat16", "float16"):
        yield f"dtype is {dtype}; the tensor core takes bfloat16 or float16 here"
    columns, why = 8, "a wgmma has a multiple of 8 columns"
    if matrices > 1 and not swapped:
        columns *= matrices
        why = f"{why}, and BN has columns of {matrices} matrices"
    for name, extent, unit, reason in (
        ("BM", bm, 64, "a wgmma has 64 rows"),
        ("BN", bn, columns, why),
        ("BK", bk, 16, "a wgmma is 16 deep"),
    ):
        if extent < unit or extent % unit:
            yield f"{name} is {extent}; it must be a multiple of {unit}, since {reason}"
    if bm > 256 or bk > 1024:
        yield f"BM is {bm} and BK is {bk}; they must be at most 256 and 1024, or no stage fits"
    if bn > 256:
        yield f"BN is {bn}; a wgmma has at most 256 columns (PTX ISA, wgmma.mma_async shapes)"


def cluster_problems(cluster: tuple[int, int]) -> Iterator[str]:
    """A cluster must have one of the shapes that the kernels know."""
    if cluster not in CLUSTERS or not all(type(extent) is int for extent in cluster):
        yield f"cluster is {cluster!r}; it must be one of {CLUSTERS}, tiles (down, across)"


def c_alignment_problems(c_alignment: object) -> Iterator[str]:
    """The rows of C must suit TMA, or be arbitrary."""
    if type(c_alignment) is not int or c_alignment not in (1, PER_VECTOR):
        yield (
            f"c_alignment is {c_alignment!r}; it must be {PER_VECTOR}, since TMA stores whole "
            "multiples of 16 bytes, or 1, where threads store C"
        )


def role_problems(schedule: Schedule, tile: Tile, consumers: int) -> Iterator[str]:
    """The schedule and the tile limit the consumers of a block.

    >>> list(role_problems("pingpong", (128, 96, 64), 4))
    ["consumers is 4; it must be 2 or 3 where the schedule is 'pingpong' and a tile has 128 × 96"]
    """
    bm, bn, _ = tile
    some = (2, 3) if schedule == "pingpong" else (default_consumers(schedule, bm, bn),)
    if type(consumers) is not int or consumers not in some:
        wanted = " or ".join(map(str, some))
        yield (
            f"consumers is {consumers!r}; it must be {wanted} where the schedule is {schedule!r} "
            f"and a tile has {bm} × {bn}"
        )


def shape_problems(plan: Sm90Plan) -> Iterator[str]:
    """The operands, counts, raster and cluster must agree with the tile and with each other."""
    bm, bn, bk = plan.tile
    if (plan.a.name, plan.b.name) != ("A", "B"):
        yield f"the operands are named {plan.a.name} and {plan.b.name}; they must be A and B"
    yield from shape_problem("A", plan.a.smem, (bm, bk))
    yield from shape_problem("B", plan.b.smem, (bn, bk))
    yield from count_problem("stages", plan.stages, 0)
    yield from count_problem("splits", plan.splits, 1)
    yield from c_alignment_problems(plan.c_alignment)
    yield from raster_problem(plan.raster)
    yield from cluster_problems(plan.cluster)
    if plan.cluster_size > 1 and plan.schedule == "single":
        yield (
            f"cluster is {plan.cluster}; it must be (1, 1) where one warpgroup does everything: "
            "this kernel does not wait for another block's slice of A or B"
        )


def gathered_problems(plan: Sm90Plan) -> Iterator[str]:
    """Only a producer warp waits for rows of A, and only of whole k-tiles."""
    if plan.gathered and (plan.swapped or plan.splits > 1 or plan.schedule == "single"):
        yield (
            f"A is gathered, and the plan is {plan.kind}{', swapped' * plan.swapped}: it must be "
            "pingpong or cooperative, and not swapped, since its producer waits for rows of A"
        )


def scattered_problems(plan: Sm90Plan) -> Iterator[str]:
    """A consumer stores what is sent, and adds the parts of other GPUs to this GPU's rows."""
    if not plan.scattered:
        return
    if plan.gathered or plan.swapped or plan.splits > 1 or plan.schedule == "single":
        yield (
            f"C is scattered, and the plan is {plan.kind}{', swapped' * plan.swapped}"
            f"{', with A gathered' * plan.gathered}: it must be pingpong or cooperative"
        )
    if plan.c_alignment != PER_VECTOR or plan.epilogue != PLAIN:
        yield "C is scattered: TMA stores the products as they are; it takes no epilogue"
    if plan.raster.of != "rows":
        yield f"C is scattered, and the raster has {plan.raster}: it must have groups of tile rows"


def batch_problems(plan: Sm90Plan) -> Iterator[str]:
    """A batch needs a pingpong or cooperative kernel; other plans have no batched operands."""
    if not plan.batched:
        if names := [each.name for each in plan.epilogue.operands if each.batched]:
            yield f"operands {names} are batched, and C is a matrix: they must not be"
        return
    if plan.gathered or plan.scattered or plan.splits > 1 or plan.schedule == "single":
        yield (
            f"C is a batch, and the plan is {plan.kind}{', with A gathered' * plan.gathered}"
            f"{', with C scattered' * plan.scattered}: it must be pingpong or cooperative"
        )


def matrices_problems(plan: Sm90Plan) -> Iterator[str]:
    """The caller's B must have a matrix for each accumulator of the epilogue."""
    found = plan.a.matrices, plan.b.matrices
    wanted = plan.exchanged((1, plan.epilogue.accumulators))
    if found != wanted or not all(type(count) is int for count in found):
        yield (
            f"the plan's A and B have {found[0]!r} and {found[1]!r} matrices; they must have "
            f"{wanted[0]} and {wanted[1]}, one of B for each accumulator of the epilogue"
        )


def consumer_problems(part: tuple[int, int], a: Operand, b: Operand) -> Iterator[str]:
    """A consumer multiplies a part of a tile, (rows, columns): it needs the rows of all matrices.

    >>> from cutedsl_gemm.kernels.sm90.operand import operands
    >>> a, b = operands((64, 64, 64), "K", "K", swapped=True, matrices=2)
    >>> for problem in consumer_problems((64, 64), a, b):
    ...     print(problem[:60])
    a consumer multiplies 64 of 64 rows of A, which are of 2 mat
    """
    (rows, columns), (bm, _), (bn, _) = part, a.shape, b.shape
    if a.matrices > 1 and (rows < bm or rows % (WGMMA_M * a.matrices)):
        yield (
            f"a consumer multiplies {rows} of {bm} rows of A, which are of {a.matrices} matrices; "
            "its threads must hold the products of an output by all of them: take 'pingpong' "
            f"with BM = {WGMMA_M * a.matrices}, or do not swap the operands"
        )
    if b.matrices > 1 and columns < bn:
        yield (
            f"a consumer multiplies {columns} of {bn} columns, which are of {b.matrices} matrices; "
            "its threads must hold the products of an output by all of them: take a smaller BN"
        )


def column_problems(columns: int, b: Operand) -> Iterator[str]:
    """The columns that a consumer multiplies must suit wgmma and the layout of B in smem.

    >>> from cutedsl_gemm.kernels.sm90.operand import operands
    >>> for problem in column_problems(108, operands((192, 216, 64), "K", "K")[1]):
    ...     print(problem)
    BN is 216, and each consumer multiplies 108 columns; they must be a multiple of 8, and BN of 16
    """
    bn, bk = b.shape
    if columns not in WGMMA_N:
        yield (
            f"BN is {bn}, and each consumer multiplies {columns} columns; they must be a multiple "
            f"of 8, and BN of {8 * round(bn / columns)}"
        )
        return
    try:
        wgmma_descriptor(composition(b.smem, (Layout(columns), Layout(bk))), b.major)
    except LayoutError as error:
        yield f"shared memory of B, {columns} of {bn} columns: {error}"


def gap_problems(buffers: dict[str, ComposedLayout]) -> Iterator[str]:
    """TMA fills a buffer from its start, without gaps."""
    for name, buffer in buffers.items():
        if buffer.offset != 0 or cosize(buffer) != size(buffer):
            yield (
                f"{name}: {buffer} must fill its buffer from offset 0 without a gap: TMA copies "
                f"{size(buffer)} elements, and the buffer has {cosize(buffer)}"
            )


def epilogue_registers(epilogue: Epilogue) -> int:
    """Registers that a thread needs for elements of matrices, or for several results at once."""
    matrices = any(operand.is_matrix for operand in epilogue.operands)
    return EPILOGUE_REGISTERS if matrices or len(epilogue.results) > 1 else 0


def budget_problems(plan: Sm90Plan) -> Iterator[str]:
    """A consumer's registers, and a block's stages and shared memory, must suffice."""
    held = plan.consumer_registers
    epilogue = plan.epilogue if plan.splits == 1 else PLAIN  # split: the second kernel evaluates it
    most = held - ADDRESS_REGISTERS - epilogue_registers(epilogue)
    if plan.registers > most:
        yield (
            f"the accumulator takes {plan.registers} registers a thread, since one warpgroup holds "
            f"{plan.rows} rows of the tile; it must be at most {most} of {held}, or it spills; "
            f"take a tile with BM * BN <= {most * WARPGROUP * plan.consumers_per_tile}"
        )
    needed, given = plan.columns // 2 + WGMMA_REGISTERS, registers_at_start(plan.threads)
    if needed > given:
        yield (
            f"a consumer multiplies {plan.columns} columns: one wgmma takes {needed} registers a "
            f"thread, and the {plan.threads} threads of a block start with {given} each; "
            "take a smaller BN"
        )
    if plan.stages < 2:
        advice = "; take a smaller tile" if plan.stages_that_fit < 2 else ""
        yield (
            f"stages is {plan.stages}; it must be at least 2, so that loads and multiplies "
            f"overlap; shared memory has room for {plan.stages_that_fit}{advice}"
        )
    needed_bytes = MBARRIER_BYTES * (2 * plan.stages + plan.loaded_panels)
    if needed_bytes > BARRIER_BYTES:
        yield (
            f"{plan.stages} stages and {plan.loaded_panels} panels have mbarriers of "
            f"{needed_bytes} bytes; a block has {BARRIER_BYTES} for them; take a smaller BN"
        )
    if plan.smem_bytes > SMEM_BYTES:
        yield (
            f"{plan.stages} stages take {plan.smem_bytes} bytes of shared memory; "
            f"a block has {SMEM_BYTES}; take fewer stages or a smaller tile"
        )
