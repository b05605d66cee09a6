"""A violation as text: its interleaving as a table, and as a chart of who does what when.

The table numbers its rows, and the chart has one column for each of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from cutedsl_gemm.kernels.pipeline import steps
from cutedsl_gemm.kernels.pipeline.actions import Action, Warps
from cutedsl_gemm.kernels.pipeline.decide import Event, Violation
from cutedsl_gemm.kernels.pipeline.listing import text
from cutedsl_gemm.kernels.pipeline.moments import Generation, Phase
from cutedsl_gemm.kernels.pipeline.steps import Pipeline, Step
from cutedsl_gemm.kernels.pipeline.table import table

SHOWN = 24  # events; those before them are left out
IMPLIED = Warps, Generation  # what follows from the events around it is not shown
COLUMN = 3  # characters of the chart's columns
ENGINES: dict[type[Step], str] = {
    steps.Load: "TMA loads of",
    steps.LoadPanel: "TMA loads of",
    steps.Multiply: "wgmma of",
    steps.StorePanel: "TMA stores of",
}
Row: TypeAlias = tuple[str, ...]


def counterexample(violation: Violation, shown: int = SHOWN) -> str:
    """The rule that is broken, the last `shown` events of its interleaving, and their chart.

    Of a step that is missing, the event at which it was taken is shown, too.
    """
    every = [each for each in violation.interleaving if not isinstance(each.label, IMPLIED)]
    began = {event.began for event in violation.missing}
    first = max(0, len(every) - shown)
    events = [*(each for each in every[:first] if each.moment in began), *every[first:]]
    rows = _rows(violation, events, left_out=len(every) - len(events))
    return "\n".join([str(violation), "", *rows, "", *_chart(violation, events)])


# The table


def _rows(violation: Violation, events: Sequence[Event], left_out: int) -> Iterator[str]:
    rows: list[Row] = [("", "who", "what", "tile", "k-tile", "stage", "phase")]
    if left_out:
        rows.append(("…", f"{left_out} events", "are left out", "", "", "", ""))
    for number, event in enumerate(events, 1):
        mark = "✗ " if violation.early and number == len(events) else ""
        rows.append((f"{mark}{number}", *_cells(event, violation.pipeline)))
    when = "not yet" if violation.early else "never"
    rows += [(when, *_cells(event, violation.pipeline)) for event in violation.missing]
    yield from table(rows)


def _cells(event: Event, pipeline: Pipeline) -> Row:
    """(who, what, tile, k-tile, stage, phase) of an event."""
    label = event.label
    if not isinstance(label, Action):
        return _who(label, pipeline), _what(label), "", *_place(label)
    step, k_tile = label.step, label.k_tile
    place, phase = label.phase(pipeline.stages)
    if isinstance(step, steps.Wait) and step.flipped:
        k_tile, phase = k_tile - pipeline.stages, phase - 1  # whose phase is awaited
    passes = " (passes at once)" if phase < 0 else ""
    what = f"{text(step, k_tile)}{_moment(event, step)}{passes}"
    own = str(k_tile) if step.of_k_tile else "", str(place), str(phase)
    has_place = step.of_k_tile or (hasattr(step, "barrier") and hasattr(step, "panel"))
    return (
        _who(label.warps, pipeline),
        what,
        str(label.tile),
        *(own if has_place else [""] * 3),
    )


def _moment(event: Event, step: Step) -> str:
    """Which moment of its step an event is."""
    if not event.ends:
        return ""
    return ": goes on" if isinstance(step, steps.Sync | steps.ClusterSync) else ": ends"


def _who(label: object, pipeline: Pipeline) -> str:
    if not isinstance(label, Warps):
        return ""
    who = f"{label.agent}, {'first warp' if label.leader else 'other warps'}"
    return f"block {label.block}, {who}" if pipeline.blocks > 1 else who


def _what(label: object) -> str:
    if isinstance(label, Warps):
        return "start"
    if isinstance(label, Phase):
        return f"{label.barrier}: the phase is complete"
    return f"{label} is complete" if isinstance(label, Generation) else str(label)


def _place(label: object) -> Row:
    """(k-tile, stage, phase) of what is no step."""
    return ("", str(label.place), str(label.number)) if isinstance(label, Phase) else ("", "", "")


# The chart


def _chart(violation: Violation, events: Sequence[Event]) -> Iterator[str]:
    """A row for each of the warps, and for what they have in flight; a column for each event."""
    pipeline, columns = (
        violation.pipeline,
        {event.moment: at for at, event in enumerate(events)},
    )
    rows = {name: [" " * COLUMN] * len(events) for name in _names(pipeline)}
    ended = {event.began for event in violation.interleaving}
    for at, event in enumerate(events):
        if not isinstance(event.label, Action):
            continue
        step, who = event.label.step, _who(event.label.warps, pipeline)
        inside = rows[_engine(step, event.label.warps, pipeline) or who]
        open_end = _lasts(step) and not event.ends and event.moment not in ended
        if event.began is not None:
            _span(inside, columns.get(event.began, 0), at)
        elif open_end:
            _span(inside, at, len(events))
        if (inside is rows[who] and not open_end) or not event.ends:
            early = violation.early and at == len(events) - 1
            rows[who][at] = ("✗" if early else "●") + rows[who][at][1:]
    numbers = "".join(f"{number:<{COLUMN}}" for number, _ in enumerate(events, 1))
    drawn = ((name, "".join(row)) for name, row in rows.items())
    yield from table([("", numbers), *((name, row) for name, row in drawn if row.strip())])


def _names(pipeline: Pipeline) -> Iterator[str]:
    """The rows: the warps of each agent, and behind them what they have in flight."""
    for block in range(pipeline.blocks):
        for agent in pipeline.agents:
            for leader in (True, False):
                yield _who(Warps(block, agent.name, leader, 0), pipeline)
            for engine in ENGINES.values():
                yield _in_flight(engine, block, agent.name, pipeline)


def _in_flight(engine: str, block: int, agent: str, pipeline: Pipeline) -> str:
    return (f"block {block}, " if pipeline.blocks > 1 else "") + f"{engine} {agent}"


def _engine(step: Step, warps: Warps, pipeline: Pipeline) -> str | None:
    """The row of a step that is asynchronous."""
    if type(step) not in ENGINES or not getattr(step, "asynchronous", True):
        return None
    return _in_flight(ENGINES[type(step)], warps.block, warps.agent, pipeline)


def _lasts(step: Step) -> bool:
    """Whether a step has two moments."""
    waits = isinstance(step, steps.Sync | steps.ClusterSync)
    return waits or (type(step) in ENGINES and getattr(step, "asynchronous", True))


def _span(row: list[str], begin: int, end: int) -> None:
    """Draw what lasts from one column to another; to the right edge if it has not ended."""
    for at in range(begin, min(end, len(row))):
        row[at] = row[at].replace(" ", "─")
    row[begin] = "├" + row[begin][1:]
    if end < len(row):
        row[end] = "┤" + row[end][1:]
    else:
        row[-1] = row[-1][:-1] + "▶"
