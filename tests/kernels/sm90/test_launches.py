"""Compiled kernels, run thread by thread on the CPU, load, multiply and store what their plan says.

All addresses, coordinates, parities and masks are those that the device code computes.
"""

from collections import Counter
from functools import cache, cached_property
from math import ceil

import pytest

from cutedsl_gemm.kernels.compile.ptx import events
from cutedsl_gemm.kernels.compile.ptx.machine import run, trace
from cutedsl_gemm.kernels.plan import tma
from cutedsl_gemm.kernels.plan.raster import Raster
from cutedsl_gemm.kernels.sm90.launches import launches
from cutedsl_gemm.kernels.sm90.rungs import cooperative, pingpong, single, split
from layouts import size, wgmma_descriptor

pytestmark = pytest.mark.slow
deep = pytest.mark.deep
PANELS = [
    pingpong((128, 96, 64), raster=Raster(3, "columns")),
    cooperative((256, 64, 64), cluster=(2, 2), b_major="MN"),
    single((64, 32, 64)),
    pytest.param(pingpong(), marks=deep),
    pytest.param(pingpong((64, 80, 64), swapped=True, a_major="MN"), marks=deep),
    pytest.param(cooperative((256, 128, 64), cluster=(2, 1)), marks=deep),
    pytest.param(cooperative((192, 144, 64), cluster=(1, 2), a_major="MN"), marks=deep),
    pytest.param(cooperative((128, 256, 64), c_stages=2), marks=deep),
    pytest.param(cooperative((64, 48, 64)), marks=deep),
    pytest.param(cooperative((192, 64, 64), swapped=True), marks=deep),
    pytest.param(single(), marks=deep),
]


def named(plan):
    return f"{plan.kind}-{plan.tile}-{plan.cluster}"


class Smem:
    """Where shared memory has its parts, in bytes: A, B, panels, full and empty mbarriers."""

    def __init__(self, plan):
        self.plan = plan
        self.a, self.b = 0, plan.stages * plan.a.elements * 2
        self.panels = self.b + plan.stages * plan.b.elements * 2
        self.full = self.panels + plan.epilogue_smem_bytes
        self.empty = self.full + 8 * plan.stages

    def stage(self, operand, stage):
        start = self.a if operand.name == "A" else self.b
        return start + stage * operand.elements * 2


class Problem:
    """A product of a plan, and how its blocks walk the tiles."""

    def __init__(self, plan, m, n, k, clusters=1, c_stride=None):
        self.plan, self.shape = plan, (m, n, k)
        self.launch, *self.rest = launches(plan, m, n, k, c_stride)
        self.counts = tuple(
            ceil(extent / tile)
            for extent, tile in zip(plan.exchanged((m, n)), plan.cluster_tile, strict=True)
        )
        self.tiles, self.k_tiles = self.counts[0] * self.counts[1], ceil(k / plan.tile[2])
        self.clusters = self.tiles * plan.splits if plan.kind in ("single", "split") else clusters
        self.blocks = self.clusters * plan.cluster_size
        self.smem = Smem(plan)

    @cached_property
    def held(self):
        """(m, n) of value v of a thread in a consumer's part of a tile, by thread and v."""
        held = self.plan.accumulator
        return [
            [divmod(held(thread, v), self.plan.rows)[::-1] for v in range(size(held[1]))]
            for thread in range(128)
        ]

    @cached_property
    def staged(self):
        """(m, n) → byte of a panel."""
        staging = self.plan.staging
        rows, columns = range(size(staging[0])), range(size(staging[1]))
        return {(m, n): 2 * staging((m, n)) for m in rows for n in columns}

    def trace(self, block, thread):
        return trace(self.launch, block=block, blocks=self.blocks, thread=thread)

    def walk(self, block):
        """The tiles (m, n) of a block, in order, and its span of k-tiles."""
        plan = self.plan
        cluster, rank = divmod(block, plan.cluster_size)
        part, first = divmod(cluster, self.tiles) if plan.splits > 1 else (0, cluster)
        step = self.tiles if plan.splits > 1 else self.clusters
        tiles = [
            plan.work.tile_coord(tile, rank, *self.counts)
            for tile in range(first, self.tiles, step)
        ]
        return tiles, range(*plan.work.k_tile_range(part, self.k_tiles))

    def loads(self, block, stage, tile, k):
        """The TMA loads of k-tile k of a tile into a stage, by one block."""
        plan, rank = self.plan, block % self.plan.cluster_size
        for operand, index in ((plan.a, tile[0]), (plan.b, tile[1])):
            part, mask = plan.multicast(operand, rank) if operand.slices > 1 else (0, None)
            rows, columns = operand.slice_shape
            down, across = operand.slice_coord(part)
            row, column = (
                index * operand.shape[0] + down * rows,
                k * plan.tile[2] + across * columns,
            )
            slice_start = 2 * operand.smem.outer(down * rows, across * columns)
            for i, j, offset in tma.boxes(operand.slice_smem, operand.contiguous).origins:
                # A box has rows across memory and columns along it.
                along = (column + j, row + i) if operand.contiguous else (row + j, column + i)
                yield events.TmaLoad(
                    f"tma_{operand.name.lower()}",
                    along,
                    self.smem.stage(operand, stage) + slice_start + 2 * offset,
                    self.smem.full + 8 * stage,
                    mask,
                    0,
                )


