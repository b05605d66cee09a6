"""Thread-value layouts: which elements of a tile each thread of a block moves or holds."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from math import gcd
from typing import Any

from cutedsl_gemm.kernels.epilogue.expression import OTHER, Mode
from cutedsl_gemm.kernels.plan.checks import PlanError
from layouts import Bijective, Layout, cosize, make_ordered_layout, prove, size
from layouts.hardware.descriptor import Major


@dataclass(frozen=True)
class TVLayout:
    """A thread-value layout of a tile: (thread, value) → row, and → column.

    The values have the shape (lines, (width, vectors)): `width` neighbours along memory move as
    one vector. PlanError if the two layouts do not have one such shape.

    >>> shape = (32, (1, (4, 1)))
    >>> copy = TVLayout(Layout(shape, (1, (0, (0, 0)))), Layout(shape, (0, (0, (1, 0)))))
    >>> copy.width, copy.rows(5, 2), copy.columns(5, 2)
    (4, 5, 2)
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
    def threads(self) -> int:
        """The number of threads."""
        return size(self.rows[0])

    @property
    def values(self) -> int:
        """The number of elements of one thread."""
        return size(self.rows[1])

    @property
    def lines(self) -> int:
        """Contiguous lines of memory, rows or columns of the tile, that a thread accesses."""
        return size(self.rows[1][0])

    @property
    def width(self) -> int:
        """Elements of a vector, which moves as one."""
        return size(self.rows[1][1][0])

    @property
    def vertical(self) -> bool:
        """Whether a vector runs down a column; else it runs along a row."""
        return self.width > 1 and self.rows((0, (0, (1, 0)))) > 0

    @property
    def vectors(self) -> int:
        """Vectors of a thread on each line."""
        return size(self.rows[1][1][1])

    @property
    def elementwise(self) -> TVLayout:
        """The same elements of the same threads, moved one at a time: vectors of width 1.

        >>> print(load_layout(8, 8, "K", threads=16, width=4).elementwise.columns)
        ((2,8),(1,(1,(4,1)))):((4,0),(0,(0,(1,0))))
        """
        return TVLayout(*(_elementwise(layout) for layout in (self.rows, self.columns)))

    @property
    def registers(self) -> Layout:
        """value → register: the elements of a vector are neighbours."""
        return make_ordered_layout(self.rows.shape[1], (1, 0))

    def projection(self, modes: Collection[Mode]) -> TVLayout:
        """The same threads on a tensor that has only these modes of the tile, a vector or a scalar.

        A thread has each element once. Its row is 0 without M, and its column is 0 without N.

        >>> shape = (32, (2, (4, 1)))
        >>> copy = TVLayout(Layout(shape, (1, (32, (0, 0)))), Layout(shape, (0, (0, (1, 0)))))
        >>> print(copy.projection(("N",)).columns, copy.projection(("M",)).rows)
        (32,(1,(4,1))):(0,(0,(1,0))) (32,(2,(1,1))):(1,(32,(0,0)))
        """
        m, n = int("M" in modes), int("N" in modes)
        threads, values = self.rows.shape
        shape = threads, _where(values, self.offsets(m, n).stride[1], moves=True)
        row, column = self.offsets(m, 0), self.offsets(0, n)
        return TVLayout(Layout(shape, row.stride), Layout(shape, column.stride))

    def projected_registers(self, modes: Collection[Mode]) -> Layout:
        """value → register of `projection(modes)`: values that share an element share it.

        >>> shape = (32, (2, (4, 1)))
        >>> copy = TVLayout(Layout(shape, (1, (32, (0, 0)))), Layout(shape, (0, (0, (1, 0)))))
        >>> print(copy.projected_registers(("N",)), copy.projected_registers(("M",)))
        (2,(4,1)):(0,(1,0)) (2,(4,1)):(1,(0,0))
        """
        return Layout(self.rows.shape[1], self.projection(modes).registers.stride)

    def partials(self, over: Mode) -> TVLayout:
        """The parts of a reduction over a mode: those that each thread makes of its own elements.

        The parts of a tile are (rows, parts) if it is reduced over N, and (parts, columns) over M.
        Threads that have elements of one row make a part each.

        >>> shape = ((8, 4), (2, (4, 1)))
        >>> rows = Layout(shape, ((0, 1), (4, (0, 0))))
        >>> copy = TVLayout(rows, Layout(shape, ((4, 0), (0, (1, 0)))))
        >>> print(copy.partials("N").rows, copy.partials("N").columns)
        ((8,4),(2,(1,1))):((0,1),(4,(0,0))) ((8,4),(2,(1,1))):((1,0),(0,(0,0)))
        """
        held = self.projection((OTHER[over],))
        threads, alike = held.rows.shape[0], held.offsets(1, 1).stride[0]
        number = Layout(_where(threads, alike, moves=False)).stride
        parts = Layout(held.rows.shape, (number, held.zeros.stride[1]))
        return TVLayout(held.rows, parts) if over == "N" else TVLayout(parts, held.columns)

    @property
    def zeros(self) -> Layout:
        """(thread, value) → 0: the layout of a coordinate that no thread changes."""
        return self.offsets(0, 0)

    def offsets(self, row_stride: int, column_stride: int) -> Layout:
        """(thread, value) → row_stride * row + column_stride * column."""
        rows, columns = self.rows, self.columns
        return Layout(rows.shape, _combined(rows.stride, columns.stride, row_stride, column_stride))


