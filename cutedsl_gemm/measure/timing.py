"""Launches timed on the GPU: in a row, or replayed from a CUDA graph.

A graph's launches need no host: of a kernel that takes less than 30 µs, events around launches in a
row may time the host instead (docs/performance).
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch

Launch: TypeAlias = Callable[[], object]

REST, WARM_UP, TIMED = 0.5, 3, 10  # seconds, launches, launches


def timed(launch: Launch, count: int) -> float:
    """Seconds a launch, of `count` in a row."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(count):
        launch()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / count / 1e3


def burst(launch: Launch, warm_up: int = WARM_UP, count: int = TIMED) -> float:
    """Seconds a launch on a card that has rested, after a few to warm up."""
    time.sleep(REST)
    timed(launch, warm_up)
    return timed(launch, count)


def captured(launch: Launch, count: int) -> Launch:
    """A launch of a CUDA graph that launches `count` times. Launch once before, to load."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(count):
            launch()
    return graph.replay


def race(
    launches: Sequence[Launch], tell: Callable[[float], None], rounds: int = 5, count: int = 10
) -> list[float]:
    """Seconds that each takes on the GPU alone: in turn, `count` at a time, the rounds' median.

    `tell` is told the share that is done.
    """
    graphs = [captured(launch, count) for launch in launches]
    times: list[list[float]] = [[] for _ in graphs]
    for number in range(rounds):
        for found, graph in zip(times, graphs, strict=True):
            graph()  # the clocks, and what lies in L2, are then its own
            found.append(timed(graph, 1) / count)
        tell((number + 1) / rounds)
    return [statistics.median(found) for found in times]
