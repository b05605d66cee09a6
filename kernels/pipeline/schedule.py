"""When each moment comes, if every step has a duration: a deterministic run of a pipeline."""

from __future__ import annotations

from collections import defaultdict
from heapq import heapify, heappop, heappush

from cutedsl_gemm.kernels.pipeline import steps
from cutedsl_gemm.kernels.pipeline.actions import Action
from cutedsl_gemm.kernels.pipeline.order import Order
from cutedsl_gemm.kernels.pipeline.steps import Step

# Units of time that warps take for a step; none for the others. Only their ratios matter.
TAKEN: dict[type[Step], int] = {
    steps.Load: 1,
    steps.LoadPanel: 1,
    steps.WritePanel: 4,
    steps.StoreResults: 4,
    steps.StoreAccumulator: 8,
    steps.Reduce: 8,
}
# Units from the moment at which an asynchronous step is taken until it ends. The products of a
# block follow one another on its tensor core.
PENDING: dict[type[Step], int] = {
    steps.Load: 6,
    steps.Multiply: 4,
    steps.LoadPanel: 6,
    steps.StorePanel: 4,
}


def times(order: Order) -> dict[int, int]:
    """The time of every moment but those that never come, in the order in which they come.

    Each comes as early as the moments before it allow.
    """
    missing = [len(each) for each in order.before]
    found: dict[int, int] = {}
    cores = _TensorCores()
    able = [(0, moment) for moment, count in enumerate(missing) if not count]
    heapify(able)
    while able:
        time, moment = heappop(able)
        found[moment] = time
        for each in order.after[moment]:
            missing[each] -= 1
            if not missing[each]:
                heappush(able, (_time(order, each, found, cores), each))
    return found


class _TensorCores:
    """One for each block. The warps of an agent multiply a k-tile together."""

    def __init__(self) -> None:
        self.free: dict[int, int] = defaultdict(int)  # a block → when its tensor core is free
        self.ends: dict[tuple[int, str, int], int] = {}  # of the products of a k-tile

    def end(self, action: Action, ready: int) -> int:
        """When the products end that are ready at this time."""
        block, agent = action.warps.block, action.warps.agent
        key = block, agent, action.k_tile
        if key not in self.ends:
            self.free[block] = max(ready, self.free[block]) + PENDING[steps.Multiply]
            self.ends[key] = self.free[block]
        return max(ready, self.ends[key])


def _time(order: Order, moment: int, found: dict[int, int], cores: _TensorCores) -> int:
    """When a moment comes, of which all moments before it have come."""
    ready = max(found[each] for each in order.before[moment])
    label = order.labels[moment]
    if not isinstance(label, Action):
        return ready
    kind = type(label.step)
    if moment not in order.began:
        return ready + TAKEN.get(kind, 0)
    if kind is steps.Multiply:
        return cores.end(label, ready)
    return max(ready, found[order.began[moment]] + PENDING.get(kind, 0))
