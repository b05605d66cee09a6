"""The moments of each step: which it adds to an order, after which others, and what it accesses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from cutedsl_gemm.kernels.pipeline import steps
from cutedsl_gemm.kernels.pipeline.actions import Action, Warps
from cutedsl_gemm.kernels.pipeline.moments import (
    CLUSTER,
    LOADED,
    WRITTEN,
    Access,
    Arrival,
    Buffer,
    Member,
    Phase,
    Version,
    Waiting,
)
from cutedsl_gemm.kernels.pipeline.steps import Step

if TYPE_CHECKING:
    from cutedsl_gemm.kernels.pipeline.order import Order


class WarpMoments:
    """The actions of some warps, which it adds to an order one after the other."""

    def __init__(self, order: Order, warps: Warps, of_agent: list[Warps], front: int) -> None:
        self.order, self.warps, self.of_agent, self.front = order, warps, of_agent, front
        self.pipeline, self.block = order.pipeline, warps.block
        self.last = order.moment(warps)
        self.grid_wait: int | None = None
        self.open: list[int] = []  # ends of asynchronous steps
        self.unwritten: list[int] = []  # stores not yet known to be in global memory
        self.groups: dict[str, list[int]] = defaultdict(list)  # by kind, one a group

    def take(self, actions: Iterable[Action]) -> None:
        """Add all actions."""
        for action in actions:
            self.action = action
            STEPS[type(action.step)](self, action.step)

    def step(self) -> int:
        """The moment at which the action is taken, after the one before it."""
        self.last = self.order.moment(self.action, (self.last,))
        return self.last

    def asynchronous(self, kind: str, begin: int) -> int:
        """The moment at which an asynchronous step ends; groups of a kind end in order."""
        groups = self.groups[kind]
        end = self.order.end(begin, self.block, groups[-1:])
        groups.append(end)
        self.open.append(end)
        return end

    def wait_group(self, kind: str, pending: int) -> None:
        """All groups of a kind but the last `pending` have ended."""
        groups = self.groups[kind]
        done = len(groups) - pending
        self.order.before[self.step()] += groups[done - 1 : done] if done > 0 else ()

    def phase(self, barrier: str, block: int) -> Phase:
        """The phase of the action's k-tile, or of its panel."""
        return Phase(barrier, block, *self.action.phase(self.pipeline.stages))

    def access(self, buffer: Buffer, version: Version, writes: bool, begin: int, end: int) -> None:
        self.order.accesses[buffer].append(Access(version, writes, begin, end))

    def touch_global(self, moment: int) -> None:
        """An access to global memory: the previous launch must have ended before it.

        That launch may have written what a load reads, and may read what a store overwrites.
        """
        self.access(("global memory",), (0,), False, moment, moment)

    # The steps

    def wait(self, step: steps.Wait) -> None:
        phase, before = self.phase(step.barrier, self.block), self.last
        target = phase._replace(number=phase.number - step.flipped)
        self.order.waits.append(Waiting(before, self.step(), target))

    def peek(self, step: steps.Peek) -> None:
        before = self.last
        phase = self.phase(step.barrier, self.block)
        self.order.peeks.append(Waiting(before, self.step(), phase))

    def arrive(self, step: steps.Arrive) -> None:
        moment = self.step()
        for block in step.blocks[self.block]:
            arrival = Arrival(moment, arrivals=self.warps.size)
            self.order.arrivals[self.phase(step.barrier, block)].append(arrival)
            self.order.touched.append((moment, block))

    def expect(self, step: steps.Expect) -> None:
        arrival = Arrival(self.step(), arrivals=1, expected=step.bytes)
        self.order.arrivals[self.phase(step.barrier, self.block)].append(arrival)

    def load(self, step: steps.Load) -> None:
        begin = self.step()
        self.touch_global(begin)
        for block in step.blocks[self.block]:
            end = self.order.end(begin, block)
            phase = self.bytes_come(step, block, end)
            buffer = ("stage", block, phase.place, step.operand, step.slices[self.block])
            self.access(buffer, (self.action.k_tile,), True, begin, end)
            if step.operand in self.order.sent_operands:
                self.access(self.rows(step.operand), (0,), False, begin, end)

    def load_panel(self, step: steps.LoadPanel) -> None:
        begin = self.step()
        self.touch_global(begin)
        end = self.order.end(begin, self.block)
        self.bytes_come(step, self.block, end)
        self.panel(step, self.of_agent, LOADED, True, begin, end)

    def bytes_come(self, step: steps.Load | steps.LoadPanel, block: int, end: int) -> Phase:
        """The bytes of a load complete on an mbarrier of the block: on its phase."""
        phase = self.phase(step.barrier, block)
        self.order.arrivals[phase].append(Arrival(end, loaded=step.bytes))
        self.order.touched.append((end, block))
        return phase

    def rows(self, operand: str) -> Buffer:
        """The rows of an operand in global memory that the block's tile needs."""
        return f"the rows of {operand}", self.block, self.action.tile

    def send_rows(self, step: steps.SendRows) -> None:
        moment = self.step()
        self.access(self.rows(step.operand), (0,), True, moment, moment)

    def wait_for_rows(self, step: steps.WaitForRows) -> None:
        moment = self.step()
        self.touch_global(moment)
        self.order.row_waits.append((moment, self.rows(step.operand)))

    def add_rows(self, step: steps.AddRows) -> None:
        moment = self.step()
        self.accumulator(False, moment, moment)
        self.access(self.rows(step.operand), (0,), False, moment, moment)

    def store_wait(self, step: steps.StoreWait) -> None:
        self.wait_group("stores", step.pending)
        if step.written:
            stored = self.unwritten[: len(self.unwritten) - step.pending]
            for begin in stored if self.order.tells else ():
                self.access(self.stored_tile(), (0,), True, begin, self.last)
            self.unwritten = self.unwritten[len(stored) :]

    def tell_stored(self, step: steps.TellStored) -> None:
        moment = self.step()
        self.access(self.stored_tile(), (0,), False, moment, moment)
        for begin in self.unwritten:  # that no wait has covered
            self.access(self.stored_tile(), (0,), True, begin, self.order.end(begin, self.block))

    def stored_tile(self) -> Buffer:
        """The tile in the memory of the GPU that has its rows, as a consumer stores it."""
        return "the stored tile", self.block, self.warps.agent, self.action.tile

    def multiply(self, step: steps.Multiply) -> None:
        begin = self.step()
        end = self.asynchronous("products", begin)
        self.order.products.append((self.block, Access((self.action.k_tile,), False, begin, end)))
        self.accumulator(True, begin, end)

    def read_panel(self, step: steps.ReadPanel) -> None:
        moment = self.step()
        self.panel(step, (self.warps,), LOADED, False, moment, moment)

    def write_panel(self, step: steps.WritePanel) -> None:
        moment = self.step()
        self.accumulator(False, moment, moment)
        self.panel(step, (self.warps,), WRITTEN, True, moment, moment)

    def store_panel(self, step: steps.StorePanel) -> None:
        begin = self.step()
        self.touch_global(begin)
        end = self.asynchronous("stores", begin) if step.asynchronous else begin
        self.unwritten.append(begin)
        self.panel(step, self.of_agent, WRITTEN, False, begin, end)
        self.order.touched.append((end, self.block))

    def accumulator(self, writes: bool, begin: int, end: int) -> None:
        self.access(("accumulator", self.warps), (self.action.tile,), writes, begin, end)

    def panel(
        self,
        step: steps.LoadPanel | steps.ReadPanel | steps.WritePanel | steps.StorePanel,
        rows_of: Iterable[Warps],
        contents: int,
        writes: bool,
        begin: int,
        end: int,
    ) -> None:
        """An access to the rows of a panel's buffer that these warps write."""
        for warps in rows_of:
            buffer = ("panel", self.block, self.warps.agent, step.buffer, warps)
            version = self.action.tile, step.panel, step.slot, contents
            self.access(buffer, version, writes, begin, end)

    def fence(self, step: steps.Fence) -> None:
        self.order.fences[self.warps].append(self.step())

    def store_results(self, step: steps.StoreResults) -> None:
        moment = self.step()
        self.touch_global(moment)
        self.accumulator(False, moment, moment)

    def store_accumulator(self, step: steps.StoreAccumulator) -> None:
        moment = self.step()
        self.touch_global(moment)
        self.accumulator(False, moment, moment)
        self.access(("partial sums",), (0,), True, moment, moment)

    def reduce(self, step: steps.Reduce) -> None:
        moment = self.step()
        self.access(("partial sums",), (0,), False, moment, moment)

    def sync(self, step: steps.Sync) -> None:
        self.call(step.barrier, self.block)

    def cluster_sync(self, step: steps.ClusterSync) -> None:
        self.call(CLUSTER, 0)

    def call(self, barrier: str, block: int) -> None:
        arrived = self.step()
        self.last = self.order.end(arrived, block)
        self.order.calls[barrier, block].append(Member(self.warps, arrived, self.last))

    def sync_arrive(self, step: steps.SyncArrive) -> None:
        moment = self.step()
        self.order.calls[step.barrier, self.block].append(Member(self.warps, moment, moment))

    def init_barriers(self, step: steps.InitBarriers) -> None:
        self.order.init[self.block] = self.step()

    def wait_for_grid(self, step: steps.GridWait) -> None:
        self.grid_wait = self.step()
        self.order.before[self.grid_wait].append(self.front)

    def plain(self, step: Step) -> None:
        """A step that nothing here depends on."""
        self.step()