def _elementwise(layout: Layout) -> Layout:
    (threads, (lines, vectors)), (thread, (line, vector)) = layout.shape, layout.stride
    return Layout((threads, (lines, (1, vectors))), (thread, (line, (0, vector))))


def _where(shape: Any, stride: Any, moves: bool) -> Any:
    """A shape with the extent 1 wherever the stride is 0, or if not `moves`, wherever it is not.

    The first is that of C++ CuTe's filter_zeros.
    """
    if isinstance(shape, tuple):
        return tuple(_where(*leaf, moves) for leaf in zip(shape, stride, strict=True))
    return shape if bool(stride) == moves else 1


def _combined(rows: Any, columns: Any, row_stride: int, column_stride: int) -> Any:
    """row_stride * rows + column_stride * columns, leaf by leaf."""
    if isinstance(rows, tuple):
        pairs = zip(rows, columns, strict=True)
        return tuple(_combined(row, column, row_stride, column_stride) for row, column in pairs)
    return row_stride * rows + column_stride * columns


def partition_problems(
    name: str, layout: TVLayout, shape: tuple[int, int], threads: int
) -> Iterator[str]:
    """The threads of a block must partition a tile (rows, columns): each element has one thread."""
    rows, columns = shape
    offsets = layout.offsets(1, rows)
    fits = cosize(layout.rows) <= rows and cosize(layout.columns) <= columns
    if layout.threads != threads:
        yield f"the layout of {name} has {layout.threads} threads; the block has {threads}"
    if not fits or size(offsets) != rows * columns or not prove(Bijective(offsets)):
        yield (
            f"the thread-value layout of {name}, {offsets}, must hold each of the "
            f"{rows * columns} elements once"
        )


def load_layout(rows: int, columns: int, major: Major, threads: int, width: int) -> TVLayout:
    """How threads load a tile: vectors of `width` elements, neighbours side by side along memory.

    The threads cover as many lines as they can; then each moves on by that number of lines. Of a
    line whose vectors do not divide among the threads, a thread loads several.

    >>> copy = load_layout(128, 8, "K", threads=256, width=4)
    >>> print(copy.rows, copy.columns)
    ((2,128),(1,(4,1))):((0,1),(0,(0,0))) ((2,128),(1,(4,1))):((4,0),(0,(1,0)))
    >>> print(load_layout(192, 16, "MN", threads=128, width=1).rows)
    ((64,2),(8,(1,3))):((1,0),(0,(1,64)))
    """
    inner, outer = (columns, rows) if major == "K" else (rows, columns)
    along = gcd(inner // width, threads)
    across, vectors = threads // along, inner // width // along
    shape = ((along, across), (outer // across, (width, vectors)))
    contiguous = Layout(shape, ((width, 0), (0, (1, along * width if vectors > 1 else 0))))
    lines = Layout(shape, ((0, 1), (across if outer > across else 0, (0, 0))))
    return TVLayout(lines, contiguous) if major == "K" else TVLayout(contiguous, lines)
