"""What a thread of an sm90 kernel does, as its plan says: pipeline, work and layouts, as events.

`difference` compares this with the events of the compiled kernel, step by step, with all addresses,
coordinates, counts and parities.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import product, zip_longest
from math import prod
from typing import ClassVar, TypeAlias

from cutedsl_gemm.kernels.pipeline import steps
from cutedsl_gemm.kernels.pipeline.actions import Action, Counts, actions
from cutedsl_gemm.kernels.plan import tma
from cutedsl_gemm.kernels.plan.checks import BITS
from cutedsl_gemm.kernels.plan.tma import EVICT_FIRST, EVICT_NORMAL
from cutedsl_gemm.kernels.sm90.launch_policy import pass_through_l2
from cutedsl_gemm.kernels.sm90.pipeline import loaded_barrier
from cutedsl_gemm.kernels.sm90.split_k_plan import FP32, VECTOR
from layouts import composition, size, wgmma_descriptor
from layouts.hardware.atoms import WGMMA_M
from layouts.hardware.facts import WARP, WARPGROUP
from tests.kernels.ptx import events
from tests.kernels.ptx.events import Event
from tests.kernels.sm90.launches import result_names
from tests.kernels.sm90.product import Product, ceil_div

BYTES = BITS // 8  # of an element
SUM_BYTES = FP32 // 8  # of a partial sum
MBARRIER = 8  # bytes
WGMMA_K = 16
WARPS = WARPGROUP // WARP

Pair: TypeAlias = tuple[int, int]  # a row and a column, or extents
Handler: TypeAlias = Callable[["Thread", Action], Iterator[Event]]


class Smem:
    """Where dynamic shared memory has its parts, in bytes: A, B, panels of C, mbarriers."""

    def __init__(self, plan) -> None:
        self.plan = plan
        a, b = (plan.stages * operand.stage_bytes for operand in (plan.a, plan.b))
        self.panels = a + b
        full = self.panels + plan.epilogue_smem_bytes
        loaded = full + 2 * MBARRIER * plan.stages
        self.start = {"A": 0, "B": a, "full": full, "empty": full + MBARRIER * plan.stages}
        for consumer in range(plan.consumers if plan.loaded_panels else 0):
            first = consumer * plan.panels
            self.start[loaded_barrier(consumer)] = loaded + MBARRIER * first

    def stage(self, operand, k_tile: int) -> int:
        """The stage of an operand's k-tile."""
        stage = k_tile % self.plan.stages
        return self.start[operand.name] + stage * operand.stage_bytes

    def mbarrier(self, name: str, place: int) -> int:
        """The mbarrier of a stage, or of a consumer's panel."""
        return self.start[name] + MBARRIER * place

    def panel(self, consumer: int, buffer: int) -> int:
        """A buffer of a consumer's panels."""
        return self.panels + (consumer * self.plan.c_stages + buffer) * self.plan.panel_bytes


def always(*found: Event) -> Handler:
    """The same events for every action."""
    return lambda thread, action: iter(found)