@cache
def read(descriptor, rows):
    """The addresses, from the start on, that one wgmma reads by a matrix descriptor."""
    return tuple(descriptor.canonical(rows)(mn, k) for mn in range(rows) for k in range(16))


def problems(plan):
    """Products with few and many tiles, in whole tiles and not, by few and many blocks."""
    (rows, columns), depth = plan.exchanged(plan.cluster_tile), plan.tile[2]
    yield Problem(plan, 3 * rows, 4 * columns, 5 * depth, clusters=5)
    yield Problem(
        plan, 2 * rows + 1, 3 * columns - 8, (2 * plan.stages + 1) * depth + 8, clusters=2
    )
    yield Problem(plan, 8, 8, 8, clusters=1)


@pytest.mark.parametrize("plan", PANELS, ids=named)
def test_the_producer_loads_each_k_tile_of_each_tile_in_turn(plan):
    for problem in problems(plan):
        smem = problem.smem
        for block in range(problem.blocks):
            tiles, k_tiles = problem.walk(block)
            steps = [(tile, k) for tile in tiles for k in k_tiles]
            expected = []
            for loaded, (tile, k) in enumerate(steps):
                phase, stage = divmod(loaded, plan.stages)
                if plan.kind != "single":  # it has the barrier of its block instead
                    expected.append(events.MbarrierTryWait(smem.empty + 8 * stage, 1 - phase % 2))
                full = smem.full + 8 * stage
                expected.append(events.MbarrierArriveExpectTx(full, plan.stage_bytes))
                expected += problem.loads(block, stage, tile, k)
            kinds = {type(event) for event in expected} or {events.TmaLoad}
            assert [each for each in problem.trace(block, 0) if type(each) in kinds] == expected


