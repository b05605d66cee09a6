"""What the warps of a kernel do, as data: steps, loops, agents, and the Pipeline of them all.

A Pipeline says when data may be touched, as a plan's layouts say where it lies. It is a small
frozen value: `print(plan.pipeline)` is a listing of the kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

# When a step is taken. "later tiles": unless this is the block's first tile. "not the last tile":
# if the block has another one. "reloaded": if a later k-tile takes the stage of this one. "exists":
# if the block has this k-tile. "in the tile": if the tile has it.
Condition: TypeAlias = Literal[
    "always", "later tiles", "not the last tile", "reloaded", "exists", "in the tile"
]
NAMED_BARRIERS = 16  # of a block (PTX ISA, bar)
Ranks: TypeAlias = tuple[tuple[int, ...], ...]  # rank of a block in its cluster → ranks of others


@dataclass(frozen=True, kw_only=True)
class Step:
    """What the warps of an agent do once.

    A step of a k-tile concerns the one that is `lag` before the loop's; a negative lag is ahead.
    If `leader`, only the first warp of the agent takes the step.
    """

    when: Condition = "always"
    leader: bool = False
    lag: int = 0

    @property
    def of_k_tile(self) -> bool:
        """Whether the step concerns a k-tile, and with it a stage."""
        of_stages = isinstance(self, (Wait, Peek, Arrive, Expect, Load, Multiply))
        return of_stages and getattr(self, "panel", None) is None


# Mbarriers (PTX ISA, Parallel Synchronization and Communication Instructions: mbarrier)


@dataclass(frozen=True)
class Wait(Step):
    """mbarrier.try_wait.parity until it passes, with the parity of its phase.

    The n-th k-tile of a stage has phase n and parity n % 2, and so has the n-th tile of an agent if
    the mbarrier is that of a `panel`. `flipped` is the other parity, which lets the first wait
    pass, and each further one when phase n - 1 has completed.
    """

    barrier: str
    flipped: bool = False
    panel: int | None = None


@dataclass(frozen=True)
class Peek(Step):
    """mbarrier.test_wait.parity: whether the phase of a later `Wait` has completed already.

    If it has, the warps skip that wait. Either way they go on at once.
    """

    barrier: str


@dataclass(frozen=True)
class Arrive(Step):
    """mbarrier.arrive by each warp, on the mbarrier of every block in `blocks`."""

    barrier: str
    blocks: Ranks


@dataclass(frozen=True)
class Expect(Step):
    """mbarrier.arrive.expect_tx: one arrival, and `bytes` that loads will complete.

    The mbarrier is that of the k-tile's stage, or of a `panel`.
    """

    barrier: str
    bytes: int
    panel: int | None = None


# Data


@dataclass(frozen=True)
class Load(Step):
    """cp.async.bulk.tensor: TMA loads slice `slices[rank]` of an operand's k-tile into its stage.

    It goes to all `blocks[rank]`, and its bytes complete on the mbarrier of each. If there are
    none, block `rank` loads nothing.
    """

    operand: str
    barrier: str
    bytes: int
    slices: tuple[int, ...]
    blocks: Ranks


@dataclass(frozen=True)
class Multiply(Step):
    """The products of a k-tile: wgmma fence, wgmmas, commit_group."""


@dataclass(frozen=True)
class MultiplyWait(Step):
    """wgmma.wait_group: all but the last `pending` groups are complete."""

    pending: int


@dataclass(frozen=True)
class LoadPanel(Step):
    """TMA loads a panel of an operand of the epilogue into a buffer; bytes as for `Load`.

    They complete on the mbarrier of the panel. Each operand has a slot, and so has each result.
    """

    operand: str
    barrier: str
    bytes: int
    panel: int
    buffer: int
    slot: int = 0


@dataclass(frozen=True)
class ReadPanel(Step):
    """ldmatrix of a panel of an operand: each warp reads the rows that it writes by WritePanel."""

    panel: int
    buffer: int
    slot: int = 0


@dataclass(frozen=True)
class WritePanel(Step):
    """stmatrix of a panel of the tile into a buffer of shared memory, with the generic proxy.

    Each warp writes rows of its own.
    """

    panel: int
    buffer: int
    slot: int = 0


@dataclass(frozen=True)
class Fence(Step):
    """fence.proxy.async: what the generic proxy wrote is visible to TMA."""


@dataclass(frozen=True)
class StorePanel(Step):
    """TMA stores a buffer to its panel of a result, and commit_group; or threads do, at once."""

    panel: int
    buffer: int
    asynchronous: bool = True
    slot: int = 0
    result: str = "C"


@dataclass(frozen=True)
class StoreWait(Step):
    """cp.async.bulk.wait_group.read: TMA has read all but the last `pending` groups.

    If `written`, wait_group: what it has read is in global memory, too.
    """

    pending: int
    written: bool = False


@dataclass(frozen=True)
class StoreResults(Step):
    """The threads store results of a panel from their registers to global memory."""

    panel: int


@dataclass(frozen=True)
class StoreAccumulator(Step):
    """The threads store their accumulators to global memory."""


@dataclass(frozen=True)
class Reduce(Step):
    """The threads of a second kernel add what StoreAccumulator wrote, and store C."""


# Rows of an operand that other GPUs send


@dataclass(frozen=True)
class SendRows(Step):
    """Copy engines bring the rows of an operand that a tile needs, and then write their flag."""

    operand: str


@dataclass(frozen=True)
class WaitForRows(Step):
    """ld.acquire.sys of the flags of the tile's rows until they have come.

    `by_tma` adds fence.proxy.async, since TMA reads the rows. Rows of an operand are awaited once,
    and only if another GPU sends them; those of the result, only if they are this GPU's.
    """

    operand: str
    by_tma: bool = True


@dataclass(frozen=True)
class AddRows(Step):
    """The threads add what other GPUs have sent to panels of the accumulator.

    The tiles of other GPUs' rows add nothing.
    """

    operand: str
    panel: int  # the first
    panels: int  # how many


@dataclass(frozen=True)
class TellStored(Step):
    """atom.add.release.sys: count a tile's elements, which copy engines then send to another GPU.

    The tiles of this GPU's rows are not counted.
    """


# Barriers of a block, of a cluster, of a grid


@dataclass(frozen=True)
class Sync(Step):
    """bar.sync: wait until all threads of a named barrier are here."""

    barrier: str


@dataclass(frozen=True)
class SyncArrive(Step):
    """bar.arrive: arrive at a named barrier without waiting."""

    barrier: str


@dataclass(frozen=True)
class InitBarriers(Step):
    """mbarrier.init of every mbarrier of the block."""


@dataclass(frozen=True)
class ClusterSync(Step):
    """barrier.cluster.arrive and wait: all warps of all blocks of the cluster are here."""


@dataclass(frozen=True)
class GridWait(Step):
    """griddepcontrol.wait: the previous launch has ended, and its memory is visible."""


@dataclass(frozen=True)
class GridLaunch(Step):
    """griddepcontrol.launch_dependents: the next launch may start."""


@dataclass(frozen=True)
class Registers(Step):
    """setmaxnreg: each thread of the warps then has `count` registers."""

    count: int


MBARRIER_STEPS = Wait | Peek | Arrive | Expect | Load | LoadPanel


@dataclass(frozen=True)
class Loop:
    """Steps, over and over.

    "tiles": the block's tiles, from number `first` on, every `step`-th; none if they have no
    k-tiles. The others are k-tiles of the tile: all, all but the first, at most the first `step`,
    the last. A step of a k-tile outside these loops concerns the first k-tile of its tile.
    """

    over: Literal["tiles", "k_tiles", "further k_tiles", "first k_tiles", "last k_tile"]
    body: tuple[Step | Loop, ...]
    first: int = 0
    step: int = 1


Program: TypeAlias = tuple["Step | Loop", ...]


@dataclass(frozen=True)
class Mbarrier:
    """One mbarrier for each stage; or one for each of the `panels` of an agent's tile, if any.

    A phase completes after `arrivals` arrivals and its bytes.
    """

    name: str
    arrivals: int
    panels: int = 0


@dataclass(frozen=True)
class NamedBarrier:
    """A named barrier of the block: its number, and the threads that it counts."""

    name: str
    number: int
    threads: int


@dataclass(frozen=True)
class Agent:
    """Warps of a block that run one program. `second_kernel` starts as a dependent launch.

    An agent with `other_gpu` stands for what other GPUs do for the block.
    """

    name: str
    warps: int
    program: Program
    second_kernel: bool = False
    other_gpu: bool = False


@dataclass(frozen=True)
class Pipeline:
    """The protocol of a kernel: the agents of each block, and the barriers between them.

    A ring of `stages` holds the k-tiles: the block's k-tile number i, counted over all its tiles,
    is in stage i % stages, and it is the stage's phase i // stages. An agent's tile number i,
    counted over its own tiles, is phase i of the mbarrier of each of its panels.
    """

    stages: int
    blocks: int  # of a cluster
    persistent: bool  # whether a block may have several tiles
    agents: tuple[Agent, ...]
    mbarriers: tuple[Mbarrier, ...] = ()
    named: tuple[NamedBarrier, ...] = ()

    def __post_init__(self) -> None:
        """ValueError unless each barrier has a name, and each named barrier a number, of its own.

        And unless each step's barrier is among them, with an mbarrier of the step's panel.
        """
        mbarriers = [each.name for each in self.mbarriers]
        named = [each.name for each in self.named]
        names = [*mbarriers, *named]
        numbers = [each.number for each in self.named]
        if twice := {each for each in names if names.count(each) > 1}:
            raise ValueError(f"two barriers are named {', '.join(twice)}: give each its own name")
        if len({*numbers}) < len(numbers) or not {*numbers} <= {*range(NAMED_BARRIERS)}:
            raise ValueError(
                f"named barriers have the numbers {numbers}: each must have one of its own, "
                f"0 to {NAMED_BARRIERS - 1}"
            )
        for agent in self.agents:
            for step in walk(agent.program):
                if isinstance(step, MBARRIER_STEPS):
                    self._check_barrier(agent, step, "mbarrier", mbarriers)
                    self._check_panel(agent, step)
                elif isinstance(step, Sync | SyncArrive):
                    self._check_barrier(agent, step, "named barrier", named)

    def _check_barrier(self, agent: Agent, step: Any, kind: str, known: list[str]) -> None:
        if step.barrier not in known:
            raise ValueError(f"{agent.name}: {step}: no {kind} of the pipeline is {step.barrier}")

    def _check_panel(self, agent: Agent, step: Any) -> None:
        panel, has = getattr(step, "panel", None), self.mbarrier(step.barrier).panels
        if has if panel is None else not 0 <= panel < has:
            raise ValueError(
                f"{agent.name}: {step}: {step.barrier} has "
                f"{f'mbarriers of panels 0 to {has - 1}' if has else 'one a stage'}"
            )

    @property
    def sent_operands(self) -> set[str]:
        """The operands of which other GPUs send rows."""
        every = (step for agent in self.agents for step in walk(agent.program))
        return {step.operand for step in every if isinstance(step, SendRows | WaitForRows)}

    def __str__(self) -> str:
        from cutedsl_gemm.kernels.pipeline.listing import listing

        return listing(self)

    def stage_and_parity(self, k_tile: Any, flipped: bool = False) -> tuple[Any, Any]:
        """The stage of the block's `k_tile`-th k-tile, and the parity of its phase, or the other.

        `k_tile` is an int, or a kernel's integer.

        >>> from cutedsl_gemm.kernels.sm90.rungs import pingpong  # 6 stages
        >>> [pingpong().pipeline.stage_and_parity(k_tile) for k_tile in (1, 7, 13)]
        [(1, 0), (1, 1), (1, 0)]
        """
        return k_tile % self.stages, self.parity(k_tile // self.stages, flipped)

    def parity(self, phase: Any, flipped: bool = False) -> Any:
        """The parity of a phase, or the other."""
        return phase % 2 ^ 1 if flipped else phase % 2

    def mbarrier(self, name: str) -> Mbarrier:
        """The mbarriers of this name."""
        return next(each for each in self.mbarriers if each.name == name)

    def named_barrier(self, name: str) -> NamedBarrier:
        """The named barrier of this name."""
        return next(each for each in self.named if each.name == name)


def walk(program: Program) -> Iterator[Step]:
    """Every step of a program, in its order, those of loops once."""
    for each in program:
        if isinstance(each, Loop):
            yield from walk(each.body)
        else:
            yield each


def loops(program: Program) -> Iterator[Loop]:
    """Every loop of a program, an outer one before those inside it."""
    for each in program:
        if isinstance(each, Loop):
            yield each
            yield from loops(each.body)
