"""The network of select/correction.py, learned from measured runs.

It learns products without an epilogue first. Then it learns the weights of WORK alone from those
with one, and those of BATCH alone from batches. So the choice for a product does not depend on
epilogues and batches, which few of the runs have.

The loss has three parts: the errors at plans near the best of each shape, the time that the choice
loses, and the mean error of the plans chosen: a choice prefers those that it takes for too fast. No
other error counts that all plans of a shape share, since it changes no choice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import NamedTuple

import candidates as measured  # bench/candidates.py
import numpy as np
import torch
from runs import Array, Runs, formulas, log_batch, other_inputs
from torch import Tensor

from cutedsl_gemm.measure.decode import ROWS, WEIGHTS
from cutedsl_gemm.select.correction import BATCH, UNITS, WORK, Network, network, times_facts
from cutedsl_gemm.select.costs import Constants

CLOSE = 0.15  # a plan that takes 1 + CLOSE times the best one's time weighs 1/e
SOFT = 0.05  # the choice is a softmax of log times over this
ERRORS, LOST, BIAS = 20, 3, 0.3  # what the parts of the loss weigh
RAREST = 0.1  # a standard deviation, at least, of an input that is hardly ever there
JITTER = 0.02  # standard deviations by which inputs move, all plans of a shape alike
# The network sees some shapes more often than others: those of few rows or columns and of multiples
# of ROUND, which are rare in the pools but not in models, and those that bench names.
FEW, ROUND, RARE, NAMED = 128, 128, 3, 8
SEED = 3  # for products: of 0 to 3, the one whose choices lose least
SHAPES, PLANS = 128, 60  # of which the network learns at a time: most plans of each shape


class Dataset(NamedTuple):
    """Runs as tensors (shapes, plans), of up to PLANS of each shape; empty places weigh nothing."""

    inputs: Tensor  # (shapes, plans, inputs)
    expected: Tensor  # log seconds, by the formulas
    seconds: Tensor  # log seconds, as measured
    weight: Tensor  # of an error
    costs: Tensor  # of a choice
    often: Tensor  # (shapes,): how often the network sees each


def learn(runs: Runs, c: Constants, steps: int) -> Network:
    """The network that makes the least loss at products alone; WORK and BATCH have no weight."""
    runs = runs.of((~runs.with_epilogue & ~runs.of_batches).nonzero()[0])
    found = formulas(runs, c)
    facts, rows, _ = other_inputs(runs)
    inputs = np.vstack([np.log(found["inputs"], dtype=np.float32), facts, rows])
    mean, scale = moments(inputs)
    data = dataset(runs, found, (inputs - mean) / scale)
    torch.manual_seed(SEED)
    first, second = torch.nn.Linear(len(inputs), UNITS), torch.nn.Linear(UNITS, UNITS)
    last = torch.nn.Linear(UNITS, 1, bias=False)
    layers = torch.nn.Sequential(first, torch.nn.ReLU(), second, torch.nn.ReLU(), last)
    with torch.no_grad():
        last.weight *= 0.1

    def log_factor(some: Tensor) -> Tensor:
        jitter = JITTER * torch.randn(len(some), 1, len(inputs))
        return layers(data.inputs[some] + jitter)[..., 0]

    descend(data, log_factor, [*layers.parameters()], steps, rate=0.005, decay=0.1)
    weights = first.weight.detach().numpy().T / scale
    bias = first.bias.detach().numpy() - mean.T @ weights
    hidden = np.vstack([each.detach().numpy() for each in (second.weight.T, second.bias)])
    weights = np.vstack([weights, np.zeros((len(WORK) + len(BATCH), UNITS)), bias])
    return network(weights, hidden, np.append(last.weight[0].detach(), 0))


def learn_epilogues(runs: Runs, c: Constants, plain: Network, steps: int) -> Network:
    """`plain` with the weights of WORK that make the least loss at products with an epilogue."""
    runs = runs.of(runs.with_epilogue.nonzero()[0])
    _, _, work = other_inputs(runs)
    return plain._replace(work=learn_added(runs, c, plain, work, steps))


def learn_batches(runs: Runs, c: Constants, plain: Network, steps: int) -> Network:
    """`plain` with the weights of BATCH that make the least loss at batches."""
    runs = runs.of(runs.of_batches.nonzero()[0])
    return plain._replace(batch=learn_added(runs, c, plain, log_batch(runs), steps))


def learn_added(runs: Runs, c: Constants, plain: Network, work: Array, steps: int) -> Array:
    """The weights of `work` (inputs, runs), alone and times each of FACTS, that make least loss.

    A product alone has 0 of it. All other weights are those of `plain`.
    """
    found = formulas(runs, c)
    facts, rows, of_epilogue = other_inputs(runs)
    mean, scale = moments(facts)
    size = moments(work)[1]  # not its mean: work is 0 for a product alone
    inputs = times_facts(work / size, (facts - mean) / scale)
    count = len(inputs)
    logs = np.log(found["inputs"], dtype=np.float32)
    sums = logs.T @ plain.terms + plain.others(facts, rows, 0 * of_epilogue)  # (runs, units)
    data = dataset(runs, found, np.vstack([sums.T, inputs]))
    hidden, output = torch.from_numpy(plain.hidden), torch.from_numpy(plain.output)
    added = torch.zeros(count, UNITS, requires_grad=True)

    def log_factor(some: Tensor) -> Tensor:
        first, one, inputs = data.inputs[some].split([UNITS, 1, count], dim=-1)
        units = torch.cat([first + inputs @ added, one], dim=-1).relu()
        return (units @ hidden).relu() @ output

    torch.manual_seed(SEED)
    descend(data, log_factor, [added], steps, rate=0.003, decay=3)
    weights = added.detach().numpy().reshape(len(work), -1, UNITS)
    weights /= size[:, None] * np.vstack([[[1]], scale])
    weights[:, 0] -= (mean * weights[:, 1:]).sum(1)
    # The last unit stays 1.
    padded: Array = np.pad(weights.reshape(count, UNITS), ((0, 0), (0, 1)))
    return padded


def moments(inputs: Array) -> tuple[Array, Array]:
    """Mean and standard deviation, RAREST at least, of inputs (inputs, runs): (inputs, 1) each."""
    return inputs.mean(1, keepdims=True), np.maximum(inputs.std(1, keepdims=True), RAREST)


def descend(
    data: Dataset,
    log_factor: Callable[[Tensor], Tensor],
    parameters: Sequence[Tensor],
    steps: int,
    rate: float,
    decay: float,
) -> None:
    """Changes the parameters so that the loss falls, by Adam, of SHAPES at a time.

    `log_factor` gives the logarithm of the network's factor at some shapes.
    """
    adam = torch.optim.AdamW(parameters, weight_decay=decay)
    cycle = torch.optim.lr_scheduler.OneCycleLR(adam, rate, total_steps=steps, pct_start=0.1)
    for _ in range(steps):
        some = torch.multinomial(data.often, SHAPES, replacement=True)
        total = loss(data, some, data.expected[some] + log_factor(some))
        adam.zero_grad()
        total.backward()
        adam.step()
        cycle.step()


def loss(data: Dataset, some: Tensor, seconds: Tensor) -> Tensor:
    """The loss of expected log seconds at some shapes."""
    near, error = data.weight[some], seconds - data.seconds[some]
    common = (near * error).sum(1, keepdim=True) / near.sum(1, keepdim=True)
    within = torch.nn.functional.huber_loss(
        error, common.expand_as(error), reduction="none", delta=0.1
    )
    chosen = torch.softmax(-seconds / SOFT, 1)
    lost, bias = ((chosen * each).sum(1).mean() for each in (data.costs[some], error))
    errors = (near * within).sum() / near.sum()
    return ERRORS * errors + LOST * lost + BIAS * bias.abs()


def dataset(runs: Runs, found: dict[str, Array], inputs: Array) -> Dataset:
    """Runs, of which the formulas expect `found`.

    `inputs` are (inputs, runs).
    """
    expected = np.log(found["seconds"])
    legal = relevant(runs, expected, found["serves"])
    shape = runs.shape[legal]
    counts = np.bincount(shape, minlength=len(runs.torch))
    place = places(shape, len(counts))

    def dense(values: Array, empty: float = 0) -> Tensor:
        """(shapes, plans, …), of an entry for each run."""
        filled = np.full((len(counts), counts.max(), *values.shape[1:]), empty, np.float32)
        filled[shape, place] = values[legal]
        return torch.from_numpy(filled)

    return Dataset(
        dense(inputs.T),
        dense(expected, 99),
        dense(np.log(runs.seconds), 99),
        dense(np.exp((1 - runs.seconds / runs.best[runs.shape]) / CLOSE)),
        dense(cost(runs)),
        torch.from_numpy(np.where(counts < 2, 0, frequencies(runs))).float(),
    )


def cost(runs: Runs) -> Array:
    """What the choice of each run would cost: time lost to the best plan, and to torch.mm."""
    beyond_best = np.log(runs.seconds / runs.best[runs.shape])
    beyond_torch = np.log(runs.seconds / runs.torch[runs.shape])
    return np.minimum(beyond_best, 1) + 2 * np.clip(beyond_torch, 0, 0.7)


def relevant(runs: Runs, physical: Array, legal: Array) -> Array:
    """Whether a run is among the PLANS of its shape that are fast, or are expected to be."""
    least = np.full(len(runs.torch), np.inf)
    np.minimum.at(least, runs.shape, np.where(legal, physical, np.inf))
    slow = 1.5 * np.log(runs.seconds / runs.best[runs.shape])
    order = np.lexsort((np.minimum(slow, physical - least[runs.shape]), ~legal, runs.shape))
    rank = np.empty(len(order), int)
    rank[order] = places(runs.shape[order], len(runs.torch))
    return legal & (rank < PLANS)


def places(shape: Array, count: int) -> Array:
    """The place of each run among those of its shape; the shapes are sorted."""
    counts = np.bincount(shape, minlength=count)
    return np.arange(len(shape)) - np.repeat(np.cumsum(counts) - counts, counts)


def frequencies(runs: Runs) -> Array:
    """How often the network sees each shape, relative to the others."""
    extents = np.zeros((3, len(runs.torch)), int)
    extents[:, runs.shape] = runs.key[:3]
    rare = (extents[:2].min(0) <= FEW) | (extents % ROUND == 0).all(0)
    named = {*measured.NAMED, *((m, *weight) for m, weight in product(ROWS, WEIGHTS))}
    known = np.array([mnk in named for mnk in zip(*extents.tolist(), strict=True)])
    return np.select([known, rare], [NAMED, RARE], 1)
