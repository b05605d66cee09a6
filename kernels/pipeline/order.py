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

from cutedsl_gemm.kernels.pipeline import steps
from cutedsl_gemm.kernels.pipeline.actions import Action, Counts, Warps, actions
from cutedsl_gemm.kernels.pipeline.moments import (
    Access,
    Arrival,
    Buffer,
    Generation,
    Label,
    Member,
    Phase,
    Waiting,
)
from cutedsl_gemm.kernels.pipeline.step_moments import WarpMoments
from cutedsl_gemm.kernels.pipeline.steps import Pipeline, walk


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
            program = WarpMoments(self, warps, agents[warps.block, warps.agent], front)
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
