"""A GEMM for bench as Triton's users write it for Hopper.

It loads by TMA through tensor descriptors, multiplies by tl.dot (wgmma), groups tile rows for L2,
and autotunes over a few tiles at each shape. bfloat16; A row-major, B column-major, out row-major.
Importing this module needs Triton.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

GROUP = 8


def _set_boxes(arguments: dict[str, Any]) -> None:
    bm, bn, bk = arguments["BM"], arguments["BN"], arguments["BK"]
    for name, box in (("a", [bm, bk]), ("b", [bn, bk]), ("c", [bm, bn])):
        arguments[name].block_shape = box


CONFIGS = [
    triton.Config(
        {"BM": bm, "BN": bn, "BK": 64}, num_warps=warps, num_stages=stages, pre_hook=_set_boxes
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
    rank = tl.program_id(0) % (GROUP * columns)  # in the group
    height = min(tl.cdiv(m, BM) - first, GROUP)
    row, column = (first + rank % height) * BM, rank // height * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        acc = tl.dot(a.load([row, start]), b.load([column, start]).T, acc)
    c.store([row, column], acc.to(tl.bfloat16))


def matmul(a: Tensor, b: Tensor, out: Tensor) -> None:
    """a @ b into out."""
    (m, k), n = a.shape, b.shape[1]
    box = [1, 1]  # `_set_boxes` sets it for each tile
    descriptors = (TensorDescriptor.from_tensor(x, box) for x in (a, b.mT, out))
    grid = lambda config: (triton.cdiv(m, config["BM"]) * triton.cdiv(n, config["BN"]),)  # noqa: E731
    _tile[grid](*descriptors, m, n, k, GROUP=GROUP)
