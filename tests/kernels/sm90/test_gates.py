"""Gated products: a weight of two matrices, whose products by A are in one thread.

The executor is compared with float64. What the compiled kernels load and store is in
test_device_code.py and test_stores.py.
"""

from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from cutedsl_gemm.kernels.epilogue.trace import trace
from cutedsl_gemm.kernels.executor import empty_tensors
from cutedsl_gemm.kernels.plan.checks import PlanError
from cutedsl_gemm.kernels.sm90.operand import Operand, swizzled
from cutedsl_gemm.kernels.sm90.rungs import cooperative, pingpong, single, split
from layouts import Bijective, prove, size, symbols
from tests.kernels.sm90.plans import SWIGLU

M, N, K = 152, 200, 136  # ragged: of rows, columns and k, no tile is whole
GEGLU = trace(lambda gate, value: F.gelu(gate) * value, [], accumulators=2)


def stacked(n, k):
    """(2, K, N) of a weight (2N, K): the gate's rows, then the value's."""
    return torch.randn(2 * n, k).bfloat16().view(2, n, k).mT


def interleaved(n, k):
    """(2, K, N) of a weight (2N, K): a row of the gate, a row of the value, and so on."""
    return torch.randn(2 * n, k).bfloat16().view(n, 2, k).permute(1, 2, 0)


def stacked_columns(n, k):
    """(2, K, N) of a weight (K, 2N): the gate's columns, then the value's."""
    return torch.randn(k, 2 * n).bfloat16().view(k, 2, n).permute(1, 0, 2)


def silu(gate, value):
    return F.silu(gate) * value


def gelu(gate, value):
    return F.gelu(gate) * value


@pytest.mark.parametrize(
    ("plan", "weight", "combine"),
    [
        (pingpong((128, 96, 64), epilogue=SWIGLU), stacked, silu),
        (pingpong((64, 64, 64), cluster=(2, 1), epilogue=GEGLU), interleaved, gelu),
        (pingpong((128, 192, 64), b_major="MN", epilogue=SWIGLU), stacked_columns, silu),
        (single((64, 64, 64), b_major="MN", epilogue=SWIGLU), stacked_columns, silu),
        (cooperative((256, 128, 64), cluster=(2, 2), epilogue=SWIGLU), interleaved, silu),
        (pingpong((128, 80, 64), swapped=True, epilogue=SWIGLU), interleaved, silu),
        (
            pingpong((128, 24, 64), swapped=True, cluster=(1, 2), b_major="MN", epilogue=GEGLU),
            stacked_columns,
            gelu,
        ),
        (pingpong((64, 96, 64), c_alignment=1, epilogue=SWIGLU), stacked, silu),
        (split((128, 64, 64), splits=3, cluster=(2, 1), epilogue=SWIGLU), interleaved, silu),
        (
            split((64, 24, 64), splits=2, swapped=True, b_major="MN", epilogue=SWIGLU),
            stacked_columns,
            silu,
        ),
    ],
)
def test_a_gated_product_is_what_torch_computes_of_both_products(plan, weight, combine):
    torch.manual_seed(0)
    a, _, out = empty_tensors(plan, M, N, K)
    a.normal_()
    b = weight(N, K)
    plan.execute(a, b, out)
    gate, value = a.double() @ b.double()
    torch.testing.assert_close(out.double(), combine(gate, value), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("swapped", [False, True])
def test_every_row_of_both_matrices_is_loaded_once_and_every_register_stored_once(swapped):
    plan = pingpong(cluster=(2, 2), swapped=swapped, epilogue=SWIGLU)
    assert all(plan.proofs())
    parted = plan.a if swapped else plan.b
    for layout in (parted.gmem_rows(symbols("tiles")), plan.fragment):
        assert Bijective(layout) in [proof.statement for proof in plan.proofs()]


@pytest.mark.parametrize("swapped", [False, True])
def test_the_workspace_has_the_partial_sums_of_both_products(swapped):
    plan = split((128, 64, 64), splits=2, swapped=swapped, epilogue=SWIGLU)
    rows, columns = plan.c_tile
    assert plan.workspace(rows, columns) == 2 * size(plan.partial_sums)
    assert plan.workspace(rows + 1, 2 * columns) == 2 * 4 * size(plan.partial_sums)
    assert sorted(map(plan.c_partial_sums, range(128 * 64))) == [*range(128 * 64)]


@pytest.mark.parametrize("swapped", [False, True])
def test_a_warp_stores_its_partial_sums_of_every_row_that_c_has(swapped):
    """Rows of the second matrix follow those of the first in a tile, not in C."""
    plan = split((128, 64, 64), swapped=swapped, epilogue=SWIGLU)
    rows = plan.output_tile[0]
    assert [plan.a.row_of_each(row) for row in range(128)] == [*range(rows)] * (128 // rows)


def test_a_load_of_the_same_matrix_twice_is_not_proved():
    class Twice(Operand):
        def gmem_coord(self, tile, k_tile, part):
            (row, _), k = super().gmem_coord(tile, k_tile, part)
            return (row, 0), k

    b = Twice("B", "K", swizzled(128, 64, "K"), sharers=2, matrices=2)
    assert not prove(Bijective(b.gmem_rows(symbols("tiles"))))


def test_a_plan_takes_b_in_two_matrices_that_it_can_load():
    plan = pingpong((128, 96, 64), epilogue=SWIGLU)
    a, b, out = empty_tensors(plan, M, N, K)
    assert b.shape == (2, K, N)
    plan.execute(a.zero_(), b.zero_(), out)
    for wrong, message in (
        (b[0], "b has shape .*: it must have three dimensions"),
        (b[:1], r"b has shape \(1, 136, 200\): it must be \(2, 136, 200\)"),
        (stacked_columns(N, K), "takes \\(s, 1, s\\), each s a multiple of 8"),
    ):
        with pytest.raises(ValueError, match=message):
            plan.execute(a, wrong, out)
    plan.execute(a, b[:1].expand(2, K, N), out)  # TMA takes a stride of 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda **options: pingpong((128, 56, 64), **options), "BN is 56; it must be a multiple"),
        (
            lambda **options: pingpong((64, 64, 64), swapped=True, **options),
            "64 of 64 rows of A, which are of 2 matrices; its threads must hold the products",
        ),
        (
            lambda **options: cooperative((256, 64, 64), swapped=True, **options),
            "128 of 256 rows of A, which are of 2 matrices; its threads must hold the products",
        ),
    ],
)
def test_a_tile_without_both_products_of_an_output_in_one_thread_is_refused(make, message):
    make()
    with pytest.raises(PlanError, match=message):
        make(epilogue=SWIGLU)


@pytest.mark.parametrize("matrices", [0, 1, 3, 2.0, "two", None])
def test_b_has_a_matrix_for_each_accumulator_of_the_epilogue(matrices):
    plan = pingpong((128, 96, 64), epilogue=SWIGLU)
    with pytest.raises(PlanError, match="1 and 2, one of B for each accumulator"):
        replace(plan, b=replace(plan.b, matrices=matrices)).check()
    with pytest.raises(PlanError, match="1 and 1, one of B for each accumulator"):
        replace(pingpong((128, 96, 64)), b=plan.b).check()


def test_explain_says_of_which_matrices_the_rows_of_b_are():
    text = pingpong((128, 96, 64), epilogue=SWIGLU).explain()
    assert "48 rows of each of 2 matrices, for the same outputs, loaded as ((48, 2), 64)" in text
