"""The resources of a block, and the roles that share them: warpgroups, registers, shared memory."""

from __future__ import annotations

from typing import Literal, TypeAlias

# single: one warpgroup does everything. pingpong: two consumers, fed by a producer, take turns with
# whole tiles. cooperative: each consumer multiplies half the rows of every tile.
Schedule: TypeAlias = Literal["single", "pingpong", "cooperative"]

# A block's limit at compute capability 9.0 (CUDA C++ Programming Guide, technical specifications).
SMEM_BYTES = 232_448
BARRIER_BYTES = 1024  # two 8-byte mbarriers a stage, rounded up to the swizzle's alignment
CONSUMERS = 2  # consumer warpgroups of a block
# 65,536 registers / 384 threads = 168 a thread: a producer thread releases 128 of them, and each
# consumer thread takes 64.
CONSUMER_REGISTERS = 232
PRODUCER_REGISTERS = 40
# What a consumer needs beside its accumulator: 128×256 (256 of 232) spills, 128×192 does not.
ADDRESS_REGISTERS = 40
