"""On an H100: every rung of the ladder, exact on integers, at shapes that no tile divides."""

import shutil
import sys
from itertools import product

import pytest
import torch
from on_gpu import run_apart

from cutedsl_gemm import KERNELS, gemm, plan_for
from cutedsl_gemm.measure import ladder
from cutedsl_gemm.select.registry import named

pytestmark = pytest.mark.gpu

EVERY_DTYPE = [(name, dtype) for name in KERNELS for dtype in named(name).requirements.dtypes]
ORDERS = list(product(("row", "column"), repeat=2))
# Every order in a kernel's first dtype; a second one changes an instruction's name.
CASES = [
    (name, dtype, orders)
    for name, dtype in EVERY_DTYPE
    for orders in ORDERS
    if dtype == named(name).requirements.dtypes[0] or orders == ("row", "column")
]
SHAPES = [
    (520, 264, 136),
    (48, 128, 12),
    (1, 1, 1),
    (33, 65, 7),
    (129, 127, 65),
    (1000, 1001, 999),
    (384, 512, 448),
]
by_rung = pytest.mark.parametrize(("kernel", "dtype"), EVERY_DTYPE, ids=str)


def integers(rows, columns, order, dtype, unit=1, device="cuda"):
    """A view whose rows, or columns, start at multiples of `unit` elements."""
    if order == "column":
        return integers(columns, rows, "row", dtype, unit, device).mT
    whole = torch.empty(rows, -(-columns // unit) * unit, dtype=dtype, device=device)
    return whole.random_(-2, 3)[:, :columns]


def operands(kernel, dtype, mnk, orders, unit=None, device="cuda"):
    """A and B of integers, whose rows or columns start where the kernel needs them to."""
    m, n, k = mnk
    unit = unit or named(kernel).requirements.alignment
    a = integers(m, k, orders[0], dtype, unit, device)
    return a, integers(k, n, orders[1], dtype, unit, device)


def served(kernel, mnk, orders):
    """sm70 computes the residue of K first, so a K-major operand needs an aligned K."""
    free = orders == ("column", "row") and mnk != (1, 1, 1)  # which is contiguous either way
    return kernel != "sm70_volta884" or mnk[2] % 8 == 0 or free


def exact(kernel, dtype, mnk, orders, unit=None):
    m, n, _ = mnk
    unit = unit or named(kernel).requirements.alignment
    a, b = operands(kernel, dtype, mnk, orders, unit)
    whole = torch.full((m + 1, -(-n // unit) * unit + unit), torch.nan, dtype=dtype, device="cuda")
    out = whole[:m, :n]
    gemm(a, b, kernel=kernel, out=out)
    truth = (a.double() @ b.double()).to(dtype)
    untouched = whole[m:].isnan().all() and whole[:, n:].isnan().all()
    return torch.equal(out, truth) and bool(untouched)


def plans(kernel, dtype=torch.bfloat16, orders=("row", "row"), unit=None, shapes=SHAPES):
    """The plans of a rung for these shapes, found without a GPU."""
    every = [mnk for mnk in shapes if served(kernel, mnk, orders)]
    tensors = [operands(kernel, dtype, mnk, orders, unit, "cpu") for mnk in every]
    return [plan_for(*pair, kernel=kernel) for pair in tensors]


def narrow_shapes(unit):
    return (128 + unit, 256 + unit, 64 + unit), (1000, 1001, 999)


@pytest.mark.compiles(plans=lambda kernel, dtype, orders: plans(kernel, dtype, orders))
@pytest.mark.parametrize(("kernel", "dtype", "orders"), CASES, ids=str)
def test_integer_products_are_exact(kernel, dtype, orders):
    """One compiled kernel serves shapes that its tile divides, and shapes that it does not."""
    wrong = [
        mnk
        for mnk in SHAPES
        if served(kernel, mnk, orders) and not exact(kernel, dtype, mnk, orders)
    ]
    assert not wrong


@pytest.mark.compiles(
    plans=lambda kernel, orders, unit: plans(
        kernel, orders=orders, unit=unit, shapes=narrow_shapes(unit)
    )
)
@pytest.mark.parametrize("orders", ORDERS, ids="-".join)
@pytest.mark.parametrize("unit", [4, 2])
@pytest.mark.parametrize("kernel", [name for name in KERNELS if name.startswith("sm80")])
def test_integer_products_at_narrower_alignments_are_exact(kernel, unit, orders):
    for mnk in narrow_shapes(unit):
        assert exact(kernel, torch.bfloat16, mnk, orders, unit)


def everything(acc, row, column, matrix, turned, number):
    value = acc * number + row - column
    whole = torch.relu(value) + matrix - turned
    return whole, value.float(), value.sum(dim=1), whole.amax(dim=0)


def of_everything(kernel, dtype, mnk, device="cuda"):
    """a, b, and the operands of `everything`, of integers."""
    (m, n, _), float32 = mnk, torch.float32
    named_operands = {
        "row": integers(1, n, "row", float32, device=device)[0],
        "column": integers(m, 1, "column", dtype, device=device),
        "matrix": integers(m, n, "row", dtype, 8, device=device),
        "turned": integers(m, n, "column", float32, device=device),
        "number": 2,
    }
    return operands(kernel, dtype, mnk, ("row", "row"), device=device), named_operands


def plans_of_everything(kernel, dtype):
    made = (of_everything(kernel, dtype, mnk, "cpu") for mnk in RAGGED)
    return [plan_for(*ab, kernel=kernel, epilogue=everything, **given) for ab, given in made]


def computes_everything(kernel, dtype, mnk, device="cuda"):
    (a, b), given = of_everything(kernel, dtype, mnk, device)
    truth = everything(a.double() @ b.double(), **given)
    found = gemm(a, b, kernel=kernel, epilogue=everything, **given)
    assert [each.dtype for each in found] == [dtype, *3 * [torch.float32]]
    return all(torch.equal(x, y.to(x.dtype)) for x, y in zip(found, truth, strict=True))


RAGGED = [(520, 264, 136), (136, 257, 72)]
BEFORE_HOPPER = [name for name in KERNELS if not name.startswith("sm90")]


@pytest.mark.compiles(plans=plans_of_everything)
@pytest.mark.parametrize(
    ("kernel", "dtype"),
    [(name, named(name).requirements.dtypes[0]) for name in BEFORE_HOPPER],
    ids=str,
)
def test_an_epilogue_of_integers_is_exact(kernel, dtype):
    assert all(computes_everything(kernel, dtype, mnk) for mnk in RAGGED)


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


SMALL = """
import torch
from cutedsl_gemm import KERNELS, gemm
from cutedsl_gemm.select.registry import named
for name in KERNELS:
    dtype = named(name).requirements.dtypes[0]
    a, b = (torch.randint(-2, 3, s).to(dtype) for s in ((136, 264), (264, 272)))
    truth = (a.double() @ b.double()).to(a.dtype)
    for right in (b, b.mT.contiguous().mT):
        assert torch.equal(gemm(a.cuda(), right.cuda(), kernel=name).cpu(), truth), name
"""


# A compile asks the driver for functions that it has not: no error of a kernel.
@pytest.mark.parametrize("tool", ["memcheck --report-api-errors no", "racecheck"])
def test_the_sanitizers_find_nothing_in_any_rung(tool):
    sanitizer = shutil.which("compute-sanitizer")
    if sanitizer is None:
        pytest.fail("compute-sanitizer is not on the PATH; it comes with the CUDA toolkit")
    asked = f"--error-exitcode 9 --tool {tool}".split()
    status, output = run_apart(sanitizer, *asked, sys.executable, "-c", SMALL, seconds=100)
    assert status == 0, output[-4000:]
