"""Whether a pipeline is right in every interleaving, for every number of tiles and k-tiles.

For a number of tiles and k-tiles, the partial order (order.py) answers for every interleaving. Each
of the RULES names two moments of which one must lie before the other.

Every number of tiles and k-tiles (one or more) follows from those of `problems`:

    a rule     Its two moments concern k-tiles that are at most one ring apart, and so does each
               edge of a path between them. No edge leads back to an earlier k-tile. The rules of
               panels, of their mbarriers and of named barriers concern two tiles of one agent,
               whatever their k-tiles.
    a window   A ring and one k-tile thus hold a rule and its paths; `reach` more are those that a
               step lags behind, has in flight, or counts from the start of a tile. Stages and
               phases repeat with the ring, and tiles with the turns of the agents. Windows differ
               in where tiles begin and end, and in whose turn it is. A tile longer than the window
               adds no other.
    the ends   At the block's first and last tiles some steps are left out, and their edges with
               them. What holds there without these edges holds elsewhere with them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise, product
from math import lcm
from typing import NamedTuple, TypeAlias

from cutedsl_gemm.kernels.pipeline import steps
from cutedsl_gemm.kernels.pipeline.actions import Action, Counts, Warps
from cutedsl_gemm.kernels.pipeline.moments import CLUSTER, Access, Buffer, Label, Version
from cutedsl_gemm.kernels.pipeline.order import Order
from cutedsl_gemm.kernels.pipeline.schedule import times
from cutedsl_gemm.kernels.pipeline.steps import Pipeline, loops, walk
from layouts.hardware.facts import WARP

RULES = {
    "no deadlock": "each phase gets its arrivals and bytes",
    "no phase is mistaken for another": "an arrival on phase n follows the completion of n - 1; a "
    "wait or test of n begins after n - 1 completes and ends before n + 1 does (parity tells only "
    "two phases apart)",
    "what is read was written": "every write of a version ends before it is read; an accumulator "
    "sums over all k-tiles of its tile",
    "what is read is not yet overwritten": "every read and write of a version ends before the next",
    "TMA and wgmma see what threads wrote": "the writing warps execute fence.proxy.async between "
    "the write and the read",
    "shared memory is alive": "mbarriers are initialised before they are used; no access to a "
    "block's shared memory outlasts the block",
    "a dependent launch waits": "it touches global memory after griddepcontrol.wait",
}

# A rule, the moment that should come first, and the moment that may come before it.
Broken: TypeAlias = tuple[str, int, int]


class Event(NamedTuple):
    """What happens at a moment. `ends` if it is the second moment of a step that takes time."""

    label: Label
    moment: int
    began: int | None

    @property
    def ends(self) -> bool:
        """Whether a step ends that has been taken at the moment `began`."""
        return self.began is not None


@dataclass(frozen=True)
class Violation:
    """A rule that a pipeline breaks, with an interleaving in which it does.

    `interleaving` is what happens, in this order, up to the event that breaks the rule. If `early`,
    this event should have come after what is `missing`; if not, what is missing never comes.
    """

    rule: str
    pipeline: Pipeline
    counts: Counts
    interleaving: tuple[Event, ...]
    missing: tuple[Event, ...]
    early: bool

    def __str__(self) -> str:
        return f"{self.rule}, with {self.counts}"


@cache
def violation(pipeline: Pipeline) -> Violation | None:
    """The first rule that the pipeline breaks; None if it is right for every problem."""
    for counts in problems(pipeline):
        for found in violations(Order(pipeline, counts)):
            return found
    return None


def problems(pipeline: Pipeline) -> Iterator[Counts]:
    """The numbers of tiles and k-tiles that decide all others; small ones first."""
    window = pipeline.stages + 1 + _reach(pipeline)
    for k_tiles in range(1, window + 1):
        most = -(-(window - 2) // k_tiles) + _turns(pipeline) if pipeline.persistent else 1
        yield from (Counts(tiles, k_tiles) for tiles in range(1, most + 1))


def _reach(pipeline: Pipeline) -> int:
    """k-tiles that a step lags behind, has in flight, or counts from the start of a tile.

    A flipped wait looks back two rings: at the phase before the one that it awaits. The agent has
    waited for that phase, too, unless it takes turns with others.
    """
    found = {1}
    for agent in pipeline.agents:
        every, inner = [*walk(agent.program)], [*loops(agent.program)]
        found |= {abs(each.lag) for each in every}
        found |= {each.pending for each in every if isinstance(each, steps.MultiplyWait)}
        found |= {each.step for each in inner if each.over == "first k_tiles"}
        flipped = any(isinstance(each, steps.Wait) and each.flipped for each in every)
        if flipped and any(each.over == "tiles" and each.step > 1 for each in inner):
            found.add(pipeline.stages)
    return max(found)


def _turns(pipeline: Pipeline) -> int:
    """Tiles after which the agents' turns repeat."""
    every = (each for agent in pipeline.agents for each in loops(agent.program))
    return lcm(*(each.step for each in every if each.over == "tiles"))