class Thread:
    """A thread of a product's first kernel, or of the reduction: a method for each kind of step."""

    def __init__(self, product: Product, block: int, thread: int, kernel: int = 0) -> None:
        self.product, self.plan, self.block, self.thread = product, product.plan, block, thread
        self.pipeline, self.smem = self.plan.pipeline, Smem(self.plan)
        self.warp, self.lane = divmod(thread, WARP)
        if kernel == 0:
            self.rank, self.work_tiles = block % self.plan.cluster_size, product.work_tiles(block)
            self.counts = Counts(len(self.work_tiles), len(self.work_tiles[0].k_tiles))
            number, warp = divmod(self.warp, WARPS)
            self.agent, self.leader = self.pipeline.agents[number].name, warp == 0
        else:  # a block of the reduction has no cluster, and its warps all do the same
            self.rank, self.work_tiles, self.counts = 0, [], Counts(0, 0)
            self.agent, self.leader = "reduction", True
        first = self.plan.threads - WARPGROUP * self.plan.consumers
        self.consumer, self.consumer_thread = divmod(thread - first, WARPGROUP)
        self.multiplied: list[int] = []  # the tiles that this thread has begun, in order
        self.tests = 0  # of mbarriers
        self.ready: int | None = None  # the k-tile whose test has passed

    def expected(self) -> Iterator[tuple[Action, list[Event]]]:
        """Each action of the thread's warp, and its events."""
        (own,) = (
            taken
            for warps, taken in actions(self.pipeline, self.counts).items()
            if (warps.block, warps.agent, warps.leader) == (self.rank, self.agent, self.leader)
        )
        for action in own:
            yield action, [*self.EVENTS[type(action.step)](self, action)]

    # Barriers and registers

    def init_barriers(self, action: Action) -> Iterator[Event]:
        yield events.PrefetchTensormap("tma_a")
        yield events.PrefetchTensormap("tma_b")
        if self.plan.gathered:
            yield events.PrefetchTensormap("tma_own")
        rings = self.pipeline.mbarriers if self.lane == 0 else ()
        for place in range(self.plan.stages):
            for ring in (each for each in rings if not each.panels):
                yield events.MbarrierInit(self.smem.mbarrier(ring.name, place), ring.arrivals)
        for ring in rings:
            for place in range(ring.panels):
                yield events.MbarrierInit(self.smem.mbarrier(ring.name, place), ring.arrivals)
        yield events.FenceMbarrierInit()

    def registers(self, action: Action) -> Iterator[Event]:
        yield events.SetMaxNReg("dec" if self.agent == "producer" else "inc", action.step.count)

    def sync(self, action: Action) -> Iterator[Event]:
        barrier = self.pipeline.named_barrier(action.step.barrier)
        yield events.BarSync(barrier.number, barrier.threads)

    def sync_arrive(self, action: Action) -> Iterator[Event]:
        barrier = self.pipeline.named_barrier(action.step.barrier)
        yield events.BarArrive(barrier.number, barrier.threads)

    # Stages

    def wait(self, action: Action) -> Iterator[Event]:
        if not action.step.of_k_tile or action.k_tile != self.ready:
            phase = action.phase(self.plan.stages)[1] + action.step.flipped
            yield events.MbarrierTryWait(self.mbarrier(action), phase % 2)

    def peek(self, action: Action) -> Iterator[Event]:
        """Every second test passes, as in the machine."""
        self.tests += 1
        passes = self.tests % 2 == 0
        self.ready = action.k_tile if passes else None
        parity = action.phase(self.plan.stages)[1] % 2
        yield events.MbarrierTestWait(self.mbarrier(action), parity, passes)

    def arrive(self, action: Action) -> Iterator[Event]:
        """The first lane arrives at its block; in a cluster, lane r arrives at block r."""
        if self.lane in action.step.blocks[self.rank]:
            rank = self.lane if self.plan.cluster_size > 1 else None
            yield events.MbarrierArrive(self.mbarrier(action), rank, 1)

    def expect(self, action: Action) -> Iterator[Event]:
        if self.lane == 0:
            yield events.MbarrierArriveExpectTx(self.mbarrier(action), action.step.bytes)

    def mbarrier(self, action: Action) -> int:
        """The address of the mbarrier of the action's k-tile, or of its buffer."""
        return self.smem.mbarrier(action.step.barrier, action.phase(self.plan.stages)[0])

    def wait_for_rows(self, action: Action) -> Iterator[Event]:
        """The flag of the tile's chunk, unless it is this GPU's or that of the tile before.

        Or the flags of all parts of a tile of C, if it is this GPU's.
        """
        if self.plan.scattered:
            if self.chunk(action.tile) == self.product.number:
                for gpu in self.others:
                    yield self.flag(events.AcquireFlag, "arrived", gpu, action)
            return
        chunk, before = self.chunk(action.tile), self.product.number
        if action.tile:
            before = self.chunk(action.tile - 1)
        if chunk not in (self.product.number, before):
            yield events.AcquireFlag("arrived", 4 * chunk)
            yield events.FenceProxyAsync(shared=False)

    def chunk(self, tile: int) -> int:
        """The GPU that sends the rows of the block's tile, or has them."""
        return self.work_tiles[tile].coord[0] * self.plan.tile[0] // self.product.own_rows

    def flag(self, event, tensor: str, gpu: int, action: Action, *value: int) -> Event:
        """An event at the flag of a GPU (GPUs, pieces), of the piece that has the tile's rows."""
        rows = self.product.own_rows
        pieces = ceil_div(rows, self.plan.piece_rows)
        row = self.work_tiles[action.tile].coord[0] * self.plan.tile[0] % rows
        return event(tensor, 4 * (gpu * pieces + row // self.plan.piece_rows), *value)

    @property
    def others(self) -> list[int]:
        """The other GPUs, from the one behind this on."""
        gpus = self.product.gpus
        return [(self.product.number + step) % gpus for step in range(1, gpus)]

    def load(self, action: Action) -> Iterator[Event]:
        """TMA loads of this block's slice of an operand's k-tile, box by box."""
        if self.lane or not action.step.blocks[self.rank]:
            return
        step, work_tile = action.step, self.work_tiles[action.tile]
        mode, operand = (0, self.plan.a) if step.operand == "A" else (1, self.plan.b)
        k_tile = work_tile.k_tiles[action.k_tile % self.counts.k_tiles]
        (i, j), (rows, columns) = operand.slice_coord(step.slices[self.rank]), operand.slice_shape
        corner = i * rows, j * columns  # of the slice in the tile
        start = self.smem.stage(operand, action.k_tile) + operand.smem.outer(corner) * BYTES
        multicast = sum(1 << block for block in step.blocks[self.rank])
        matrix, coord = self.product.in_matrix(work_tile)
        source, tile = f"tma_{step.operand.lower()}", coord[mode]
        rows, columns = self.plan.operand_rows(*self.product.c_shape)
        rows *= self.product.batch
        first = pass_through_l2(self.plan, rows, columns, self.product.k)[mode]
        if self.plan.gathered and mode == 0 and self.chunk(action.tile) == self.product.number:
            source = "tma_own"
            tile -= self.product.number * self.product.own_rows // self.plan.tile[0]
        for place, offset in boxes(slice_origins(operand), operand.contiguous, corner):
            yield events.TmaLoad(
                source,
                in_matrices(operand, place, tile, k_tile) + self.of_batch(matrix),
                start + offset,
                self.mbarrier(action),
                multicast if operand.sharers > 1 else None,
                EVICT_FIRST if first else EVICT_NORMAL,
            )

    def of_batch(self, matrix: int) -> tuple[int, ...]:
        """The last coordinate of a box, if it is in a batch."""
        return (matrix,) if self.plan.batched else ()

    # Accumulators

    def multiply(self, action: Action) -> Iterator[Event]:
        """The wgmmas of a k-tile: for each 16 columns of A, each 64 rows of the consumer."""
        plan = self.plan
        if action.tile not in self.multiplied:
            self.multiplied.append(action.tile)
        a, b = (self.smem.stage(operand, action.k_tile) for operand in (plan.a, plan.b))
        # `single` sets its registers to zero, and adds to them from the first wgmma on.
        fresh = action.k_tile % self.counts.k_tiles == 0 and plan.schedule != "single"
        yield events.WgmmaFence()
        for k in range(0, plan.tile[2], WGMMA_K):
            for m in range(0, plan.rows, WGMMA_M):
                yield events.Wgmma(
                    (WGMMA_M, plan.columns, WGMMA_K),
                    a + plan.a.smem.outer(self.first_row + m, k) * BYTES,
                    descriptor(plan.a, WGMMA_M),
                    b + plan.b.smem.outer(self.first_column, k) * BYTES,
                    descriptor(plan.b, plan.columns),
                    not (fresh and k == 0),
                    self.accumulator(m // WGMMA_M),
                )
        yield events.WgmmaCommitGroup()

    @property
    def first_row(self) -> int:
        """Where this consumer's rows of a tile begin."""
        return self.part[0] * self.plan.rows

    @property
    def first_column(self) -> int:
        """Where this consumer's columns of a tile begin."""
        return self.part[1] * self.plan.columns

    @property
    def part(self) -> Pair:
        """Which part of a tile is this consumer's: its rows, and its columns."""
        return self.plan.consumer_coord((0, 0), self.consumer % self.plan.consumers_per_tile)

    def accumulator(self, m64: int) -> int:
        """The number of the accumulator of 64 rows, counted over the thread's tiles."""
        return (len(self.multiplied) - 1) * (self.plan.rows // WGMMA_M) + m64

    def sum(self, value: int) -> events.Source:
        """The accumulator of a value of the tile, and its place there; None before any product."""
        if not self.multiplied:
            return None
        m64, place = divmod(value, self.plan.columns // 2)
        return self.accumulator(m64), place

    def multiply_wait(self, action: Action) -> Iterator[Event]:
        yield events.WgmmaWaitGroup(action.step.pending)

    # C

    def store_wait(self, action: Action) -> Iterator[Event]:
        """Of a tile that is stored to another GPU, until it is in memory there."""
        read, own = not action.step.written, self.product.number
        if read or self.chunk(action.tile) != own:
            yield events.BulkWaitGroup(action.step.pending, read)

    def load_panel(self, action: Action) -> Iterator[Event]:
        """The TMA loads of an operand's panel, box by box."""
        if self.lane:
            return
        step, plan = action.step, self.plan
        origin = self.panel_origin(action, step.panel)
        start = self.smem.panel(self.consumer, step.buffer)
        operand = plan.planned_epilogue.operands[plan.staged_operands[step.slot]]
        matrix, _ = self.product.in_matrix(self.work_tiles[action.tile])
        for place, offset in boxes(panel_origins(plan), plan.contiguous, origin):
            yield events.TmaLoad(
                f"tma_{step.operand}",
                place + (self.of_batch(matrix) if operand.batched else ()),
                start + offset,
                self.mbarrier(action),
                None,
                EVICT_FIRST,
            )

    def add_rows(self, action: Action) -> Iterator[Event]:
        """The pairs of this thread in some panels, of each part of a tile of this GPU's rows.

        A pair beyond the last column is clamped to the last pair.
        """
        if self.chunk(action.tile) != self.product.number:
            return
        plan, (rows, columns) = self.plan, (self.product.own_rows, self.product.c_shape[1])
        first = self.origin(action)
        count = size(plan.fragment.shape[:3])
        for gpu in self.others:
            panels = action.step.panel, action.step.panel + action.step.panels
            for value in range(*(panel * count for panel in panels), 2):
                row, column = plan.coordinates
                thread = self.consumer_thread
                m, n = add(first, (row(thread, value), column(thread, value)))
                place = (gpu * rows + m) * columns + min(n, (columns - 1) // 2 * 2)
                yield events.LoadGlobal("parts", place * BYTES, 2 * BYTES)

    def tell_stored(self, action: Action) -> Iterator[Event]:
        """The elements of the consumer's part of a tile, counted for the GPU that has them."""
        owner = self.chunk(action.tile)
        if self.lane or owner == self.product.number:
            return
        across = self.plan.consumer_tile[1]
        columns = self.product.c_shape[1] - self.origin(action)[1]
        told = self.plan.panel_rows * max(min(across, columns), 0)
        yield self.flag(events.AddToFlag, "stored", owner, action, told)

    def lane_rows(self, buffer: int) -> Iterator[tuple[Pair, int]]:
        """(m64, S columns) and the address of this lane's row, for each stmatrix of a panel."""
        plan, warp = self.plan, self.consumer_thread // WARP
        start, lane = (
            self.smem.panel(self.consumer, buffer),
            self.lane % (8 * plan.stmatrix.matrices),
        )
        for n in range(plan.panel_columns // plan.stmatrix_columns):
            for m in range(plan.panel_rows // WGMMA_M):
                row = plan.stmatrix_rows((lane, warp, m, n))
                yield (m, n), start + plan.staging(row) * BYTES

    def read_panel(self, action: Action) -> Iterator[Event]:
        """The ldmatrix of a panel of all operands, part by part: this lane's row.

        They stand for the steps of all operands, the first of which yields them.
        """
        atom, step = self.plan.ldmatrix, action.step
        for rows in () if step.slot else self.loaded_rows(step.panel):
            for address in rows:
                yield events.LdMatrix(address, atom.matrices, atom.transposed)

    def loaded_rows(self, panel: int) -> Iterator[tuple[int, ...]]:
        """The address of this lane's row in the panel of each operand, for each ldmatrix."""
        plan = self.plan
        slots = range(len(plan.staged_operands))
        of_operands = [self.lane_rows(plan.buffer(panel, slot)) for slot in slots]
        for rows in zip(*of_operands, strict=True):
            yield tuple(address for _, address in rows)

    def write_panel(self, action: Action) -> Iterator[Event]:
        """The stmatrix of a panel: this lane's row, and its values."""
        plan, step = self.plan, action.step
        its = [*self.lane_rows(step.buffer)]
        loaded = self.loaded_rows(step.panel) if plan.staged_operands else [()] * len(its)
        for ((m, n), address), rows in zip(its, loaded, strict=True):
            values = (
                joined(self.products(v, m, n, step.panel), *(row + v * BYTES for row in rows))
                for v in range(size(plan.fragment[0]))
            )
            yield events.StMatrix(
                address, plan.stmatrix.matrices, plan.stmatrix.transposed, tuple(values)
            )

    def products(self, *coord: int) -> events.Source:
        """The accumulators of which an output is computed: one for each matrix of B."""
        fragment = self.plan.fragment
        if (matrices := self.plan.matrices) == 1:
            return self.sum(fragment(coord))
        return frozenset(self.sum(fragment((*coord, matrix))) for matrix in range(matrices))

    def store_panel(self, action: Action) -> Iterator[Event]:
        """TMA stores a panel, box by box, or the threads store its elements."""
        plan, step = self.plan, action.step
        origin = self.panel_origin(action, step.panel)
        start = self.smem.panel(self.consumer, step.buffer)
        matrix, _ = self.product.in_matrix(self.work_tiles[action.tile])
        name, owner = result_names(plan)[step.slot], self.chunk(action.tile)
        if plan.scattered and owner == self.product.number:
            name = "c"
        elif plan.scattered:
            origin = add(origin, (owner * self.product.own_rows, 0))
        if not step.asynchronous:
            yield from self.store_elements(start, origin, matrix)
            return
        # Every lane lists it: without elect.sync, ptxas issues it once for the warp.
        for place, offset in boxes(panel_origins(plan), plan.contiguous, origin):
            at = place + self.of_batch(matrix)
            yield events.TmaStore(f"tma_{name}", at, start + offset, EVICT_FIRST)
        yield events.BulkCommitGroup()

    def panel_origin(self, action: Action, panel: int) -> Pair:
        """The first row and column of a panel that a step loads or stores."""
        return add(self.origin(action), (0, panel * self.plan.panel_columns))

    def origin(self, action: Action) -> Pair:
        """The first row and column of this consumer's part of a tile, on the GPU that has it."""
        plan, (_, (m, n)) = self.plan, self.product.in_matrix(self.work_tiles[action.tile])
        rows, columns = plan.output_tile
        if plan.scattered:
            m %= self.product.own_rows // rows
        first = self.first_row // plan.a.matrices, self.first_column // plan.b.matrices
        return add((m * rows, n * columns), first)

    def store_elements(self, start: int, origin: Pair, matrix: int) -> Iterator[Event]:
        """The words and elements of a panel that the thread stores, those that C has."""
        plan, lines, along = self.plan, self.plan.lines, self.plan.contiguous
        panel = plan.panel_rows, plan.panel_columns
        left = zip(panel, self.product.extents, origin, strict=True)
        rows, columns = (max(0, min(of, end - at)) for of, end, at in left)
        stride = self.product.c_stride
        before = matrix * self.product.c_shape[0] * stride
        first = before + origin[1 - along] * stride + origin[along]
        for word in range(0, prod(panel), lines.width):
            yield events.LoadShared(start + word * BYTES, lines.width * BYTES)
        for element in range(prod(panel)):
            yield events.LoadShared(start + element * BYTES, BYTES)
        stores = lines.stored_by(self.consumer_thread, (rows, columns), first, stride)
        for line, position, count in stores:
            at = range(position, position + count)
            places = [(line, each) if along else (each, line) for each in at]
            values = tuple(start + plan.staging(place) * BYTES for place in places)
            place = plan.exchanged(add(origin, places[0]))
            yield self.store_c(place, count * BYTES, values, before)

    def store_c(self, place: Pair, count: int, values, before: int = 0) -> Event:
        """A store of `count` bytes from (row, column) of the caller's C, or of its matrix, on."""
        offset = before + place[0] * self.product.c_stride + place[1]
        return events.StoreGlobal("gC", offset * BYTES, count, values)

    # Partial sums

    def store_accumulator(self, action: Action) -> Iterator[Event]:
        """The partial sums of the thread, if C has a row of its warp."""
        plan, (tile, number, split, _) = self.plan, self.work_tiles[0]
        rows = plan.output_tile[0]
        warp_row = (self.first_row + 16 * (self.consumer_thread // WARP)) % rows
        if tile[0] * rows + warp_row >= self.product.extents[0]:
            return
        start, width = self.partial_sums(number, split), plan.store_vector
        for value in range(0, size(plan.accumulator[1]), width):
            n, m = divmod(plan.accumulator(self.consumer_thread, value), plan.rows)
            place = self.first_row + m, self.first_column + n
            offset = start + plan.partial_sums(*place) * SUM_BYTES
            sums = tuple(map(self.sum, range(value, value + width)))
            yield events.StoreGlobal("sums", offset, width * SUM_BYTES, sums)

    def partial_sums(self, number: int, split: int) -> int:
        """The byte of the workspace at which a split of a tile begins."""
        return (split * self.product.tiles + number) * size(self.plan.partial_sums) * SUM_BYTES

    def reduce(self, action: Action) -> Iterator[Event]:
        """Loads of all splits, and stores of C: vectors, or the elements of one that an edge cuts.

        A block none of whose rows C has does nothing.
        """
        plan = self.plan
        number, group, origin = self.product.reduced(self.block)
        if origin[0] >= self.product.c_shape[0]:
            return
        for matrix, split in product(range(plan.matrices), range(plan.splits)):
            start = self.partial_sums(number, split)
            for at in vectors(plan.reduction, self.thread):
                row, column = group * plan.reduction_rows + at[0][0], at[0][1]
                coord = (row, column, matrix) if plan.matrices > 1 else (row, column)
                offset = plan.c_partial_sums(coord) * SUM_BYTES
                yield events.LoadGlobal("sums", start + offset, VECTOR * SUM_BYTES)
        for at in vectors(plan.reduction_store, self.thread):
            places = [add(origin, each) for each in at]
            present = [place for place in places if inside(place, self.product.c_shape)]
            if present == places:
                yield self.store_c(places[0], len(places) * BYTES, ())
            else:
                yield from (self.store_c(place, BYTES, ()) for place in present)

    EVENTS: ClassVar[dict[type[steps.Step], Handler]] = {
        steps.InitBarriers: init_barriers,
        steps.ClusterSync: always(events.ClusterArrive(), events.ClusterWait()),
        steps.GridWait: always(events.GridDependencyWait()),
        steps.GridLaunch: always(events.LaunchDependents()),
        steps.Registers: registers,
        steps.Sync: sync,
        steps.SyncArrive: sync_arrive,
        steps.Wait: wait,
        steps.Peek: peek,
        steps.Arrive: arrive,
        steps.Expect: expect,
        steps.WaitForRows: wait_for_rows,
        steps.Load: load,
        steps.Multiply: multiply,
        steps.MultiplyWait: multiply_wait,
        steps.StoreWait: store_wait,
        steps.LoadPanel: load_panel,
        steps.ReadPanel: read_panel,
        steps.WritePanel: write_panel,
        steps.Fence: always(events.FenceProxyAsync()),
        steps.StorePanel: store_panel,
        steps.AddRows: add_rows,
        steps.TellStored: tell_stored,
        steps.StoreAccumulator: store_accumulator,
        steps.Reduce: reduce,
    }


def boxes(origins, contiguous: int, first: Pair) -> Iterator[tuple[Pair, int]]:
    """TMA's boxes of a tile that begins at (row, column) `first` of a matrix.

    Each is the box's coordinates, the contiguous mode first, and its byte in the tile.
    """
    for across, along, offset in origins:
        yield (first[contiguous] + along, first[1 - contiguous] + across), offset * BYTES


@cache
def panel_origins(plan):
    """The origins of the boxes of a panel of C."""
    return tma.boxes(plan.staging, plan.contiguous).origins


@cache
def slice_origins(operand):
    """The origins of the boxes of a block's slice of an operand."""
    return tma.boxes(operand.slice_smem, operand.contiguous, operand.slice_matrices).origins


def in_matrices(operand, place: Pair, tile: int, k_tile: int) -> tuple[int, ...]:
    """The coordinates of a place in a tile of an operand: those in a matrix, then the matrix."""
    (rows, columns), along_k = operand.shape, 1 - operand.contiguous
    rows //= operand.matrices
    matrix, row = divmod(place[1 - along_k], rows)
    at = [tile * rows + row, k_tile * columns + place[along_k]]
    if operand.contiguous:
        at.reverse()
    return (*at, matrix) if operand.matrices > 1 else tuple(at)


@cache
def descriptor(operand, rows: int):
    """The fields of the matrix descriptor by which wgmma reads `rows` rows of an operand."""
    return wgmma_descriptor(composition(operand.smem, (rows, WGMMA_K)), operand.major)


def vectors(copy, thread: int) -> Iterator[list[Pair]]:
    """(row, column) of each element of each vector of a thread's copy."""
    for value in range(0, copy.values, copy.width):
        elements = range(value, value + copy.width)
        # Values have the shape (lines, (width, vectors)): the first mode runs fastest.
        yield [(copy.rows(thread, each), copy.columns(thread, each)) for each in elements]


def joined(*sources: events.Source) -> events.Source:
    """The source of what is computed from several sources."""
    every = (each if isinstance(each, frozenset) else {each} - {None} for each in sources)
    found = frozenset().union(*every)
    return found if len(found) > 1 else next(iter(found), None)


def add(a: Pair, b: Pair) -> Pair:
    """a + b, mode by mode."""
    return a[0] + b[0], a[1] + b[1]


def inside(place: Pair, extents: Pair) -> bool:
    """Whether a matrix of these extents has (row, column)."""
    return place[0] < extents[0] and place[1] < extents[1]


# Events of one step whose order is free.
UNORDERED = {
    events.TmaLoad,
    events.TmaStore,
    events.Wgmma,
    events.StMatrix,
    events.LdMatrix,
    events.StoreGlobal,
    events.LoadGlobal,
}


def difference(thread: Thread, found: list[Event]) -> str:
    """The first action whose events differ from those found; empty if all agree.

    The compiler may leave out loads from shared memory that no store needs.
    """
    rest = deque(map(known, found))
    for action, wanted in thread.expected():
        loads = {event for event in wanted if isinstance(event, events.LoadShared)}
        needed = [known(event) for event in wanted if event not in loads]
        done: list[Event] = []
        while rest and (len(done) < len(needed) or rest[0] in loads):
            event = rest.popleft()
            if event not in loads:
                done.append(event)
        if not same(needed, done):
            return f"{action}{lines(needed, done)}"
    return f"more than the plan says: {[*rest][:3]}" if rest else ""


def known(event: Event) -> Event:
    """The event; a store of totals or zeros, whose source is not known, without its values."""
    if isinstance(event, events.StoreGlobal) and {*event.values} == {None}:
        return replace(event, values=())
    return event


def lines(needed: list[Event], done: list[Event]) -> str:
    """A line for each event in which they differ."""
    pairs = zip_longest(needed, done)
    return "".join(f"\n  plan {plan}\n  code {code}" for plan, code in pairs if plan != code)


def same(wanted: list[Event], found: list[Event]) -> bool:
    """Whether these are the same events, in order if the step has one."""
    if UNORDERED.isdisjoint(map(type, wanted)):
        return wanted == found
    return Counter(wanted) == Counter(found)
