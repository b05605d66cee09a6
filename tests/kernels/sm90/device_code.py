"""What a thread of an sm90 kernel does, as its plan says: pipeline, work and layouts, as events.

`difference` compares this with the events of the compiled kernel (kernels/compile/ptx), step by
step, with all addresses, coordinates, counts and parities.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest

from cutedsl_gemm.kernels.compile.ptx import events
from cutedsl_gemm.kernels.compile.ptx.events import Event
from cutedsl_gemm.kernels.pipeline.actions import Action, Counts, actions
from cutedsl_gemm.kernels.plan import tma
from cutedsl_gemm.kernels.plan.checks import BITS
from cutedsl_gemm.kernels.sm90.epilogue import EVICT_FIRST
from cutedsl_gemm.kernels.sm90.split_k_plan import VECTOR
from layouts import composition, cosize, size, wgmma_descriptor

BYTES = BITS // 8  # of an element
MBARRIER = 8  # bytes


class Thread:
    """A thread of the first kernel of a plan, for an (m, n, k) product on so many blocks."""

    def __init__(self, plan, m, n, k, block, blocks, thread) -> None:
        self.plan, self.pipeline = plan, plan.pipeline
        self.extents = plan.exchanged((m, n))  # of the plan's C
        self.ld = n  # the leading stride of the caller's C
        self.cluster_counts = [
            -(-extent // tile) for extent, tile in zip(self.extents, plan.cluster_tile, strict=True)
        ]
        self.rank = block % plan.cluster_size
        k_tiles = -(-k // plan.tile[2])
        self.segments = [*plan.work.segments(block, blocks, *self.cluster_counts, k_tiles)]
        self.counts = Counts(len(self.segments), len(self.segments[0].k_tiles))
        self.warp, self.lane = divmod(thread, 32)
        self.agent = self.pipeline.agents[self.warp // 4].name
        self.consumer = self.warp // 4 - (plan.schedule != "single")
        self.leader = self.warp % 4 == 0
        self.tiles: list[int] = []  # that this thread multiplied, in order
        # Shared memory, in bytes: A, B, the panels of C, full, empty.
        a, b = (plan.stages * plan.operand_bytes(operand) for operand in (plan.a, plan.b))
        self.base = {"A": 0, "B": a, "C": a + b, "full": a + b + plan.epilogue_smem_bytes}
        self.base["empty"] = self.base["full"] + MBARRIER * plan.stages

    def actions(self) -> list[Action]:
        """What the thread's warp does."""
        every = actions(self.pipeline, self.counts)
        return next(
            own
            for warps, own in every.items()
            if (warps.block, warps.agent, warps.leader) == (self.rank, self.agent, self.leader)
        )

    def expected(self) -> Iterator[tuple[Action, list[Event]]]:
        """The events of each action."""
        for action in self.actions():
            yield action, [*getattr(self, f"_{type(action.step).__name__}")(action.step, action)]

    def mbarrier(self, name: str, k_tile: int) -> int:
        """The address of the mbarrier of a k-tile's stage."""
        return self.base[name] + MBARRIER * (k_tile % self.plan.stages)

    # The steps

    def _InitBarriers(self, step, action):
        yield events.PrefetchTensormap("tma_a")
        yield events.PrefetchTensormap("tma_b")
        for k_tile in range(self.plan.stages * (self.lane == 0)):
            for barrier in self.pipeline.mbarriers:
                yield events.MbarrierInit(self.mbarrier(barrier.name, k_tile), barrier.arrivals)
        yield events.FenceMbarrierInit()

    def _ClusterSync(self, step, action):
        yield from (events.ClusterArrive(), events.ClusterWait())

    def _GridWait(self, step, action):
        yield events.GridDependencyWait()

    def _GridLaunch(self, step, action):
        yield events.LaunchDependents()

    def _Registers(self, step, action):
        yield events.SetMaxNReg("dec" if self.agent == "producer" else "inc", step.count)

    def _Sync(self, step, action):
        barrier = self.pipeline.named_barrier(step.barrier)
        yield events.BarSync(barrier.number, barrier.threads)

    def _SyncArrive(self, step, action):
        barrier = self.pipeline.named_barrier(step.barrier)
        yield events.BarArrive(barrier.number, barrier.threads)

    def _Wait(self, step, action):
        phase = action.k_tile // self.plan.stages + step.flipped
        yield events.MbarrierTryWait(self.mbarrier(step.barrier, action.k_tile), phase % 2)

    def _Arrive(self, step, action):
        for block in step.blocks[self.rank] if self.lane == 0 else ():
            rank = None if self.plan.cluster_size == 1 else block
            yield events.MbarrierArrive(self.mbarrier(step.barrier, action.k_tile), rank, 1)

    def _Expect(self, step, action):
        if self.lane == 0:
            address = self.mbarrier(step.barrier, action.k_tile)
            yield events.MbarrierArriveExpectTx(address, step.bytes)

    def _Load(self, step, action):
        if self.lane:
            return
        plan, segment = self.plan, self.segments[action.tile]
        operand = {"A": plan.a, "B": plan.b}[step.operand]
        tile = segment.tile[0 if step.operand == "A" else 1]
        k = segment.k_tiles[action.k_tile - action.tile * self.counts.k_tiles]
        rows, columns = operand.slice_shape
        i, j = operand.slice_coord(step.parts[self.rank])
        first = tile * operand.shape[0] + i * rows, k * operand.shape[1] + j * columns
        stage = action.k_tile % plan.stages * plan.operand_bytes(operand)
        start = self.base[step.operand] + stage
        start += operand.smem.outer(i * rows, j * columns) * BYTES
        blocks = step.blocks[self.rank]
        mask = sum(1 << block for block in blocks) if operand.slices > 1 else None
        for row, column, offset in tma.boxes(operand.slice_smem, operand.contiguous).origins:
            yield events.TmaLoad(
                f"tma_{step.operand.lower()}",
                self.coordinates(first, row, column, operand.contiguous),
                start + offset * BYTES,
                self.mbarrier(step.barrier, action.k_tile),
                mask,
                0,
            )

    def coordinates(self, first, row, column, contiguous):
        """Where a box is in a matrix, the contiguous mode first."""
        return first[contiguous] + column, first[1 - contiguous] + row

    def _Multiply(self, step, action):
        plan = self.plan
        if action.tile not in self.tiles:
            self.tiles.append(action.tile)
        yield events.WgmmaFence()
        bases = [
            self.base[operand.name] + action.k_tile % plan.stages * plan.operand_bytes(operand)
            for operand in (plan.a, plan.b)
        ]
        first_row = self.consumer % plan.consumers_per_tile * plan.rows
        a_fields, b_fields = (
            wgmma_descriptor(composition(operand.smem, (rows, 16)), operand.major)
            for operand, rows in ((plan.a, 64), (plan.b, plan.tile[1]))
        )
        fresh = action.k_tile == action.tile * self.counts.k_tiles and plan.schedule != "single"
        for k in range(0, plan.tile[2], 16):
            for m in range(0, plan.rows, 64):
                yield events.Wgmma(
                    (64, plan.tile[1], 16),
                    bases[0] + plan.a.smem.outer(first_row + m, k) * BYTES,
                    a_fields,
                    bases[1] + plan.b.smem.outer(0, k) * BYTES,
                    b_fields,
                    not (fresh and k == 0),
                    self.accumulator(m // 64),
                )
        yield events.WgmmaCommitGroup()

    def accumulator(self, m):
        """The number of the accumulator of rows 64 * m, counted over the thread's tiles."""
        return (len(self.tiles) - 1) * (self.plan.rows // 64) + m

    def _MultiplyWait(self, step, action):
        yield events.WgmmaWaitGroup(step.pending)

    def _WritePanel(self, step, action):
        plan = self.plan
        lanes = 8 * plan.stmatrix.matrices
        start = self.base["C"] + self.buffer(step) * plan.panel_bytes
        held = size(plan.fragment[0])
        for n in range(plan.panel_columns // plan.stmatrix_columns):
            for m in range(plan.rows // 64):
                row = plan.stmatrix_rows((self.lane % lanes, self.warp % 4, m, n))
                address = start + plan.staging(row) * BYTES
                values = (plan.fragment((v, m, n, step.panel)) for v in range(held))
                yield events.StMatrix(
                    address,
                    plan.stmatrix.matrices,
                    plan.stmatrix.transposed,
                    tuple(self.sum(value) for value in values),
                )

    def sum(self, value):
        """The accumulator and the place in it of a thread's accumulator value, if it has one."""
        if not self.tiles:
            return None
        m, place = divmod(value, self.plan.tile[1] // 2)
        return self.accumulator(m), place

    def buffer(self, step):
        return self.consumer * self.plan.c_stages + step.buffer

    def _Fence(self, step, action):
        yield events.FenceProxyAsync()

    def _StorePanel(self, step, action):
        plan = self.plan
        if not step.asynchronous:
            yield from self.thread_stores(step, action)
            return
        start = self.base["C"] + self.buffer(step) * plan.panel_bytes
        first = self.first_of_panel(step, action)
        # ptxas makes one instruction of a warp of it, without elect.sync.
        for row, column, offset in tma.boxes(plan.staging, plan.contiguous).origins:
            yield events.TmaStore(
                "tma_c",
                self.coordinates(first, row, column, plan.contiguous),
                start + offset * BYTES,
                EVICT_FIRST,
            )
        yield events.BulkCommitGroup()

    def first_of_panel(self, step, action):
        """The row and column of the plan's C where a panel begins."""
        plan, (m, n) = self.plan, self.segments[action.tile].tile
        part = self.consumer % plan.consumers_per_tile
        row = m * plan.tile[0] + part * plan.rows
        return row, n * plan.tile[1] + step.panel * plan.panel_columns

    def thread_stores(self, step, action):
        """The elements of a panel that the thread stores, those that C has."""
        plan, copy = self.plan, self.plan.panel_copy
        first, thread = self.first_of_panel(step, action), self.warp % 4 * 32 + self.lane
        start = self.base["C"] + self.buffer(step) * plan.panel_bytes
        for value in range(size(copy.rows[1])):
            row, column = copy.rows(thread, value), copy.columns(thread, value)
            source = start + plan.staging(row, column) * BYTES
            yield events.LoadShared(source, BYTES)
            place = first[0] + row, first[1] + column
            if place[0] < self.extents[0] and place[1] < self.extents[1]:
                row, column = plan.exchanged(place)
                yield events.StoreGlobal("gC", (row * self.ld + column) * BYTES, BYTES, (source,))

    def _StoreWait(self, step, action):
        yield events.BulkWaitGroup(step.pending, True)

    def _StoreAccumulator(self, step, action):
        plan, (tile, number, split, _) = self.plan, self.segments[0]
        rows_left = self.extents[0] - tile[0] * plan.tile[0]
        first = self.consumer * plan.rows
        if first + 16 * (self.warp % 4) >= rows_left:
            return
        bm, bn, _ = plan.tile
        tiles = self.cluster_counts[0] * self.cluster_counts[1] * plan.cluster_size
        at = (split * tiles + number) * bm * bn
        thread, width = self.warp % 4 * 32 + self.lane, plan.store_vector
        values = size(plan.accumulator[1])
        for value in range(0, values, width):
            n, m = divmod(plan.accumulator(thread, value), plan.rows)
            place = at + plan.partial_sums(first + m, n)
            sums = tuple(self.sum(value + each) for each in range(width))
            yield events.StoreGlobal("sums", place * 4, width * 4, sums)


# What a step does in any order, and loads, of which the compiler may leave out those not needed.
UNORDERED = events.TmaLoad, events.TmaStore, events.Wgmma, events.StMatrix, events.StoreGlobal
LOADS = events.LoadShared


def difference(thread: Thread, found: list[Event]) -> str:
    """The first action whose events differ from those found; empty if all agree."""
    place = 0
    for action, wanted in thread.expected():
        stores = [event for event in wanted if not isinstance(event, LOADS)]
        part: list[Event] = []
        loads: list[Event] = []
        while len(part) < len(stores) and place < len(found):
            event = found[place]
            (loads if isinstance(event, LOADS) else part).append(event)
            place += 1
        in_any_order = {type(event) for event in stores} & {*UNORDERED}
        same = Counter(part) == Counter(stores) if in_any_order else part == stores
        if not same or Counter(loads) - Counter(wanted):
            return f"{action.warps}, tile {action.tile}, k-tile {action.k_tile}: {action.step}" + (
                "".join(f"\n  plan {a}\n  code {b}" for a, b in zip_longest(stores, part) if a != b)
            )
    rest = [event for event in found[place:] if not isinstance(event, LOADS)]
    return f"more than the plan says: {rest[:3]}" if rest else ""


def reduction(plan, m, n, block, thread) -> list[Event]:
    """The events of a thread of the second kernel, in any order but for the wait at their begin."""
    parts = plan.c_tile[0] // plan.reduction_rows
    number, part = divmod(block, parts)
    index, rank = divmod(number, plan.cluster_size)
    counts = [-(-e // t) for e, t in zip(plan.exchanged((m, n)), plan.cluster_tile, strict=True)]
    tiles = counts[0] * counts[1] * plan.cluster_size
    tile = plan.exchanged(plan.work.tile_coord(index, rank, *counts))
    first = tile[0] * plan.c_tile[0] + part * plan.reduction_rows, tile[1] * plan.c_tile[1]
    if first[0] >= m:
        return []
    return [
        *_loads(plan, number, tiles, part, thread),
        *_stores(plan.reduction_store, first, (m, n), thread),
    ]


def _loads(plan, number, tiles, part, thread):
    rows, columns = plan.reduction.rows, plan.reduction.columns
    for split in range(plan.splits):
        start = (split * tiles + number) * cosize(plan.partial_sums)
        for value in range(0, plan.reduction.values):
            if plan.reduction.registers(value) % VECTOR:
                continue
            at = rows(thread, value) + part * plan.reduction_rows, columns(thread, value)
            yield events.LoadGlobal("sums", (start + plan.c_partial_sums(at)) * 4, VECTOR * 4)


def _stores(copy, first, extents, thread):
    """The vectors in bounds, and the elements in bounds of those that an edge cuts."""
    for line in range(copy.lines):
        for vector in range(copy.vectors):
            values = [(line, (v, vector)) for v in range(copy.width)]
            places = [
                (first[0] + copy.rows((thread, v)), first[1] + copy.columns((thread, v)))
                for v in values
            ]
            inside = [row < extents[0] and column < extents[1] for row, column in places]
            offsets = [(row * extents[1] + column) * BYTES for row, column in places]
            if all(inside):
                yield events.StoreGlobal("gC", offsets[0], copy.width * BYTES, ())
            else:
                for offset, present in zip(offsets, inside, strict=True):
                    if present:
                        yield events.StoreGlobal("gC", offset, BYTES, ())
