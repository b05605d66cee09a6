"""What each thread of a compiled kernel does, found by running its PTX on the CPU.

reader      the text of a module as kernels and instructions
translate   a kernel as a Python function of one thread
machine     trace: runs one thread of a launch, and lists its events
arguments   what a launch passes: tensors and tensor maps
events      the events: barriers, TMA, wgmma, stores, with their values

The control flow of a thread depends on no other thread: a wait only blocks. So the list is what the
thread does on a GPU, in program order, whatever the others do. `tests/kernels/sm90/launches.py`
makes the launches of a plan, and has an example.

Integers have their values. What wgmma sums, and all that is made from it or loaded from memory, is
Data: an operation on Data gives Data, and a branch or an address that depends on Data is an error.
Known data remembers which value of which accumulator it is, or its address in shared memory, so
that a store shows what it stores. Loaded data remembers where in global memory it was.

The thread runs alone. A wait passes at once, every second mbarrier.test_wait passes, elect.sync
elects lane 0, and shfl.sync gives the thread's own value, which is right if all lanes of the warp
have the same: `run` lists those values, and the lanes that the thread asks for theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from operator import index, is_
from typing import Any, NoReturn

from layouts import LayoutError, WgmmaDescriptor
from layouts.hardware import descriptor
from layouts.hardware.facts import WARPGROUP
from tests.kernels.ptx import events
from tests.kernels.ptx.arguments import POINTER_BITS, Argument
from tests.kernels.ptx.reader import Instruction, Kernel, PtxError
from tests.kernels.ptx.translate import PARAMETER_BITS, PARAMETERS, SHARED, translate

SHARED_BYTES = 228 * 1024  # of a multiprocessor of compute capability 9.0
RANK_BITS = 24  # a block's window in the shared memory of its cluster
FIELD = (1 << descriptor.FIELD_BITS) - 1  # a field of a matrix descriptor
TURNS = 1_000_000  # backward branches of a thread


@dataclass(frozen=True)
class Launch:
    """A kernel, its arguments, and how many blocks a cluster has, in a line along x.

    PtxError unless the arguments have the sizes of the kernel's parameters.
    """

    kernel: Kernel
    arguments: tuple[Argument, ...]
    cluster: int = 1

    def __post_init__(self) -> None:
        sizes = [parameter.size for parameter in self.kernel.parameters]
        given = [each.value and len(each.value) for each in self.arguments]
        if len(given) != len(sizes) or any(
            have not in (None, size) for have, size in zip(given, sizes, strict=True)
        ):
            raise PtxError(
                f"{self.kernel.name}: the arguments have {given} bytes (None is a tensor map); "
                f"they must have {sizes}"
            )


def trace(launch: Launch, *, block: int, blocks: int, thread: int) -> list[events.Event]:
    """What one thread of a launch of `blocks` blocks does: its events, in program order.

    `block` is %ctaid.x, `blocks` %nctaid.x, and `thread` %tid.x. PtxError if the launch has no such
    block or thread, or the kernel has an instruction that is not known, or one that cannot be run;
    it names the line of PTX.

    >>> from .reader import read
    >>> (kernel,) = read('''
    ... .extern .shared .align 1024 .b8 memory[];
    ... .visible .entry wait(.param .b32 parity)
    ... .reqntid 32, 1, 1
    ... {
    ...     ld.param.b32 %r1, [parity];
    ...     mov.b32 %r2, memory;
    ... again:
    ...     mbarrier.try_wait.parity.shared.b64 %p1, [%r2+8], %r1;
    ...     @!%p1 bra again;
    ...     ret;
    ... }''')
    >>> launch = Launch(kernel, (Argument("parity", bytes([1, 0, 0, 0])),))
    >>> trace(launch, block=0, blocks=1, thread=0)
    [MbarrierTryWait(address=8, parity=1)]
    """
    return run(launch, block, blocks, thread).events


def run(launch: Launch, block: int, blocks: int, thread: int) -> Run:
    """The state of the thread at its end."""
    kernel = launch.kernel
    if blocks % launch.cluster:
        raise PtxError(
            f"blocks is {blocks}; it must be a multiple of the cluster, {launch.cluster}"
        )
    for name, number, count in (("block", block, blocks), ("thread", thread, kernel.threads)):
        if number not in range(count):
            raise PtxError(f"{name} is {number}; it must be 0 to {count - 1}")
    state = Run(launch, block, blocks, thread)
    code, made_from = _compiled(kernel)
    try:
        code(state)
    except (PtxError, LayoutError, ZeroDivisionError, NameError) as error:
        instruction = made_from[_python_line(error) - 1]
        where = f"line {instruction.line}: {instruction}" if instruction else "its start"
        why = "a register has no value" if isinstance(error, NameError) else error
        raise PtxError(f"{kernel.name}, {where}: {why}") from None
    return state


@lru_cache(maxsize=64)
def _compiled(kernel: Kernel) -> tuple[Callable[[Run], None], list[Instruction | None]]:
    """The Python function of a kernel, and the instruction of each of its lines."""
    source, made_from = translate(kernel)
    names: dict[str, Any] = {**vars(events), **globals()}
    exec(compile(source, FILE, "exec"), names)
    return names["thread"], made_from


FILE = "<ptx>"  # the name of translated code in a traceback


def _python_line(error: BaseException) -> int:
    """The line of translated code in which an error arose."""
    at = error.__traceback__
    while at and at.tb_frame.f_code.co_filename != FILE:
        at = at.tb_next
    return at.tb_lineno if at else 1


class Data:
    """A value that is not followed. Every operation on it gives Data."""

    __slots__ = ()

    def _data(self, *_: object) -> Data:
        return DATA

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __neg__ = __invert__ = _data
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __abs__ = _data
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _data
    __lt__ = __le__ = __gt__ = __ge__ = _data
    __eq__ = __ne__ = _data  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise PtxError("it decides by data, which is not followed")

    def __index__(self) -> int:
        raise PtxError("it needs the value of data, which is not followed")


DATA = Data()


class Known(Data):
    """Data that comes from an accumulator or from shared memory."""

    __slots__ = ("source",)

    def __init__(self, source: events.Source) -> None:
        self.source = source


class Loaded(Data):
    """Data as it was in global memory, perhaps converted to another type."""

    __slots__ = ("event",)

    def __init__(self, event: events.LoadGlobal) -> None:
        self.event = event  # of these bytes alone


class Packed(Data):
    """Two values of 16 bits in a register."""

    __slots__ = ("halves",)

    def __init__(self, low: object, high: object) -> None:
        self.halves = low, high

    def __rshift__(self, *bits: object) -> Data:
        if bits == (0,):
            return self
        return Packed(self.halves[1], 0) if bits == (16,) else DATA

    def __and__(self, *mask: object) -> Data:
        low, _ = self.halves
        return low if mask == (0xFFFF,) and isinstance(low, Data) else DATA


def packed(low: Any, high: Any) -> Any:
    """A register of two values of 16 bits, known or data."""
    if isinstance(low, Data) or isinstance(high, Data):
        return Packed(low, high)
    return low | high << 16


def funnel_shift(low: Any, high: Any, bits: int) -> Any:
    """shf.r.wrap: the register that starts `bits` bits inside two; data are halves of 16 bits."""
    if not isinstance(low, Data) and not isinstance(high, Data):
        return (high << 32 | low) >> bits & 0xFFFFFFFF
    if bits not in (0, 16):
        return DATA
    return Packed(*(*_halves(low), *_halves(high))[bits // 16 :][:2])


def _halves(register: Any) -> tuple[Any, Any]:
    """The two values of 16 bits in a register, as far as it is known where they come from."""
    if type(register) is Packed:
        return register.halves
    if type(register) is Known and isinstance(register.source, int):  # of shared memory
        return Known(register.source), Known(register.source + 2)
    return DATA, DATA


def sources(*registers: object) -> tuple[events.Source, ...]:
    """Where the values in registers come from, the low half of a packed one first."""
    parts = (half for each in registers for half in getattr(each, "halves", (each,)))
    return tuple(getattr(part, "source", None) for part in parts)


def computed(*values: object) -> Data:
    """Data computed from others, which comes from wherever they come from."""
    found: events.Source = None
    for value in values:
        for part in value.halves if type(value) is Packed else (value,):
            if type(part) is Known and part.source != found:
                found = part.source if found is None else _set(found) | _set(part.source)
    if found is not None:
        return Known(found)
    (first, *others) = values
    return first if isinstance(first, Loaded) and not others else DATA


def _set(source: events.Source) -> frozenset[Any]:
    return source if isinstance(source, frozenset) else frozenset((source,))


def quotient(a: int, b: int) -> int:
    """div: towards zero."""
    return a // b if (a < 0) == (b < 0) else -(-a // b)


def remainder(a: int, b: int) -> int:
    """rem: with the sign of the dividend."""
    return a - quotient(a, b) * b


def shared(address: int) -> int:
    """An address of the block's own shared memory, from the start of its dynamic part."""
    if not SHARED <= index(address) < SHARED_BYTES:
        raise PtxError(f"address {address - SHARED} is outside dynamic shared memory")
    return address - SHARED


