"""A pipeline as text: what the warps of each agent do, one line a step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import chain
from typing import NamedTuple

from cutedsl_gemm.kernels.pipeline import steps
from cutedsl_gemm.kernels.pipeline.steps import (
    Agent,
    Arrive,
    Load,
    Loop,
    Pipeline,
    Program,
    Step,
    StorePanel,
    Wait,
    walk,
)
from cutedsl_gemm.kernels.pipeline.table import table

# The fields of a step are filled in; {k} is its k-tile, and {place} its panel or else its k-tile.
TEXTS: dict[type[Step], str] = {
    Wait: "mbarrier wait {barrier}[{place}]",
    steps.Peek: "mbarrier test {barrier}[{k}]",
    Arrive: "mbarrier arrive {barrier}[{k}]",
    steps.Expect: "mbarrier arrive {barrier}[{place}], expect {bytes:,} bytes",
    Load: "TMA load {operand}[{k}] → its stage, {bytes:,} bytes on {barrier}[{k}]",
    steps.Multiply: "wgmma [{k}], commit_group",
    steps.MultiplyWait: "wgmma.wait_group {pending}",
    steps.LoadPanel: "TMA load panel {panel} of {operand} → buffer {buffer}, "
    "{bytes:,} bytes on {barrier}[{panel}]",
    steps.ReadPanel: "ldmatrix panel {panel} ← buffer {buffer}",
    steps.WritePanel: "stmatrix panel {panel} → buffer {buffer}",
    steps.Fence: "fence.proxy.async",
    StorePanel: "store buffer {buffer} → panel {panel} of {result}",
    steps.StoreWait: "cp.async.bulk.wait_group.read {pending}",
    steps.StoreResults: "store results of panel {panel} from registers",
    steps.StoreAccumulator: "store the accumulator → workspace",
    steps.Reduce: "add the partial sums, store C",
    steps.SendRows: "send the tile's rows of {operand}, then write their flag",
    steps.WaitForRows: "wait for the flag of the tile's rows of {operand}",
    steps.AddRows: "add the rows of {operand} that have come to panel {panel}",
    steps.TellStored: "count the tile's elements, which are sent to another GPU",
    steps.Sync: "bar.sync {barrier}",
    steps.SyncArrive: "bar.arrive {barrier}",
    steps.InitBarriers: "mbarrier.init",
    steps.ClusterSync: "barrier.cluster.arrive, wait",
    steps.GridWait: "griddepcontrol.wait",
    steps.GridLaunch: "griddepcontrol.launch_dependents",
    steps.Registers: "setmaxnreg {count}",
}
ASYNCHRONOUS: dict[type[Step], str] = {
    StorePanel: "TMA store buffer {buffer} → panel {panel} of {result}, commit_group",
}
CONDITIONS = {
    "later tiles": "unless it is the block's first tile",
    "not the last tile": "if the block has another tile",
    "reloaded": "if a later k-tile takes its stage",
    "exists": "if the block has this k-tile",
    "in the tile": "if the tile has this k-tile",
}
OF_PANELS = {"panel": "p", "buffer": "b", "pending": "n"}  # what differs from panel to panel
INDENT = 4


class Line(NamedTuple):
    """A line of the listing; notes stand to the right of its text."""

    depth: int
    text: str
    notes: str = ""


def text(step: Step, k: object, variables: Mapping[str, object] | None = None) -> str:
    """What a step does, in the words of PTX.

    `k` is its k-tile, and `variables` are names in place of some fields.

    >>> text(Wait("full"), "k - 1"), text(steps.MultiplyWait(1), "k")
    ('mbarrier wait full[k - 1]', 'wgmma.wait_group 1')
    """
    asynchronous = getattr(step, "asynchronous", False)
    form = (ASYNCHRONOUS if asynchronous else TEXTS)[type(step)]
    values = {**vars(step), "k": k, **(variables or {})}
    panel = values.get("panel")
    return form.format_map({**values, "place": k if panel is None else panel})


def listing(pipeline: Pipeline) -> str:
    """The barriers of a pipeline, and the program of each agent.

    >>> from cutedsl_gemm.kernels.sm90.rungs import split
    >>> print(listing(split().pipeline))  # doctest: +ELLIPSIS
    7 stages. The block counts its k-tiles over all its tiles: k-tile k is in stage k % 7.
    full[k], empty[k]: the mbarriers of that stage, in their phase k // 7.
    <BLANKLINE>
    full      1 arrival and the expected bytes
    empty     8 arrivals
    block     named barrier 0, 384 threads
    ...
    <BLANKLINE>
    consumer 0 (4 warps)
        bar.sync block
        griddepcontrol.wait
        setmaxnreg 232
        for the block's tile, if it has k-tiles
            mbarrier wait full[first]
            wgmma [first], commit_group
            mbarrier test full[first + 1]      if the tile has this k-tile, may save the wait
            for k = first + 1 … last k-tile of the tile
                mbarrier wait full[k]
                wgmma [k], commit_group
                mbarrier test full[k + 1]      if the tile has this k-tile, may save the wait
                wgmma.wait_group 1
                mbarrier arrive empty[k - 1]   each warp
            wgmma.wait_group 0
        store the accumulator → workspace
        griddepcontrol.launch_dependents
    <BLANKLINE>
    consumer 1 (4 warps): as consumer 0
    <BLANKLINE>
    reduction (1 warp, a second kernel)
        griddepcontrol.wait
        add the partial sums, store C
    """
    sections = [_preamble(pipeline)]
    listed: list[tuple[Agent, list[Line]]] = []
    for agent in pipeline.agents:
        lines = [*_lines(agent.program, pipeline, 1, "first")]
        sections.append([*_section(agent, lines, listed)])
        listed.append((agent, lines))
    if pipeline.blocks > 1:
        sections.append([*_cluster(pipeline)])
    return "\n\n".join("\n".join(section) for section in sections)


def _preamble(pipeline: Pipeline) -> list[str]:
    stages = pipeline.stages
    names = ", ".join(f"{each.name}[k]" for each in pipeline.mbarriers if not each.panels)
    of_panels = ", ".join(f"{each.name}[p]" for each in pipeline.mbarriers if each.panels)
    barriers = {
        each.name: _count(each.arrivals, "arrival")
        + (" and the expected bytes" if _has_bytes(pipeline, each.name) else "")
        for each in pipeline.mbarriers
    }
    barriers |= {
        each.name: f"named barrier {each.number}, {each.threads} threads" for each in pipeline.named
    }
    return [
        f"{_count(stages, 'stage')}. The block counts its k-tiles over all its tiles: "
        f"k-tile k is in stage k % {stages}.",
        f"{names}: the mbarriers of that stage, in their phase k // {stages}.",
        *([f"{of_panels}: those of panel p, a phase for each tile."] if of_panels else []),
        "",
        *table([(name, what) for name, what in barriers.items()]),
    ]


def _has_bytes(pipeline: Pipeline, barrier: str) -> bool:
    every = chain.from_iterable(walk(agent.program) for agent in pipeline.agents)
    return any(isinstance(step, steps.Expect) and step.barrier == barrier for step in every)


def _section(
    agent: Agent, lines: list[Line], listed: list[tuple[Agent, list[Line]]]
) -> Iterator[str]:
    """The lines of an agent, or those that differ from an agent with a program of this form."""
    second = ", a second kernel" if agent.second_kernel else ""
    who = "other GPUs" if agent.other_gpu else f"{_count(agent.warps, 'warp')}{second}"
    title = f"{agent.name} ({who})"
    for other, before in listed:
        if [line.depth for line in before] == [line.depth for line in lines]:
            pairs = zip(lines, before, strict=True)
            different = [line for line, its in pairs if line != its]
            if len(different) * 2 < len(lines):
                yield f"{title}: as {other.name}{', except' if different else ''}"
                yield from _aligned([line._replace(depth=1) for line in different])
                return
    yield title
    yield from _aligned(lines)


def _lines(program: Program, pipeline: Pipeline, depth: int, k: str) -> Iterator[Line]:
    """The lines of a program; `k` is what a step outside its loops calls its k-tile."""
    place = 0
    while place < len(program):
        each = program[place]
        if isinstance(each, Loop) and each.over == "last k_tile":
            yield from _lines(each.body, pipeline, depth, "last")
            place += 1
        elif isinstance(each, Loop):
            yield Line(depth, _loop(each, pipeline))
            inner = k if each.over == "tiles" else "k"
            yield from _lines(each.body, pipeline, depth + 1, inner)
            place += 1
        elif panels := _panels(program[place:]):
            yield from _folded(panels, pipeline, depth)
            place += sum(map(len, panels))
        else:
            yield _line(each, pipeline, depth, k)
            place += 1


def _line(
    step: Step,
    pipeline: Pipeline,
    depth: int,
    k: str,
    variables: Mapping[str, object] | None = None,
) -> Line:
    flipped = isinstance(step, Wait) and step.flipped
    lag = step.lag + pipeline.stages * flipped  # the k-tile whose phase is awaited
    further = step.panels - 1 if isinstance(step, steps.AddRows) else 0
    k_tile = f"{k} {'-' if lag > 0 else '+'} {abs(lag)}" if lag else k
    notes = (
        "first warp" if step.leader else "",
        CONDITIONS.get(step.when, ""),
        f"passes at once if {k} < {lag}" if flipped else "",
        "may save the wait" if isinstance(step, steps.Peek) else "",
        "each warp" if isinstance(step, Arrive) and not step.leader else "",
        f"and to the next {further}" if further else "",
        "see the table" if isinstance(step, Arrive | Load) and _leaves_block(step) else "",
    )
    return Line(depth, text(step, k_tile, variables), ", ".join(filter(None, notes)))


def _loop(loop: Loop, pipeline: Pipeline) -> str:
    if loop.over == "tiles" and not pipeline.persistent:
        return "for the block's tile, if it has k-tiles"
    tiles = ", ".join(str(loop.first + n * loop.step) for n in range(3))
    return {
        "tiles": f"for each tile {tiles}, … of the block",
        "k_tiles": "for k = first … last k-tile of the tile",
        "further k_tiles": "for k = first + 1 … last k-tile of the tile",
        "first k_tiles": f"for k = first … first + {loop.step - 1}, at most to the last",
    }[loop.over]


# Panels: the same steps, over and over


def _panels(program: Program) -> list[tuple[Step, ...]]:
    """The first steps of a program, as groups that differ only in panel, buffer and pending."""
    flat = [*_until_loop(program)]
    for period in range(1, len(flat) // 2 + 1):
        groups = [tuple(flat[at : at + period]) for at in range(0, len(flat), period)]
        form = [_form(step) for step in groups[0]]
        same = 0
        while same < len(groups) and [_form(step) for step in groups[same]] == form:
            same += 1
        if None in map(_numbers, groups[:same]):
            continue
        if same > 1 and any(hasattr(step, "panel") for step in groups[0]):
            return groups[:same]
    return []


def _until_loop(program: Program) -> Iterator[Step]:
    for each in program:
        if isinstance(each, Loop):
            return
        yield each


def _form(step: Step) -> tuple[object, ...]:
    """A step, whatever its panel."""
    own = (getattr(step, each.name) for each in fields(step) if each.name not in OF_PANELS)
    return type(step), *own


def _numbers(group: tuple[Step, ...]) -> dict[str, int] | None:
    """The panel, buffer and pending of a group; None if two of its steps have other ones."""
    pairs = {
        (name, number)
        for step in group
        for name in OF_PANELS
        if (number := getattr(step, name, None)) is not None
    }
    return dict(pairs) if len(dict(pairs)) == len(pairs) else None


def _folded(panels: list[tuple[Step, ...]], pipeline: Pipeline, depth: int) -> Iterator[Line]:
    """A loop over panels, with the numbers that differ in its head."""
    numbers = [found for group in panels if (found := _numbers(group)) is not None]
    names = {
        name: short
        for name, short in OF_PANELS.items()
        if len({each.get(name) for each in numbers}) > 1
    }
    heads = [", ".join(str(each[name]) for name in names) for each in numbers]
    if len(names) > 1:
        heads = [f"({head})" for head in heads]
    yield Line(depth, f"for {', '.join(names.values())} = {', '.join(heads)}")
    for step in panels[0]:
        yield _line(step, pipeline, depth + 1, "last", names)


# Clusters


def _leaves_block(step: Arrive | Load) -> bool:
    return any(others != (rank,) for rank, others in enumerate(step.blocks))


def _cluster(pipeline: Pipeline) -> Iterator[str]:
    """What each block of a cluster loads, for whom, and which blocks it tells of a free stage."""
    every = [*chain.from_iterable(walk(agent.program) for agent in pipeline.agents)]
    ranks = range(pipeline.blocks)
    columns: dict[str, list[str]] = {"block": [*map(str, ranks)]}
    for operand in dict.fromkeys(step.operand for step in every if isinstance(step, Load)):
        loads = [step for step in every if isinstance(step, Load) and step.operand == operand]
        columns[f"loads {operand}"] = [_loaded(loads, rank) for rank in ranks]
    for step in every:
        if isinstance(step, Arrive):
            columns[f"arrives on {step.barrier}"] = [
                f"of {_numbered('block', blocks)}" for blocks in step.blocks
            ]
    yield from table([tuple(columns), *zip(*columns.values(), strict=True)])


def _loaded(loads: Sequence[Load], rank: int) -> str:
    """The slices of an operand that a block loads, and for whom."""
    own = [step for step in loads if step.blocks[rank]]
    parts = _numbered("slice", [step.slices[rank] for step in own])
    return f"{parts} → {_numbered('block', own[0].blocks[rank])}"


def _numbered(noun: str, numbers: Sequence[int]) -> str:
    return f"{noun}{'s' if len(numbers) > 1 else ''} {', '.join(map(str, sorted(numbers)))}"


# Text


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _aligned(lines: list[Line]) -> Iterator[str]:
    """Indented lines, with their notes in one column."""
    texts = [" " * INDENT * line.depth + line.text for line in lines]
    noted = (each for each, line in zip(texts, lines, strict=True) if line.notes)
    width = max(map(len, noted), default=0)
    for each, line in zip(texts, lines, strict=True):
        yield f"{each:{width}}   {line.notes}".rstrip()
