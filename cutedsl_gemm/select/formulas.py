"""The formulas of the model: the times of all candidates for a problem, before the correction.

Blocks compute tiles of C in waves, each multiprocessor one tile at a time:

    time = launch + main loops + last epilogue + reduction

A k-tile takes as long as L2 needs to serve the loads of all multiprocessors, or as long as the
multiprocessor needs: about the longest of three times.

    tensor core    its flops
    shared memory  what TMA writes and wgmma reads there
    latency        from one wgmma to the next

If an operand is not contiguous along K and its tile needs short rows, TMA is the limit: it takes
as long for a row of 32 bytes of shared memory as for one of 128.

L2 serves fewer rows a second if they start off 128-byte lines. Clusters, whose blocks share loads
by multicast, ask for less. Where K is split, a second kernel adds the partial sums.

All candidates are computed at once, as arrays: a call of numpy takes half a microsecond.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cutedsl_gemm.inputs.problem import Problem
from cutedsl_gemm.kernels.epilogue.cost import cost
from cutedsl_gemm.kernels.epilogue.expression import PLAIN
from cutedsl_gemm.kernels.sm90.panels import loadable_operands
from cutedsl_gemm.select.candidate import LEAST_K, MOST_SPLITS
from cutedsl_gemm.select.costs import FITTED, Array, Constants, Table, sides

SHORTEST, MOST = np.array(LEAST_K, np.float32), np.array(MOST_SPLITS, np.float32)


class EpilogueWork(NamedTuple):
    """What an epilogue adds: numbers, or arrays of an entry for each candidate."""

    slots: Any = 0  # issue slots, for each value of an accumulator
    matrices: Any = 0  # that it reads, for each accumulator
    reads: Any = 0  # the square of how many of them threads read, for each accumulator
    bytes: Any = 0
    accumulators: Any = 1


NO_WORK = EpilogueWork()


def work_of(problem: Problem) -> EpilogueWork:
    """What the problem's epilogue adds."""
    epilogue = problem.epilogue
    if epilogue is PLAIN:
        return NO_WORK
    m, _, k = problem.mnk
    a_b_c = 2 * (m * k + problem.columns * k + m * problem.columns)
    matrices = sum(operand.is_matrix for operand in epilogue.operands)
    by_threads = matrices - len(loadable_operands(epilogue, problem.c_alignment))
    count = epilogue.accumulators
    return EpilogueWork(
        cost(epilogue).issue_slots / count,
        matrices / count,
        by_threads**2 / count,
        problem.bytes - a_b_c,
        count,
    )


def _grid(extents: Array, costs: Table, splitting: bool, batch: Any) -> tuple[Array, ...]:
    """Blocks, the k-tiles and the splits of each, and whether the candidate may serve.

    Also which share of the last clusters and k-tiles the problem fills: (3, candidates).
    """
    clusters = extents / costs.whole  # down and across, k-tiles
    counts = np.ceil(clusters)
    used = clusters / counts
    filled = used > costs.least
    serves = filled[0] & filled[1]
    blocks = counts[0] * counts[1] * costs.blocks
    if batch is not None:
        blocks *= batch
    if not splitting:
        return blocks, counts[2], costs.splits, used, serves
    most = np.minimum(extents[2] / SHORTEST, MOST)
    filling = np.floor(np.minimum(costs.at_once / blocks, most)) * costs.fills
    splits = np.maximum(filling, costs.splits)
    blocks *= splits
    serves &= (filling >= costs.least_splits) & (blocks <= costs.most_blocks)
    return blocks, np.ceil(counts[2] / splits), splits, used, serves


def terms(
    m: Any,
    n: Any,
    k: Any,
    costs: Table,
    c: Constants = FITTED,
    work: EpilogueWork = NO_WORK,
    splitting: bool = True,
    batch: Any = None,
) -> dict[str, Array]:
    """The fields of an Estimate before the correction, and its `inputs`: an entry a candidate.

    It has `blocks` in place of `tiles`: no choice needs tiles, and a division takes 0.4 µs.
    M, N and K are those of one problem; or they are arrays, with a problem for each candidate.
    `work` is that of the epilogue. If not `splitting`, no candidate splits K. `batch`, a number or
    an array, is how many such products a batch has; M then stands for the rows of all in the inputs
    of the correction.
    """
    extents = sides(costs, np.array((m, n, k), costs.fill.dtype))  # (3, candidates)
    blocks, k_tiles, splits, used, serves = _grid(extents, costs, splitting, batch)
    waves = np.ceil(blocks / costs.at_once)
    busy = blocks / waves

    asked = np.minimum(costs.tile, extents[:2]) * costs.row
    l2 = (asked[0] + asked[1]) * busy
    epilogue = costs.epilogue
    if work is not NO_WORK:
        epilogue = epilogue + work.slots * costs.slots + work.reads * costs.read
    k_tile = np.maximum(costs.k_tile, l2)
    all_first = (costs.fill + k_tiles * k_tile) * waves
    in_turns = (all_first + waves * epilogue) / costs.turns - epilogue
    mainloop = np.maximum(all_first, in_turns)

    count = 1 if batch is None else batch
    moved = 2 * count * (m * k + k * n + m * n) + work.bytes - c.kept
    dram = np.maximum(count * m * n * costs.write, moved / c.dram)
    seconds = costs.launch + mainloop + epilogue
    reduction = costs.sums
    if splitting:
        reduction = reduction * blocks
        seconds += reduction
    if batch is not None:
        extents[0] *= batch
    # Unpacking an array takes 0.2 µs a row, indexing 0.07.
    inputs = waves, busy, k_tiles, splits, l2, k_tile, mainloop, dram, seconds, used[0], used[1]
    return {
        "seconds": seconds,
        "blocks": blocks,
        "splits": splits,
        "waves": waves,
        "busy_sms": busy,
        "tensor_core": costs.tensor_core,
        "smem": costs.smem,
        "tma": costs.tma,
        "l2": l2,
        "launch": costs.launch,
        "mainloop": mainloop,
        "dram": dram,
        "epilogue": epilogue,
        "reduction": reduction,
        "serves": serves,
        "inputs": np.array((*inputs, extents[0], extents[1])),  # np.concatenate takes 4 µs more
    }
