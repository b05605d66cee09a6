"""The copy kernel from its PTX, thread by thread: what it loads and what it stores."""

import struct
from collections import Counter
from math import ceil

import pytest

from cutedsl_gemm.kernels.compile import build
from cutedsl_gemm.kernels.copies.plan import copy_plan
from tests.kernels.ptx import events
from tests.kernels.ptx.arguments import Argument, pointer
from tests.kernels.ptx.machine import Launch, trace
from tests.kernels.ptx.reader import read

ELEMENT = 2  # bytes
# Source, target, source, target: rows, columns, stride, and the element of a word at the start.
MATRICES = (33, 254, 301, 3), (33, 254, 296, 5), (5, 70, 72, 0), (5, 70, 71, 7)


@pytest.mark.deep
@pytest.mark.slow
def test_two_matrices_are_copied_and_nothing_beside_them_is_touched():
    plan = copy_plan(matrices=2)
    (kernel,) = read(build.ptx(plan))
    before = 8 * plan.word_bytes  # of each matrix, in its window of memory
    given, elements = [], {}
    for i, (rows, columns, stride, start) in enumerate(MATRICES):
        address = before + ELEMENT * start
        values = pointer(i) + address, rows, columns, stride
        given.append(Argument(f"matrix {i}", struct.pack("<Qiiq", *values)))
        starts = (address + ELEMENT * stride * row for row in range(rows))
        elements[f"matrix {i}"] = {
            first + ELEMENT * column for first in starts for column in range(columns)
        }
    (bm, bn), launch = plan.tile, Launch(kernel, tuple(given))
    blocks = sum(  # the first tile of a row may begin before the row
        ceil(rows / bm) * ceil((columns + plan.width - 1) / bn)
        for rows, columns, *_ in MATRICES[1::2]
    )
    loaded, stored = Counter(), Counter()
    for block in range(blocks):
        for thread in range(plan.threads):
            first, *rest, last = trace(launch, block=block, blocks=blocks, thread=thread)
            assert (first, last) == (events.GridDependencyWait(), events.LaunchDependents())
            for event in rest:
                assert not isinstance(event, events.LaunchDependents)
                if isinstance(event, events.LoadGlobal | events.StoreGlobal):
                    assert event.offset % event.bytes == 0
                    into = loaded if isinstance(event, events.LoadGlobal) else stored
                    for byte in range(event.offset, event.offset + event.bytes, ELEMENT):
                        into[event.tensor, byte] += 1
    sources, targets = (
        {(f"matrix {i}", byte) for i in numbers for byte in elements[f"matrix {i}"]}
        for numbers in ((0, 2), (1, 3))
    )
    assert stored == Counter(targets)
    assert sources <= loaded.keys()
    for tensor, byte in loaded:  # from the first element of the source to the last
        assert min(elements[tensor]) <= byte <= max(elements[tensor])
