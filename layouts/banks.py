"""Shared memory: how many wavefronts an access of a warp takes.

Shared memory has 32 banks of 4 bytes; one wavefront reads or writes one word of each.  A wide
access goes by phases: 8 lanes of 16 bytes, 16 of 8, or 32 of 4 and fewer, 128 bytes each; ldmatrix
and stmatrix go by matrices, whose eight row addresses are a phase of 16-byte accesses.  Lanes of a
phase that want different words of one bank wait for one another; those that want the same word do
not.

For layouts that are bit matrices the count follows from two ranks over GF(2), and holds at every
base; for others the lanes are looked at.  (The phase model is an axiom here; Nsight Compute's
l1tex__data_pipe_lsu_wavefronts_mem_shared counters measure the same number.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import gf2
from .errors import LayoutError
from .layout import Layout
from .swizzle import ComposedLayout
from .tuples import size
from .value import Value

__all__ = ["Wavefronts", "wavefronts"]

#: Bytes that all 32 banks move in one wavefront.
WAVEFRONT_BYTES = 128

#: Bytes of one access of a lane -> lanes that go together.
PHASE_LANES = {1: 32, 2: 32, 4: 32, 8: 16, 16: 8}


class Wavefronts(Value):
    """The wavefronts of an access: how many it takes, how many phases it has, and who collides.

    `collision` is two lanes of one phase that want different words of one bank, or None.
    `every_base` says that the count holds wherever the access starts, as long as the start has none
    of the bits that the lanes move; it is decided by rank.
    """

    __slots__ = __match_args__ = ("count", "ideal", "collision", "every_base")
    count: int
    ideal: int
    collision: tuple[int, int] | None
    every_base: bool

    def __init__(
        self, count: int, ideal: int, collision: tuple[int, int] | None, every_base: bool
    ) -> None:
        self._set(count, ideal, collision, every_base)

    @property
    def conflict_free(self) -> bool:
        """Whether there is one wavefront a phase."""
        return self.collision is None

    def __str__(self) -> str:
        where = "at every base" if self.every_base else "at these addresses"
        if self.collision is None:
            return f"{_counted(self.count)}, conflict-free {where}"
        first, second = self.collision
        return (
            f"{_counted(self.count)} where {self.ideal} would do, {where}: "
            f"lanes {first} and {second} want different words of one bank"
        )


def _counted(count: int) -> str:
    return "1 wavefront" if count == 1 else f"{count} wavefronts"


def wavefronts(
    lanes: Layout | ComposedLayout | Sequence[int], width: int = 16, unit: int | None = None
) -> Wavefronts:
    """The wavefronts of lanes that access `width` bytes each in shared memory.

    `lanes` takes a lane to its offset; more lanes than a warp are further accesses.  `unit` is the
    bits of one offset: that of a composed layout, or 8, bytes, unless given.  A sequence holds byte
    addresses.  For ldmatrix and stmatrix give the row addresses, and 16.

    Raises `LayoutError` if `width` is none of 1, 2, 4, 8, 16, or an address is no multiple of it.

    >>> rows = Layout(8, 64)                                  # eight rows of a (.., 64) tile
    >>> print(wavefronts(rows, 16, unit=16))
    8 wavefronts where 1 would do, at every base: lanes 0 and 1 want different words of one bank
    >>> from layouts import Swizzle
    >>> print(wavefronts(ComposedLayout(Swizzle(3, 3, 3), 0, rows, unit=16)))
    1 wavefront, conflict-free at every base
    """
    if width not in PHASE_LANES:
        raise LayoutError(f"width {width!r}: a lane accesses 1, 2, 4, 8 or 16 bytes")
    if isinstance(lanes, (Layout, ComposedLayout)):
        unit = unit or getattr(lanes, "unit", None) or 8
        columns = _byte_columns(lanes, unit)
        if columns is not None:
            return _by_rank(lanes(0) * unit // 8, columns, width)
        lanes = [lanes(lane) * unit // 8 for lane in range(size(lanes))]
    return _by_looking(lanes, width)


def _byte_columns(lanes: Layout | ComposedLayout, unit: int) -> list[int] | None:
    """The columns of `lanes` as a bit matrix onto byte addresses, if it is one."""
    if unit < 8 or unit & (unit - 1):
        raise LayoutError(f"unit {unit} bits: an offset must count 1, 2, 4, 8 ... bytes")
    try:
        return [column * unit // 8 for column in gf2.matrix(lanes)]
    except LayoutError:
        return None


def _by_rank(base: int, columns: list[int], width: int) -> Wavefronts:
    """Within a phase the words are a space over GF(2), spread evenly over the banks they reach."""
    lanes = [0] + [1 << bit for bit in range(len(columns))]
    _check_aligned(lanes, [base] + [base ^ column for column in columns], width)
    word = max(width, 4)
    in_phase = min(PHASE_LANES[width].bit_length() - 1, len(columns))
    words = [column // word for column in columns[:in_phase]]
    slots = WAVEFRONT_BYTES // word
    banks = [column % slots for column in words]
    phases = 1 << len(columns) - in_phase
    degree = 1 << gf2.rank(words) - gf2.rank(banks)
    collision = None
    if degree > 1:
        lane = min(lane for lane in range(1, 1 << in_phase) if _collides(lane, words, banks))
        collision = (0, lane)
    return Wavefronts(phases * degree, phases, collision, every_base=True)


def _collides(lane: int, words: list[int], banks: list[int]) -> bool:
    """Whether `lane` wants another word of the bank of lane 0."""
    return gf2.image(lane, banks) == 0 != gf2.image(lane, words)


def _by_looking(addresses: Sequence[int], width: int) -> Wavefronts:
    _check_aligned(range(len(addresses)), addresses, width)
    word, step = max(width, 4), PHASE_LANES[width]
    count, ideal, collision = 0, 0, None
    for first in range(0, len(addresses), step):
        words_of_bank: dict[int, dict[int, int]] = {}
        for lane in range(first, min(first + step, len(addresses))):
            at = addresses[lane] // word
            words = words_of_bank.setdefault(at % (WAVEFRONT_BYTES // word), {})
            if words and at not in words and collision is None:
                collision = (next(iter(words.values())), lane)
            words.setdefault(at, lane)
        count += max(map(len, words_of_bank.values()))
        ideal += 1
    return Wavefronts(count, ideal, collision, every_base=False)


def _check_aligned(lanes: Sequence[Any], addresses: Sequence[int], width: int) -> None:
    for lane, address in zip(lanes, addresses, strict=True):
        if address % width:
            raise LayoutError(
                f"lane {lane} accesses {width} bytes at byte {address}: an address must be a "
                f"multiple of the bytes accessed"
            )
