"""Faults of a pipeline: every step left out, or changed a little."""

from collections.abc import Iterator
from dataclasses import replace

from cutedsl_gemm.kernels.pipeline.steps import (
    Agent,
    Arrive,
    Expect,
    Load,
    LoadPanel,
    Loop,
    Peek,
    Pipeline,
    Program,
    ReadPanel,
    Step,
    StorePanel,
    Wait,
    WritePanel,
)


def faults(pipeline: Pipeline) -> Iterator[tuple[str, Pipeline]]:
    """(what is wrong, the wrong pipeline)."""
    for agent in pipeline.agents:
        for path, step in _sites(agent.program):
            for what, changed in _changes(step, pipeline):
                program = _replaced(agent.program, path, changed)
                yield f"{agent.name}: {what} {step}", _with(pipeline, agent, program)
    for barrier in pipeline.mbarriers:
        for more in (-1, 1):
            changed = replace(barrier, arrivals=barrier.arrivals + more)
            others = (changed if each == barrier else each for each in pipeline.mbarriers)
            yield f"{changed}", replace(pipeline, mbarriers=tuple(others))


def _changes(step: Step, pipeline: Pipeline) -> Iterator[tuple[str, tuple[Step, ...]]]:
    yield "no", ()
    if step.when != "always":
        yield "always", (replace(step, when="always"),)
    if isinstance(step, Wait):
        yield "other parity of", (replace(step, flipped=not step.flipped),)
    if hasattr(step, "pending"):
        yield "one more pending in", (replace(step, pending=step.pending + 1),)
    of_k_tile = getattr(step, "panel", None) is None
    if isinstance(step, Arrive | Load | Expect) and of_k_tile:
        yield "one k-tile early", (replace(step, lag=step.lag - 1),)
    if isinstance(step, Arrive):
        yield "one k-tile late", (replace(step, lag=step.lag + 1),)
    if isinstance(step, Peek):
        yield "one ring early", (replace(step, lag=step.lag - pipeline.stages),)
    if isinstance(step, WritePanel | StorePanel | ReadPanel | LoadPanel):
        yield "another buffer in", (replace(step, buffer=step.buffer + 1),)
    if isinstance(step, Wait | Expect | LoadPanel) and not of_k_tile:
        another = (step.panel + 1) % pipeline.mbarrier(step.barrier).panels
        if another != step.panel:
            yield "another panel in", (replace(step, panel=another),)


def _sites(program: Program, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Step]]:
    """(where, step) of each step of a program."""
    for place, each in enumerate(program):
        if isinstance(each, Loop):
            yield from _sites(each.body, (*path, place))
        else:
            yield (*path, place), each


def _replaced(program: Program, path: tuple[int, ...], changed: tuple[Step, ...]) -> Program:
    """The program with other steps in one place."""
    place, *rest = path
    if rest:
        loop = program[place]
        changed = (replace(loop, body=_replaced(loop.body, tuple(rest), changed)),)
    return *program[:place], *changed, *program[place + 1 :]


def _with(pipeline: Pipeline, agent: Agent, program: Program) -> Pipeline:
    changed = replace(agent, program=program)
    return replace(
        pipeline, agents=tuple(changed if each is agent else each for each in pipeline.agents)
    )
