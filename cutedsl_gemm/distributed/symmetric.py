"""A buffer on each GPU of a group that all GPUs of the group write: torch's symmetric memory.

The copy engines of a rank write into the buffers of the others. They read what it wrote after a
barrier, or after a flag:

    barrier   all ranks' streams are here; what they wrote before it is visible after it
    flags     an epoch for each rank, at the start of each buffer; `arrived` of a rank's own
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem
from torch import Tensor
from torch._C._distributed_c10d import _SymmetricMemory
from torch.distributed import ProcessGroup

from layouts.errors import brief

Shape: TypeAlias = Sequence[int]

FLAGS = 1024  # of ranks, or of the pieces that come from each
FLAGS_BYTES = 4 * FLAGS
BARRIER_MILLISECONDS = 600_000  # then a rank has failed, and the others end with an error


class SymmetricBuffer:
    """A buffer of the same size on each GPU of a group.

    All ranks call `reserve` and `barrier` in the same order, as they call collectives of the group.
    A call uses the buffer between `begin` and `end`; calls from several streams follow each other.
    """

    def __init__(self, group: ProcessGroup, device: torch.device) -> None:
        self.group_name, self.device = group.group_name, device  # a group here would never be freed
        self.rank, self.ranks = group.rank(), group.size()
        self.copy_stream = torch.cuda.Stream(device, priority=-1)  # to other ranks
        self.nbytes = self.epoch = 0
        self.prepared: dict[Any, Any] = {}  # what calls keep as long as the buffer stays as it is
        self.handle: Any = None
        self.last: torch.cuda.Stream | None = None  # of the call before
        self.ended, self.begun, self.copied = (torch.cuda.Event() for _ in range(3))

    def reserve(self, nbytes: int) -> None:
        """Make the buffer at least `nbytes` large; all ranks must ask for the same size.

        A buffer that is too small is replaced when all ranks have finished their earlier work.
        """
        if nbytes <= self.nbytes:
            return
        if self.handle is not None:
            self.finish()
        self.prepared.clear()
        self.allocate(FLAGS_BYTES + nbytes)
        self.finish()  # the flags of all ranks are zero
        self.nbytes, self.epoch = nbytes, 0

    def allocate(self, nbytes: int) -> None:
        """Allocate this many bytes on each rank, with flags of zero."""
        # Not symm_mem.empty, whose tensors may share an allocation, in which they have an offset.
        self.memory = _SymmetricMemory.empty_strided_p2p((nbytes,), (1,), torch.uint8, self.device)
        self.memory[:FLAGS_BYTES].zero_()
        self.handle = symm_mem.rendezvous(self.memory, self.group_name)

    def finish(self) -> None:
        """Wait, on the host, until all ranks have done what they began."""
        self.barrier()
        torch.cuda.synchronize(self.device)

    def view(self, rank: int, shape: Shape, dtype: torch.dtype, place: int = 0) -> Tensor:
        """A tensor in a rank's buffer: number `place` of those of this shape."""
        first = FLAGS_BYTES // dtype.itemsize + place * math.prod(shape)
        view: Tensor = self.handle.get_buffer(rank, [*shape], dtype, first)
        return view

    def flags(self, rank: int, pieces: int = 1) -> Tensor:
        """A rank's flags (ranks * pieces,): the epoch of each piece that has come from a rank."""
        view: Tensor = self.handle.get_buffer(rank, [self.ranks * pieces], torch.int32, 0)
        return view

    def flag(self, rank: int, place: int) -> int:
        """The address of one of a rank's flags."""
        address: int = self.flags(rank).data_ptr() + 4 * place
        return address

    def next_epoch(self) -> int:
        """The number of this call; it wraps around as an int32."""
        self.epoch = (self.epoch + 1 + 2**31) % 2**32 - 2**31
        return self.epoch

    def barrier(self) -> None:
        """Wait, on torch's current stream, until all ranks' streams are here."""
        self.handle.barrier(0, BARRIER_MILLISECONDS)

    def begin(self) -> torch.cuda.Stream:
        """torch's current stream, after the call before this one, if that was on another."""
        stream = torch.cuda.current_stream(self.device)
        if self.last is not None and self.last != stream:
            stream.wait_event(self.ended)
        return stream

    def copy_stream_waits_for(self, stream: torch.cuda.Stream) -> None:
        """Copies that are enqueued from now on start after the work that is on `stream` now."""
        self.begun.record(stream)
        self.copy_stream.wait_event(self.begun)

    def wait_for_copies(self, stream: torch.cuda.Stream) -> None:
        """Work enqueued on `stream` from now on starts after the copies enqueued so far."""
        self.copied.record(self.copy_stream)
        stream.wait_event(self.copied)

    def end(self, stream: torch.cuda.Stream) -> None:
        """Mark the end of the call on its stream; a call on another stream waits for it."""
        self.last = stream
        self.ended.record(stream)


