"""The pipeline of an sm90 plan: who waits for what, from the mbarriers of a stage to C.

The device code takes its counts, parities, lags and barrier numbers from here, and does the same
steps in the same order (tests/kernels/sm90/test_device_code.py compares its PTX with them).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from cutedsl_gemm.kernels.pipeline import steps
from cutedsl_gemm.kernels.pipeline.steps import (
    Agent,
    Condition,
    Loop,
    Mbarrier,
    NamedBarrier,
    Pipeline,
    Program,
)
from cutedsl_gemm.kernels.sm90.panel_plan import PanelPlan
from cutedsl_gemm.kernels.sm90.plan import Sm90Plan
from cutedsl_gemm.kernels.sm90.split_k_plan import SplitKPlan
from layouts.hardware.facts import WARP, WARPGROUP

WARPS = WARPGROUP // WARP  # of a warpgroup
# A producer waits until its stage has been read; the first round of stages is empty from the start.
WAIT_EMPTY = steps.Wait("empty", flipped=True, leader=True)
WAIT_FULL = steps.Wait("full")
# A consumer tests the next stage while the tensor core multiplies this one.
PEEK_FULL = steps.Peek("full", lag=-1, when="in the tile")
# k-tiles whose wgmmas a consumer has in flight: it releases the stage of the one before them. The
# mainloop remembers one stage.
IN_FLIGHT = 1


def panel_barrier(consumer: Any) -> tuple[Any, int]:
    """The named barrier around a consumer's panels: its number, and its threads.

    Number 0 is __syncthreads.
    """
    return 1 + consumer, WARPGROUP


def turn_barrier(plan: Sm90Plan, consumer: Any) -> tuple[Any, int]:
    """The named barrier of a consumer's turn: its number, and its threads.

    The threads are those of this consumer, and of the one whose turn comes before.
    """
    return 1 + plan.consumers + consumer, 2 * WARPGROUP


def loaded_barrier(consumer: int) -> str:
    """The mbarriers of a consumer's panels, for the operands that TMA loads into them."""
    return f"loaded {consumer}"


