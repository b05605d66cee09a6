"""The compiled kernels store each value of C, and each partial sum, once and where it belongs.

Each value is followed from wgmma to global memory. What says where it belongs are its coordinates
in C alone, not the layouts of shared memory and not the steps of the pipeline.
"""

from collections import Counter
from functools import cache, cached_property
from itertools import product as pairs

import pytest

from cutedsl_gemm.kernels.plan import tma
from layouts import size
from tests.kernels.ptx import events
from tests.kernels.sm90.launches import result_names
from tests.kernels.sm90.plans import SPLIT, THREADS, TMA, name
from tests.kernels.sm90.product import Product

pytestmark = pytest.mark.slow


class Consumer:
    """The 128 threads of a consumer of a block, and the rows and columns of what they hold."""

    def __init__(self, product, block, consumer):
        plan = self.plan = product.plan
        self.product, self.block = product, block
        self.held = held(plan)
        # what every value asks for, and a plan computes anew
        self.rows, self.matrices, self.output_tile = plan.rows, plan.matrices, plan.output_tile
        loaded = plan.staged_operands if plan.splits == 1 else ()
        operands = (plan.planned_epilogue.operands[i] for i in loaded)
        self.loads = {f"tma_{operand.name}" for operand in operands}
        self.first_thread = plan.threads - 128 * (plan.consumers - consumer)
        turn, part = divmod(consumer, plan.consumers_per_tile)
        turns = plan.consumers // plan.consumers_per_tile
        self.work_tiles = product.work_tiles(block)[turn::turns]
        m, n = plan.consumer_coord((0, 0), part)
        self.first_row, self.first_column = m * plan.rows, n * plan.columns

    def events_of(self, thread):
        """What one of its threads does."""
        return self.run(thread).events

    def run(self, thread):
        """One of its threads at its end."""
        return self.product.run(self.block, self.first_thread + thread)

    @cached_property
    def events(self):
        """What each of its threads does."""
        return [self.events_of(thread) for thread in range(128)]

    def in_tile(self, thread, source):
        """(m, n) in the tile of value `place` of an accumulator's fragment."""
        accumulator, place = source
        m64 = accumulator % (self.rows // 64)
        m, n = self.held[thread][place + m64 * self.plan.columns // 2]
        return self.first_row + m, self.first_column + n

    def in_c(self, thread, source, panel):
        """(m, n) in the plan's C of the output that is computed from values of fragments.

        It is computed from its products by all matrices of B, which are at the same place in each,
        and of the element at that place of each operand that TMA loads into the `panel`.
        """
        sources = source if isinstance(source, frozenset) else {source}
        products = {each for each in sources if isinstance(each, tuple)}
        outputs = sorted(self.product_of(thread, each) for each in products)
        place = outputs[0][1]
        assert outputs == [(matrix, place) for matrix in range(self.matrices)]
        (turn,) = {self.turn(each) for each in products}
        read = [self.read[thread, name] for name in sources - products]
        loaded = sorted(self.loaded[turn][panel][address] for address in read)
        assert loaded == [(name, place) for name in sorted(self.loads)]
        return place

    def turn(self, source):
        """The number of the thread's tile to which an accumulator belongs."""
        return source[0] // (self.rows // 64)

    @cached_property
    def loaded(self):
        """Of each tile, and each of its panels, address → what TMA loaded there.

        That is an element of an operand: the name of its tensormap, and (m, n) in the plan's C.
        """
        loads = [
            each
            for each in of_type(events.TmaLoad, self.events[0])
            if each.descriptor in self.loads
        ]
        tiles, panels = len(self.work_tiles), self.plan.panels
        boxes = len(loads) // (tiles * panels)  # of a panel of all operands
        return [
            [
                {
                    address: (load.descriptor, place)
                    for load in loads[(tile * panels + panel) * boxes :][:boxes]
                    for address, place in box(self.plan, load)
                }
                for panel in range(panels)
            ]
            for tile in range(tiles)
        ]

    @cached_property
    def read(self):
        """(thread, name of what ldmatrix read) → its address in shared memory."""
        reads, found = [of_type(events.LdMatrix, own) for own in self.events], {}
        for warp, n in pairs(range(0, 128, 32), range(len(reads[0]))):
            lanes = [own[n] for own in reads[warp : warp + 32]]
            for lane, value, address in elements(lanes):
                name = warp + lane, lanes[lane].address + 2 * value
                assert found.setdefault(name, address) == address
        return found

    def product_of(self, thread, source):
        """The matrix and (m, n) in the plan's C of value `place` of an accumulator's fragment."""
        (bm, bn), (m, n) = self.output_tile, self.in_tile(thread, source)
        i, j = self.work_tiles[self.turn(source)].coord
        (gate, m), (value, n) = divmod(m, bm), divmod(n, bn)
        return gate + value, (i * bm + m, j * bn + n)

    def panels(self):
        """Of each panel in turn, address → (m, n) in the plan's C of what stmatrix wrote there."""
        stores = [of_type(events.StMatrix, own) for own in self.events]
        found, plan, of_tile = [], self.plan, self.plan.stores * stmatrices(self.plan)
        for at in range(0, len(stores[0]), stmatrices(plan)):
            panel, number = {}, at % of_tile // stmatrices(plan) // len(plan.staged)
            for warp, n in pairs(range(0, 128, 32), range(at, at + stmatrices(plan))):
                for lane, address, source in written([own[n] for own in stores[warp : warp + 32]]):
                    assert address not in panel
                    panel[address] = self.in_c(warp + lane, source, number)
            found.append(panel)
        return found

    def stored(self):
        """Each store of C, and the panel that it reads: the one that the thread wrote last."""
        panels = self.panels()
        for thread, own in enumerate(self.events):
            before = 0  # stmatrix instructions
            for event in own:
                before += type(event) is events.StMatrix
                # Each lane lists the store of its warp: the first stands for all.
                if type(event) is events.StoreGlobal or (
                    type(event) is events.TmaStore and thread % 32 == 0
                ):
                    yield event, panels[(before - 1) // stmatrices(self.plan)]


@cache
def held(plan):
    """(m, n) of each value of each thread, in a consumer's part of a tile: [thread][value]."""
    values = range(size(plan.accumulator[1]))
    return [
        [divmod(plan.accumulator(thread, v), plan.rows)[::-1] for v in values]
        for thread in range(128)
    ]


def of_type(kind, found):
    """The events of one type."""
    return [event for event in found if type(event) is kind]


def stmatrices(plan):
    """The stmatrix instructions of a thread for a panel."""
    return plan.panel_rows // 64 * plan.panel_columns // plan.stmatrix_columns


def written(lanes):
    """(lane, address, source) of each value of a warp's stmatrix."""
    for lane, value, address in elements(lanes):
        yield lane, address, lanes[lane].values[value]


def elements(lanes):
    """(lane, value, address) of each value of a warp's stmatrix or ldmatrix."""
    for lane, of_lane in enumerate(lanes):
        for value in range(2 * of_lane.matrices):
            # PTX ISA, stmatrix: lane 8j + i has the address of row i of matrix j.
            row, column = lane // 4, 2 * (lane % 4) + value % 2
            if of_lane.transposed:
                row, column = column, row
            yield lane, value, lanes[8 * (value // 2) + row].address + 2 * column


def box(plan, store):
    """(address, (m, n) in the plan's C) of each element that a TMA store copies."""
    along, across = store.coordinates
    for address, row, column in box_addresses(plan, store.address):
        place = across + row, along + column
        yield address, place if plan.contiguous else place[::-1]


@cache
def box_addresses(plan, start):
    """(address, row, column) of each element of a box of C: rows back to back, swizzled."""
    boxes = tma.boxes(plan.staging, plan.contiguous)
    return [
        (boxes.swizzle(start + 2 * (row * boxes.columns + column)), row, column)
        for row, column in pairs(range(boxes.rows), range(boxes.columns))
    ]


@cache
def reducers(plan, group):
    """(thread, row, column, partial sums) of the first element that each reduction thread adds.

    The rows are those of a group. There is a partial sum for each matrix of B; it counts from its
    tile's first.
    """
    copy, first = plan.reduction, group * plan.reduction_rows
    at = [(copy.rows(thread, 0), copy.columns(thread, 0)) for thread in range(copy.threads)]
    return [
        (thread, row, column, partial_sums(plan, first + row, column))
        for thread, (row, column) in enumerate(at)
    ]


def partial_sums(plan, row, column):
    """The partial sum of an output's product by each matrix of B."""
    (m, n), (rows, columns) = plan.exchanged((row, column)), plan.output_tile
    if plan.a.matrices > 1:
        return [plan.partial_sums(m + i * rows, n) for i in range(plan.matrices)]
    return [plan.partial_sums(m, n + i * columns) for i in range(plan.matrices)]


def whole(m, n):
    """Each (row, column) once."""
    return Counter(pairs(range(m), range(n)))


@pytest.mark.parametrize("plan", [*TMA, *THREADS], ids=name)
def test_each_value_of_c_is_stored_once_where_it_belongs(plan):
    down, across = plan.exchanged(plan.cluster_tile)
    m, n = 2 * down - 3, across - (8 if plan.stored_by_tma else 5)
    product = Product(plan, m, n, 64, c_stride=n + 2)
    every = {f"tma_{name}": Counter() for name in result_names(plan)}
    for block, consumer in pairs(range(product.blocks[0]), range(plan.consumers)):
        for event, panel in Consumer(product, block, consumer).stored():
            if type(event) is events.TmaStore:
                for address, place in box(plan, event):
                    assert panel[address] == place
                    every[event.descriptor][plan.exchanged(place)] += 1
            else:
                assert (event.tensor, event.bytes) == ("gC", 2 * len(event.values))
                assert event.offset % event.bytes == 0
                for at, address in enumerate(event.values, event.offset // 2):
                    row, column = plan.exchanged(panel[address])
                    assert at == row * product.c_stride + column
                    every["tma_c"][row, column] += 1
    for stored in every.values():
        inside = Counter({(i, j): c for (i, j), c in stored.items() if i < m and j < n})
        assert inside == whole(m, n)
        # TMA leaves out what C does not have.
        assert plan.stored_by_tma or len(stored) == m * n


@pytest.mark.parametrize("plan", SPLIT, ids=name)
def test_the_partial_sums_of_every_row_of_c_are_stored_in_their_place(plan):
    down, across = plan.exchanged(plan.cluster_tile)
    product = Product(plan, down + 20, across + 20, 64 * plan.splits)
    (bm, bn, _), blocks = plan.tile, product.blocks[0]
    places = {(m, n): plan.partial_sums(m, n) for m, n in pairs(range(bm), range(bn))}
    for block in (0, blocks // 2, blocks - 1):
        ((tile, number, split, _),) = product.work_tiles(block)
        stored = {}
        for consumer in range(plan.consumers):
            threads = Consumer(product, block, consumer)
            for thread, own in enumerate(threads.events):
                for event in of_type(events.StoreGlobal, own):
                    assert event.bytes == 4 * len(event.values)
                    for at, source in enumerate(event.values, event.offset // 4):
                        assert at not in stored
                        stored[at] = threads.in_tile(thread, source)
        # A warp stores its 16 rows of every 64, or none: if C has the first of them.
        rows = plan.output_tile[0]
        left = product.extents[0] - tile[0] * rows
        start = (split * product.tiles + number) * bm * bn
        assert stored == {
            start + place: (m, n)
            for (m, n), place in places.items()
            if (m // plan.rows * plan.rows + m % 64 // 16 * 16) % rows < left
        }


@pytest.mark.parametrize("plan", SPLIT, ids=name)
def test_the_reduction_adds_all_splits_of_every_element_of_c_once(plan):
    down, across = plan.exchanged(plan.cluster_tile)
    product = Product(plan, m := down + 20, n := across + 24, 128, c_stride=across + 32)
    tile = size(plan.partial_sums)
    between = 4 * tile * product.tiles  # bytes from a split to the next
    stored = Counter()
    for block in range(product.blocks[1]):
        number, group, origin = product.reduced(block)
        for thread, row, column, places in reducers(plan, group):
            found = product.events(block, thread, kernel=1)
            if loads := [event.offset for event in of_type(events.LoadGlobal, found)]:
                starts = [4 * (number * tile + place) for place in places]
                splits = range(0, plan.splits * between, between)
                assert loads == [start + split for start, split in pairs(starts, splits)]
            row, column = origin[0] + row, origin[1] + column
            for event in of_type(events.StoreGlobal, found):
                assert loads
                skipped = event.offset // 2 - (row * product.c_stride + column)
                assert 0 <= skipped < 4
                stored.update((row, column + skipped + each) for each in range(event.bytes // 2))
    assert stored == whole(m, n)
