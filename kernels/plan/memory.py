"""The memory report of a plan: what its accesses cost, by which each rung of the ladder is judged.

Global memory moves in sectors of 32 bytes: a warp's request takes as many as its lanes touch.
Shared memory moves in wavefronts (layouts.banks). Both are counted for one warp and one FMA of each
of its lanes, 32 in all, from the layouts of the plan alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cutedsl_gemm.kernels.plan.partition import TVLayout
from layouts import size
from layouts.hardware.descriptor import Major

FAR = 1 << 20  # elements between the lines of a matrix: no two share a sector
SECTOR = 32  # bytes (CUDA C++ Best Practices Guide, coalesced access to global memory)
WARP = 32  # threads


@dataclass(frozen=True)
class MemoryReport:
    """What the accesses of a plan cost.

    `requests` has the sectors of one request to A, B, C. The others are for each FMA of a warp:
    sectors that come from global memory, and wavefronts that come from shared memory.
    """

    requests: dict[str, int]
    sectors: float
    wavefronts: float

    def __str__(self) -> str:
        requests = ", ".join(f"{name} {count}" for name, count in self.requests.items())
        return (
            f"requests {requests}; for each FMA of a warp "
            f"{self.sectors:.3g} sectors, {self.wavefronts:.3g} wavefronts"
        )


def sectors(addresses: Iterable[int], width: int) -> int:
    """Sectors that lanes touch who access `width` bytes each, at these byte addresses.

    >>> sectors(range(0, 128, 4), 4), sectors(range(0, 32 * 4096, 4096), 4), sectors([0] * 32, 4)
    (4, 32, 1)
    """
    return len({byte // SECTOR for at in addresses for byte in (at, at + width - 1)})


def global_sectors(
    shares: dict[str, TVLayout], majors: tuple[Major, Major], width: int, depth: int
) -> tuple[dict[str, int], float]:
    """Sectors of a warp's first request to A, B and C, and those that one FMA of the warp brings.

    `width` is the bytes of an element, `depth` the extent of a k-block.
    """
    lines = dict(zip("ABC", (*majors, "K"), strict=True))
    requests = {name: _request(share, lines[name], width) for name, share in shares.items()}
    moves = {name: share.lines * share.vectors for name, share in shares.items()}
    brought = sum(requests[name] * moves[name] for name in "AB")  # by a warp, each k-block
    return requests, brought / (size(shares["C"].rows[1]) * depth)


def _request(share: TVLayout, major: str, width: int) -> int:
    at = share.offsets(FAR, 1) if major == "K" else share.offsets(1, FAR)
    return sectors((at(lane, 0) * width for lane in range(WARP)), share.width * width)
