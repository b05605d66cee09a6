"""autotuned(): gemm is a candidate for each mm that Inductor compiles in the context."""

import pytest
import torch
from torch._inductor import config
from torch._inductor.select_algorithm import extern_kernels

from cutedsl_gemm import autotuned
from cutedsl_gemm.models.inductor import cutedsl_gemm_mm


@pytest.mark.usefixtures("small_tiles")
def test_the_context_adds_one_candidate_and_takes_it_away():
    for _ in range(2):
        with autotuned():
            assert config.external_matmul == [cutedsl_gemm_mm]
        assert config.external_matmul == []
    candidate = extern_kernels.cutedsl_gemm_mm  # as compiled graphs call it
    for dtype in (torch.bfloat16, torch.float32):  # gemm has no fp32 of TMA: torch multiplies
        a, b, out = (torch.randn(each).to(dtype) for each in ((8, 16), (16, 8), (8, 8)))
        candidate(a, b, out=out)
        torch.testing.assert_close(out, a @ b)
