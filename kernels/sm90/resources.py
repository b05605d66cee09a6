"""The resources of a block, and the roles that share them: warpgroups, registers, shared memory."""

from __future__ import annotations

from typing import Literal, TypeAlias

# single: one warpgroup does everything. pingpong: two or three consumers, fed by a producer, take
# turns with whole tiles. cooperative: one to three consumers share the rows of every tile.
Schedule: TypeAlias = Literal["single", "pingpong", "cooperative"]

# A block's limit at compute capability 9.0 (CUDA C++ Programming Guide, technical specifications).
SMEM_BYTES = 232_448
MBARRIER_BYTES = 8
BARRIER_BYTES = 1024  # mbarriers of stages and of panels, rounded up to the swizzle's alignment
REGISTER_FILE = 65_536  # registers of a multiprocessor
# Consumer warpgroups of a block → registers of a producer thread, and of a consumer thread. 384
# threads start with 168 registers each: a producer thread releases 128 of them, and each of two
# consumer threads takes 64. 512 threads start with 128: it releases 96, and each of three takes 32.
# 256 threads start with 232: nobody takes what the producer releases. The 128 of `single`, which
# have no producer, may have as many as those consumers.
REGISTERS = {1: (40, 232), 2: (40, 232), 3: (32, 160)}
# Registers that a consumer thread needs in addition to its accumulator, and for an epilogue that
# holds matrices or several results: 128×128 (128 of 160) spills with these, and else does not.
ADDRESS_REGISTERS = 32
EPILOGUE_REGISTERS = 8
# Registers that a consumer thread needs to evaluate a part of a panel. With 8, and all else read
# ahead, the derivative of SwiGLU spills 111 registers at 128×128; with 32, 21.
PART_REGISTERS = 32
# Registers that ptxas needs for one wgmma in addition to its BN / 2 sums: with 128 at the start
# of a thread, BN = 208 needs 130 and 240 needs 146 (error C7602).
WGMMA_REGISTERS = 26


def default_consumers(schedule: Schedule, bm: int) -> int:
    """Consumer warpgroups of a block whose tile has BM rows, unless others are asked for.

    >>> [default_consumers("cooperative", bm) for bm in (64, 128, 192, 256)]
    [1, 2, 3, 2]
    >>> default_consumers("pingpong", 192)
    2
    """
    if schedule == "cooperative":
        return {64: 1, 192: 3}.get(bm, 2)
    return 1 if schedule == "single" else 2
