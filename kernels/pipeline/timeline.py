"""A run of a pipeline, drawn as text: agents down, time across.

The durations are those of schedule.py: the drawing shows what overlaps with what, and not how long
it takes on a GPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from cutedsl_gemm.kernels.pipeline import steps
from cutedsl_gemm.kernels.pipeline.actions import Action, Counts
from cutedsl_gemm.kernels.pipeline.order import Order
from cutedsl_gemm.kernels.pipeline.schedule import PENDING, TAKEN, times
from cutedsl_gemm.kernels.pipeline.steps import Agent, Pipeline, Step, walk
from cutedsl_gemm.kernels.pipeline.table import table

COLUMNS = 104  # of the drawing
TILES, K_TILES = 4, 8  # of the block, unless others are asked for
LOADS, TENSOR_CORE = "load", "tensor core"
ACTIVITIES: dict[type[Step], str] = {
    steps.Load: LOADS,
    steps.Multiply: "multiply",
    steps.LoadPanel: LOADS,
    steps.ReadPanel: "store",
    steps.WritePanel: "store",
    steps.StorePanel: "store",
    steps.StoreResults: "store",
    steps.StoreAccumulator: "store",
    steps.Reduce: "reduce",
}


class Span(NamedTuple):
    """What a row does from one time to another: an activity, for a tile of the block."""

    begin: int
    end: int
    activity: str
    tile: int

    def words(self, room: int) -> str:
        """The activity and the tile, or the tile if there is no room for both.

        >>> span = Span(0, 4, "store", 1)
        >>> [span.words(room) for room in (7, 6, 0)]
        ['store 1', '1', '']
        """
        texts = f"{self.activity} {self.tile}", str(self.tile), ""
        return next(text for text in texts if len(text) <= room)


@dataclass(frozen=True)
class Timeline:
    """What the agents of a block, and its tensor core, do at the same time.

    `rows` has the name of each row, and its spans in the order of time.
    """

    counts: Counts
    rows: tuple[tuple[str, tuple[Span, ...]], ...]

    @property
    def end(self) -> int:
        """When the last span ends."""
        return max(span.end for _, spans in self.rows for span in spans)

    def __str__(self) -> str:
        drawn = [(name, _drawn(spans, self.end)) for name, spans in self.rows]
        return "\n".join((str(self.counts), *table(drawn)))

    def svg(self) -> str:
        """The drawing as an SVG document. The colour of a bar is its tile."""
        from cutedsl_gemm.kernels.pipeline.timeline_svg import render

        return render(self)


def timeline(pipeline: Pipeline, counts: Counts | None = None) -> Timeline:
    """A run of a block.

    `counts` are the tiles and k-tiles of the block. The blocks of a cluster do the same.

    >>> from cutedsl_gemm.kernels.sm90.rungs import pingpong
    >>> print(timeline(pingpong().pipeline, Counts(2, 8)))  # doctest: +ELLIPSIS
    2 tiles of 8 k-tiles
    producer      │load 0 ...│load 1 ...
    consumer 0 ...│multiply 0 ...│store 0 ...
    consumer 1 ...│multiply 1 ...│store 1 ...
    tensor core...│multiply 0 ...│multiply 1 ...
    """
    counts = counts or Counts(TILES if pipeline.persistent else 1, K_TILES)
    rows = rows_of(pipeline, counts).items()
    return Timeline(counts, tuple((name, tuple(_merged(spans))) for name, spans in rows))


def rows_of(pipeline: Pipeline, counts: Counts) -> dict[str, list[Span]]:
    """The spans of block 0: a row for each agent, and one for the tensor core."""
    order = Order(pipeline, counts)
    come = times(order)
    second = [agent.name for agent in pipeline.agents if agent.second_kernel]
    first = [agent.name for agent in pipeline.agents if not agent.second_kernel]
    both = [agent.name for agent in pipeline.agents if _does_both(agent)]  # load and multiply
    names = (name for agent in first for name in ((agent, f"{agent}, loads")))
    rows: dict[str, list[Span]] = {name: [] for name in (*names, TENSOR_CORE, *second)}
    for moment, time in come.items():
        label = order.labels[moment]
        if isinstance(label, Action) and label.warps.leader and label.warps.block == 0:
            activity = ACTIVITIES.get(type(label.step), "")
            agent = label.warps.agent
            row = f"{agent}, loads" if activity == LOADS and agent in both else agent
            for name, begin in _begins(label.step, moment, order, come):
                rows[name or row].append(Span(begin, time, activity, label.tile))
    return {name: sorted(spans) for name, spans in rows.items() if spans}


def _begins(
    step: Step, moment: int, order: Order, come: dict[int, int]
) -> Iterator[tuple[str, int]]:
    """(row, begin) of the spans that end at a moment; no row is the agent's."""
    time, kind = come[moment], type(step)
    if moment in order.began:
        if kind is steps.Multiply:  # the warps wait for it
            yield "", come[order.began[moment]]
            yield TENSOR_CORE, time - PENDING[kind]
    elif kind in ACTIVITIES:
        yield "", time - TAKEN.get(kind, 0)


def _does_both(agent: Agent) -> bool:
    kinds = {ACTIVITIES.get(type(step)) for step in walk(agent.program)}
    return {LOADS, "multiply"} <= kinds


def _merged(spans: list[Span]) -> list[Span]:
    """Spans of the same activity and tile, one behind the other, as one."""
    found: list[Span] = []
    for span in spans:
        if found and found[-1][2:] == span[2:]:
            span = span._replace(begin=found[-1].begin, end=max(span.end, found.pop().end))
        found.append(span)
    return found


def _drawn(spans: tuple[Span, ...], whole: int) -> str:
    """Bars with their words."""
    row = [" "] * (COLUMNS + 2)
    for span in spans:
        begin = span.begin * COLUMNS // whole
        end = max(begin + 1, span.end * COLUMNS // whole)
        text = span.words(end - begin - 1)
        row[begin : end + 1] = f"│{text:{end - begin - 1}}│"
    return "".join(row)