@pytest.mark.parametrize("plan", PANELS, ids=named)
def test_a_consumer_multiplies_the_stages_that_its_tiles_were_loaded_into(plan):
    smem, (_, bn, bk) = Smem(plan), plan.tile
    first_thread = plan.threads - 128 * plan.consumers
    read_a, read_b = (
        read(wgmma_descriptor(operand.smem, operand.major), rows)
        for operand, rows in ((plan.a, 64), (plan.b, bn))
    )
    for problem in problems(plan):
        for block in range(0, problem.blocks, 3):
            tiles, k_tiles = problem.walk(block)
            for consumer in range(plan.consumers):
                part = consumer % plan.consumers_per_tile * plan.rows
                step = plan.consumers // plan.consumers_per_tile
                expected = []
                for turn in range(consumer % step, len(tiles), step):
                    sums = turn // step * (plan.rows // 64)
                    for k in range(len(k_tiles)):
                        stage = (turn * len(k_tiles) + k) % plan.stages
                        for slab in range(0, bk, 16):
                            b = smem.stage(plan.b, stage) + 2 * plan.b.smem.outer(0, slab)
                            for m64 in range(plan.rows // 64):
                                row = part + 64 * m64
                                a = smem.stage(plan.a, stage) + 2 * plan.a.smem.outer(row, slab)
                                old = plan.kind == "single" or k + slab > 0
                                expected.append((a, read_a, b, read_b, old, sums + m64))
                found = [
                    (each.a, read(each.a_descriptor, 64), each.b, read(each.b_descriptor, bn))
                    + (each.scale_d, each.accumulator)
                    for each in problem.trace(block, first_thread + 128 * consumer)
                    if isinstance(each, events.Wgmma)
                ]
                assert found == expected


@pytest.mark.parametrize("plan", PANELS, ids=named)
def test_tma_stores_every_panel_of_c_once(plan):
    boxes = tma.boxes(plan.staging, plan.contiguous)
    for problem in problems(plan):
        warps = range(plan.threads - 128 * plan.consumers, plan.threads, 32)
        stored = Counter(
            (event.descriptor, event.coordinates)
            for block in range(problem.blocks)
            for warp in warps
            for event in problem.trace(block, warp)
            if isinstance(event, events.TmaStore)
        )
        m, n = (count * tile for count, tile in zip(problem.counts, plan.cluster_tile, strict=True))
        across, along = (m, n) if plan.contiguous else (n, m)
        expected = {
            ("tma_c", (column, row))
            for column in range(0, along, boxes.columns)
            for row in range(0, across, boxes.rows)
        }
        assert stored == Counter(expected)


class Epilogue:
    """What the 128 threads of a consumer store of the tiles of a block."""

    def __init__(self, problem, block, consumer):
        plan = self.plan = problem.plan
        self.problem, self.consumer = problem, consumer
        first = plan.threads - 128 * (plan.consumers - consumer)
        self.traces = [problem.trace(block, first + thread) for thread in range(128)]
        turns = problem.walk(block)[0]
        step = plan.consumers // plan.consumers_per_tile
        self.tiles = turns[consumer % step :: step]
        self.stores = [
            [event for event in found if isinstance(event, events.StMatrix)]
            for found in self.traces
        ]
        # stmatrix instructions of one panel
        self.count = plan.rows // 64 * plan.panel_columns // plan.stmatrix_columns

    def origin(self, turn):
        """The row and column of the plan's C at which this consumer's part of a tile begins."""
        plan, (m, n) = self.plan, self.tiles[turn]
        return m * plan.tile[
            0
        ] + self.consumer % plan.consumers_per_tile * plan.rows, n * plan.tile[1]

    def of_value(self, thread, value):
        """(m, n) of C from the number of an accumulator and the index in its fragment."""
        plan, (accumulator, index) = self.plan, value
        turn, m64 = divmod(accumulator, plan.rows // 64)
        m, n = self.problem.held[thread][index + m64 * plan.tile[1] // 2]
        row, column = self.origin(turn)
        return row + m, column + n

    def written(self, number):
        """Address → (m, n): what stmatrix wrote of panel `number` of all that the block stores."""
        found = {}
        for warp in range(0, 128, 32):
            for at in range(number * self.count, (number + 1) * self.count):
                lanes = [self.stores[thread][at] for thread in range(warp, warp + 32)]
                for lane, store in enumerate(lanes):
                    assert store.transposed == (self.plan.contiguous == 0)
                    for n, value in enumerate(store.values):
                        # PTX ISA, stmatrix: lane 8j + i has the address of row i of matrix j.
                        row, column = lane // 4, 2 * (lane % 4) + n % 2
                        if store.transposed:
                            row, column = column, row
                        address = lanes[8 * (n // 2) + row].address + 2 * column
                        assert address not in found
                        found[address] = self.of_value(warp + lane, value)
        return found

    def expected(self, number):
        """Address → (m, n): what the plan has in the buffer of a panel."""
        plan, (turn, panel) = self.plan, divmod(number, self.plan.panels)
        row, column = self.origin(turn)
        start, column = self.start(panel), column + panel * plan.panel_columns
        return {start + byte: (row + m, column + n) for (m, n), byte in self.problem.staged.items()}

    def start(self, panel):
        """Where the buffer of a panel begins."""
        plan = self.plan
        buffer = self.consumer * plan.c_stages + panel % plan.c_stages
        return self.problem.smem.panels + buffer * plan.panel_bytes

    def panel_stores(self):
        """The TMA stores of all panels, in order."""
        plan = self.plan
        for number in range(len(self.tiles) * plan.panels):
            turn, panel = divmod(number, plan.panels)
            row, column = self.origin(turn)
            for i, j, offset in tma.boxes(plan.staging, plan.contiguous).origins:
                along, across = (j, i) if plan.contiguous else (i, j)
                m, n = row + across, column + panel * plan.panel_columns + along
                coordinates = (n, m) if plan.contiguous else (m, n)
                yield coordinates, self.start(panel) + 2 * offset


@pytest.mark.parametrize("plan", PANELS, ids=named)
def test_stmatrix_and_tma_store_each_value_where_it_belongs(plan):
    rows, columns = plan.exchanged(plan.cluster_tile)
    problem = Problem(plan, 2 * rows, columns, 64)
    for consumer in range(plan.consumers):
        epilogue = Epilogue(problem, problem.blocks - 1, consumer)
        for number in range(len(epilogue.tiles) * plan.panels):
            assert epilogue.written(number) == epilogue.expected(number)
        stored = [
            (event.coordinates, event.address)
            for event in epilogue.traces[0]
            if isinstance(event, events.TmaStore)
        ]
        assert stored == list(epilogue.panel_stores())


@pytest.mark.parametrize(
    "plan",
    [
        pingpong((64, 48, 64), c_alignment=1),
        pytest.param(pingpong(c_alignment=1), marks=deep),
        pytest.param(pingpong((64, 80, 64), swapped=True, c_alignment=1), marks=deep),
        pytest.param(cooperative((192, 80, 64), swapped=True, c_alignment=1), marks=deep),
        pytest.param(cooperative((128, 256, 64), c_alignment=1, cluster=(1, 2)), marks=deep),
        pytest.param(single((128, 48, 64), c_alignment=1), marks=deep),
    ],
    ids=named,
)
def test_threads_store_each_value_of_c_once_where_it_belongs(plan):
    rows, columns = plan.exchanged(plan.cluster_tile)
    problem = Problem(plan, m := 2 * rows - 3, n := columns - 5, 64, 1, stride := n + 2)
    stored = Counter()
    for block in range(problem.blocks):
        for consumer in range(plan.consumers):
            epilogue = Epilogue(problem, block, consumer)
            panels = [epilogue.written(at) for at in range(len(epilogue.tiles) * plan.panels)]
            for found in epilogue.traces:
                stores = 0  # stmatrix instructions before
                for event in found:
                    stores += isinstance(event, events.StMatrix)
                    if isinstance(event, events.StoreGlobal):
                        (address,) = event.values
                        row, column = plan.exchanged(
                            panels[(stores - 1) // epilogue.count][address]
                        )
                        assert (event.tensor, event.bytes) == ("gC", 2)
                        assert event.offset == 2 * (row * stride + column)
                        stored[row, column] += 1
    assert stored == Counter((row, column) for row in range(m) for column in range(n))


SPLIT = [
    split((64, 64, 64), splits=3, cluster=(2, 1)),
    pytest.param(split(splits=4), marks=deep),
    pytest.param(split((128, 48, 64), splits=2, swapped=True, cluster=(1, 2)), marks=deep),
    pytest.param(split((64, 128, 64), splits=5, c_alignment=1), marks=deep),
    pytest.param(split((256, 96, 64), splits=2, swapped=True, c_alignment=1), marks=deep),
]


@pytest.mark.parametrize("plan", [PANELS[0], SPLIT[0], *PANELS[1:], *SPLIT[1:]], ids=named)
def test_all_lanes_of_a_warp_shuffle_the_same_values(plan):
    """`trace` runs a thread alone: shfl.sync gives it its own value."""
    problem = Problem(plan, *plan.c_tile, 64)
    for warp in range(0, plan.threads, 32):
        first, *others = (
            run(problem.launch, 0, problem.blocks, warp + lane).shuffles for lane in range(32)
        )
        assert first
        assert all(other == first for other in others)


@pytest.mark.parametrize("plan", SPLIT, ids=named)
def test_the_blocks_of_a_split_load_their_k_tiles(plan):
    rows, columns = plan.exchanged(plan.cluster_tile)
    problem = Problem(plan, rows + 8, 2 * columns, 64 * (plan.splits * (plan.stages + 2) + 1))
    for block in range(problem.blocks):
        (tile,), k_tiles = problem.walk(block)
        loads = [
            load
            for loaded, k in enumerate(k_tiles)
            for load in problem.loads(block, loaded % plan.stages, tile, k)
        ]
        found = problem.trace(block, 0)
        assert [event for event in found if isinstance(event, events.TmaLoad)] == loads


@pytest.mark.parametrize("plan", SPLIT, ids=named)
def test_the_partial_sums_of_every_row_of_c_are_stored_in_their_place(plan):
    (bm, bn, _), (rows, columns) = plan.tile, plan.exchanged(plan.cluster_tile)
    problem = Problem(plan, rows + 20, columns + 20, 64 * plan.splits)
    sums = {(m, n): plan.partial_sums((m, n)) for m in range(bm) for n in range(bn)}
    m_extent = plan.exchanged(problem.shape[:2])[0]
    for block in (0, problem.blocks // 2, problem.blocks - 1):
        cluster, rank = divmod(block, plan.cluster_size)
        part, tile = divmod(cluster, problem.tiles)
        tile = tile * plan.cluster_size + rank
        start = (part * problem.tiles * plan.cluster_size + tile) * bm * bn
        ((m_tile, _),), _ = problem.walk(block)
        stored = {}
        for thread in range(128, plan.threads):
            first = (thread - 128) // 128 * plan.rows
            for event in problem.trace(block, thread):
                if isinstance(event, events.StoreGlobal):
                    for n, (number, index) in enumerate(event.values):
                        row, column = problem.held[thread % 128][index + number * bn // 2]
                        stored[event.offset // 4 + n] = first + row, column
        # A warp stores its 16 rows of every 64, or none: if C has the first of them.
        left = m_extent - m_tile * bm
        present = {m for m in range(bm) if m // plan.rows * plan.rows + m % 64 // 16 * 16 < left}
        assert stored == {start + offset: (m, n) for (m, n), offset in sums.items() if m in present}


@pytest.mark.parametrize("plan", SPLIT, ids=named)
def test_the_reduction_adds_all_splits_of_every_element_of_c_once(plan):
    rows, columns = plan.exchanged(plan.cluster_tile)
    problem = Problem(plan, m := rows + 20, n := columns + 24, 128, 1, stride := n + 8)
    (reduction,), (tile_rows, tile_columns) = problem.rest, plan.c_tile
    tiles, parts = problem.tiles * plan.cluster_size, tile_rows // plan.reduction_rows
    stored = Counter()
    for block in range(blocks := tiles * parts):
        tile, part = divmod(block, parts)
        i, j = plan.exchanged(
            plan.work.tile_coord(*divmod(tile, plan.cluster_size), *problem.counts)
        )
        for thread in range(plan.reduction.threads):
            found = trace(reduction, block=block, blocks=blocks, thread=thread)
            loads = [event.offset for event in found if isinstance(event, events.LoadGlobal)]
            wholes = 4 * tile_rows * tile_columns
            assert [load - loads[0] for load in loads] == [
                split * tiles * wholes for split in range(plan.splits) if loads
            ]
            at = (plan.reduction.rows((thread, 0)), plan.reduction.columns((thread, 0)))
            row, column = part * plan.reduction_rows + at[0], at[1]
            offset = 4 * plan.c_partial_sums((row, column))
            assert loads[:1] in ([], [tile * wholes + offset])
            row, column = row + i * tile_rows, column + j * tile_columns
            for event in found:
                if isinstance(event, events.StoreGlobal):
                    first = event.offset // 2 - (row * stride + column)
                    assert 0 <= first < 4
                    stored.update((row, column + first + at) for at in range(event.bytes // 2))
    assert stored == Counter((row, column) for row in range(m) for column in range(n))
