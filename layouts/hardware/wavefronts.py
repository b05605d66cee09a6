"""Shared memory: how many wavefronts an access of a warp takes.

Shared memory has 32 banks of 4 bytes; one wavefront reads or writes one word of each.  A wide
access goes by phases of 128 bytes, which `layouts.instructions` tells.  Lanes of a phase that want
different words of one bank wait for one another; those that want the same word do not.

For layouts that are bit matrices the count follows from two ranks over GF(2), and holds at every
base; for others the lanes are looked at.  Nsight Compute counts the same on an H100, case by case.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any

from ..algebra import coalesce, gf2, logical_divide
from ..errors import LayoutError
from ..values.layout import Layout
from ..values.swizzle import ComposedLayout, Swizzle
from ..values.tuples import is_int, size
from ..values.value import Value
from .instructions import NEIGHBOURS, PHASE_LANES, WARP, Instruction, instruction

__all__ = ["PHASE_LANES", "WAVEFRONT_BYTES", "Wavefronts", "wavefronts"]

#: Bytes that all 32 banks move in one wavefront.
WAVEFRONT_BYTES = 128


class Wavefronts(Value):
    """The wavefronts of an access: how many it takes, how many phases it has, and who collides.

    `degree` is the largest number of wavefronts of a phase; `collision` is two lanes of one phase
    that want different words of one bank, or None.  `every_base` says that the count holds wherever
    the access starts: without a swizzle at any multiple of 4 bytes and of the width, and else as
    long as the start has none of the bits that the lanes move.  `ranks` are those of the words and
    of the banks of a phase, where these decided it, or None where the lanes were looked at.
    """

    __slots__ = __match_args__ = ("count", "ideal", "degree", "collision", "every_base", "ranks")
    count: int
    ideal: int
    degree: int
    collision: tuple[int, int] | None
    every_base: bool
    ranks: tuple[int, int] | None

    def __init__(
        self,
        count: int,
        ideal: int,
        degree: int,
        collision: tuple[int, int] | None,
        every_base: bool,
        ranks: tuple[int, int] | None = None,
    ) -> None:
        self._set(count, ideal, degree, collision, every_base, ranks)

    @property
    def conflict_free(self) -> bool:
        """Whether there is one wavefront a phase."""
        return self.collision is None

    @property
    def conflicts(self) -> int:
        """What the hardware counts as bank conflicts: wavefronts beyond one a phase."""
        return self.count - self.ideal

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
    lanes: Layout | ComposedLayout | Sequence[int],
    access: int | str | Instruction = 16,
    unit: int | None = None,
) -> Wavefronts:
    """The wavefronts of lanes that access shared memory.

    `lanes` takes a lane to its offset; more lanes than a warp are further accesses.  `access` is an
    instruction or its PTX name, or the bytes of a store or of a row of a matrix.  `unit` is the
    bits of one offset: that of a composed layout, or 8, bytes, unless given.  A sequence holds byte
    addresses.  For ldmatrix and stmatrix give the row addresses.

    Raises `LayoutError` if there is no such access, or an address is no multiple of its width.

    >>> rows = Layout(8, 64)                                  # eight rows of a (.., 64) tile
    >>> print(wavefronts(rows, 16, unit=16))
    8 wavefronts where 1 would do, at every base: lanes 0 and 1 want different words of one bank
    >>> from layouts import Swizzle
    >>> print(wavefronts(ComposedLayout(Swizzle(3, 3, 3), 0, rows, unit=16)))
    1 wavefront, conflict-free at every base

    Loads whose neighbours share their address go in longer phases:

    >>> pairs = Layout((2, 16), (0, 16))
    >>> [wavefronts(pairs, f"{name}.shared.v4.b32").count for name in ("ld", "st")]
    [2, 4]
    """
    how = instruction(access)
    if not isinstance(lanes, (Layout, ComposedLayout)):
        return _by_looking(lanes, how, every_base=False)
    if not is_int(size(lanes)):
        raise LayoutError(f"{lanes}: its extents must be integers; give the symbols values first")
    if not is_int(lanes(0)):
        raise LayoutError(f"{lanes} gives coordinates: an access needs offsets in memory")
    unit = byte_unit(lanes, unit)
    columns, warps = byte_columns(lanes, unit), 1
    if columns is None:
        columns, warps = _warp_columns(lanes, unit, how), size(lanes) // WARP
    if columns is not None:
        return _by_rank(lanes(0) * unit // 8, columns, how, warps)
    addresses = [lanes(lane) * unit // 8 for lane in range(size(lanes))]
    return _by_looking(addresses, how, every_base=not _is_swizzled(lanes))


def byte_unit(lanes: Any, unit: int | None) -> int:
    """The bits of one offset of `lanes`: as given, or as it says, or 8."""
    unit = unit or getattr(lanes, "unit", None) or 8
    if type(unit) is not int or unit < 8 or unit & (unit - 1):
        raise LayoutError(f"unit {unit} bits: an offset must count 1, 2, 4, 8 ... bytes")
    return unit


def byte_columns(lanes: Layout | ComposedLayout, unit: int) -> list[int] | None:
    """The columns of `lanes` as a bit matrix onto byte addresses, if it is one."""
    try:
        return [column * unit // 8 for column in gf2.matrix(lanes)]
    except LayoutError:
        return None


def _warp_columns(lanes: Layout | ComposedLayout, unit: int, how: Instruction) -> list[int] | None:
    """The columns of one warp, if its lanes and each further mode move bits of their own.

    Then another warp is the same, moved by an XOR; those modes need be no powers of two.
    """
    if isinstance(lanes, Layout):
        lanes = ComposedLayout(Swizzle(0, 0, 1), 0, lanes)
    if size(lanes) % WARP:
        return None
    try:
        warp, rest = logical_divide(coalesce(lanes.outer), WARP)
        own, plain = gf2.matrix(lanes.over(warp)), gf2.matrix(warp)
    except LayoutError:
        return None
    fields = [gf2.span(extent, stride) for extent, stride in rest.modes]
    fields += [lanes.offset, reduce(or_, plain, 0)]
    others = sum(fields[:-1])
    if sum(fields) != reduce(or_, fields):
        return None  # bits of two fields meet, and may carry
    starts = (lanes.inner(1 << bit) for bit in range(others.bit_length()) if others >> bit & 1)
    if any(start * unit // 8 % how.width for start in starts):
        return None
    return [column * unit // 8 for column in own]


def _is_swizzled(lanes: Layout | ComposedLayout) -> bool:
    """Whether the offsets of `lanes` do more than shift together when its base is moved."""
    if isinstance(lanes, Layout):
        return False
    return not isinstance(lanes.inner, Swizzle) or lanes.inner.bits != 0


def _by_rank(base: int, columns: list[int], how: Instruction, warps: int) -> Wavefronts:
    """Within a phase the words are a space over GF(2), spread evenly over the banks they reach.

    Every lane has the address of lane ^ ``2**k`` just if column k is 0.  There are `warps` times
    the lanes of the columns.
    """
    lanes = [0] + [1 << bit for bit in range(len(columns))]
    _check_aligned(lanes, [base] + [base ^ column for column in columns], how)
    word = max(how.width, 4)
    whole = 1 << len(columns) >= WARP
    merged = how.merges and whole and any(columns[k >> 1] == 0 for k in NEIGHBOURS)
    in_phase = min(how.phase.bit_length() - 1 + merged, len(columns))
    words = [column // word for column in columns[:in_phase]]
    banks = [column % (WAVEFRONT_BYTES // word) for column in words]
    ranks = gf2.rank(words), gf2.rank(banks)
    phases, degree = warps << len(columns) - in_phase, 1 << ranks[0] - ranks[1]
    collision = None
    if degree > 1:
        lane = min(lane for lane in range(1, 1 << in_phase) if _collides(lane, words, banks))
        collision = (0, lane)
    return Wavefronts(phases * degree, phases, degree, collision, True, ranks)


def _collides(lane: int, words: list[int], banks: list[int]) -> bool:
    """Whether `lane` wants another word of the bank of lane 0."""
    return gf2.image(lane, banks) == 0 != gf2.image(lane, words)


def _by_looking(addresses: Sequence[int], how: Instruction, every_base: bool) -> Wavefronts:
    _check_aligned(range(len(addresses)), addresses, how)
    degrees, collision = [], None
    for phase in phases(addresses, how):
        words_of_bank = _words_of_bank(addresses, phase, max(how.width, 4))
        degrees.append(max(map(len, words_of_bank.values())))
        if collision is None and degrees[-1] > 1:
            collision = _first_collision(words_of_bank)
    count, ideal = sum(degrees), len(degrees)
    return Wavefronts(count, ideal, max(degrees, default=0), collision, every_base)


def phases(addresses: Sequence[int], how: Instruction) -> list[range]:
    """The lanes of each phase.

    >>> phases([0] * 8 + [16] * 8, instruction("ldmatrix.x2"))
    [range(0, 8), range(8, 16)]
    """
    found = []
    for warp in range(0, len(addresses), WARP):
        end = min(warp + WARP, len(addresses))
        step = how.phase_at(addresses[warp:end])
        found += [range(first, min(first + step, end)) for first in range(warp, end, step)]
    return found


def _words_of_bank(addresses: Sequence[int], phase: range, word: int) -> dict[int, dict[int, int]]:
    """For each bank, or group of them as wide as `word`, its words and the first lane of each."""
    found: dict[int, dict[int, int]] = {}
    for lane in phase:
        at = addresses[lane] // word
        found.setdefault(at % (WAVEFRONT_BYTES // word), {}).setdefault(at, lane)
    return found


def _first_collision(words_of_bank: dict[int, dict[int, int]]) -> tuple[int, int]:
    """The lanes of the first two words of a bank, of all banks those that come first."""
    pairs = [tuple(lanes.values())[:2] for lanes in words_of_bank.values() if len(lanes) > 1]
    first, second = min(pairs, key=lambda pair: pair[1])
    return first, second


def _check_aligned(lanes: Sequence[Any], addresses: Sequence[int], how: Instruction) -> None:
    for lane, address in zip(lanes, addresses, strict=True):
        if address % how.width:
            raise LayoutError(
                f"lane {lane} accesses {how.width} bytes at byte {address}: an address must be a "
                f"multiple of the bytes accessed"
            )
