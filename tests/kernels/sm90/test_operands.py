"""What the threads of compiled kernels read of an epilogue's operands, straight from their memory.

Each reads the elements at its own outputs, or receives them of a lane that has read them. The
outputs are known from the fragment of wgmma and the tile alone. At the edge of C a thread reads
again what it has, never what is outside of an operand's memory.
"""

from itertools import product as pairs

import pytest

from cutedsl_gemm.kernels.epilogue.expression import EpilogueOperand
from cutedsl_gemm.kernels.epilogue.trace import trace
from cutedsl_gemm.kernels.sm90.rungs import cooperative, pingpong, single
from tests.kernels.ptx import events
from tests.kernels.ptx.machine import Loaded
from tests.kernels.sm90.plans import deep, name
from tests.kernels.sm90.product import Product
from tests.kernels.sm90.test_stores import Consumer, of_type

pytestmark = pytest.mark.slow

SUM = trace(
    lambda acc, row, pair, wide, column, scalar, rows, two, columns: (
        acc + row * pair * wide + column * scalar + rows * columns + two
    ),
    [
        EpilogueOperand("row", ("N",), "bfloat16"),
        EpilogueOperand("pair", ("N",), "float16", alignment=2),
        EpilogueOperand("wide", ("N",), "float32", alignment=2),
        EpilogueOperand("column", ("M",)),
        EpilogueOperand("scalar"),
        EpilogueOperand("rows", ("M", "N"), "float32"),
        EpilogueOperand("two", ("M", "N"), "float16", alignment=4),
        EpilogueOperand("columns", ("M", "N"), "bfloat16", row_major=False),
    ],
)
PLANS = [
    pingpong((64, 80, 64), c_stages=1, swapped=True, epilogue=SUM),
    *deep(
        pingpong((64, 32, 64), c_stages=1, epilogue=SUM),
        pingpong((128, 96, 64), c_stages=1, cluster=(2, 1), epilogue=SUM),
        cooperative((192, 48, 64), c_stages=1, epilogue=SUM),
        cooperative((192, 224, 64), c_stages=1, epilogue=SUM),
        single((64, 64, 64), epilogue=SUM),
    ),
]


def outputs(consumer, thread):
    """(row, column) in the plan's C of each output of a thread."""
    bm, bn = consumer.plan.output_tile
    for work_tile, (m, n) in pairs(consumer.work_tiles, consumer.held[thread]):
        i, j = work_tile.coord
        yield i * bm + consumer.first_row + m, j * bn + consumer.first_column + n


def received(consumer, thread):
    """The loads of which a thread received the values from lanes of its warp, in order."""
    warp = thread // 32 * 32
    runs = [consumer.run(warp + lane) for lane in range(32)]
    lanes = [[each for each in run.shuffles if isinstance(each[0], Loaded)] for run in runs]
    return [lanes[of][n][0].event for n, (_, of) in enumerate(lanes[thread % 32])]


def element(operand, place, extents):
    """The element of an operand at a place of C, by its number in memory."""
    at = [place["MN".index(mode)] for mode in operand.modes]
    if len(at) < 2:
        return sum(at)
    (row, column), (rows, columns) = at, extents
    return row * columns + column if operand.row_major else row + column * rows


def elements_of(operand, loads):
    """Of each load of an operand, its elements, by their numbers in memory."""
    bytes = 4 if operand.dtype == "float32" else 2
    return [
        range(event.offset // bytes, (event.offset + event.bytes) // bytes)
        for event in loads
        if event.tensor == operand.name
    ]


@pytest.mark.parametrize("plan", PLANS, ids=name)
def test_a_thread_reads_the_elements_at_its_own_outputs(plan):
    down, across = plan.exchanged(plan.cluster_tile)
    product = Product(plan, down + 4, 2 * across - 4, 64)
    extents, last = product.extents, [extent - 1 for extent in product.extents]
    for block, number in pairs(range(product.blocks[0]), range(plan.consumers)):
        consumer = Consumer(product, block, number)
        for thread in (37, 94):
            own = [*outputs(consumer, thread)]
            inside = [place for place in own if place[0] <= last[0] and place[1] <= last[1]]
            shuffled = received(consumer, thread)
            loads = of_type(events.LoadGlobal, consumer.events_of(thread))
            clamped = [tuple(map(min, place, last)) for place in own]
            for operand in plan.planned_epilogue.operands:
                found = elements_of(operand, shuffled if operand.modes == ("N",) else loads)
                read = {each for load in found for each in load}
                wanted = {element(operand, place, extents) for place in inside}
                at_edges = {element(operand, place, extents) for place in clamped}
                assert wanted <= read
                assert all(at_edges.intersection(load) for load in found)
                for load in found:  # a vector, if the operand's memory has its alignment
                    assert load.start % len(load) == operand.alignment % len(load) == 0
                beyond = element(operand, last, extents) + 1
                assert all(load.stop <= beyond for load in elements_of(operand, loads))
