"""Matrices of more than 2^31 elements on an H100: every offset has 64 bits."""

import pytest
import torch
from on_gpu import integers, plan_of, poisoned, product

from cutedsl_gemm import gemm
from cutedsl_gemm.kernels.copies.plan import copy_plans

pytestmark = pytest.mark.gpu

LONG, WIDE = 65536, 33000
BLOCK = 8192  # rows or columns whose product in float64 takes 2 GB
# What is large → (M, N, K), the orders of A and B, that of C, the kernel
CASES = {
    "C stored by TMA": ((LONG, WIDE, 64), ("row", "column"), "row", None),
    "C stored by threads": ((LONG, WIDE - 1, 64), ("row", "column"), "row", None),
    "C column-major": ((WIDE, LONG, 64), ("row", "row"), "column", None),
    "C of a block a tile": ((LONG, WIDE, 64), ("row", "column"), "row", "sm90_single"),
    "C of sm80": ((LONG, WIDE, 64), ("row", "column"), "row", "sm80_wide"),
    "A row-major": ((LONG, 64, WIDE), ("row", "column"), "row", None),
    "A column-major": ((LONG, 64, WIDE), ("column", "column"), "row", None),
    "A copied": ((LONG, 64, WIDE + 1), ("row", "row"), "row", None),
    "B row-major": ((64, LONG, WIDE), ("row", "row"), "row", None),
    "B column-major": ((64, LONG, WIDE), ("row", "column"), "row", None),
    "B copied": ((64, LONG + 1, WIDE), ("row", "row"), "row", None),
}


@pytest.fixture(autouse=True)
def memory_is_given_back():
    yield
    torch.cuda.empty_cache()


@pytest.mark.compiles(
    plans=lambda mnk, majors, kernel: (plan_of(mnk, majors, kernel=kernel), copy_plans())
)
@pytest.mark.parametrize(("mnk", "majors", "order", "kernel"), CASES.values(), ids=CASES)
def test_every_element_is_exact(mnk, majors, order, kernel):
    m, n, k = mnk
    assert max(m * n, m * k, n * k) > 2**31
    a, b = integers(m, k, majors[0]), integers(k, n, majors[1])
    out = poisoned(m, n, a.dtype) if order == "row" else poisoned(n, m, a.dtype).mT
    gemm(a, b, out=out, kernel=kernel)
    for first in range(0, max(m, n), BLOCK):
        part = slice(first, first + BLOCK)
        if m >= n:
            assert torch.equal(out[part], product(a[part], b)), part
        else:
            assert torch.equal(out[:, part], product(a, b[:, part])), part
