"""A GEMM as Triton's users write it for Hopper, for bench: TMA through tensor descriptors, wgmma by
tl.dot, L2-friendly groups of tile rows, the fastest of a few tiles at each shape.

bfloat16; A row-major, B column-major, out row-major. Importing it needs Triton.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

GROUP = 8


def _boxes(terms: dict[str, Any]) -> None:
    bm, bn, bk = terms["BM"], terms["BN"], terms["BK"]
    for name, box in (("a", [bm, bk]), ("b", [bn, bk]), ("c", [bm, bn])):
        terms[name].block_shape = box


CONFIGS = [
    triton.Config(
        {"BM": bm, "BN": bn, "BK": 64}, num_warps=warps, num_stages=stages, pre_hook=_boxes
    )
    for bm, bn, warps, stages in (
        (128, 256, 8, 3),
        (256, 128, 8, 3),
        (128, 128, 8, 4),
        (128, 128, 4, 4),
        (64, 128, 4, 4),
        (64, 64, 4, 6),
    )
]


@triton.autotune(CONFIGS, key=["m", "n", "k"])
@triton.jit
def _tile(
    a,  # (m, k)
    b,  # (n, k)
    c,  # (m, n)
    m,
    n,
    k,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    GROUP: tl.constexpr,
):
    columns = tl.cdiv(n, BN)
    first = tl.program_id(0) // (GROUP * columns) * GROUP
    place = tl.program_id(0) % (GROUP * columns)
    height = min(tl.cdiv(m, BM) - first, GROUP)
    row, column = (first + place % height) * BM, place // height * BN
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        total = tl.dot(a.load([row, start]), b.load([column, start]).T, total)
    c.store([row, column], total.to(tl.bfloat16))


def matmul(a: Tensor, b: Tensor, out: Tensor) -> None:
    """a @ b into out."""
    (m, k), n = a.shape, b.shape[1]
    any_box = [1, 1]  # until a tile is taken
    terms = (TensorDescriptor.from_tensor(x, any_box) for x in (a, b.mT, out))
    grid = lambda taken: (triton.cdiv(m, taken["BM"]) * triton.cdiv(n, taken["BN"]),)  # noqa: E731
    _tile[grid](*terms, m, n, k, GROUP=GROUP)