def violations(order: Order) -> Iterator[Violation]:
    """The rules that are broken for one problem."""
    for rule, first, second in _broken(order):
        happens, missing = _interleaving(order, first, second)
        early = first != second
        yield Violation(rule, order.pipeline, order.counts, happens, missing, early)


def _broken(order: Order) -> Iterator[Broken]:
    yield from _waits_for_ever(order)
    if order.stuck:
        return
    yield from _mistaken_phases(order)
    yield from _conflicts(order)
    yield from _missing_products(order)
    yield from _missing_fences(order)
    yield from _outlived_memory(order)


def _waits_for_ever(order: Order) -> Iterator[Broken]:
    for ring in order.pipeline.mbarriers:
        if ring.arrivals < 1:
            what, begin = f"{ring.name} expects {ring.arrivals} arrivals", order.init.get(0, 0)
            yield f"{what}; it must expect at least one", begin, begin
    waited = {waiting.phase for waiting in order.waits if waiting.phase.number >= 0}
    known = waited | set(order.arrivals)
    needed = waited | {each._replace(number=n) for each in known for n in range(each.number)}
    for phase in sorted(needed | known):
        arrivals = order.arrivals.get(phase, [])
        wanted = order.pipeline.mbarrier(phase.barrier).arrivals
        count = sum(arrival.arrivals for arrival in arrivals)
        expected = sum(arrival.expected for arrival in arrivals)
        loaded = sum(arrival.loaded for arrival in arrivals)
        if count > wanted or (phase in needed and count < wanted) or phase.number < 0:
            last = order.completed.get(phase, 0)
            yield f"{phase} has {count} arrivals, not {wanted}", last, last
        elif expected != loaded:
            last = order.completed[phase]
            yield f"{phase} expects {expected} bytes, and {loaded} come", last, last
    for (barrier, block), generations in order.generations.items():
        wanted = _threads(order.pipeline, barrier)
        for whole, members in generations:
            threads = WARP * sum(member.warps.size for member in members)
            if threads != wanted:
                yield (
                    f"{threads} threads, not {wanted}, call {barrier}, block {block}",
                    whole,
                    whole,
                )
    if order.stuck:
        yield "deadlock: no warp can proceed", order.stuck[0], order.stuck[0]


def _threads(pipeline: Pipeline, barrier: str) -> int:
    """The threads that a barrier counts."""
    if barrier != CLUSTER:
        return pipeline.named_barrier(barrier).threads
    agents = (agent for agent in pipeline.agents if not agent.second_kernel | agent.other_gpu)
    return WARP * pipeline.blocks * sum(agent.warps for agent in agents)


def _mistaken_phases(order: Order) -> Iterator[Broken]:
    for phase, arrivals in order.arrivals.items():
        before = order.completed.get(phase._replace(number=phase.number - 1))
        for arrival in arrivals:
            if before is not None and not order.precedes(before, arrival.moment):
                yield (
                    f"an arrival of {phase} may count for the one before it",
                    before,
                    arrival.moment,
                )
    for waiting in order.polls:
        number = waiting.phase.number
        before = order.completed.get(waiting.phase._replace(number=number - 1))
        if before is not None and not order.precedes(before, waiting.before):
            yield (
                f"a wait or test for {waiting.phase} may pass two phases early",
                before,
                waiting.passed,
            )
        after = order.completed.get(waiting.phase._replace(number=number + 1))
        if after is not None and not order.precedes(waiting.passed, after):
            yield f"a wait or test for {waiting.phase} may miss it", waiting.passed, after
    for (barrier, block), generations in order.generations.items():
        for (whole, _), (_, members) in pairwise(generations):
            for member in members:
                if not order.precedes(whole, member.arrived):
                    yield (
                        f"a warp may arrive at {barrier}, block {block}, again before it completes",
                        whole,
                        member.arrived,
                    )


def _conflicts(order: Order) -> Iterator[Broken]:
    for buffer, accesses in order.accesses.items():
        versions: dict[Version, tuple[list[Access], list[Access]]] = defaultdict(lambda: ([], []))
        for access in accesses:
            versions[access.version][access.writes].append(access)
        last: list[Access] = []
        for _, (reads, writes) in sorted(versions.items()):
            yield from _overwritten(order, buffer, last, writes)
            yield from _read_too_early(order, buffer, reads, writes)
            if writes and not reads:
                yield (
                    f"{_name(buffer)} is written, and nobody reads it",
                    writes[0].end,
                    writes[0].end,
                )
            last = [*reads, *writes]


