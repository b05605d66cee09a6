"""Plans of the sm90 family on integers: exact, and nothing outside C is written."""

import itertools

import pytest
import torch
from family import ANYWHERE, CHOSEN, FAMILY, PERSISTENT, named
from on_gpu import planned_integers, poisoned, product

from cutedsl_gemm.inputs.tensors import aligned_copy
from cutedsl_gemm.kernels.compile import build

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("plan", dict.fromkeys([*FAMILY, *CHOSEN]), ids=named)
def test_every_plan_of_the_family_is_exact_on_integers_and_repeats_to_the_bit(plan):
    kernel, dtype = build.load(plan), getattr(torch, plan.dtype)
    for m, n, k in (
        (520, 264, 136),
        (264, 136, 4096),
        (8, 8, 8),
        (1000, 2048, 512),
        (16, 4096, 1096),
    ):
        a, b = planned_integers(plan, m, n, k)
        expected = product(a, b)
        for sms in (132, 132, 8):  # with 8, a block makes many tiles
            kernel(a, b, out := poisoned(m, n, dtype), sms)
            assert torch.equal(out, expected)


def odd_case(plan, m, n, k, gap, start):
    """A, B, a memory of sevens, C in it at an odd place, and the memory with the product."""
    a, b = map(aligned_copy, planned_integers(plan, m, n, k))
    lead = n + gap
    frame = torch.full((start + m * lead + 5,), 7.0, dtype=a.dtype, device="cuda")
    out, expected = frame.as_strided((m, n), (lead, 1), start), frame.clone()
    expected.as_strided(out.shape, out.stride(), start).copy_(product(a, b))
    return a, b, frame, out, expected


@pytest.mark.parametrize("plan", ANYWHERE, ids=named)
def test_threads_store_rows_of_any_length_at_any_address_and_nothing_beside_them(plan):
    kernel = build.load(plan)
    for shape in (
        (520, 261, 136, 0, 0),
        (263, 137, 1096, 3, 1),
        (1001, 2047, 512, 0, 5),
        (17, 4099, 1096, 1, 3),
        (256, 256, 64, 1, 0),
        (2, 2, 8, 0, 1),
    ):
        a, b, frame, out, expected = odd_case(plan, *shape)
        for sms in (132, 8):  # with 8, a block makes many tiles
            frame.fill_(7.0)
            kernel(a, b, out, sms)
            assert torch.equal(frame, expected), (shape, sms)


@pytest.mark.parametrize("plan", PERSISTENT, ids=named)
def test_a_block_that_makes_many_tiles_makes_each_right(plan):
    """On three or eight multiprocessors, or one cluster: dozens of tiles, and every phase of K."""
    kernel = build.load(plan)
    n, gap, start = (1504, 8, 8) if plan.stored_by_tma else (1501, 2, 3)
    for k in (40, 200, 712):  # one k-tile, fewer than the stages, more
        a, b, frame, out, expected = odd_case(plan, 1100, n, k, gap, start)
        for sms, _ in itertools.product((3, 8), range(3)):
            frame.fill_(7.0)
            kernel(a, b, out, max(sms, plan.cluster_size))
            assert torch.equal(frame, expected), (k, sms)