def mbarriers(plan: Sm90Plan) -> Iterator[Mbarrier]:
    """The mbarriers of a plan, in the order of their places in shared memory."""
    yield Mbarrier("full", 1)
    yield Mbarrier("empty", plan.stage_readers)
    for consumer in range(plan.consumers if plan.loaded_panels else 0):
        yield Mbarrier(loaded_barrier(consumer), 1, plan.loaded_panels // plan.consumers)


def named_barriers(plan: Sm90Plan) -> Iterator[NamedBarrier]:
    """The named barriers of a plan."""
    yield NamedBarrier("block", 0, plan.threads)
    for consumer in range(plan.consumers):
        yield NamedBarrier(f"panel {consumer}", *panel_barrier(consumer))
        if plan.schedule == "pingpong":
            yield NamedBarrier(f"turn {consumer}", *turn_barrier(plan, consumer))


@cache
def pipeline(plan: PanelPlan | SplitKPlan) -> Pipeline:
    """The protocol of the plan's kernel."""
    if isinstance(plan, PanelPlan) and plan.schedule == "single":
        agents = _one_role(plan)
    else:
        agents = _roles(plan)
    return Pipeline(
        stages=plan.stages,
        blocks=plan.cluster_size,
        persistent=plan.tile_scheduler.persistent,
        agents=tuple(agents),
        mbarriers=tuple(mbarriers(plan)),
        named=tuple(named_barriers(plan)),
    )


def _one_role(plan: PanelPlan) -> Iterator[Agent]:
    yield Agent("warpgroup", WARPS, (*prologue(plan), *_single(plan)))


def _roles(plan: PanelPlan | SplitKPlan) -> Iterator[Agent]:
    yield Agent("producer", WARPS, (*prologue(plan), *_produce(plan)))
    for consumer in range(plan.consumers):
        program = *prologue(plan, initialises=False), *_consume(plan, consumer)
        yield Agent(f"consumer {consumer}", WARPS, program)
    if plan.gathered or plan.scattered:
        send = Loop("tiles", (steps.SendRows("A" if plan.gathered else "C"),))
        yield Agent("senders", 1, (send,), other_gpu=True)
    if plan.splits > 1:
        yield Agent("reduction", 1, (steps.GridWait(), steps.Reduce()), second_kernel=True)


def prologue(plan: Sm90Plan, initialises: bool = True) -> Program:
    """The first warp initialises the mbarriers; all wait for that, and for the previous launch."""
    init = (steps.InitBarriers(leader=True),) if initialises else ()
    together = steps.ClusterSync() if plan.cluster_size > 1 else steps.Sync("block")
    launch = () if plan.splits > 1 else (steps.GridLaunch(),)
    return *init, together, steps.GridWait(), *launch


def _load(plan: Sm90Plan, lag: int = 0, when: Condition = "always") -> Program:
    """Load a k-tile: A and B, this block's slices of each, into every block that shares it."""
    ranks = range(plan.cluster_size)
    loads = []
    for operand in (plan.a, plan.b):
        of_ranks, masks = zip(*(plan.multicast(operand, rank) for rank in ranks), strict=True)
        slice_bytes = operand.stage_bytes // operand.slices
        for parts in zip(*of_ranks, strict=True):
            blocks = tuple(
                tuple(r for r in ranks if mask >> r & 1 and part < operand.slices)
                for part, mask in zip(parts, masks, strict=True)
            )
            load = steps.Load(
                operand.name, "full", slice_bytes, parts, blocks, leader=True, lag=lag, when=when
            )
            loads.append(load)
    expect = steps.Expect("full", plan.stage_bytes, leader=True, lag=lag, when=when)
    return expect, *loads


def _produce(plan: Sm90Plan) -> Program:
    body = WAIT_EMPTY, *_load(plan)
    rows = (steps.WaitForRows("A", leader=True),) if plan.gathered else ()
    walk = Loop("tiles", (*rows, Loop("k_tiles", body)))
    return steps.Registers(plan.producer_registers), walk


def _consume(plan: PanelPlan | SplitKPlan, consumer: int) -> Program:
    registers = steps.Registers(plan.consumer_registers)
    if isinstance(plan, SplitKPlan):
        multiply = Loop("tiles", (*_mainloop(plan), steps.MultiplyWait(0)))
        return registers, multiply, steps.StoreAccumulator(), steps.GridLaunch()
    finish = steps.MultiplyWait(0), Loop("last k_tile", (_release(plan),)), *_store(plan, consumer)
    if plan.schedule == "cooperative":
        walk = Loop("tiles", (*_first_panels(plan, consumer), *_mainloop(plan), *finish))
    else:
        turn = steps.Sync(f"turn {consumer}", when="later tiles")
        next_turn = steps.SyncArrive(
            f"turn {(consumer + 1) % plan.consumers}", when="not the last tile"
        )
        tile = *_first_panels(plan, consumer), turn, *_mainloop(plan), next_turn, *finish
        walk = Loop("tiles", tile, consumer, plan.consumers)
    return registers, walk, *_wait_for_stores(plan)


def _mainloop(plan: Sm90Plan) -> Program:
    """One k-tile is always in flight; the stage before it is released."""
    multiply = WAIT_FULL, steps.Multiply(), PEEK_FULL
    behind = steps.MultiplyWait(IN_FLIGHT), _release(plan, IN_FLIGHT)
    return *multiply, Loop("further k_tiles", (*multiply, *behind))


def _release(plan: Sm90Plan, lag: int = 0) -> steps.Arrive:
    """Tell every block that loads into the k-tile's stage; in a cluster, if one still waits."""
    loaders = tuple(tuple(plan.loaders(rank)) for rank in range(plan.cluster_size))
    when: Condition = "always" if plan.cluster_size == 1 else "reloaded"
    return steps.Arrive("empty", loaders, lag=lag, when=when)


def _load_panels(plan: PanelPlan, consumer: int, panels: Iterable[int]) -> tuple[steps.Step, ...]:
    """Load panels of the operands, when TMA has read the results that their buffers held."""
    program: list[steps.Step] = [steps.StoreWait(0, leader=True)]
    barrier, panel_bytes = loaded_barrier(consumer), plan.panel_bytes
    names = [plan.planned_epilogue.operands[i].name for i in plan.staged_operands]
    for panel in panels:
        program.append(steps.Expect(barrier, len(names) * panel_bytes, panel, leader=True))
        for slot, name in enumerate(names):
            buffer = plan.buffer(panel, slot)
            load = steps.LoadPanel(name, barrier, panel_bytes, panel, buffer, slot, leader=True)
            program.append(load)
    return tuple(program)


def _first_panels(plan: PanelPlan, consumer: int) -> Program:
    """Load as many panels of the operands as there are buffers for."""
    if not plan.staged_operands:
        return ()
    return _load_panels(plan, consumer, range(plan.panel_stages))


def _store(plan: PanelPlan, consumer: int) -> Program:
    """Panel after panel, each through its buffers."""
    sync, tma = steps.Sync(f"panel {consumer}"), plan.stored_by_tma
    loaded = range(len(plan.staged_operands))
    program: list[steps.Step] = []
    if plan.scattered:
        program.append(steps.WaitForRows("C", by_tma=False))
    for panel in range(plan.panels):
        if loaded:
            program.append(steps.Wait(loaded_barrier(consumer), panel=panel))
        program += (steps.ReadPanel(panel, plan.buffer(panel, slot), slot) for slot in loaded)
        if plan.scattered and (added := plan.added_panels(panel)):
            program.append(steps.AddRows("C", panel, len(added)))
        if plan.stores_from_registers:
            program.append(steps.StoreResults(panel))
        for slot, staged in enumerate(plan.staged):
            buffer = plan.buffer(panel, slot)
            pending = plan.pending_stores(plan.store_index(panel, slot))
            if not loaded:  # else the loads have waited for the buffers
                if tma:
                    program.append(steps.StoreWait(pending, leader=True))
                program.append(sync)
            program.append(steps.WritePanel(panel, buffer, slot))
            if tma:
                program.append(steps.Fence())
            result = plan.epilogue.result_labels[staged]
            program += sync, steps.StorePanel(panel, buffer, tma, slot, result, leader=tma)
        if loaded and (later := panel + plan.panel_stages) < plan.panels:
            program += _load_panels(plan, consumer, [later])
    if plan.scattered:
        program += steps.StoreWait(0, written=True, leader=True), steps.TellStored(leader=True)
    return tuple(program)


def _wait_for_stores(plan: PanelPlan) -> Program:
    return (steps.StoreWait(0, leader=True),) if plan.stored_by_tma else ()


def _single(plan: PanelPlan) -> Program:
    """Load ahead, then multiply, and load again what has been read."""
    ahead = Loop("first k_tiles", _load(plan), step=plan.stages)
    load = _load(plan, -plan.stages, when="exists")
    body = WAIT_FULL, steps.Multiply(), steps.MultiplyWait(0), steps.Sync("block"), *load
    tile = ahead, *_first_panels(plan, 0), Loop("k_tiles", body), *_store(plan, 0)
    return Loop("tiles", tile), *_wait_for_stores(plan)
