"""GEMM for Hopper, built of the layouts that its plan shows: `gemm(a, b)` on torch tensors."""

from importlib.util import find_spec
from typing import Any

from layouts import __version__

__all__ = ["KERNELS", "PlanError", "__version__", "explain", "gemm", "plan_for"]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    """The public names, loaded when first used: a plan needs no torch, and torch takes a second."""
    if name in ("KERNELS", "explain", "gemm", "plan_for"):
        if find_spec("torch") is None:
            raise ImportError("gemm needs torch and the CuTe DSL: pip install 'cutedsl-gemm[gpu]'")
        from cutedsl_gemm import api
        from cutedsl_gemm.select import registry as rungs

        return tuple(rungs.KERNELS) if name == "KERNELS" else getattr(api, name)
    if name == "PlanError":
        from cutedsl_gemm.kernels.plan.checks import PlanError

        return PlanError
    raise AttributeError(f"module 'cutedsl_gemm' has no attribute {name!r}")
