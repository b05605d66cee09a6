"""Batches on a GPU: exact on integers, and nothing outside C is written."""

from math import prod

import pytest
import torch
from family import BATCHED, named
from on_gpu import integers, planned_integers, product

from cutedsl_gemm import enabled, gemm
from cutedsl_gemm.kernels.compile import build
from cutedsl_gemm.kernels.device.occupancy import multiprocessors
from cutedsl_gemm.measure import batches
from cutedsl_gemm.measure.distribution import plan_of

pytestmark = pytest.mark.gpu

SHAPES = (3, 520, 264, 136), (17, 8, 8, 8), (5, 200, 1000, 584), (40, 72, 40, 64)  # L, M, N, K
DRAWN = [each for each in batches.draw(60, seed=5) if each.flops < 2e11][:24]


@pytest.mark.parametrize("plan", BATCHED, ids=named)
def test_every_matrix_is_exact_and_nothing_outside_c_is_written(plan):
    kernel, most = build.load(plan), multiprocessors(torch.device("cuda", 0), plan)
    for count, m, n, k in SHAPES:
        pairs = [planned_integers(plan, m, n, k) for _ in range(count)]
        a, b = map(stacked, zip(*pairs, strict=True))
        frame = torch.full((count, m + 3, n + 16), 7.0, dtype=a.dtype, device="cuda")
        out, expected = frame[:, 2:-1, 8:-8], frame.clone()
        expected[:, 2:-1, 8:-8] = product(a, b)
        for sms in (most, most, 8):  # with 8, a block makes many tiles
            out.fill_(torch.nan)
            kernel(a, b, out, sms)
            assert torch.equal(frame, expected)


def stacked(matrices):
    """A batch whose matrices have the major of these."""
    if matrices[0].stride(1) == 1:
        return torch.stack(matrices)
    return torch.stack([each.mT for each in matrices]).mT


@pytest.mark.compiles(plans=lambda: [*map(plan_of, DRAWN)])
def test_random_batches_are_exact():
    for each in DRAWN:
        a, b = each.operands(lambda *shape: integers(1, prod(shape)).view(shape))
        assert torch.equal(gemm(a, b), product(a, b)), each


def test_gradients_and_products_in_the_context_are_exact():
    a, b, dy = (integers(6, m * n).view(6, m, n) for m, n in ((256, 192), (192, 320), (256, 320)))
    with enabled():
        assert torch.equal(torch.bmm(a, b), product(a, b))
    of_a, of_b = torch.autograd.grad(gemm(a.requires_grad_(), b.requires_grad_()), (a, b), dy)
    assert torch.equal(of_a, product(dy, b.mT))
    assert torch.equal(of_b, product(a.mT, dy))