def of_rank(address: int, rank: int) -> int:
    """mapa: the same address in the shared memory of block `rank` of the cluster."""
    return (rank + 1 << RANK_BITS) + address


def address_and_rank(address: int) -> tuple[int, int | None]:
    """An address in the shared memory of a cluster, and its block; None is the thread's own."""
    rank = index(address) >> RANK_BITS
    return shared(address & (1 << RANK_BITS) - 1), rank - 1 if rank else None


def operand(bits: int, transposed: int) -> tuple[int, WgmmaDescriptor]:
    """The start address and the other fields of a matrix descriptor of 16-bit elements."""
    start = index(bits) & FIELD
    return shared(start << descriptor.OMITTED_BITS), fields(bits - start, transposed)


@cache
def fields(bits: int, transposed: int) -> WgmmaDescriptor:
    """The fields of a matrix descriptor whose start address is 0."""
    modes = {mode: width for width, mode in descriptor.SWIZZLE_MODES.items()}
    leading, stride = (
        (bits >> at & FIELD) << descriptor.OMITTED_BITS
        for at in (descriptor.LBO_BIT, descriptor.SBO_BIT)
    )
    major: descriptor.Major = "MN" if transposed else "K"
    found = WgmmaDescriptor(major, modes[bits >> descriptor.MODE_BIT], leading, stride, 16)
    if found.encode(0) != bits:
        raise PtxError(f"matrix descriptor {bits:#x}: a bit is set that belongs to no field")
    return found


