"""The resources of a block, and the roles that share them: warpgroups, registers, shared memory."""

from __future__ import annotations

from typing import Literal, TypeAlias

from layouts.hardware.facts import WARPGROUP

# single: one warpgroup does everything. pingpong: two or three consumers, fed by a producer, take
# turns with whole tiles. cooperative: one to three consumers share every tile.
Schedule: TypeAlias = Literal["single", "pingpong", "cooperative"]

# A block's limit at compute capability 9.0 (CUDA C++ Programming Guide, technical specifications).
SMEM_BYTES = 232_448
MBARRIER_BYTES = 8
BARRIER_BYTES = 1024  # mbarriers of stages and of panels, rounded up to the swizzle's alignment
REGISTER_FILE = 65_536  # registers of a multiprocessor
REGISTER_UNIT = 8  # registers of a thread come in multiples of this, 256 for a warp
THREAD_REGISTERS = 255  # of a thread, at most (CUDA C++ Programming Guide)
# Consumer warpgroups of a block → registers of a producer thread, and of a consumer thread. 384
# threads start with 168 registers each: a producer thread releases 128 of them, and each of two
# consumer threads takes 64. 512 threads start with 128: it releases 96, and each of three takes 32.
# 256 threads start with 232: nobody takes what the producer releases. The 128 of `single`, which
# have no producer, may have as many as those consumers.
REGISTERS = {1: (40, 232), 2: (40, 232), 3: (32, 160)}
# Registers that a consumer thread needs in addition to its accumulator, and for an epilogue that
# holds matrices or several results: 128×128 (128 of 160) spills with these, and not without.
ADDRESS_REGISTERS = 32
EPILOGUE_REGISTERS = 8
# Registers that a consumer thread needs to evaluate a part of a panel. With 8, and all else read
# ahead, the derivative of SwiGLU spills 111 registers at 128×128; with 32, 21.
PART_REGISTERS = 32
# Registers that ptxas needs for one wgmma in addition to its BN / 2 sums: with 128 at the start
# of a thread, BN = 208 needs 130 and 240 needs 146 (error C7602).
WGMMA_REGISTERS = 26


def registers_at_start(threads: int) -> int:
    """Registers that each thread of a block may have when it starts, at most.

    >>> [registers_at_start(threads) for threads in (128, 384, 512)]
    [255, 168, 128]
    """
    return min(REGISTER_FILE // threads // REGISTER_UNIT * REGISTER_UNIT, THREAD_REGISTERS)


def default_consumers(schedule: Schedule, bm: int, bn: int) -> int:
    """Consumer warpgroups of a block with a tile of BM × BN, unless others are asked for.

    A cooperative tile of 192 rows has three, with 64 rows each, if a thread of theirs starts with
    the registers of a wgmma. Otherwise it has two, with half of the columns each.

    >>> [default_consumers("cooperative", bm, 128) for bm in (64, 128, 192, 256)]
    [1, 2, 3, 2]
    >>> [default_consumers("cooperative", 192, bn) for bn in (200, 208)]
    [3, 2]
    >>> default_consumers("pingpong", 192, 96)
    2
    """
    if schedule == "single":
        return 1
    if schedule == "pingpong" or bm not in (64, 192):
        return 2
    of_rows = bm // 64
    threads = WARPGROUP * (of_rows + 1)
    return of_rows if bn // 2 + WGMMA_REGISTERS <= registers_at_start(threads) else 2
