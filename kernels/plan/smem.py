"""Shared memory: the stages of a tile, and the bytes of all buffers."""

from __future__ import annotations

from collections.abc import Iterable

from layouts import ComposedLayout, Layout, cosize, make_layout


def packed_bytes(sizes: Iterable[int], alignment: int) -> int:
    """Bytes of consecutive buffers of these sizes, each at a multiple of `alignment`.

    >>> packed_bytes([100, 100], 64)
    228
    """
    end = 0
    for size in sizes:
        end = -(-end // alignment) * alignment + size
    return end


def staged_layout(tile: ComposedLayout, stages: int) -> ComposedLayout:
    """The layout of `stages` consecutive copies of a tile: (rows, columns, stages).

    >>> from layouts import Swizzle
    >>> print(staged_layout(ComposedLayout(Swizzle(3, 3, 3), 0, Layout((8, 64), (64, 1))), 6))
    S<3,3,3> o 0 o (8,64,6):(64,1,512)
    """
    return tile.over(make_layout(*tile.outer, Layout(stages, cosize(tile))))
