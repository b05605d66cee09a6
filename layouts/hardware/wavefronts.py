"""Shared memory: how many wavefronts an access of a warp takes.

Shared memory has 32 banks of 4 bytes.  A wavefront reads or writes one word of each bank.  A wide
access runs in phases (see `instructions`).  Lanes of a phase that access different words of one
bank conflict: each word takes a wavefront of its own.  Lanes that access the same word share it, a
broadcast.

If the lanes are a bit matrix onto byte addresses, two ranks over GF(2) decide the count, for every
base at once.  Otherwise the addresses are counted lane by lane.  Nsight Compute counts the same on
an H100, case by case.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from functools import reduce
from operator import or_
from typing import Any

from ..algebra import coalesce, gf2, logical_divide
from ..errors import LayoutError
from ..values.layout import Layout
from ..values.swizzle import ComposedLayout, Swizzle
from ..values.tuples import is_int, size
from ..values.unit import BYTE, in_units
from ..values.value import Report
from .byte_addresses import byte_addresses, byte_columns, byte_unit, check_aligned, check_lanes
from .facts import WARP
from .instructions import NEIGHBOURS, Instruction, instruction

__all__ = ["Wavefronts", "conflict", "phases", "wavefronts"]


class Wavefronts(Report):
    """The wavefronts of an access, and two lanes that conflict, if any do.

    `count`       wavefronts that the access takes
    `ideal`       its phases: the count without conflicts
    `degree`      the most wavefronts of one phase
    `collision`   two lanes of one phase with different words of one bank, or None
    `every_base`  whether the count holds wherever the access starts.  Without a swizzle this means
                  every base that is a multiple of 4 bytes and of the width; with one, every base
                  that has none of the bits that the lanes set.
    `ranks`       ranks over GF(2) of the words and of the banks of a phase, or None if the
                  addresses were counted lane by lane
    `unit`        bits of one offset of the lanes, from which the addresses come
    """

    __slots__ = __match_args__ = (
        *("count", "ideal", "degree", "collision", "every_base"),
        *("ranks", "unit"),
    )
    count: int
    ideal: int
    degree: int
    collision: tuple[int, int] | None
    every_base: bool
    ranks: tuple[int, int] | None
    unit: int

    def __init__(
        self,
        count: int,
        ideal: int,
        degree: int,
        collision: tuple[int, int] | None,
        every_base: bool,
        ranks: tuple[int, int] | None = None,
        unit: int = BYTE,
    ) -> None:
        self._set(count, ideal, degree, collision, every_base, ranks, unit)

    @property
    def conflict_free(self) -> bool:
        """Whether every phase takes one wavefront."""
        return self.collision is None

    @property
    def conflicts(self) -> int:
        """Bank conflicts as the hardware counts them: wavefronts beyond one per phase."""
        return self.count - self.ideal

    def __str__(self) -> str:
        return f"{self.found()} ({in_units(self.unit)})"

    def found(self) -> str:
        """The count in words, where it holds, and the lanes that conflict.

        >>> wavefronts(Layout(8, 16)).found()
        '2 wavefronts instead of 1 at every base: lanes 0 and 4 access different words of one bank'
        """
        where = "at every base" if self.every_base else "at these addresses"
        if self.collision is None:
            return f"{self.counted()}, conflict-free {where}"
        first, second = self.collision
        return (
            f"{self.counted()} {where}: "
            f"lanes {first} and {second} access different words of one bank"
        )

    def counted(self) -> str:
        """The count in words, with the ideal if they differ.

        >>> wavefronts(Layout(8, 64)).counted(), wavefronts(Layout(8, 8)).counted()
        ('8 wavefronts instead of 1', '1 wavefront')
        """
        wavefronts = "1 wavefront" if self.count == 1 else f"{self.count} wavefronts"
        return wavefronts if self.conflict_free else f"{wavefronts} instead of {self.ideal}"


def wavefronts(
    lanes: Layout | ComposedLayout | Sequence[int],
    access: int | str | Instruction = 16,
    unit: int | None = None,
) -> Wavefronts:
    """The wavefronts of lanes that access shared memory.

    `lanes` takes a lane to its offset, or is a sequence of byte addresses; every further 32 lanes
    are another warp's access.  For ldmatrix and stmatrix give the row addresses.  `access` is an
    instruction, its PTX name, or the bytes per lane of a store.  `unit` is the bits of one offset
    of a layout that has no unit of its own (default 16).

    Raises `LayoutError` if there is no such access, if an address is not a multiple of its width,
    or if `unit` is not that of the layout, or of bytes for a sequence.

    >>> rows = Layout(8, 64)                                  # eight rows of a (.., 64) tile
    >>> print(wavefronts(rows, 16).found())
    8 wavefronts instead of 1 at every base: lanes 0 and 1 access different words of one bank
    >>> from layouts import Swizzle
    >>> print(wavefronts(ComposedLayout(Swizzle(3, 3, 3), 0, rows)))
    1 wavefront, conflict-free at every base (offsets in elements of 16 bits)

    Loads of neighbours with equal addresses merge:

    >>> pairs = Layout((2, 16), (0, 8))
    >>> [wavefronts(pairs, f"{name}.shared.v4.b32").count for name in ("ld", "st")]
    [2, 4]
    """
    how = instruction(access)
    if not isinstance(lanes, (Layout, ComposedLayout)):
        addresses = _listed(lanes)
        if unit not in (None, BYTE):
            raise LayoutError(f"unit {unit}: a sequence has byte addresses; omit unit")
        return _lane_by_lane(addresses, how, BYTE, every_base=False)
    check_lanes(lanes)
    unit = byte_unit(lanes, unit)
    columns, warps = byte_columns(lanes, unit), 1
    if columns is None:
        columns, warps = _warp_columns(lanes, unit, how), size(lanes) // WARP
    if columns is not None:
        return _by_rank(lanes(0) * unit // 8, columns, how, warps, unit)
    at = byte_addresses(lanes, unit)
    return _lane_by_lane(at, how, unit, every_base=not _is_swizzled(lanes))


def _listed(addresses: Any) -> list[int]:
    """A sequence of byte addresses as a list; raises `LayoutError` if it is something else."""
    ordered = isinstance(addresses, Iterable) and not isinstance(addresses, (bytes, Mapping, Set))
    found = list(addresses) if ordered else []
    if not ordered or not all(is_int(address) and address >= 0 for address in found):
        raise LayoutError(
            f"wavefronts of {addresses!r}: give a layout, or a list of byte addresses from 0 up"
        )
    return found


# ----------------------------------------------------------------------------------- by rank


def _warp_columns(lanes: Layout | ComposedLayout, unit: int, how: Instruction) -> list[int] | None:
    """The columns of one warp, if its lanes and each further mode set bits of their own.

    Every other warp is then the first one, moved by an XOR; the extents of further modes need not
    be powers of two.
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
    fields = [gf2.span(extent, int(stride)) for extent, stride in rest.modes]
    fields += [lanes.offset, reduce(or_, plain, 0)]
    others = sum(fields[:-1])
    if sum(fields) != reduce(or_, fields):
        return None  # two fields share a bit, and their sum may carry
    starts = (lanes.inner(1 << bit) for bit in range(others.bit_length()) if others >> bit & 1)
    if any(start * unit // 8 % how.width for start in starts):
        return None
    return [column * unit // 8 for column in own]


def _is_swizzled(lanes: Layout | ComposedLayout) -> bool:
    """Whether a move of the base may change the differences between the offsets of `lanes`."""
    if isinstance(lanes, Layout):
        return False
    return not isinstance(lanes.inner, Swizzle) or lanes.inner.bits != 0


def _by_rank(base: int, columns: list[int], how: Instruction, warps: int, unit: int) -> Wavefronts:
    """The words of a phase are a space over GF(2), spread evenly over the banks that they reach.

    Lanes merge with lane ^ ``2**k`` if and only if column k is 0.  The access has `warps` times the
    lanes of the columns.
    """
    lanes = [0] + [1 << bit for bit in range(len(columns))]
    starts = [base] + [base ^ column for column in columns]
    check_aligned(zip(lanes, starts, strict=True), how.width, unit)
    whole = 1 << len(columns) >= WARP
    merged = how.merges and whole and any(columns[k >> 1] == 0 for k in NEIGHBOURS)
    in_phase = min(how.phase.bit_length() - 1 + merged, len(columns))
    words = [column // how.word_bytes for column in columns[:in_phase]]
    banks = [word % how.words for word in words]
    ranks = gf2.rank(words), gf2.rank(banks)
    count, degree = warps << len(columns) - in_phase, 1 << ranks[0] - ranks[1]
    collision = None
    if degree > 1:  # a lane with the bank of lane 0 and another word
        others = range(1, 1 << in_phase)
        lane = next(i for i in others if gf2.image(i, banks) == 0 != gf2.image(i, words))
        collision = (0, lane)
    return Wavefronts(count * degree, count, degree, collision, True, ranks, unit)


# ------------------------------------------------------------------------------ lane by lane


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


def conflict(addresses: Sequence[int], how: Instruction, first: int, second: int) -> bool:
    """Whether two lanes of one phase access different words of one bank: the definition.

    >>> conflict([0, 128, 16], instruction(16), 0, 1), conflict([0, 128, 16], instruction(16), 0, 2)
    (True, False)
    """
    if not any(first in phase and second in phase for phase in phases(addresses, how)):
        return False
    a, b = addresses[first] // how.word_bytes, addresses[second] // how.word_bytes
    return a != b and (a - b) % how.words == 0


def _lane_by_lane(
    addresses: Sequence[int], how: Instruction, unit: int, every_base: bool
) -> Wavefronts:
    check_aligned(enumerate(addresses), how.width, unit)
    degrees, collision = [], None
    for phase in phases(addresses, how):
        words_of_bank = _words_of_bank(addresses, phase, how)
        degrees.append(max(map(len, words_of_bank.values())))
        if collision is None and degrees[-1] > 1:
            collision = _first_collision(words_of_bank)
    count, ideal = sum(degrees), len(degrees)
    return Wavefronts(count, ideal, max(degrees, default=0), collision, every_base, None, unit)


def _words_of_bank(
    addresses: Sequence[int], phase: range, how: Instruction
) -> dict[int, dict[int, int]]:
    """For each bank, or group of banks as wide as a word, its words and the first lane of each."""
    word_bytes, words = how.word_bytes, how.words
    found: dict[int, dict[int, int]] = {}
    for lane in phase:
        word = addresses[lane] // word_bytes
        found.setdefault(word % words, {}).setdefault(word, lane)
    return found


def _first_collision(words_of_bank: dict[int, dict[int, int]]) -> tuple[int, int]:
    """The first lanes of the first two words of a bank, in the bank where they come first."""
    pairs = [tuple(lanes.values())[:2] for lanes in words_of_bank.values() if len(lanes) > 1]
    first, second = min(pairs, key=lambda pair: pair[1])
    return first, second
