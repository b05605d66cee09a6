"""Kernels of one tile a block, run thread by thread from their PTX, store each element once."""

import struct
from collections import Counter
from itertools import product

import pytest

from cutedsl_gemm.kernels.epilogue.expression import EpilogueOperand
from cutedsl_gemm.kernels.epilogue.trace import trace as epilogue_of
from cutedsl_gemm.kernels.simt.rungs import RUNGS as SIMT
from cutedsl_gemm.kernels.sm80.rungs import RUNGS as SM80
from tests.kernels.ladder import accesses, ptx
from tests.kernels.ptx import events
from tests.kernels.ptx.arguments import Argument, matrix, pointer
from tests.kernels.ptx.machine import Launch, trace
from tests.kernels.ptx.reader import read


@pytest.mark.deep
@pytest.mark.slow
@pytest.mark.parametrize("rung", [SM80[-1], SIMT[0], SIMT[-1]], ids=lambda rung: rung.__name__)
def test_each_element_of_c_is_stored_once(rung):
    plan = rung()
    (kernel,) = read(ptx(plan))
    element = 4 if plan.dtype == "float32" else 2  # bytes
    m, n, k = plan.tile[0] + 8, plan.tile[1] - 8, 64
    stride = n + 16
    arguments = matrix("gA", 0, m, k, k), matrix("gB", 1, n, k, n), matrix("gC", 2, m, n, stride)
    stored = Counter(
        divmod(event.offset // element + at, stride)
        for block in range(2)
        for thread in range(kernel.threads)
        for event in trace(Launch(kernel, arguments), block=block, blocks=2, thread=thread)
        if isinstance(event, events.StoreGlobal) and event.tensor == "gC"
        for at in range(event.bytes // element)
    )
    assert stored == Counter((row, column) for row in range(m) for column in range(n))


def everything(acc, row, matrix):
    value = acc + row
    return value * matrix, value.sum(dim=1), value.amax(dim=0)


@pytest.mark.deep
@pytest.mark.slow
@pytest.mark.parametrize("rung", [SM80[-1], SIMT[0]], ids=lambda rung: rung.__name__)
def test_a_thread_loads_the_operands_of_its_outputs_and_stores_its_parts_of_reductions(rung):
    operands = (
        EpilogueOperand("row", ("N",)),
        EpilogueOperand("matrix", ("M", "N"), "bfloat16", alignment=8),
    )
    plan = rung(epilogue=epilogue_of(everything, operands))
    (kernel,) = read(ptx(plan))
    m, n, k = plan.tile[0] + 8, plan.tile[1] - 7, 64
    stride, padded = n + 15, n + 7
    down, across = (plan.reduction_parts(each, m, n) for each in plan.epilogue.results[1:])
    arguments = (
        matrix("gA", 0, m, k, k),
        matrix("gB", 1, n, k, stride),
        Argument("row", struct.pack("<Qii", pointer(2), m, n)),  # (M, N):(0, 1)
        matrix("matrix", 3, m, n, stride),
        matrix("gC", 4, m, n, padded),
        matrix("sums", 5, down, m, m),
        matrix("largest", 6, across, n, n),
    )
    element = 4 if plan.dtype == "float32" else 2  # bytes
    tensors = {
        "row": (4, n),
        "matrix": (2, stride),
        "gC": (element, padded),
        "sums": (4, m),
        "largest": (4, n),
    }
    stored = Counter()
    for block, thread in product(range(2), range(kernel.threads)):
        moved = [*accesses(Launch(kernel, arguments), tensors, block, 2, thread)]
        stored.update(tuple(access) for is_store, *access in moved if is_store)
        loaded = {tuple(access) for is_store, *access in moved if not is_store}
        for is_store, tensor, row, column in moved:
            if tensor == "gC":
                assert {("matrix", row, column), ("row", 0, column)} <= loaded
            assert is_store or row < m
    extents = {"gC": (m, n), "sums": (down, m), "largest": (across, n)}
    everywhere = (
        (name, *place) for name in extents for place in product(*map(range, extents[name]))
    )
    assert stored == Counter(everywhere)
