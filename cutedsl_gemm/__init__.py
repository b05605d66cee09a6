"""GEMM for Hopper, built from the layouts of its plan: `gemm(a, b)` on torch tensors."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from layouts import __version__

_MODULES = {  # of the names that need torch
    **dict.fromkeys(("explain", "gemm", "plan_for"), "api"),
    **dict.fromkeys(("addmm", "geglu", "linear", "swiglu"), "layers.functions"),
    "mlp": "layers.mlp",
    **dict.fromkeys(("convert", "restore"), "models.conversion"),
    "enabled": "models.mode",
    "autotuned": "models.inductor",
    **dict.fromkeys(("all_gather_gemm", "gemm_reduce_scatter"), "distributed.collectives"),
}

#: The names that `gemm(a, b, kernel=...)` takes, from naive SIMT to pingpong.
KERNELS: tuple[str, ...]

__all__ = ["KERNELS", "PlanError", "__version__"]
__all__ += sorted(_MODULES)


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    """The public names, loaded at first use: importing torch takes a second; a plan needs none."""
    if name == "KERNELS" or name in _MODULES:
        if find_spec("torch") is None:
            from cutedsl_gemm.kernels.compile.versions import installation

            raise ImportError(f"cutedsl_gemm.{name} needs torch: {installation()}")
        if name == "KERNELS":
            from cutedsl_gemm.select import registry

            return tuple(registry.KERNELS)
        found = globals()[name] = getattr(import_module(f"cutedsl_gemm.{_MODULES[name]}"), name)
        return found
    if name == "PlanError":
        from cutedsl_gemm.kernels.plan.checks import PlanError

        return PlanError
    raise AttributeError(f"module 'cutedsl_gemm' has no attribute {name!r}")
