"""What an order of moments is made of: phases, arrivals, waits, calls of barriers, accesses."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from cutedsl_gemm.kernels.pipeline.actions import Action, Warps

Buffer: TypeAlias = tuple[object, ...]  # ("stage", block, stage, "A", slice), ("panel", block, …
Version: TypeAlias = tuple[int, ...]  # of a buffer's contents

CLUSTER = "cluster"  # the barrier of all warps of a cluster
LOADED, WRITTEN = 0, 1  # a panel of an operand is overwritten by one of a result


class Phase(NamedTuple):
    """Phase `number` of the mbarrier of a stage, or of a panel, in a block."""

    barrier: str
    block: int
    place: int  # the stage, or the panel
    number: int

    def __str__(self) -> str:
        return f"phase {self.number} of {self.barrier}[{self.place}], block {self.block}"


class Generation(NamedTuple):
    """The n-th call of a barrier by all warps that call it: they go on together."""

    barrier: str
    block: int
    number: int

    def __str__(self) -> str:
        return f"generation {self.number} of {self.barrier}, block {self.block}"


# What happens at a moment: warps take a step, or a step of theirs ends; a phase or a generation is
# complete; warps start; or what the text says.
Label: TypeAlias = "Action | Phase | Generation | Warps | str"


class Arrival(NamedTuple):
    """What counts towards a phase: arrivals, bytes that are expected, bytes that have come."""

    moment: int
    arrivals: int = 0
    expected: int = 0
    loaded: int = 0


class Waiting(NamedTuple):
    """A wait until `phase` has completed: the moment before it, and the moment it passes."""

    before: int
    passed: int
    phase: Phase


class Member(NamedTuple):
    """A call of a barrier: when warps arrive, and when they go on."""

    warps: Warps
    arrived: int
    passed: int


class Access(NamedTuple):
    """A buffer is read or written, from one moment to another.

    `version` says which contents: (k-tile,) of a stage, (tile,) of an accumulator, (0,) of what is
    written once; of a panel's buffer (tile, panel, slot, LOADED), an operand, or (…, WRITTEN).
    """

    version: Version
    writes: bool
    begin: int
    end: int
