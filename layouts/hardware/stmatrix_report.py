"""An accumulator staged in shared memory by stmatrix: a naive, a padded, and a swizzled tile.

In an epilogue, a warpgroup stores its wgmma accumulator by stmatrix into a tile of 64 columns, and
TMA stores the tile to global memory.  Each thread supplies the address of a row of eight elements.
If the eight rows of a matrix start in one bank, they take eight wavefronts.

>>> print(staging_report().summary())
naive     S<0,3,3> o 0 o (64,64):(64,1): 512 wavefronts instead of 64, 8192 bytes
padded    S<0,3,3> o 0 o (64,64):(72,1): 64 wavefronts, 9200 bytes
swizzled  S<3,3,3> o 0 o (64,64):(64,1): 64 wavefronts, 8192 bytes
offsets in elements of 16 bits
"""

from __future__ import annotations

from functools import lru_cache

from ..errors import LayoutError
from ..values.layout import Layout, cosize
from ..values.swizzle import ComposedLayout, Swizzle
from ..values.tuples import is_int
from ..values.unit import in_units
from ..values.value import Report
from .atoms import MATRIX_BITS, MATRIX_ROWS, WGMMA_M, wgmma_accumulator
from .banks import Access, BankReport, banks
from .facts import BANK_BYTES, WARPGROUP, WAVEFRONT_BYTES
from .padding import padding_for
from .synthesis import swizzle_for
from .wavefronts import wavefronts

__all__ = ["StagingReport", "staging_report"]

#: Columns of a tile that the report knows: what stmatrix.x4 divides, up to those of one wgmma.
COLUMNS = (16, 32, 64, 128, 256)


class StagingReport(Report):
    """The stmatrix of a warpgroup into three tiles: (name, report) of each.

    `columns` is the width of the tile; a report counts everything that the warpgroup stores.
    """

    __slots__ = __match_args__ = ("columns", "reports")
    columns: int
    reports: tuple[tuple[str, BankReport], ...]

    def __init__(self, columns: int, reports: tuple[tuple[str, BankReport], ...]) -> None:
        self._set(columns, reports)

    def summary(self) -> str:
        """One row for each tile: its layout, the wavefronts to store it, its bytes; the unit."""
        rows = []
        for name, report in self.reports:
            tile = _tiles(self.columns)[name]
            taken = cosize(tile) * MATRIX_BITS // 8
            rows.append(f"{name:<9} {tile}: {report.wavefronts.counted()}, {taken} bytes")
        return "\n".join([*rows, in_units(MATRIX_BITS)])

    def text(self, threads: int = WARPGROUP) -> str:
        """The byte address and the banks of each thread's row in the first stmatrix.

        Eight threads address a matrix, one phase of the access; its wavefronts stand below them.

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
        if not is_int(threads) or not 1 <= threads <= WARPGROUP or threads % MATRIX_ROWS:
            raise LayoutError(
                f"threads {threads!r}: give a multiple of {MATRIX_ROWS} up to {WARPGROUP}"
            )
        rows = [" " * 16 + "".join(f"{name:>15}" for name, _ in self.reports)]
        rows.append("thread  row  col" + "     byte banks" * len(self.reports))
        for first in range(0, threads, MATRIX_ROWS):
            matrix = range(first, first + MATRIX_ROWS)
            rows += [self._row(thread) for thread in matrix]
            counts = (_phase_wavefronts(report, matrix) for _, report in self.reports)
            rows.append("wavefronts      " + "".join(f"{count:>15}" for count in counts))
        return "\n".join(rows)

    def _row(self, thread: int) -> str:
        naive = dict(self.reports)["naive"]  # its offset is column + columns * row
        row, column = divmod(naive.addresses(thread), self.columns)
        cells = "".join(_cell(_byte(report, thread)) for _, report in self.reports)
        return f"{thread:>6}{row:>5}{column:>5}{cells}"

    def __str__(self) -> str:
        return f"{self.text()}\n\n{self.summary()}"


def staging_report(columns: int = 64) -> StagingReport:
    """The wavefronts of stmatrix.x4 that stages 64 rows of `columns` columns, in three tiles.

    They are a naive tile, the padded tile of `padding_for`, and the swizzled tile of `swizzle_for`.
    A tile of 128 rows takes twice as many.

    Raises `LayoutError` unless `columns` is 16, 32, 64, 128 or 256.

    >>> [report.wavefronts.count for _, report in staging_report(32).reports]
    [128, 32, 32]
    """
    if not is_int(columns) or columns not in COLUMNS:
        raise LayoutError(f"columns {columns!r}: give 16, 32, 64, 128 or 256")
    tiles = _tiles(columns)
    reports = tuple((name, banks(tile, _access(columns))) for name, tile in tiles.items())
    return StagingReport(int(columns), reports)


@lru_cache(maxsize=len(COLUMNS))
def _tiles(columns: int) -> dict[str, ComposedLayout]:
    """Name → tile of 64 rows of so many columns."""
    plain, access = Layout((WGMMA_M, columns), (columns, 1)), _access(columns)
    padded = padding_for(plain, [access], MATRIX_BITS)
    choice = swizzle_for(plain, [access], MATRIX_BITS)
    if padded is None or choice.layout is None:
        raise LayoutError(f"no padding or no swizzle frees {plain} of bank conflicts")
    none = Swizzle(0, 3, 3)
    return {
        "naive": ComposedLayout(none, 0, plain, MATRIX_BITS),
        "padded": ComposedLayout(none, 0, padded.layout, MATRIX_BITS),
        "swizzled": choice.layout,
    }


@lru_cache(maxsize=len(COLUMNS))
def _access(columns: int) -> Access:
    return Access("stmatrix.x4", values=wgmma_accumulator(columns))


def _byte(report: BankReport, thread: int) -> int:
    return int(report.addresses(thread)) * MATRIX_BITS // 8


def _phase_wavefronts(report: BankReport, threads: range) -> int:
    addresses = [_byte(report, thread) for thread in threads]
    return wavefronts(addresses, report.access.instruction).count


def _cell(byte: int) -> str:
    """The byte address of a row of 16 bytes, and its four banks."""
    first = byte % WAVEFRONT_BYTES // BANK_BYTES
    return f"{byte:>9}{f'{first}-{first + 3}':>6}"
