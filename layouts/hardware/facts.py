"""The numbers of warps and of memory that every file of this package counts with.

Sources: CUDA C++ Programming Guide, SIMT architecture and shared memory of compute capability 5.x
and later; CUDA C++ Best Practices Guide, coalesced access to global memory; PTX ISA 9.2, section
9.7.15.1, Warpgroup.  An H100 counts the same (tests/layouts/hardware/measured).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

__all__ = [
    "ACCESS_BYTES",
    "BANKS",
    "BANK_BYTES",
    "PHASE_LANES",
    "SECTOR_BYTES",
    "WARP",
    "WARPGROUP",
    "WAVEFRONT_BYTES",
]

#: Lanes of a warp, and threads of a warpgroup.
WARP, WARPGROUP = 32, 128

#: Bytes that one lane can access at once.
ACCESS_BYTES = (1, 2, 4, 8, 16)

#: Shared memory has 32 banks, each 4 bytes wide.
BANKS, BANK_BYTES = 32, 4

#: Bytes that all banks move in one wavefront.
WAVEFRONT_BYTES = BANKS * BANK_BYTES

#: Bytes of one access -> lanes of one phase: as many as a wavefront serves.
PHASE_LANES: Mapping[int, int] = MappingProxyType(
    {width: min(WARP, WAVEFRONT_BYTES // width) for width in ACCESS_BYTES}
)

#: Global memory moves whole sectors of 32 bytes.
SECTOR_BYTES = 32
