"""What the tests of simt, sm70 and sm80 share: products of integers, machine code, parameters."""

import functools

import pytest
import torch

from cutedsl_gemm.kernels.compile import build
from cutedsl_gemm.kernels.executor import empty_tensors
from tests.kernels.ptx import events
from tests.kernels.ptx.machine import trace

# Compiling takes seconds, and several tests look at one plan.
inspect, ptx = functools.cache(build.inspect), functools.cache(build.ptx)


def exact(plan, m, n, k):
    """Whether the executor multiplies small integers exactly."""
    a, b, out = empty_tensors(plan, m, n, k)
    a.random_(-2, 3), b.random_(-2, 3)
    plan.execute(a, b, out)
    return torch.equal(out, (a.float() @ b.float()).to(out.dtype))


def wrong(plan, m, n, k):
    """Whether the executor refuses a plan, or gives a wrong result."""
    try:
        return not exact(plan, m, n, k)
    except ValueError:  # PlanError, or LayoutError
        return True


def by_rung_and_majors(always, in_ci):
    """Parameters `rung` and `majors` of a test: some always, some only at CI's depth."""
    return pytest.mark.parametrize(
        ("rung", "majors"),
        [*always, *(pytest.param(*case, marks=pytest.mark.deep) for case in in_ci)],
        ids=lambda case: "-".join(case) if isinstance(case, tuple) else case.__name__,
    )


def accesses(launch, tensors, block, blocks, thread):
    """(whether it is a store, tensor, row, column) of each element that a thread moves.

    `tensors` are those that count: name → (bytes of an element, elements of a row).
    """
    for event in trace(launch, block=block, blocks=blocks, thread=thread):
        if isinstance(event, events.LoadGlobal | events.StoreGlobal) and event.tensor in tensors:
            element, length = tensors[event.tensor]
            assert event.offset % event.bytes == 0
            for at in range(event.offset, event.offset + event.bytes, element):
                is_store = isinstance(event, events.StoreGlobal)
                yield is_store, event.tensor, *divmod(at // element, length)
