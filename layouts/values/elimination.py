"""Linear algebra over GF(2) on Python ints: a matrix is a list of columns, and a sum is an XOR."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["image", "kernel", "largest", "preimage", "rank", "reduced"]


def image(index: int, columns: Iterable[int]) -> int:
    """The XOR of column j for the set bits j of `index`.

    >>> image(0b101, [0b011, 0b101, 0b110])
    5
    """
    value = 0
    for bit, column in enumerate(columns):
        if index >> bit & 1:
            value ^= column
    return value


def rank(columns: Iterable[int]) -> int:
    """The dimension of the span of `columns`: XORs of them take ``2**rank`` values.

    >>> rank([0b011, 0b101, 0b110])
    2
    """
    return sum(1 for _, pivot in eliminated(columns) if pivot)


def kernel(columns: Iterable[int]) -> tuple[int, ...]:
    """A basis of the indices whose image is 0.

    >>> kernel([0b011, 0b101, 0b110])
    (7,)
    """
    return tuple(index for index, value in eliminated(columns) if not value)


def preimage(value: int, columns: Iterable[int]) -> int | None:
    """An index whose image is `value`, or None; of several, the one that `eliminated` finds.

    >>> preimage(0b110, [0b011, 0b101]), preimage(0b111, [0b011, 0b101])
    (3, None)
    """
    return solved(value, eliminated(columns))


def preimages(values: Iterable[int], columns: Iterable[int]) -> list[int | None]:
    """`preimage` of each of `values`."""
    pairs = eliminated(columns)
    return [solved(value, pairs) for value in values]


def solved(value: int, pairs: list[tuple[int, int]]) -> int | None:
    """The index whose image is `value`, or None.

    `pairs` are (index, image) by falling image, and no two images have the same top bit.
    """
    index = 0
    for other, pivot in pairs:
        if value ^ pivot < value:
            index, value = index ^ other, value ^ pivot
    return None if value else index


def largest(columns: Iterable[int]) -> int:
    """The largest XOR of some of `columns`.

    >>> largest([0b011, 0b101])
    6
    """
    value = 0
    for _, pivot in eliminated(columns):
        value = max(value, value ^ pivot)
    return value


def reduced(vectors: Iterable[int]) -> tuple[int, ...]:
    """The basis of the span of independent `vectors` in which no vector has another's top bit.

    If a basis has vectors that share no bit, this is that basis.

    >>> reduced([0b111, 0b011])
    (4, 3)
    """
    basis: list[int] = []
    for _, value in reversed(eliminated(vectors)):  # by rising top bit
        for other in reversed(basis):
            value = min(value, value ^ other)
        basis.append(value)
    return tuple(reversed(basis))


def eliminated(columns: Iterable[int]) -> list[tuple[int, int]]:
    """Pairs (index, image of the index), one for each column.

    The pairs are sorted by falling image.  No two images other than 0 have the same top bit.
    """
    pairs: list[tuple[int, int]] = []
    for j, column in enumerate(columns):
        index, value = 1 << j, column
        for other, pivot in pairs:
            if value ^ pivot < value:  # the top bit of pivot is set in value
                index, value = index ^ other, value ^ pivot
        pairs.append((index, value))
        pairs.sort(key=lambda pair: pair[1], reverse=True)
    return pairs
