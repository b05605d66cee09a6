"""What candidates cost, whatever the problem: a table of numbers that the formulas read.

candidates, majors, alignments of rows → Table → select/formulas.py
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cutedsl_gemm.kernels.sm90.operand import ROW, SHORTEST_ROW
from cutedsl_gemm.kernels.sm90.resources import (
    ADDRESS_REGISTERS,
    EPILOGUE_REGISTERS,
    REGISTERS,
)
from cutedsl_gemm.kernels.sm90.rungs import pingpong, split
from cutedsl_gemm.select.candidate import FILL, Candidate
from layouts.hardware.descriptor import Major
from layouts.hardware.facts import WARPGROUP

DRAM = 3.1e12  # bytes a second, at most
SMS = 132  # multiprocessors of an H100 SXM and an H200 SXM
# Blocks that run at once, by the size of their cluster (kernels/device/occupancy.py).
BLOCKS_AT_ONCE = {1: SMS, 2: SMS, 4: 120, 8: 120}
# Accumulators of a thread, at most, if a block has two consumers (kernels/sm90/checks.py).
MOST_SUMS = REGISTERS[2][1] - ADDRESS_REGISTERS - EPILOGUE_REGISTERS
ALIGNMENTS = 128, 64, 32, 16  # of rows, in bytes; a line of L2 has 128
# The network learned from launches in turn, at the clock that the power of the others leaves. A
# launch of LONG seconds or more sets its own: pingpong then takes longer, above all in clusters of
# 2×1. By hand, from 44 shapes (docs/performance, "Long launches at their own power").
LONG = 2e-3
LONG_PINGPONG, LONG_PAIRS = 1.02, 1.02

Array: TypeAlias = NDArray[Any]


class Constants(NamedTuple):
    """Constants of the formulas. Times are in seconds; rates, if not of flops, in bytes a second.

    `dram`, `kept` and `narrow_write` are inputs of the correction, and no part of the formula.
    """

    sm_rate: float = 5.19e12  # flops a second of a multiprocessor
    smem: float = 3.13e11  # of a multiprocessor's shared memory
    latency: float = 1.09e-07  # of a k-tile
    latency_16: float = 6.56e-09  # added for each wgmma of a k-tile
    tma_row: float = 1.9e-09  # of a row that TMA loads, where rows of B are of 32 or 64 bytes
    l2: tuple[float, ...] = (1.42e13, 7.41e12, 6.77e12, 4.76e12)  # of rows of each of ALIGNMENTS
    dram: float = 2.84e12
    kept: float = 1.56e07  # bytes of A, B and C that L2 keeps from launch to launch
    launch: float = 1.15e-06  # launch to first load, and last store to the end
    fill: float = 2.16e-08  # until the first k-tile of a tile arrives
    fill_rate: float = 6.48e10  # at which its bytes arrive, added to `fill`
    cluster_launch: float = 6.53e-07  # what a cluster adds to `launch`
    cluster_fill: float = 1.33e-08  # what it adds to `fill`
    store: float = 2.17e10  # of C, of one consumer
    shared_store: float = 1.83e10  # of the consumers of a cooperative tile
    narrow_store: float = 1.32e10  # in rows of 32 bytes
    narrow_write: float = 1.24e12  # of C that DRAM takes in rows of 32 bytes
    reduction_launch: float = 1.96e-06  # of the kernel that adds partial sums
    reduction_rate: float = 4.95e12  # of partial sums, to L2 and from there
    # Of an issue slot (epilogue/cost.py) of one output of a thread. By hand, from twelve epilogues
    # at 8448×9216×256.
    issue: float = 2.0e-09
    # Of a matrix that threads read, per output of a thread. Two cost four times as much, since they
    # share the registers for what is read ahead; `full` is the factor if sums take all of these. By
    # hand, of SwiGLU's derivative with ten tiles (docs/performance, "Epilogues that read
    # matrices").
    read: float = 4.0e-08
    full: float = 1.25


FITTED = Constants()


# Of A, B and C: the indices in ALIGNMENTS of their rows.
RowAlignments: TypeAlias = tuple[int, int, int]
Majors: TypeAlias = tuple[Major, Major]  # of A and B


class Table(NamedTuple):
    """What the model needs of candidates, and what each of them costs: arrays of an entry each."""

    side: Array  # (3, candidates): which of M, N, K are the rows, columns and depth of its plan
    tile: Array  # (2, candidates): BM, BN
    whole: Array  # (3, candidates): rows and columns of a cluster, depth of a k-tile
    least: Array  # (3, candidates): the share of `whole` to exceed: half of a cluster, else 0
    blocks: Array  # of a cluster
    splits: Array  # blocks that split K; 2, the least, if it is FILL: as many as fill a wave
    fills: Array  # 1 if FILL, else 0
    least_splits: Array  # 2 if FILL, else 0
    most_blocks: Array  # of a plan that may serve
    turns: Array  # consumers that take turns: the others store while one multiplies; else 1
    at_once: Array  # blocks that run at once
    tensor_core: Array  # seconds of a k-tile
    smem: Array  # seconds of a k-tile
    tma: Array  # seconds of a k-tile; 0 where rows in shared memory are of 128 bytes
    k_tile: Array  # seconds of a k-tile that never waits for L2
    row: Array  # (2, candidates): seconds of a k-tile, for each row of A, of B, and each block
    fill: Array  # seconds
    epilogue: Array
    slots: Array  # seconds of an issue slot for each output of a thread
    read: Array  # seconds in which a thread reads a matrix for its outputs
    launch: Array
    write: Array  # seconds to write an element of C
    sums: Array  # seconds in which a block's partial sums are added
    power: Array  # logarithm of the factor of launches of LONG seconds or more


def table(
    candidates: Sequence[Candidate], c: Constants = FITTED, majors: Majors = ("K", "K")
) -> Table:
    """The table of candidates, for rows of A and B on lines; `aligned` has it for others.

    `majors` are those of the problem's A and B.
    """
    tile = np.array([each.tile for each in candidates], dtype=float).T  # (3, candidates)
    cluster = np.array([each.cluster for each in candidates], dtype=float).T
    splits = np.array([each.splits for each in candidates], dtype=float)
    narrow = np.array(
        [
            each.maker is not split and not each.swapped and each.panels.columns == 16
            for each in candidates
        ]
    )
    turns = np.array([each.consumers if each.maker is pingpong else 1.0 for each in candidates])
    (bm, bn, bk), size = tile, cluster.prod(0)
    clustered, split_k, fills = size > 1, splits != 1, splits == FILL
    launch = c.launch + clustered * c.cluster_launch + split_k * c.reduction_launch
    at_once = np.array([BLOCKS_AT_ONCE[int(each)] for each in size], dtype=float)
    # Bytes that TMA writes and wgmma reads.
    written, read = 2 * bk * (bm + bn), 2 * bk * np.array([each.reads for each in candidates])
    tensor_core, smem = 2 * bm * bn * bk / c.sm_rate, (written + read) / c.smem
    row = np.array([row_of_b(each, majors) for each in candidates])
    rows = bk * (bm / ROW / cluster[1] + bn / row / cluster[0])
    tma = (row < ROW) * rows * c.tma_row
    latency = c.latency + bk / 16 * c.latency_16
    pairs = (cluster[0] == 2) & (cluster[1] == 1)
    power = (turns > 1) * (np.log(LONG_PINGPONG) + pairs * np.log(LONG_PAIRS))
    consumers = np.array([each.atom_layout for each in candidates], dtype=float).prod(1)
    outputs = bm * bn / WARPGROUP / consumers  # of a thread
    stored = np.select([turns == 1, narrow], [c.shared_store, c.narrow_store], c.store)
    return Table(
        side=np.array([(1, 0, 2) if each.swapped else (0, 1, 2) for each in candidates]).T,
        tile=tile[:2],
        whole=np.vstack([tile[:2] * cluster, bk]),
        least=np.vstack([np.where(cluster > 1, 0.5, 0), 0 * splits]),
        blocks=size,
        splits=np.where(fills, 2, splits),
        fills=fills * 1.0,
        least_splits=fills * 2.0,
        most_blocks=np.where(split_k, at_once, np.inf),
        turns=turns,
        at_once=at_once,
        tensor_core=tensor_core,
        smem=smem,
        tma=tma,
        k_tile=np.maximum(tma, (tensor_core**4 + smem**4 + latency**4) ** 0.25),
        row=2 * bk / c.l2[0] / cluster[::-1],
        fill=c.fill + clustered * c.cluster_fill + written / c.fill_rate,
        epilogue=2 * bm * bn / stored,
        slots=outputs * c.issue,
        read=outputs * np.where(outputs >= MOST_SUMS, c.full, 1) * c.read,
        launch=launch,
        write=2 / np.where(narrow, c.narrow_write, c.dram),
        sums=split_k * 2 * 4 * bm * bn / c.reduction_rate,
        power=power,
    )


def row_of_b(candidate: Candidate, majors: Majors) -> int:
    """Elements of a row of the plan's B in shared memory, for the majors of the problem's A and B.

    >>> [row_of_b(Candidate(pingpong, (128, bn, 64)), ("K", "MN")) for bn in (128, 160, 176)]
    [64, 32, 16]
    """
    along_k = majors[0 if candidate.swapped else 1] == "K"
    return ROW if along_k else max(gcd(candidate.columns, ROW), SHORTEST_ROW)


def as_float32(costs: Table) -> Table:
    """The table in single precision, each row in one piece: numpy computes it faster."""
    return Table(
        *(np.ascontiguousarray(x, np.float32 if x.dtype == float else x.dtype) for x in costs)
    )


def aligned(costs: Table, rows: RowAlignments, c: Constants = FITTED) -> Table:
    """The table for rows of A and B that start at such multiples; the correction knows C's."""
    a, b, _ = rows
    slower = c.l2[0] / np.array(c.l2)
    return costs._replace(row=costs.row * slower[sides(costs, np.array((a, b, a)))[:2]])


def sides(costs: Table, of_mnk: Array) -> Array:
    """(3, candidates): values for M, N and K, as the plans take them, operands swapped or not.

    Each of the three is a number, or has an entry for each candidate.
    """
    if of_mnk.ndim == 1:
        return of_mnk.take(costs.side)
    return np.take_along_axis(of_mnk, costs.side, 0)
