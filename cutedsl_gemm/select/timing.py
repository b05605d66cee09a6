"""Launches timed by CUDA events: in a row, or replayed from a CUDA graph.

A graph's launches need no host. Kernels of less than 30 µs need a graph: events around launches in
a row may measure the host instead (docs/performance).
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch

Launch: TypeAlias = Callable[[], object]

REST, WARM_UP, TIMED = 0.5, 3, 10  # seconds, launches, launches
SECONDS, LAUNCHES = 0.5e-3, 50  # of a graph: the time, and the most launches
HOLD = 2_000_000  # cycles, 1.1 ms: a slow host took 0.3 ms to enqueue a graph of 20 launches
L2_BYTES = 50_000_000  # of an H100; an H200's has 60 MB


def timed(launch: Launch, count: int) -> float:
    """Seconds per launch, of `count` in a row."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(count):
        launch()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / count / 1e3


def burst(launch: Launch, warm_up: int = WARM_UP, count: int = TIMED) -> float:
    """Seconds per launch on a rested card, after `warm_up` launches."""
    time.sleep(REST)
    timed(launch, warm_up)
    return timed(launch, count)


def captured(launch: Launch, count: int) -> Launch:
    """The replay of a CUDA graph of `count` launches. Launch once before, to load the kernel."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(count):
            launch()
    return graph.replay


def launches_of_a_graph(seconds: float, whole: float = SECONDS) -> int:
    """The launches that fill a graph of `whole` seconds, if each takes `seconds`.

    >>> launches_of_a_graph(1e-6), launches_of_a_graph(100e-6), launches_of_a_graph(0.02)
    (50, 5, 1)
    """
    return max(1, min(LAUNCHES, math.ceil(whole / seconds)))


def race(
    launches: Sequence[Launch],
    report: Callable[[float], None] = lambda share: None,
    rounds: int = 5,
    count: int = 10,
) -> list[float]:
    """Seconds per launch of each, on the GPU alone: graphs of `count` launches, `in_turn`."""
    return in_turn([captured(launch, count) for launch in launches], report, rounds, count)


def in_turn(
    graphs: Sequence[Launch],
    report: Callable[[float], None] = lambda share: None,
    rounds: int = 5,
    count: int = 10,
) -> list[float]:
    """Seconds per launch of each of these graphs of `count`, replayed in turn: the median.

    `report` receives the share of the rounds that are done, 0 to 1. Before each turn, other data
    are read into L2, from 100 MB of the GPU's memory: loads with evict-first do not displace what
    another graph has read of the same operands, and would find it there. The data are read, not
    written: after a write, cold decoding takes 3 % longer (docs/performance/notebook.md).
    """
    others = torch.ones(2 * L2_BYTES // 4, dtype=torch.int32, device="cuda")
    times: list[list[float]] = [[] for _ in graphs]
    for number in range(rounds):
        for found, graph in zip(times, graphs, strict=True):
            others.sum()
            graph()  # warms up: the clocks and the contents of L2 are then its own
            torch.cuda._sleep(HOLD)  # else a slow host starts the events' clock before the graph
            found.append(timed(graph, 1) / count)
        report((number + 1) / rounds)
    return [statistics.median(found) for found in times]
