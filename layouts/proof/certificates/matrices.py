"""Matrices over GF(2) as sympy's `DomainMatrix`: column j is what bit j of the index adds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...values.swizzle import Swizzle
from .definition import swizzled_bits

__all__ = ["columns_of", "identity", "matrix_of_columns", "swizzle_matrix"]


def matrix_of_columns(columns: Sequence[int]) -> Any:
    """The matrix whose column j has the bits of ``columns[j]``, bit 0 in row 0.

    >>> matrix_of_columns([1, 2, 3]).rank()
    2
    """
    rows = max([column.bit_length() for column in columns] + [1])
    return _matrix(lambda i, j: columns[j] >> i, rows, len(columns))


def columns_of(matrix: Any) -> list[int]:
    """The columns of `matrix` as integers.

    >>> columns_of(matrix_of_columns([1, 2, 3]))
    [1, 2, 3]
    """
    table = matrix.to_Matrix()
    rows, columns = matrix.shape
    return [sum(int(table[i, j]) % 2 << i for i in range(rows)) for j in range(columns)]


def identity(rows: int, columns: int) -> Any:
    """The matrix that keeps each bit, and drops or adds high ones."""
    return _matrix(lambda i, j: int(i == j), rows, columns)


def swizzle_matrix(swizzle: Swizzle, bits: int) -> Any:
    """What `swizzle` does to `bits` bits."""
    added = swizzled_bits(swizzle)
    return _matrix(lambda i, j: int(i == j) ^ int(added.get(i) == j), bits, bits)


def _matrix(entry: Callable[[int, int], int], rows: int, columns: int) -> Any:
    """The matrix with ``entry(row, column)`` modulo 2."""
    from sympy import GF
    from sympy.polys.matrices import DomainMatrix

    field = GF(2)
    table = [[field(entry(i, j) & 1) for j in range(columns)] for i in range(rows)]
    return DomainMatrix(table, (rows, columns), field)
