"""The kernels by name, in the order of the ladder: what each asks of tensors, and its plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import torch
from torch import Tensor

from cutedsl_gemm.kernels.compile.build import ARCH
from cutedsl_gemm.kernels.plan.checks import PlanError
from cutedsl_gemm.kernels.plan.kernel_plan import KernelPlan
from cutedsl_gemm.kernels.simt import plan as simt
from cutedsl_gemm.kernels.sm70 import plan as sm70
from cutedsl_gemm.kernels.sm80 import plan as sm80
from cutedsl_gemm.kernels.sm80.stage import ALIGNMENTS
from cutedsl_gemm.kernels.sm90.mainloop import Tile
from cutedsl_gemm.kernels.sm90.plan import cooperative, pingpong, single
from cutedsl_gemm.kernels.sm90.split_plan import split
from cutedsl_gemm.problem import TMA, Problem, Terms, walkable
from cutedsl_gemm.select.choose import choose, choose_among


@dataclass(frozen=True)
class Kernel:
    """A rung of the ladder."""

    name: str
    terms: Terms
    plan: Callable[[Problem, Tile | None], KernelPlan]
    maker: Callable[..., KernelPlan]  # of its plans; its docstring says what is new
    smem_bytes: int = 0  # of a block, where every plan takes as much
    narrower: tuple[Terms, ...] = ()  # terms of plans for tensors that `terms` do not fit

    def terms_for(self, *tensors: Tensor) -> Terms:
        """The widest terms whose strides all the tensors have; the last, where they have none's."""
        *wider, narrowest = (self.terms, *self.narrower)
        fitting = (terms for terms in wider if all(walkable(x, terms) for x in tensors))
        return next(fitting, narrowest)

    @property
    def family(self) -> str:
        """The hardware that it is written for, as in the first part of its name."""
        return self.name.partition("_")[0]

    def arch(self, capability: tuple[int, int]) -> str | None:
        """What to compile for on a device; None where the kernel cannot run there."""
        if self.family == "sm90":
            return ARCH if capability == (9, 0) else None
        major, minor = capability
        return f"sm_{major}{minor}{'a' if major >= 9 else ''}" if major >= 8 else None


def named(name: object, device: torch.device | None = None) -> Kernel:
    """The kernel of a name, or the best for a device where the name is None.

    ValueError with the names where there is none.

    >>> named(None).name, named("simt_naive").family
    ('sm90', 'simt')
    """
    if name is None:
        return best(device)
    if isinstance(name, str) and name in KERNELS:
        return KERNELS[name]
    raise ValueError(f"kernel is {name!r}: it must be one of {', '.join(KERNELS)}, or None")


def best(device: torch.device | None) -> Kernel:
    """The default for a device: Hopper's own, or else the last sm80 rung whose memory it has.

    On a CPU, and where none can run, it is Hopper's.
    """
    if device is None or device.type != "cuda":
        return KERNELS[DEFAULT]
    capability = torch.cuda.get_device_capability(device)
    room = torch.cuda.get_device_properties(device).shared_memory_per_block_optin
    older = (kernel for kernel in reversed(LADDER) if kernel.family == "sm80")
    fitting = (kernel for kernel in older if kernel.smem_bytes <= room)
    runs = (kernel for kernel in (KERNELS[DEFAULT], *fitting) if kernel.arch(capability))
    return next(runs, KERNELS[DEFAULT])


def _fixed(
    rung: Callable[..., KernelPlan], narrows: bool, problem: Problem, tile: Tile | None
) -> KernelPlan:
    """The plan of a rung whose tile is part of what it teaches."""
    k = problem.mnk[2]
    dtype = () if problem.dtype == "float32" else (problem.dtype,)
    plan = rung(*dtype, *problem.majors, *((problem.unit,) if narrows else ()))
    if k % plan.alignment and isinstance(plan, sm70.Sm70Plan) and "K" in problem.majors:
        raise PlanError(
            f"K is {k}: {plan.name} takes the residue of K first, so that an operand whose rows of "
            f"K are contiguous must have a K that is a multiple of {plan.alignment}; pad both with "
            "zeros, or pass a column-major and b row-major"
        )
    if tile not in (None, plan.tile):
        raise PlanError(
            f"tile is {tile!r}: this rung of the ladder has the tile {plan.tile}; leave tile away"
        )
    return plan


def _rung(
    rung: Callable[..., simt.SimtPlan | sm80.Sm80Plan],
    *dtypes: torch.dtype,
    alignments: tuple[int, ...] = (),
) -> Kernel:
    """A rung; where it takes them, with plans for tensors of several alignments."""
    plan = rung()
    widest, *narrower = (
        Terms(plan.name, dtypes, alignment) for alignment in alignments or (plan.alignment,)
    )
    made = partial(_fixed, cache(rung), bool(alignments))
    return Kernel(plan.name, widest, made, rung, plan.smem_bytes, tuple(narrower))


DEFAULT = "sm90"  # whichever of its family the model expects to end first
LADDER = (
    *(_rung(rung, torch.float32) for rung in simt.RUNGS),
    *(_rung(rung, torch.float16) for rung in sm70.RUNGS),
    *(_rung(rung, torch.bfloat16, torch.float16, alignments=ALIGNMENTS) for rung in sm80.RUNGS),
    *(
        Kernel(f"sm90_{make.__name__}", TMA, partial(choose_among, make), make)
        for make in (single, cooperative, pingpong, split)
    ),
    Kernel(DEFAULT, TMA, choose, choose),
)
KERNELS: dict[str, Kernel] = {kernel.name: kernel for kernel in LADDER}
