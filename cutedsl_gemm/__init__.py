"""GEMM for Hopper, built from the layouts of its plan: `gemm(a, b)` on torch tensors."""

from importlib.util import find_spec
from typing import Any

from layouts import __version__

_API = "explain", "gemm", "plan_for"
_FUNCTIONS = "addmm", "geglu", "linear", "swiglu"

__all__ = ["KERNELS", "PlanError", "__version__"]
__all__ += sorted((*_API, *_FUNCTIONS))


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    """The public names, loaded at first use: importing torch takes a second; a plan needs none."""
    if name == "KERNELS" or name in _API + _FUNCTIONS:
        if find_spec("torch") is None:
            raise ImportError("gemm needs torch and the CuTe DSL: pip install 'cutedsl-gemm[gpu]'")
        if name == "KERNELS":
            from cutedsl_gemm.select import registry

            return tuple(registry.KERNELS)
        from cutedsl_gemm import api, functions

        return getattr(api if name in _API else functions, name)
    if name == "PlanError":
        from cutedsl_gemm.kernels.plan.checks import PlanError

        return PlanError
    raise AttributeError(f"module 'cutedsl_gemm' has no attribute {name!r}")