class Run:
    """The state of a running thread, apart from its registers."""

    def __init__(self, launch: Launch, block: int, blocks: int, thread: int) -> None:
        self.arguments = launch.arguments
        self.block, self.blocks, self.rank = block, blocks, block % launch.cluster
        self.thread, self.threads = thread, launch.kernel.threads
        self.turns = TURNS
        self.tests = 0  # of mbarriers
        self.events: list[events.Event] = []
        # the values that the thread gave to shfl.sync, and the lanes whose values it received
        self.shuffles: list[tuple[object, int]] = []
        self.accumulators: list[tuple[Known, ...]] = []  # as wgmma leaves them

    @property
    def uniform(self) -> list[tuple[object, int]]:
        """The shuffles of known values, which must be the same in all lanes of a warp."""
        return [each for each in self.shuffles if not isinstance(each[0], Data)]

    def shuffled(self, value: object, lane: int) -> object:
        """shfl.sync.idx: the thread's own value, which must be that of all lanes if it is known."""
        self.shuffles.append((value, index(lane)))
        return DATA if isinstance(value, Data) else value

    def test_wait(self, address: int, parity: int) -> bool:
        """mbarrier.test_wait, of which every second passes; the event is listed."""
        self.tests += 1
        passes = self.tests % 2 == 0
        self.events.append(events.MbarrierTestWait(address, parity, passes))
        return passes

    def endless(self) -> NoReturn:
        raise PtxError(f"the thread branches back {TURNS} times: its loop does not end")

    def argument(self, address: int) -> tuple[Argument, int]:
        """The argument at an address of the parameters, and the offset in it."""
        number, offset = divmod(index(address) - PARAMETERS, 1 << PARAMETER_BITS)
        if not 0 <= number < len(self.arguments):
            raise PtxError(f"address {address:#x} belongs to no parameter")
        return self.arguments[number], offset

    def parameter(self, address: int, width: int, count: int) -> tuple[int, ...]:
        """ld.param of `count` integers, each of `width` bytes."""
        argument, offset = self.argument(address)
        if argument.value is None or offset + width * count > len(argument.value):
            raise PtxError(f"argument {argument} has no {width * count} bytes at {offset}")
        starts = range(offset, offset + width * count, width)
        return tuple(int.from_bytes(argument.value[at : at + width], "little") for at in starts)

    def descriptor(self, address: int) -> str:
        """The name of the tensor map at an address."""
        argument, offset = self.argument(address)
        if argument.value is not None or offset:
            raise PtxError(f"it reads a tensor map at byte {offset} of {argument}")
        return argument.name

    def load_global(self, address: int, width: int, count: int) -> tuple[Loaded, ...]:
        """ld.global of `count` values, each of `width` bytes; the event is listed."""
        tensor, offset = self.tensor(address)
        self.events.append(events.LoadGlobal(tensor, offset, width * count))
        parts = (offset + width * n for n in range(count))
        return tuple(Loaded(events.LoadGlobal(tensor, part, width)) for part in parts)

    def load_shared(self, address: int, width: int, count: int) -> tuple[Known, ...]:
        """ld.shared of `count` values, each of `width` bytes; the event is listed."""
        first = shared(address)
        self.events.append(events.LoadShared(first, width * count))
        return tuple(Known(first + width * n) for n in range(count))

    def load_matrix(self, address: int, matrices: int, transposed: bool) -> tuple[Packed, ...]:
        """ldmatrix: a register for each matrix; the event is listed.

        What a lane receives is in rows of other lanes, which the machine does not know. Each value
        is named as if the lane received its own row in order: stmatrix with the same address then
        shows what it overwrites.
        """
        row = shared(address)
        self.events.append(events.LdMatrix(row, matrices, transposed))
        return tuple(Packed(Known(row + 4 * n), Known(row + 4 * n + 2)) for n in range(matrices))

    def tensor(self, address: int) -> tuple[str, int]:
        """The tensor in global memory to which an address belongs, and the byte offset in it."""
        window, offset = divmod(index(address), 1 << POINTER_BITS)
        if not 1 <= window <= len(self.arguments):
            raise PtxError(f"global address {address:#x} is in no tensor")
        return self.arguments[window - 1].name, offset

    def accumulator(self, held: tuple[object, ...]) -> int:
        """The number of the accumulator that registers hold, all of it and in order."""
        for number, values in enumerate(reversed(self.accumulators), 1):
            if len(values) == len(held) and all(map(is_, values, held)):
                return len(self.accumulators) - number
        raise PtxError("it adds to registers that hold neither zeros nor one accumulator, in order")

    def wgmma(
        self,
        shape: tuple[int, int, int],
        a: int,
        a_transposed: int,
        b: int,
        b_transposed: int,
        scales: tuple[int, int],
        held: tuple[object, ...] | None,
    ) -> tuple[Known, ...]:
        """The accumulator, `held` before or None if it is not read; the event is listed."""
        if scales != (1, 1):
            raise PtxError("it negates an operand")
        if held is None or all(isinstance(each, int) and not each for each in held):  # a new one
            number, count = len(self.accumulators), shape[0] * shape[1] // WARPGROUP
            self.accumulators.append(tuple(Known((number, value)) for value in range(count)))
        else:
            number = self.accumulator(held)
        a_fields, b_fields = operand(a, a_transposed), operand(b, b_transposed)
        self.events.append(events.Wgmma(shape, *a_fields, *b_fields, held is not None, number))
        return self.accumulators[number]
