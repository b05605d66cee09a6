"""How an accumulator is staged in shared memory for its way out: naive, padded, or swizzled.

A warpgroup leaves its wgmma accumulator by stmatrix in a tile of 64 columns, from which TMA stores
it.  Each thread addresses a row of eight elements; where the rows of a matrix start in one bank,
they are written one after the other.

>>> print(staging_report().summary())
naive     S<0,3,3> o 0 o (64,64):(64,1): 512 wavefronts where 64 would do, 8192 bytes
padded    S<0,3,3> o 0 o (64,64):(72,1): 64 wavefronts, 9200 bytes
swizzled  S<3,3,3> o 0 o (64,64):(64,1): 64 wavefronts, 8192 bytes
"""

from __future__ import annotations

from functools import lru_cache

from ..errors import LayoutError
from ..values.layout import Layout, cosize
from ..values.swizzle import ComposedLayout, Swizzle
from ..values.tuples import is_int
from ..values.value import Value
from .atoms import wgmma_accumulator
from .banks import Access, BankReport, banks
from .synthesis import padding_for, swizzle_for
from .wavefronts import WAVEFRONT_BYTES, wavefronts

__all__ = ["StagingReport", "staging_report"]

#: Bits of an element that stmatrix moves.
UNIT = 16

#: Threads of a warpgroup, and the rows of its accumulator.
THREADS, ROWS = 128, 64

#: Lanes that address one matrix.
PHASE = 8

BANK_BYTES = 4


class StagingReport(Value):
    """One stmatrix of 128 threads into tiles that lie differently: (name, report) of each.

    `columns` of the tile; a report is of all that the warpgroup writes.
    """

    __slots__ = __match_args__ = ("columns", "reports")
    columns: int
    reports: tuple[tuple[str, BankReport], ...]

    def __init__(self, columns: int, reports: tuple[tuple[str, BankReport], ...]) -> None:
        self._set(columns, reports)

    def summary(self) -> str:
        """A line for each tile: its layout, and the wavefronts of writing it whole."""
        lines = []
        for name, report in self.reports:
            found, (tile, taken) = report.wavefronts, self._tile(name)
            told = "" if found.conflict_free else f" where {found.ideal} would do"
            lines.append(f"{name:<9} {tile}: {found.count} wavefronts{told}, {taken} bytes")
        return "\n".join(lines)

    def text(self, threads: int = THREADS) -> str:
        """The byte address and the banks of each thread's row in the first stmatrix, side by side.

        Eight threads address a matrix, a phase of the access; below them stands what it takes.

        >>> print(staging_report().text(8))
                                  naive         padded       swizzled
        thread  row  col     byte banks     byte banks     byte banks
             0    0    0        0   0-3        0   0-3        0   0-3
             1    1    0      128   0-3      144   4-7      144   4-7
             2    2    0      256   0-3      288  8-11      288  8-11
             3    3    0      384   0-3      432 12-15      432 12-15
             4    4    0      512   0-3      576 16-19      576 16-19
             5    5    0      640   0-3      720 20-23      720 20-23
             6    6    0      768   0-3      864 24-27      864 24-27
             7    7    0      896   0-3     1008 28-31     1008 28-31
        wavefronts                    8              1              1

        Raises `LayoutError` unless `threads` is 8, 16, 24 ... 128.
        """
        if not is_int(threads) or not 1 <= threads <= THREADS or threads % PHASE:
            raise LayoutError(f"threads {threads!r}: give a multiple of {PHASE} up to {THREADS}")
        lines = [" " * 16 + "".join(f"{name:>15}" for name, _ in self.reports)]
        lines.append("thread  row  col" + "     byte banks" * len(self.reports))
        for first in range(0, threads, PHASE):
            matrix = range(first, first + PHASE)
            lines += [self._line(thread) for thread in matrix]
            counts = (_phase_wavefronts(report, matrix) for _, report in self.reports)
            lines.append("wavefronts      " + "".join(f"{count:>15}" for count in counts))
        return "\n".join(lines)

    def _line(self, thread: int) -> str:
        naive = dict(self.reports)["naive"]  # of rows one after the other
        row, column = divmod(naive.addresses(thread), self.columns)
        cells = "".join(_cell(_byte(report, thread)) for _, report in self.reports)
        return f"{thread:>6}{row:>5}{column:>5}{cells}"

    def _tile(self, name: str) -> tuple[ComposedLayout, int]:
        """The tile of that name, and the bytes that it takes."""
        tile = _tiles(self.columns)[name]
        return tile, cosize(tile) * UNIT // 8

    def __str__(self) -> str:
        return f"{self.text()}\n\n{self.summary()}"


def staging_report(columns: int = 64) -> StagingReport:
    """What staging 64 rows of `columns` columns costs by stmatrix.x4, in a naive tile, a padded and
    a swizzled one; 128 rows are the same twice.

    The padding and the swizzle are those that `padding_for` and `swizzle_for` find.

    Raises `LayoutError` unless `columns` is 16, 32, 64, 128 or 256.

    >>> [report.wavefronts.count for _, report in staging_report(32).reports]
    [128, 32, 32]
    """
    if not is_int(columns) or columns not in (16, 32, 64, 128, 256):
        raise LayoutError(f"columns {columns!r}: the tile has 16, 32, 64, 128 or 256")
    tiles = _tiles(columns)
    reports = tuple((name, banks(tile, _access(columns))) for name, tile in tiles.items())
    return StagingReport(columns, reports)


@lru_cache(maxsize=8)
def _tiles(columns: int) -> dict[str, ComposedLayout]:
    """By name, tiles of 64 rows of so many columns."""
    plain, access = Layout((ROWS, columns), (columns, 1)), _access(columns)
    padded, choice = padding_for(plain, [access], UNIT), swizzle_for(plain, [access], UNIT)
    if padded is None or choice.layout is None:
        raise LayoutError(f"{plain} is freed of conflicts by no padding or no swizzle")
    none = Swizzle(0, 3, 3)
    return {
        "naive": ComposedLayout(none, 0, plain, UNIT),
        "padded": ComposedLayout(none, 0, padded.layout, UNIT),
        "swizzled": choice.layout,
    }


@lru_cache(maxsize=8)
def _access(columns: int) -> Access:
    return Access("stmatrix.x4", values=wgmma_accumulator(columns))


def _byte(report: BankReport, thread: int) -> int:
    return int(report.addresses(thread)) * UNIT // 8


def _phase_wavefronts(report: BankReport, threads: range) -> int:
    addresses = [_byte(report, thread) for thread in threads]
    return wavefronts(addresses, report.access.instruction).count


def _cell(byte: int) -> str:
    first = byte % WAVEFRONT_BYTES // BANK_BYTES
    return f"{byte:>9}{f'{first}-{first + 3}':>6}"
