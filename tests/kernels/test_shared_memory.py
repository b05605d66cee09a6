"""Threads read shared memory when all have written it, and write it again when all have read it.

The kernels of one tile a block run from their PTX, a thread at a time. All threads of a block run
one program: what a thread has done before a barrier, every thread has done behind it.
"""

from collections import Counter, defaultdict
from functools import cache

import pytest

from cutedsl_gemm.inputs.problem import round_up
from cutedsl_gemm.kernels.plan.arguments import arguments
from cutedsl_gemm.kernels.plan.checks import PER_VECTOR
from cutedsl_gemm.kernels.simt import plan as simt
from cutedsl_gemm.kernels.simt.rungs import block2d, shared
from cutedsl_gemm.kernels.sm70.plan import volta884
from cutedsl_gemm.kernels.sm80 import operand as sm80
from cutedsl_gemm.kernels.sm80.rungs import mma, multistage, wide
from layouts import cosize
from tests.kernels.ladder import ptx
from tests.kernels.ptx import events
from tests.kernels.ptx.arguments import matrix
from tests.kernels.ptx.machine import Launch, trace
from tests.kernels.ptx.reader import read

PADDING = 64  # elements between the end of a line and the next, or a few more
PLANS = [
    shared(),
    *(
        pytest.param(plan, marks=(pytest.mark.deep, pytest.mark.slow))
        for plan in (block2d(), volta884(), mma(), multistage(), wide())
    ),
]
by_plan = pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.name)


class Product:
    """A product with ragged edges whose k-tiles fill the stages once, and two of them twice."""

    def __init__(self, plan):
        self.plan, self.element = plan, 4 if plan.dtype == "float32" else 2  # bytes
        self.stages = getattr(plan, "stages", 1)
        bm, bn, bk = plan.tile
        k = bk * (self.stages + 2) - min(8, bk // 2)
        self.extents = {"M": bm + 7, "N": bn + 9, "K": k}
        self.lines = {}  # name in the trace → (lines, elements of a line)
        for name, argument in zip(("gA", "gB", "gC"), arguments(plan).values(), strict=True):
            shape = [self.extents[mode] for mode in argument.modes]
            self.lines[name] = shape if argument.row_major else shape[::-1]

    def traces(self):
        """What a few threads of all blocks do: the first one's tile is whole."""
        (kernel,) = read(ptx(self.plan))
        modes = {"gA": "MK", "gB": "NK", "gC": "MN"}
        given = tuple(
            matrix(name, i, *(self.extents[mode] for mode in modes[name]), self.stride(name))
            for i, name in enumerate(self.lines)
        )
        for block in range(4):
            for thread in (0, 37, kernel.threads - 1):
                yield trace(Launch(kernel, given), block=block, blocks=4, thread=thread)

    def stride(self, name):
        """Elements from a line of a matrix to the next."""
        _, length = self.lines[name]
        return round_up(length, PER_VECTOR) + PADDING

    def is_inside(self, event):
        """Whether an access of global memory stays in one line of its matrix."""
        lines, length = self.lines[event.tensor]
        line, first = divmod(event.offset // self.element, self.stride(event.tensor))
        moved = event.present if isinstance(event, events.CpAsync) else event.bytes
        return not moved or (line < lines and first + moved // self.element <= length)

    def stage(self, address):
        """(operand, stage), and the byte in it, of an address in shared memory."""
        alignment = sm80.ALIGNMENT if hasattr(self.plan, "stages") else simt.ALIGNMENT
        for name, operand in (("A", self.plan.a), ("B", self.plan.b)):
            size = cosize(operand.smem) * self.element
            if address < size * self.stages:
                return (name, address // size), address % size
            address -= -(-size * self.stages // alignment) * alignment
        raise AssertionError("an address behind the buffers")


@cache
def traced(plan):
    product = Product(plan)
    return product, [*product.traces()]


class Stages:
    """The stages of shared memory, as one thread knows them."""

    def __init__(self):
        self.state = {}  # of a stage: "copying", then "copied" by this thread, "there" from all
        self.groups = [set()]  # of cp.async, in flight: stages; the last one is not committed
        self.being_read = set()  # since the last barrier
        self.reads = defaultdict(list)  # of each contents of a stage: how often each byte

    def take(self, event, stage, byte):
        """AssertionError if the event comes too early."""
        match event:
            case events.StoreShared() | events.CpAsync():
                assert stage not in self.being_read, "written while other threads may read it"
                if self.state.get(stage) in (None, "there"):
                    self.reads[stage].append(Counter())
                self.state[stage] = "copied"
                if isinstance(event, events.CpAsync):
                    self.state[stage] = "copying"
                    self.groups[-1].add(stage)
            case events.CpAsyncCommitGroup():
                self.groups.append(set())
            case events.CpAsyncWaitGroup(pending):
                while len(self.groups) > pending + 1:
                    self.state |= dict.fromkeys(self.groups.pop(0), "copied")
            case events.BarSync():
                copied = (stage for stage, state in self.state.items() if state == "copied")
                self.state |= dict.fromkeys([*copied], "there")
                self.being_read.clear()
            case events.LoadShared() | events.LdMatrix():
                assert self.state[stage] == "there", "read before all threads have written it"
                self.being_read.add(stage)
                self.reads[stage][-1][byte] += 1


@by_plan
def test_nothing_is_read_too_early_nor_written_too_early(plan):
    product, threads = traced(plan)
    for thread in threads:
        stages = Stages()
        for event in thread:
            if hasattr(event, "address"):
                stages.take(event, *product.stage(event.address))
            else:
                stages.take(event, None, None)
        # Every k-tile is read, and in the same way. The last reads may be of a k-tile too many.
        for name in "AB":
            contents = [
                frozenset(each.items())
                for (operand, _), versions in stages.reads.items()
                for each in versions[:-1]
                if operand == name
            ]
            assert len(contents) == 2
            assert len({*contents}) == 1
            assert contents[0]


@by_plan
def test_nothing_outside_of_a_matrix_is_touched(plan):
    product, threads = traced(plan)
    of_global = events.LoadGlobal, events.CpAsync, events.StoreGlobal
    touched = [each for thread in threads for each in thread if isinstance(each, of_global)]
    assert {each.tensor for each in touched} == {"gA", "gB", "gC"}
    assert not [each for each in touched if not product.is_inside(each)]
