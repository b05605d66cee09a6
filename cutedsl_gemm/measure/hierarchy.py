"""The block, warp and thread tiles of a kernel: printed, drawn, and run on the CPU."""

from __future__ import annotations

from pathlib import Path

import torch

from cutedsl_gemm.api import plan_for
from cutedsl_gemm.kernels.plan.tile_hierarchy import TileHierarchy, from_plan, gemm, nested
from cutedsl_gemm.select.registry import named

# A small example: M, N, K and the tiles of a block, a warp and a thread.
MNK = (48, 128, 12)
TILES = ((8, 32, 6), (4, 8, 3), (4, 4, 1))


def hierarchy_of(kernel: str | None = None) -> TileHierarchy:
    """The hierarchy of a kernel's plan, or that of TILES if no kernel is named."""
    if kernel is None:
        return nested(*TILES)
    dtype = named(kernel).requirements.dtypes[0]
    a, b = torch.empty(256, 64, dtype=dtype), torch.empty(64, 256, dtype=dtype)
    return from_plan(plan_for(a, b, kernel=kernel))


def main(hierarchy: TileHierarchy, path: Path | None = None) -> None:
    """Print the hierarchy, check it at M, N, K = 48, 128, 12, and draw the outputs of a block."""
    m, n, k = MNK
    print(hierarchy.explain())
    a, b = torch.randint(-4, 5, (m, k)).float(), torch.randint(-4, 5, (k, n)).float()
    answer = "equal" if torch.equal(gemm(hierarchy, a, b), a @ b) else "not equal"
    print(f"M, N, K = {m}, {n}, {k}: {answer} to torch\n")
    if path is None:
        print(hierarchy.picture())
    else:
        path.write_text(hierarchy.picture().svg(), encoding="utf-8")
