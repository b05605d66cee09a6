"""Thread-value layouts of the instructions: which thread holds which element of which matrix.

A thread-value layout takes (thread, value) to the index of an element.  The numbers are facts of
the PTX ISA (version 9.2), each with its section; the tests hold them against the CuTe DSL's own.
"""

from __future__ import annotations

from .errors import LayoutError
from .layout import Layout
from .tuples import is_int
from .value import Value

__all__ = ["MatrixAtom", "ldmatrix", "stmatrix", "wgmma_accumulator"]

WGMMA_M = 64
"""Rows of D of every wgmma (PTX ISA 9.7.15.2, Matrix Shape)."""

WGMMA_N = range(8, 257, 8)
"""Columns of D that wgmma.mma_async.m64nNk16 takes (PTX ISA 9.7.15.2, Matrix Shape)."""


def wgmma_accumulator(n: int) -> Layout:
    """(thread, register) of a warpgroup -> row + 64 * column of the 64 x n accumulator D.

    Thread t of 128 holds the row ``16 * (t / 32) + (t % 32) / 4`` and the one 8 below, in each 8
    columns the pair from ``2 * (t % 4)``; registers count the pair, then the two rows, then the
    groups of columns.  (PTX ISA 9.7.15.5.1.1.1, Matrix Fragments for wgmma.mma_async.m64nNk16, and
    its figure for accumulator D; C++ ``CLayout_64xN``.)  A bijection onto the 64 * n elements.

    Raises `LayoutError` unless n is a multiple of 8 from 8 to 256.

    >>> print(wgmma_accumulator(128))
    ((4,8,4),(2,2,16)):((128,1,16),(64,8,512))
    >>> divmod(wgmma_accumulator(128)(37, 2), 64)   # thread 37, register 2: column 2, row 25
    (2, 25)
    """
    if not is_int(n) or n not in WGMMA_N:
        raise LayoutError(f"wgmma_accumulator: n = {n!r} must be a multiple of 8 from 8 to 256")
    threads, registers = (4, 8, 4), (2, 2, n // 8)
    return Layout((threads, registers), ((2 * WGMMA_M, 1, 16), (WGMMA_M, 8, 8 * WGMMA_M)))


class MatrixAtom(Value):
    """What the lanes of a warp do in one ldmatrix or stmatrix of 8x8 matrices of 16-bit elements.

    Elements are numbered ``column + 8 * row + 64 * matrix``, as rows of 16 bytes lie in memory.

    `rows`      (lane, column) -> element: the row whose address the lane supplies, at each column.
    `fragment`  (lane, (half, matrix)) -> element: what the lane holds in the low and high half of
                the register of each matrix.
    """

    __slots__ = __match_args__ = ("name", "matrices", "transposed")
    name: str
    matrices: int
    transposed: bool

    def __init__(self, name: str, matrices: int, transposed: bool) -> None:
        if matrices not in (1, 2, 4):
            raise LayoutError(f"{name}: {matrices!r} matrices; it moves 1, 2 or 4")
        self._set(name, matrices, transposed)

    @property
    def rows(self) -> Layout:
        """(lane, column) -> element; lanes from ``8 * matrices`` on supply no address."""
        return Layout((8 * self.matrices, 8), (8, 1))

    @property
    def fragment(self) -> Layout:
        """(lane, (half, matrix)) -> element; a bijection onto the ``64 * matrices`` elements."""
        if self.transposed:
            return Layout(((4, 8), (2, self.matrices)), ((16, 1), (8, 64)))
        return Layout((32, (2, self.matrices)), (2, (1, 64)))


def stmatrix(matrices: int = 4, transposed: bool = False) -> MatrixAtom:
    """stmatrix.sync.aligned.m8n8.x{matrices}[.trans].shared.b16 (PTX ISA 9.7.14.5.16).

    Lane l supplies the address of row ``l % 8`` of matrix ``l / 8``, and stores elements ``2 * (l %
    4)`` and the next of row ``l / 4`` of every matrix; with `transposed`, of column ``l / 4``.

    Raises `LayoutError` unless `matrices` is 1, 2 or 4.

    >>> print(stmatrix().rows, stmatrix().fragment, stmatrix(transposed=True).fragment)
    (32,8):(8,1) (32,(2,4)):(2,(1,64)) ((4,8),(2,4)):((16,1),(8,64))
    """
    return MatrixAtom("stmatrix", matrices, transposed)


def ldmatrix(matrices: int = 4, transposed: bool = False) -> MatrixAtom:
    """ldmatrix.sync.aligned.m8n8.x{matrices}[.trans].shared.b16 (PTX ISA 9.7.14.5.15).

    Lanes supply addresses and receive elements as they do for `stmatrix`.

    >>> ldmatrix().fragment == stmatrix().fragment
    True
    """
    return MatrixAtom("ldmatrix", matrices, transposed)
