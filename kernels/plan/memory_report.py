"""The memory report of a plan: what its accesses cost. It compares the rungs of the ladder.

Global memory moves in sectors of 32 bytes: a warp's request takes as many as its lanes touch.
Shared memory moves in wavefronts (layouts.banks). Both are counted for one FMA of each of a warp's
32 lanes, from the layouts of the plan alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from cutedsl_gemm.kernels.plan.tv_layout import TVLayout
from layouts import Layout, composition, sectors
from layouts.hardware.descriptor import Major
from layouts.hardware.facts import WARP

FAR = 1 << 20  # elements, a leading dimension so large that no two lines share a sector


@dataclass(frozen=True)
class MemoryReport:
    """What the accesses of a plan cost."""

    requests: dict[str, int]  # A, B and C → sectors of a warp's first request in global memory
    sectors: float  # that are loaded from global memory for each FMA of a warp
    wavefronts: float  # of loads from shared memory for each FMA of a warp

    def __str__(self) -> str:
        requests = ", ".join(f"{name} {count}" for name, count in self.requests.items())
        return (
            f"requests {requests}; for each FMA of a warp "
            f"{self.sectors:.3g} sectors, {self.wavefronts:.3g} wavefronts"
        )


def global_sectors(
    copies: dict[str, TVLayout], majors: tuple[Major, Major], element_bytes: int, bk: int
) -> tuple[dict[str, int], float]:
    """(sectors of a warp's first request to A, B and C; sectors loaded for each FMA of the warp).

    `copies` holds the thread-value layouts of A, B and C in global memory, `majors` the contiguous
    modes of A and B; C is row-major.
    """
    modes = dict(zip("ABC", (*majors, "K"), strict=True))
    requests = {
        name: request_sectors(copy, modes[name], element_bytes) for name, copy in copies.items()
    }
    vectors = {name: copy.lines * copy.vectors for name, copy in copies.items()}  # of a thread
    loaded = sum(requests[name] * vectors[name] for name in "AB")  # by a warp, each k-tile
    return requests, loaded / (copies["C"].values * bk)


def request_sectors(copy: TVLayout, major: str, element_bytes: int) -> int:
    """Sectors of the first vector of each lane of the first warp, where lines are far apart."""
    offsets = copy.offsets(FAR, 1) if major == "K" else copy.offsets(1, FAR)
    lanes = composition(offsets[0], Layout(WARP))
    return sectors(lanes, copy.width * element_bytes, unit=8 * element_bytes).count
