"""Kernels of one tile a block, run thread by thread from their PTX, store each element once."""

from collections import Counter

import pytest

from cutedsl_gemm.kernels.compile.ptx import events
from cutedsl_gemm.kernels.compile.ptx.arguments import matrix
from cutedsl_gemm.kernels.compile.ptx.machine import Launch, trace
from cutedsl_gemm.kernels.compile.ptx.reader import read
from cutedsl_gemm.kernels.simt.rungs import RUNGS as SIMT
from cutedsl_gemm.kernels.sm80.rungs import RUNGS as SM80
from tests.kernels.ladder import ptx


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
