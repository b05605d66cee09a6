"""gemm as code that torch.compile leaves alone; this loads torch's compiler."""

import torch

from cutedsl_gemm import api

gemm = torch.compiler.disable(api.gemm)
