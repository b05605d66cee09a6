"""Who takes what of a tile: the threads of a block, and where their elements lie."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cutedsl_gemm.kernels.plan.checks import PlanError
from layouts import Bijective, Layout, cosize, make_ordered_layout, prove, size
from layouts.hardware.descriptor import Major


@dataclass(frozen=True)
class Share:
    """What each thread of a block takes of a tile: (thread, value) → row, and → column.

    The values are (lines, (width, vectors)): `width` lie one after the other in memory. PlanError
    where the layouts are not made so.
    """

    rows: Layout
    columns: Layout

    def __post_init__(self) -> None:
        match self.rows.shape:
            case (_, (_, (_, _))) if self.columns.shape == self.rows.shape:
                return
        raise PlanError(
            f"rows are {self.rows} and columns {self.columns}; both must have the same shape, "
            "(threads, (lines, (width, vectors)))"
        )

    def __str__(self) -> str:
        return f"(rows {self.rows}, columns {self.columns})"

    @property
    def lines(self) -> int:
        """Lines of memory that a thread's values lie on."""
        return size(self.rows[1][0])

    @property
    def width(self) -> int:
        """Elements that move as one."""
        return size(self.rows[1][1][0])

    @property
    def down(self) -> bool:
        """Whether those that move as one lie below each other, not side by side."""
        return self.width > 1 and self.rows((0, (0, (1, 0)))) > 0

    @property
    def vectors(self) -> int:
        """Moves of a thread on each line."""
        return size(self.rows[1][1][1])

    @property
    def registers(self) -> Layout:
        """value → register: those that move as one are neighbours."""
        return make_ordered_layout(self.rows.shape[1], (1, 0))

    @property
    def still(self) -> Layout:
        """(thread, value) → 0: every thread stays in the first column."""
        return self.at(0, 0)

    def at(self, down: int, along: int) -> Layout:
        """(thread, value) → down * row + along * column: an address where these are the strides."""
        rows, columns = self.rows, self.columns
        return Layout(rows.shape, _weighted(rows.stride, columns.stride, down, along))


def _weighted(rows: Any, columns: Any, down: int, along: int) -> Any:
    if isinstance(rows, tuple):
        pairs = zip(rows, columns, strict=True)
        return tuple(_weighted(row, column, down, along) for row, column in pairs)
    return down * rows + along * columns


def share_problems(name: str, share: Share, shape: tuple[int, int], threads: int) -> Iterator[str]:
    """The threads of the block must take each element of a tile (rows, columns) once."""
    rows, columns = shape
    place, brought = share.at(1, rows), size(share.rows[0])
    inside = cosize(share.rows) <= rows and cosize(share.columns) <= columns
    if brought != threads:
        yield f"the shares of {name} are of {brought} threads; the block has {threads}"
    if not inside or size(place) != rows * columns or not prove(Bijective(place)):
        yield f"the threads' shares of {name}, {place}, must take each of {rows * columns} once"


def loads(rows: int, columns: int, major: Major, threads: int, width: int) -> Share:
    """How threads bring a tile: each `width` neighbours along memory, on as many lines as it takes.

    >>> share = loads(128, 8, "K", threads=256, width=4)
    >>> print(share.rows, share.columns)
    ((2,128),(1,(4,1))):((0,1),(0,(0,0))) ((2,128),(1,(4,1))):((4,0),(0,(1,0)))
    """
    inner, outer = (columns, rows) if major == "K" else (rows, columns)
    along = inner // width
    across = threads // along
    shape = ((along, across), (outer // across, (width, 1)))
    contiguous = Layout(shape, ((width, 0), (0, (1, 0))))
    lines = Layout(shape, ((0, 1), (across if outer > across else 0, (0, 0))))
    return Share(lines, contiguous) if major == "K" else Share(contiguous, lines)