def _overwritten(
    order: Order, buffer: Buffer, last: list[Access], writes: list[Access]
) -> Iterator[Broken]:
    for earlier, write in order.unordered(last, writes):
        what = "written" if earlier.writes else "read"
        yield f"{_name(buffer)} is overwritten while it is {what}", earlier.end, write.begin


def _read_too_early(
    order: Order, buffer: Buffer, reads: list[Access], writes: list[Access]
) -> Iterator[Broken]:
    for read in reads:
        if not writes:
            yield f"{_name(buffer)} is read, and nobody has written it", read.begin, read.begin
    for write, read in order.unordered(writes, reads):
        yield f"{_name(buffer)} is read before it is written", write.end, read.begin


def _missing_products(order: Order) -> Iterator[Broken]:
    """An accumulator that is read is the sum over all k-tiles of its tile, each added once."""
    for buffer, accesses in order.accesses.items():
        if buffer[0] != "accumulator":
            continue
        added: dict[Version, list[int]] = defaultdict(list)
        for access in accesses:
            if access.writes:
                added[access.version].append(order.action(access.begin).k_tile)
        k_tiles = order.counts.k_tiles
        for access in accesses:
            (tile,) = access.version
            all_of_them = [*range(tile * k_tiles, (tile + 1) * k_tiles)]
            if not access.writes and sorted(added[tile,]) != all_of_them:
                what = f"the accumulator of tile {tile} sums over k-tiles {added[tile,]}"
                yield f"{what}, not {all_of_them}", access.begin, access.begin


def _missing_fences(order: Order) -> Iterator[Broken]:
    for buffer, accesses in order.accesses.items():
        if buffer[0] != "panel":
            continue
        written = [each for each in accesses if each.writes and _by_threads(order, each)]
        for write, read in product(written, accesses):
            asynchronous = not read.writes and read.begin != read.end
            if asynchronous and write.version == read.version:
                fences = order.fences[order.action(write.begin).warps]
                if not any(
                    order.precedes(write.end, fence) and order.precedes(fence, read.begin)
                    for fence in fences
                ):
                    what = f"{_name(buffer)} is read by TMA without a fence"
                    yield what, read.begin, read.begin


def _by_threads(order: Order, write: Access) -> bool:
    """Whether threads write, by the generic proxy; TMA is of the async proxy."""
    return isinstance(order.action(write.begin).step, steps.WritePanel)


def _outlived_memory(order: Order) -> Iterator[Broken]:
    polls = ((waiting.before, waiting.phase.block) for waiting in order.polls)
    for moment, block in (*order.touched, *polls):
        ready = order.init.get(block)
        initialised = ready is not None and (ready == moment or order.precedes(ready, moment))
        if order.pipeline.mbarriers and not initialised:
            what = f"mbarriers of block {block} are used before they are initialised"
            yield what, moment if ready is None else ready, moment
        if not order.precedes(moment, order.exits[block]):
            yield f"block {block} may end before this", moment, order.exits[block]


def _name(buffer: Buffer) -> str:
    if buffer[0] == "stage":
        _, block, stage, *rest = buffer
        return f"stage {stage} of block {block}" + (f", {rest[0]}" if len(rest) == 2 else "")
    if buffer[0] == "panel":
        _, block, agent, number, _ = buffer
        return f"panel buffer {number} of {agent}, block {block}"
    return str(buffer[0])


def _interleaving(
    order: Order, first: int, second: int
) -> tuple[tuple[Event, ...], tuple[Event, ...]]:
    """What happens before `second`, and `second`; and what need not have happened by then.

    In a deadlock: all that happens, and what each of the warps would do next.
    """
    happens = [*times(order)]
    if order.stuck:
        return _events(order, happens), _events(order, _next(order))
    # A wait that mistakes the phase does not wait for the one that it names, which follows `first`.
    before = (
        moment
        for moment in happens
        if order.precedes(moment, second) and moment != first and not order.precedes(first, moment)
    )
    return _events(order, (*before, second)), _events(order, (first,) if first != second else ())


def _next(order: Order) -> Iterator[int]:
    """The first moment of each of the warps that never comes."""
    warps: set[Warps] = set()
    for moment in order.stuck:
        label = order.labels[moment]
        if isinstance(label, Action) and label.warps not in warps:
            warps.add(label.warps)
            yield moment


def _events(order: Order, moments: Iterable[int]) -> tuple[Event, ...]:
    return tuple(Event(order.labels[each], each, order.began.get(each)) for each in moments)
