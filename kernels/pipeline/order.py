"""What lies before what, in every interleaving: the partial order of a pipeline's actions.

A step names the phase for which it waits. Which action follows which therefore does not depend on
the interleaving: the order is a graph. (A wait could mistake another phase of the same parity for
its own. One of the rules says that none does; up to the first that does, the graph is right.)

Its nodes are moments: a step is taken, an asynchronous step ends, a phase of a barrier completes.
Its edges are the order of each warp, and

    an arrival, the bytes of a load                    → the phase of the mbarrier completes
    a phase completes                                  → who waits for it goes on
    all threads of a named barrier, a cluster are here → each of them goes on
    an asynchronous step ends                          → wait_group passes
    another GPU has sent rows                          → who waits for their flag goes on
    the first kernel has ended                         → griddepcontrol.wait of the second passes
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

from cutedsl_gemm.kernels.pipeline import steps
from cutedsl_gemm.kernels.pipeline.actions import Action, Counts, Warps, actions
from cutedsl_gemm.kernels.pipeline.steps import Pipeline, Step, walk

Buffer: TypeAlias = tuple[object, ...]  # ("stage", block, stage, "A", slice), ("panel", block, …
Version: TypeAlias = tuple[int, ...]  # of a buffer's contents

CLUSTER = "cluster"  # the barrier of all warps of a cluster
LOADED, WRITTEN = 0, 1  # a panel of an operand is overwritten by one of a result


class Phase(NamedTuple):
    """Phase `number` of the mbarrier of a stage, or of a panel, in a block."""

    barrier: str
    block: int
    place: int  # the stage, or the panel
    number: int

    def __str__(self) -> str:
        return f"phase {self.number} of {self.barrier}[{self.place}], block {self.block}"


class Generation(NamedTuple):
    """The n-th call of a barrier by all warps that call it: they go on together."""

    barrier: str
    block: int
    number: int

    def __str__(self) -> str:
        return f"generation {self.number} of {self.barrier}, block {self.block}"


# What happens at a moment: warps take a step, or a step of theirs ends; a phase or a generation is
# complete; warps start; or what the text says.
Label: TypeAlias = "Action | Phase | Generation | Warps | str"


class Arrival(NamedTuple):
    """What counts towards a phase: arrivals, bytes that are expected, bytes that have come."""

    moment: int
    arrivals: int = 0
    expected: int = 0
    loaded: int = 0


class Waiting(NamedTuple):
    """A wait until `phase` has completed: the moment before it, and the moment it passes."""

    before: int
    passed: int
    phase: Phase


class Member(NamedTuple):
    """A call of a barrier: when warps arrive, and when they go on."""

    warps: Warps
    arrived: int
    passed: int


class Access(NamedTuple):
    """A buffer is read or written, from one moment to another.

    `version` says which contents: (k-tile,) of a stage, (tile,) of an accumulator, (0,) of what is
    written once; of a panel's buffer (tile, panel, slot, LOADED), an operand, or (…, WRITTEN).
    """

    version: Version
    writes: bool
    begin: int
    end: int


class Order:
    """The moments of a cluster's actions for a problem, and what lies before each.

    A step that takes time has two moments: `began[x]` is the first of the step that ends at x.
    """

    def __init__(self, pipeline: Pipeline, counts: Counts) -> None:
        self.pipeline, self.counts = pipeline, counts
        self.sent_operands = pipeline.sent_operands
        self.labels: list[Label] = []  # of the moments
        self.began: dict[int, int] = {}
        self.ends: dict[int, int] = {}  # the end of a step → the block whose memory it concerns
        self.before: list[list[int]] = []  # a moment → those directly before it
        self.arrivals: dict[Phase, list[Arrival]] = defaultdict(list)
        self.completed: dict[Phase, int] = {}
        self.waits: list[Waiting] = []
        self.peeks: list[Waiting] = []  # tests: the warps go on whether or not it has completed
        self.calls: dict[tuple[str, int], list[Member]] = defaultdict(list)  # (barrier, block) →
        self.generations: dict[tuple[str, int], list[tuple[int, list[Member]]]] = {}
        self.accesses: dict[Buffer, list[Access]] = defaultdict(list)
        self.products: list[tuple[int, Access]] = []  # (block, read of a stage)
        self.row_waits: list[tuple[int, Buffer]] = []  # (a wait passes, the rows)
        self.tells = any(
            isinstance(step, steps.TellStored)
            for agent in pipeline.agents
            for step in walk(agent.program)
        )
        self.fences: dict[Warps, list[int]] = defaultdict(list)
        self.init: dict[int, int] = {}  # a block → the moment its mbarriers are initialised
        self.touched: list[tuple[int, int]] = []  # (moment, block whose shared memory it touches)
        self.exits: dict[int, int] = {}  # a block → the moment all of its warps have ended
        self._build()

    @property
    def polls(self) -> tuple[Waiting, ...]:
        """All that asks whether a phase has completed: waits and tests."""
        return *self.waits, *self.peeks

    def moment(self, label: Label, before: Iterable[int] = ()) -> int:
        """A new moment, after others."""
        self.labels.append(label)
        self.before.append([*before])
        return len(self.labels) - 1

    def end(self, begin: int, block: int, before: Iterable[int] = ()) -> int:
        """The moment at which the step ends that begins at `begin`, with data of `block`."""
        moment = self.moment(self.labels[begin], (begin, *before))
        self.began[moment], self.ends[moment] = begin, block
        return moment

    def precedes(self, first: int, second: int) -> bool:
        """Whether one moment lies before another in every interleaving."""
        return bool(self.past[second] >> first & 1)

    def unordered(
        self, earlier: Iterable[Access], later: Iterable[Access]
    ) -> Iterator[tuple[Access, Access]]:
        """The pairs of accesses of which the first may end after the second begins."""
        ends = 0
        for access in earlier:
            ends |= 1 << access.end
        for access in later:
            if missing := ends & ~self.past[access.begin]:
                yield from ((each, access) for each in earlier if missing >> each.end & 1)

    def action(self, moment: int) -> Action:
        """The action of a moment at which a step is taken, or ends."""
        label = self.labels[moment]
        if not isinstance(label, Action):
            raise ValueError(f"moment {moment}: {label}; it must be that of a step")
        return label

    def _build(self) -> None:
        front = self.moment("the previous launch ends")
        self.accesses["global memory",].append(Access((0,), True, front, front))
        second = {agent.name for agent in self.pipeline.agents if agent.second_kernel}
        elsewhere = {agent.name for agent in self.pipeline.agents if agent.other_gpu}
        ends = defaultdict(list)
        every = actions(self.pipeline, self.counts)
        agents = defaultdict(list)
        for warps in every:
            agents[warps.block, warps.agent].append(warps)
        for warps, own in every.items():
            program = _Program(self, warps, agents[warps.block, warps.agent], front)
            program.take(own)
            if warps.agent not in elsewhere:
                ends["" if warps.agent in second else warps.block].append(program)
        for block in range(self.pipeline.blocks):
            moments = (program.last for program in ends[block])
            self.exits[block] = self.moment(f"block {block} has ended", moments)
        whole = self.moment("the kernel has ended", self.exits.values())
        self.before[whole] += (
            end for b in range(self.pipeline.blocks) for each in ends[b] for end in each.open
        )
        for program in ends[""]:
            if program.grid_wait is not None:
                self.before[program.grid_wait].append(whole)
        self._join_generations()
        self._join_rows()
        self._join_phases()
        self._join_products()

    def _join_generations(self) -> None:
        """The n-th calls of all warps that call a barrier are its generation n."""
        for key, calls in self.calls.items():
            members: dict[int, list[Member]] = defaultdict(list)
            turns: dict[Warps, int] = defaultdict(int)
            for call in calls:
                members[turns[call.warps]].append(call)
                turns[call.warps] += 1
            self.generations[key] = []
            for number, some in members.items():
                arrived = (each.arrived for each in some)
                whole = self.moment(Generation(*key, number), arrived)
                self.generations[key].append((whole, some))
                for each in some:
                    if each.passed != each.arrived:
                        self.before[each.passed].append(whole)

    def _join_rows(self) -> None:
        """Who waits for rows goes on when they have come."""
        for wait, rows in self.row_waits:
            sent = [each.end for each in self.accesses[rows] if each.writes]
            self.before[wait] += sent or [wait]  # nobody sends them: it never passes

    def _join_phases(self) -> None:
        for phase, arrivals in self.arrivals.items():
            self.completed[phase] = self.moment(phase, [arrival.moment for arrival in arrivals])
        for wait in self.waits:
            if wait.phase in self.completed:
                self.before[wait.passed].append(self.completed[wait.phase])

    def _join_products(self) -> None:
        """A product reads every slice that is loaded into its stage."""
        slices = defaultdict(list)
        for buffer in self.accesses:
            if buffer[0] == "stage":
                slices[buffer[1:3]].append(buffer)
        for block, read in self.products:
            (k_tile,) = read.version
            for buffer in slices[block, k_tile % self.pipeline.stages]:
                self.accesses[buffer].append(read)

    @cached_property
    def after(self) -> list[list[int]]:
        """A moment → those directly after it."""
        after: list[list[int]] = [[] for _ in self.before]
        for moment, before in enumerate(self.before):
            for each in before:
                after[each].append(moment)
        return after

    def interleaving(self, choose: Callable[[list[int]], int] | None = None) -> Iterator[int]:
        """Moments in an order that can happen; those that never come are left out.

        `choose` gets the moments that can come next, and returns the index of one; by default the
        last.
        """
        missing, after = [len(each) for each in self.before], self.after
        ready = [moment for moment, count in enumerate(missing) if not count]
        while ready:
            if choose is not None:
                place = choose(ready)
                ready[place], ready[-1] = ready[-1], ready[place]
            moment = ready.pop()
            yield moment
            for each in after[moment]:
                missing[each] -= 1
                if not missing[each]:
                    ready.append(each)

    @cached_property
    def sequence(self) -> list[int]:
        """One interleaving of all moments except those that are `stuck`."""
        return [*self.interleaving()]

    @cached_property
    def stuck(self) -> list[int]:
        """The moments that never come."""
        return sorted({*range(len(self.labels))} - {*self.sequence})

    @cached_property
    def past(self) -> list[int]:
        """A moment → those before it, as the bits of an integer."""
        past = [0] * len(self.labels)
        for moment in self.sequence:
            known = past[moment] | 1 << moment
            for each in self.after[moment]:
                past[each] |= known
        return past


class _Program:
    """The actions of some warps, which it adds to an order one after the other."""

    def __init__(self, order: Order, warps: Warps, of_agent: list[Warps], front: int) -> None:
        self.order, self.warps, self.of_agent, self.front = order, warps, of_agent, front
        self.pipeline, self.block = order.pipeline, warps.block
        self.last = order.moment(warps)
        self.grid_wait: int | None = None
        self.open: list[int] = []  # ends of asynchronous steps
        self.unwritten: list[int] = []  # stores of which nobody knows that they are in memory
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
        for begin in self.unwritten:  # it does not know of them
            self.access(self.stored_tile(), (0,), True, begin, self.order.end(begin, self.block))

    def stored_tile(self) -> Buffer:
        """The tile in the memory of the GPU that has its rows, as a consumer stores it."""
        return "the stored tile", self.block, self.warps.agent, self.action.tile

    def copy_async(self, step: steps.CopyAsync) -> None:
        begin = self.step()
        self.touch_global(begin)
        end = self.asynchronous("copies", begin)
        stage = self.action.k_tile % self.pipeline.stages
        buffer = ("stage", self.block, stage, self.warps)
        self.access(buffer, (self.action.k_tile,), True, begin, end)

    def multiply(self, step: steps.Multiply) -> None:
        begin = self.step()
        end = self.asynchronous("products", begin) if step.asynchronous else begin
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
        self.access(("accumulator", self.warps), (self.action.tile,), False, moment, moment)

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


STEPS: dict[type[Step], Callable[[_Program, Any], None]] = {
    steps.Wait: _Program.wait,
    steps.Peek: _Program.peek,
    steps.Arrive: _Program.arrive,
    steps.Expect: _Program.expect,
    steps.Load: _Program.load,
    steps.CopyAsync: _Program.copy_async,
    steps.CopyWait: lambda self, step: self.wait_group("copies", step.pending),
    steps.Multiply: _Program.multiply,
    steps.MultiplyWait: lambda self, step: self.wait_group("products", step.pending),
    steps.LoadPanel: _Program.load_panel,
    steps.ReadPanel: _Program.read_panel,
    steps.WritePanel: _Program.write_panel,
    steps.Fence: _Program.fence,
    steps.StorePanel: _Program.store_panel,
    steps.StoreWait: _Program.store_wait,
    steps.StoreResults: _Program.store_results,
    steps.StoreAccumulator: _Program.store_accumulator,
    steps.Reduce: _Program.reduce,
    steps.SendRows: _Program.send_rows,
    steps.WaitForRows: _Program.wait_for_rows,
    steps.AddRows: _Program.add_rows,
    steps.TellStored: _Program.tell_stored,
    steps.Sync: _Program.sync,
    steps.SyncArrive: _Program.sync_arrive,
    steps.InitBarriers: _Program.init_barriers,
    steps.ClusterSync: _Program.cluster_sync,
    steps.GridWait: _Program.wait_for_grid,
    steps.GridLaunch: _Program.plain,
    steps.Registers: _Program.plain,
}
