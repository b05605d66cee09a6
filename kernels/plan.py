"""What the plans of all families share.

A kernel's plan is every layout that its data moves through, as one frozen value. The kernel lowers
these layouts, the executor walks them on the CPU, the proofs and the pictures speak about them;
nothing about the movement of data is written anywhere else. A plan's `check` refuses, before any
compile and with a sentence, what the hardware cannot do.
"""

from __future__ import annotations

from collections.abc import Iterable

from layouts import ComposedLayout, Layout, cosize, make_layout

BITS = 16  # of an element: bfloat16 or float16
UNIT = 8  # elements of 16 bits in 16 bytes: TMA's addresses and leading strides are multiples of it


class PlanError(ValueError):
    """A plan that the hardware cannot run: the message says which part, what it is and must be."""


def room(sizes: Iterable[int], alignment: int) -> int:
    """Bytes of buffers of these sizes, one after the other, each at a multiple of `alignment`.

    >>> room([100, 100], 64)
    228
    """
    end = 0
    for taken in sizes:
        end = -(-end // alignment) * alignment + taken
    return end


def ring(tile: ComposedLayout, stages: int) -> ComposedLayout:
    """The layout of `stages` copies of a tile, one after the other: (rows, columns, stages).

    >>> from cutedsl_gemm.kernels.sm90.mainloop import swizzled
    >>> print(ring(swizzled(128, 64, "K"), 6))
    S<3,3,3> o 0 o ((8,16),(64,1),6):((64,512),(1,0),8192)
    """
    return tile.over(make_layout(*tile.outer, Layout(stages, cosize(tile))))
