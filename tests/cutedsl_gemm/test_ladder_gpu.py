"""On an H100: every rung of the ladder, exact on integers, at shapes that no tile divides."""

from itertools import product

import pytest
import torch

from cutedsl_gemm import KERNELS, gemm, ladder
from cutedsl_gemm.rungs import named

pytestmark = pytest.mark.gpu

EVERY_DTYPE = [(name, dtype) for name in KERNELS for dtype in named(name).terms.dtypes]
ORDERS = list(product(("row", "column"), repeat=2))
by_rung = pytest.mark.parametrize(("kernel", "dtype"), EVERY_DTYPE, ids=str)


def integers(rows, columns, order, dtype, unit=1):
    """A view into rows, or columns, that start at multiples of `unit` elements."""
    if order == "column":
        return integers(columns, rows, "row", dtype, unit).mT
    whole = torch.randint(-2, 3, (rows, -(-columns // unit) * unit), device="cuda")
    return whole.to(dtype)[:, :columns]


def exact(kernel, dtype, mnk, orders):
    m, n, k = mnk
    unit = named(kernel).terms.unit
    a, b = integers(m, k, orders[0], dtype, unit), integers(k, n, orders[1], dtype, unit)
    whole = torch.full((m + 1, -(-n // unit) * unit + unit), torch.nan, dtype=dtype, device="cuda")
    out = whole[:m, :n]
    gemm(a, b, kernel=kernel, out=out)
    truth = (a.double() @ b.double()).to(dtype)
    untouched = whole[m:].isnan().all() and whole[:, n:].isnan().all()
    return torch.equal(out, truth) and bool(untouched)


@by_rung
@pytest.mark.parametrize("orders", ORDERS, ids="-".join)
@pytest.mark.parametrize(
    "mnk",
    [(520, 264, 136), (48, 128, 12), (1, 1, 1), (33, 65, 7), (129, 127, 65), (1000, 1001, 999)],
    ids=str,
)
def test_integers_come_out_exact(kernel, dtype, mnk, orders):
    assert exact(kernel, dtype, mnk, orders)


@by_rung
def test_random_numbers_against_float64(kernel, dtype):
    a = torch.randn(1024, 512, device="cuda").to(dtype)
    b = torch.randn(512, 768, device="cuda").to(dtype)
    truth = a.double() @ b.double()
    error = (gemm(a, b, kernel=kernel).double() - truth).norm() / truth.norm()
    assert error < (1e-5 if dtype == torch.float32 else 6e-3)


@pytest.mark.parametrize("family", ladder.SIZES)
def test_the_ladder_is_measured_and_right(family):
    measured = list(ladder.measure(family, 512))
    assert measured[0].name == "torch.mm"
    assert all(row.error < 1e-2 for row in measured)
