"""Chains that are linear in the bits of the index: over GF(2), by XOR of columns."""

from __future__ import annotations

from collections.abc import Sequence

from ...values.layout import Layout
from ...values.swizzle import Swizzle
from .definition import Stages, evaluate, is_xor, modes_of

__all__ = ["affine", "rank"]


def affine(stages: Stages, bits: int) -> tuple[int, list[int]] | None:
    """The value at 0, and the columns: the chain at i is this value XOR column j for each bit j
    of i, for every i below ``2**bits``.  None if the chain is not shown to be so.

    A swizzle is linear.  So is a layout with XOR strides whose extents, except the last, are
    powers of two.  So is a layout with integer strides of this kind if no two of its columns share
    a bit, for then their sum is their XOR.  An offset is added as an XOR if it shares no bit with
    what it is added to.

    >>> affine((Swizzle(1, 0, 2), 8, Layout(8)), 3)
    (8, [1, 2, 5])
    >>> affine((Layout((4, 2), (1, 3)),), 3)
    """
    constant, columns = 0, [1 << bit for bit in range(bits)]
    for stage in reversed(stages):
        reached = constant
        for column in columns:
            reached |= column
        if isinstance(stage, (Layout, Swizzle)):
            if isinstance(stage, Layout) and not _is_linear(stage, reached.bit_length()):
                return None
            constant = evaluate((stage,), constant)
            columns = [evaluate((stage,), column) for column in columns]
        elif stage & reached:
            return None
        else:
            constant ^= stage
    return constant, columns


def _is_linear(layout: Layout, bits: int) -> bool:
    """Whether `layout` is linear over XOR on the indices below ``2**bits``."""
    modes = modes_of(layout)
    if any(extent & (extent - 1) for extent, _ in modes[:-1]):
        return False
    if is_xor(layout):
        return True
    seen = 0
    for bit in range(bits):
        column = evaluate((layout,), 1 << bit)
        if seen & column:
            return False
        seen |= column
    return True


def rank(columns: Sequence[int]) -> int:
    """The rank of a matrix over GF(2), given by its columns.

    >>> rank([1, 2, 3])
    2
    """
    pivots: list[int] = []
    for column in columns:
        for pivot in pivots:
            column = min(column, column ^ pivot)
        if column:
            pivots.append(column)
    return len(pivots)