STEPS: dict[type[Step], Callable[[WarpMoments, Any], None]] = {
    steps.Wait: WarpMoments.wait,
    steps.Peek: WarpMoments.peek,
    steps.Arrive: WarpMoments.arrive,
    steps.Expect: WarpMoments.expect,
    steps.Load: WarpMoments.load,
    steps.Multiply: WarpMoments.multiply,
    steps.MultiplyWait: lambda self, step: self.wait_group("products", step.pending),
    steps.LoadPanel: WarpMoments.load_panel,
    steps.ReadPanel: WarpMoments.read_panel,
    steps.WritePanel: WarpMoments.write_panel,
    steps.Fence: WarpMoments.fence,
    steps.StorePanel: WarpMoments.store_panel,
    steps.StoreWait: WarpMoments.store_wait,
    steps.StoreResults: WarpMoments.store_results,
    steps.StoreAccumulator: WarpMoments.store_accumulator,
    steps.Reduce: WarpMoments.reduce,
    steps.SendRows: WarpMoments.send_rows,
    steps.WaitForRows: WarpMoments.wait_for_rows,
    steps.AddRows: WarpMoments.add_rows,
    steps.TellStored: WarpMoments.tell_stored,
    steps.Sync: WarpMoments.sync,
    steps.SyncArrive: WarpMoments.sync_arrive,
    steps.InitBarriers: WarpMoments.init_barriers,
    steps.ClusterSync: WarpMoments.cluster_sync,
    steps.GridWait: WarpMoments.wait_for_grid,
    steps.GridLaunch: WarpMoments.plain,
    steps.Registers: WarpMoments.plain,
}
