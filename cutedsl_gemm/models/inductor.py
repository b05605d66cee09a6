"""autotuned(): gemm as a candidate where torch.compile measures kernels for mm.

torch 2.13 has a list of functions (a, b, out) for that, torch._inductor.config.external_matmul.
Inductor measures each beside cuBLAS and its own templates in max-autotune, for aten.mm alone: not
for addmm, nor bmm.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch
from torch import Tensor

from cutedsl_gemm.api import gemm
from cutedsl_gemm.inputs.problem import TMA


def cutedsl_gemm_mm(a: Tensor, b: Tensor, out: Tensor) -> None:
    """a · b into out: by gemm where it has a kernel. Compiled graphs call it by this name."""
    (gemm if a.dtype in TMA.dtypes else torch.mm)(a, b, out=out)


def autotuned() -> AbstractContextManager[None]:
    """A context in which torch.compile(mode="max-autotune") also measures gemm for each mm.

    Call the compiled function in it: torch compiles at the first call. The model needs no
    `convert`, whose layers Inductor does not measure. Later calls run what was chosen, in the
    context or not.

    >>> import torch._inductor.config as config
    >>> with autotuned():
    ...     config.external_matmul[-1].__name__
    'cutedsl_gemm_mm'
    >>> config.external_matmul
    []
    """
    from torch._inductor import config
    from torch._inductor.kernel.mm import lazy_register_extern_choice
    from torch._inductor.select_algorithm import extern_kernels

    if not hasattr(extern_kernels, cutedsl_gemm_mm.__name__):
        lazy_register_extern_choice(cutedsl_gemm_mm)  # now: a graph from the cache needs the name
    candidates = [*config.external_matmul, cutedsl_gemm_mm]
    patched: AbstractContextManager[None] = config.patch(external_matmul=candidates)
    return patched
