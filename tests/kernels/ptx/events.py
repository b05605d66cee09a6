"""The events of a thread: the instructions by which it meets memory and other threads.

Each event is a frozen dataclass with the values that its instruction had. Their names are those of
PTX. Addresses are in bytes from the start of dynamic shared memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from layouts import WgmmaDescriptor

# Where a value in a register comes from. Value i of wgmma's fragment of accumulator a is (a, i);
# accumulators are numbered in the order in which the thread begins them. A value that was loaded
# from shared memory is its address. What is computed from several has the set of their sources.
# Others are None.
Source: TypeAlias = tuple[int, int] | int | frozenset[tuple[int, int] | int] | None


@dataclass(frozen=True, slots=True)
class MbarrierInit:
    """mbarrier.init: a phase completes after `count` arrivals."""

    address: int
    count: int


@dataclass(frozen=True, slots=True)
class MbarrierTryWait:
    """mbarrier.try_wait.parity, until it succeeds: wait for the phase of this parity."""

    address: int
    parity: int


@dataclass(frozen=True, slots=True)
class MbarrierTestWait:
    """mbarrier.test_wait.parity: whether the phase of this parity has completed.

    The machine lets every second test of a thread pass.
    """

    address: int
    parity: int
    passes: bool


@dataclass(frozen=True, slots=True)
class MbarrierArrive:
    """mbarrier.arrive, at the mbarrier of block `rank` of the cluster, or of this block (None)."""

    address: int
    rank: int | None
    count: int


@dataclass(frozen=True, slots=True)
class MbarrierArriveExpectTx:
    """mbarrier.arrive.expect_tx: the phase also waits for so many bytes."""

    address: int
    bytes: int


@dataclass(frozen=True, slots=True)
class TmaLoad:
    """cp.async.bulk.tensor from global to shared memory.

    `descriptor` is the kernel's argument that holds the tensor map, and `coordinates` are those of
    the box's first element, the contiguous mode first. Bit r of `multicast` is block r of the
    cluster; without multicast it is None.
    """

    descriptor: str
    coordinates: tuple[int, ...]
    address: int
    mbarrier: int
    multicast: int | None
    cache_hint: int


@dataclass(frozen=True, slots=True)
class TmaStore:
    """cp.async.bulk.tensor from shared to global memory."""

    descriptor: str
    coordinates: tuple[int, ...]
    address: int
    cache_hint: int


@dataclass(frozen=True, slots=True)
class BulkCommitGroup:
    """cp.async.bulk.commit_group."""


@dataclass(frozen=True, slots=True)
class BulkWaitGroup:
    """cp.async.bulk.wait_group: wait until at most `pending` groups are in flight.

    With `.read`, until all others have read their sources.
    """

    pending: int
    read: bool


@dataclass(frozen=True, slots=True)
class Wgmma:
    """wgmma.mma_async: accumulator `accumulator` of shape (m, n) = or += A (m, k) · B (k, n).

    `a` and `b` are the start addresses in the matrix descriptors, and `a_descriptor` and
    `b_descriptor` their other fields. If `scale_d` is false, the accumulator is not read.
    """

    shape: tuple[int, int, int]
    a: int
    a_descriptor: WgmmaDescriptor
    b: int
    b_descriptor: WgmmaDescriptor
    scale_d: bool
    accumulator: int


@dataclass(frozen=True, slots=True)
class WgmmaFence:
    """wgmma.fence."""


@dataclass(frozen=True, slots=True)
class WgmmaCommitGroup:
    """wgmma.commit_group."""


@dataclass(frozen=True, slots=True)
class WgmmaWaitGroup:
    """wgmma.wait_group: wait until at most `pending` groups are in flight."""

    pending: int


@dataclass(frozen=True, slots=True)
class BarSync:
    """bar.sync: arrive at a named barrier, and wait until `threads` threads have."""

    barrier: int
    threads: int


@dataclass(frozen=True, slots=True)
class BarArrive:
    """bar.arrive: arrive at a named barrier, and do not wait."""

    barrier: int
    threads: int


@dataclass(frozen=True, slots=True)
class FenceProxyAsync:
    """fence.proxy.async: the async proxy (TMA) sees what this thread wrote to shared memory.

    Or, if not `shared`, what it has seen in any memory.
    """

    shared: bool = True


@dataclass(frozen=True, slots=True)
class AcquireFlag:
    """ld.acquire.sys, until it passes: wait for the flag at a byte of a tensor."""

    tensor: str
    offset: int


@dataclass(frozen=True, slots=True)
class AddToFlag:
    """atom.add.release.sys: add to the flag at a byte of a tensor.

    It follows all that the thread has seen or written.
    """

    tensor: str
    offset: int
    value: int


@dataclass(frozen=True, slots=True)
class Trap:
    """trap: the kernel ends with an error."""


@dataclass(frozen=True, slots=True)
class FenceMbarrierInit:
    """fence.mbarrier_init: the other blocks of the cluster see the initialised mbarriers."""


@dataclass(frozen=True, slots=True)
class StMatrix:
    """stmatrix: this lane's row of 16 bytes is at `address`.

    `values` are those of the lane's registers, two in each, the low half first.
    """

    address: int
    matrices: int
    transposed: bool
    values: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class LdMatrix:
    """ldmatrix: this lane's row of 16 bytes is at `address`.

    The two values of register n are known as data from `address` + 4 n and + 4 n + 2.
    """

    address: int
    matrices: int
    transposed: bool


@dataclass(frozen=True, slots=True)
class Mma:
    """mma.sync of shape (m, n, k)."""

    shape: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class CpAsync:
    """cp.async of `bytes` bytes from an offset in `tensor`; those from `present` on are zeros."""

    address: int
    tensor: str
    offset: int
    bytes: int
    present: int


@dataclass(frozen=True, slots=True)
class CpAsyncCommitGroup:
    """cp.async.commit_group."""


@dataclass(frozen=True, slots=True)
class CpAsyncWaitGroup:
    """cp.async.wait_group: wait until at most `pending` groups are in flight."""

    pending: int


@dataclass(frozen=True, slots=True)
class SetMaxNReg:
    """setmaxnreg.dec or .inc, to so many registers."""

    action: str
    registers: int


@dataclass(frozen=True, slots=True)
class ClusterArrive:
    """barrier.cluster.arrive.relaxed: it orders no memory."""


@dataclass(frozen=True, slots=True)
class ClusterWait:
    """barrier.cluster.wait."""


@dataclass(frozen=True, slots=True)
class GridDependencyWait:
    """griddepcontrol.wait: until the launch before this one has ended."""


@dataclass(frozen=True, slots=True)
class LaunchDependents:
    """griddepcontrol.launch_dependents: the next launch may start."""


@dataclass(frozen=True, slots=True)
class PrefetchTensormap:
    """prefetch.tensormap."""

    descriptor: str


@dataclass(frozen=True, slots=True)
class LoadGlobal:
    """ld.global of `bytes` bytes, at a byte offset in the tensor that is the argument `tensor`."""

    tensor: str
    offset: int
    bytes: int


@dataclass(frozen=True, slots=True)
class StoreGlobal:
    """st.global of `values`."""

    tensor: str
    offset: int
    bytes: int
    values: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class LoadShared:
    """ld.shared."""

    address: int
    bytes: int


@dataclass(frozen=True, slots=True)
class StoreShared:
    """st.shared."""

    address: int
    bytes: int


Event: TypeAlias = (
    MbarrierInit
    | MbarrierTryWait
    | MbarrierTestWait
    | MbarrierArrive
    | MbarrierArriveExpectTx
    | TmaLoad
    | TmaStore
    | BulkCommitGroup
    | BulkWaitGroup
    | Wgmma
    | WgmmaFence
    | WgmmaCommitGroup
    | WgmmaWaitGroup
    | BarSync
    | BarArrive
    | FenceProxyAsync
    | AcquireFlag
    | AddToFlag
    | Trap
    | FenceMbarrierInit
    | StMatrix
    | LdMatrix
    | Mma
    | CpAsync
    | CpAsyncCommitGroup
    | CpAsyncWaitGroup
    | SetMaxNReg
    | ClusterArrive
    | ClusterWait
    | GridDependencyWait
    | LaunchDependents
    | PrefetchTensormap
    | LoadGlobal
    | StoreGlobal
    | LoadShared
    | StoreShared
)