# The keys are groups, since a name is free again after destroy_process_group. They are weak, so
# that the memory of an ended group is freed.
_buffers: WeakKeyDictionary[
    ProcessGroup, dict[tuple[str, torch.device], SymmetricBuffer | None]
] = WeakKeyDictionary()


def known_buffer(group: ProcessGroup, device: torch.device, use: str) -> SymmetricBuffer | None:
    """The group's buffer for one use, if there is one."""
    return _buffers.get(group, {}).get((use, device))


def symmetric_buffer(
    group: ProcessGroup, device: torch.device, use: str, nbytes: int
) -> SymmetricBuffer | None:
    """The group's buffer for one use, of at least `nbytes`; None if torch has none here.

    The first call, and one that needs more bytes, waits for all ranks. Without access from each GPU
    to the memory of the others there is no buffer, which is remembered, with a warning.
    """
    buffers, key = _buffers.setdefault(group, {}), (use, device)
    if key not in buffers:
        buffers[key] = SymmetricBuffer(group, device)
    buffer = buffers[key]
    if buffer is not None:
        try:
            buffer.reserve(nbytes)
        except RuntimeError as reason:
            if buffer.handle is not None:
                raise
            warnings.warn(
                f"no symmetric memory, so collectives move the data: {reason}", stacklevel=2
            )
            buffers[key] = None
    return buffers[key]


# What a stream does without a kernel, by the CUDA driver API: 3 µs of the host each, where torch's
# copy of a slice on another stream takes 30. A tensor is given by its address.


def copy(stream: torch.cuda.Stream, target: int, source: int, nbytes: int) -> None:
    """Copy memory of this GPU or another (cuMemcpyAsync)."""
    _enqueue("cuMemcpyAsync", target, source, nbytes, stream.cuda_stream)


def write_flag(stream: torch.cuda.Stream, flag: int, epoch: int) -> None:
    """Write an epoch after a fence of system scope (cuStreamWriteValue32)."""
    _enqueue("cuStreamWriteValue32", stream.cuda_stream, flag, epoch % 2**32, 0)


def wait_for_count(stream: torch.cuda.Stream, count: int, value: int) -> None:
    """Wait until an int32 is `value`, or beyond it (cuStreamWaitValue32).

    It wraps around: the wait ends when int32(count - value) >= 0.
    """
    _enqueue("cuStreamWaitValue32", stream.cuda_stream, count, value % 2**32, GREATER_OR_EQUAL)


GREATER_OR_EQUAL = 0  # CU_STREAM_WAIT_VALUE_GEQ


def _enqueue(name: str, *arguments: int) -> None:
    (error,) = _driver_function(name)(*arguments)
    if error != 0:
        raise RuntimeError(f"{name}: {error.name}")


@cache
def _driver_function(name: str) -> Any:
    from cuda.bindings import driver  # here, since a machine without a GPU may lack it

    return getattr(driver, name)


def resolve(group: ProcessGroup | str | None) -> ProcessGroup:
    """The process group of this name; None is the default group.

    ValueError if this rank is not in the group.
    """
    if group is None:
        return dist.distributed_c10d._get_default_group()
    if isinstance(group, str):
        return dist.distributed_c10d._resolve_process_group(group)
    if isinstance(group, int):  # what new_group returns on ranks that it leaves out
        raise ValueError(
            f"group is {group}: it must be a ProcessGroup that has this rank, its name, or None; "
            "call this on the ranks of the group alone"
        )
    if not isinstance(group, ProcessGroup):
        raise TypeError(
            f"group is {brief(group)}: it must be a ProcessGroup, its name, or None; of a "
            "DeviceMesh, pass mesh.get_group()"
        )
    return group
