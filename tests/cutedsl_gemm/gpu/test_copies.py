"""The copy kernel on an H100: right to the bit, from any address to any address."""

import itertools
import random

import pytest
import torch
from on_gpu import DTYPES

from cutedsl_gemm.calls import copies
from cutedsl_gemm.kernels.compile import build
from cutedsl_gemm.kernels.copies.plan import WIDTHS, copy_plan, copy_plans

pytestmark = pytest.mark.gpu


def odd(rows, columns, gap, start, dtype):
    """A matrix of random bits in memory of its own, and that memory."""
    lead = columns + gap
    flat = torch.randint(-(2**15), 2**15, (start + rows * lead + 5,), device="cuda")
    flat = flat.to(torch.int16).view(dtype)
    return flat, flat.as_strided((rows, columns), (lead, 1), start)


@pytest.mark.compiles(plans=copy_plans)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_copies_are_exact_to_the_bit_and_write_nothing_else(dtype):
    draw = random.Random(0)
    for _ in range(200):
        pairs, expected = [], []
        for _ in range(draw.choice((1, 2))):
            rows, columns = (draw.randint(1, draw.choice((9, 80, 600))) for _ in range(2))
            _, source = odd(rows, columns, draw.randint(0, 9), draw.randint(0, 9), dtype)
            flat, target = odd(rows, columns, draw.randint(0, 9), draw.randint(0, 9), dtype)
            after = flat.clone()
            after.as_strided(target.shape, target.stride(), target.storage_offset()).copy_(source)
            expected.append((flat, after))
            pairs.append((source.mT, target.mT) if draw.random() < 0.5 else (source, target))
        copies.copy(*pairs)
        for flat, after in expected:
            assert torch.equal(flat.view(torch.int16), after.view(torch.int16)), pairs


PLANS = {width: copy_plan(tile=(16, 32 * width), width=width) for width in WIDTHS}


@pytest.mark.compiles(plans=lambda width: PLANS[width])
@pytest.mark.parametrize("width", WIDTHS)
def test_words_of_every_width_copy_to_the_bit(width):
    run = build.load(PLANS[width])
    for start, gap in itertools.product(range(width), repeat=2):
        _, source = odd(77, 131, gap, start, torch.bfloat16)
        flat, target = odd(77, 131, 3, gap, torch.bfloat16)
        after = flat.clone()
        after.as_strided(target.shape, target.stride(), target.storage_offset()).copy_(source)
        run(((source, target),))
        assert torch.equal(flat.view(torch.int16), after.view(torch.int16)), (start, gap)
