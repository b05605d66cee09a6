"""The kernels by name, in the order of the ladder: their requirements, and the plans they make."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import torch
from torch import Tensor

from cutedsl_gemm.inputs.problem import TMA, Problem, Requirements
from cutedsl_gemm.inputs.tensors import fits
from cutedsl_gemm.kernels.compile.build import ARCH
from cutedsl_gemm.kernels.epilogue.expression import PLAIN
from cutedsl_gemm.kernels.plan.checks import PlanError
from cutedsl_gemm.kernels.plan.kernel_plan import KernelPlan
from cutedsl_gemm.kernels.simt import rungs as simt
from cutedsl_gemm.kernels.sm70 import plan as sm70
from cutedsl_gemm.kernels.sm80 import rungs as sm80
from cutedsl_gemm.kernels.sm80.operand import ALIGNMENTS
from cutedsl_gemm.kernels.sm90 import rungs as sm90
from cutedsl_gemm.kernels.sm90.operand import Tile
from cutedsl_gemm.select.choose import choose, choose_among
from layouts.errors import brief, did_you_mean


@dataclass(frozen=True)
class Kernel:
    """A rung of the ladder: a name that `gemm(a, b, kernel=name)` takes, and how it makes plans."""

    name: str
    requirements: Requirements
    plan: Callable[[Problem, Tile | None], KernelPlan]
    maker: Callable[..., KernelPlan]  # of its plans; its docstring is the rung's description
    smem_bytes: int = 0  # of a block, if all its plans take the same
    narrower: tuple[Requirements, ...] = ()  # of its plans for tensors of smaller alignment

    def requirements_for(self, *tensors: Tensor) -> Requirements:
        """The widest alignment that the strides of all tensors have, or else the narrowest."""
        *wider, narrowest = (self.requirements, *self.narrower)
        met = (each for each in wider if all(fits(tensor, each) for tensor in tensors))
        return next(met, narrowest)

    @property
    def family(self) -> str:
        """The hardware that it is written for: the first part of its name."""
        return self.name.partition("_")[0]

    def arch(self, capability: tuple[int, int]) -> str | None:
        """The architecture to compile for on a device; None if the kernel cannot run there."""
        if self.family == "sm90":
            return ARCH if capability == (9, 0) else None
        major, minor = capability
        return f"sm_{major}{minor}{'a' if major >= 9 else ''}" if major >= 8 else None


def named(name: object, device: torch.device | None = None) -> Kernel:
    """The kernel of a name; the best kernel for the device if the name is None.

    ValueError, with all names, for any other name.

    >>> named(None).name, named("simt_naive").family
    ('sm90', 'simt')
    """
    if name is None:
        return default_kernel(device)
    if isinstance(name, str) and name in KERNELS:
        return KERNELS[name]
    nearest = did_you_mean(name, KERNELS) if isinstance(name, str) else ""
    raise ValueError(
        f"kernel is {brief(name)}: it must be one of {', '.join(KERNELS)}, or None{nearest}"
    )


def default_kernel(device: torch.device | None) -> Kernel:
    """The default for a device: sm90 on Hopper, else the last sm80 rung whose shared memory fits.

    On a CPU, and on a GPU that runs neither, it is sm90.
    """
    if device is None or device.type != "cuda":
        return KERNELS[DEFAULT]
    capability = torch.cuda.get_device_capability(device)
    available = torch.cuda.get_device_properties(device).shared_memory_per_block_optin
    older = (kernel for kernel in reversed(LADDER) if kernel.family == "sm80")
    fitting = (kernel for kernel in older if kernel.smem_bytes <= available)
    runs = (kernel for kernel in (KERNELS[DEFAULT], *fitting) if kernel.arch(capability))
    return next(runs, KERNELS[DEFAULT])


def _fixed(
    maker: Callable[..., KernelPlan], aligned: bool, problem: Problem, tile: Tile | None
) -> KernelPlan:
    """The plan of a rung with a fixed tile; `aligned` rungs have one for each alignment."""
    a_major, b_major = problem.majors
    alignment = {"alignment": problem.alignment} if aligned else {}
    fused = {} if problem.epilogue is PLAIN else {"epilogue": problem.epilogue}
    plan = maker(dtype=problem.dtype, a_major=a_major, b_major=b_major, **alignment, **fused)
    if isinstance(plan, sm70.Sm70Plan):
        plan.check_k(problem.mnk[2])
    if problem.invariant:
        raise PlanError(
            f"only the sm90 kernels, for Hopper, support invariant=True, and the kernel is "
            f"{plan.name}: omit invariant, or take kernel='sm90'"
        )
    if tile not in (None, plan.tile):
        raise PlanError(f"tile is {tile!r}: {plan.name} has the fixed tile {plan.tile}; omit tile")
    return plan


def _rung(
    maker: Callable[..., KernelPlan],
    *dtypes: torch.dtype,
    alignments: tuple[int, ...] = (),
) -> Kernel:
    """A rung with a fixed tile; `alignments` in elements, the widest first, if it has several."""
    plan = maker()
    widest, *narrower = (
        Requirements(plan.name, dtypes, alignment) for alignment in alignments or (plan.alignment,)
    )
    make = partial(_fixed, cache(maker), bool(alignments))
    return Kernel(plan.name, widest, make, maker, plan.smem_bytes, tuple(narrower))


DEFAULT = "sm90"  # the kernel of that family that the model expects to be fastest
LADDER = (
    *(_rung(maker, torch.float32) for maker in simt.RUNGS),
    *(_rung(maker, torch.float16) for maker in sm70.RUNGS),
    *(_rung(maker, torch.bfloat16, torch.float16, alignments=ALIGNMENTS) for maker in sm80.RUNGS),
    *(
        Kernel(f"sm90_{maker.__name__}", TMA, partial(choose_among, maker), maker)
        for maker in sm90.RUNGS
    ),
    Kernel(DEFAULT, TMA, choose, choose),
)
KERNELS: dict[str, Kernel] = {kernel.name: kernel for kernel in LADDER}
